"""Programs that no preloaded library reaches: static Fortran, musl, Go."""

import os
import re
import shutil
import subprocess

import pytest

from lib.oracle import values
from lib.run import BUILD, PROGRAMS, ROOT, exit_line_agrees, program, same_outside
from lib.straced import agrees

VARIANTS = ("static", "static-pie", "pie", "no-pie")


@pytest.fixture(scope="session")
def fortran():
	if not shutil.which("gfortran"):
		pytest.skip("no Fortran compiler")
	subprocess.run(["make", "-s", "-C", ROOT, f"B={BUILD}", "examples"], check=True)
	return os.path.join(BUILD, "examples", "fortran_io.")


def said(run):
	"""FILE read|write N statements N calls N bytes."""
	found = {}
	for line in run.stdout.decode().splitlines():
		match = re.match(r"(\S+) (read|write) \d+ statements (\d+) calls (\d+) bytes\Z", line)
		if match:
			found[match[1], match[2]] = int(match[3]), int(match[4])
	assert len(found) > 6, run.stdout
	return found


@pytest.mark.parametrize("variant", VARIANTS)
def test_fortran(both, fortran, variant):
	args = [fortran + variant, "data"]
	more = {"setup": lambda cwd: os.mkdir(os.path.join(cwd, "data")), "env": {"TMPDIR": "."}}
	native, run = both.native(args, **more), both.traced(args, **more)
	same_outside(native, run)
	exit_line_agrees(run)
	found = {}
	for event in run.below():
		kind = {"read": "read", "pread": "read", "write": "write", "pwrite": "write"}.get(event.name)
		if kind:
			name = os.path.basename(event.path)
			name = "scratch" if name.startswith("gfortrantmp") else name
			calls, size = found.get((name, kind), (0, 0))
			found[name, kind] = calls + 1, size + event.ret
	assert found == said(run)


@pytest.mark.parametrize("variant", ["static", "pie"])
def test_fortran_agrees_with_strace(runner, fortran, variant):
	agrees(runner, [fortran + variant, "data"], setup=lambda cwd: os.mkdir(os.path.join(cwd, "data")),
	       normalise=lambda path: re.sub(r"gfortrantmp\w{6}", "gfortrantmp", path))


@pytest.fixture(scope="session", params=["musl", "musl-static-pie", "glibc-static"])
def libc(request):
	"""workers.c with other C libraries and links."""
	compiler, flags = {"musl": ("musl-gcc", ["-static"]), "musl-static-pie": ("musl-gcc", ["-static-pie"]),
			   "glibc-static": ("gcc", ["-static"])}[request.param]
	if not shutil.which(compiler):
		pytest.skip(f"no {compiler}")
	out = os.path.join(PROGRAMS, f"workers.{request.param}")
	source = os.path.join(ROOT, "tests", "programs", "workers.c")
	made = subprocess.run([compiler, "-std=gnu17", "-D_GNU_SOURCE", "-O2", "-pthread", *flags, source,
			       "-o", out], check=False, capture_output=True)
	if made.returncode != 0:
		pytest.skip(f"{request.param}: {made.stderr.decode().splitlines()[-1]}")
	return out


@pytest.mark.parametrize("kind", ["threads", "children"])
def test_other_libraries(both, libc, kind):
	run = both.traced([libc, kind, "6", "10"])
	assert run.status == 3, run.stderr
	expected = {key: int(value.split()[0]) for key, value in values(run.stdout).items()}
	written = dict.fromkeys(expected, 0)
	for event in run.below():
		if event.name == "pwrite":
			written[os.path.basename(event.path)] += event.ret
	assert written == expected and len(written) == 6


def test_compat32_is_told(runner):
	"""A 32-bit program runs; what is not recorded of it is counted, never misread."""
	out = os.path.join(PROGRAMS, "workers.m32")
	source = os.path.join(ROOT, "tests", "programs", "workers.c")
	made = subprocess.run(["gcc", "-m32", "-std=gnu17", "-D_GNU_SOURCE", "-D_FILE_OFFSET_BITS=64", "-O2",
			       "-pthread", source, "-o", out], check=False, capture_output=True)
	if made.returncode != 0 or subprocess.run([out, "threads", "1", "1"], check=False, cwd=runner.fresh("m32"),
						  capture_output=True).returncode != 3:
		pytest.skip("no 32-bit programs here")
	native = runner.native([out, "threads", "2", "10"])
	run = runner.traced([out, "threads", "2", "10"])
	assert run.status == 3 and run.stdout == native.stdout
	written = sum(event.ret for event in run.below() if event.name == "pwrite")
	expected = sum(int(value.split()[0]) for value in values(run.stdout).values())
	lost = {key: count for trace in run.traces for key, count in trace.lost().items()}
	assert written == expected or lost, "neither recorded nor counted"


def test_stripped(runner):
	out = os.path.join(PROGRAMS, "workers.stripped")
	subprocess.run(["strip", "-o", out, program("workers")], check=True)
	run = runner.traced([out, "threads", "2", "10"])
	assert run.status == 3 and len(run.of("pwrite")) == 20
