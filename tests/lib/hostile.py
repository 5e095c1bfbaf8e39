"""What the cases of hostile programs share: the program's words (tests/programs/hostile.h) against the
trace, the same run without us, the time until everything has ended, and load beside it."""

import atexit
import collections
import contextlib
import os
import re
import shutil
import signal
import subprocess
import time

import pytest

from .run import (PATIENCE, TRACER, program, same_outside, tracers,
		  wait_until)

# `make test` runs each case once, `make test-full` 20 times, all but the first with load beside it.
TIMES = [0, *(pytest.param(n, marks=pytest.mark.full) for n in range(1, 20))]
END = 2.0  # seconds from the program's end to that of everything else


class Load:
	"""Other programs that want the CPUs and start processes."""

	def __init__(self):
		self.busy = None
		atexit.register(self.end)

	def begin(self):
		if self.busy:
			return
		if not shutil.which("stress-ng"):
			pytest.skip("no stress-ng")
		self.busy = subprocess.Popen(["stress-ng", "--cpu", "1", "--fork", "1", "--switch", "1", "--quiet"],
					     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
					     stderr=subprocess.DEVNULL, start_new_session=True)

	def end(self):
		if self.busy:
			os.killpg(self.busy.pid, signal.SIGKILL)
			self.busy.wait()
			self.busy = None

	def slower(self):
		"""What it makes of times: what compresses traces runs at the lowest priority."""
		return 5.0 if self.busy else 1.0


LOAD = Load()


@contextlib.contextmanager
def load():
	LOAD.begin()
	try:
		yield
	finally:
		LOAD.end()


@pytest.fixture(params=TIMES)
def times(request):
	"""How often the case has run before. The load stays for the next case, which mostly wants it, too."""
	if request.param:
		LOAD.begin()
	else:
		LOAD.end()
	return request.param


def comparable(run):
	"""The program's words in any order, since several processes speak; what follows a ~ differs."""
	lines = [re.sub(rb"~.*", b"~", line) for line in run.stdout.splitlines()]
	return sorted(line for line in lines if not line.startswith(b"~"))


def words(run, kind):
	"""The fields of all lines of a kind, without the mark of what differs."""
	found = [line.split("\t")[1:] for line in run.stdout.decode().splitlines()
		 if line.lstrip("~").split("\t", 1)[0] == kind]
	return [[field.lstrip("~") if kind != "put" else field for field in fields] for fields in found]


def pids(run, kind):
	return collections.Counter(int(fields[0].split()[0]) for fields in words(run, kind))


def written(run):
	"""What was written to files: (path, bytes), as often as it was."""
	return collections.Counter((event.path, event.ret) for event in run.events
				   if event.name == "write" and (event.ret or -1) >= 0
				   and event.path not in (None, "/dev/null"))


def said_written(run, places=None):
	"""The same by the program's words. `places`: what a name means, where it is not below the run's
	directory."""
	found = collections.Counter()
	for name, size in words(run, "put"):
		path = (places or {}).get(name, name)
		found[os.path.normpath(os.path.join(run.cwd, path)), int(size)] += 1
	return found


def children(run):
	"""The processes that fork events tell of."""
	return collections.Counter(event.args["child"] for event in run.of("fork")
				   if "child" in event.args)


def same_words(run, places=None, made=True):
	"""The trace agrees with the program about files and processes."""
	said, found = said_written(run, places), written(run)
	assert found == said, f"only said {said - found}, only in the trace {found - said}"
	if made:
		said, found = pids(run, "made"), children(run)
		assert found == said, f"only said {said - found}, only in the trace {found - said}"


def timed(runner, args, options=(), *, behind=0.0, **more):
	"""Runs traced, and asserts that the tracer is gone soon after the program."""
	run = runner.traced(args, options, settle=False, **more)
	begin = time.monotonic()
	wait_until(lambda: not tracers(run.token), 30, "the tracer's end")
	took = time.monotonic() - begin
	assert took < (END + behind) * PATIENCE * LOAD.slower(), f"the tracer ended {took:.1f} s after the program"
	return run


def hostile(name, case, *more):
	return [program(f"hostile_{name}"), case, *map(str, more)]


def same(runner, args, options=(), *, setup=None, notes=False, files=True, **more):
	"""Runs natively and traced, asserts that nobody outside sees a difference, and returns the latter.
	`notes`: warnings of ours are expected."""
	native = runner.native(args, setup=setup, **more)
	run = timed(runner, args, options, setup=setup, **more)
	assert comparable(run) == comparable(native), (run.stderr[-2000:], native.stderr[-2000:])
	texts = native.stdout, run.stdout
	saved = run.stderr
	native.stdout = run.stdout = b""
	if notes:
		run.stderr = run.program_stderr
	try:
		same_outside(native, run, files=files)
	finally:
		native.stdout, run.stdout = texts
		run.stderr = saved
	run.native = native
	return run


def sanitized():
	"""Whether the build has sanitizers, which need memory and /proc, and have a word of their own."""
	with open(TRACER, "rb") as file:
		return b"__asan_" in file.read()


def may(*command):
	"""Whether this host and user may run a command."""
	return subprocess.run(command, check=False, stdin=subprocess.DEVNULL,
			      capture_output=True).returncode == 0


def is_root():
	return os.geteuid() == 0


__all__ = ["END", "children", "comparable", "hostile", "is_root", "load", "may", "pids", "same",
	   "same_words", "said_written", "sanitized", "timed", "times", "words", "written"]
