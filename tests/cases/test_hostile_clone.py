"""Processes that share memory, descriptors or parents; namespaces; numbers that come again."""

import pytest

from lib.hostile import (children, hostile, is_root, may, pids,  # noqa: F401
			 said_written, same, same_words, times, words, written)
from lib.run import exit_line_agrees

WAYS = [[], ["--no-seccomp"], ["--no-syscall-info"]]
needs_root = pytest.mark.skipif(not is_root(), reason="only root may do this")


def nothing_lost(run):
	assert not any(trace.lost() for trace in run.traces), [trace.lost() for trace in run.traces]
	exit_line_agrees(run)


@pytest.mark.parametrize("options", WAYS, ids=" ".join)
@pytest.mark.parametrize("case", ["share-memory", "share-files"])
def test_sharing(both, times, case, options):
	"""A number is the file of the table that it is in, whoever opened it there."""
	run = same(both, hostile("clone", case), options)
	same_words(run)
	nothing_lost(run)


@pytest.mark.parametrize("options", WAYS, ids=" ".join)
def test_untraced(both, times, options):
	"""The child is followed, and the flag stands where the program put it, for parent and child."""
	run = same(both, hostile("clone", "untraced"), options)
	same_words(run)
	nothing_lost(run)


def test_clone_parent(both, times):
	run = same(both, hostile("clone", "parent"))
	same_words(run)
	sibling, parent = map(int, words(run, "sibling")[0][0].split())
	trace, = (trace for trace in run.traces if trace.pid == sibling)
	assert trace.start.args["ppid"] == parent
	nothing_lost(run)


@pytest.mark.parametrize("options", WAYS, ids=" ".join)
def test_thread_leaves_the_table(both, times, options):
	run = same(both, hostile("clone", "leave"), options)
	same_words(run, {"relative": "below/relative"})
	nothing_lost(run)


@needs_root
def test_same_pid_again(both, times):
	"""Each process has its own file and its own events, though all have one number."""
	run = same(both, hostile("clone", "same-pid", 5))
	if words(run, "refused"):
		pytest.skip("no right to choose a pid")
	same_words(run)
	pid = int(words(run, "same")[0][0])
	turns = sorted((t for t in run.traces if t.pid == pid), key=lambda t: t.start.ts)
	assert [turn.end.args["exit_status"] for turn in turns] == [0, 1, 2, 3, 4]
	for number, turn in enumerate(turns):
		assert [event.ret for event in turn.events if event.name == "write"
			and event.path] == [90 + number]
	nothing_lost(run)


@needs_root
@pytest.mark.parametrize("options", WAYS, ids=" ".join)
def test_pid_namespace(both, times, options):
	"""Numbers in the trace are the tracer's; what the calls returned is the program's."""
	run = same(both, hostile("clone", "pid-namespace"), options)
	same_words(run, made=False)
	assert pids(run, "made") <= children(run)
	inner = [event for event in run.of("fork") if event.ret == 2]
	assert len(inner) == 2 and all(event.args["child"] > 2 for event in inner), inner
	pairs = {(event.pid, event.args["child"]) for event in inner}
	for first, second in pairs:
		trace, = (trace for trace in run.traces if trace.pid == second)
		assert trace.start.args["ppid"] == first and trace.end.args["exit_status"] == 4
	nothing_lost(run)


@needs_root
def test_chroot(both, times):
	"""Names are the program's own: under its root."""
	run = same(both, hostile("clone", "chroot"))
	same_words(run, {"in-sub": "/sub/in-sub", "../beside": "/beside"})
	nothing_lost(run)


@needs_root
def test_mount_namespaces(both, times):
	run = same(both, hostile("clone", "mount-namespace"))
	same_words(run)
	nothing_lost(run)


def test_user_namespace(both, times):
	"""What needs root, in a namespace where everybody is."""
	wrap = ["unshare", "-Ur"]
	if not may(*wrap, "true"):
		pytest.skip("no user namespaces")
	for case in ("chroot", "pid-namespace"):
		run = same(both, [*wrap, *hostile("clone", case)])
		# unshare itself writes to /proc.
		said = said_written(run, {"in-sub": "/sub/in-sub", "../beside": "/beside"})
		assert said <= written(run), said - written(run)
		assert not any(trace.lost() for trace in run.traces)
