"""From outside a traced run is a native one, and its trace agrees with strace."""

import os
import re
import shutil
import signal
import subprocess
import sys

import pytest

from lib.oracle import values
from lib.run import BUILD, exit_line_agrees, program, same_outside
from lib.straced import agrees

PYTHON = """
import json, os, pathlib, subprocess, tempfile, threading
here = pathlib.Path('.')
(here / 'in.json').write_text(json.dumps(list(range(1000))))
print(sum(json.loads((here / 'in.json').read_text())))
os.makedirs('a/b', exist_ok=True)
for i in range(20):
    (here / f'a/b/{i}').write_bytes(bytes(i * 100))
print(sorted(os.listdir('a/b'))[:3], (here / 'a/b/7').stat().st_size)
os.rename('a/b/3', 'a/c')
os.symlink('../c', 'a/b/link')
print(os.readlink('a/b/link'), os.path.exists('a/b/link'))
print(subprocess.run(['sh', '-c', 'cat a/c | wc -c'], capture_output=True).stdout)
try:
    open('none')
except OSError as error:
    print(error)
raise SystemExit(9)
"""
PIPELINE = ("seq 1 2000 | tee numbers | grep 7 | sort -r | while read n; do echo $n; done | head -50 | "
	    "(cat; echo end >&2) > out; wc -c < out; for i in 1 2 3; do (echo $i > f$i & wait); done; "
	    "cat f? none; exit 5")
# Old time stamps, since git looks again into files that are as new as its index.
GIT = ("export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=pack.threads GIT_CONFIG_VALUE_0=1; "
       "export GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a "
       "GIT_COMMITTER_EMAIL=a@b GIT_AUTHOR_DATE='1700000000 +0000' "
       "GIT_COMMITTER_DATE='1700000000 +0000'; git init -q -b main r && cd r && seq 1 500 > f && "
       "mkdir d && echo x > d/g && touch -d @1600000000 f d/g && git add . && git commit -q -m one && "
       "seq 1 600 > f && touch -d @1600000100 f && "
       "git commit -q -a -m two && git log --oneline --stat && git repack -q -a -d && git fsck && git status")
TAR = "mkdir -p t/u; for i in 1 2 3 4 5 6 7 8; do seq 1 ${i}00 > t/u/$i; done; ln -s u t/l; touch -d @1 t; " \
      "tar --sort=name --mtime=@1 -czf t.tgz t && mkdir x && tar -xzf t.tgz -C x && tar -tvzf t.tgz | wc -l && " \
      "diff -r --no-dereference t x/t && echo same"
GCC = "echo 'int main(void) { return 7; }' > a.c && gcc -pipe -O1 a.c -o a && ./a"


def shell(text):
	return ["sh", "-c", text]



COMMANDS = {
	"true": ["true"],
	"false": ["false"],
	"exit-200": shell("exit 200"),
	"one-thread": [program("workers"), "threads", "1", "60"],
	"four-threads": [program("workers"), "threads", "4", "60"],
	"twenty-children": [program("workers"), "children", "20", "5"],
	"pipeline": shell(PIPELINE),
	"python": [sys.executable, "-c", PYTHON],
	"tar": shell(TAR),
	"git": shell(GIT),
	"gcc": shell(GCC),
}


def sorted_lines(raw):
	return b"\n".join(sorted(raw.split(b"\n")))


def no_build_ids(raw):
	"""What differs from one run of git and gcc to the next."""
	return re.sub(rb"in \d+\.\d+s", b"", raw)


@pytest.mark.parametrize("name", COMMANDS)
def test_same_outside(both, name):
	args = COMMANDS[name]
	native, traced = both.native(args), both.traced(args)
	if name == "twenty-children":
		native.stdout, traced.stdout = sorted_lines(native.stdout), sorted_lines(traced.stdout)
	same_outside(native, traced, normalise=no_build_ids if name in ("git", "gcc") else None)
	exit_line_agrees(traced)


# gcc and git make names up, from the process id or at random.
RANDOM = re.compile(r"/tmp/cc\w{6}|/tmp_(obj|pack|idx|rev|mtimes)_\w{6}|/\.tmp-\d+-pack-\w+|"
		    r"/\.git/t\w{6}$|/info/(refs|packs)_\w{6}$")


