"""Disks that are full, go away, or refuse: the program goes on, and what is lost is said."""

import os
import resource
import shutil
import subprocess
import time

import pytest

from lib.oracle import values
from lib.run import EXIT_LINE, program, wait_until
from lib.trace import Trace, trace_files


@pytest.fixture
def small(runner):
	"""A file system of 200 kB."""
	top = runner.fresh("small")
	done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", top], check=False,
			      capture_output=True)
	if done.returncode != 0:
		pytest.skip(f"no small file system: {done.stderr.decode().strip()}")
	yield top
	subprocess.run(["umount", "-l", top], check=True)


def check_lost(run, words):
	line = EXIT_LINE.search(run.stderr)
	assert line, run.stderr
	assert int(line["lost"]) > 0
	text = run.stderr.decode()
	assert any(word in text for word in words), text
	assert len(text.splitlines()) <= 2, text


def test_full_disk(both, small):
	"""What fits is valid; the rest is counted; the program has not noticed."""
	args = [program("progress"), "data", "60000"]
	run = both.traced(args, prefix=os.path.join(small, "t"))
	assert run.status == 0
	assert os.path.getsize(run.path("data")) == 8 * 60000
	check_lost(run, ["space", "full", "ENOSPC"])
	trace = Trace(run.files[0], whole=False)
	assert trace.end is None
	offsets = [event.args["offset"] // 8 for event in trace.events if event.name == "pwrite"]
	assert offsets == list(range(len(offsets))) and 1000 < len(offsets) < 60000
	lost = int(run.exit_line["lost"])
	assert int(run.exit_line["events"]) == len(trace.events)
	# Every call is either there or counted; the loader's are as many as are there.
	others = len(trace.events) - len(offsets)
	assert abs(lost + len(offsets) - 60000) <= others + 5


def test_full_before_the_first_byte(both, small):
	with open(os.path.join(small, "filler"), "wb", buffering=0) as file:
		with pytest.raises(OSError):
			while True:
				file.write(bytes(4096))
	run = both.traced(["sh", "-c", "echo > f; exit 6"], prefix=os.path.join(small, "t"))
	assert run.status == 6
	check_lost(run, ["space", "full", "ENOSPC"])
	for path in run.files:
		assert os.path.getsize(path) > 0, "an empty file is worse than none"


def test_others_go_on_when_one_is_full(both, small):
	"""Short traces after a full disk was emptied again are written."""
	script = (f"{program('progress')} data 30000; rm -f {small}/filler; "
		  f"{program('workers')} threads 1 5")
	with open(os.path.join(small, "filler"), "wb") as file:
		file.write(bytes(150000))
	run = both.traced(["sh", "-c", script], prefix=os.path.join(small, "t"))
	assert run.status == 3
	check_lost(run, ["space", "full", "ENOSPC"])
	whole = [Trace(path, whole=False) for path in run.files]
	assert any(trace.exec_name == "workers" and trace.end for trace in whole)


def test_output_directory_removed(both):
	"""The directory goes away while the program runs: it ends as if nothing had happened."""
	run = both.start([program("progress"), "data", "0", "1000"])
	wait_until(lambda: trace_files(run.prefix) and os.path.exists(run.path("data")), 20, "a trace file")
	shutil.rmtree(os.path.dirname(run.prefix))
	size = os.path.getsize(run.path("data"))
	wait_until(lambda: os.path.getsize(run.path("data")) > size + 800, 20, "more calls")
	os.kill(run.process.pid, 15)
	both.finish(run)
	assert run.status == -15


def test_output_directory_removed_before_a_child(both):
	"""A file that can no longer be created is counted."""
	script = f"echo > a; rm -r {{}}; {program('workers')} threads 1 5; exit 4"
	prefix = os.path.join(both.fresh("out"), "gone", "t")
	run = both.traced(["sh", "-c", script.format(os.path.dirname(prefix))], prefix=prefix)
	assert run.status == 4
	line = run.exit_line
	assert line
	# Either the directory is made again, or the loss is told.
	assert run.files or int(line["lost"]) > 0


def test_file_size_limit_is_the_programs(both):
	"""RLIMIT_FSIZE stops the program's file, not the trace, as long as the hard limit allows."""
	def limit():
		resource.setrlimit(resource.RLIMIT_FSIZE, (4000, resource.RLIM_INFINITY))

	run = both.traced([program("progress"), "data", "60000"], preexec_fn=limit)
	assert run.status == -25
	assert run.trace.end.args["signal"] == 25
	assert os.path.getsize(run.path("data")) == 4000


def test_hard_file_size_limit(both):
	def limit():
		resource.setrlimit(resource.RLIMIT_FSIZE, (16384, 16384))

	run = both.traced([program("workers"), "threads", "2", "2500"], preexec_fn=limit)
	if run.status == 125:
		assert len(run.stderr.splitlines()) == 1
		return
	said = values(run.stdout)
	assert run.status in (3, 99, -25) and (said or run.status != 3)
	for path in run.files:
		Trace(path, whole=False)


def test_never_overwritten(both):
	"""A second run beside the first adds files."""
	first = both.traced(["sh", "-c", "echo > f"])
	before = {path: os.stat(path).st_mtime_ns for path in first.files}
	second = both.traced(["sh", "-c", "echo > f"], prefix=first.prefix)
	assert len(second.files) == 2
	assert {path: os.stat(path).st_mtime_ns for path in before} == before


def test_modes(both):
	"""Traces hold command lines: 0600, under the umask; a link in the way is not followed."""
	run = both.traced(["sh", "-c", "echo > f"], umask=0)
	assert [os.stat(path).st_mode & 0o777 for path in run.files] == [0o600]
	run = both.traced(["sh", "-c", "echo > f"], umask=0o277)
	assert [os.stat(path).st_mode & 0o777 for path in run.files] == [0o400]


def test_slow_reader_of_stderr(both):
	"""The exit line waits for a slow reader at most two seconds."""
	begin = time.monotonic()
	run = both.start(["sh", "-c", "echo > f; exit 3"])
	run.process.wait(30)
	assert time.monotonic() - begin < 10
	both.finish(run)
	assert run.status == 3 and run.exit_line
