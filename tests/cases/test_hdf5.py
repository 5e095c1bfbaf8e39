"""HDF5: what programs say of their calls is what the trace has."""

import collections
import os
import shutil
import subprocess

import pytest

from lib.hdf5 import Call, above, build, declared, hdf5, kind_of, lost, same_calls, table, told
from lib.mpi import Form, launch, rank_of
from lib.run import BUILD, ROOT, same_outside

FORMS = ("serial.dynamic", "serial.no-pie", "serial.static", "serial.mixed", "mpich.dynamic", "mpich.mixed", "openmpi.dynamic",
	 "openmpi.mixed")
MODULES = ("H5", "H5A", "H5D", "H5E", "H5F", "H5G", "H5I", "H5L", "H5O", "H5P", "H5PL", "H5R", "H5S", "H5T", "H5Z")


def module_of(name):
	return max((one for one in MODULES if name.startswith(one) and name[len(one):len(one) + 1].islower()),
		   key=len, default=None)


@pytest.mark.parametrize("flavour", ["serial", "mpich"])
def test_table_has_what_headers_declare(flavour):
	rows = table()
	functions = {name: what for name, what in declared(flavour).items() if module_of(name)}
	assert len(functions) > 500
	assert not set(functions) - set(rows)
	for name, (result, parameters) in functions.items():
		row = rows[name]
		parameters = [one for one in parameters if one != "..."]
		assert row.group == module_of(name)
		assert len(row.args) == len(parameters), name
		for (kind, word), parameter in zip(row.args, parameters):
			assert kind in kind_of(parameter), (name, word, parameter)
		expected = "R_POINTER" if "*" in result else "R_NONE" if result == "void" else \
			"R_LONG" if result in ("hid_t", "hssize_t", "ssize_t", "size_t", "hsize_t", "haddr_t") else "R_INT"
		assert row.result == expected, name


def test_table_has_no_key_twice():
	"""Formal names that the trace uses for something else."""
	taken = {"hhash", "p_idx", "level", "fhash", "size_sum", "ret", "errno", "cut", "object", "object_path", "chunk",
		 "filters", "collective"}
	written = {"INT", "UINT", "LONG", "ULONG", "TEXT", "ID"}
	for name, row in table().items():
		words = [word for kind, word in row.args if kind in written]
		assert len(set(words)) == len(words) and not taken & set(words), name
		assert len(row.args) <= 15, name


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("part", ["types", "selections", "chunks", "names", "lives", "forks"])
def test_calls(runner, form, part):
	program = build("hdf5_calls.c", form)
	native, run = runner.native([program, part]), runner.traced([program, part])
	assert native.status == 0, native.stderr
	same_outside(native, run, files=False)
	same_calls(run)
	# What the program marks as unknown is counted.
	unknown = sum(event.name.startswith(("H5Dread", "H5Dwrite", "H5Aread", "H5Awrite")) and "size_sum" not in event.args
		      for event in hdf5(run))
	assert lost(run).get("unsized:hdf5", 0) == unknown
	assert "unnamed:hdf5" not in lost(run)


# --- examples ----------------------------------------------------------------

EXAMPLES = os.path.join(BUILD, "examples")
WRITES = ("write", "writev", "pwrite", "pwritev")
READS = ("read", "readv", "pread", "preadv")


def example(directory, name):
	"""An example's program; the case is skipped where this machine cannot make it."""
	path = os.path.join(EXAMPLES, name)
	made = subprocess.run(["make", "-s", "-C", os.path.join(ROOT, "examples", directory), f"OUT={EXAMPLES}", path],
			      check=False, capture_output=True)
	if made.returncode != 0:
		pytest.skip(f"{name}: {made.stderr.decode().splitlines()[-1]}")
	return path


def posix(run, names, path):
	"""Bytes of system calls on a file."""
	return sum(max(event.ret, 0) for event in run.events
		   if event.cat == "POSIX" and event.name in names and event.path == path)


