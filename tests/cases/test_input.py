"""Bad input: one clear line, the right status, and nothing left behind."""

import os
import shutil
import stat
import subprocess

import pytest

from lib.run import EXTRA, TRACER, wait_until

BROKEN_ELF = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00\xb7\x00" + b"\x01\x00\x00\x00" + bytes(200)


def refused(runner, args, status, *words, cwd=None, env=None):
	"""Runs dftrace-run with whole arguments of the case's own."""
	run = runner.native([TRACER, *args], cwd=cwd, env=env)
	assert run.status == status, run.stderr
	lines = run.stderr.decode().splitlines()
	assert len(lines) == 1, lines
	assert lines[0].startswith("dftrace-run: ")
	assert len(lines[0]) < 400
	for word in words:
		assert word in lines[0], lines
	assert run.stdout == b""
	return run


@pytest.fixture
def place(runner):
	cwd = runner.fresh("bad")
	for name, mode, content in (("plain", 0o644, b"#!/bin/sh\n"), ("foreign", 0o755, BROKEN_ELF),
				    ("empty", 0o644, b"")):
		path = os.path.join(cwd, name)
		with open(path, "wb") as file:
			file.write(content)
		os.chmod(path, mode)
	os.mkdir(os.path.join(cwd, "dir"))
	return cwd


@pytest.mark.parametrize("form", ["detached", "parent"])
@pytest.mark.parametrize("program,status,word", [
	("no-such-program-anywhere", 127, "not found"),
	("./none", 127, "./none"),
	("./plain/under-a-file", 126, "./plain"),
	("./dir", 126, "./dir"),
	("./plain", 126, "./plain"),
	("./foreign", 126, "./foreign"),
	("", 127, ""),
])
def test_program_that_cannot_start(runner, place, form, program, status, word):
	if program == "./plain/under-a-file":
		status = (126, 127)
	else:
		status = (status,)
	run = runner.native([TRACER, *EXTRA, "--tracer", form, "-o", "out/t", "--", program, "arg"],
			    cwd=place)
	assert run.status in status, (run.status, run.stderr)
	lines = run.stderr.decode().splitlines()
	assert len(lines) == 1 and lines[0].startswith("dftrace-run: ") and word in lines[0], lines
	runner.settle(run.token)
	out = os.path.join(place, "out")
	assert not os.path.isdir(out) or not os.listdir(out)


@pytest.mark.parametrize("args,words", [
	(["--no-such-option", "--", "true"], ["--no-such-option"]),
	(["--formt", "v1", "--", "true"], ["--format"]),
	(["-Z", "--", "true"], ["Z"]),
	(["-o"], ["-o"]),
	(["-o", "", "--", "true"], ["-o"]),
	(["-o", "-", "--", "true"], ["-o"]),
	(["--format", "v3", "--", "true"], ["v3", "v1", "v2"]),
	(["--paths", "long", "--", "true"], ["long", "absolute", "given"]),
	(["--names", "C", "--", "true"], ["C", "trace", "kernel"]),
	(["--tracer", "none", "--", "true"], ["none", "detached", "parent"]),
	(["--max-files", "many", "--", "true"], ["many"]),
	(["--max-files", "-1", "--", "true"], ["-1"]),
	(["--max-files", "99999999999999999999", "--", "true"], ["99999999999999999999"]),
	(["-e", "%nonsense", "--", "true"], ["%nonsense", "%memory"]),
	(["-e", "nonsense", "--", "true"], ["nonsense"]),
	(["-e", "+%ipc,,!read", "--", "true"], ["-e"]),
	(["-e", "", "--", "true"], ["-e"]),
	(["-p", "1"], ["-p"]),
	(["--attach", "1"], ["attach"]),
	(["--"], []),
	(["-o", "t", "--"], []),
])
def test_usage(runner, args, words):
	refused(runner, args, 125, *words)


def test_alone_it_says_how_it_is_used(runner):
	run = runner.native([TRACER])
	assert run.status == 125 and run.stdout == b""
	assert b"dftrace-run" in run.stderr


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help(runner, option):
	run = runner.native([TRACER, option])
	assert run.status == 0 and run.stderr == b""
	text = run.stdout.decode()
	for word in ("--output", "--data-dir", "--trace", "--exclude", "--format", "--paths", "--names",
		     "--no-compress", "--max-files", "--tracer", "--no-placement", "--quiet",
		     "%memory", "%network", "%ipc", "125", "126", "127"):
		assert word in text, word
	assert "--no-seccomp" not in text


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_version(runner, option):
	run = runner.native([TRACER, option])
	assert run.status == 0 and run.stderr == b""
	assert len(run.stdout.splitlines()) == 1 and b"dftrace-run" in run.stdout


