"""Programs that trace, watch or restrict themselves, and that make system calls in unusual ways."""

import os
import re
import shutil
import subprocess

import pytest

from lib.hostile import (hostile, is_root, pids, said_written, same,  # noqa: F401
			 same_words, timed, times, words, written)
from lib.run import EXTRA, TRACER, program

WAYS = [[], ["--no-seccomp"], ["--no-syscall-info"]]


def lost(run, what):
	return sum(trace.lost().get(what, 0) for trace in run.traces)


def test_tracing_itself(both, times):
	"""A program has one tracer: another one is refused, as under any."""
	run = timed(both, hostile("watch", "trace-me"))
	assert run.status == 0, run.stderr
	assert words(run, "traceme") == [["-1 1"]] and words(run, "seize") == [["-1 1"]]
	same_words(run)
	assert b"was refused ptrace: a process has one tracer" in run.stderr


@pytest.mark.parametrize("tool", ["gdb", "strace"])
def test_other_tracers(both, tool):
	"""They fail and say so, as they do under each other."""
	if not shutil.which(tool):
		pytest.skip(f"no {tool}")
	args = {"gdb": ["gdb", "-q", "-batch", "-nx", "-ex", "run", "--args", "true"],
		"strace": ["strace", "-f", "-o", "log", "true"]}[tool]
	under = both.native(["strace", "-f", "-o", "outer", *args])
	run = timed(both, args)
	# strace's words hold pids.
	clean = lambda raw: re.sub(rb"\d+", b"N", raw)  # noqa: E731
	assert run.status == under.status != 0 or tool == "gdb"
	assert clean(run.program_stderr) == clean(under.stderr)
	assert clean(run.stdout) == clean(under.stdout)
	assert b"ermitted" in run.stderr + run.stdout
	assert f"; {args[0]} was refused ptrace".encode() in run.stderr


def test_inner_dftrace_steps_aside(both, times):
	inner = os.path.join(both.fresh("inner"), "t")
	run = timed(both, [TRACER, "-o", inner, "--", *hostile("exec", "in-place")])
	assert run.status == 7
	same_words(run)
	assert not os.listdir(os.path.dirname(inner))
	assert len(run.notes) == 1 and "already" in run.notes[0], run.notes


def test_what_it_sees(both, times):
	"""TracerPid tells, as the manual says; privileges and dumpability are as they were."""
	native, run = both.native(hostile("watch", "look")), timed(both, hostile("watch", "look"))
	assert words(native, "tracer") == [["0"]] and int(words(run, "tracer")[0][0]) > 0
	if is_root():
		assert words(native, "privileges") == words(run, "privileges")


@pytest.mark.parametrize("options", WAYS, ids=" ".join)
@pytest.mark.parametrize("action", [0, 1, 2, 3], ids=["kill", "errno", "trap", "trace"])
def test_own_filter(both, times, action, options):
	"""A filter that allows only what the program does itself: we do nothing in its name."""
	run = same(both, hostile("watch", "own-filter", action), options)
	same_words(run)
	# What it refuses is not seen, unless every call stops.
	every = "--no-seccomp" in [*options, *EXTRA]
	assert lost(run, "own_filter") == (0 if every else 1)
	seen = [(event.ret, event.errno) for event in run.of("mkdir")]
	unmade = {1: [(-1, 38)] if every else [], 3: [(-1, 38)]}
	assert seen == unmade.get(action, seen)


@pytest.mark.parametrize("options", WAYS, ids=" ".join)
def test_strict_mode(both, times, options):
	"""It does not go with our filter, and that is said; without the filter it works."""
	native = both.native(hostile("watch", "strict"))
	run = timed(both, hostile("watch", "strict"), options)
	assert words(native, "strict") == [["0 0"]] and run.status == 0
	refused = "--no-seccomp" not in [*options, *EXTRA]
	assert words(run, "strict") == ([["-1 22"]] if refused else [["0 0"]])
	assert (b"refused seccomp's strict mode" in run.stderr) == refused
	assert written(run) == said_written(run)


@pytest.mark.parametrize("options", [[], ["--no-proc-mem"], ["--no-proc-mem", "--no-vm-readv"]],
			 ids=" ".join)
def test_not_dumpable(both, times, options):
	run = same(both, hostile("watch", "hidden"), options)
	same_words(run, {"../above": "above", "../child": "child"})
	# Who may trace anybody keeps the breakpoints; others have to take them out.
	expected = {} if os.geteuid() == 0 else {"unhooked:stdio": 1}
	assert [trace.lost() for trace in run.traces if trace.lost()] == ([expected] if expected else [])


