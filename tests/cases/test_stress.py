"""Processes and threads at random, and very many processes: what the trace knows against what they wrote
down, and what the tracer itself takes."""

import collections
import os
import time

import pytest

from lib.hostile import children, load, timed
from lib.run import PATIENCE, proc, processes, program

FULL = pytest.mark.full


def log_of(run):
	"""What the processes wrote down: who was made, who lived, how many bytes each wrote."""
	made, alive, wrote = set(), set(), collections.Counter()
	with open(run.path("log"), encoding="ascii") as file:
		for line in file:
			word, pid, more = line.split()
			if word == "did":
				wrote[int(pid)] += int(more)
			else:
				(made if word == "made" else alive).add(int(pid))
	return made, alive, wrote


def check(run):
	made, alive, wrote = log_of(run)
	main = min(run.traces, key=lambda trace: trace.start.ts).pid
	assert len(made) > 20, "it did nothing"
	said = (made | alive) - {main}
	found = set(children(run))
	# A maker that is killed in its call has no more to tell, and one that did nothing but fork has no
	# file; but whoever wrote anything has one.
	pids = {trace.pid for trace in run.traces}
	assert set(wrote) <= pids, f"no file: {set(wrote) - pids}"
	heard = {pid for pid in made if pid in found}
	unheard = made - heard
	makers = {trace.start.args["ppid"] for trace in run.traces if trace.pid in unheard}
	assert not makers & {main}, "a fork of the first process is missing"
	assert found <= said | dead_early(run, said), f"only in the trace: {found - said}"
	# The log has its lines after the writes; who is killed may have written once more.
	traced = collections.Counter()
	for event in run.events:
		if event.name == "write" and event.ret and os.path.basename(event.path or "").startswith("data"):
			traced[event.pid] += event.ret
	for pid, size in wrote.items():
		assert traced[pid] >= size, f"{pid} wrote {size}, the trace has {traced[pid]}"
	for pid, size in traced.items():
		assert size <= wrote[pid] + 60 * images(run, pid), f"{pid} wrote {wrote[pid]}: {size}"
	data = sum(os.path.getsize(run.path(name)) for name in os.listdir(run.cwd) if name.startswith("data"))
	# A write whose process is killed in it is cut: it may have been done.
	cut = sum(event.args["count"] for event in run.below() if event.name == "write" and "cut" in event.args)
	assert sum(traced.values()) <= data <= sum(traced.values()) + cut
	for trace in run.traces:
		assert not {"untraced", "unreadable", "dropped"} & set(trace.lost()), trace.lost()


def images(run, pid):
	return sum(trace.pid == pid for trace in run.traces)


def dead_early(run, said):
	"""Children that were killed before they could say anything: they did nothing that is traced, or
	not to its end."""
	wrote = {event.pid for event in run.events if event.name == "write" and event.ret}
	return set(children(run)) - said - wrote


@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=FULL) for n in range(2, 6))])
def test_at_random(both, request, seed):
	seconds = 60 if request.config.getoption("--full") and seed > 1 else 5
	run = timed(both, [program("stress"), str(seed), str(seconds)], timeout=600)
	assert run.status == 0, run.stderr[-1000:]
	check(run)


@pytest.mark.parametrize("options", [["--no-seccomp"], ["--no-syscall-info"]], ids=" ".join)
def test_at_random_on_other_rungs(runner, options):
	run = timed(runner, [program("stress"), "7", "5"], options, timeout=300)
	assert run.status == 0, run.stderr[-1000:]
	check(run)


@FULL
@pytest.mark.parametrize("seed", [11, 12])
def test_at_random_under_load(runner, seed):
	with load():
		run = timed(runner, [program("stress"), str(seed), "20"], timeout=600)
	assert run.status == 0, run.stderr[-1000:]
	check(run)


def status_field(pid, key):
	for line in proc(pid, "status").decode().splitlines():
		if line.startswith(key + ":"):
			return int(line.split()[1])
	return None


@pytest.mark.parametrize("count", [1000, pytest.param(10000, marks=FULL)])
def test_tracer_keeps_nothing(runner, count, record_property):
	"""After very many processes it holds no more memory, descriptors or tasks than after a few."""
	script = (f"i=0; while [ $i -lt {count} ]; do (echo $i >> data); i=$((i+1)); done; touch done; "
		  "while [ -e done ]; do sleep 0.05; done")
	run = runner.start(["sh", "-c", script], ["--max-files", "20"],
			   # What sanitizers keep of freed memory is no leak.
			   env={"ASAN_OPTIONS": "quarantine_size_mb=1"})
	tracer = runner.tracer_of(run)
	early, sizes = None, []
	deadline = time.monotonic() + 600 * PATIENCE
	while not os.path.exists(run.path("done")):
		assert run.process.poll() is None and time.monotonic() < deadline
		try:
			size, open_files = status_field(tracer, "VmRSS"), len(os.listdir(f"/proc/{tracer}/fd"))
		except OSError:
			continue
		lines = sum(1 for _ in open(run.path("data"), "rb")) if os.path.exists(run.path("data")) else 0
		if early is None and lines > count // 10:
			early = size, open_files
		sizes.append(size)
		time.sleep(0.02)
	time.sleep(0.3)
	late = status_field(tracer, "VmRSS"), len(os.listdir(f"/proc/{tracer}/fd"))
	peak = status_field(tracer, "VmHWM")
	print(f"peak memory of the tracer over {count} processes: {peak} kB")
	record_property("peak_kb", peak)
	assert late[0] <= early[0] * 1.2 + 2048, (early, late)
	# The mem files of two processes, the shell and what it waits in.
	assert late[1] <= early[1] + 2, (early, late)
	traced = [pid for pid in processes() if status_field(pid, "TracerPid") == tracer]
	assert len(traced) <= 2, traced
	os.unlink(run.path("done"))
	runner.finish(run)
	assert run.status == 0 and len(run.traces) == 20
	line = run.stderr.decode()
	assert f"{count - 19} files beyond --max-files" in line or "beyond --max-files" in line
