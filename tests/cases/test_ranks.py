"""Which rank a process is, by the environment of its launcher, and what is made of it."""

import glob
import os
import re
import subprocess

import pytest

from lib.jobs import by_rank
from lib.run import EXTRA, TRACER, owned, wait_until
from lib.trace import trace_files

HERE = os.path.dirname(os.path.abspath(__file__))
LABELS = ("rank", "local_rank", "world_size", "jobid", "step", "node", "launcher")
RANK_3 = {"PMI_RANK": "3", "PMI_SIZE": "8", "MPI_LOCALRANKID": "1"}


def recorded(name):
	"""A launcher's environment and what it says."""
	expected, env = {}, {}
	with open(os.path.join(HERE, "environments", name + ".env"), encoding="utf-8") as file:
		for line in file:
			key, _, value = line.rstrip("\n").removeprefix("# expect ").partition("=")
			if line.startswith("# expect "):
				expected[key] = value
			elif not line.startswith("#"):
				env[key] = value
	return env, expected


NAMES = sorted(os.path.basename(path)[:-4] for path in glob.glob(os.path.join(HERE, "environments", "*.env")))


def labels(trace):
	return {key: trace.properties[key] for key in LABELS if key in trace.properties}


@pytest.mark.parametrize("name", NAMES)
def test_launchers_environment(runner, name):
	"""As dftrace-run has it, and as a program that it traces gets it."""
	env, expected = recorded(name)
	run = runner.traced(["true"], env=env)
	assert run.status == 0 and labels(run.trace) == expected
	if "rank" in expected:
		assert run.trace.exec_name == f"Rank {expected['rank']} true"
		kinds = [(line["name"], line["args"]["name"], line["args"]["value"]) for line in run.trace.meta]
		assert ("rank", "rank", expected["rank"]) in kinds and ("PR", "rank", expected["rank"]) in kinds
	else:
		assert run.trace.exec_name == "true"

	words = [f"{key}={value}" for key, value in env.items()]
	run = runner.traced(["sh", "-c", 'exec env "$@" cat /etc/hostname', "sh", *words])
	rank, = [trace for trace in run.traces if trace.command.startswith("cat;")]
	if "rank" in expected:
		assert labels(rank) == expected


def test_helpers_carry_the_rank(runner):
	"""Children do, and programs whose environment is empty, and the other rank of a child is its own."""
	script = ("cat /etc/hostname; env -i cat /etc/hostname; (cat </etc/hostname);"
		  "PMI_RANK=5 cat /etc/hostname; sh -c 'cat /etc/hostname' & wait")
	run = runner.traced(["sh", "-c", script], env=RANK_3)
	found = by_rank(run)
	assert sorted(found) == [3, 5] and len(found[5]) == 1 and len(found[3]) >= 5


def test_rank_by_option(runner):
	for env in ({}, RANK_3):
		run = runner.traced(["true"], ["--rank", "07"], env=env)
		assert run.trace.properties["rank"] == "7" and run.trace.exec_name == "Rank 7 true"
	for word in ("-1", "x", ""):
		run = runner.traced(["true"], ["--rank", word])
		assert run.status == 125 and run.stderr.count(b"\n") == 1 and b"--rank" in run.stderr


def test_one_rank_speaks(runner):
	"""The line at the end comes from rank 0; from others when they are asked, or have lost something."""
	def line(rank, *options, **more):
		run = runner.traced(["true"], options, env={**RANK_3, "PMI_RANK": rank}, **more)
		assert run.status == 0
		return run.stderr.decode()

	assert line("0").startswith("dftrace-run: rank 0: ")
	assert line("3") == ""
	assert line("3", "-v").startswith("dftrace-run: rank 3: ")
	assert line("0", "-q") == ""


def test_loss_of_a_rank_is_said(runner):
	if not os.path.exists("/dev/full"):
		pytest.skip("no /dev/full")
	prefix = os.path.join(runner.fresh("gone"), "sub", "t")
	run = runner.traced(["sh", "-c", f"rm -rf {os.path.dirname(prefix)}; cat /etc/hostname"], env=RANK_3, prefix=prefix)
	assert b"rank 3: " in run.stderr and b"lost:write" in run.stderr


# --- the prefix ----------------------------------------------------------------

