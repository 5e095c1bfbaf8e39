"""What a program can see of itself is what it sees without us."""

import contextlib
import os
import re
import resource
import signal
import subprocess

import pytest

from lib.run import EXTRA, TRACER, owned, program, wait_until

SHELL = '"$@" & pid=$!; echo "started\t$pid"; echo "shell\t$$"; wait $pid; echo "status\t$?"'


def look(runner, tracer, before="", options=(), **more):
	"""Starts looks.c from a shell, natively or traced."""
	cwd = runner.fresh("look")
	prefix = os.path.join(runner.fresh("out"), "t")
	command = [program("looks"), "argument"]
	if tracer:
		command = [TRACER, "-q", "-o", prefix, *EXTRA, *options, "--", *command]
	run = runner.native(["sh", "-c", before + SHELL, "sh", *command], cwd=cwd, **more)
	runner.settle(run.token)
	run.lines = run.stdout.decode().splitlines()
	run.said = dict(line.split("\t", 1) for line in run.lines if "\t" in line)
	return run


def comparable(run):
	"""Everything but the numbers that differ from run to run."""
	gone = r"^(pid|ppid|pgrp|session|started|shell|env\tDFTRACE_TEST_RUN|env\tPWD|env\tOLDPWD)"
	return [line for line in run.lines if not re.match(gone, line)]


BEFORE = {
	"plain": "",
	"blocked-and-ignored": "trap '' USR1 PIPE CHLD; ulimit -c 0; umask 027; ",
	"limits": "ulimit -n 256; ulimit -v unlimited; ulimit -t 1000; ",
	"descriptors": "exec 5>/dev/null 7</etc/passwd 9<&0; ",
	"nice": "exec 2>&1; renice -n 5 -p $$ >/dev/null; ",
}


@pytest.mark.parametrize("name", BEFORE)
def test_nothing_differs(runner, name):
	native, traced = look(runner, False, BEFORE[name]), look(runner, True, BEFORE[name])
	assert comparable(traced) == comparable(native), (traced.stderr, native.stderr)
	assert traced.stderr == native.stderr
	assert native.said["status"] == "0"


@pytest.mark.parametrize("name", ["plain", "limits", "descriptors"])
def test_little_differs_in_the_parent_form(runner, name):
	"""There the program is a child: its pid is another one, all else stays."""
	options = ["--tracer", "parent"]
	native, traced = look(runner, False, BEFORE[name]), look(runner, True, BEFORE[name], options)
	assert comparable(traced) == comparable(native), (traced.stderr, native.stderr)


@pytest.mark.parametrize("options", [[], ["--no-seccomp"], ["--no-setptracer"]], ids=" ".join)
def test_same_process(runner, options):
	"""pid = $!, the parent is the shell, group and session are the shell's."""
	run = look(runner, True, options=options)
	assert run.said["pid"] == run.said["started"]
	assert run.said["ppid"] == run.said["shell"]
	assert run.said["wait"] == "-1 10"  # ECHILD: no child that it does not know
	assert run.said["children"] == "0 0 0 0 0"
	native = look(runner, False)
	assert native.said["wait"] == "-1 10" and native.said["children"] == "0 0 0 0 0"
	assert (run.said["pgrp"] == run.said["pid"]) == (native.said["pgrp"] == native.said["pid"])


