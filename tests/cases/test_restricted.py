"""Without rights: the core cases as an ordinary user, on each rung of the fallback ladder, in sandboxes and
under other views of /proc. The trace is the same, or what is missing is said."""

import collections
import os
import re
import shutil
import signal
import stat

import pytest

from lib.hostile import (comparable, hostile, is_root, may, said_written, same,  # noqa: F401
			 same_words, sanitized, timed, times, words, written)
from lib.hooked import some
from lib.oracle import differences, said, values
from lib.run import EXTRA, exit_line_agrees, program, Runner

USER = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all",
	"--inh-caps=-all"]
RUNGS = [["--no-seccomp"], ["--no-syscall-info"], ["--no-proc-mem"], ["--no-vm-readv"],
	 ["--no-proc-mem", "--no-vm-readv"],
	 ["--no-seccomp", "--no-syscall-info", "--no-proc-mem", "--no-vm-readv"]]


class Wrapped(Runner):
	"""Runs everything under another command, as setpriv or unshare."""

	wrap, mode = [], 0o777

	def fresh(self, kind):
		path = super().fresh(kind)
		os.chmod(path, self.mode)
		return path

	def command(self, args, options, prefix):
		return [*self.wrap, *super().command(args, options, prefix)]

	def native(self, args, **more):
		return super().native([*self.wrap, *args], **more)


@pytest.fixture(params=["detached", "parent"])
def user(request, base):
	"""Runs as an ordinary user without capabilities, which may still gain privileges by exec."""
	if not is_root():
		pytest.skip("only root can become somebody else")
	runner = Wrapped(base, ["--tracer", request.param])
	runner.wrap = USER
	yield runner
	runner.close()


CORE = {
	"exec among threads": hostile("exec", "among", 8),
	"exec in vfork": hostile("exec", "in-vfork", 3),
	"failing execs": hostile("exec", "fails"),
	"grandchildren": hostile("exec", "grandchildren", 12),
	"shared memory": hostile("clone", "share-memory"),
	"shared files": hostile("clone", "share-files"),
	"untraced": hostile("clone", "untraced"),
	"leaving": hostile("clone", "leave"),
	"terminal": hostile("signals", "ttou"),
	"traps": hostile("signals", "trap"),
	"waits": hostile("signals", "restart", 2),
	"queue": hostile("signals", "queue", 50),
	"threads": hostile("threads", "churn", 300),
	"leader first": hostile("threads", "leader-first", 0),
	"busy end": hostile("threads", "exit-group", 30),
	"killed thread": hostile("threads", "killed-thread", 1),
	"own filter": hostile("watch", "own-filter", 1),
	"descriptors": hostile("limits", "close-range"),
	"shell": ["sh", "-c", "mkdir d; for i in 1 2 3; do echo $i | tee d/f$i | wc -c; done; cat d/*; exit 4"],
	"python": ["/usr/bin/python3", "-S", "-c", "import os\nopen('f', 'w').write('text')\n"
		   "print(os.fork() and os.wait()[1])"],
}
PLACES = {"relative": "below/relative", "image": "below/image"}


def check_words(run):
	"""What the hostile programs say, where they do."""
	places = PLACES if words(run, "shared") or words(run, "put") and b"relative" in run.stdout else None
	if words(run, "shared"):
		places = {"image": "below/image"}
	said_all, found = said_written(run, places), written(run)
	if said_all:
		assert found == said_all, f"only said {said_all - found}, only in the trace {found - said_all}"


@pytest.mark.parametrize("name", CORE)
def test_as_a_user(user, times, name):
	"""No capability, no other rights than the program has."""
	files = not any(word in name for word in ("vfork", "busy", "threads"))
	run = same(user, CORE[name], files=files)
	check_words(run)
	assert run.events, "nothing was recorded"
	# A filter of the program's own may keep calls from us.
	filters = {"own_filter"} if name in ("own filter", "killed thread") else set()
	for trace in run.traces:
		assert set(trace.lost()) <= filters, trace.lost()


def test_every_call_as_a_user(user):
	"""Whatever the table has, tried without rights: the trace has each call with the result it had."""
	run = user.traced([program("everycall")], timeout=60)
	lines = said(run.stdout, run.cwd)
	assert len(lines) > 60
	names = {line.name for line in lines}
	theirs = collections.Counter((line.name, line.path) for line in lines if line.path)
	ours = collections.Counter((event.name, event.path) for event in run.events
				   if event.path and event.name in names)
	missing = theirs - ours
	assert not missing, missing


def test_user_sees_the_same(user):
	"""Besides what the manual lists, a program sees of itself what it sees without us."""
	native, run = user.native([program("looks")]), user.traced([program("looks")])
	clean = lambda run: [line for line in run.stdout.decode().splitlines()  # noqa: E731
			     if not re.match(r"(pid|ppid|pgrp|session|env\tDFTRACE|env\tPWD)", line)]
	assert clean(run) == clean(native)