def no_random(path):
	return RANDOM.sub("<random>", path)


AGREE = {
	"one-thread": {},
	"four-threads": {"descriptors": False},
	"twenty-children": {},
	"pipeline": {},
	"python": {},
	"tar": {},
	"gcc": {"normalise": no_random},
	"git": {"normalise": no_random},
}


@pytest.mark.parametrize("name", AGREE)
def test_agrees_with_strace(runner, name):
	agrees(runner, COMMANDS[name], **AGREE[name])


@pytest.mark.parametrize("name", ["four-threads", "pipeline"])
def test_agrees_with_strace_as_parent(runner, name):
	agrees(runner, COMMANDS[name], ["--tracer", "parent"], **AGREE[name])


@pytest.mark.parametrize("count", [200])
def test_two_hundred_children(both, count):
	args = [program("workers"), "children", str(count), "3"]
	native, traced = both.native(args), both.traced(args)
	native.stdout, traced.stdout = sorted_lines(native.stdout), sorted_lines(traced.stdout)
	same_outside(native, traced)
	exit_line_agrees(traced)
	assert len(traced.traces) == count + 1
	assert len({trace.pid for trace in traced.traces}) == count + 1
	parent = next(trace for trace in traced.traces if any(e.name == "fork" for e in trace.events))
	forks = [e for e in parent.events if e.name == "fork"]
	assert {e.args["child"] for e in forks} == {e.ret for e in forks}
	assert {e.ret for e in forks} == {t.pid for t in traced.traces if t is not parent}
	waits = [e for e in parent.events if e.name == "wait" and e.ret > 0]
	assert sorted(e.args["status"] for e in waits) == sorted(
		(number % 7) << 8 for number in range(count))
	check_sums(traced)


def check_sums(run):
	"""The bytes that the program says it moved, per file, are the trace's."""
	said = {key: tuple(map(int, value.split())) for key, value in values(run.stdout).items()}
	written, read = dict.fromkeys(said, 0), dict.fromkeys(said, 0)
	for event in run.below():
		name = os.path.basename(event.path)
		if event.name in ("write", "pwrite"):
			written[name] += event.ret
		elif event.name in ("read", "pread"):
			read[name] += event.ret
	assert {name: (written[name], read[name]) for name in said} == said


@pytest.mark.parametrize("count", [1, 4, 64])
def test_threads_sums(both, count):
	run = both.traced([program("workers"), "threads", str(count), "40"])
	assert run.status == 3
	check_sums(run)
	trace = run.trace
	assert len({e.tid for e in run.below()}) == count
	assert set(trace.threads) >= {e.tid for e in run.below()}


@pytest.fixture(scope="session")
def go_program():
	if not shutil.which("go", path=os.environ["PATH"] + ":/usr/local/go/bin"):
		pytest.skip("no Go compiler")
	go = shutil.which("go", path=os.environ["PATH"] + ":/usr/local/go/bin")
	out = os.path.join(BUILD, "tests", "go_io")
	source = os.path.join(os.path.dirname(__file__), "..", "programs", "go_io.go")
	env = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "", "GO111MODULE": "off",
	       "GOCACHE": os.path.join(BUILD, "tests", "go-cache")}
	if not os.path.exists(out) or os.path.getmtime(out) < os.path.getmtime(source):
		subprocess.run([go, "build", "-o", out, source], env=env, check=True)
	return out


@pytest.fixture(scope="session")
def java_program():
	if not shutil.which("javac"):
		pytest.skip("no Java compiler")
	out = os.path.join(BUILD, "tests", "java")
	source = os.path.join(os.path.dirname(__file__), "..", "programs", "JavaIo.java")
	made = os.path.join(out, "JavaIo.class")
	if not os.path.exists(made) or os.path.getmtime(made) < os.path.getmtime(source):
		subprocess.run(["javac", "-d", out, source], check=True)
	return [shutil.which("java"), "-Xshare:auto", "-cp", out, "JavaIo"]


def data(cwd):
	os.mkdir(os.path.join(cwd, "data"))