def test_straces_habits_are_accepted(runner):
	run = runner.traced(["true"], ["-f", "-y"])
	assert run.status == 0 and len(run.traces) == 1


def test_missing_directories_are_created(runner):
	prefix = os.path.join(runner.fresh("out"), "a", "b c", "d", "t")
	run = runner.traced(["sh", "-c", "echo > f"], prefix=prefix)
	assert run.status == 0 and len(run.traces) == 1


def test_prefix_that_is_a_directory(runner):
	"""An -o that ends in a slash is the directory."""
	top = runner.fresh("out")
	run = runner.traced(["true"], prefix=os.path.join(top, "new") + "/")
	assert run.status == 0, run.stderr
	assert len(os.listdir(os.path.join(top, "new"))) == 1


@pytest.mark.parametrize("ending", [".pfw", ".pfw.gz"])
def test_prefix_endings(runner, ending):
	top = runner.fresh("out")
	run = runner.traced(["true"], prefix=os.path.join(top, "t") + ending)
	run.prefix = os.path.join(top, "t")
	assert len(run.traces) == 1


def test_default_prefix(runner):
	cwd = runner.fresh("here")
	run = runner.native([TRACER, *EXTRA, "--", "sh", "-c", "cd /; echo"], cwd=cwd)
	runner.settle(run.token)
	assert run.status == 0
	run.prefix = os.path.join(cwd, "trace")
	assert len(run.traces) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else here")
@pytest.mark.parametrize("form", ["detached", "parent"])
def test_output_directory_that_is_not_writable(runner, form):
	top = runner.fresh("out")
	os.chmod(top, 0o555)
	for path in (os.path.dirname(runner.base), runner.base):
		os.chmod(path, os.stat(path).st_mode | stat.S_IXOTH)
	tool = os.path.join(runner.base, "dftrace-run")
	shutil.copy(TRACER, tool)
	run = subprocess.run([tool, *EXTRA, "--tracer", form, "-o", f"{top}/t", "--", "true"],
			     capture_output=True, check=False, user=65534, group=65534, extra_groups=[],
			     cwd="/")
	assert run.returncode == 125, run
	lines = run.stderr.decode().splitlines()
	assert len(lines) == 1 and top in lines[0]


@pytest.mark.parametrize("form", ["detached", "parent"])
def test_output_directory_below_a_file(runner, place, form):
	refused(runner, [*EXTRA, "--tracer", form, "-o", "plain/x/t", "--", "true"], 125, "plain", cwd=place)


def test_data_dir_that_does_not_exist_is_a_warning(runner):
	run = runner.traced(["sh", "-c", "echo ran"], ["-d", "/no/such/place"])
	assert run.status == 0 and run.stdout == b"ran\n"
	assert len(run.notes) == 1 and "/no/such/place" in run.notes[0], run.stderr


def test_under_another_tracer(runner):
	run = runner.native(["strace", "-f", "-o", "/dev/null", TRACER, *EXTRA, "-o", "t", "--", "true"])
	lines = run.stderr.decode().splitlines()
	assert run.status == 125 and len(lines) == 1 and lines[0].startswith("dftrace-run: "), run.stderr
	assert "trace" in lines[0]


@pytest.mark.parametrize("form", ["detached", "parent"])
def test_under_another_dftrace_run(runner, form):
	inner = os.path.join(runner.fresh("inner"), "t")
	run = runner.traced([TRACER, "-o", inner, "--tracer", form, "--", "sh", "-c", "echo in > f; exit 3"])
	assert run.status == 3
	notes = [line for line in run.notes]
	assert len(notes) == 1, run.stderr
	assert not os.listdir(os.path.dirname(inner))
	assert run.of("open", run.path("f"))


def test_under_gdb_like_tracer_does_not_hang(runner):
	"""What was said above is said at once, not after a time-out."""
	run = runner.start(["strace", "-f", "-o", "/dev/null", TRACER, "-o", "t", "--", "sleep", "100"],
			   native=True)
	wait_until(lambda: run.process.poll() is not None, 10, "the refusal")
	assert run.process.returncode == 125


def test_quiet(runner):
	run = runner.traced(["sh", "-c", "echo err >&2"], ["-q"])
	assert run.stderr == b"err\n"
	assert len(run.traces) == 1


def test_verbose_and_debug_say_more(runner):
	plain = runner.traced(["true"])
	assert len(plain.stderr.splitlines()) == 1
	for option in ("-v", "--debug"):
		run = runner.traced(["true"], [option])
		assert run.status == 0 and run.exit_line
		assert len(run.stderr) > len(plain.stderr)