def test_privileges_are_only_taken_where_the_filter_needs_it(user):
	"""no_new_privs is set for a filter without CAP_SYS_ADMIN, and not without a filter."""
	script = ["grep", "NoNewPrivs", "/proc/self/status"]
	assert user.native(script).stdout.split() == [b"NoNewPrivs:", b"0"]
	assert user.traced(script, ["--no-seccomp"]).stdout.split() == [b"NoNewPrivs:", b"0"]
	if "--no-seccomp" not in EXTRA:
		assert user.traced(script).stdout.split() == [b"NoNewPrivs:", b"1"]


def test_dumpable_zero_as_a_user(user, times):
	"""After it /proc/PID is closed to us: the program does not notice, and what is missing is counted."""
	run = same(user, hostile("watch", "hidden"))
	assert run.of("write", run.path("open"))
	opens = {event.path for event in run.of("open")}
	lost = sum(trace.lost().get("unreadable", 0) for trace in run.traces)
	# Only what was opened before still reads, and that is kept from us on those rungs.
	assert {run.path("hidden"), run.path("above")} <= opens or ("--no-proc-mem" in EXTRA and lost > 0)
	assert run.path("open") in opens
	# The child's memory is its own, and cannot be opened any more.
	assert run.path("child") in opens or lost > 0


@pytest.mark.parametrize("form", some("gcc.pie.O2", "gcc.static.O2"))
@pytest.mark.parametrize("threads", [0, 2])
def test_hooks_taken_out_as_a_user(user, form, threads):
	"""The calls in progress return, whatever lies where they return to."""
	args = [form.build("hooks_inside"), "withdrawn", str(threads)]
	native = user.native(args)
	run = user.traced(args, ["-x", "hooked_*"])
	assert native.status == 0, native.stderr
	assert (run.status, run.stdout) == (0, native.stdout), run.stderr
	assert sum(event.name == "hooked_tail1" for event in run.events) > 100


def test_program_that_may_not_be_read(user, times):
	"""An executable without the right to read it: it runs, and each name that is missing is counted."""
	def setup(cwd):
		shutil.copy(program("hostile_exec"), os.path.join(cwd, "closed"))
		os.chmod(os.path.join(cwd, "closed"), 0o711)

	native = user.native(["./closed", "in-place"], setup=setup)
	assert native.status == 7, native.stderr
	run = timed(user, ["./closed", "in-place"], setup=setup)
	assert (run.status, run.stdout) == (7, native.stdout), run.stderr
	wrote = [event.ret for event in run.events if event.name == "write" and event.ret == 5]
	if run.path("image") not in {event.path for event in run.of("open")}:
		assert sum(trace.lost().get("unreadable", 0) for trace in run.traces) > 0, run.stderr
		assert "lost:unreadable" in run.stderr.decode()
	assert wrote == [5] or run.trace.lost()


def test_output_of_another_user(user):
	"""No right to write the traces there: one line, 125, and the program is not started."""
	prefix = os.path.join(user.base, "locked", "t")
	os.mkdir(os.path.dirname(prefix), 0o755)
	run = user.traced(["sh", "-c", "echo started"], prefix=prefix)
	assert run.status == 125 and run.stdout == b""
	assert len(run.stderr.decode().splitlines()) == 1


def told(run):
	"""The events as a multiset that is the same for two runs of one program."""
	found = collections.Counter()
	for event in run.events:
		ret = event.ret if event.name in ("read", "write", "pread", "pwrite", "lseek", "open", "close",
						  "dup", "dup2", "readv", "writev", "access") else None
		path = event.path
		if path:
			path = path.replace(run.cwd, "<cwd>")
			path = re.sub(r"/proc/\d+|\[\d+\]", "<n>", path)
			# These are asked for as often as there is time.
			if path in ("<cwd>/y", "<cwd>/by-parent"):
				continue
		found[event.name, path, ret, event.errno, event.args.get("cut")] += 1
	return found


LADDER = {
	"fds": [program("fds"), "duplicates"],
	"ranges": [program("fds"), "ranges"],
	"everycall": [program("everycall")],
	"names": [program("odd"), "names"],
	"edges": [program("odd"), "edges"],
	"lengths": [program("odd"), "lengths"],
	"execs": hostile("exec", "fails"),
	"vfork": hostile("exec", "in-vfork", 2),
	"sharing": hostile("clone", "share-files"),
	"leaving": hostile("clone", "leave"),
	"limits": hostile("limits", "close-range"),
	"dups": hostile("limits", "dup-everything", 100),
	"queue": hostile("signals", "queue", 20),
	"shell": CORE["shell"],
}


@pytest.mark.parametrize("name", LADDER)
def test_each_rung_tells_the_same(runner, name):
	"""Slower ways of seeing see the same."""
	if EXTRA:
		pytest.skip("the suite is on a rung already")
	normal = runner.traced(LADDER[name])
	assert normal.status in (0, 4), normal.stderr
	want = told(normal)
	assert sum(want.values()) > 5
	for rung in RUNGS:
		run = runner.traced(LADDER[name], rung)
		assert run.status == normal.status
		difference = differences(want, told(run))
		assert not difference, f"{rung}: {difference}"
		assert [t.lost() for t in run.traces if t.lost()] == [t.lost() for t in normal.traces if t.lost()]


