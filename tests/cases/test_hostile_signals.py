"""Signals that come often, at exec, with values, from timers and terminals, and that kill."""

import os
import signal

import pytest

from lib.hostile import (comparable, hostile, is_root, may, same,  # noqa: F401
			 same_words, times, words)
from lib.run import EXTRA, TRACER, exit_line_agrees

WAYS = [[], ["--no-seccomp"], ["--no-syscall-info"]]
CORES = [signal.SIGQUIT, signal.SIGILL, signal.SIGTRAP, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE,
	 signal.SIGSEGV, signal.SIGXCPU, signal.SIGXFSZ, signal.SIGSYS]


@pytest.mark.parametrize("case", [["ttou"], ["queue", "200"], ["at-exec"], ["parent-death"], ["orphans"],
				  ["trap"]], ids=lambda words: words[0])
def test_as_without_us(both, times, case):
	run = same(both, hostile("signals", *case))
	same_words(run, made=False)
	exit_line_agrees(run)


@pytest.mark.parametrize("options", WAYS, ids=" ".join)
def test_often(runner, times, options):
	"""A timer at 1 kHz neither disturbs the calls nor is it disturbed."""
	run = same(runner, hostile("signals", "timer", 300), options)
	calls = [(event.args["offset"], event.ret) for event in run.of("pwrite", run.path("data"))]
	assert calls == [(i, i + 1) for i in range(300)]
	assert [event.ret for event in run.of("fsync")] == [0] * 6


@pytest.mark.parametrize("options", WAYS, ids=" ".join)
@pytest.mark.parametrize("way", [0, 1, 2, 3], ids=["stop", "handler", "restart", "ignored"])
def test_interrupted_waits(runner, times, way, options):
	"""Which waits go on, which end, and with what."""
	run = same(runner, hostile("signals", "restart", 4 if times and way == 0 else way), options)
	# The trace has one read of the pipe, as the program had.
	assert not any(trace.lost() for trace in run.traces)


@pytest.mark.parametrize("state", ["ignored", "blocked"])
def test_inherited_trap(both, times, state):
	"""SIGTRAP that is ignored or blocked from the start stays so, though it is ours as well."""
	before = {"ignored": "signal.signal(signal.SIGTRAP, signal.SIG_IGN)",
		  "blocked": "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTRAP])"}[state]
	code = f"import os, signal, sys; {before}; os.execv(sys.argv[1], sys.argv[1:])"
	args = ["/usr/bin/python3", "-S", "-c", code, *hostile("signals", "trap-state")]
	run = same(both, args)
	assert run.stdout.startswith(b"trap\tignored 0" if state == "ignored" else b"trap\tdefault 1")
	same_words(run)
	# Also where dftrace-run itself is started so.
	prefix = os.path.join(both.fresh("out"), "t")
	inner = [TRACER, "-o", prefix, *both.options, *EXTRA, "--", *hostile("signals", "trap-state")]
	outer = both.native(["/usr/bin/python3", "-S", "-c", code, *inner])
	both.settle(outer.token)
	assert outer.stdout == run.stdout


def test_flood_of_children(both, times):
	run = same(both, hostile("signals", "flood", 400))
	assert [event.args["offset"] for event in run.of("pwrite", run.path("data"))] == list(range(400))
	assert len(run.of("fork")) == 400
	ends = [event.args["pid"] for event in run.of("wait") if event.ret and event.ret > 0]
	exit_line_agrees(run)
	assert len(ends) == 400


@pytest.mark.skipif(not is_root(), reason="only root may make a pid namespace")
def test_everybody_in_a_namespace(both, times):
	run = same(both, hostile("signals", "kill-all"))
	same_words(run, made=False)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1,
				    signal.SIGUSR2, signal.SIGQUIT, signal.SIGALRM, signal.SIGPIPE,
				    signal.SIGVTALRM, signal.SIGRTMIN])
def test_everybody_and_the_tracer(runner, times, number):
	"""kill(-1) reaches the tracer, too, which must not die of it: the program would with it."""
	wrap = ["unshare", "-fp", "--mount-proc"]
	if not may(*wrap, "true"):
		pytest.skip("no right to make a pid namespace")
	args = hostile("signals", "everybody", int(number))
	native = runner.native([*wrap, "sh", "-c", '"$@"; echo "status\t$?"', "sh", *args])
	assert native.status == 0, native.stderr
	prefix = os.path.join(runner.fresh("out"), "t")
	run = runner.native([*wrap, "sh", "-c", '"$@"; echo "status\t$?"; sleep 0.5', "sh", TRACER, "-o",
			     prefix, *EXTRA, "--", *args])
	run.prefix = prefix
	assert comparable(run) == comparable(native)
	assert run.exit_line, run.stderr
	same_words(run)


@pytest.mark.parametrize("limit", [0, 1], ids=["no-core", "core"])
def test_deaths_that_leave_cores(both, times, limit):
	"""By a sent signal, by a fault, in a thread: same signal, core file or none as natively."""
	args = hostile("signals", "cores", limit)
	run = same(both, args, files=False)
	ended = {trace.pid: trace.end.args.get("signal") for trace in run.traces}
	assert list(ended.values()).count(None) == 1
	assert not any(trace.lost() for trace in run.traces)


@pytest.mark.parametrize("number", CORES, ids=lambda number: number.name)
def test_death_of_the_program(both, times, number):
	run = same(both, hostile("signals", "kill-self", int(number)))
	assert run.status == -number
	assert run.trace.end.args["signal"] == number
	same_words(run)
