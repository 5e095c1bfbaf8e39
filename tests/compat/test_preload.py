"""What DFTracer's preload library records of a dynamic C program, the trace has, too."""

import collections
import gzip
import json
import os
import re
import subprocess

import pytest

from lib.hooked import libc, names_of, some
from lib.run import ROOT, program

VENV = os.path.join(ROOT, "build", "venv", "preload")
NAMES = {"openat": "open", "open64": "open", "openat64": "open", "creat": "open", "creat64": "open",
	 "opendir": "open", "pread64": "pread", "pwrite64": "pwrite", "preadv64": "preadv",
	 "pwritev64": "pwritev", "lseek64": "lseek", "ftruncate64": "ftruncate", "truncate64": "truncate",
	 "fcntl64": "fcntl", "lstat": "fstatat", "lstat64": "fstatat", "stat64": "stat", "fstat64": "fstat",
	 "waitpid": "wait", "execve": "exec", "execv": "exec", "execvp": "exec", "execvpe": "exec",
	 "execl": "exec", "execlp": "exec", "mkdirat": "mkdir", "renameat": "rename", "linkat": "link",
	 "symlinkat": "symlink", "readlinkat": "readlink", "fchmodat": "chmod", "fchownat": "chown",
	 "faccessat": "access", "mmap64": "mmap", "fopen64": "fopen", "freopen64": "freopen",
	 "fseeko64": "fseeko", "ftello64": "ftello", "posix_fadvise64": "posix_fadvise",
	 "posix_fallocate": "fallocate", "posix_fallocate64": "fallocate", "sendfile64": "sendfile",
	 "__isoc99_fscanf": "fscanf", "__isoc23_fscanf": "fscanf", "__isoc99_vfscanf": "vfscanf",
	 "__isoc23_vfscanf": "vfscanf", "__fread_chk": "fread", "__fgets_chk": "fgets",
	 "__fread_unlocked_chk": "fread", "fgetpos64": "fgetpos", "fsetpos64": "fsetpos",
	 "tmpfile64": "tmpfile", "statvfs": "statfs", "statvfs64": "statfs", "fstatvfs": "fstatfs"}
# Not input or output by the trace's contract, done without a system call, or not of a file.
LEFT_OUT = {"getcwd", "umask", "sysconf", "munmap", "madvise", "mprotect", "mlock", "munlock", "mlockall",
	    "munlockall", "readdir", "readdir64", "rewinddir", "closedir", "dirfd", "clearerr", "feof", "ferror",
	    "fileno", "flockfile", "funlockfile", "ftrylockfile", "fmemopen", "open_memstream", "tmpnam",
	    "realpath", "dlopen", "start", "end"}
# Which of our arguments holds what upstream's says.
SIZES = {"count": "count", "size": "size", "offset": "offset", "whence": "whence", "num": "num",
	 "length": "length", "len": "len", "iovcnt": "iovcnt", "ret": "ret"}
WITH_RET = {"read", "write", "pread", "pwrite", "readv", "writev", "preadv", "pwritev", "lseek", "fread",
	    "fwrite", "fseek", "fseeko", "ftell", "ftello", "fputc", "fgetc", "fputs"}


@pytest.fixture(scope="session")
def library():
	if os.path.exists(VENV + ".reason"):
		with open(VENV + ".reason", encoding="utf-8") as file:
			pytest.skip(f"dftracer is not here: {file.read().strip()}")
	for top, _, names in os.walk(VENV):
		if "libdftracer_preload.so" in names:
			return os.path.join(top, "libdftracer_preload.so")
	pytest.skip("make test has not installed dftracer")
	return None


def upstream(runner, library, args, **more):
	"""Runs with the preload library; gives (name, path, arguments) of each event, by process."""
	top = runner.fresh("upstream")
	env = {"LD_PRELOAD": library, "DFTRACER_ENABLE": "1", "DFTRACER_INIT": "PRELOAD",
	       "DFTRACER_LOG_FILE": os.path.join(top, "t"), "DFTRACER_DATA_DIR": "all",
	       "DFTRACER_INC_METADATA": "1", "DFTRACER_ENABLE_AGGREGATION": "0",
	       "DFTRACER_TRACE_COMPRESSION": "1", "HWLOC_COMPONENTS": "-all"}
	run = runner.native(args, env=env, **more)
	run.found = []
	for name in os.listdir(top):
		path = os.path.join(top, name)
		with (gzip.open if name.endswith(".gz") else open)(path, "rt", encoding="utf-8",
								   errors="replace") as file:
			run.found += events(file)
	return run


