"""Names: unusual bytes, long paths, pointers that lead nowhere, descriptors of every origin."""

import resource
import subprocess

import pytest

from lib.oracle import differences, multiset, said
from lib.run import exit_line_agrees, program


def check(run):
	"""Every call that the program said is in the trace, and no other on its files."""
	assert run.status == 0, run.stderr
	lines = said(run.stdout, run.cwd)
	names = {line.name for line in lines}
	pathless = {line.name for line in lines if line.path is None}
	top = run.cwd + "/"
	found = multiset((e.name, e.path, e.ret, e.errno) for e in run.events if e.name in names
			 and (e.path is None and e.name in pathless or (e.path or "").startswith(top)))
	expected = multiset((line.name, line.path, line.ret, line.errno) for line in lines)
	# A file's own closing and opening is only said where it is the point.
	message = differences(expected, found)
	assert not message, message
	exit_line_agrees(run)


@pytest.mark.parametrize("case", ["names", "lengths", "deep", "edges", "faults"])
def test_odd(both, case):
	check(both.traced([program("odd"), case]))


@pytest.mark.parametrize("options", [["--no-proc-mem"], ["--no-proc-mem", "--no-vm-readv"]], ids=" ".join)
@pytest.mark.parametrize("case", ["names", "edges", "faults"])
def test_odd_by_other_ways_of_reading(runner, case, options):
	check(runner.traced([program("odd"), case], options))


def test_long_prefix_and_deep_directory(runner):
	"""A name beyond the kernel's limit, made of directory and path, is whole in the trace."""
	run = runner.traced([program("odd"), "deep"])
	longest = max(len(event.path) for event in run.below())
	assert longest == len(run.cwd) + 1 + 4095


@pytest.mark.parametrize("case", ["duplicates", "ranges", "passed", "taken", "shared", "execs",
				  "directories", "removed", "threads"])
@pytest.mark.parametrize("options", [[], ["--no-seccomp"], ["--no-syscall-info"]], ids=" ".join)
def test_descriptors(both, case, options):
	run = both.traced([program("fds"), case], options)
	assert run.status == 0, run.stderr
	lines = [line for line in said(run.stdout, run.cwd)]
	expected = multiset((line.name, line.path, line.ret, line.errno) for line in lines)
	names = {line.name for line in lines if line.name != "open"}
	wanted_opens = {line.path for line in lines if line.name == "open"}
	found = multiset((e.name, e.path, e.ret, e.errno) for e in run.events
			 if (e.path or "").startswith(run.cwd + "/")
			 and (e.name in names or e.name == "open" and e.path in wanted_opens))
	message = differences(expected, found)
	assert not message, message
	exit_line_agrees(run)


@pytest.mark.parametrize("want", [15000, 65000])
def test_very_many_descriptors(runner, want):
	def more_files():
		resource.setrlimit(resource.RLIMIT_NOFILE, (want + 100, want + 1000))

	try:
		subprocess.run(["true"], preexec_fn=more_files, check=True)
	except subprocess.SubprocessError:
		hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
		pytest.skip(f"no more than {hard} files may be open here")

	run = runner.traced([program("odd"), str(want)], preexec_fn=more_files, timeout=200)
	assert run.status == 0, run.stderr
	opens = [e for e in run.below() if e.name == "open" and e.ret >= 0]
	assert len(opens) == want
	by_number = {e.ret: e.path for e in opens}
	assert len(run.of("pwrite")) == want // 1000
	for event in run.of("pwrite"):
		assert event.path == by_number[event.args["fd"]]
