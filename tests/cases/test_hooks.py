"""Functions hooked by name (-x): each call is seen to begin and to end, and the program sees nothing."""

import collections
import os
import re
import shutil
import signal
import subprocess
import time

import pytest

from lib.hooked import (Func, consistent, functions, hooked, libc, matrix, same_functions, seen, signed, some)
from lib.run import EXTRA, PROGRAMS, exit_line_agrees, program, same_outside
from lib.trace import Trace

EVERY = ["-x", "hooked_*"]
FORMS = ("gcc.pie.O2", "gcc.static.O2", "gcc.no-pie.O0", "musl.static.O2")
TWO = ("gcc.pie.O2", "gcc.static.O2")


def prototype(name):
	form, = some(name)
	return form.values[0]


def traced(runner, form, name, case, options=(), **more):
	run = runner.traced([form.build(name), *case.split()], [*EVERY, *options], **more)
	assert b": CHECK" not in run.stderr and run.status != 99, run.stderr
	return run


# --- how calls end -----------------------------------------------------------

ENDS = ("recursion", "tail", "longjmp", "callback", "switch", "siglongjmp", "return", "arguments", "exit",
	"pthread_exit", "thread_dies", "killed", "coroutines", "cancel", "clone")


@pytest.mark.parametrize("form", matrix(stripped=False))
@pytest.mark.parametrize("case", ENDS)
def test_ends(runner, form, case, monkeypatch):
	if case == "coroutines":
		# Several calls of one thread are open at once, none inside another.
		monkeypatch.setattr(Trace, "_nesting", lambda trace: None)
	if form.musl and case in ("coroutines", "thread_dies"):
		pytest.skip("musl has no contexts, and waits for threads that end without it")
	native = runner.native([form.build("hooks_ends"), case])
	run = traced(runner, form, "hooks_ends", case)
	same_outside(native, run)
	same_functions(run)
	if case != "coroutines":
		consistent(run)
	assert not any(trace.lost() for trace in run.traces), run.stderr


@pytest.mark.parametrize("form", some(*TWO))
@pytest.mark.parametrize("case", ("recursion", "tail", "longjmp", "switch", "signals", "fork", "clone"))
def test_without_emulation(runner, form, case):
	"""All that breakpoints displace is executed elsewhere."""
	native = runner.native([form.build("hooks_ends"), case])
	run = traced(runner, form, "hooks_ends", case, ["--no-emulation"])
	assert run.status == native.status
	if case != "fork":
		same_functions(run)
	assert not any(trace.lost() for trace in run.traces), run.stderr


LABELS = some(*(f"gcc.{link}.{level}" for link in ("pie", "no-pie") for level in ("O1", "O2", "Os")), "gcc.static.O1", "clang.pie.O2",
	      "clang.no-pie.Os")


@pytest.mark.parametrize("form", LABELS)
def test_labels(runner, form):
	"""Jumps through more tables than one, and to what stands in memory: every way out is known."""
	native = runner.native([form.build("hooks_labels"), "40"])
	run = traced(runner, form, "hooks_labels", "40", ["--capture", "stops"])
	same_outside(native, run)
	same_functions(run)


def func_events(run):
	return sorted((event for event in run.events if event.cat == "FUNC"), key=lambda event: event.id)


@pytest.mark.parametrize("form", some(*FORMS))
def test_recursion_nests(runner, form):
	run = traced(runner, form, "hooks_ends", "recursion")
	events = func_events(run)
	assert collections.Counter(event.args["level"] for event in events) == {n: 20 for n in range(1, 51)}
	for event in events:
		depth = signed(event.args["a0"])
		assert event.args["level"] == 51 - depth
		assert event.ret == depth * (depth + 1) // 2


@pytest.mark.parametrize("form", some(*FORMS))
def test_arguments(runner, form):
	run = traced(runner, form, "hooks_ends", "arguments")
	one, two = func_events(run)
	assert [signed(one.args[f"a{n}"]) for n in range(6)] == [1, -2, 3, 1 << 40, 5, -6]
	assert [signed(two.args[f"a{n}"]) for n in range(6)] == \
		[-1, 0, (1 << 63) - 1, -(1 << 63), 0xffffffff, 11]
	assert list(one.args)[-7:] == ["a0", "a1", "a2", "a3", "a4", "a5", "ret"]


