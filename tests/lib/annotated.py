"""What the cases of annotations share: programs in many forms, with the stub or DFTracer's own library, and their
words."""

import functools
import json
import os
import re
import shutil
import subprocess

import pytest

from .hooked import LINKS, clang
from .run import BUILD, PROGRAMS, ROOT

HERE = os.path.join(ROOT, "tests", "programs", "annotate")
STUB = os.path.join(ROOT, "examples", "annotate")
TABLE = os.path.join(ROOT, "symbols", "hooks", "annotate.def")
VENV = os.path.join(ROOT, "build", "venv", "preload")


@functools.cache
def library():
	"""The directory of DFTracer's package; the case is skipped where it is not installed."""
	if os.path.exists(VENV + ".reason"):
		with open(VENV + ".reason", encoding="utf-8") as file:
			pytest.skip(f"dftracer is not here: {file.read().strip()}")
	for top, _, names in os.walk(VENV):
		if "libdftracer_core.so" in names:
			return os.path.dirname(top)
	return pytest.skip("make test has not installed dftracer")


def _compilers(family, source):
	kind = os.path.splitext(source)[1]
	names = {"gcc": {".c": "gcc", ".cpp": "g++", ".f90": "gfortran"},
		 "clang": {".c": clang(), ".cpp": (clang() or "").replace("clang", "clang++", 1)},
		 "musl": {".c": "musl-gcc"}}[family]
	found = names.get(kind)
	if not found or not shutil.which(found):
		pytest.skip(f"no {family} for {source}")
	return found, names[".c"]


def _run(command):
	made = subprocess.run(command, check=False, capture_output=True)
	if made.returncode != 0:
		raise AssertionError(made.stderr.decode())


@functools.cache
def build(source, form):
	"""The program's path. `form`: COMPILER.LINK.LEVEL[.lto|.strip], with the links of hooked.LINKS, `so`, where the stub is in
	a library, and `upstream`, DFTracer's own."""
	family, link, level, *rest = form.split(".")
	compiler, compiler_c = _compilers(family, source)
	stem = os.path.splitext(os.path.basename(source))[0]
	out = os.path.join(PROGRAMS, "annotate", f"{stem}{os.path.splitext(source)[1]}.{form}")
	top = out + f".{os.getpid()}"
	os.makedirs(top, exist_ok=True)
	flags = ["-g", "-" + level, "-pthread", *(["-flto"] if "lto" in rest else []), *LINKS.get(link, ("-fPIE", "-pie"))]
	stub = os.path.join(STUB, "dftracer_stub.c")
	paths = [os.path.join(HERE if os.path.exists(os.path.join(HERE, source)) else STUB, source)]
	headers, parts = [f"-I{STUB}"], [os.path.join(top, "stub.o")]
	if link == "upstream":
		where = library()
		# The package lacks a header that its own asks for.
		os.makedirs(os.path.join(top, "cpp-logger"))
		with open(os.path.join(top, "cpp-logger", "logger.h"), "w", encoding="utf-8") as file:
			file.write("#include <cstdint>\nnamespace cpplogger { enum LoggerType { CPP_LOGGER_ERROR, "
				   "CPP_LOGGER_WARN, CPP_LOGGER_INFO, CPP_LOGGER_DEBUG }; }\n")
		headers = [f"-I{where}/include", f"-I{top}"]
		parts = [f"-L{where}/lib64", "-ldftracer_core", f"-Wl,-rpath,{where}/lib64:{where}/lib"]
	elif link == "so":
		parts = [out + ".stub.so"]
		_run([compiler_c, "-" + level, "-fPIC", "-shared", stub, "-o", parts[0]])
	else:
		_run([compiler_c, *[flag for flag in flags if flag not in ("-static", "-pie", "-no-pie", "-static-pie")],
		      "-c", stub, "-o", parts[0]])
	if source.endswith(".f90"):
		paths.insert(0, os.path.join(STUB, "dftracer_stub.f90"))
		headers = ["-J", top]
	else:
		flags += ["-Wall", "-Wextra", "-Werror", *(["-D_GNU_SOURCE"] if source.endswith(".c") else [])]
	# Upstream's header has comparisons that -Wextra does not like.
	_run([compiler, *flags, *headers, *(["-w"] if link == "upstream" else []), *paths, *parts, "-o",
	      os.path.join(top, "program")])
	if "strip" in rest:
		_run(["strip", os.path.join(top, "program")])
	os.rename(os.path.join(top, "program"), out)
	shutil.rmtree(top)
	return out


class Said:
	"""What a program says that it did."""

	def __init__(self, stdout):
		self.events, self.custom, self.app, self.used = [], [], None, None
		for line in stdout.decode().splitlines():
			if line.startswith("{"):
				word = json.loads(line)
				self.events.append((word["name"], word["cat"], word["in"], word["args"]))
			elif line.startswith("custom "):
				self.custom.append(line[7:])
			elif line.startswith("app "):
				self.app = json.loads(line[4:])
			elif line.startswith("used "):
				self.used = json.loads(line[5:])


def annotations(trace):
	"""The events that are neither calls nor the tracer's, as Said has them, in the order of their ends."""
	by_id = {event.id: event for event in trace.events}
	found = []
	for event in trace.events:
		if event.cat in ("POSIX", "STDIO", "SYSCALL", "MPI", "HDF5", "FUNC"):
			continue
		parent = by_id.get(event.args.get("p_idx"))
		args = {key: value for key, value in event.args.items() if key not in ("hhash", "p_idx", "level")}
		found.append((event.name, event.cat, parent.name if parent else "", args))
	return found


def table(kind):
	"""The rows of annotate.def: lists of words."""
	with open(TABLE, encoding="utf-8") as file:
		text = file.read()
	return [[word.strip().strip('"') for word in match.split(",")]
		for match in re.findall(rf"^{kind}\((.*)\)$", text, re.MULTILINE)]


__all__ = ["BUILD", "STUB", "Said", "annotations", "build", "library", "table"]
