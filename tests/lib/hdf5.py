"""What the cases of HDF5 share: programs in many forms, their words, and the trace's."""

import collections
import functools
import os
import re
import shutil
import subprocess

import pytest

from .run import PROGRAMS, ROOT

HERE = os.path.join(ROOT, "tests", "programs", "hdf5")
Call = collections.namedtuple("Call", "name file object size")


@functools.cache
def multiarch():
	return subprocess.run(["gcc", "-print-multiarch"], check=True, capture_output=True).stdout.decode().strip()


# libgfortran takes its mutexes by weak references: see examples/hdf5-static/Makefile.
THREADS = [f"-Wl,-u,pthread_{name}" for name in (
	"mutex_init mutex_destroy mutex_lock mutex_trylock mutex_unlock cond_init cond_wait cond_broadcast "
	"cond_destroy create join self getspecific setspecific key_create key_delete").split()]


@functools.cache
def build(source, form):
	"""The program's path. `form`: FLAVOUR.LINK[.strip], with serial, mpich or openmpi as the flavour. Links are dynamic, no-pie,
	static, and mixed: HDF5 static, all else dynamic. The case is skipped where this machine cannot make it."""
	flavour, link, *strip = form.split(".")
	fortran = source.endswith(".f90")
	headers = f"/usr/include/hdf5/{flavour}"
	if not os.path.exists(os.path.join(headers, "hdf5.h")):
		pytest.skip(f"no HDF5 for {flavour}")
	compiler = "gfortran" if fortran else "gcc"
	if flavour != "serial":
		compiler = f"{'mpifort' if fortran else 'mpicc'}.{flavour}"
	if not shutil.which(compiler):
		pytest.skip(f"no {compiler}")
	out = os.path.join(PROGRAMS, "hdf5", f"{os.path.splitext(os.path.basename(source))[0]}.{form}")
	path = os.path.join(HERE, source)
	newest = max(map(os.path.getmtime, [path, *(os.path.join(HERE, name) for name in os.listdir(HERE))]))
	if os.path.exists(out) and os.path.getmtime(out) > newest:
		return out
	os.makedirs(os.path.dirname(out), exist_ok=True)
	# The other half of the cases may be making the same one.
	mine = f"{out}.{os.getpid()}"
	flags = ["-g", "-O1", "-J", os.path.dirname(out)] if fortran else \
		["-g", "-O1", "-std=gnu17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror"]
	libraries = [*(["-lhdf5_fortran"] if fortran else []), "-lhdf5"]
	if link == "static":
		flags.append("-static")
		libraries += ["-lsz", "-laec", "-lz", "-lm"]
	elif link == "mixed":
		libraries = ["-Wl,-Bstatic", *libraries, "-lsz", "-laec", "-Wl,-Bdynamic", "-lz", "-lm"]
	elif link == "no-pie":
		flags += ["-no-pie", "-fno-pie"]
	command = [compiler, *flags, f"-I{headers}", path, *(THREADS if fortran and link == "static" else []),
		   f"-L/usr/lib/{multiarch()}/hdf5/{flavour}", *libraries, "-o", mine]
	made = subprocess.run(command, check=False, capture_output=True)
	if made.returncode != 0:
		pytest.skip(f"{form}: {made.stderr.decode().splitlines()[-1]}")
	if strip:
		subprocess.run(["strip", mine], check=True)
	os.rename(mine, out)
	return out


def told(text):
	"""The program's lines `hdf5`, in order."""
	found = []
	for line in text.decode().splitlines():
		kind, *fields = line.split("\t")
		if kind == "hdf5":
			name, *rest = fields
			file, what, size = (None if field == "-" else field for field in rest)
			found.append(Call(name, file, what, None if size is None else int(size)))
	return found


def hdf5(run):
	"""The trace's HDF5 calls, in order."""
	return sorted((event for event in run.events if event.cat == "HDF5"), key=lambda event: (event.ts, event.id))


def seen(run):
	return [Call(event.name, os.path.basename(event.path) if event.path else None, event.args.get("object_path"),
		     event.args.get("size_sum")) for event in hdf5(run)]


