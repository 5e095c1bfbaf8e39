"""Very many threads, leaders that end first, threads that are killed alone, ends in the middle of calls."""

import signal

import pytest

from lib.hostile import hostile, pids, same, same_words, times  # noqa: F401
from lib.run import exit_line_agrees

WAYS = [[], ["--no-seccomp"], ["--no-syscall-info"]]


@pytest.mark.parametrize("count", [2000, pytest.param(10000, marks=pytest.mark.full)])
def test_threads_that_come_and_go(runner, count):
	run = same(runner, hostile("threads", "churn", count), timeout=240)
	offsets = sorted(event.args["offset"] for event in run.of("pwrite"))
	assert offsets == [8 * i for i in range(count)]
	assert not run.trace.lost()
	exit_line_agrees(run)
	# Numbers come again after a while, but not soon.
	assert len({event.tid for event in run.of("pwrite")}) == count


@pytest.mark.parametrize("case,status", [("exit-group", 6), ("exit-thread", 7), ("die", -signal.SIGTERM)])
def test_end_of_many_in_calls(both, times, case, status):
	"""200 threads are in calls of all sorts when the program ends."""
	run = same(both, hostile("threads", case, 200), files=False)
	assert run.status == status
	end = run.trace.end.args
	assert end.get("exit_status", -end.get("signal", 0)) == status
	# Each reader of the pipe was in a call that had no end.
	assert not run.trace.lost()
	exit_line_agrees(run)


@pytest.mark.parametrize("options", WAYS, ids=" ".join)
@pytest.mark.parametrize("number", [0, signal.SIGTERM])
def test_leader_first(both, times, number, options):
	run = same(both, hostile("threads", "leader-first", int(number)), options)
	assert run.status == (-number or 9)
	end = run.trace.end.args
	assert end.get("exit_status", -end.get("signal", 0)) == run.status
	same_words(run)


def test_relay(both, times):
	"""The last of several threads ends the program, long after its leader."""
	run = same(both, hostile("threads", "relay", 8))
	assert run.status == 0
	same_words(run)
	last, = run.of("write", run.path("last"))
	assert last.tid != last.pid
	exit_line_agrees(run)


@pytest.mark.parametrize("options", WAYS, ids=" ".join)
@pytest.mark.parametrize("way", [0, 1, 2], ids=["untraced-call", "traced-call", "leader"])
def test_thread_killed_by_its_filter(both, times, way, options):
	run = same(both, hostile("threads", "killed-thread", way), options)
	same_words(run)
	assert run.status == (9 if way == 2 else 0)


@pytest.mark.parametrize("way", [0, 1], ids=["untraced-call", "traced-call"])
def test_process_killed_by_its_filter(both, times, way):
	run = same(both, hostile("threads", "killed-process", way))
	assert run.status == -signal.SIGSYS
	assert run.trace.end.args["signal"] == signal.SIGSYS
	same_words(run)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=lambda number: number.name)
def test_vfork_parent_is_told_to_end(both, times, number):
	"""Its child holds it in the kernel, whatever comes."""
	run = same(both, hostile("threads", "vfork-parent", int(number)))
	same_words(run, made=False)
	parent = next(iter(pids(run, "made")))
	ends = [trace.end.args for trace in run.traces if trace.pid == parent]
	assert [end.get("signal") for end in ends] == [number]