def test_pending_signal_stays_pending(runner):
	"""A blocked and pending signal passes through dftrace-run's exec, as through any."""
	code = ("import os, signal, sys\n"
		"signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGRTMIN])\n"
		"os.kill(os.getpid(), signal.SIGUSR1)\n"
		"signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
		"os.execv(sys.argv[1], sys.argv[1:])\n")
	outputs = []
	for tracer in ([], [TRACER, "-q", "-o", os.path.join(runner.fresh("out"), "t"), *EXTRA, "--"]):
		run = runner.native(["/usr/bin/python3", "-c", code, *tracer, program("looks")])
		assert run.status == 0, run.stderr
		lines = run.stdout.decode().splitlines()
		outputs.append([line for line in lines if re.match("Sig|Shd|pending|signal", line)])
		runner.settle(run.token)
	assert outputs[0] == outputs[1]
	assert any(line.startswith("pending") for line in outputs[0])


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("form", ["detached", "parent"])
def test_standard_descriptors_that_are_closed(runner, closed, form):
	"""They stay closed, and whatever the program opens first gets their numbers."""
	cwd, prefix = runner.fresh("closed"), os.path.join(runner.fresh("out"), "t")
	inner = "ls -l /proc/self/fd > list; echo more >> list"
	with open(os.path.join(cwd, "in"), "wb"):
		pass
	lists = []
	for tracer in ([], [TRACER, "-o", prefix, *EXTRA, "--tracer", form, "--"]):
		args = ["sh", "-c", f'"$@" {closed}', "sh", *tracer, "sh", "-c", inner]
		run = runner.native(args, cwd=cwd)
		assert run.status == 0, run.stderr
		runner.settle(run.token)
		with open(os.path.join(cwd, "list"), encoding="utf-8") as file:
			lists.append(re.sub(r"^.*\d\d:\d\d ", "", file.read(), flags=re.MULTILINE))
		lists[-1] = re.sub(r"\d+(?=/fd)|\[\d+\]", "", lists[-1])
		os.unlink(os.path.join(cwd, "list"))
	assert lists[0] == lists[1]
	run.prefix, run.cwd = prefix, cwd
	assert run.of("open", os.path.join(cwd, "list"))


def test_full_stderr_never_blocks(both):
	"""Nobody reads stderr and its pipe is full: program and launcher see the end all the same."""
	code = ("import os, fcntl, sys\n"
		"flags = fcntl.fcntl(2, fcntl.F_GETFL)\n"
		"fcntl.fcntl(2, fcntl.F_SETFL, flags | os.O_NONBLOCK)\n"
		"try:\n    while True: os.write(2, b'x' * 100)\n"
		"except BlockingIOError: pass\n"
		"fcntl.fcntl(2, fcntl.F_SETFL, flags)\n"
		"open('f', 'w').close(); print('done', flush=True); sys.exit(4)\n")
	run = both.start(["/usr/bin/python3", "-c", code])
	assert run.process.stdout.readline() == b"done\n"
	wait_until(lambda: run.process.poll() is not None, 15, "the program's end")
	assert run.process.returncode == 4
	both.settle(run.token)
	assert run.of("open", run.path("f"))


def links(pid):
	"""What a process's descriptors are."""
	found = []
	for fd in os.listdir(f"/proc/{pid}/fd"):
		with contextlib.suppress(OSError):
			found.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
	return found


def test_pipes_close_with_the_program(runner):
	"""A launcher reads until EOF: the tracer holds none of the program's descriptors."""
	read_end, write_end = os.pipe()
	name = f"pipe:[{os.fstat(write_end).st_ino}]"
	run = runner.start(["sleep", "100"], ["--tracer", "detached"], pass_fds=[write_end])
	os.close(write_end)
	tracer = runner.tracer_of(run)
	assert name in links(run.process.pid)
	wait_until(lambda: name not in links(tracer), 5, "the tracer's copy to be closed")
	assert os.readlink(f"/proc/{tracer}/cwd") == "/"
	os.kill(run.process.pid, signal.SIGKILL)
	run.process.wait(10)
	assert os.read(read_end, 10) == b""
	os.close(read_end)
	runner.settle(run.token)


def test_timeout_ends_it(runner):
	prefix = os.path.join(runner.fresh("out"), "t")
	run = runner.native(["timeout", "1", TRACER, "-o", prefix, *EXTRA, "--", "sh", "-c",
			     "echo > f; exec sleep 100"])
	assert run.status == 124
	runner.settle(run.token)
	run.prefix = prefix
	assert any(trace.end.args.get("signal") == signal.SIGTERM for trace in run.traces)
	assert not owned(run.token)


