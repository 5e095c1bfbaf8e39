"""Runs a program natively and under dftrace-run, each time in a fresh directory."""

import contextlib
import itertools
import os
import re
import shutil
import signal
import subprocess
import time

from .trace import Trace, read_traces, trace_files

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("DFTRACE_BUILD", os.path.join(ROOT, "build")))
# Another one under the same cases: DFTRACE_RUN=build/static/dftrace-run.
STATIC = os.path.join(ROOT, "build", "static", "dftrace-run")
TRACER = os.path.abspath(os.environ.get("DFTRACE_RUN") or os.path.join(BUILD, "dftrace-run"))
PROGRAMS = os.path.join(BUILD, "tests", "programs")
# Given to every run: `make test-full` goes through the fallbacks with it.
EXTRA = os.environ.get("DFTRACE_TEST_OPTIONS", "").split()
# Whether calls are recorded inside the programs where that can be.
RECORDS = "recorder" in EXTRA
# How much longer everything may take: sanitizers and slow machines.
PATIENCE = float(os.environ.get("DFTRACE_TEST_PATIENCE", "1"))
EXIT_LINE = re.compile(
	rb"^dftrace-run: (?:rank \d+: )?(?P<events>\d+) events? in (?P<files>\d+) files? "
	rb"\((?P<lost>\d+) lost\).* -> (?P<pattern>.*)\n", re.MULTILINE)
NOTE = re.compile(rb"^dftrace-run: .*\n", re.MULTILINE)
TOKEN = "DFTRACE_TEST_RUN"

_counter = itertools.count(1)


def program(name):
	"""A test program's path; it is built before the first case runs."""
	return os.path.join(PROGRAMS, name)


def by_capture(stops, recorder):
	"""What a case expects where it depends on how calls are captured: of a host, say, that lacks what only the
	recorder needs."""
	return recorder if RECORDS else stops


def wait_until(condition, seconds=20, what="the condition"):
	"""Polls until `condition` gives something true, and returns that."""
	deadline = time.monotonic() + seconds * PATIENCE
	pause = 0.002
	while True:
		value = condition()
		if value:
			return value
		if time.monotonic() > deadline:
			raise AssertionError(f"waited {seconds * PATIENCE:.0f} s for {what}")
		time.sleep(pause)
		pause = min(pause * 1.5, 0.1)


def processes():
	return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def proc(pid, name, default=b""):
	"""A file of /proc/PID; `default` when the process is gone."""
	try:
		with open(f"/proc/{pid}/{name}", "rb") as file:
			return file.read()
	except OSError:
		return default


def state(pid):
	"""The state letter, None when gone."""
	stat = proc(pid, "stat")
	return stat.rpartition(b") ")[2][:1].decode() if stat else None


def is_alive(pid):
	return state(pid) not in (None, "Z", "X")


class Run:
	"""What came of one run."""

	def __init__(self, cwd, token, prefix=None):
		self.cwd, self.token, self.prefix = cwd, token, prefix
		self.stdout = self.stderr = b""
		self.status = None
		self._traces = None

	@property
	def exit_line(self):
		"""The match of the exit line; None when there is none."""
		return EXIT_LINE.search(self.stderr)

	@property
	def program_stderr(self):
		"""stderr without what dftrace-run itself says."""
		return NOTE.sub(b"", self.stderr)

	@property
	def notes(self):
		return [line.decode().rstrip("\n") for line in NOTE.findall(self.stderr)
			if not EXIT_LINE.match(line)]

	@property
	def files(self):
		return trace_files(self.prefix)

	@property
	def traces(self):
		"""All traces, read strictly."""
		if self._traces is None:
			self._traces = read_traces(self.prefix)
		return self._traces

	@property
	def trace(self):
		"""The only trace."""
		assert len(self.traces) == 1, self.traces
		return self.traces[0]

	@property
	def events(self):
		return [event for trace in self.traces for event in trace.events]

	def of(self, name, path=None):
		"""The events of a name, on a path."""
		return [e for e in self.events if e.name == name and path in (None, e.path)]

	def below(self, directory=None):
		"""The events on files below the run's directory."""
		top = (directory or self.cwd).rstrip("/") + "/"
		return [e for e in self.events if e.path and (e.path + "/").startswith(top)]

	def path(self, *names):
		return os.path.join(self.cwd, *names)


def owned(token):
	"""Every process of a run: the token is in the environment that it was started with."""
	needle = f"{TOKEN}={token}".encode()
	return [pid for pid in processes() if needle in proc(pid, "environ").split(b"\0")]


def tracers(token):
	"""The run's tracers: processes of our executable."""
	found = []
	for pid in owned(token):
		with contextlib.suppress(OSError):
			if os.path.samefile(f"/proc/{pid}/exe", TRACER):
				found.append(pid)
	return found