@pytest.mark.parametrize("form", ["static", "static-pie", "dynamic"])
def test_fortran(both, form):
	program = example("hdf5-static", "hdf5_fields." + form)
	native, run = both.native([program, "."]), both.traced([program, "."])
	# Datasets have the time of their making.
	same_outside(native, run, files=False)
	same_calls(run)
	assert not lost(run)
	sets = {event.args["object_path"]: event.args for event in hdf5(run) if event.name == "H5Dcreate2"}
	assert sets["/fields/density"]["chunk"] == "32x64"
	assert sets["/fields/density"]["filters"] == "shuffle,deflate"
	assert "chunk" not in sets["/cells"] and "filters" not in sets["/cells"]


@pytest.mark.parametrize("form", ["serial.mixed", "mpich.dynamic", "mpich.mixed", "openmpi.dynamic"])
def test_fortran_with_other_libraries(runner, form):
	"""Parallel libraries in a program without MPI, and one that is linked into the program."""
	run = runner.traced([build(os.path.join(ROOT, "examples", "hdf5-static", "fields.f90"), form), "."])
	assert run.status == 0, run.stderr
	same_calls(run)
	assert not lost(run)


def test_asked_functions(runner):
	"""Property functions and queries only on request, and all of them then."""
	program = example("hdf5-static", "hdf5_fields.dynamic")
	plain, everything = runner.traced([program, "."]), runner.traced([program, "."], ["-e", "+hdf5:all"])
	names = {event.name for event in hdf5(plain)}
	assert not any(name.startswith(("H5P", "H5S", "H5T", "H5I", "H5E")) for name in names)
	more = {event.name for event in hdf5(everything)} - names
	assert {"H5open", "H5Pset_chunk", "H5Screate_simple", "H5Tcopy", "H5Tclose"} <= more
	assert [event.name for event in hdf5(everything) if event.name in names] == [event.name for event in hdf5(plain)]
	module = runner.traced([program, "."], ["-e", "hdf5:H5D"])
	assert {event.name for event in hdf5(module)} == {name for name in names if name.startswith("H5D")}
	# What is not written still serves.
	assert [event.args.get("size_sum") for event in hdf5(module) if event.name == "H5Dwrite"] == \
		[event.args.get("size_sum") for event in hdf5(plain) if event.name == "H5Dwrite"]
	assert {event.path for event in hdf5(module)} == {module.path("fields.h5")}
	none = runner.traced([program, "."], ["-e", "!hdf5"])
	assert not hdf5(none) and not any("hooks:hdf5" in trace.properties for trace in none.traces)


def test_data_directories(runner):
	"""Files elsewhere are left out, counted, and followed."""
	program = example("hdf5-static", "hdf5_fields.dynamic")
	run = runner.traced([program, "."], ["-d", "/nowhere"])
	assert run.status == 0 and not hdf5(run)
	run = runner.traced([program, "."], ["-d", "."])
	assert len(hdf5(run)) == 25


def test_netcdf(both):
	"""NetCDF from Fortran: its variables by name."""
	program = example("netcdf-fortran", "netcdf_weather")
	native, run = both.native([program, "."]), both.traced([program, "."])
	same_outside(native, run, files=False)
	moved = collections.Counter()
	for event in hdf5(run):
		if event.name in ("H5Dread", "H5Dwrite"):
			moved[event.args["object"], event.name[3:]] += event.args["size_sum"]
			assert event.path == run.path("weather.nc")
	expected = dict(((words[0], words[1]), int(words[2])) for words in map(str.split, run.stdout.decode().splitlines()))
	assert len(expected) == 4 and moved == expected
	create = [event for event in hdf5(run) if event.name == "H5Dcreate2" and event.args["object"] == "temperature"]
	assert create[0].args["chunk"] == "1x40x60" and create[0].args["filters"] == "shuffle,deflate"
	# References from a variable to its dimensions are of variable length.
	unknown = {event.args["object"] for event in hdf5(run)
		   if event.name in ("H5Aread", "H5Awrite") and "size_sum" not in event.args}
	assert unknown == {"DIMENSION_LIST"}