def events(file):
	lines, names = [], {}
	for line in file:
		line = line.strip().rstrip(",")
		if line.startswith("{"):
			lines.append(json.loads(line))
	for line in lines:
		if line["name"] == "FH":
			names[line["args"]["value"]] = line["args"]["name"]
	found, reopened = [], {}
	for line in lines:
		if line.get("cat") not in ("POSIX", "STDIO"):
			continue
		name, args = line["name"], line.get("args", {})
		path = names.get(args.get("fhash"))
		# It goes on calling a stream by the file that it had before freopen.
		if name == "freopen":
			reopened[path] = path = names.get(args.get("path_hash"))
		elif line["cat"] == "STDIO" and path in reopened:
			path = reopened.pop(path) if name == "fclose" else reopened[path]
		found.append((name, path, args))
	return found


def resolved(path, cwd):
	"""Relative paths are as the program gave them."""
	if path is None:
		return None
	return os.path.normpath(os.path.join(cwd, path))


def key(name, path, args, cwd, blanked):
	path = resolved(path, cwd)
	if name == "copy_file_range" and "len" in args:
		args = {**args, "count": args["len"]}
		del args["len"]
	if path:
		path = re.sub(r"[()\\\"'|\s]", "", path) if blanked else path
		path = path.replace(cwd, "<cwd>")
	sizes = tuple((SIZES[field], args[field]) for field in sorted(SIZES)
		      if field in args and (field != "ret" or name in WITH_RET))
	return name, path, sizes


def compare(runner, library, args, **more):
	theirs = upstream(runner, library, args, **more)
	ours = runner.traced(args, ["-e", "posix,stdio,%ipc"], **more)
	assert theirs.status == ours.status, (theirs.stderr, ours.stderr)
	assert theirs.found, theirs.stderr
	wanted = collections.Counter()
	for name, path, fields in theirs.found:
		# The library's own files, and what only its presence causes.
		if name in LEFT_OUT or not path or not resolved(path, theirs.cwd).startswith(theirs.cwd):
			continue
		name = NAMES.get(name, name)
		name = names_of(libc()).get(name, name)
		wanted[key(name, path, fields, theirs.cwd, True)] += 1
	assert wanted
	have = [key(event.name, event.path, event.args, ours.cwd, True) for event in ours.events]
	missing = []
	for (name, path, sizes), count in wanted.items():
		found = sum(1 for one in have if one[:2] == (name, path) and set(sizes) <= set(one[2]))
		if found < count:
			missing.append((name, path, sizes, count, found,
					[one for one in have if one[:2] == (name, path)][:4]))
	assert not missing, missing[:10]
	return theirs, ours


def feed(cwd):
	with open(os.path.join(cwd, "in"), "wb") as file:
		file.write(b"ab 12 13\n")


def test_streams(runner, library):
	form, = some("gcc.pie.O2")
	_, ours = compare(runner, library, [form.values[0].build("stdio_calls")])
	assert any(event.cat == "STDIO" for event in ours.events)


@pytest.mark.parametrize("case", ["threads 1 50", "threads 4 20", "names", "exit return", "exit exit"])
def test_more_streams(runner, library, case):
	form, = some("gcc.pie.O2")
	compare(runner, library, [form.values[0].build("stdio_streams"), *case.split()])


@pytest.mark.parametrize("name, args", [("workers", ["threads", "2", "20"]), ("progress", ["data", "50"]),
					("workers", ["children", "2", "10"])])
def test_system_calls(runner, library, name, args):
	compare(runner, library, [program(name), *args])


@pytest.mark.parametrize("words", ["cat in in", "cp in copy", "sort in -o sorted", "wc in", "head -c 4 in",
				   "dd if=in of=out bs=3", "tail -c 3 in", "od in", "cksum in", "cut -c 2 in"])
def test_utilities(runner, library, words):
	compare(runner, library, words.split(), setup=feed)


def test_the_comparison_can_fail(runner, library):
	"""The check of the check: another program's trace does not do."""
	done = subprocess.run([program("workers"), "threads", "1", "1"], check=False, capture_output=True,
			      cwd=runner.fresh("other"))
	assert done.returncode == 3
	theirs = upstream(runner, library, ["cat", "in"], setup=feed)
	assert [name for name, path, _ in theirs.found if path and path.endswith("in")]
