"""--stage: files are written on the node and moved when they are complete."""

import os
import signal
import subprocess
import tempfile

import pytest

from lib.run import is_alive, program, wait_until
from lib.trace import Trace, trace_files


@pytest.fixture
def other():
	"""A directory on another file system than the tests'."""
	if not os.access("/dev/shm", os.W_OK):
		pytest.skip("no /dev/shm")
	with tempfile.TemporaryDirectory(dir="/dev/shm") as path:
		if os.stat(path).st_dev == os.stat(os.path.dirname(program("churn"))).st_dev:
			pytest.skip("one file system")
		yield path


def three(runner, stage, options=(), **more):
	script = "cat /etc/hostname; cat /etc/hostname; echo a >f; cat f"
	return runner.traced(["sh", "-c", script], ["--stage", stage, *options], **more)


@pytest.mark.parametrize("options", [[], ["--no-compress"]], ids=["gz", "plain"])
@pytest.mark.parametrize("place", ["same", "other"])
def test_all_is_moved(runner, other, place, options):
	stage = other if place == "other" else os.path.join(runner.fresh("stage"), "made", "here")
	run = three(runner, stage, options)
	assert run.status == 0 and len(run.traces) == 4 and os.listdir(stage) == []
	assert b"stay" not in run.stderr and b"still" not in run.stderr
	assert int(run.exit_line["files"]) == 4 and int(run.exit_line["events"]) == len(run.events)
	for trace in run.traces:
		assert os.stat(trace.file).st_mode & 0o7777 == 0o600 and os.stat(trace.file).st_nlink == 1
	assert all(name.endswith((".pfw.gz", ".pfw")) for name in os.listdir(os.path.dirname(run.prefix)))


def test_a_relative_stage(runner):
	cwd = runner.fresh("cwd")
	run = three(runner, "stage/", cwd=cwd)
	assert run.status == 0 and len(run.traces) == 4 and os.listdir(os.path.join(cwd, "stage")) == []


def test_complete_when_the_program_is_gone(runner, other):
	"""Whoever waits for the program finds the file in its place."""
	for _ in range(5):
		run = runner.traced([program("churn"), "2", "500"], ["--stage", other], settle=False)
		assert os.listdir(other) == [], run.stderr
		assert run.traces
		runner.settle(run.token)


def test_nothing_is_replaced(runner, other):
	"""A file of the same name stays, and the new one takes another."""
	prefix = os.path.join(runner.fresh("out"), "t")
	first = runner.traced(["true"], prefix=prefix)
	for _ in range(3):
		three(runner, other, prefix=prefix)
	assert len(trace_files(prefix)) == 13 and first.files[0] in trace_files(prefix)
	assert all(Trace(path).end for path in trace_files(prefix))


def test_what_cannot_be_moved_stays(runner, other):
	"""The place is gone in the meantime, and cannot be made again."""
	out = os.path.join(runner.fresh("out"), "sub")
	code = f"import shutil; shutil.rmtree('{out}'); open('{out}', 'w')"
	run = runner.traced(["sh", "-c", f'cat /etc/hostname; python3 -c "{code}"; cat /etc/hostname; :'],
			    ["--stage", other], prefix=os.path.join(out, "t"))
	assert run.status == 0
	stayed = trace_files(os.path.join(other, "dftrace"))
	assert len(stayed) == 3 and all(Trace(path).end for path in stayed)
	assert f"3 files stayed in {other}".encode() in run.stderr


def test_no_room_to_move_to(runner, other, base):
	"""Half a copy is taken away again; what was staged stays."""
	small = os.path.join(runner.fresh("small"), "t")
	inner = (f'mkdir -p {small} && mount -t tmpfs -o size=64k none {small} && '
		 f'dd if=/dev/zero of={small}/fill bs=1k count=60 2>/dev/null; "$@"; status=$?; '
		 f'sleep 0.3; ls {small} > {base}/listed; exit $status')
	if subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode:
		pytest.skip("no mount namespace")
	command = runner.command([program("churn"), "2", "2000"], ["--stage", other], f"{small}/t")
	run = runner.native(["unshare", "-m", "sh", "-c", inner, "sh", *command])
	runner.settle(run.token)
	with open(f"{base}/listed", encoding="utf-8") as file:
		assert file.read().split() == ["fill"], run.stderr
	stayed = trace_files(os.path.join(other, "dftrace"))
	assert stayed and b"stayed in" in run.stderr and b"No space left" in run.stderr
	assert all(Trace(path).end for path in stayed)


def test_killed_before_the_move(runner, other):
	"""What is staged when the tracer is killed is a valid trace."""
	run = runner.start(["sh", "-c", "cat /etc/hostname; echo a >f; sleep 100"], ["--stage", other])
	files = wait_until(lambda: trace_files(os.path.join(other, "dftrace")), what="a staged file")
	wait_until(lambda: len(Trace(files[0], whole=False).events) > 3 if trace_files(os.path.join(other, "dftrace")) else 0)
	tracer = runner.tracer_of(run)
	os.kill(tracer, signal.SIGKILL)
	wait_until(lambda: not is_alive(tracer))
	runner.finish(run)
	left = trace_files(os.path.join(other, "dftrace"))
	assert left and all(Trace(path, whole=False).start for path in left)


@pytest.mark.parametrize("stage", ["", "/proc/none", "/etc/hostname"])
def test_no_place_to_stage(runner, stage):
	run = runner.traced(["true"], ["--stage", stage])
	assert run.status == 125 and run.stderr.count(b"\n") == 1 and b"--stage" in run.stderr
