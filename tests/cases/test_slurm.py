"""srun and sbatch of a real Slurm on this host, and the example scripts."""

import os
import subprocess
import time

import pytest

from lib.jobs import ENVIRONMENT, by_rank, job, lines, mpi_program, open_to_all, run_as, same_status, written
from lib.run import ROOT, TRACER, Run, owned, wait_until
from lib.slurm import Cluster
from lib.trace import trace_files

EXAMPLES = os.path.join(ROOT, "examples", "jobs")
TIMES = [0, *(pytest.param(n, marks=pytest.mark.full) for n in range(1, 20))]
# --mpi, and whose program it can start.
KINDS = {"none": None, "pmi2": "mpich", "pmix": "openmpi"}


@pytest.fixture(scope="module")
def cluster():
	made = Cluster()
	yield made
	made.stop()


@pytest.fixture(params=["root", "user"])
def user(request, runner):
	options = run_as(request.param)
	if not options:
		return options
	open_to_all(runner)
	return options


def srun(kind, ranks):
	return ["srun", *([] if kind == "none" else [f"--mpi={kind}"]), "-n", str(ranks), "--overcommit"]


def said(stderr):
	"""What was said, but for srun's words on waiting for its turn."""
	return [line for line in stderr.splitlines() if not line.startswith(b"srun: job ")]


@pytest.mark.parametrize("kind", KINDS)
def test_srun(runner, cluster, user, kind):
	args = [mpi_program(KINDS[kind])] if KINDS[kind] else ["sh", "-c", "cat /etc/hostname; echo $SLURM_PROCID"]
	more = {"env": cluster.environment, **user}
	native = job(runner, srun(kind, 4), args, kind="native", **more)
	run = job(runner, srun(kind, 4), args, **more)
	assert native.status == run.status == 0, (native.stderr, run.stderr)
	assert lines(run) == lines(native) and said(run.program_stderr) == said(native.stderr)
	jobs = set()
	for rank, traces in by_rank(run, range(4)).items():
		for trace in traces:
			assert trace.properties["launcher"] == "Slurm" and trace.properties["world_size"] == "4"
			assert trace.properties["local_rank"] == str(rank)
			assert (trace.properties["step"], trace.properties["node"]) == ("0", "0")
			jobs.add(trace.properties["jobid"])
		if KINDS[kind]:
			path = run.path(f"own.{rank}")
			assert written(traces, path) == os.path.getsize(path) == 100 * (10 + rank)
	assert len(jobs) == 1 and run.stderr.count(b"dftrace-run: rank 0: ") == 1


def test_ranks_that_run_free(runner, cluster):
	args = ["sh", "-c", "echo $(grep -E '^(TracerPid|Seccomp):' /proc/self/status)"]
	run = job(runner, srun("none", 4), args, ["--ranks", "%2"], env=cluster.environment)
	assert run.status == 0 and lines(run).count(b"TracerPid: 0 Seccomp: 0") == 2
	by_rank(run, [0, 2])
	run = job(runner, srun("none", 4), args, ["--ranks", "first-per-node"], env=cluster.environment)
	by_rank(run, [0])


def test_srun_under_a_tracer(runner, cluster):
	"""Its tasks are not below it: it runs as without us, and what to do is said once."""
	run = job(runner, srun("none", 2), ["true"], kind="wrapped", env=cluster.environment)
	assert run.status == 0 and not run.files
	assert run.stderr.count(b"put dftrace-run behind it: srun ... dftrace-run") == 1


def batch(runner, cluster, script, args, *, env=None, ranks=4, **user):
	"""Runs a batch script to its end, in a directory of its own."""
	run = Run(runner.fresh("batch"), runner.token())
	path = os.path.dirname(TRACER) + ":/usr/local/bin:/usr/bin:/bin"
	full = {**ENVIRONMENT, **cluster.environment, "SLURM_OVERCOMMIT": "1", **(env or {}), "PATH": path}
	# srun would want to have stdin.
	runner._execute(run, ["sbatch", "--wait", "-n", str(ranks), "-o", run.path("said"), script, *args], full,
			subprocess.DEVNULL, 120, **user)
	runner.settle(run.token)
	with open(run.path("said"), "rb") as file:
		run.stdout = file.read()
	return run