@pytest.mark.parametrize("form", some(*FORMS))
def test_what_is_inside(runner, form):
	"""System calls keep their category inside FUNC, those of streams are inside the streams."""
	run = traced(runner, form, "hooks_ends", "inside")
	same_functions(run)
	outer, = func_events(run)
	write, = run.of("write", run.path("other"))
	assert (write.cat, write.args["p_idx"], write.args["level"]) == ("POSIX", outer.id, 2)
	calls = [event for event in run.events if event.cat == "STDIO" and event.path == run.path("stream")]
	assert [(event.name, event.args["p_idx"], event.args["level"]) for event in
		sorted(calls, key=lambda event: event.id)] == \
		[(name, outer.id, 2) for name in ("fopen", "fputs", "fclose")]
	for event in run.events:
		if event.cat == "SYSCALL" and event.path == run.path("stream"):
			assert event.args["level"] == 3 and event.args["p_idx"] in {call.id for call in calls}


@pytest.mark.parametrize("form", some(*FORMS))
def test_signals(runner, form):
	"""Handlers on a stack of their own make the same calls as what they interrupt."""
	run = traced(runner, form, "hooks_ends", "signals")
	same_functions(run)
	handled = int(re.search(rb"^handlers\t(\d+)$", run.stdout, re.MULTILINE)[1])
	assert handled > 0
	assert len([event for event in run.events if event.cat == "STDIO"
		    and event.name in ("fputc", "putc")]) == handled
	assert os.path.getsize(run.path("handlers")) == handled
	assert not run.trace.lost()


@pytest.mark.parametrize("form", some(*FORMS))
def test_fork(runner, form):
	"""A child has its parent's hooks; what it calls is its own."""
	run = traced(runner, form, "hooks_ends", "fork")
	pid = next(trace.pid for trace in run.traces if trace.start.args["ppid"] not in
		   {trace.pid for trace in run.traces})
	assert hooked(run, pid) == functions(run.stdout.decode())
	children = {event.args["child"] for event in run.of("fork")}
	assert len(children) == 5
	for child in children:
		assert hooked(run, child)["hooked_fact"] == Func(5, 0, 14), child


@pytest.mark.parametrize("form", some(*FORMS))
def test_vfork(runner, form):
	"""The child works in its parent's memory."""
	run = traced(runner, form, "hooks_ends", "vfork")
	same_functions(run)
	pid = max(run.traces, key=lambda trace: len(trace.events)).pid
	assert hooked(run, pid)["hooked_second"].done == 5
	assert len({event.pid for event in run.events if event.name == "hooked_second"}) == 6


@pytest.mark.parametrize("form", some(*FORMS))
def test_exec(runner, form):
	"""The call that an exec ends is cut, and the next image has its own hooks."""
	run = traced(runner, form, "hooks_ends", "exec")
	assert run.status == 0
	assert hooked(run) == functions(run.stdout.decode())
	assert len(run.of("exec")) == 1


# --- functions that are chosen at run time --------------------------------------

def copies(run):
	return [tuple(map(int, line.split("\t")[1:])) for line in run.stdout.decode().splitlines()
		if line.startswith("copy\t")]


CHOSEN = ("gcc.static.O2", "gcc.static-pie.O2", "gcc.pie.O2", "gcc.no-pie.O0", "clang.static-pie.O1", "clang.pie.O1")


@pytest.mark.parametrize("form", some(*CHOSEN))
@pytest.mark.parametrize("now", [False, True], ids=["lazy", "now"])
def test_chosen_functions(runner, form, now):
	"""What an IFUNC's resolver chose is hooked under the IFUNC's name before the first call: that of a constructor
	here. The resolver and what it did not choose are no calls."""
	args = [form.build("hooks_ifunc")]
	env = {"LD_BIND_NOW": "1" if now else None}
	run = runner.traced(args, [*EVERY, "-x", "memcpy"], env=env)
	assert run.status == 0 and not run.notes, run.stderr
	assert hooked(run)["hooked_chosen"] == functions(run.stdout.decode())["hooked_chosen"]
	assert names(run) == {"hooked_chosen", "memcpy"}
	found = collections.Counter((signed(event.args["a0"]), signed(event.args["a1"]), event.args["a2"], event.ret)
				    for event in run.events if event.name == "memcpy")
	for to, source, length in copies(run):
		assert found[(to, source, length, to)] == 1, (to, source, length)
	assert re.search(rb"hooks (\d+) of \1\b", run.stderr), run.stderr
	assert not any(trace.lost() for trace in run.traces), run.stderr