# --- layers above each other -------------------------------------------------

def test_sums_across_layers(runner):
	"""What a contiguous dataset moves is what the file moves, and metadata."""
	run = runner.traced([build("hdf5_drivers.c", "serial.dynamic"), "sec2"])
	assert run.status == 0, run.stderr
	same_calls(run)
	outer = above(run)
	path = run.path("file.h5")
	for name, kinds in (("H5Dwrite", WRITES), ("H5Dread", READS)):
		calls = [event for event in hdf5(run) if event.name == name]
		inside = [event for event in run.events if event.cat == "POSIX" and event.name in kinds
			  and calls[0] in outer[id(event)]]
		assert sum(event.ret for event in inside) == calls[0].args["size_sum"]
	data = sum(event.args["size_sum"] for event in hdf5(run) if event.name == "H5Dwrite")
	# Blocks of metadata are written when the file is closed.
	metadata = sum(event.ret for event in run.events if event.cat == "POSIX" and event.name in WRITES
		       and event.path == path and outer[id(event)][0].name != "H5Dwrite")
	assert posix(run, WRITES, path) == data + metadata and 0 < metadata < 8192


FILES = {"core": ["file.h5"], "split": ["file.h5-m", "file.h5-r"], "sec2": ["file.h5"], "stdio": ["file.h5"],
	 "family": [f"member{n}.h5" for n in range(3)]}


@pytest.mark.parametrize("form", ["serial.dynamic", "serial.static"])
@pytest.mark.parametrize("driver", FILES)
def test_drivers(runner, driver, form):
	"""Whatever the files are, what happens to them has the call above it."""
	run = runner.traced([build("hdf5_drivers.c", form), driver])
	assert run.status == 0, run.stderr
	same_calls(run)
	outer = above(run)
	touched = collections.Counter()
	for event in run.events:
		if event.cat not in ("POSIX", "SYSCALL") or event.path not in [run.path(name) for name in FILES[driver]]:
			continue
		assert any(one.cat == "HDF5" for one in outer[id(event)]), event
		touched[os.path.basename(event.path)] += event.name in WRITES
	assert sorted(touched) == FILES[driver] and all(touched.values())


PARALLEL = [pytest.param(mpi, name, suffix, id=f"{mpi}-{name}{suffix}") for name in ("rows", "columns")
	    for mpi, suffix in (("mpich", ""), ("mpich", ".static"), ("openmpi", ""))]


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("mpi, name, suffix", PARALLEL)
def test_parallel(runner, mpi, name, suffix, ranks):
	program = example("hdf5-parallel", f"hdf5_{name}.{mpi}{suffix}")
	form = Form(f"{mpi}.{'static' if suffix else 'dyn'}")
	native = launch(runner, form, ranks, [program, "."], native=True)
	run = launch(runner, form, ranks, [program, "."])
	assert run.status == native.status == 0, run.stderr
	assert sorted(run.stdout.splitlines()) == sorted(native.stdout.splitlines())
	said = collections.defaultdict(list)
	for line in run.stdout.decode().splitlines():
		rank, _, rest = line.partition("\t")
		said[int(rank.split()[1])].append(rest)
	assert sorted(said) == list(range(ranks))
	traces = {rank_of(trace): trace for trace in run.traces}
	assert sorted(traces) == list(range(ranks))
	for rank, lines in said.items():
		expected = told("\n".join(lines).encode())
		found = [event for event in sorted(traces[rank].events, key=lambda event: (event.ts, event.id))
			 if event.cat == "HDF5"]
		assert [Call(event.name, os.path.basename(event.path), event.args.get("object_path"),
			     event.args.get("size_sum")) for event in found] == expected
		for event in found:
			if event.name in ("H5Dread", "H5Dwrite"):
				independent = event.args["object"] == "independent" or event.args["dxpl_id"] == 0
				assert event.args["collective"] == (not independent)
	# HDF5 above MPI-IO above system calls.
	outer = above(run)
	path = run.path(f"{name}.h5")
	mine = [event for event in run.events if event.path == path]
	through = [event for event in mine if event.cat == "MPI" and event.name.startswith("MPI_File_write")]
	assert through
	for event in through:
		assert outer[id(event)][0].cat == "HDF5", event
	for event in mine:
		if event.cat == "POSIX" and event.name in WRITES:
			chain = [one.cat for one in outer[id(event)]]
			assert chain == ["MPI", "HDF5"], (event, outer[id(event)])
	data = sum(event.args["size_sum"] for event in run.events if event.cat == "HDF5" and event.name == "H5Dwrite")
	assert posix(run, WRITES, path) >= data