def same_calls(run, text=None):
	"""Asserts that the trace has what the program tells, and shows where it ends."""
	expected, found = told(run.stdout if text is None else text), seen(run)
	assert expected
	for at, (one, two) in enumerate(zip(expected, found)):
		assert two == one, f"call {at}: the program says {one}, the trace {two}"
	assert len(found) == len(expected), (expected[len(found):][:5], found[len(expected):][:5])


def lost(run):
	"""What could not be seen, over all processes."""
	counts = collections.Counter()
	for trace in run.traces:
		counts.update(trace.lost())
	return dict(counts)


def above(run):
	"""For each event of the run, by file: the events around it, innermost first."""
	found = {}
	for trace in run.traces:
		by_id = {event.id: event for event in trace.events}
		for event in trace.events:
			parents, parent = [], by_id.get(event.args["p_idx"])
			while parent:
				parents.append(parent)
				parent = by_id.get(parent.args["p_idx"])
			found[id(event)] = parents
	return found


# --- the table ---------------------------------------------------------------

Function = collections.namedtuple("Function", "group mode serves result args")


@functools.cache
def table():
	"""The rows of hdf5.def, by name."""
	with open(os.path.join(ROOT, "symbols", "hooks", "hdf5.def"), encoding="utf-8") as file:
		text = file.read()
	rows = {}
	for name, group, mode, serves, result, args in re.findall(
			r"^CALL\((\w+), (\w+), (\w+), (\w+), (\w+), ARGS\((.*)\)\)$", text, re.MULTILINE):
		assert name not in rows, name
		rows[name] = Function(group, mode, serves, result, re.findall(r"(\w+)\((\w+)\)", args))
	return rows


def split(text):
	"""The parameters of a declaration."""
	parts, depth, part = [], 0, ""
	for char in text:
		depth += {"(": 1, ")": -1}.get(char, 0)
		if char == "," and depth == 0:
			parts.append(part)
			part = ""
		else:
			part += char
	parts = [re.sub(r"\s+", " ", one).strip() for one in [*parts, part]]
	return [] if parts == ["void"] else parts


@functools.cache
def declared(flavour):
	"""What the installed headers declare: by function, the type of its result and its parameters."""
	flags = [f"-I/usr/include/hdf5/{flavour}"]
	compiler = "gcc" if flavour == "serial" else f"mpicc.{flavour}"
	if not shutil.which(compiler) or not os.path.exists(f"/usr/include/hdf5/{flavour}/hdf5.h"):
		pytest.skip(f"no HDF5 for {flavour}")
	text = subprocess.run([compiler, "-E", "-P", *flags, "-"], check=True, input=b"#include <hdf5.h>\n",
			      capture_output=True).stdout.decode()
	text = re.sub(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)|\bextern\b", "", text)
	inside = r"(?:[^()]|\((?:[^()]|\([^()]*\))*\))*"
	found = {}
	for result, name, args in re.findall(
			rf"[;}}\n]\s*((?:const )?(?:unsigned )?[A-Za-z_][\w ]*?[\s*]+)(H5[A-Z]*[a-z]\w*)\s*\(({inside})\)\s*;",
			text):
		if "typedef" not in result and "return" not in result:
			found[name] = (result.strip(), split(args))
	return found


def kind_of(parameter):
	"""What a parameter may be in the table."""
	if "(*" in parameter:
		return {"POINTER"}
	name = re.sub(r"\[.*\]", "", parameter).strip()
	kind = re.sub(r"\w+$", "", name).strip() or name
	if "*" in kind or "[" in parameter:
		return {"POINTER", "TEXT", "PATH"} if re.fullmatch(r"const char\s*\*", kind) else {"POINTER"}
	known = {"hid_t": "ID", "double": "DOUBLE", "MPI_Comm": "COMM", "MPI_Info": "HANDLE"}
	if kind in known:
		return {known[kind]}
	if kind in ("size_t", "hsize_t", "haddr_t", "unsigned long long", "uint64_t"):
		return {"ULONG"}
	if kind in ("off_t", "hssize_t", "ssize_t"):
		return {"LONG"}
	if kind in ("unsigned", "unsigned int", "uint32_t", "hbool_t", "_Bool", "bool"):
		return {"UINT"}
	return {"INT", "POINTER"} if kind.endswith("_t") else {"INT"}


__all__ = ["HERE", "Call", "above", "build", "declared", "hdf5", "kind_of", "lost", "multiarch", "same_calls", "seen", "table",
	   "told"]
