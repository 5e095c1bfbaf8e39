"""The streams of the C library, by hooks: what a program did with them, each byte counted once."""

import collections
import contextlib
import os
import shutil
import subprocess

import pytest

from lib.hooked import (HERE, WRITES, bytes_of, consistent, kernel_bytes, matrix, moved, same_calls, seen, some, told)
from lib.run import EXTRA, exit_line_agrees, same_outside
from lib.straced import agrees, multisets, ordinary_files, strace

FORMS = ("gcc.pie.O2", "gcc.static.O2", "musl.static.O2", "gcc.static-pie.O2")


@contextlib.contextmanager
def standard_files(cwd, text=b""):
	"""Regular files of the directory as standard streams."""
	with open(f"{cwd}/in", "wb") as file:
		file.write(text)
	with open(f"{cwd}/in", "rb") as one, open(f"{cwd}/out", "wb") as two, open(f"{cwd}/err", "wb") as three:
		yield one, two, three


def with_files(runner, args, options=(), *, native=False, text=b"", err=False):
	"""Runs with such files, stderr among them if `err`: dftrace-run's own words come there as well."""
	cwd = runner.fresh("native" if native else "traced")
	with standard_files(cwd, text) as files:
		more = {"cwd": cwd, "stdin": files[0], "stdout": files[1]}
		if err:
			more["stderr"] = files[2]
		run = runner.native(args, **more) if native else runner.traced(args, options, **more)
	with open(f"{cwd}/out", "rb") as file:
		run.text = file.read()
	if err:
		with open(f"{cwd}/err", "rb") as file:
			run.stderr = file.read()
	return run


def calls_of(run):
	"""The program's calls: what it does with the file that it tells in is not of interest."""
	return seen(event for event in run.events if event.path != run.path("said"))


# --- every function of the table ---------------------------------------------

@pytest.mark.parametrize("form", matrix())
def test_every_call(runner, form):
	args = [form.build("stdio_calls")]
	run = with_files(runner, args, text=b"ab 12 13\n", err=True)
	assert run.status == 0, run.stderr
	if form.nameless:
		nameless(run)
		return
	expected = told(run, form, args[0])
	assert len(expected) > 80
	same_calls(expected, calls_of(run))
	consistent(run)
	assert {event.cat for event in run.below() if event.path != run.path("said")
		and event.name in ("read", "write", "lseek")} == {"SYSCALL"}
	assert not any(trace.lost() for trace in run.traces), run.stderr


def nameless(run):
	"""No function is named in it: the system calls are all there, and it is said what is not, and why."""
	assert not [event for event in run.events if event.cat != "POSIX"]
	assert run.trace.lost().get("unhooked:stdio"), run.trace.properties
	assert b"no symbols" in run.stderr, run.stderr
	for name in ("a.dat", "b.dat", "w.dat"):
		path = run.path(name)
		with open(path, "rb"):
			assert run.of("open", path), name
	assert bytes_of(run)[run.path("b.dat")] == (9, 0)


@pytest.mark.parametrize("form", some(*FORMS))
def test_same_outside(both, form):
	args = [form.build("stdio_calls")]
	native = with_files(both, args, native=True, text=b"ab 12 13\n")
	run = with_files(both, args, text=b"ab 12 13\n")
	same_outside(native, run)
	exit_line_agrees(run)


@pytest.mark.parametrize("form", some(*FORMS))
def test_system_calls_inside_agree_with_strace(runner, form):
	"""Hooks neither lose nor make system calls."""
	path = form.build("stdio_calls")
	agrees(runner, [path], ["-e", "!stdio"], descriptors=True)
	theirs, ours = agrees_inside(runner, [path])
	assert not theirs - ours and not ours - theirs, (theirs - ours, ours - theirs)


def agrees_inside(runner, args):
	"""The multisets of system calls as strace and the trace with hooks have them."""
	left = strace(runner, args)
	with ordinary_files(runner) as files:
		run = runner.traced(args, stdin=files[0], stdout=files[1], stderr=files[2])
	run.traces  # noqa: B018
	for trace in run.traces:
		trace.all = [event for event in trace.all if event.cat in ("POSIX", "SYSCALL")]
	return multisets(left, run)


# --- each byte once ----------------------------------------------------------