def test_nohup(runner):
	prefix = os.path.join(runner.fresh("out"), "t")
	run = runner.native(["nohup", TRACER, "-o", prefix, *EXTRA, "--", "sh", "-c",
			     "kill -HUP $$; echo > f; echo survived"])
	runner.settle(run.token)
	assert run.status == 0 and run.stdout == b"survived\n"
	run.prefix = prefix
	assert run.of("open", os.path.join(run.cwd, "f"))


def test_time_counts_the_program(runner):
	"""bash's time sees the program's own CPU time, since it is the program."""
	prefix = os.path.join(runner.fresh("out"), "t")
	script = f"TIMEFORMAT='%U %S'; time {TRACER} -q -o {prefix} -- " \
		 "/usr/bin/python3 -S -c 'import time\nwhile time.process_time() < 0.6: pass'"
	run = runner.native(["bash", "-c", script])
	user, system = map(float, run.stderr.decode().replace(",", ".").split())
	assert 0.5 < user + system < 1.5


def test_limits_do_not_hit_the_tracer(runner):
	"""Few descriptors, little file size, little CPU time: the program's limits are not the tracer's."""
	def tight():
		resource.setrlimit(resource.RLIMIT_NOFILE, (16, 4096))
		resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))

	run = runner.traced([program("workers"), "children", "30", "3"], preexec_fn=tight)
	assert run.status == 3, run.stderr
	assert len(run.traces) == 31


def test_ptrace_fields_are_the_only_trace(runner):
	"""/proc/self/status differs in TracerPid and Seccomp, as the manual says, and nowhere else."""
	def status(tracer):
		run = runner.native([*tracer, "cat", "/proc/self/status"])
		runner.settle(run.token)
		found = dict(line.split(":\t", 1) for line in run.stdout.decode().splitlines())
		for key in ("Pid", "Tgid", "Ngid", "PPid", "NStgid", "NSpid", "NSpgid", "NSsid", "SigQ"):
			found.pop(key, None)
		return {key: value for key, value in found.items() if not key.startswith(("Vm", "Rss"))
			and "ctxt_switches" not in key}

	prefix = os.path.join(runner.fresh("out"), "t")
	native, traced = status([]), status([TRACER, "-q", "-o", prefix, "--"])
	different = {key for key in native if native[key] != traced[key]}
	assert different <= {"TracerPid", "Seccomp", "Seccomp_filters", "NoNewPrivs",
			     "Speculation_Store_Bypass", "SpeculationIndirectBranch"}
	assert "TracerPid" in different


def test_pid_one_of_a_namespace(runner):
	"""dftrace-run as the first process of its namespace takes the parent form, and says so."""
	if subprocess.run(["unshare", "-fp", "--mount-proc", "true"], check=False,
			  capture_output=True).returncode != 0:
		pytest.skip("no right to make a pid namespace")
	prefix = os.path.join(runner.fresh("out"), "t")
	run = runner.native(["unshare", "-fp", "--mount-proc", TRACER, "-o", prefix, *EXTRA, "--", "sh",
			     "-c", "echo > f; echo $$; exit 3"])
	assert run.status == 3
	assert len(run.stderr.decode().splitlines()) == 1 and b"pid 1" in run.stderr, run.stderr
	run.prefix = prefix
	assert run.of("open", os.path.join(run.cwd, "f"))
	assert run.trace.pid == int(run.stdout)


def test_pending_pid_namespace_is_refused(runner):
	if subprocess.run(["unshare", "-fp", "true"], check=False, capture_output=True).returncode != 0:
		pytest.skip("no right to make a pid namespace")
	run = runner.native(["unshare", "-p", TRACER, "-o", "t", "--", "true"])
	assert run.status == 125
	assert len(run.stderr.decode().splitlines()) == 1, run.stderr
