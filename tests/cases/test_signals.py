"""Signals and interrupted calls: one event for one call, as the program saw it."""

import os
import signal
import time

import pytest

from lib.oracle import values
from lib.run import is_alive, owned, proc, program, same_outside, tracers, wait_until

MODES = ("eintr", "restart", "jump", "nested", "exit", "die")
WAYS = [[], ["--no-seccomp"], ["--no-syscall-info"]]


def one_read(run):
	reads = [event for event in run.of("read", run.path("fifo"))]
	assert len(reads) == 1, reads
	return reads[0]


@pytest.mark.parametrize("options", WAYS, ids=" ".join)
@pytest.mark.parametrize("mode", MODES)
def test_interrupted(both, mode, options):
	args = [program("interrupted"), mode]
	native, run = both.native(args), both.traced(args, options)
	same_outside(native, run, files=False)
	read = one_read(run)
	said = values(run.stdout)
	# The handler comes after a fifth of a second at the earliest.
	assert read.dur > 150000
	if mode == "eintr":
		assert (read.ret, read.errno) == (-1, 4) and said["errno"] == "4"
	elif mode in ("restart", "nested"):
		assert (read.ret, read.errno) == (5, None) and said["read"] == "5"
		assert read.dur > 400000, "from the first start of the call"
	else:
		assert read.args["cut"] == 1 and read.ret is None
	if mode == "nested":
		inner, = run.of("access", run.path("in-handler"))
		assert inner.args["p_idx"] == read.id and inner.args["level"] == 2
	if mode not in ("exit", "die"):
		behind, = run.of("access", run.path("behind"))
		assert behind.args["p_idx"] == -1 and behind.args["level"] == 1


def test_many_signals_while_it_works(both):
	"""A storm of signals neither loses one nor disturbs a call."""
	code = ("import os, signal\nn = 0\n"
		"def f(*_):\n    global n\n    n += 1\n    os.access('in', 0)\n"
		"signal.signal(signal.SIGUSR1, f)\n"
		"fd = os.open('data', os.O_RDWR | os.O_CREAT)\n"
		"for i in range(300):\n    os.kill(os.getpid(), signal.SIGUSR1)\n    os.pwrite(fd, b'x' * i, i)\n"
		"print(n)\n")
	run = both.traced(["/usr/bin/python3", "-S", "-c", code])
	assert run.stdout == b"300\n"
	assert len(run.of("access", run.path("in"))) == 300
	assert [event.ret for event in run.of("pwrite")] == list(range(300))
	assert len(run.of("kill")) == 300


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_signal_to_the_program(both, number):
	"""Whoever started dftrace-run signals the pid that it knows; the program must get it."""
	run = both.start(["sh", "-c", f"trap 'echo got; exit 8' {int(number)}; echo ready; echo > f; "
			  "while :; do sleep 0.05; done"])
	assert run.process.stdout.readline() == b"ready\n"
	os.kill(run.process.pid, number)
	both.finish(run)
	assert run.status == 8 and run.stdout == b"got\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_that_kills(both, number):
	run = both.start(["sh", "-c", f"exec {program('progress')} data 0 1000"])
	path = run.path("data")
	wait_until(lambda: os.path.exists(path) and os.path.getsize(path) > 80, what="calls")
	os.kill(run.process.pid, number)
	both.finish(run)
	assert run.status == -number
	assert [t.end.args.get("signal") for t in run.traces if t.exec_name == "progress"] == [number]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_signal_to_the_group(both, number):
	"""A batch system signals the whole group: the trace is completed all the same."""
	run = both.start(["sh", "-c", "trap 'echo got; exit 6' TERM HUP INT; echo ready; echo > f; "
			  "while :; do sleep 0.05; done"], start_new_session=True)
	assert run.process.stdout.readline() == b"ready\n"
	os.killpg(run.process.pid, number)
	both.finish(run)
	assert run.status == 6 and run.stdout == b"got\n"
	assert run.exit_line
	assert [t.end.args for t in run.traces if t.end.args.get("exit_status") == 6]


def test_stop_and_continue(both):
	"""A stopped program is stopped, and goes on when it is continued."""
	run = both.start([program("progress"), "data", "0", "1000"])
	path = run.path("data")
	wait_until(lambda: os.path.exists(path) and os.path.getsize(path) > 80, what="calls")
	pid = next(p for p in owned(run.token) if proc(p, "comm").startswith(b"progress"))
	for _ in range(3):
		os.kill(pid, signal.SIGSTOP)
		# ps(1) shows T for a job's stop and t for a tracer's.
		wait_until(lambda: proc(pid, "stat").rpartition(b") ")[2][:1] in (b"T", b"t"), what="stop")
		time.sleep(0.1)
		size = os.path.getsize(path)
		time.sleep(0.2)
		assert os.path.getsize(path) == size
		os.kill(pid, signal.SIGCONT)
		wait_until(lambda: os.path.getsize(path) > size, what="more calls")  # noqa: B023
	os.kill(pid, signal.SIGTERM)
	both.finish(run)
	assert run.status == -signal.SIGTERM


def test_tracer_takes_no_signal_from_the_session(runner):
	"""A hangup that reaches everybody in the program's session does not end the tracer. It is there in a process
	group of its own, and the scheduler weighs it with the program."""
	run = runner.start(["sh", "-c", "trap '' HUP; echo ready; echo a > a; sleep 0.5; echo b > b"],
			   ["--tracer", "detached"], start_new_session=True)
	assert run.process.stdout.readline() == b"ready\n"
	tracer = runner.tracer_of(run)
	assert os.getsid(tracer) == run.process.pid and os.getpgid(tracer) == tracer
	assert proc(tracer, "autogroup") == proc(run.process.pid, "autogroup")
	os.killpg(run.process.pid, signal.SIGHUP)
	os.killpg(tracer, signal.SIGHUP)
	assert is_alive(tracer)
	runner.finish(run)
	assert run.status == 0 and run.of("open", run.path("b"))
	assert not tracers(run.token)


@pytest.mark.parametrize("options", [[], ["--no-seccomp"]], ids=" ".join)
@pytest.mark.parametrize("mode", ["quiet", "handled"])
def test_ignored_signals_end_no_call(both, mode, options):
	"""Under a tracer the kernel wakes a process for signals that it ignores."""
	args = [program("ignored"), mode]
	same_outside(both.native(args), both.traced(args, options), files=False)