@pytest.mark.parametrize("form", some(*FORMS))
def test_bytes_are_counted_once(runner, form):
	run = runner.traced([form.build("stdio_streams"), "threads", "4", "60"])
	assert run.status == 0, run.stderr
	with open(run.path("said"), encoding="utf-8") as file:
		expected = moved(file.read(), run.cwd)
	found = bytes_of(run)
	assert {path: found[path] for path in expected} == expected
	for path in expected:
		assert kernel_bytes(run, path) == os.path.getsize(path)
	consistent(run)


@pytest.mark.parametrize("form", some("gcc.pie.O2", "gcc.static.O2"))
@pytest.mark.parametrize("threads, calls", [(16, 60), pytest.param(64, 200, marks=pytest.mark.full)])
def test_many_threads(runner, form, threads, calls):
	run = runner.traced([form.build("stdio_streams"), "threads", str(threads), str(calls)], timeout=600)
	assert run.status == 0, run.stderr
	with open(run.path("said"), encoding="utf-8") as file:
		expected = moved(file.read(), run.cwd)
	found = bytes_of(run)
	assert {path: found[path] for path in expected} == expected
	assert len(run.of("fwrite", run.path("shared"))) == threads * calls
	assert not run.trace.lost()
	exit_line_agrees(run)


# --- where streams come from -------------------------------------------------

@pytest.mark.parametrize("form", some(*FORMS))
@pytest.mark.parametrize("case", ["again", "edges", "full"])
def test_streams(runner, form, case):
	args = [form.build("stdio_streams"), case]
	run = runner.traced(args)
	assert run.status == 0, run.stderr
	same_calls(told(run, form, args[0]), calls_of(run))
	consistent(run)


@pytest.mark.parametrize("form", some(*FORMS))
def test_streams_without_a_name(runner, form):
	"""Memory, pipes and children: no events unless asked for, and the children's own calls are theirs."""
	args = [form.build("stdio_streams"), "nameless"]
	run = runner.traced(args)
	assert run.status == 0, run.stderr
	mine = run.traces[0] if len(run.traces) == 1 else next(
		trace for trace in run.traces if trace.exec_name.startswith("stdio_streams"))
	assert not [event for event in mine.events if event.cat == "STDIO"
		    and event.name not in ("popen", "pclose")], mine.events
	assert sum(event.ret for event in run.of("write", run.path("to"))) == 9
	more = runner.traced(args, ["-e", "+%ipc"])
	found = [event.name for event in more.events if event.cat == "STDIO" and event.pid == mine.pid
		 or event.cat == "STDIO"]
	assert found.count("fgets") >= 2 and found.count("fputs") >= 2, found


@pytest.mark.parametrize("form", some(*FORMS))
def test_streams_upon_streams(runner, form):
	"""A stream that is no file writes to one that is: its bytes are counted, and once."""
	run = runner.traced([form.build("stdio_streams"), "cookie"])
	assert run.status == 0, run.stderr
	with open(run.path("said"), encoding="utf-8") as file:
		expected = moved(file.read(), run.cwd)
	found = bytes_of(run)
	assert {path: found.get(path) for path in expected} == expected


@pytest.mark.parametrize("form", some(*FORMS))
def test_tmpfile(runner, form):
	run = runner.traced([form.build("stdio_streams"), "tmpfile"], env={"TMPDIR": "."})
	names = [event.name for event in sorted(run.events, key=lambda event: event.id) if event.cat == "STDIO"]
	for name in ("tmpfile", "fputs", "rewind", "fgets", "fclose"):
		assert names.count(name) == 1, names
	paths = {event.path for event in run.events if event.cat == "STDIO" and event.name != "tmpfile"}
	assert len(paths) == 1 and None not in paths
	consistent(run)


def test_names_of_files(runner):
	form = some("gcc.pie.O2")[0].values[0]
	run = runner.traced([form.build("stdio_streams"), "names"])
	found = collections.Counter(event.path for event in run.of("fputs"))
	assert found == {run.path(name): 1 for name in
			 ("a b", '"q"', "back\\slash", "ä", "new\nline", "tab\there")}