# --- other programs ----------------------------------------------------------

@pytest.mark.parametrize("link", ["static", "mixed"])
def test_stripped_library(runner, link):
	"""A program that holds the library without its names runs, and what is not seen is counted."""
	program = build("hdf5_drivers.c", f"serial.{link}.strip")
	native, run = runner.native([program, "sec2"]), runner.traced([program, "sec2"])
	assert run.status == native.status == 0 and run.stdout == native.stdout
	assert not hdf5(run)
	assert lost(run)["unhooked:hdf5"] == 1
	assert posix(run, WRITES, run.path("file.h5")) > 80000


def test_stripped_dynamic(runner):
	"""The library's names are its own."""
	run = runner.traced([build("hdf5_drivers.c", "serial.dynamic.strip"), "sec2"])
	assert run.status == 0
	same_calls(run)


def test_tools(runner):
	"""HDF5's own programs: what they print and what they make is as without us."""
	for tool in ("h5repack", "h5diff", "h5dump"):
		if not shutil.which(tool):
			pytest.skip(f"no {tool}")
	program = example("hdf5-static", "hdf5_fields.dynamic")

	made = runner.fresh("made")
	subprocess.run([program, "."], check=True, cwd=made, capture_output=True)

	def prepare(cwd):
		shutil.copy(os.path.join(made, "fields.h5"), cwd)

	for command in (["h5repack", "-f", "GZIP=4", "-l", "CHUNK=32x32", "fields.h5", "other.h5"],
			["h5diff", "-v", "fields.h5", "fields.h5"], ["h5dump", "-H", "fields.h5"]):
		native, run = runner.native(command, setup=prepare), runner.traced(command, setup=prepare)
		# What repacking makes has its time in it.
		same_outside(native, run, files=command[0] != "h5repack")
		if command[0] == "h5repack":
			subprocess.run(["h5diff", native.path("other.h5"), run.path("other.h5")], check=True)
		moved = collections.Counter()
		for event in hdf5(run):
			if event.name in ("H5Dread", "H5Dwrite"):
				moved[event.name, event.args["object_path"]] += event.args.get("size_sum", 0)
		if command[0] == "h5repack":
			assert moved["H5Dwrite", "/cells"] == 4 * 256 * 256
			assert moved["H5Dwrite", "/fields/density"] == 8 * 256 * 256


PYTHON = """
import h5py, numpy
with h5py.File("a.h5", "w") as file:
	x = file.create_dataset("x", data=numpy.arange(1000.0))
	group = file.create_group("g/h")
	c = group.create_dataset("c", (100, 100), chunks=(10, 10), compression="gzip", dtype="i4")
	c[10:20, 5] = 7
	c[[1, 3, 5], :] = numpy.full((3, 100), 2)
	x.attrs["v"] = 3.5
with h5py.File("a.h5") as file:
	print(file["x"][...].sum(), file["g/h/c"][10:12, :].sum(), file["x"][::2].sum())
"""


def python(package):
	path = os.path.join(ROOT, "build", "venv", "hdf5", "bin", "python")
	if not os.path.exists(path):
		pytest.skip(f"no {package} from PyPI")
	return path


