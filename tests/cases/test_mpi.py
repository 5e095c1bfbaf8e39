"""MPI: each call with its bytes, file and communicator is what the program says, on both MPIs, in C and Fortran."""

import glob
import os
import re
import subprocess

import pytest

from lib.mpi import HERE, agree, calls, forms, launch, rank_of, words
from lib.run import BUILD, EXTRA, ROOT, TRACER

EVERY = forms("mpich.dyn", "openmpi.dyn", "mpich.static", "mpich.static-pie", "mpich.no-pie", "openmpi.no-pie")
MESSAGES = ["-e", "mpi,mpi:p2p,mpi:collective,mpi:neighbour,mpi:rma"]


def by_rank(run, ranks):
	traces = {rank_of(trace): trace for trace in run.traces if calls(trace)}
	assert sorted(traces) == list(range(ranks))
	return traces


@pytest.mark.parametrize("form", EVERY)
def test_messages(runner, form):
	run = launch(runner, form, 4, [form.build("mpi_messages.c")], MESSAGES)
	assert run.status == 0, run.stderr
	for rank, trace in by_rank(run, 4).items():
		agree(trace, words(run.cwd, rank), run.cwd)
		# One communicator's size was not asked for.
		assert trace.lost() == {"unsized:mpi": 1}


@pytest.mark.parametrize("form", EVERY)
def test_files(runner, form):
	run = launch(runner, form, 3, [form.build("mpi_files.c")], ["-e", "mpi,+MPI_Wait"])
	assert run.status == 0, run.stderr
	for rank, trace in by_rank(run, 3).items():
		agree(trace, words(run.cwd, rank), run.cwd)
		assert not trace.lost()


@pytest.mark.parametrize("form", forms("openmpi.dyn"))
def test_library_that_calls_itself(runner, form):
	"""ROMIO, here inside Open MPI, is made of calls of MPI's public functions: none of them is the program's."""
	run = launch(runner, form, 2, [form.build("mpi_files.c")], ["-e", "mpi:all,!mpi:tool,!MPI_Comm_rank,!MPI_Comm_size,"
			     "!mpi:datatype"], more=["--mca", "io", "romio321"])
	assert run.status == 0, run.stderr
	for rank, trace in by_rank(run, 2).items():
		agree(trace, words(run.cwd, rank), run.cwd)


@pytest.mark.parametrize("interface", ["mpi", "mpif", "f08"])
@pytest.mark.parametrize("form", forms("mpich.dyn", "openmpi.dyn", "mpich.static", "openmpi.no-pie"))
def test_fortran(runner, form, interface):
	flags = {"mpi": [], "mpif": ["-DMPIF"], "f08": ["-DF08"]}[interface]
	run = launch(runner, form, 3, [form.build("mpi_fortran.f90", *flags)], [*MESSAGES, "-e", "+MPI_Wait"])
	assert run.status == 0, run.stderr
	for rank, trace in by_rank(run, 3).items():
		agree(trace, words(run.cwd, rank), run.cwd)
		assert not trace.lost()


def lines(run):
	"""What all ranks have written: in no order."""
	return sorted(run.stdout.splitlines())


@pytest.mark.parametrize("form", forms("mpich.dyn", "openmpi.dyn"))
def test_default_costs_nothing_per_message(runner, form):
	"""No function on the way of a message is hooked: the tracer is not stopped more often for more of them."""
	if any("--no-seccomp" in option for option in (*EXTRA, *runner.options)):
		pytest.skip("every system call stops the program, and waiting for messages is made of them")

	def stops(rounds):
		run = launch(runner, form, 2, [form.build("mpi_ring.c"), str(rounds)], ["-v", "-e", "mpi"])
		assert run.status == 0, run.stderr
		return max(map(int, re.findall(rb"(\d+) stops", run.stderr)))

	assert stops(3000) < stops(10) + 1000
	listed = subprocess.run([TRACER, "--list-hooks"], check=True, capture_output=True, text=True).stdout
	state = {line.split()[2]: line.split()[0] for line in listed.splitlines()}
	assert state["MPI_Send"] == state["MPI_Comm_split"] == state["MPI_Bcast"] == "off"
	assert state["MPI_Init"] == state["MPI_File_write_at_all"] == "recorded"
	assert state["MPI_Type_vector"] == state["MPI_Comm_rank"] == "needed"


@pytest.mark.parametrize("form", forms("mpich.dyn", "openmpi.dyn"))
def test_each_message_is_seen(runner, form):
	run = launch(runner, form, 2, [form.build("mpi_ring.c"), "500"], ["-e", "mpi:p2p"])
	for trace in by_rank(run, 2).values():
		for name in ("MPI_Send", "MPI_Recv"):
			found = calls(trace, [name])
			assert len(found) == 500 and all(e.args["size_sum"] == 1 for e in found)


