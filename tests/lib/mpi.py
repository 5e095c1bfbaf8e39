"""MPI programs: how they are built and started, and what they say of themselves."""

import collections
import functools
import os
import subprocess

import pytest

from .run import PROGRAMS, ROOT, Run

HERE = os.path.join(ROOT, "tests", "programs", "mpi")
# Static hwloc wants a udev that is not there.
NO_UDEV = os.path.join(ROOT, "examples", "fortran-mpiio-static", "no_udev.c")
# As root Open MPI wants to be told twice.
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
# By TCP MPI_Finalize of MPICH does not always end where ranks share two CPUs, traced or not.
SHARED_MEMORY = "self,sysv,posix"
# libgfortran has its mutexes by weak references: in a static program the ones that nobody pulls in stay null.
THREADS = [f"-Wl,-u,pthread_{name}" for name in (
	"mutex_init", "mutex_destroy", "mutex_lock", "mutex_trylock", "mutex_unlock", "cond_init", "cond_wait",
	"cond_broadcast", "cond_destroy", "create", "join", "self", "getspecific", "setspecific", "key_create",
	"key_delete")]
# UCX finds its transports through constructors, which only whole archives bring in.
STATIC = ["-Wl,--whole-archive", "-lucp", "-luct", "-lucs", "-lucm", "-Wl,--no-whole-archive", "-Wl,--start-group",
	  "-lmpichfort", "-lmpich", "-lhwloc", "-lltdl", "-lnuma", "-lm", "-lc", "-Wl,--end-group"]


class Form:
	"""An MPI and a way of linking: mpich.dyn, mpich.static, mpich.no-pie, openmpi.dyn …"""

	def __init__(self, text):
		self.text = text
		self.mpi, self.link = text.split(".")
		self.static = self.link.startswith("static")

	def __repr__(self):
		return self.text

	def build(self, name, *flags, strip=False):
		"""The program's path. `name` has the source's ending."""
		return _build(self.text, name, flags, strip)

	def command(self, source, flags):
		fortran = source.endswith(".f90")
		how = ["-O2", "-g", *flags]
		if fortran:
			# What mpif.h does not declare takes arguments of all types.
			how += ["-cpp", "-Wall", "-fallow-argument-mismatch"]
		else:
			how += ["-Wall", "-Wextra", "-Werror", "-I", os.path.dirname(HERE)]
		if self.link == "no-pie":
			how += ["-no-pie", "-fno-pie"]
		if not self.static:
			return [("mpifort." if fortran else "mpicc.") + self.mpi, *how, source]
		arch = subprocess.run(["gcc", "-print-multiarch"], check=True, capture_output=True, text=True).stdout.strip()
		return ["gfortran" if fortran else "gcc", *how, f"-{self.link}", f"-I/usr/include/{arch}/mpich", source,
			*(THREADS if fortran else []), NO_UDEV, *STATIC]

	def environment(self):
		# A static one cannot copy out of other processes.
		return {**AS_ROOT, "UCX_TLS": SHARED_MEMORY + ("" if self.static else ",cma")}

	def launcher(self, ranks):
		more = ["--oversubscribe", "--bind-to", "none"] if self.mpi == "openmpi" else []
		return [f"mpirun.{self.mpi}", *more, "-np", str(ranks)]


@functools.cache
def _build(text, name, flags, strip):
	form = Form(text)
	source = os.path.join(HERE, name)
	words = [name.split(".")[0], *(os.path.basename(flag).lstrip("-").replace("=", "") for flag in flags), text,
		 *(["strip"] if strip else [])]
	out = os.path.join(PROGRAMS, "forms", ".".join(words))
	newest = max(os.path.getmtime(os.path.join(HERE, file)) for file in os.listdir(HERE))
	if os.path.exists(out) and os.path.getmtime(out) > newest:
		return out
	os.makedirs(os.path.dirname(out), exist_ok=True)
	mine = f"{out}.{os.getpid()}"
	made = subprocess.run([*form.command(source, flags), "-o", mine], check=False, capture_output=True, text=True)
	assert made.returncode == 0, made.stderr
	if strip:
		subprocess.run(["strip", mine], check=True)
	os.rename(mine, out)
	return out


def forms(*texts):
	return [pytest.param(Form(text), id=text) for text in texts]


def launch(runner, form, ranks, args, options=(), *, native=False, wrapped=False, more=(), env=None,
	   timeout=120):
	"""Runs under the MPI's launcher: each rank under a tracer of its own or, `wrapped`, the launcher under one.
	`more`: arguments of the launcher."""
	run = Run(runner.fresh("native" if native else "traced"), runner.token())
	run.prefix = os.path.join(runner.fresh("out"), "t")
	launcher = [*form.launcher(ranks), *more]
	command = [*launcher, *args]
	if wrapped:
		command = runner.command(command, options, run.prefix)
	elif not native:
		command = [*launcher, *runner.command(args, options, run.prefix)]
	runner._execute(run, command, {**form.environment(), **(env or {})}, subprocess.DEVNULL, timeout)
	runner.settle(run.token)
	return run


Word = collections.namedtuple("Word", "name bytes file rank size more")


def words(cwd, rank):
	"""What a rank says that it did, call by call."""
	said = []
	with open(os.path.join(cwd, f"words.{rank}"), encoding="utf-8") as file:
		for line in file:
			name, size, path, *who = line.split()
			more = dict(pair.split("=") for pair in who[2:])
			numbers = [None if word == "-" else int(word) for word in (size, *who[:2])]
			said.append(Word(name, numbers[0], None if path == "-" else os.path.join(cwd, path),
					 *numbers[1:], {key: int(value) for key, value in more.items()}))
	return said


def rank_of(trace):
	"""The rank that the trace says it is of."""
	return int(trace.properties["rank"])


def calls(trace, names=None):
	return [e for e in sorted(trace.events, key=lambda e: e.id)
		if e.cat == "MPI" and (names is None or e.name in names)]


def agree(trace, said, cwd):
	"""The trace's MPI calls are the words', in order, with bytes, file, rank, size and arguments."""
	found = calls(trace)
	assert [e.name for e in found] == [word.name for word in said]
	for event, word in zip(found, said):
		assert event.args.get("size_sum") == word.bytes, (event, word)
		assert event.path == word.file, (event, word)
		if word.rank is not None:
			assert event.args.get("comm_rank") == word.rank, (event, word)
			assert event.args.get("comm_size") == word.size, (event, word)
		for key, value in word.more.items():
			assert event.args.get(key) == value, (event, word)
		assert event.args["level"] == 1 and event.args["ret"] == 0, event