def test_python(runner):
	"""h5py has a library of its own, of another version, and closes by counting down."""
	command = [python("h5py"), "-c", PYTHON]
	native, run = runner.native(command, timeout=120), runner.traced(command)
	assert run.status == native.status == 0, run.stderr
	assert run.stdout == native.stdout
	moved = [(event.name, event.args["object_path"], event.args["size_sum"]) for event in hdf5(run)
		 if event.name in ("H5Dread", "H5Dwrite", "H5Aread", "H5Awrite")]
	assert moved == [("H5Dwrite", "/x", 8000), ("H5Dwrite", "/g/h/c", 40), ("H5Dwrite", "/g/h/c", 2400),
			 ("H5Awrite", "/x", 8), ("H5Dread", "/x", 8000), ("H5Dread", "/g/h/c", 800), ("H5Dread", "/x", 4000)]
	assert {event.path for event in hdf5(run)} == {run.path("a.h5")}
	outer = above(run)
	for event in run.events:
		if event.cat == "POSIX" and event.path == run.path("a.h5") and event.name != "stat":
			assert any(one.cat == "HDF5" for one in outer[id(event)]), event


BOTH = """
import h5py, netCDF4, numpy
one, two = h5py.File("one.h5", "w"), netCDF4.Dataset("two.nc", "w")
a = one.create_dataset("a", data=numpy.arange(10.0))
two.createDimension("x", 7)
b = two.createVariable("b", "i4", ("x",))
b[:] = numpy.arange(7, dtype="i4")
a[2:4] = 1
two.close()
one.close()
"""


def test_two_libraries(runner):
	"""Python's packages bring libraries of their own: the same identifiers stand for different things."""
	run = runner.traced([python("netCDF4"), "-c", BOTH])
	assert run.status == 0, run.stderr
	found = [(event.name, os.path.basename(event.path), event.args["object_path"], event.args["size_sum"])
		 for event in hdf5(run) if event.name == "H5Dwrite"]
	assert found == [("H5Dwrite", "one.h5", "/a", 80), ("H5Dwrite", "two.nc", "/b", 28), ("H5Dwrite", "one.h5", "/a", 16)]


SEVERAL = """
import ctypes, glob, os, h5py
lib = ctypes.CDLL(next(path for path in glob.glob(os.path.join(os.path.dirname(h5py.__file__), "..", "h5py.libs", "libhdf5-*"))))
ids = ctypes.c_int64
file = h5py.File("s.h5", "w")
one = file.create_dataset("one", (10,), dtype="i4")
two = file.create_dataset("two", (4, 5), dtype="f8")
sets = (ids * 2)(one.id.id, two.id.id)
types = (ids * 2)(h5py.h5t.NATIVE_INT32.id, h5py.h5t.NATIVE_DOUBLE.id)
spaces = (ids * 2)(0, 0)
data = (ctypes.create_string_buffer(40), ctypes.create_string_buffer(160))
buffers = (ctypes.c_void_p * 2)(*(ctypes.addressof(one) for one in data))
for call in (lib.H5Dwrite_multi, lib.H5Dread_multi):
	call.argtypes = [ctypes.c_size_t, *[ctypes.c_void_p] * 4, ids, ctypes.c_void_p]
	assert call(2, sets, types, spaces, spaces, 0, buffers) == 0
file.close()
"""


def test_several_datasets_in_one_call(runner):
	"""Functions that came after 1.10."""
	run = runner.traced([python("h5py"), "-c", SEVERAL])
	if b"H5Dwrite_multi" in run.stderr:
		pytest.skip("the library is older")
	assert run.status == 0, run.stderr
	found = [event for event in hdf5(run) if event.name.endswith("_multi")]
	assert [(event.name, event.args["count"], event.args["size_sum"], event.path) for event in found] == \
		[(name, 2, 200, run.path("s.h5")) for name in ("H5Dwrite_multi", "H5Dread_multi")]