@pytest.mark.parametrize("options", [[], ["-e", "+mpi:all"]], ids=["default", "all"])
@pytest.mark.parametrize("form", forms("mpich.dyn", "openmpi.dyn"))
def test_launcher_under_one_tracer(runner, form, options):
	args = [form.build("mpi_ring.c"), "20"]
	native = launch(runner, form, 2, args, native=True)
	traced = launch(runner, form, 2, args, options, wrapped=True)
	assert (traced.status, lines(traced)) == (native.status, lines(native))
	ranks = [trace for trace in traced.traces if "rank" in trace.properties]
	assert sorted(rank_of(trace) for trace in ranks) == [0, 1]
	for trace in ranks:
		assert {e.name for e in calls(trace)} >= {"MPI_Init", "MPI_Finalize"}


@pytest.mark.parametrize("form", forms("mpich.dyn", "openmpi.dyn", "mpich.static"))
def test_abort(runner, form):
	args = [form.build("mpi_ring.c"), "20", "abort"]
	native = launch(runner, form, 2, args, native=True)
	traced = launch(runner, form, 2, args, ["-e", "+mpi:all"])
	assert traced.status == native.status == 7
	# Who is killed in MPI_Finalize has been there.
	trace = by_rank(traced, 2)[1]
	abort, = calls(trace, ["MPI_Abort"])
	assert abort.args["cut"] == 1 and abort.args["errorcode"] == 7


@pytest.mark.parametrize("form", forms("mpich.dyn", "openmpi.dyn"))
def test_direct_copies_go_on(runner, form):
	"""Libraries read the memory of other ranks, which a traced process allows as any other."""
	args = [form.build("mpi_direct.c", "-rdynamic")]
	native = launch(runner, form, 2, args, native=True)
	traced = launch(runner, form, 2, args, ["-e", "+mpi:p2p"])
	assert lines(traced) == lines(native)
	if form.mpi == "openmpi":
		assert b"copied 8388608 bytes" in traced.stdout
	assert sum(e.args["size_sum"] for trace in traced.traces for e in calls(trace, ["MPI_Send"])) == 4 << 22


@pytest.mark.parametrize("form", forms("mpich.dyn", "openmpi.dyn"))
def test_profiling_library(runner, form):
	"""What stands in front of MPI's function is the call; MPI's own, which it calls, is not a second one."""
	library = form.build("mpi_profile.c", "-shared", "-fPIC")
	# The tracer is not to have it.
	args = ["env", f"LD_PRELOAD={library}", form.build("mpi_ring.c"), "10"]
	run = launch(runner, form, 2, args, ["-e", "mpi:p2p"])
	assert run.status == 0, run.stderr
	for trace in by_rank(run, 2).values():
		assert len(calls(trace, ["MPI_Send"])) == 10


@pytest.mark.parametrize("form", forms("mpich.static"))
def test_names_are_gone(runner, form):
	"""A static program without symbols runs on, and the trace says what it does not show."""
	args = [form.build("mpi_ring.c", strip=True), "5"]
	native = launch(runner, form, 2, args, native=True)
	traced = launch(runner, form, 2, args)
	assert (traced.status, lines(traced)) == (native.status, lines(native))
	assert b"holds MPI without its symbols" in traced.stderr
	for trace in traced.traces:
		assert trace.lost()["unhooked:mpi"] == 1 and not calls(trace)


def written(trace, name):
	return sum(e.args.get("size_sum", 0) for e in calls(trace) if e.name == name)


def below(trace, names, of):
	"""Bytes of the system calls that MPI's calls of a name have made."""
	outer = {e.id for e in calls(trace, [of])}
	return sum(e.ret for e in trace.events if e.cat == "POSIX" and e.name in names and e.args["p_idx"] in outer)


@pytest.mark.parametrize("form", forms("mpich.dyn", "mpich.static"))
def test_collective_buffering(runner, form):
	"""With it one rank writes what all have; without, each its own, block by block."""
	program = form.build("mpi_hints.c")
	for hint in ("enable", "disable"):
		run = launch(runner, form, 2, [program, "all", "romio_cb_write", hint, "romio_ds_write", "disable"])
		traces = by_rank(run, 2)
		assert [written(traces[r], "MPI_File_write_all") for r in (0, 1)] == [2048, 2048]
		bytes_below = [below(traces[r], ["pwrite", "write"], "MPI_File_write_all") for r in (0, 1)]
		assert bytes_below == ([4096, 0] if hint == "enable" else [2048, 2048])


@pytest.mark.parametrize("form", forms("mpich.dyn", "mpich.static"))
def test_data_sieving(runner, form):
	"""With it a rank reads the others' bytes between its own and writes them again."""
	program = form.build("mpi_hints.c")
	for hint in ("enable", "disable"):
		run = launch(runner, form, 2, [program, "own", "romio_ds_write", hint])
		for trace in by_rank(run, 2).values():
			assert written(trace, "MPI_File_write") == 2048
			bytes_below = below(trace, ["pwrite", "write"], "MPI_File_write")
			assert bytes_below > 4000 if hint == "enable" else bytes_below == 2048


