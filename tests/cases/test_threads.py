"""Threads: very many, and ones that reuse each other's descriptor numbers."""

import collections
import os

import pytest

from lib.oracle import values
from lib.run import exit_line_agrees, program


def churned(run):
	"""Sum of bytes and number of writes by file, as the trace has them."""
	found = collections.defaultdict(lambda: [0, 0])
	for event in run.below():
		if event.name == "write":
			found[os.path.basename(event.path)][0] += event.ret
			found[os.path.basename(event.path)][1] += 1
	return {name: f"{a} {b}" for name, (a, b) in found.items()}


@pytest.mark.parametrize("options", [[], ["--no-seccomp"], ["--no-syscall-info"], ["--no-placement"]],
			 ids=" ".join)
@pytest.mark.parametrize("threads", [2, 8])
def test_same_numbers_at_full_speed(both, threads, options):
	run = both.traced([program("churn"), str(threads), "150"], options)
	assert run.status == 0, run.stderr
	assert churned(run) == values(run.stdout)
	assert not run.trace.lost()
	for event in run.below():
		if event.name in ("write", "dup", "fcntl", "close"):
			thread = int(os.path.basename(event.path)[5:])
			assert 0 <= thread < threads
	exit_line_agrees(run)


@pytest.mark.full
@pytest.mark.parametrize("times", range(10))
def test_same_numbers_for_long(runner, times):
	run = runner.traced([program("churn"), "16", "3000"], timeout=600)
	assert churned(run) == values(run.stdout)


def test_closing_thread_and_its_file_agree(runner):
	"""Each descriptor is closed under the name that it was opened by, in the thread that opened it."""
	run = runner.traced([program("churn"), "4", "100"])
	by_thread = collections.defaultdict(set)
	for event in run.below():
		by_thread[event.tid].add(event.path)
	assert all(len(paths) == 1 for paths in by_thread.values())


@pytest.mark.parametrize("count", [1000])
def test_very_many_threads(runner, count):
	run = runner.traced([program("workers"), "threads", str(count), "3"], timeout=240)
	assert run.status == 3, run.stderr
	trace = run.trace
	assert len({event.tid for event in run.below()}) == count
	written = sum(event.ret for event in run.below() if event.name == "pwrite")
	said = [value.split() for value in values(run.stdout).values()]
	assert len(said) == count
	assert written == sum(int(value[0]) for value in said)
	assert trace.end.args["exit_status"] == 3