def test_chosen_later(runner):
	"""By dlsym, in each process by itself: other processes had the file before, or have it at the same time."""
	path, library = prototype("gcc.pie.O2").build("hooks_ifunc"), program("hooks_lib.so")
	run = runner.traced(["sh", "-c", f"{path} {library}; {path} {library}"], EVERY)
	assert run.status == 0, run.stderr
	for name, processes in (("hooked_chosen", 2), ("hooked_by_library", 4)):
		calls = [event for event in run.events if event.name == name]
		once = functions(run.stdout.decode())[name]
		assert len(calls) == processes * once.done and len({event.pid for event in calls}) == processes
		assert sum(event.ret for event in calls) == processes * once.sum
	assert not any(trace.lost() for trace in run.traces), run.stderr


def test_chosen_in_no_file(runner):
	"""The kernel's own clock is code that no breakpoint can be written to."""
	run = runner.traced([prototype("gcc.pie.O2").build("hooks_ifunc")], ["-x", "time", "-v"])
	assert run.status == 0, run.stderr
	if names(run) != {"time"}:
		assert not names(run) and b"refused: time: what was chosen is in no file" in run.stderr, run.stderr
		assert run.trace.lost() == {"unverified": 1}


def test_resolvers_by_name(runner):
	"""Asked for by its own name it is a function like any other."""
	run = runner.traced([prototype("gcc.static.O2").build("hooks_ifunc")], ["-x", "choose", "-x", "hooked_chosen"])
	assert run.status == 0, run.stderr
	assert names(run) == {"choose", "hooked_chosen"}
	assert hooked(run)["choose"].done == 1
	assert hooked(run)["hooked_chosen"] == functions(run.stdout.decode())["hooked_chosen"]


# --- registers, flags, stack --------------------------------------------------

@pytest.mark.parametrize("form", some("gcc.pie.O2", "gcc.static.O0", "gcc.static-pie.O2", "clang.no-pie.O2"))
@pytest.mark.parametrize("options", [[], ["--no-proc-mem"], ["--no-syscall-info"], ["--no-emulation"]], ids=" ".join)
def test_shapes(both, form, options):
	"""Every way to begin and to end; all registers, flags and the stack as without hooks."""
	args = [form.build("hooks_shapes"), "40"]
	native = both.native(args)
	run = both.traced(args, ["-x", "shape_*", *options])
	same_outside(native, run)
	expected, found = functions(native.stdout.decode()), hooked(run)
	entries = {line.split("\t")[1]: int(line.split()[-1]) for line in native.stdout.decode().splitlines()
		   if line.startswith("state")}
	for name, func in expected.items():
		if name in ("shape_loop", "shape_back"):
			# Each turn begins again where the call does.
			assert name not in found or func.done <= sum(found[name][:2]) <= entries[name], name
		elif name in found:
			assert found[name] == func, name
	missing = set(expected) - set(found) - {"shape_loop", "shape_back"}
	assert len(missing) <= 3, missing
	if missing:
		assert run.trace.lost() or re.search(rb"hooks (\d+) of (?!\1)", run.stderr), (missing, run.stderr)


# --- traps -------------------------------------------------------------------

@pytest.mark.parametrize("form", some(*TWO))
@pytest.mark.parametrize("how", ["default", "ignored", "blocked", "handled", "pending"])
def test_trap_state(both, form, how):
	"""SIGTRAP's disposition, mask and pending state as without hooks, before and after hooked calls."""
	args = [form.build("hooks_trap"), "state", how]
	native, run = both.native(args), both.traced(args, EVERY)
	same_outside(native, run)
	assert hooked(run)["hooked_plain"].done == 20


