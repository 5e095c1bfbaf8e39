"""Sudden deaths: of the program, of a child, of the tracer. What is on disk stays a valid trace."""

import os
import random
import signal
import struct
import subprocess
import time

import pytest

from lib.run import is_alive, owned, proc, program, tracers, wait_until
from lib.trace import Trace, trace_files

LATE = 1.0  # what may be missing, in seconds
SLACK = 0.35  # between a look at the clock and the call, and for a loaded machine


def stamps(path):
	"""When the calls of progress.c were made, in order."""
	with open(path, "rb") as file:
		raw = file.read()
	return [number / 1e9 for number, in struct.iter_unpack("<Q", raw[:len(raw) // 8 * 8])]


def running(run, calls=50):
	"""Waits until the program has made some calls."""
	path = run.path("data")
	return wait_until(lambda: os.path.exists(path) and os.path.getsize(path) >= 8 * calls, 30,
			  "the program's first calls")


def read_dead(prefix):
	"""The traces that a dead tracer left: whole lines and brackets, but for the end line."""
	found = [Trace(path, whole=False) for path in trace_files(prefix)]
	for path in trace_files(prefix):
		check = subprocess.run(["gzip", "-dc", path], capture_output=True, check=False)
		assert check.stdout.endswith(b"]\n") and check.returncode in (0, 2), check.stderr
	return found


def offsets(trace):
	return sorted(event.args["offset"] // 8 for event in trace.events if event.name == "pwrite")


def check_late(prefix, data, killed):
	"""Every call that was made more than a second before the death is there."""
	traces = [trace for trace in read_dead(prefix) if any(e.name == "pwrite" for e in trace.events)]
	made = stamps(data)
	if not traces:
		assert made[0] > killed - LATE - SLACK, "no trace at all"
		return
	assert len(traces) == 1
	found = offsets(traces[0])
	assert found == list(range(len(found))), "calls are missing in the middle"
	assert len(found) <= len(made) + 1
	if len(found) < len(made):
		assert made[len(found)] > killed - LATE - SLACK, (
			f"{len(made) - len(found)} calls are missing, the first one "
			f"{killed - made[len(found)]:.2f} s before the death")


def random_moment(number):
	"""A moment of its own for each repetition, the same in every run."""
	return random.Random(number).uniform(0.0, 2.5)


def moments(few, many):
	return [*range(few), *(pytest.param(n, marks=pytest.mark.full) for n in range(few, many))]


@pytest.mark.parametrize("number", moments(5, 60))
def test_tracer_is_killed(both, number):
	if both.form == "parent" and number % 2:
		pytest.skip("every other moment, for time's sake")
	run = both.start([program("progress"), "data", "0", "300"])
	running(run)
	time.sleep(random_moment(number))
	killed = time.time()
	for pid in tracers(run.token):
		os.kill(pid, signal.SIGKILL)
	wait_until(lambda: not [p for p in owned(run.token) if is_alive(p)], 10,
		   "the end of all tracees")
	run.process.wait(20)
	assert run.process.returncode == -signal.SIGKILL
	check_late(run.prefix, run.path("data"), killed)


@pytest.mark.parametrize("number", moments(2, 10))
def test_tracer_of_many_is_killed(runner, number):
	"""No tracee survives, whatever it is doing."""
	args = ["sh", "-c", f"for i in 1 2 3 4; do {program('progress')} data$i & done; "
		f"(sleep 100; echo) & {program('workers')} threads 8 100000 & wait"]
	run = runner.start(args)
	wait_until(lambda: len(owned(run.token)) >= 8, 30, "all processes")
	wait_until(lambda: os.path.exists(run.path("data4")), 30, "the last one's file")
	time.sleep(0.3 + random_moment(number) / 4)
	for pid in tracers(run.token):
		os.kill(pid, signal.SIGKILL)
	wait_until(lambda: not [p for p in owned(run.token) if is_alive(p)], 10,
		   "the end of all tracees")
	run.process.wait(20)
	read_dead(run.prefix)


@pytest.mark.parametrize("number", moments(4, 40))
def test_program_is_killed(both, number):
	run = both.start([program("progress"), "data", "0", "200"])
	running(run)
	time.sleep(random_moment(number) / 3)
	victim = next(pid for pid in owned(run.token) if b"progress" in proc(pid, "comm"))
	os.kill(victim, signal.SIGKILL)
	both.finish(run)
	assert run.status == -signal.SIGKILL
	trace = run.trace
	assert trace.end.args["signal"] == signal.SIGKILL
	found = offsets(trace)
	made = len(stamps(run.path("data")))
	# The last call may have written and died before its return.
	assert found == list(range(len(found))) and made - 1 <= len(found) <= made + 1


@pytest.mark.parametrize("number", moments(3, 20))
def test_child_is_killed(both, number):
	args = ["sh", "-c", f"{program('progress')} data 0 200; echo status $?; echo more > more"]
	run = both.start(args)
	running(run)
	time.sleep(random_moment(number) / 3)
	victim = next(pid for pid in owned(run.token) if proc(pid, "comm").startswith(b"progress"))
	os.kill(victim, signal.SIGKILL)
	both.finish(run)
	assert run.status == 0 and b"status 137" in run.stdout
	child = next(trace for trace in run.traces if trace.exec_name == "progress")
	assert child.end.args["signal"] == signal.SIGKILL
	parent = next(trace for trace in run.traces if trace is not child)
	waits = [event for event in parent.events if event.name == "wait" and event.ret == child.pid]
	assert waits and waits[0].args["status"] == signal.SIGKILL


def test_call_that_a_death_cuts(both):
	"""A call in which its thread dies is written, with the time until then and without a ret."""
	run = both.start(["sh", "-c", "mkfifo fifo; exec cat fifo"])
	opened = wait_until(lambda: [pid for pid in owned(run.token) if proc(pid, "comm") == b"cat\n"
				     and b"S" in proc(pid, "stat")[:20]
				     and b"wait_for_partner" in proc(pid, "wchan")], 20, "cat's open")
	os.kill(opened[0], signal.SIGKILL)
	both.finish(run)
	cut = [event for event in run.events if event.args.get("cut")]
	assert [(event.name, event.path, event.ret) for event in cut] == [
		("open", run.path("fifo"), None)]


def test_files_are_there_while_it_runs(both):
	"""A second after a call the trace on disk holds it."""
	run = both.start([program("progress"), "data", "0", "20000"])
	running(run, 10)
	for _ in range(5):
		time.sleep(0.5)
		now = time.time()
		check_late(run.prefix, run.path("data"), now)
	for pid in tracers(run.token):
		os.kill(pid, signal.SIGKILL)
	run.process.wait(20)


def test_one_call_then_silence(both):
	"""A program that makes a few calls and then sleeps: they are on disk within a second."""
	run = both.start(["sh", "-c", "echo hello > hello; date +%s.%N; exec sleep 100 < hello"])
	said = float(run.process.stdout.readline())
	time.sleep(max(0.0, said + 1.2 - time.time()))
	traces = [Trace(path, whole=False) for path in trace_files(run.prefix)]
	opened = [e for t in traces for e in t.events if e.name == "open" and e.path == run.path("hello")]
	assert len(opened) == 2
	for pid in tracers(run.token):
		os.kill(pid, signal.SIGKILL)
	run.process.wait(20)
