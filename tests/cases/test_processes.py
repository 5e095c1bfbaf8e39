"""Processes and threads that come and go in awkward ways, and long runs of them."""

import collections
import os
import signal
import time

import pytest

from lib.run import exit_line_agrees, proc, program, same_outside, tracers

REPEATS = [0, *(pytest.param(n, marks=pytest.mark.full) for n in range(1, 30))]


def races(runner, case, *more, options=(), **how):
	return runner.traced([program("races"), case, *map(str, more)], options, **how)


def written(run):
	"""Bytes by file."""
	found = collections.Counter()
	for event in run.below():
		if event.name == "write":
			found[os.path.relpath(event.path, run.cwd)] += event.ret
	return found


@pytest.mark.parametrize("repeat", REPEATS)
@pytest.mark.parametrize("threads", [0, 8])
def test_exec_from_a_thread(both, threads, repeat):
	"""The new image has the leader's id; the old one's file names it, the other threads' calls are cut."""
	run = races(both, "exec-thread", threads)
	assert run.status == 0, run.stderr
	assert len(run.traces) == 2 and run.traces[0].pid == run.traces[1].pid
	old, new = sorted(run.traces, key=lambda trace: trace.start.ts)
	assert "exec" in old.end.args and new.end.args["exit_status"] == 0
	assert written(run) == {"before1": 11, "after1": 22}
	assert {event.tid for event in new.events} == {new.pid}
	execs = [event for event in old.events if event.name == "exec"]
	assert [event.ret for event in execs] == [0]
	if threads:
		assert len({event.tid for event in old.events}) == threads + 2


@pytest.mark.parametrize("options", [[], ["--no-seccomp"], ["--no-syscall-info"]], ids=" ".join)
def test_exec_chain(both, options):
	run = races(both, "exec-chain", 25, options=options)
	assert run.status == 0, run.stderr
	assert len(run.traces) == 26
	assert written(run) == {f"chain{n}": n + 1 for n in range(26)}
	exit_line_agrees(run)


def test_leader_ends_first(both):
	run = races(both, "leader-gone")
	assert run.status == 6
	assert run.trace.end.args["exit_status"] == 6
	assert written(run) == {"later1": 33}


@pytest.mark.parametrize("options", [[], ["--no-seccomp"], ["--no-syscall-info"]], ids=" ".join)
def test_children_that_ask_not_to_be_traced(both, options):
	run = races(both, "untraced", options=options)
	assert run.status == 0, run.stderr
	assert written(run) == {"clone1": 44, "clone3": 55}


@pytest.mark.parametrize("options", [[], ["--no-seccomp"]], ids=" ".join)
def test_vforks(both, options):
	run = races(both, "vforks", 60, options=options)
	assert run.status == 0, run.stderr
	assert len(run.of("fork")) == 60
	failed = [event for event in run.of("exec", "/none")]
	assert [event.errno for event in failed] == [2] * 30
	exit_line_agrees(run)


@pytest.mark.parametrize("repeat", REPEATS)
@pytest.mark.parametrize("case,status", [("exit-busy", 5), ("killed-busy", -signal.SIGKILL)])
def test_end_while_threads_are_in_calls(both, case, status, repeat):
	run = races(both, case, 8)
	assert run.status == status
	end = run.trace.end.args
	assert end.get("exit_status", -end.get("signal", 0)) == status
	assert len({event.tid for event in run.trace.events}) == 9


@pytest.mark.parametrize("repeat", REPEATS)
@pytest.mark.parametrize("options", [[], ["--no-seccomp"]], ids=" ".join)
def test_storm(both, options, repeat):
	run = races(both, "storm", 120, options=options)
	assert run.status == 0 and run.stdout == b"storm\t120\n", run.stderr
	forks = [event for event in run.of("fork") if event.ret and event.ret > 0]
	assert len(forks) >= 120
	assert not run.traces[0].lost()


def test_forks_from_threads(both):
	run = races(both, "fork-threads", 8)
	assert run.status == 0
	assert written(run) == {f"fork{n * 10 + i}": n + i + 1 for n in range(8) for i in range(10)}
	exit_line_agrees(run)


def test_daemon(both):
	run = races(both, "daemon")
	assert run.status == 0 and run.stdout == b"daemon\tstarted\n"
	assert written(run) == {"daemon1": 66}


def test_own_filter(both):
	"""A program's own seccomp filter works as without us."""
	args = [program("races"), "own-filter"]
	native, run = both.native(args), both.traced(args)
	same_outside(native, run)
	assert written(run)["filtered1"] == 77


@pytest.mark.full
@pytest.mark.parametrize("load", [["--fork", "4"], ["--vfork", "4"], ["--clone", "4"], ["--exec", "2"],
				  ["--pthread", "4"], ["--hdd", "2", "--hdd-bytes", "4m"],
				  ["--dentry", "2"], ["--pipe", "4"], ["--signal", "2"], ["--dup", "2"],
				  ["--filename", "2"], ["--iomix", "2"], ["--aio", "2"], ["--sendfile", "2"]],
			 ids=lambda words: words[0][2:])
def test_soak(runner, load):
	"""Under stress the program passes its own checks, and the tracer's memory stays flat."""
	run = runner.start(["stress-ng", *load, "--timeout", "20s", "--verify", "--temp-path", "."],
			   ["--max-files", "50"])
	tracer = runner.tracer_of(run)
	sizes, deadline = [], time.monotonic() + 18
	while run.process.poll() is None and time.monotonic() < deadline:
		status = proc(tracer, "status").decode()
		for line in status.splitlines():
			if line.startswith("VmRSS:"):
				sizes.append(int(line.split()[1]))
		time.sleep(0.5)
	runner.finish(run, 120)
	if b"skipping the stressor" in run.stdout + run.stderr:
		pytest.skip(f"stress-ng will not: {load[0]}")
	assert run.status == 0, run.stdout[-2000:] + run.stderr[-2000:]
	assert len(run.traces) <= 50 and run.exit_line
	half = len(sizes) // 2
	assert max(sizes[half:]) < max(sizes[:half]) * 1.3 + 8192, sizes


@pytest.mark.full
def test_tracer_leaves_nothing(runner):
	"""After many runs: no process, no file outside the prefix."""
	for _ in range(50):
		run = runner.traced(["sh", "-c", "echo > f & echo > g & wait"])
		assert run.status == 0
		assert not tracers(run.token)
		assert sorted(os.listdir(run.cwd)) == ["f", "g"]