SANDBOXES = {
	"hidepid": ["unshare", "-m", "sh", "-c", "mount -t proc -o hidepid=2 proc /proc && exec "
		    + " ".join(USER) + ' "$@"', "sh"],
	"user namespace": [*USER, "unshare", "-Ur"],
	"all namespaces": [*USER, "unshare", "-Urpmuif", "--mount-proc"],
	"read-only root": ["unshare", "-m", "sh", "-c", 'mount -o bind "$BASE" "$BASE" && cd "$PWD" && '
			   'mount -o remount,ro,bind / && exec "$@"', "sh"],
	"bwrap": ["bwrap", "--unshare-all", "--dev-bind", "/", "/", "--proc", "/proc"],
}


@pytest.fixture(params=SANDBOXES)
def sandbox(request, base):
	wrap = SANDBOXES[request.param]
	if not may(*[word.replace('"$BASE"', f"'{base}'") for word in wrap], "true"):
		pytest.skip(f"{request.param} is not possible here")
	runner = Wrapped(base)
	runner.wrap = wrap
	yield runner
	runner.close()


@pytest.mark.parametrize("name", ["exec in vfork", "shared files", "threads", "shell"])
def test_in_a_sandbox(sandbox, name):
	# Where the rest may not be written, the directory of the case may.
	sandbox.wrap = [word.replace('"$BASE"', f"'{sandbox.base}'") for word in sandbox.wrap]
	native = sandbox.native(CORE[name])
	assert native.status in (0, 4) and not native.stderr, native.stderr
	run = timed(sandbox, CORE[name])
	assert run.status == native.status, run.stderr
	assert comparable(run) == comparable(native)
	assert run.program_stderr == native.stderr
	assert run.exit_line, run.stderr
	check_words(run)
	assert not any(trace.lost() for trace in run.traces)


FOREIGN = {"no mount": ["unshare", "-pf"],
	   "no proc": ["unshare", "-m", "sh", "-c", 'umount -l /proc && exec "$@"', "sh"],
	   "empty proc": ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"]}


@pytest.mark.parametrize("form", ["detached", "parent", None])
@pytest.mark.parametrize("name", FOREIGN)
def test_without_its_own_proc(base, name, form):
	"""/proc shows other processes under our numbers, or nothing: refused with a sentence, or right."""
	wrap = FOREIGN[name]
	if sanitized() and name != "no mount":
		pytest.skip("sanitizers want /proc")
	if not may(*wrap, "true"):
		pytest.skip("no right to make such a place")
	runner = Wrapped(base, ["--tracer", form] if form else [])
	runner.wrap = wrap
	try:
		native = runner.native(hostile("clone", "leave"))
		run = timed(runner, hostile("clone", "leave"))
		lines = run.stderr.decode().splitlines()
		if run.status == 125:
			assert len(lines) == 1 and "/proc" in lines[0], lines
			assert run.stdout == b"", "the program was started"
			return
		assert run.status == native.status, run.stderr
		assert comparable(run) == comparable(native)
		found, want = written(run), said_written(run, {"relative": "below/relative"})
		assert not found - want, "a name that is wrong"
		if found != want:
			assert len(lines) == 1 and "/proc" in lines[0], f"nothing was said: {lines}"
	finally:
		runner.close()


def test_umask_and_modes(user):
	"""What is written belongs to the user, and is for nobody else."""
	run = user.traced(["sh", "-c", "echo > f"])
	for name in run.files:
		status = os.stat(name)
		assert status.st_uid == 65534 and stat.S_IMODE(status.st_mode) == 0o600


def test_unprivileged_kill_everybody(user):
	"""kill(-1) of an ordinary user reaches the tracer as well, and neither dies of it."""
	wrap = ["unshare", "-pf", "--mount-proc"]
	if not may(*wrap, "true"):
		pytest.skip("no right to make a pid namespace")
	user.wrap = [*wrap, "sh", "-c", '"$@"; exit $?', "sh", *USER]
	args = hostile("signals", "everybody", int(signal.SIGTERM))
	native, run = user.native(args), user.traced(args)
	if "parent" in user.options:
		# There the program's own parent is hit, as any parent would be.
		return
	assert run.status == native.status and comparable(run) == comparable(native)
	same_words(run)


def test_values(user):
	"""Sums and counts of threads that race, without rights."""
	run = user.traced([program("workers"), "threads", "20", "3"])
	assert run.status == 3, run.stderr
	expected = sum(int(value.split()[0]) for value in values(run.stdout).values())
	assert sum(event.ret for event in run.below() if event.name == "pwrite") == expected
	exit_line_agrees(run)