@pytest.mark.parametrize("form", some(*FORMS))
@pytest.mark.parametrize("target", ["file", "pipe", "null"])
def test_standard_output(runner, form, target):
	"""A regular file from outside is recorded, a pipe is not, and is counted."""
	args = [form.build("stdio_streams"), "exit", "return"]
	if target == "file":
		run = with_files(runner, args)
		assert run.text == b"some text"
		same_calls(told(run, form, args[0]), calls_of(run))
		return
	with open(os.devnull, "wb") as null:
		run = runner.traced(args, stdout=null if target == "null" else subprocess.PIPE)
	calls = [call for call in told(run, form, args[0]) if call.path != run.path("out")]
	same_calls(calls, calls_of(run))
	assert run.trace.skipped()[target] >= 1


@pytest.mark.parametrize("form", some(*FORMS))
def test_path_is_the_text_of_the_open(runner, form):
	"""As for system calls: a symbolic link's name stays."""
	args = [form.build("stdio_streams"), "exit", "return"]
	run = runner.traced(args, setup=lambda cwd: os.symlink("target", os.path.join(cwd, "a")))
	same_calls([call for call in told(run, form, args[0]) if call.path != run.path("out")], calls_of(run))
	assert kernel_bytes(run, run.path("a")) == 18 and not kernel_bytes(run, run.path("target"))


@pytest.mark.parametrize("options", [[], ["--no-stdio"]], ids=" ".join)
def test_devices_opened_by_a_path(runner, options):
	"""/dev/null from outside is left out, one that the program opens is not."""
	form, = some("gcc.pie.O2")
	run = runner.traced([form.values[0].build("stdio_streams"), "exit", "return"], options,
			    setup=lambda cwd: os.symlink("/dev/null", os.path.join(cwd, "a")))
	assert kernel_bytes(run, run.path("a")) == 18
	assert bytes_of(run)[run.path("a")] == (18, 0)


# --- the end -----------------------------------------------------------------

@pytest.mark.parametrize("form", some(*FORMS))
@pytest.mark.parametrize("how", ["return", "exit", "atexit", "flush", "close", "_exit", "quick", "abort"])
def test_end(runner, form, how):
	"""What buffers hold is written by whatever way it is, and nobody counts it twice."""
	args = [form.build("stdio_streams"), "exit", how]
	native = with_files(runner, args, native=True)
	run = with_files(runner, args)
	assert run.status == native.status
	assert run.text == native.text
	expected = [call for call in told(run, form, args[0])]
	found = [call for call in calls_of(run) if call.name not in ("fflush", "fcloseall")
		 and (how != "close" or call.name != "fclose")]
	same_calls(expected, found)
	for event in run.below():
		if event.name == "write" and event.path != run.path("said"):
			assert event.cat == "SYSCALL", event
	for name in ("a", "b"):
		assert os.path.getsize(run.path(name)) == os.path.getsize(native.path(name))
		assert kernel_bytes(run, run.path(name)) == os.path.getsize(run.path(name))
	consistent(run)


@pytest.mark.parametrize("form", some(*FORMS))
def test_fork(both, form):
	args = [form.build("stdio_streams"), "fork", "3"]
	native, run = both.native(args), both.traced(args)
	same_outside(native, run)
	assert len(run.traces) == 4
	puts = collections.Counter(event.pid for event in run.of("fputs"))
	assert sorted(puts.values()) == [1, 1, 1, 1]
	written = [event for event in run.events if event.name in WRITES and event.path == run.path("a")]
	assert [event.cat for event in written] == ["SYSCALL"] * 4
	assert sum(event.ret for event in written) == os.path.getsize(run.path("a"))
	consistent(run)


# --- what is recorded --------------------------------------------------------

@pytest.mark.parametrize("form", some(*FORMS))
@pytest.mark.parametrize("options", [["-e", "!stdio"], ["--no-stdio"]], ids=" ".join)
def test_without_hooks(runner, form, options):
	"""All is POSIX, and the program's code in memory is what the files have."""
	run = runner.traced([form.build("hooks_trap"), "text"], options)
	assert run.status == 0, run.stderr
	found = [line.split("\t") for line in run.stdout.decode().splitlines()]
	assert found and all(fields[1] == "0" for fields in found), found
	assert {event.cat for event in run.events} == {"POSIX"}
	assert not run.trace.lost() and not run.notes


@pytest.mark.parametrize("form", some("gcc.pie.O2", "gcc.static.O2"))
def test_environment_switches_off(runner, form):
	run = runner.traced([form.build("hooks_trap"), "text"], env={"DFTRACER_DISABLE_STDIO": "1"})
	assert run.status == 0, run.stderr
	assert all(line.split("\t")[1] == "0" for line in run.stdout.decode().splitlines())
	assert {event.cat for event in run.events} == {"POSIX"}