class Runner:
	"""Makes fresh directories below `base` and runs programs in them."""

	def __init__(self, base, options=()):
		self.base, self.options = str(base), list(options)
		self.tokens = []
		self.open = []

	def fresh(self, kind):
		path = os.path.join(self.base, f"{kind}{next(_counter)}")
		os.mkdir(path)
		return path

	def token(self):
		token = f"{os.getpid():07d}-{next(_counter):06d}"
		self.tokens.append(token)
		return token

	def environment(self, token, env):
		full = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": self.base,
			"TERM": "dumb", TOKEN: token}
		full.update(env or {})
		return {key: value for key, value in full.items() if value is not None}

	def command(self, args, options, prefix):
		out = ["-o", prefix] if prefix else []
		return [TRACER, *out, *self.options, *EXTRA, *options, "--", *args]

	def _execute(self, run, args, env, stdin, timeout, **more):
		feed = {"input": stdin} if isinstance(stdin, bytes) else {"stdin": stdin}
		result = subprocess.run(args, cwd=run.cwd, env=self.environment(run.token, env),
					stdout=more.pop("stdout", subprocess.PIPE),
					stderr=more.pop("stderr", subprocess.PIPE),
					timeout=timeout * PATIENCE, check=False, **feed, **more)
		run.stdout, run.stderr = result.stdout or b"", result.stderr or b""
		run.status = result.returncode
		return run

	def native(self, args, *, cwd=None, env=None, stdin=subprocess.DEVNULL, setup=None,
		   timeout=60, **more):
		run = Run(cwd or self.fresh("native"), self.token())
		if setup:
			setup(run.cwd)
		return self._execute(run, args, env, stdin, timeout, **more)

	def traced(self, args, options=(), *, cwd=None, env=None, stdin=subprocess.DEVNULL, setup=None,
		   timeout=120, settle=True, prefix=None, **more):
		"""Runs under dftrace-run and waits until the tracer has gone (`settle`), so that the
		traces of processes that outlived the program are complete as well."""
		run = Run(cwd or self.fresh("traced"), self.token())
		run.prefix = prefix or os.path.join(self.fresh("out"), "t")
		if setup:
			setup(run.cwd)
		command = self.command(args, options, run.prefix)
		self._execute(run, command, env, stdin, timeout, **more)
		if settle:
			self.settle(run.token)
		return run

	def start(self, args, options=(), *, cwd=None, env=None, prefix=None, native=False, **more):
		"""Starts a run and does not wait: run.process is its Popen."""
		run = Run(cwd or self.fresh("run"), self.token())
		run.prefix = prefix or os.path.join(self.fresh("out"), "t")
		command = args if native else self.command(args, options, run.prefix)
		more.setdefault("stdin", subprocess.DEVNULL)
		more.setdefault("stdout", subprocess.PIPE)
		more.setdefault("stderr", subprocess.PIPE)
		run.process = subprocess.Popen(command, cwd=run.cwd,
					       env=self.environment(run.token, env), **more)
		self.open.append(run.process)
		return run

	def finish(self, run, timeout=60, settle=True):
		out, err = run.process.communicate(timeout=timeout * PATIENCE)
		run.stdout, run.stderr = out or b"", err or b""
		run.status = run.process.returncode
		if settle:
			self.settle(run.token)
		return run

	def settle(self, token, seconds=30):
		wait_until(lambda: not tracers(token), seconds, "the tracer's end")

	def tracer_of(self, run):
		"""The tracer of a program in its own process, once it is there."""
		def found():
			for line in proc(run.process.pid, "status").decode().splitlines():
				if line.startswith("TracerPid:"):
					return int(line.split()[1])
			return None
		return wait_until(found, what="a tracer")

	def close(self):
		"""Ends what a failed case left behind, each process by its id."""
		for process in self.open:
			for stream in (process.stdin, process.stdout, process.stderr):
				with contextlib.suppress(OSError, ValueError):
					if stream:
						stream.close()
		for token in self.tokens:
			for pid in owned(token):
				with contextlib.suppress(OSError):
					os.kill(pid, signal.SIGKILL)
		for process in self.open:
			with contextlib.suppress(subprocess.TimeoutExpired):
				process.wait(10)
		if not os.environ.get("DFTRACE_TEST_KEEP"):
			shutil.rmtree(self.base, ignore_errors=True)


def tree(directory):
	"""What a directory holds, for comparing: type, mode, contents or target of every name."""
	found = {}
	for top, dirs, files in os.walk(os.fsencode(directory)):
		for name in dirs + files:
			path = os.path.join(top, name)
			status = os.lstat(path)
			what = None
			if os.path.islink(path):
				what = os.readlink(path)
			elif os.path.isfile(path) and status.st_mode & 0o444:
				with open(path, "rb") as file:
					what = file.read()
			found[os.path.relpath(path, os.fsencode(directory))] = (status.st_mode, what)
	return found


def same_outside(native, traced, *, files=True, normalise=None):
	"""Asserts that nobody outside can tell the runs apart: stdout, stderr, status, files. The
	directories' names are replaced, since they differ; `normalise` replaces what else does."""
	def text(run, raw):
		raw = raw.replace(run.cwd.encode(), b"<cwd>")
		return normalise(raw) if normalise else raw

	assert traced.status == native.status, (traced.status, native.status, traced.stderr[-2000:])
	assert text(traced, traced.stdout) == text(native, native.stdout)
	assert text(traced, traced.program_stderr) == text(native, native.stderr)
	assert not traced.notes, traced.notes
	if files:
		one, two = tree(native.cwd), tree(traced.cwd)
		assert sorted(one) == sorted(two)
		for name in one:
			if normalise:
				continue
			left = (one[name][0], text(native, one[name][1] or b""))
			assert left == (two[name][0], text(traced, two[name][1] or b"")), name


def exit_line_agrees(run):
	"""The exit line's numbers are the traces'."""
	line = run.exit_line
	assert line, run.stderr
	assert int(line["events"]) == len(run.events)
	assert int(line["files"]) == len(run.traces)
	assert int(line["lost"]) == 0, run.stderr
	assert not any(trace.lost() for trace in run.traces)


__all__ = ["BUILD", "EXTRA", "PATIENCE", "PROGRAMS", "RECORDS", "ROOT", "STATIC", "TRACER", "Run", "Runner", "Trace",
	   "by_capture", "exit_line_agrees", "is_alive", "owned", "proc", "processes", "program", "same_outside",
	   "state", "tracers", "tree", "wait_until"]