@pytest.mark.parametrize("options", WAYS, ids=" ".join)
def test_a_32_bit_call(both, times, options):
	"""A 64-bit program that makes 32-bit calls: they work, and are counted."""
	if both.native(hostile("watch", "old-call")).status != 0:
		pytest.skip("this kernel has no 32-bit calls")
	run = same(both, hostile("watch", "old-call"), options)
	assert lost(run, "compat") == 2, [trace.lost() for trace in run.traces]
	found = written(run)
	# The descriptor of the unseen open is resolved all the same.
	assert found == said_written(run) + type(found)({(run.path("by-32-bit"), 5): 1})


@pytest.fixture(scope="module")
def small(tmp_path_factory):
	"""A 32-bit program that writes a file."""
	directory = tmp_path_factory.mktemp("small")
	source = directory / "small.c"
	source.write_text('#include <fcntl.h>\n#include <stdio.h>\n#include <unistd.h>\n'
			  '#include <sys/wait.h>\n'
			  'int main(void)\n{\n\tint fd = open("out", O_WRONLY | O_CREAT, 0644);\n'
			  '\tif (fd < 0 || write(fd, "12345", 5) != 5 || fork() < 0)\n\t\treturn 1;\n'
			  '\twhile (wait(NULL) > 0)\n\t\t;\n\tputs("small");\n\treturn 4;\n}\n')
	built = subprocess.run(["gcc", "-m32", "-static", "-O1", str(source), "-o",
				str(directory / "small")], capture_output=True, check=False)
	if built.returncode != 0:
		pytest.skip("no compiler for 32-bit programs")
	if subprocess.run([str(directory / "small")], capture_output=True, cwd=directory,
			  check=False).returncode != 4:
		pytest.skip("this kernel runs no 32-bit programs")
	return str(directory / "small")


@pytest.mark.parametrize("options", WAYS, ids=" ".join)
def test_a_32_bit_program(both, times, small, options):
	"""It runs as always, what it does is counted as not seen, and what comes after it is seen."""
	script = f"{small}; echo $?; echo > f"
	native, run = both.native(["sh", "-c", script]), timed(both, ["sh", "-c", script], options)
	assert run.status == native.status and run.stdout == native.stdout
	assert run.program_stderr == native.stderr
	# Without an event that is seen it has no file of its own; the exit line counts it all the same.
	assert re.search(r"lost:compat [1-9]", run.stderr.decode()), run.stderr
	assert run.of("open", run.path("f"))
	direct = timed(both, [small], options)
	assert direct.status == 4 and lost(direct, "compat") > 0


@pytest.mark.parametrize("options", [*WAYS, ["-e", "+%time"]], ids=" ".join)
@pytest.mark.parametrize("case", ["vsyscall", "user-dispatch", "no-calls"])
def test_unusual_calls(both, times, case, options):
	run = same(both, hostile("watch", case), options)
	same_words(run)
	# A call that became a signal was not made.
	if case == "user-dispatch":
		assert not [event for event in run.events if event.name == "rmdir"]


@pytest.mark.parametrize("polled", [0, 1], ids=["entered", "polled"])
def test_io_uring(both, times, polled):
	"""Submissions bypass system calls: noticed, counted, said."""
	run = same(both, hostile("watch", "uring", polled))
	if words(run, "refused"):
		pytest.skip("no io_uring here")
	assert lost(run, "io_uring") == (1 if polled else 5)
	assert "lost:io_uring" in run.stderr.decode()
	if not polled:
		calls = run.of("io_uring_enter")
		assert [event.ret for event in calls] == [3, 2]
		assert [event.args["to_submit"] for event in calls] == [3, 2]


def test_fio(both):
	"""Its 16 requests reach the ring, and no other call of its writes the file."""
	args = ["fio", "--name=job", "--filename=data", "--size=1m", "--bs=64k", "--rw=write", "--iodepth=4",
		"--ioengine=io_uring", "--output=said"]
	if both.native(args).status != 0:
		pytest.skip("no io_uring here, or no fio")
	run = timed(both, args)
	assert run.status == 0 and os.path.getsize(run.path("data")) == 1 << 20
	assert lost(run, "io_uring") == 16
	assert not [event for event in run.of("write") if event.path == run.path("data")]
