"""Programs that exec at awkward moments, children without parents, processes that stay behind."""

import os
import shutil
import signal
import struct
import time

import pytest

from lib.hostile import (children, hostile, is_root, pids,  # noqa: F401
			 said_written, same, same_words, timed, times, words, written)
from lib.run import EXTRA, PATIENCE, TRACER, exit_line_agrees, is_alive, program, tracers, wait_until


def images(run):
	"""The traces by their start."""
	return sorted(run.traces, key=lambda trace: trace.start.ts)


def test_among_busy_threads(both, times):
	"""The other threads run, sleep in calls and fork when one of them execs."""
	run = same(both, hostile("exec", "among", 8))
	same_words(run, made=False)
	# A thread that dies in its fork has no more to tell; the child is followed all the same.
	unheard = [event for event in run.of("fork") if "cut" in event.args and "child" not in event.args]
	assert (pids(run, "am") - children(run)).total() <= len(unheard)
	pid = int(words(run, "pid")[0][0])
	old, new = (trace for trace in images(run) if trace.pid == pid)
	assert "exec" in old.end.args and new.end.args["exit_status"] == 0
	assert {event.tid for event in new.events} == {pid}
	# What was asleep is cut, and is not in the new image.
	assert not [event for event in new.events if event.args.get("cut")]


def test_leader_has_ended(both, times):
	run = same(both, hostile("exec", "leader-gone"))
	same_words(run)
	assert [trace.pid for trace in run.traces] == [int(words(run, "pid")[0][0])] * 2


def test_in_vfork(both, times):
	"""Descriptors and directory are the child's, memory is the parent's."""
	run = same(both, hostile("exec", "in-vfork", 3), files=False)
	same_words(run, {"image": "below/image"})
	for trace in run.traces:
		assert not trace.lost()
	execs = [event for event in run.of("exec") if event.pid in pids(run, "made")]
	assert [event.ret for event in execs] == [0, 0, 0]


@pytest.mark.parametrize("first", ["#!/bin/sh", "#!/usr/bin/env sh", "#!./inner"])
def test_script(both, times, first):
	"""The exec event and the next image name the script, not only what interprets it."""
	def setup(cwd):
		for name, line in (("script", first), ("inner", "#!/bin/sh -e")):
			with open(os.path.join(cwd, name), "w", encoding="utf-8") as file:
				file.write(f'{line}\necho "said	$1 $2 $#"\necho done > result\n')
			os.chmod(os.path.join(cwd, name), 0o755)

	run = same(both, hostile("exec", "script"), setup=setup)
	event, = run.of("exec", run.path("script"))
	assert event.ret == 0
	assert run.of("open", run.path("result"))
	old = images(run)[0]
	assert old.names[old.end.args["exec"]] == run.path("script")
	assert {trace.pid for trace in run.traces} == {run.traces[0].pid}


def test_failing_execs(both, times):
	"""After a good exec each failing one is an event, and the image goes on."""
	run = same(both, hostile("exec", "fails"))
	same_words(run)
	failed = [(event.path, event.errno) for event in run.of("exec") if event.ret != 0]
	said = [(name if name[0] == "/" else run.path(name), int(error))
		for name, error in words(run, "failed") if name != "long"]
	assert [entry for entry in failed if entry[0] != run.path("l" * 4999)
		and entry[0] is not None] == said
	assert len(failed) == len(said) + 1, "the name that is too long is an event as well"
	assert len(run.traces) == 2 and len(images(run)[0].all) < len(images(run)[1].all)


def doomed_elf(cwd):
	"""An ELF program whose only segment cannot be mapped: known when the old image is gone."""
	head = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack(
		"<HHIQQQIHHHHHH", 2, 62, 1, 0x400000, 64, 0, 0, 64, 56, 1, 0, 0, 0)
	segment = struct.pack("<IIQQQQQQ", 1, 5, 0, 0x7fffffffe000, 0x7fffffffe000, 120, 1 << 40, 4096)
	with open(os.path.join(cwd, "doomed"), "wb") as file:
		file.write(head + segment)
	os.chmod(os.path.join(cwd, "doomed"), 0o755)


def test_exec_that_cannot_return(both, times):
	run = same(both, hostile("exec", "doomed"), setup=doomed_elf)
	same_words(run)
	assert b"reaped\tdoomed\tsignal" in run.stdout, run.stdout
	number = int(words(run, "reaped")[0][1].split()[1])
	child = next(iter(pids(run, "made")))
	ends = [trace.end.args for trace in run.traces if trace.pid == child]
	assert all(end.get("signal") == number for end in ends if "exec" not in end), ends