def check_runtime(runner, args):
	"""Runtimes that schedule by time: what is equal are the calls on the program's own files."""
	native, traced = runner.native(args, setup=data), runner.traced(args, setup=data)
	same_outside(native, traced)
	exit_line_agrees(traced)
	moved = {}
	for event in traced.below(traced.path("data")):
		name = os.path.basename(event.path)
		kind = {"write": 0, "pwrite": 0, "read": 1, "pread": 1}.get(event.name)
		if kind is not None:
			moved.setdefault(name, [0, 0])[kind] += event.ret
	said = {key: value.split()[:2] for key, value in values(traced.stdout).items()}
	assert {name: [str(n) for n in both] for name, both in moved.items()} == said
	agrees(runner, args, setup=data, below="cwd", descriptors=False, renames=True)


def test_go(runner, go_program):
	check_runtime(runner, [go_program])


def test_java(runner, java_program):
	check_runtime(runner, java_program)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT,
				    signal.SIGPIPE, signal.SIGUSR2, signal.SIGRTMIN + 3])
def test_fatal_signals(both, number):
	args = shell(f"echo before > f; kill -{int(number)} $$; echo never")
	native, traced = both.native(args), both.traced(args)
	assert traced.status == -number
	same_outside(native, traced)
	assert traced.trace.end.args["signal"] == number


@pytest.mark.parametrize("status", [0, 1, 7, 125, 126, 127, 128, 137, 255])
def test_exit_statuses(both, status):
	traced = both.traced(shell(f"echo > f; exit {status}"))
	assert traced.status == status
	assert traced.trace.end.args["exit_status"] == status


def test_argument_zero_and_stdin(both):
	"""stdin, arguments with blanks and empty ones, and the environment arrive as they are."""
	args = shell('printf "%s|" "$0" "$@"; cat; env | sort') + ["zero", "", " a b ", "-o", "--", "*"]
	more = {"stdin": b"input\nmore", "env": {"X": "a\nb", "EMPTY": ""}}
	native, traced = both.native(args, **more), both.traced(args, **more)

	def clean(raw):
		return re.sub(rb"(DFTRACE_TEST_RUN|PWD|_)=.*", b"", raw)

	same_outside(native, traced, normalise=clean)


def test_program_that_outlives(both):
	"""A background process goes on after the program has ended, and is traced to its end."""
	args = shell("(sleep 0.5; echo late > late) >/dev/null 2>&1 & echo early")
	run = both.traced(args)
	assert run.status == 0 and run.stdout == b"early\n"
	assert os.path.exists(run.path("late"))
	assert run.of("open", run.path("late"))


def test_exec_chain(runner):
	"""Each image has a file of its own; the old one's end names the next."""
	args = shell("echo one > one; exec sh -c 'echo two > two; exec cat one two'")
	run = runner.traced(args)
	assert run.stdout == b"one\ntwo\n"
	assert len(run.traces) == 3 and len({trace.pid for trace in run.traces}) == 1
	chain = sorted(run.traces, key=lambda trace: trace.start.ts)
	for one, two in zip(chain, chain[1:]):
		assert "exec" in one.end.args and "exit_status" not in one.end.args
		last = [event for event in one.events if event.name == "exec"][-1]
		assert last.ret == 0
		assert last.path == one.names[one.end.args["exec"]]
		assert one.end.ts <= two.start.ts
	assert os.path.basename(chain[1].names[chain[1].end.args["exec"]]) == "cat"
	assert chain[2].end.args["exit_status"] == 0


@pytest.mark.full
@pytest.mark.parametrize("times", range(20))
def test_again_and_again(both, times):
	args = shell(PIPELINE)
	same_outside(both.native(args), both.traced(args))


@pytest.mark.parametrize("count", [500, pytest.param(10000, marks=pytest.mark.full)])
def test_short_lived_processes(both, count):
	args = shell(f"i=0; while [ $i -lt {count} ]; do /bin/true; i=$((i + 1)); done; echo $i")
	run = both.traced(args, timeout=600)
	assert run.status == 0 and run.stdout == f"{count}\n".encode()
	# Nothing but the loader's calls: only the shell has a file.
	assert len(run.traces) == 1
	assert len(run.of("fork")) == count
	assert len(run.of("wait")) >= count
