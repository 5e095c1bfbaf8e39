"""Programs without descriptors, memory, time or processes: by their own will, or inherited."""

import os
import resource
import signal

import pytest

from lib.hostile import (hostile, is_root, same, same_words,  # noqa: F401
			 sanitized, timed, times, words)
from lib.run import EXTRA, TRACER, exit_line_agrees, wait_until

MEMORY = "/sys/fs/cgroup/memory"
UNLIMITED = resource.RLIM_INFINITY


@pytest.mark.parametrize("options", [[], ["--no-seccomp"]], ids=" ".join)
@pytest.mark.parametrize("case", [["close-range"], ["dup-everything", "300"], ["no-files"], ["address-space"],
				  ["file-size"]], ids=lambda words: words[0])
def test_own_limits(both, times, case, options):
	run = same(both, hostile("limits", *case), options)
	same_words(run, made=case[0] != "no-files")
	assert not any(trace.lost() for trace in run.traces)


def test_no_descriptors(both, times):
	"""What the refused calls were is in the trace."""
	run = same(both, hostile("limits", "no-files"))
	assert {event.errno for event in run.of("open", run.path("none"))} == {24}
	assert [event.errno for event in run.of("dup") if event.errno] in ([24], [])
	# Its child and its next image had none either.
	assert words(run, "reaped") == [["child", "exit 24"]] and b"after\tyes" in run.stdout


def test_cpu_time(both):
	"""The program's second is its own; the tracer's time does not count."""
	run = timed(both, hostile("limits", "cpu"))
	native = both.native(hostile("limits", "cpu"))
	assert run.status == native.status
	assert run.stdout == native.stdout
	assert run.trace.end.args["signal"] == -run.status
	same_words(run)


INHERITED = {
	"no-core": (resource.RLIMIT_CORE, (0, 0)),
	"core": (resource.RLIMIT_CORE, (UNLIMITED, UNLIMITED)),
	"files-soft": (resource.RLIMIT_NOFILE, (20, 4096)),
	"files-hard": (resource.RLIMIT_NOFILE, (64, 64)),
	"memory-soft": (resource.RLIMIT_AS, (256 << 20, UNLIMITED)),
	"data-soft": (resource.RLIMIT_DATA, (64 << 20, UNLIMITED)),
	"size-soft": (resource.RLIMIT_FSIZE, (100, UNLIMITED)),
	"cpu-soft": (resource.RLIMIT_CPU, (1000, UNLIMITED)),
	"stack": (resource.RLIMIT_STACK, (256 << 10, 256 << 10)),
}


@pytest.mark.parametrize("name", INHERITED)
def test_inherited_limits(both, times, name):
	"""The program finds the limits that dftrace-run was started with, and the tracer works with them."""
	kind, values = INHERITED[name]
	if sanitized() and kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA, resource.RLIMIT_CORE):
		pytest.skip("sanitizers take more memory, and forbid core files")

	def tight():
		resource.setrlimit(kind, values)

	run = same(both, hostile("limits", "look"), preexec_fn=tight)
	assert [event.ret for event in run.of("write", run.path("look"))] == [15]
	exit_line_agrees(run)


TOO_LOW = {
	"no-files": (resource.RLIMIT_NOFILE, (4, 4)),
	"few-files": (resource.RLIMIT_NOFILE, (6, 6)),
	"few-files-soft": (resource.RLIMIT_NOFILE, (6, 4096)),
	"no-files-soft": (resource.RLIMIT_NOFILE, (4, 4096)),
	"no-memory": (resource.RLIMIT_AS, (32 << 20, 32 << 20)),
	"no-data": (resource.RLIMIT_DATA, (4 << 20, 4 << 20)),
}