@pytest.mark.parametrize("form", some(*TWO))
def test_own_traps(both, form):
	args = [form.build("hooks_trap"), "own"]
	native, run = both.native(args), both.traced(args, EVERY)
	same_outside(native, run)
	assert hooked(run)["hooked_plain"].done >= 60


@pytest.mark.parametrize("form", some(*TWO))
@pytest.mark.parametrize("how", ["int3", "raise", "kill", "ignored", "child"])
def test_dies_of_a_trap(both, form, how):
	args = [form.build("hooks_trap"), "dies", how]
	native, run = both.native(args), both.traced(args, EVERY)
	same_outside(native, run)


# --- load --------------------------------------------------------------------

def loaded(runner, args, **more):
	run = runner.traced([program("hooks_load"), *map(str, args)], EVERY, timeout=400, **more)
	assert run.status == 0, run.stderr
	same_functions(run)
	assert not any(trace.lost() for trace in run.traces), run.stderr
	exit_line_agrees(run)
	return run


LIBRARIES = [os.path.join(PROGRAMS, name) for name in ("hooks_lib.so", "hooks_other.so")]
LONG = pytest.mark.full


@pytest.mark.parametrize("threads, duration", [(8, 500), (64, 2000), pytest.param(64, 10000, marks=LONG)])
def test_threads(runner, threads, duration):
	run = loaded(runner, ["plain", threads, duration])
	assert len({event.tid for event in run.events if event.cat == "FUNC"}) > threads // 2


@pytest.mark.parametrize("threads, duration", [(4, 500), (16, 1500), pytest.param(64, 10000, marks=LONG)])
def test_forks_under_load(runner, threads, duration):
	run = loaded(runner, ["fork", threads, duration])
	assert len(run.traces) > 10


@pytest.mark.parametrize("threads, duration", [(1, 500), (8, 1500), pytest.param(64, 10000, marks=LONG)])
def test_libraries_under_load(runner, threads, duration):
	"""Two libraries in turn, at the same address."""
	run = loaded(runner, ["dlopen", threads, duration, *LIBRARIES])
	size = os.path.getsize(run.path("library.txt"))
	puts = [event for event in run.events if event.cat == "STDIO" and event.path == run.path("library.txt")
		and event.name == "fputs"]
	assert len(puts) == size // 13


@pytest.mark.parametrize("threads, duration", [(8, 500), pytest.param(64, 10000, marks=LONG)])
def test_signals_under_load(runner, threads, duration):
	loaded(runner, ["signals", threads, duration])


@pytest.mark.parametrize("threads", [4, pytest.param(32, marks=LONG)])
def test_stopped_and_continued(runner, threads):
	"""Job control in the middle of hooked calls."""
	run = runner.start([program("hooks_load"), "plain", str(threads), "1500"], EVERY)
	runner.tracer_of(run)
	for _ in range(20):
		time.sleep(0.03)
		os.kill(run.process.pid, signal.SIGSTOP)
		time.sleep(0.01)
		os.kill(run.process.pid, signal.SIGCONT)
	runner.finish(run)
	assert run.status == 0, run.stderr
	same_functions(run)


@pytest.mark.parametrize("time_to_live", [0.05, 0.2, 0.4])
def test_killed_under_load(runner, time_to_live):
	"""The calls that were open are cut, and no other."""
	run = runner.start([program("hooks_load"), "plain", "8", "10000"], EVERY)
	runner.tracer_of(run)
	time.sleep(time_to_live)
	os.kill(run.process.pid, signal.SIGKILL)
	runner.finish(run)
	assert run.status == -signal.SIGKILL
	found = hooked(run).get("hooked_work", Func(0, 0, 0))
	assert found.cut <= 9
	assert run.trace.end.args["signal"] == signal.SIGKILL


# --- patterns ----------------------------------------------------------------

def names(run):
	return {event.name for event in run.events if event.cat == "FUNC"}


