"""The recorder in the long run: nothing is lost, and neither the tracer nor the program grows."""

import collections
import gzip
import re
import time

import pytest

from lib.oracle import values
from lib.run import proc, program

PAUSE = 0.2  # s


def resident(pid):
	"""KiB of a process, 0 when it is gone."""
	found = re.search(rb"^VmRSS:\s+(\d+)", proc(pid, "status"), re.MULTILINE)
	return int(found[1]) if found else 0


def counted(run, path):
	"""Events on a file by name; line by line, since they are too many to hold."""
	found = collections.Counter()
	for trace in run.files:
		with gzip.open(trace, "rb") as lines:
			wanted = None
			for line in lines:
				if b'"name":"FH"' in line and b'"name":"%s"' % path.encode() in line:
					wanted = b'"fhash":"%s"' % re.search(rb'"value":"(\w+)"', line)[1]
				elif wanted and wanted in line:
					found[re.match(rb'\{"id":\d+,"name":"(\w+)"', line)[1].decode()] += 1
	return found


def steady(what, samples, allowed):
	"""The second half of the run takes no more than the first, but for what allocators do."""
	half = len(samples) // 2
	early, late = max(samples[:half]), max(samples[half:])
	assert late <= early + allowed, f"{what}: {early} in the first half, {late} in the second"


@pytest.mark.parametrize("seconds", [10, pytest.param(600, marks=pytest.mark.full)])
def test_memory_stays_constant(runner, seconds):
	run = runner.start([program("recorder_soak"), str(seconds)], ["--capture", "recorder", "--recorder-hits", "2", "-v"])
	tracer = runner.tracer_of(run)
	memory, own, areas = [], [], []
	while run.process.poll() is None:
		for samples, value in ((memory, resident(tracer)), (own, resident(run.process.pid)),
				       (areas, proc(run.process.pid, "maps").count(b"\n"))):
			if value:
				samples.append(value)
		time.sleep(PAUSE)
	runner.finish(run)
	assert run.status == 0, run.stderr
	recorded = re.search(rb"recorder: (\d+) calls", run.stderr)
	assert recorded and int(recorded[1]) > 200 * seconds, run.stderr
	# What waits to be written needs some 20 s to reach its bounds.
	steady("KiB of the tracer", memory, 2048 if seconds > 60 else 4096)
	steady("KiB of the program", own, 1024)
	steady("mappings of the program", areas, 8)
	said = values(run.stdout)
	found = counted(run, run.path("data"))
	assert {name: found[name] for name in said} == {name: int(count) for name, count in said.items()}
	assert int(run.exit_line["lost"]) == 0, run.stderr