@pytest.mark.parametrize("form", some("gcc.pie.O2", "gcc.static.O2"))
def test_hooks_are_breakpoints(runner, form):
	"""The check of the check above: with hooks the code differs, by what is said of it only."""
	run = runner.traced([form.build("hooks_trap"), "text"])
	assert run.status == 0, run.stderr
	differ = sum(int(line.split("\t")[1]) for line in run.stdout.decode().splitlines())
	assert 10 < differ < 2000


@pytest.mark.parametrize("options, expected", [
	(["-e", "stdio"], {"STDIO"}), (["-e", "!posix"], {"STDIO"}),
	(["-e", "posix"], {"POSIX"}), (["-e", "stdio,write"], {"STDIO", "SYSCALL", "POSIX"})],
	ids=lambda value: " ".join(value))
def test_layers(runner, options, expected):
	form = some("gcc.pie.O2")[0].values[0]
	run = runner.traced([form.build("stdio_streams"), "again"], options)
	assert run.status == 0, run.stderr
	assert {event.cat for event in run.below()} - {"POSIX"} == expected - {"POSIX"}
	if options[1] in ("!posix", "stdio"):
		assert not [event for event in run.events if event.cat != "STDIO"]


@pytest.mark.parametrize("item", ["fputs", "fopen,fclose"])
def test_single_calls(runner, item):
	form = some("gcc.pie.O2")[0].values[0]
	run = runner.traced([form.build("stdio_streams"), "again"], ["-e", item])
	names = {event.name for event in run.events if event.cat == "STDIO"}
	assert names == set(item.split(","))


@pytest.mark.parametrize("form", some("gcc.pie.O2", "gcc.static.O2"))
def test_data_dir(runner, form):
	"""By path, as for system calls; what is left out is counted."""
	args = [form.build("stdio_streams"), "again"]
	whole = runner.traced(args)
	run = runner.traced(args, ["-d", "d"])
	paths = {event.path for event in run.events if event.cat == "STDIO"}
	assert paths == {run.path("d/e")}
	mine = [event for event in whole.events if event.cat == "STDIO" and event.path == whole.path("d/e")]
	assert len([event for event in run.events if event.cat == "STDIO"]) == len(mine)
	assert run.trace.skipped()["datadir"] > 0
	assert not [event for event in run.events if event.path in (run.path("a"), run.path("b"), run.path("c"))]


@pytest.mark.parametrize("options", [["--format", "v2"], ["--paths", "given"], ["--no-compress"],
				     ["--names", "kernel"]], ids=" ".join)
def test_formats(runner, options):
	form = some("gcc.pie.O2")[0].values[0]
	run = runner.traced([form.build("stdio_streams"), "again"], options)
	assert run.status == 0, run.stderr
	names = collections.Counter(event.name for event in run.events if event.cat == "STDIO")
	assert names["fputs"] == 4 and names["fopen"] == 3 and names["freopen"] == 2


def test_census_when_asked(runner):
	"""-v says how many functions are hooked, of how many."""
	form = some("gcc.static.O2")[0].values[0]
	run = runner.traced([form.build("stdio_calls")], ["-v"], stdin=subprocess.DEVNULL)
	assert b"hooks " in run.stderr and b" of " in run.stderr, run.stderr


@pytest.mark.parametrize("capture", ["stops", "recorder"])
def test_limit(runner, capture):
	"""A hot function that moves bytes is named, and none of its calls is left out. What does not stop is not hot."""
	form = some("gcc.pie.O2")[0].values[0]
	options = ["--capture", capture, "--hook-limit", "50"]
	run = runner.traced([form.build("stdio_streams"), "threads", "1", "20000"], options)
	assert run.status == 0, run.stderr
	stops = capture == "stops" or "--no-seccomp" in EXTRA
	assert (b"hot: fwrite, 40000 calls" in run.stderr) == stops, run.stderr
	assert not run.trace.lost(), run.trace.lost()
	names = collections.Counter(event.name for event in run.events if event.cat == "STDIO")
	assert names["fwrite"] == 40000
	with open(run.path("said"), encoding="utf-8") as file:
		for path, (written, _) in moved(file.read(), run.cwd).items():
			assert kernel_bytes(run, path) == written