@pytest.mark.parametrize("options, expected", [
	(["-x", "hooked_first"], {"hooked_first"}),
	(["-x", "hooked_[fs]*"], {"hooked_first", "hooked_second"}),
	(["-x", "/^hooked_(first|plain)$/"], {"hooked_first", "hooked_plain"}),
	(["-x", "/ed_s/"], {"hooked_second"}),
	(["-x", "hooked_first", "-x", "hooked_second"], {"hooked_first", "hooked_second"}),
	(["-x", "hooked_first", "-x", "hooked_f*"], {"hooked_first"}),
	(["-x", "hooked_plain@hooks_ends*"], {"hooked_plain"}),
	(["-x", "hooked_plain@libc*", "-x", "hooked_first"], {"hooked_first"}),
	(["--hook", "hooked_through"], {"hooked_through"})], ids=lambda value: " ".join(value))
def test_patterns(runner, options, expected):
	run = runner.traced([prototype("gcc.pie.O2").build("hooks_ends"), "tail"], options)
	assert run.status == 0, run.stderr
	assert names(run) == expected
	told = functions(run.stdout.decode())
	same_functions(run, {name: told[name] for name in expected})


def test_hook_file(runner):
	path = os.path.join(runner.fresh("file"), "hooks")
	with open(path, "w", encoding="ascii") as file:
		file.write("# those of the tail\n\nhooked_first\n  \n/^hooked_sec/\nhooked_plain@*ends*\n")
	run = runner.traced([prototype("gcc.pie.O2").build("hooks_ends"), "tail"], ["--hook-file", path])
	assert names(run) == {"hooked_first", "hooked_second", "hooked_plain"}


def test_pattern_that_matches_nothing(runner):
	args = [prototype("gcc.pie.O2").build("hooks_ends"), "tail"]
	run = runner.traced(args, ["-x", "no_such_*", "-x", "hooked_first"])
	assert run.status == 0 and names(run) == {"hooked_first"}
	assert b"-x no_such_* matched" in run.stderr and b"-x hooked_first matched" not in run.stderr, run.stderr
	run = runner.traced(args, ["-x", "hooked_first"])
	assert not run.notes, run.notes


@pytest.mark.parametrize("pattern", ["/(/", "/unclosed", "", "@libc*"])
def test_bad_patterns(runner, pattern):
	run = runner.traced(["true"], ["-x", pattern])
	assert run.status == 125 and b"-x" in run.stderr or b"--hook" in run.stderr, run.stderr


def test_bad_hook_files(runner):
	run = runner.traced(["true"], ["--hook-file", "/none/such"])
	assert run.status == 125 and b"/none/such" in run.stderr


def test_max_hooks(runner):
	"""What is beyond is refused, and counted."""
	path = prototype("gcc.pie.O2").build("hooks_ends")
	symbols = subprocess.run(["nm", path], check=True, capture_output=True).stdout
	count = len(re.findall(rb" T hooked_\w+$", symbols, re.MULTILINE))
	run = runner.traced([path, "tail"], [*EVERY, "--max-hooks", "2"])
	assert run.status == 0
	assert len(names(run)) <= 2
	said = re.search(rb"(\d+) more beyond --max-hooks", run.stderr)
	assert said and int(said[1]) == count - 2, run.stderr
	whole = runner.traced([path, "tail"], [*EVERY, "--max-hooks", str(count)])
	assert b"--max-hooks" not in whole.stderr, whole.stderr
	same_functions(whole)


@pytest.mark.parametrize("form", some(*TWO))
def test_everything_of_a_program(runner, form):
	"""All functions of all files at once."""
	args = [form.build("hooks_ends"), "tail"]
	native = runner.native(args)
	run = runner.traced(args, ["-x", "*"], timeout=300)
	assert run.status == 0, run.stderr
	assert run.stdout == native.stdout
	told = functions(native.stdout.decode())
	found = hooked(run)
	assert found["hooked_first"] == told["hooked_first"] and found["hooked_plain"] == told["hooked_plain"]


@pytest.mark.parametrize("form", some(*TWO))
def test_limit(runner, form):
	"""It is about calls that stop."""
	run = traced(runner, form, "hooks_ends", "recursion", ["--capture", "stops", "--hook-limit", "100"])
	assert run.status == 0
	assert b"hooked_fact" in run.stderr, run.stderr
	assert len(func_events(run)) < 1000


@pytest.mark.parametrize("form", some("gcc.pie.O2", "gcc.static.O2"))
def test_without_stdio(runner, form):
	run = traced(runner, form, "hooks_ends", "inside", ["--no-stdio"])
	same_functions(run)
	assert {event.cat for event in run.events} == {"FUNC", "POSIX"}