def settle_prefix(run):
	"""The traces of the only job that the directory has."""
	job_directory, = os.listdir(run.path("traces"))
	directory = run.path("traces", job_directory)
	ranks = {}
	for name in os.listdir(directory):
		prefix = os.path.join(directory, name.split("-")[0])
		ranks.setdefault(name.split("-")[0], prefix)
	return job_directory, ranks


@pytest.mark.parametrize("script,mpi,env", [
	("slurm.sh", "openmpi", {"MPI": "pmix"}), ("slurm.sh", "mpich", {"MPI": "pmi2"}),
	("batch-mpirun.sh", "openmpi", {"MPIRUN": "mpirun.openmpi"}),
	("batch-mpirun.sh", "mpich", {"MPIRUN": "mpirun.mpich", "HYDRA_LAUNCHER": "fork"}),
])
def test_batch_scripts(runner, cluster, user, script, mpi, env):
	"""The examples: a trace per rank, with the job in its name and in it."""
	run = batch(runner, cluster, os.path.join(EXAMPLES, script), [mpi_program(mpi)], env=env, **user)
	assert run.status == 0, run.stdout
	assert [line for line in lines(run) if line.startswith(b"rank ")] == \
		[b"rank %d of 4, sum 6" % rank for rank in range(4)]
	job_directory, ranks = settle_prefix(run)
	assert sorted(ranks) == [f"rank{rank}" for rank in range(4)]
	for rank in range(4):
		run.prefix, run._traces = ranks[f"rank{rank}"], None
		traces = by_rank(run, [rank])[rank]
		assert {trace.properties["jobid"] for trace in traces} == {job_directory}
		assert written(traces, run.path(f"own.{rank}")) == 100 * (10 + rank)


def test_mpich_in_a_batch_script(runner, cluster):
	"""There mpirun starts its ranks by srun, so none is below it."""
	script = runner.fresh("script") + "/job"
	with open(script, "w", encoding="utf-8") as file:
		file.write('#!/bin/sh\nexec dftrace-run -o traces/%j/rank%r -- mpirun.mpich -np 2 "$@"\n')
	run = batch(runner, cluster, script, [mpi_program("mpich")], ranks=2)
	assert run.status == 0 and b"put dftrace-run behind it" in run.stdout


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_example_of_mpirun(runner, mpi):
	run = Run(runner.fresh("example"), runner.token())
	path = os.path.dirname(TRACER) + ":/usr/local/bin:/usr/bin:/bin"
	env = {**ENVIRONMENT, "PATH": path, "MPIRUN": f"mpirun.{mpi}", "RANKS": "3"}
	runner._execute(run, [os.path.join(EXAMPLES, "mpirun.sh"), mpi_program(mpi)], env, subprocess.DEVNULL, 60)
	runner.settle(run.token)
	assert run.status == 0, run.stderr
	for rank in range(3):
		run.prefix, run._traces = run.path("traces", f"rank{rank}"), None
		by_rank(run, [rank])