def test_expansions(runner):
	host = os.uname().nodename
	out = runner.fresh("out")
	env = {**RANK_3, "SLURM_JOB_ID": "12/../x"}
	run = runner.traced(["sh", "-c", "cat /etc/hostname; :"], env=env,
			    prefix=f"{out}/%j/%r-of-8/%h-%p-100%%")
	assert run.status == 0, run.stderr
	found = glob.glob(f"{out}/12_.._x/3-of-8/*")
	assert found and all(re.match(rf"{re.escape(host)}-\d+-100%-[0-9a-f]{{16}}-preload\.pfw\.gz",
				      os.path.basename(path)) for path in found)
	pids = {os.path.basename(path).removeprefix(host + "-").split("-")[0] for path in found}
	assert len(pids) == len(found) == 2


def test_what_is_not_known(runner):
	out = runner.fresh("out")
	run = runner.traced(["true"], prefix=f"{out}/%r/%j-t")
	assert run.status == 0 and os.listdir(f"{out}/none")[0].startswith("none-t-")
	assert f"{out}/*/none-t-*.pfw.gz".encode() in run.stderr


@pytest.mark.parametrize("prefix", ["100%", "a%q", "%", "a%%%"])
def test_unknown_expansion(runner, prefix):
	run = runner.traced(["true"], prefix=prefix)
	assert run.status == 125 and run.stderr.count(b"\n") == 1 and b"%r (rank)" in run.stderr


def test_percent_in_the_working_directory(runner):
	cwd = os.path.join(runner.fresh("cwd"), "50%r")
	os.mkdir(cwd)
	run = runner.native([TRACER, *EXTRA, "-o", "t", "--", "true"], cwd=cwd)
	runner.settle(run.token)
	assert run.status == 0 and len(trace_files(os.path.join(cwd, "t"))) == 1


def test_many_ranks_make_the_same_directories(runner):
	out = runner.fresh("out")
	token = runner.token()
	env = runner.environment(token, {})
	command = [TRACER, *EXTRA, "-q", "-o", f"{out}/a/b/c/d/e/%r/t", "--rank"]
	running = [subprocess.Popen([*command, str(rank), "--", "true"], env=env, stdin=subprocess.DEVNULL,
				    stderr=subprocess.PIPE) for rank in range(48)]
	assert [(process.communicate()[1], process.returncode) for process in running] == [(b"", 0)] * 48
	wait_until(lambda: not owned(token), what="the tracers' end")
	assert sorted(map(int, os.listdir(f"{out}/a/b/c/d/e"))) == list(range(48))
	assert all(len(os.listdir(f"{out}/a/b/c/d/e/{rank}")) == 1 for rank in range(48))


# --- which ranks -----------------------------------------------------------------

STATUS = ["grep", "-E", "^(TracerPid|Seccomp|NoNewPrivs):", "/proc/self/status"]


@pytest.mark.parametrize("ranks,rank,local,is_traced", [
	("0", 0, 0, True), ("0", 1, 0, False), ("0,4-7", 6, 1, True), ("0,4-7", 8, 1, False),
	("%16", 32, 0, True), ("%16", 8, 0, False), ("0,4-7,%16", 48, 3, True),
	("first-per-node", 12, 0, True), ("first-per-node", 0, 1, False), ("first-per-node,3", 3, 1, True),
])
def test_ranks_left_out(runner, ranks, rank, local, is_traced):
	"""No tracer, no filter, no file: as without us."""
	env = {"PMI_RANK": str(rank), "MPI_LOCALRANKID": str(local), "PMI_SIZE": "64"}
	native = runner.native(STATUS, env=env)
	run = runner.traced(STATUS, ["--ranks", ranks], env=env)
	assert run.status == 0
	assert (run.stdout == native.stdout) == (not is_traced)
	assert bool(run.files) == is_traced
	if not is_traced:
		assert run.stderr == b""


@pytest.mark.parametrize("ranks", ["", "a", "4-2", "1,", ",1", "%0", "%", "-1", "1-", "1;2", "last-per-node", "9" * 70])
def test_wrong_lists(runner, ranks):
	run = runner.traced(["true"], ["--ranks", ranks], env=RANK_3)
	assert run.status == 125 and run.stderr.count(b"\n") == 1 and b"0,4-7,%16" in run.stderr
	assert not run.files