# --- programs of other people ------------------------------------------------

def lines(cwd, name="lines", count=3000):
	"""m4 takes 160 stops for one."""
	with open(os.path.join(cwd, name), "w", encoding="ascii") as file:
		for number in range(count):
			file.write(f"{number * 7919 % 10007} some words {number}\n")


REAL = {
	"sort": ["sort", "-n", "lines", "-o", "sorted"],
	"sort-out": ["sort", "lines"],
	"grep": ["grep", "-c", "7", "lines"],
	"grep-out": ["grep", "99", "lines"],
	"sed": ["sed", "s/words/things/;w copy", "lines"],
	"gzip": ["sh", "-c", "gzip -kn lines && gzip -dc lines.gz | cksum"],
	"wc": ["wc", "lines"],
	"awk": ["awk", "{ s += $1; print $2 > \"second\" } END { print s }", "lines"],
	"sqlite3": ["sqlite3", "db", "create table t(a, b, c, d); .mode list", ".separator ' '", ".import lines t",
		    "select count(*), sum(a) from t;"],
	"python3": ["/usr/bin/python3", "-c", "import os, ctypes\n"
		    "open('made', 'w').write('x' * 10000)\nprint(len(open('made').read()))\n"
		    "libc = ctypes.CDLL(None)\nlibc.fopen.restype = ctypes.c_void_p\n"
		    "f = ctypes.c_void_p(libc.fopen(b'by-c', b'w'))\nlibc.fputs(b'text', f)\nlibc.fclose(f)"],
	"perl": ["perl", "-e", 'open(F, ">made"); print F "x$_\n" for 1 .. 1000; close F; print -s "made", "\n"'],
	"bash": ["bash", "-c", "for i in 1 2 3; do echo $i >> made; read x < made; done; cat made | wc -c"],
	"tar": ["tar", "--mtime=@0", "-cf", "made.tar", "lines"],
	"diff": ["diff", "lines", "/dev/null", "-q"],
	"find": ["find", ".", "-type", "f", "-size", "+1"],
	"ls": ["ls", "-a"],
	"m4": ["m4", "some"],
	"bc": ["bc", "-q", "/dev/null"],
}


@pytest.mark.parametrize("name", sorted(REAL))
def test_real_programs(runner, name):
	args = REAL[name]
	if not shutil.which(args[0]):
		pytest.skip(f"no {args[0]}")
	if name == "tar":
		args = [*args]
	native = with_files_of(runner, args, native=True)
	run = with_files_of(runner, args)
	assert run.status == native.status, run.stderr
	assert run.text == native.text
	assert run.program_stderr == native.stderr
	for entry in os.listdir(native.cwd):
		if entry in ("made.tar", "db", "lines.gz"):
			assert os.path.getsize(run.path(entry)) == os.path.getsize(native.path(entry))
			continue
		with open(native.path(entry), "rb") as one, open(run.path(entry), "rb") as two:
			assert one.read() == two.read(), entry
	consistent(run)
	for path, size in sizes(run).items():
		assert kernel_bytes(run, path) == size, path


def sizes(run):
	"""The files that were made, as far as they were written once and in whole."""
	return {run.path(name): os.path.getsize(run.path(name)) for name in os.listdir(run.cwd)
		if name in ("sorted", "made", "copy", "second", "by-c", "out")}


def with_files_of(runner, args, *, native=False):
	cwd = runner.fresh("native" if native else "traced")
	lines(cwd)
	lines(cwd, "some", 300)
	with open(os.path.join(cwd, "out"), "wb") as out:
		if native:
			run = runner.native(args, cwd=cwd, stdout=out)
		else:
			run = runner.traced(args, cwd=cwd, stdout=out)
	with open(os.path.join(cwd, "out"), "rb") as file:
		run.text = file.read()
	return run


def test_a_program_that_uses_streams_says_so(runner):
	"""grep and sort go through stdio with their output."""
	run = with_files_of(runner, REAL["sort"])
	found = [event for event in run.events if event.cat == "STDIO" and event.path == run.path("sorted")]
	assert sum(event.args.get("size_sum", 0) for event in found) == os.path.getsize(run.path("sorted"))


