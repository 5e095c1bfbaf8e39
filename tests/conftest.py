"""Builds what the cases need and gives them a runner each."""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import zlib

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from lib.run import BUILD, EXTRA, PATIENCE, ROOT, TRACER, Runner  # noqa: E402

SEED = os.environ.get("DFTRACE_TEST_SEED") or str(random.SystemRandom().randrange(10 ** 6))


def pytest_configure(config):
	# A shell starts what runs in the background with these ignored, and the programs would be, too.
	signal.signal(signal.SIGINT, signal.default_int_handler)
	signal.signal(signal.SIGQUIT, signal.SIG_DFL)
	config.addinivalue_line("markers", "full: long; only in make test-full")


def pytest_addoption(parser):
	parser.addoption("--full", action="store_true", help="run the long cases as well")
	parser.addoption("--shard", default="0/1", help="N/M: the N-th of M parts")


def pytest_collection_modifyitems(config, items):
	shard, shards = map(int, config.getoption("--shard").split("/"))
	full = config.getoption("--full")
	chosen = [item for item in items if full or not item.get_closest_marker("full")]
	# By name: with every M-th case the dearer value of a parameter would always be in the same shard.
	chosen = [item for item in chosen if zlib.crc32(item.nodeid.encode()) % shards == shard]
	config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
	items[:] = chosen


@pytest.fixture(scope="session", autouse=True)
def built():
	"""`make` decides what is old. The runner that has just built everything says so."""
	if not os.environ.get("DFTRACE_BUILT"):
		subprocess.run(["make", "-s", "-C", ROOT, f"B={BUILD}", "all", "programs"], check=True)
	assert os.access(TRACER, os.X_OK), TRACER


@pytest.fixture
def base(request):
	"""A short directory of the case's own; the paths of some cases must be of a known length."""
	name = re.sub(r"\W+", "-", request.node.name)[:40]
	path = os.path.join(BUILD, "run", f"{os.getpid()}-{name}")
	shutil.rmtree(path, ignore_errors=True)
	os.makedirs(path)
	return path


@pytest.fixture
def moment(request):
	"""Random seconds up to a limit. They are printed, and DFTRACE_TEST_SEED repeats them."""
	source = random.Random(f"{SEED} {request.node.nodeid}")

	def drawn(limit):
		seconds = source.uniform(0, limit)
		print(f"moment: {seconds:.4f} s (seed {SEED})")
		return seconds

	return drawn


@pytest.fixture
def runner(base):
	runner = Runner(base)
	yield runner
	runner.close()


@pytest.fixture(params=["detached", "parent"])
def both(request, base):
	"""A runner for each of the tracer's two forms."""
	runner = Runner(base, ["--tracer", request.param])
	runner.form = request.param
	yield runner
	runner.close()


def pytest_report_header():
	return f"dftrace-run: {TRACER} {' '.join(EXTRA)} patience {PATIENCE:g} seed {SEED}"