def test_library_by_name(runner):
	"""A function of the C library, in this file only."""
	run = runner.traced([prototype("gcc.pie.O2").build("hooks_ends"), "inside"],
			    ["-x", f"fputs@{os.path.basename(libc())}", "--no-stdio"])
	assert names(run) <= {"fputs", "_IO_fputs"} and names(run), run.stderr


@pytest.mark.parametrize("options", [[], ["-e", "stdio"]], ids=" ".join)
def test_programs_that_write_code(runner, options):
	"""Memory that becomes executable costs one stop and no more, unless it is a file's that is new. One that is mapped
	as data, where code was, is."""
	times = 2000
	args = [program("hooks_jit"), str(times), LIBRARIES[0]]
	native = runner.native(args)
	run = runner.traced(args, [*EVERY, "-v", *options])
	assert run.status == 0 and run.stdout == native.stdout, run.stderr
	same_functions(run)
	stops = int(re.search(rb" (\d+) stops", run.stderr)[1])
	assert times < stops < times * 1.3 or "--no-seccomp" in EXTRA, run.stderr


CAPTURES = [["--capture", "stops"], ["--capture", "stops", "--no-emulation"], ["--capture", "recorder", "--recorder-hits", "2"],
	    # No thread has a ring: all go by the stubs' breakpoints.
	    ["--capture", "recorder", "--recorder-hits", "100000"]]


@pytest.mark.parametrize("what", ["split", "moved", "copied", "reopened", "replaced"])
@pytest.mark.parametrize("options", CAPTURES, ids=" ".join)
def test_memory_that_becomes_anothers(runner, what, options):
	args = [program("hooks_memory"), what, *LIBRARIES]
	native = runner.native(args)
	assert native.status == 0, native.stderr
	run = runner.traced(args, [*EVERY, *options])
	assert run.status == 0 and run.stdout == native.stdout, run.stderr
	same_functions(run)
	consistent(run)


@pytest.mark.parametrize("options", CAPTURES, ids=" ".join)
def test_code_that_is_mapped_shared(runner, options):
	"""A breakpoint or a jump there would be written to the file."""
	args = [program("hooks_shared"), "200", LIBRARIES[0], "copy.so"]
	run = runner.traced(args, [*EVERY, *options])
	assert run.status == 0, run.stderr
	with open(LIBRARIES[0], "rb") as library, open(run.path("copy.so"), "rb") as copy:
		assert library.read() == copy.read()
	# What is called there cannot be seen, but it is said, and what is called from there is.
	assert hooked(run)["hooked_own"] == functions(run.stdout.decode())["hooked_own"]
	assert run.trace.lost()["unverified"] >= 1
	assert sum(event.name == "pread" and event.path == run.path("copy.so") for event in run.events) == 200
	consistent(run)


# --- other languages ---------------------------------------------------------

@pytest.mark.parametrize("form", matrix(compilers=("gcc", "clang"), stripped=False))
def test_exceptions(runner, form):
	"""They leave hooked functions, pass through them and are caught in them."""
	args = [form.build("hooks_cxx"), "throw"]
	native = runner.native(args)
	assert native.status == 0
	run = runner.traced(args, ["-x", "solver::*"])
	assert run.status == 0 and run.stdout == native.stdout, run.stderr
	found = {plain(name): func for name, func in hooked(run).items()}
	for name, func in functions(native.stdout.decode()).items():
		assert found[name] == func, name
	consistent(run)


def plain(name):
	"""A C++ name as in the source."""
	if not name.startswith("_Z"):
		return name
	return subprocess.run(["c++filt", name], check=True, capture_output=True).stdout.decode().strip()


@pytest.mark.parametrize("pattern, expected", [
	("solver::step(long)", {"solver::step(long)"}), ("solver::step*", {"solver::step(long)"}),
	("*advance(char*", {"solver::grid::advance(char const*)"}),
	("_ZN6solver4stepEl", {"solver::step(long)"}), ("_ZN6solver4grid7advance*", {
		"solver::grid::advance(char const*)", "solver::grid::advance(long, solver::guard)"}),
	("/solver::(step|grid)/", {"solver::step(long)", "solver::grid::advance(char const*)",
				   "solver::grid::advance(long, solver::guard)"})])
