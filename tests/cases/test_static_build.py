"""`make static`: one file, which works where there is nothing else."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from lib.run import BUILD, EXTRA, PATIENCE, ROOT, STATIC, TRACER

# Cases of all kinds that the static build has to pass as well: bytes, paths, threads, children, static
# programs, other ways to read memory, messages.
SAME_CASES = {
	"test_bytes.py": "",
	"test_paths.py": "odd or descriptors",
	"test_threads.py": "same_numbers_at_full_speed",
	"test_static.py": "fortran and static or other_libraries",
	"test_same.py": "fatal_signals or exit_statuses or exec_chain or test_go",
	"test_input.py": "",
	"test_doctor.py": "here or forbids or ordinary_user or test_program",
}
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount and chroot")


@pytest.fixture(scope="session")
def static():
	if not os.environ.get("DFTRACE_BUILT"):
		subprocess.run(["make", "-s", "-C", ROOT, "static"], check=True)
	return STATIC


@pytest.fixture(scope="session")
def static_program(tmp_path_factory):
	top = tmp_path_factory.mktemp("static")
	path = str(top / "counted")
	subprocess.run(["gcc", "-static", "-pthread", "-D_GNU_SOURCE", "-o", path,
			os.path.join(ROOT, "tests", "programs", "counted.c")], check=True)
	return path


def test_it_needs_nothing(static):
	done = subprocess.run(["ldd", static], check=False, capture_output=True, text=True)
	assert "not a dynamic executable" in done.stdout + done.stderr
	headers = subprocess.run(["readelf", "-lWd", static], check=True, capture_output=True, text=True).stdout
	assert "INTERP" not in headers and "NEEDED" not in headers


def version(tool):
	done = subprocess.run([tool, "--version"], check=True, capture_output=True, text=True)
	assert done.stderr == "" and len(done.stdout.splitlines()) == 1
	return done.stdout


def test_version(static):
	"""Which build it is, and the versions of what it was built with."""
	with open(os.path.join(ROOT, "VERSION"), encoding="utf-8") as file:
		number = file.read().strip()
	for tool, kind, libraries in ((TRACER, "dynamic", ("hwloc",)), (static, "static", ())):
		said = version(tool)
		if os.environ.get("DFTRACE_RUN") and tool == TRACER:
			continue
		assert said.startswith(f"dftrace-run {number} (x86_64, {kind}")
		for library in ("glibc", "libseccomp", "libelf", "zlib", "libmd", *libraries):
			assert re.search(rf"\b{library} \d+\.\d+", said), (library, said)
	assert "hwloc" not in version(static)


def in_chroot(runner, static, program, *, proc=True, devices=True, args=()):
	"""Runs both in an otherwise empty root. Its mounts go with the namespace."""
	top = runner.fresh("root")
	for name in ("proc", "dev", "out", "tmp"):
		os.mkdir(os.path.join(top, name))
	shutil.copy(static, os.path.join(top, "dftrace-run"))
	shutil.copy(program, os.path.join(top, "program"))
	mounts = "mount -t proc proc proc; " if proc else ""
	for name in ("null", "zero") if devices else ():
		with open(os.path.join(top, "dev", name), "w", encoding="utf-8"):
			pass
		mounts += f"mount --bind /dev/{name} dev/{name}; "
	command = args or ["-o", "/out/t", *EXTRA, "--", "/program"]
	script = f'PATH=$PATH:/usr/sbin:/sbin; {mounts}exec chroot . /dftrace-run "$@"'
	run = runner.native(["unshare", "-m", "sh", "-ec", script, "sh", *command], cwd=top)
	runner.settle(run.token)
	run.prefix = os.path.join(top, "out", "t")
	return run


def shape(run):
	"""The calls that the program made, without what differs from run to run."""
	def args(event):
		return sorted((key, value) for key, value in event.args.items()
			      if key in ("fd", "count", "ret", "offset", "flags", "whence", "errno"))
	return sorted((event.name, os.path.basename(event.path or ""), args(event)) for event in run.events
		      if event.cat == "POSIX" and not (event.path or "").startswith("/proc"))


@root_only
def test_empty_root(runner, static, static_program):
	run = in_chroot(runner, static, static_program)
	assert run.status == 0, run.stderr
	assert not run.notes and not any(trace.lost() for trace in run.traces), run.stderr
	here = runner.traced([static_program])
	assert len(shape(here)) > 20
	assert shape(run) == shape(here)


@root_only
def test_root_without_anything(runner, static):
	"""Neither /proc nor /dev: what is not known is not made up, and the program runs."""
	top = runner.fresh("source")
	path = os.path.join(top, "p")
	with open(path + ".c", "w", encoding="utf-8") as file:
		file.write('#include <fcntl.h>\n#include <unistd.h>\nint main(void)\n{ int fd = open("/tmp/f", '
			   'O_CREAT | O_WRONLY, 0600); return write(fd, "abc", 3) == 3 ? 7 : 1; }\n')
	subprocess.run(["gcc", "-static", "-o", path, path + ".c"], check=True)
	run = in_chroot(runner, static, path, proc=False, devices=False)
	assert run.status == 7, run.stderr
	assert [event.path for event in run.of("open")] == ["/tmp/f"]
	assert [event.ret for event in run.of("write")] == [3]


@root_only
def test_doctor_in_empty_root(runner, static, static_program):
	run = in_chroot(runner, static, static_program,
			args=["--doctor", "--json", "-o", "/out/t", "--", "/program"])
	assert run.status == 0 and run.stderr == b"", run
	checks = {check["what"]: check for check in json.loads(run.stdout)["checks"]}
	assert checks["format"]["found"].startswith("static, x86-64")
	assert all(check["state"] == "ok" for check in checks.values())


@pytest.mark.skipif(bool(os.environ.get("DFTRACE_RUN")), reason="is what runs")
@pytest.mark.parametrize("file", SAME_CASES)
def test_same_cases(static, file):
	words = SAME_CASES[file]
	command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c",
		   os.path.join(ROOT, "tests", "pytest.ini"), "--rootdir", os.path.join(ROOT, "tests"),
		   os.path.join(ROOT, "tests", "cases", file), *(["-k", words] if words else [])]
	env = {**os.environ, "DFTRACE_BUILD": BUILD, "DFTRACE_BUILT": "1", "DFTRACE_RUN": static}
	done = subprocess.run(command, env=env, check=False, capture_output=True, text=True,
			      timeout=300 * PATIENCE)
	assert done.returncode == 0, done.stdout[-4000:]
	assert re.search(r"\d+ passed", done.stdout)


def test_a_library_without_static_form_is_told(base):
	"""Most distributions have shared libraries only."""
	compiler = os.path.join(base, "cc")
	with open(compiler, "w", encoding="utf-8") as file:
		file.write('#!/bin/sh\n[ "$1" = -print-file-name=libmd.a ] && echo libmd.a && exit\nexec gcc "$@"\n')
	os.chmod(compiler, 0o755)
	done = subprocess.run(["make", "-s", "-C", ROOT, f"B={base}", f"CC={compiler}", "static"], check=False,
			      capture_output=True, text=True, env={**os.environ, "MAKEFLAGS": ""})
	assert done.returncode != 0
	assert done.stderr.splitlines()[0].startswith("make static: there is no libmd.a")
	assert not os.path.exists(os.path.join(base, "static"))
