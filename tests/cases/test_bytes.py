"""Bytes: what the kernel counted for the process is what the trace's calls returned."""

import pytest

from lib.oracle import values
from lib.run import program

READS = ("read", "readv", "pread", "preadv")
WRITES = ("write", "writev", "pwrite", "pwritev")
BOTH = ("sendfile", "copy_file_range")


def between(run):
	"""The events from the program's first look at its counters to its last."""
	events = sorted(run.trace.events, key=lambda event: (event.ts, event.id))
	looks = [at for at, event in enumerate(events)
		 if event.name == "read" and event.path in (f"/proc/{run.trace.pid}/io", "/proc/self/io")]
	assert len(looks) == 2
	return events[looks[0]:looks[1]]


def total(events, names):
	return sum(event.ret for event in events if event.name in names and event.ret > 0)


@pytest.mark.parametrize("options", [[], ["--no-seccomp"], ["--no-syscall-info"],
				     ["--no-proc-mem"]], ids=" ".join)
def test_bytes_are_the_kernels(both, options):
	run = both.traced([program("counted")], ["-e", "+%ipc,+%network", *options])
	assert run.status == 0, run.stderr
	said, events = values(run.stdout), between(run)
	assert total(events, READS + BOTH) == int(said["rchar"])
	assert total(events, WRITES + BOTH) == int(said["wchar"])


def test_bytes_without_pipes_are_less(runner):
	"""What is left out is counted, so that nobody is deceived by the sums."""
	run = runner.traced([program("counted")])
	said, events = values(run.stdout), between(run)
	assert 0 < total(events, READS + BOTH) < int(said["rchar"])
	skipped = run.trace.skipped()
	assert skipped["pipe"] > 0 and skipped["socket"] > 0


def test_bytes_on_disk(runner):
	run = runner.traced(["dd", "if=/dev/zero", "of=out", "bs=1000", "count=77", "status=none"])
	written = sum(event.ret for event in run.of("write", run.path("out")))
	assert written == 77000
	assert sum(event.ret for event in run.of("read", "/dev/zero")) == 77000