def test_names_of_cxx(runner, pattern, expected):
	run = runner.traced([prototype("gcc.pie.O2").build("hooks_cxx"), "throw"], ["-x", pattern])
	assert run.status == 0, run.stderr
	assert {plain(name) for name in names(run)} == expected


@pytest.mark.parametrize("form", some("gcc.pie.O1", "gcc.static.O1", "gcc.static-pie.O2"))
@pytest.mark.parametrize("pattern, name, count", [("solver_", "solver_", 50),
						  ("__grid_MOD_*", "__grid_MOD_advance", 50)])
def test_names_of_fortran(runner, form, pattern, name, count):
	args = [form.build("hooks_fortran")]
	native = runner.native(args)
	run = runner.traced(args, ["-x", pattern])
	same_outside(native, run)
	assert names(run) == {name}
	assert hooked(run)[name].done == count


def test_stripped_programs_are_said(runner):
	"""No name is left: no hook, and a sentence."""
	out = os.path.join(runner.fresh("strip"), "ends")
	subprocess.run(["strip", "-o", out, prototype("gcc.static.O2").build("hooks_ends")], check=True)
	run = runner.traced([out, "tail"], EVERY)
	assert run.status == 0 and not func_events(run)
	assert f"(-x hooked_* matched no function; {out} has no symbols)".encode() in run.stderr, run.stderr
	run = runner.traced(["true"], ["-x", "_start", "-x", "no_such@*libc*"])
	assert b"-x _start matched no function; " in run.stderr and b"/true has no symbols)" in run.stderr, run.stderr


def test_mistaken_patterns_are_not_explained(runner):
	"""What has symbols has another reason: the pattern."""
	run = runner.traced([prototype("gcc.static.O2").build("hooks_ends"), "tail"], ["-x", "no_such"])
	assert b"(-x no_such matched no function)" in run.stderr, run.stderr


def test_separate_debug_files(runner):
	"""Names come from where they were put."""
	top = runner.fresh("debug")
	out, names_file = os.path.join(top, "ends"), os.path.join(top, "ends.debug")
	source = prototype("gcc.static.O2").build("hooks_ends")
	if not shutil.which("objcopy"):
		pytest.skip("no objcopy")
	subprocess.run(["objcopy", "--only-keep-debug", source, names_file], check=True)
	subprocess.run(["objcopy", "--strip-all", f"--add-gnu-debuglink={names_file}", source, out], check=True)
	run = runner.traced([out, "tail"], EVERY)
	same_functions(run)
	os.mkdir(os.path.join(top, "elsewhere"))
	os.rename(names_file, os.path.join(top, "elsewhere", "ends.debug"))
	run = runner.traced([out, "tail"], [*EVERY, "--symbols", os.path.join(top, "elsewhere")])
	same_functions(run)


# --- what others do ----------------------------------------------------------

def test_code_of_children_is_their_own(runner):
	"""exec of another program with the same patterns; its parent goes on."""
	path = prototype("gcc.pie.O2").build("hooks_ends")
	other = prototype("gcc.static.O2").build("hooks_ends")
	run = runner.traced(["sh", "-c", f"{path} tail; {other} recursion; {path} callback"], EVERY)
	assert run.status == 0, run.stderr
	found = collections.Counter()
	for line in run.stdout.decode().splitlines():
		_, name, done, cut, _ = line.split("\t")
		found[name] += int(done) + int(cut)
	assert {name: sum(func[:2]) for name, func in hooked(run).items()} == found


def test_core_pattern_is_not_ours(runner):
	"""A program that dies of a signal within a hooked call dies of the same one."""
	for case, status in (("killed", -9), ("exit", 5)):
		run = traced(runner, prototype("gcc.pie.O2"), "hooks_ends", case)
		assert run.status == status


def test_streams_and_functions_together(runner):
	form = prototype("gcc.pie.O2")
	run = runner.traced([form.build("stdio_streams"), "again"], ["-x", "case_*", "-x", "begin", "-x", "put"])
	assert run.status == 0, run.stderr
	assert len(seen(run.events)) > 10
	consistent(run)