def test_python_calls_streams_through_ctypes(runner):
	run = with_files_of(runner, REAL["python3"])
	names = [event.name for event in run.events if event.cat == "STDIO" and event.path == run.path("by-c")]
	assert names == ["fopen", "fputs", "fclose"]
	assert {event.cat for event in run.of("write", run.path("made"))} == {"POSIX"}


@pytest.mark.parametrize("form", some("gcc.pie.O2", "gcc.static.O2", "gcc.static-pie.O2"))
def test_cxx_streams_are_system_calls(runner, form):
	"""iostreams go through no function of stdio.h for files."""
	run = runner.traced([form.build("hooks_cxx"), "streams"])
	assert run.status == 0, run.stderr
	expected = moved(run.stdout.decode(), run.cwd)
	found = bytes_of(run)
	assert {path: found[path] for path in expected} == expected
	assert {event.cat for event in run.below() if event.name in ("read", "write", "writev")} == {"POSIX"}


@pytest.mark.parametrize("form", some("gcc.pie.O1", "gcc.static.O1"))
def test_fortran_units_are_system_calls(runner, form):
	run = runner.traced([form.build("hooks_fortran")])
	assert run.status == 0, run.stderr
	path = run.path("fortran.txt")
	assert {event.cat for event in run.events if event.path == path} == {"POSIX"}
	assert kernel_bytes(run, path) == os.path.getsize(path)


@pytest.fixture(scope="session")
def other_runtimes(tmp_path_factory):
	"""A class of Java and a program of Go."""
	top = str(tmp_path_factory.mktemp("runtimes"))
	made = {}
	if shutil.which("javac"):
		subprocess.run(["javac", "-d", top, os.path.join(HERE, "JavaIo.java")], check=True)
		made["java"] = ["java", "-Xint", "-XX:+UseSerialGC", "-cp", top, "JavaIo"]
	if shutil.which("go"):
		out = os.path.join(top, "go_io")
		subprocess.run(["go", "build", "-o", out, os.path.join(HERE, "go_io.go")], check=True, env={
			**os.environ, "CGO_ENABLED": "0", "GOCACHE": os.path.join(top, "cache"), "GO111MODULE": "off"})
		made["go"] = [out]
	return made


@pytest.mark.parametrize("name", ["java", "go"])
def test_other_runtimes(runner, other_runtimes, name):
	if name not in other_runtimes:
		pytest.skip(f"no {name}")
	args = [*other_runtimes[name], "data"]
	more = {"setup": lambda cwd: os.mkdir(os.path.join(cwd, "data")), "timeout": 240}
	native, run = runner.native(args, **more), runner.traced(args, **more)
	assert run.status == native.status, run.stderr
	assert run.stdout == native.stdout
	consistent(run)


def says_unhooked(run):
	said = b"has no symbols" in run.stderr
	assert said == any("unhooked:stdio" in trace.lost() for trace in run.traces), run.stderr
	return said


def test_go_has_no_streams(runner, other_runtimes):
	"""Nothing is missing of a Go program's files, whether it has its symbols or not."""
	if "go" not in other_runtimes:
		pytest.skip("no go")
	path, = other_runtimes["go"]
	subprocess.run(["strip", "-o", path + ".strip", path], check=True)
	for one in (path, path + ".strip"):
		run = runner.traced([one, "data"], setup=lambda cwd: os.mkdir(os.path.join(cwd, "data")))
		assert run.stdout and not says_unhooked(run), run.stderr


@pytest.mark.parametrize("strip", [False, True], ids=["symbols", "stripped"])
def test_without_a_library_there_are_no_streams(runner, strip):
	out = os.path.join(runner.fresh("none"), "alone")
	subprocess.run(["gcc", "-O1", "-static", "-nostdlib", "-ffreestanding", "-fno-stack-protector", "-o", out,
			*(["-s"] if strip else []), os.path.join(HERE, "alone.c")], check=True)
	run = runner.traced([out])
	assert run.status == 3 and run.stdout == b"alone\n" and not says_unhooked(run), run.stderr


@pytest.mark.parametrize("form", some("gcc.static.O2.strip", "gcc.static-pie.O2.strip", "musl.static.O2.strip",
				      "gcc.static.O2", "gcc.pie.O2.strip"))
def test_lost_symbols_are_said(runner, form):
	run = runner.traced([form.build("hooks_ends"), "tail"])
	assert run.status == 0 and says_unhooked(run) == form.nameless, run.stderr