def test_example_of_flux(runner):
	"""With a stand-in that does what Flux's manual says: nothing of what was exported outside is needed, or wanted."""
	run = Run(runner.fresh("example"), runner.token())
	binaries = runner.fresh("bin")
	os.symlink(os.path.join(ROOT, "tests", "lib", "flux"), os.path.join(binaries, "flux"))
	env = {"PATH": f"{binaries}:{os.path.dirname(TRACER)}:/usr/bin:/bin", "RANKS": "9", "DFTRACER_ENABLE": "0",
	       "DFTRACER_LOG_FILE": "/nowhere/t"}
	args = ["flux", "proxy", "\u01922oLkTLb", os.path.join(EXAMPLES, "flux.sh"), "3", "sh", "-c",
		"cat /etc/hostname; echo ${DFTRACER_ENABLE-unset}"]
	runner._execute(run, args, env, subprocess.DEVNULL, 60)
	runner.settle(run.token)
	assert run.status == 0 and lines(run).count(b"unset") == 3, run.stderr
	assert run.stderr.count(b"dftrace-run: rank 0: ") == 1
	job_directory, ranks = settle_prefix(run)
	assert job_directory == "\u01922oLkTLb" and sorted(ranks) == ["rank0", "rank1", "rank2"]
	for rank in range(3):
		run.prefix, run._traces = ranks[f"rank{rank}"], None
		for trace in by_rank(run, [rank])[rank]:
			assert (trace.properties["launcher"], trace.properties["world_size"]) == ("Flux", "3")
			assert trace.properties["jobid"] == "\u01922oLkTLb" and trace.properties["local_rank"] == str(rank)


def spin(runner, cluster, kind):
	"""Starts ranks that write until they are ended. @return the run and the job."""
	run = Run(runner.fresh("spin"), runner.token())
	run.prefix = os.path.join(runner.fresh("out"), "t")
	args = [mpi_program(KINDS[kind]), "spin"]
	before = set(cluster.jobs())
	run.process = subprocess.Popen([*srun(kind, 3), *runner.command(args, [], run.prefix)], cwd=run.cwd,
				       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
				       env=runner.environment(run.token, {**ENVIRONMENT, **cluster.environment}))
	runner.open.append(run.process)
	wait_until(lambda: all(os.path.exists(run.path(f"own.{rank}")) and
			       os.path.getsize(run.path(f"own.{rank}")) > 3000 for rank in range(3)), 40, "the ranks")
	number, = set(cluster.jobs()) - before
	return run, number


def check_ended(runner, run, cluster):
	wait_until(lambda: not owned(run.token), 30, "the end of everything")
	wait_until(lambda: not cluster.jobs(), 30, "the end of the job")
	for rank, traces in by_rank(run, range(3)).items():
		path = run.path(f"own.{rank}")
		cut = sum(e.args["count"] for trace in traces for e in trace.events
			  if e.name == "write" and e.path == path and "cut" in e.args)
		assert written(traces, path) <= os.path.getsize(path) <= written(traces, path) + cut
		assert all(trace.end for trace in traces)


@pytest.mark.parametrize("kind", ["pmi2", "pmix"])
@pytest.mark.parametrize("how", ["scancel", "scancel-kill", "srun-term", "srun-int-twice"])
@pytest.mark.parametrize("times", TIMES)
def test_a_job_is_ended(runner, cluster, moment, how, kind, times):
	run, number = spin(runner, cluster, kind)
	time.sleep(moment(0.5))
	if how == "scancel":
		cluster.run("scancel", number)
	elif how == "scancel-kill":
		cluster.run("scancel", "--signal=KILL", number)
	elif how == "srun-term":
		run.process.terminate()
	else:
		run.process.send_signal(2)
		time.sleep(0.3)
		run.process.send_signal(2)
	run.process.communicate(timeout=60)
	assert run.process.returncode != 0
	check_ended(runner, run, cluster)
	assert trace_files(run.prefix)


@pytest.mark.parametrize("how", ["abort", "segv", "exit"])
@pytest.mark.parametrize("kind", ["pmi2", "pmix"])
@pytest.mark.parametrize("times", TIMES)
def test_a_rank_ends_badly(runner, cluster, kind, how, times):
	start = [*srun(kind, 3), "--kill-on-bad-exit=1"]
	args = [mpi_program(KINDS[kind]), how]
	run = job(runner, start, args, env=cluster.environment)
	wait_until(lambda: not owned(run.token), 20, "the end of everything")
	same_status(run, lambda slow: job(runner, start, [*slow, *args], kind="native", env=cluster.environment), kind, how)
	for traces in by_rank(run, range(3)).values():
		assert all(trace.end for trace in traces)