@pytest.mark.skipif(not is_root(), reason="only root can make a setuid program of another user's")
def test_setuid(base, runner, times):
	"""A setuid program has no more rights than its caller: said once, and counted."""
	def setup(cwd):
		shutil.copy(program("hostile_exec"), os.path.join(cwd, "setuid"))
		os.chown(os.path.join(cwd, "setuid"), 0, 0)
		os.chmod(os.path.join(cwd, "setuid"), 0o4755)
		os.chown(cwd, 65534, 65534)

	user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
	native = runner.native([*user, *hostile("exec", "exec-ids")], setup=setup)
	if b"uid\t65534 0" not in native.stdout:
		pytest.skip("setuid has no effect here")
	prefix = os.path.join(runner.fresh("out"), "t")
	os.chown(os.path.dirname(prefix), 65534, 65534)
	run = runner.native([*user, TRACER, "-o", prefix, *EXTRA, "--", *hostile("exec", "exec-ids")],
			    setup=setup)
	runner.settle(run.token)
	run.prefix = prefix
	assert run.status == 0, run.stderr
	assert words(run, "uid") == [["65534 65534"]] * 2
	text = run.stderr.decode()
	assert text.count("setuid") >= 1 and len(text.splitlines()) == 1, text
	assert sum(trace.lost().get("setuid", 0) for trace in run.traces) == 2


def test_grandchildren(both, times):
	"""A child of a child is followed, whether its parent exits at once or is killed."""
	run = same(both, hostile("exec", "grandchildren", 24))
	assert written(run) == said_written(run)
	assert pids(run, "made") <= children(run)
	assert len({trace.pid for trace in run.traces}) == 49
	assert not any(trace.lost() for trace in run.traces)


def test_parents_killed_while_they_fork(both, times):
	"""The call that made a child is never heard of; the child is followed all the same."""
	run = same(both, hostile("exec", "killed-parents", 20), files=False)
	# Who was killed may not have said what it did.
	assert said_written(run) <= written(run)
	for trace in run.traces:
		assert not trace.lost(), trace.lost()
		# Found by the parent's call or without it: the working directory is known.
		assert trace.start.args["cwd"] in trace.names


@pytest.mark.parametrize("form", ["detached", "parent"])
def test_behind(runner, times, form):
	"""Nobody waits for a process that outlives the program, except in the parent form."""
	begin = time.monotonic()
	run = runner.start(hostile("exec", "behind", 700), ["--tracer", form])
	run.process.wait(30 * PATIENCE)
	took = time.monotonic() - begin
	if form == "detached":
		assert not os.path.exists(run.path("behind")), f"it was waited for ({took:.1f} s)"
		assert tracers(run.token), "the tracer is gone before what it traces"
	else:
		assert os.path.exists(run.path("behind"))
	runner.finish(run)
	run.stdout += b"put\tbehind\t66\n"
	same_words(run)
	assert [t for t in run.traces if t.end.args.get("exit_status") == 3]


def test_behind_a_shell(runner, times):
	"""What a shell leaves in the background is traced on when the shell has gone."""
	begin = time.monotonic()
	run = runner.start(["sh", "-c", "{ sleep 0.8; echo late > late; } >&- 2>&- & echo now > now"])
	assert run.process.wait(30) == 0
	assert time.monotonic() - begin < 0.75 * PATIENCE or times
	assert not os.path.exists(run.path("late")) and tracers(run.token)
	runner.finish(run)
	assert run.of("open", run.path("late")) and run.of("open", run.path("now"))


def test_tracer_of_what_stays_behind_can_be_ended(runner):
	"""Killing what stays behind ends the tracer too, and completes the traces."""
	run = runner.start(["sh", "-c", "mkfifo fifo; { echo > file; : < fifo; } >&- 2>&- & echo $! > pid"])
	assert run.process.wait(30) == 0
	pid = wait_until(lambda: os.path.exists(run.path("pid")) and
			 int(open(run.path("pid"), encoding="ascii").read() or 0))
	assert is_alive(pid)
	os.kill(pid, signal.SIGTERM)
	wait_until(lambda: not tracers(run.token), 2, "the tracer's end")
	runner.finish(run)
	assert [t for t in run.traces if t.pid == pid and t.end.args.get("signal") == signal.SIGTERM]


@pytest.mark.parametrize("options", [[], ["--no-seccomp"]], ids=" ".join)
def test_exit_line_counts_earlier_images(runner, options):
	"""What an image did that ended by exec is in the sum, too, however short the last one is."""
	for _ in range(15):
		exit_line_agrees(timed(runner, ["sh", "-c", "echo a > f; exec sh -c 'echo b > f'"], options))


@pytest.mark.skipif(not is_root(), reason="only root may choose a pid")
@pytest.mark.parametrize("count", [100, pytest.param(1000, marks=pytest.mark.full)])
def test_killed_while_a_thread_execs(both, count):
	"""The thread is gone under its number though nothing was heard of that; who has it next is new."""
	run = timed(both, hostile("exec", "killed-exec", count), timeout=300)
	assert run.status == 0, run.stderr
	if words(run, "refused"):
		pytest.skip("no right to choose a pid")
	said, found = pids(run, "again"), children(run)
	assert said <= found, said - found
	again = [event for event in run.of("write", run.path("again"))]
	assert {event.pid for event in again} == set(said) and len(again) == count
	for trace in run.traces:
		assert trace.start.args["ppid"] > 1