@pytest.mark.parametrize("name", TOO_LOW)
def test_limits_too_low_to_work_with(both, times, name):
	"""A sentence and 125, or it works: never a program that dies of us, and never silence."""
	kind, values = TOO_LOW[name]
	if sanitized() and kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
		pytest.skip("sanitizers take more memory")

	def tight():
		resource.setrlimit(kind, values)

	native = both.native(["true"], preexec_fn=tight)
	run = timed(both, ["true"], preexec_fn=tight)
	if native.status != 0:
		pytest.skip("not even a shell's true can run so")
	if run.status == 0:
		assert run.exit_line and run.trace.end.args["exit_status"] == 0
		return
	assert run.status == 125, (run.status, run.stderr)
	lines = run.stderr.decode().splitlines()
	assert len(lines) == 1 and lines[0].startswith("dftrace-run: "), lines
	# Cause and remedy.
	assert "ulimit" in lines[0], lines


def test_file_size_limits_the_traces(both, times):
	"""Files may not grow at all: what did not reach the disk is said, and the program does not care."""
	def tight():
		resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))

	args = ["sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do echo $i >> f$i; done; exit 6"]
	native = both.native(args, preexec_fn=tight)
	run = timed(both, args, preexec_fn=tight)
	assert run.status == native.status == 6
	assert "lost:write" in run.stderr.decode(), run.stderr


USER = ["setpriv", "--reuid=65533", "--regid=65533", "--clear-groups"]


@pytest.mark.skipif(not is_root(), reason="needs a user of its own")
@pytest.mark.parametrize("form", ["detached", "parent"])
def test_no_processes(runner, times, form):
	"""fork fails, and that is in the trace; where not even the tracer can start, a sentence."""
	def setup(cwd):
		os.chmod(cwd, 0o777)

	def start(command, **more):
		cwd = runner.fresh("user")
		os.chmod(cwd, 0o777)
		return runner.native([*USER, *command], cwd=cwd, **more)

	prefix = os.path.join(runner.fresh("out"), "t")
	os.chmod(os.path.dirname(prefix), 0o777)
	traced = [TRACER, "-o", prefix, "--tracer", form, *EXTRA, "--"]
	native = start(hostile("limits", "no-processes"))
	run = start([*traced, *hostile("limits", "no-processes")])
	runner.settle(run.token)
	run.prefix = prefix
	assert run.status == 0 and run.stdout == native.stdout
	assert [(event.ret, event.errno) for event in run.of("fork")] == [(-1, 11)]

	def tight():
		resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))

	if sanitized():
		return  # they want processes, too
	refused = start([*traced, "true"], preexec_fn=tight)
	lines = refused.stderr.decode().splitlines()
	if refused.status == 126:
		return  # not even setpriv could exec: the user has other processes
	assert refused.status in (0, 125) and len(lines) == 1, (refused.status, lines)


@pytest.fixture
def small_group():
	"""A memory cgroup of 64 MB; gives what puts a process into it."""
	path = os.path.join(MEMORY, f"dftrace-test-{os.getpid()}")
	try:
		os.mkdir(path)
		with open(os.path.join(path, "memory.limit_in_bytes"), "w", encoding="ascii") as file:
			file.write(str(64 << 20))
	except OSError as error:
		pytest.skip(f"no memory cgroup of our own: {error}")

	def join():
		with open(os.path.join(path, "cgroup.procs"), "w", encoding="ascii") as file:
			file.write(str(os.getpid()))

	yield join

	def gone():
		try:
			os.rmdir(path)
		except OSError:
			return False
		return True

	wait_until(gone, 10, "the cgroup's end")


def test_out_of_memory(runner, small_group, times):
	"""The program takes all there is: it is killed, not its tracer, and its trace is complete."""
	args = hostile("limits", "hog", 500)
	native = runner.native(args, preexec_fn=small_group)
	assert native.status == -signal.SIGKILL
	run = timed(runner, args, preexec_fn=small_group)
	assert run.status == -signal.SIGKILL
	assert run.trace.end.args["signal"] == signal.SIGKILL
	assert len(run.of("access", run.path("step"))) > 20
	same_words(run)
	assert run.exit_line


@pytest.mark.parametrize("value", [0, 300, 1000])
def test_oom_score(both, value):
	"""The program's is untouched."""
	def adjust():
		with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
			file.write(str(value))

	run = same(both, hostile("limits", "look"), preexec_fn=adjust)
	assert words(run, "oom") == [[str(value)]]