@pytest.mark.parametrize("form", forms("openmpi.dyn"))
def test_bytes_below_open_mpi(runner, form):
	run = launch(runner, form, 2, [form.build("mpi_hints.c"), "own"])
	for trace in by_rank(run, 2).values():
		assert written(trace, "MPI_File_write") == 2048
		assert below(trace, ["pwrite", "pwritev", "write", "writev"], "MPI_File_write") == 2048


@pytest.mark.parametrize("form", forms("mpich.static", "mpich.dyn", "openmpi.dyn"))
def test_example(runner, form):
	"""What the example says of each rank and file, call by call, is in the trace."""
	example = os.path.join(BUILD, "examples", "mpiio." + ("static" if form.static else form.mpi))
	run = launch(runner, form, 4, [example])
	assert run.status == 0, run.stderr
	traces = by_rank(run, 4)
	said = re.findall(r"^rank (\d+) (\w+) (\d+) calls (\d+) bytes (\S+)$", run.stdout.decode(), re.MULTILINE)
	assert len(said) == 16
	for rank, name, count, size, path in said:
		found = [e for e in calls(traces[int(rank)], [name]) if e.path == os.path.normpath(run.path(path))]
		assert (len(found), sum(e.args["size_sum"] for e in found)) == (int(count), int(size))
		# Nothing is above, and all that is below are calls on the same file or none.
		for event in found:
			assert event.args["level"] == 1
			inside = [e for e in traces[int(rank)].events if e.args["p_idx"] == event.id]
			assert all(e.path == event.path for e in inside if e.name in ("pwrite", "pread", "pwritev", "preadv"))
	for path in ("columns.dat", "blocks.dat"):
		assert os.path.getsize(run.path(path)) == 4 * 3 * 4096 * 8
		below_bytes = sum(e.ret for trace in traces.values() for e in trace.events
				  if e.cat == "POSIX" and e.path == run.path(path) and "write" in e.name)
		assert below_bytes == 4 * 3 * 4096 * 8


def python():
	"""A Python with mpi4py, which tests/compat/install makes."""
	path = os.path.join(ROOT, "build", "venv", "mpi", "bin", "python")
	if not os.path.exists(path):
		pytest.skip("no mpi4py: " + (open(os.path.dirname(os.path.dirname(path)) + ".reason", encoding="utf-8").read()
					     if os.path.exists(os.path.dirname(os.path.dirname(path)) + ".reason")
					     else "tests/compat/install has not run"))
	return path


@pytest.mark.parametrize("form", forms("openmpi.dyn", "mpich.dyn"))
def test_python(runner, form, base):
	"""The library comes by dlopen, after the program has begun."""
	env = {}
	if form.mpi == "mpich":
		# The name that the package looks for, which Debian's library does not have.
		library, = glob.glob("/usr/lib/*/libmpich.so.12")
		os.symlink(library, os.path.join(base, "libmpi.so.12"))
		env = {"LD_LIBRARY_PATH": base, "MPI4PY_MPIABI": "mpich"}
	args = [python(), os.path.join(HERE, "mpi_python.py")]
	native = launch(runner, form, 2, args, native=True, env=env)
	traced = launch(runner, form, 2, args, ["-e", "mpi,mpi:p2p,mpi:collective"], env=env)
	assert (traced.status, lines(traced)) == (native.status, lines(native)) and native.status == 0
	for rank, trace in by_rank(traced, 2).items():
		# Where the library has forms for large counts, the package takes them.
		found = {e.name.removesuffix("_c"): e for e in calls(trace)}
		assert found["MPI_Sendrecv"].args["size_sum"] == found["MPI_Allreduce"].args["size_sum"] == 80
		assert found["MPI_Sendrecv"].args["dest"] == 1 - rank
		for name in ("MPI_File_write_at_all", "MPI_File_read_at"):
			assert found[name].args["size_sum"] == 80 and found[name].path == traced.path("python.dat")
		assert not trace.lost()


@pytest.mark.parametrize("form", forms("mpich.dyn", "openmpi.dyn", "mpich.static"))
def test_handles_of_two_languages(runner, form):
	"""What Fortran has opened or C has made is known in the other language, too."""
	program = form.build("mpi_mixed.f90", os.path.join(HERE, "mpi_mixed_c.c"))
	run = launch(runner, form, 1, [program])
	assert run.status == 0, run.stderr
	trace, = run.traces
	said = [(e.name, e.path and os.path.basename(e.path), e.args.get("size_sum")) for e in calls(trace)]
	assert said == [
		("MPI_Init", None, None), ("MPI_File_open", "fortran.dat", None), ("MPI_File_write_at", "fortran.dat", 20),
		("MPI_File_close", "fortran.dat", None), ("MPI_File_open", "c.dat", None),
		("MPI_File_write_at", "c.dat", 144), ("MPI_File_close", "c.dat", None), ("MPI_Finalize", None, None)]
	assert not trace.lost()