def test_ranks_where_none_is_known(runner):
	run = runner.traced(["true"], ["--ranks", "0"])
	assert run.status == 125 and b"no launcher tells which rank this is" in run.stderr and not run.files
	run = runner.traced(["true"], ["--ranks", "first-per-node"], env={"PMI_RANK": "0"})
	assert run.status == 125 and b"first-per-node" in run.stderr and not run.files
	assert runner.traced(["true"], ["--ranks", "0", "--rank", "0"]).files


# --- around a launcher -------------------------------------------------------------

# It does what mpirun does: a program of its name forks and gives each rank its environment.
STARTER = """#!/bin/sh
n=$1; shift
cat /etc/hostname >/dev/null
for r in $(seq 0 $((n - 1))); do
	sh -c "cat /etc/hostname >/dev/null; exec env PMI_RANK=$r PMI_SIZE=$n $*" &
done
wait
"""


@pytest.fixture(params=["", "srun"])
def starter(request, runner):
	"""A launcher by name; in a job, its own environment tells a rank that is not its ranks'."""
	path = os.path.join(runner.fresh("bin"), "mpirun")
	with open(path, "w", encoding="utf-8") as file:
		file.write(STARTER)
	os.chmod(path, 0o755)
	outer = {"SLURM_JOB_ID": "5", "SLURM_STEP_ID": "0", "SLURM_PROCID": "0"} if request.param else {}
	return path, outer


def test_launcher_is_left_out(runner, starter):
	path, env = starter
	run = runner.traced([path, "3", "cat", "/etc/hostname"], env=env)
	assert run.status == 0
	for traces in by_rank(run, range(3)).values():
		assert len(traces) == 1
	assert b"mpirun's own processes are left out (--trace-launcher records them)" in run.stderr
	assert run.stderr.count(b"left out") == 1


def test_launcher_on_request(runner, starter):
	path, env = starter
	run = runner.traced([path, "2", "true"], ["--trace-launcher"], env=env)
	assert b"left out" not in run.stderr
	assert any("mpirun" in trace.command for trace in run.traces)
	assert {trace.properties.get("world_size") for trace in run.traces} >= {"2"}


def test_ranks_below_a_launcher(runner, starter):
	path, env = starter
	run = runner.traced([path, "4", "true"], ["--ranks", "1,3"], env=env)
	by_rank(run, [1, 3])
	assert b"2 of 4 ranks are left out by --ranks" in run.stderr


def test_no_rank_was_seen(runner, starter):
	path, env = starter
	run = runner.traced([path, "0", "true"], env=env)
	assert run.status == 0 and b"no rank was seen below mpirun" in run.stderr and not run.files


def test_one_rank_for_a_launcher(runner, starter):
	path, env = starter
	run = runner.traced([path, "1", "true"], ["--rank", "1"], env=env)
	assert run.status == 125 and b"mpirun starts several" in run.stderr


def test_launcher_that_starts_them_elsewhere(runner):
	path = os.path.join(runner.fresh("bin"), "srun")
	os.symlink("/usr/bin/true", path)
	run = runner.traced([path])
	assert run.status == 0 and run.stderr.count(b"put dftrace-run behind it: srun ... dftrace-run") == 1
	run = runner.traced(["sh", "-c", f"{path}; {path}"])
	assert run.status == 0 and run.stderr.count(b"put dftrace-run behind it") == 1
	run = runner.traced([path], ["--ranks", "0"])
	assert run.status == 125 and b"put dftrace-run behind it" in run.stderr


def test_not_enabled_in_a_child(runner):
	run = runner.traced(["sh", "-c", "cat /etc/hostname; DFTRACER_ENABLE=0 cat /etc/hostname; :"])
	assert len([trace for trace in run.traces if trace.command.startswith("cat;")]) == 1


# --- settings --------------------------------------------------------------------------

