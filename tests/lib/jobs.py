"""Parallel jobs: MPI programs of both MPIs, their launchers, Slurm on this host."""

import collections
import contextlib
import functools
import os
import shutil
import subprocess
import time

import pytest

from .run import PROGRAMS, ROOT, TRACER, Run

SOURCES = os.path.join(ROOT, "tests", "programs", "ranks")
# As root Open MPI wants to be told twice; with more ranks than CPUs, once.
OPEN_MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
	    "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none"}
# MPI_Finalize over TCP does not always end where ranks share two CPUs, traced or not.
ENVIRONMENT = {**OPEN_MPI, "UCX_TLS": "self,sysv,posix,cma"}
MPIS = ("openmpi", "mpich")


def run_as(who):
	"""How subprocess is told who runs a job: root, or an ordinary user. Skips where that cannot be."""
	if os.getuid():
		if who == "root":
			pytest.skip("not root")
		return {}
	if who == "root":
		return {}
	user = {"user": 65534, "group": 65534, "extra_groups": []}
	if subprocess.run(["/bin/sh", "-c", 'test -x "$0"', TRACER], check=False, cwd="/", **user).returncode:
		pytest.skip("other users may not enter this tree")
	return user


def open_to_all(runner):
	"""The runner's new directories are everybody's from now on."""
	fresh = runner.fresh

	def made(kind):
		path = fresh(kind)
		os.chmod(path, 0o777)
		return path

	runner.fresh = made
	return runner


@functools.cache
def mpi_program(mpi, name="rank_io.c"):
	"""The path of an MPI program."""
	compiler = ("mpifort." if name.endswith(".f90") else "mpicc.") + mpi
	if not shutil.which(compiler):
		pytest.skip(f"no {compiler}")
	source = os.path.join(SOURCES, name)
	out = os.path.join(PROGRAMS, "forms", f"{name.replace('.', '_')}.{mpi}")
	if os.path.exists(out) and os.path.getmtime(out) > os.path.getmtime(source):
		return out
	os.makedirs(os.path.dirname(out), exist_ok=True)
	mine = f"{out}.{os.getpid()}"
	subprocess.run([compiler, "-O2", "-g", source, "-o", mine], check=True)
	os.rename(mine, out)
	return out


def mpirun(mpi, ranks):
	return [f"mpirun.{mpi}", "-np", str(ranks)]


def job(runner, start, args, options=(), *, kind="ranks", prefix=None, env=None, timeout=120, native_args=None,
	settle=True, **more):
	"""Runs a parallel job: `start` is the launcher's line, `kind` says where dftrace-run stands: "native", "ranks" or
	"wrapped"."""
	run = Run(runner.fresh(kind), runner.token())
	run.prefix = prefix or os.path.join(runner.fresh("out"), "t")
	if kind == "native":
		command = [*start, *(native_args or args)]
	elif kind == "ranks":
		command = [*start, *runner.command(args, options, run.prefix)]
	else:
		command = runner.command([*start, *args], options, run.prefix)
	runner._execute(run, command, {**ENVIRONMENT, **(env or {})}, subprocess.DEVNULL, timeout, **more)
	if settle:
		runner.settle(run.token)
	return run


# Statuses with which launchers ended natively, by what was done to them.
natively = collections.defaultdict(set)


def same_status(run, native, *key):
	"""A launcher's status may be a race of its own (between a rank's end and its closed socket): then each outcome is
	one that comes natively, too, or where strace makes everything as slow: `native` is given the words for that. Natively
	Open MPI does not always come to an end after MPI_Abort."""
	slow = ["strace", "-DD", "-f", "-o", "/dev/null"] if shutil.which("strace") else []
	for attempt in range(40):
		if run.status in natively[key]:
			return
		with contextlib.suppress(subprocess.TimeoutExpired):
			natively[key].add(native(slow if attempt % 2 else []).status)
	assert run.status in natively[key], (run.status, natively[key], run.stderr[-2000:])


class MemoryGroup:
	"""A control group for memory."""

	def __init__(self, path):
		self.path = path

	def enter(self):
		"""Makes a process a member of it, before its exec."""
		with open(os.path.join(self.path, "cgroup.procs"), "w", encoding="ascii") as file:
			file.write("0")

	def kills(self):
		"""How many members the kernel has killed for want of memory."""
		for name in ("memory.oom_control", "memory.events"):
			with contextlib.suppress(OSError), open(os.path.join(self.path, name), encoding="ascii") as file:
				return int(dict(line.split() for line in file)["oom_kill"])
		return 0


@contextlib.contextmanager
def memory_group(limit):
	"""A control group with `limit` bytes of memory."""
	for mount, most in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
		path = os.path.join(mount, f"dftrace-tests-{os.getpid()}")
		with contextlib.suppress(OSError):
			os.mkdir(path)
		if os.path.exists(os.path.join(path, most)):
			break
		with contextlib.suppress(OSError):
			os.rmdir(path)
	else:
		pytest.skip("no control group for memory can be made here")
	try:
		with open(os.path.join(path, most), "w", encoding="ascii") as file:
			file.write(str(limit))
		yield MemoryGroup(path)
	finally:
		for _ in range(100):
			try:
				os.rmdir(path)
				break
			except OSError:
				time.sleep(0.1)


def lines(run):
	"""What all ranks have written: in no order."""
	return sorted(run.stdout.splitlines())


def by_rank(run, ranks=None):
	"""The traces of each rank."""
	found = {}
	for trace in run.traces:
		found.setdefault(int(trace.properties["rank"]), []).append(trace)
	if ranks is not None:
		assert sorted(found) == sorted(ranks), found
	return found


def written(traces, path):
	"""Bytes written to a file by system calls."""
	return sum(e.ret for trace in traces for e in trace.events
		   if e.name in ("write", "pwrite", "writev") and e.path == path and (e.ret or -1) > 0)