def test_environment_gives_the_same(runner):
	"""Each variable is the option, and an option wins over it."""
	out, other = runner.fresh("out"), runner.fresh("other")
	env = {"DFTRACER_LOG_FILE": f"{out}/t", "DFTRACER_DATA_DIR": "/etc", "DFTRACER_TRACE_COMPRESSION": "0"}
	command = ["cat", "/etc/hostname", "/proc/version"]
	run = runner.native([TRACER, *EXTRA, "-v", "--", *command], env=env)
	runner.settle(run.token)
	run.prefix = f"{out}/t"
	assert run.trace.file.endswith(".pfw") and not run.of("open", "/proc/version") and run.of("open", "/etc/hostname")
	assert b"settings: " in run.stderr and b"output: DFTRACER_LOG_FILE" in run.stderr
	assert b"data-dir: DFTRACER_DATA_DIR" in run.stderr and b"verbose: command line" in run.stderr
	run = runner.native([TRACER, *EXTRA, "-v", "-o", f"{other}/t", "-d", "all", "--", *command], env=env)
	runner.settle(run.token)
	run.prefix = f"{other}/t"
	assert run.of("open", "/proc/version") and b"output: command line" in run.stderr


@pytest.mark.parametrize("variable", ["DFTRACER_ENABLE", "DFTRACER_DISABLE_STDIO", "DFTRACER_TRACE_COMPRESSION"])
def test_environment_that_says_neither(runner, variable):
	run = runner.traced(["true"], env={variable: "maybe"})
	assert run.status == 125 and f"{variable}='maybe'".encode() in run.stderr
	assert runner.traced(["true"], env={variable: ""}).status == 0


def test_not_enabled(runner):
	for word in ("0", "OFF", "false"):
		run = runner.traced(STATUS, env={"DFTRACER_ENABLE": word})
		assert run.status == 0 and run.stderr == b"" and b"TracerPid:\t0\n" in run.stdout and not run.files


def test_print_command(runner):
	"""The line does what the environment did, in another directory, in an empty environment."""
	cwd, out = runner.fresh("cwd"), runner.fresh("out")
	env = {"DFTRACER_LOG_FILE": "sub/a b%r", "DFTRACER_DATA_DIR": "etc:/etc", "DFTRACER_DISABLE_STDIO": "1"}
	os.mkdir(os.path.join(cwd, "etc"))
	command = [TRACER, "--print-command", "-e", "!%meta", "--rank", "2", "--", "cat", "/etc/hostname", "a'b"]
	run = runner.native(command, env=env, cwd=cwd)
	assert run.status == 0 and run.stdout.count(b"\n") == 1 and run.stderr == b""
	line = run.stdout.decode()
	assert "--print-command" not in line and "--no-stdio" in line and not os.path.exists(os.path.join(cwd, "sub"))
	again = runner.native(["sh", "-c", line], cwd=out)
	runner.settle(again.token)
	again.prefix = os.path.join(cwd, "sub", "a b2")
	trace = again.trace
	assert trace.command == "cat;/etc/hostname;a'b" and trace.properties["rank"] == "2"
	assert {event.cat for event in trace.events} == {"POSIX"}


PRELOAD = "/usr/lib/libdftracer_preload.so:/nowhere/libother.so"


def test_preload_is_said_once(runner):
	for rank, count in (("0", 1), ("3", 0)):
		run = runner.traced(["sh", "-c", "echo $LD_PRELOAD"], env={**RANK_3, "PMI_RANK": rank, "LD_PRELOAD": PRELOAD})
		assert run.status == 0 and run.stdout.decode() == PRELOAD + "\n"
		assert run.stderr.count(b"is recorded twice") == count


def test_drop_preload(runner):
	for value, rest in ((PRELOAD, "/nowhere/libother.so"), ("libdftracer_preload_dbg.so", None), ("libother.so", "libother.so")):
		run = runner.traced(["sh", "-c", 'echo "${LD_PRELOAD-none}"'], ["--drop-preload"], env={"LD_PRELOAD": value})
		assert run.status == 0 and run.stdout.decode() == (rest or "none") + "\n"
		assert b"twice" not in run.stderr


def test_file_system_is_noted(runner):
	run = runner.traced(["true"])
	found = subprocess.run(["stat", "-f", "-c", "%T", os.path.dirname(run.prefix)], check=True,
			       capture_output=True, text=True).stdout.strip()
	said = run.trace.properties["filesystem"]
	assert said == found or said[:3] == found[:3], (said, found)
