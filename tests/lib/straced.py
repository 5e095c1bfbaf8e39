"""The oracle: what strace saw of the same program, in the trace's words."""

import collections
import errno
import os
import re

from .run import Run, by_capture

FD = re.compile(r"(-?\d+|AT_FDCWD)(?:<(.*)>)?(\(deleted\))?\Z", re.DOTALL)
LINE = re.compile(r"(\d+) +(\w+)\((.*)\) += (\?|-?\d+|0x[0-9a-f]+)(?:<([^>]*)>(?:\(deleted\))?)?"
		  r"(?: (E\w+) .*| \(.*\))?\Z")
UNFINISHED = re.compile(r"(\d+) +(\w+)\((.*) <unfinished \.\.\.>\Z")
RESUMED = re.compile(r"(\d+) +<\.\.\. (\w+) resumed>(.*)\Z")
NAMELESS = ("pipe:", "socket:", "anon_inode:", "/memfd:", "net:", "mnt:")
LOADER = re.compile(r"/etc/ld\.so\.\w+$|\.so(\.\d+)*$|/glibc-hwcaps(/|$)|/(tls|haswell|x86_64)$"
		    r"|/lib/x86_64-linux-gnu$|/lib64?$|/usr/lib(64)?(/x86_64-linux-gnu)?$")

# How a call names its file: p N: a path argument; a N: dirfd N and the path behind it; f N: a
# descriptor; two: both files of a rename or a link; 0: none.
CALLS = {
	"open": ("open", "p0"), "openat": ("open", "a0"), "openat2": ("open", "a0"),
	"creat": ("open", "p0"), "close": ("close", "f0"), "read": ("read", "f0"),
	"write": ("write", "f0"), "pread64": ("pread", "f0"), "pwrite64": ("pwrite", "f0"),
	"readv": ("readv", "f0"), "writev": ("writev", "f0"), "preadv": ("preadv", "f0"),
	"preadv2": ("preadv", "f0"), "pwritev": ("pwritev", "f0"), "pwritev2": ("pwritev", "f0"),
	"lseek": ("lseek", "f0"), "fsync": ("fsync", "f0"), "fdatasync": ("fdatasync", "f0"),
	"sync": ("sync", None), "syncfs": ("syncfs", "f0"),
	"sync_file_range": ("sync_file_range", "f0"), "ftruncate": ("ftruncate", "f0"),
	"truncate": ("truncate", "p0"), "fallocate": ("fallocate", "f0"),
	"fadvise64": ("posix_fadvise", "f0"), "readahead": ("readahead", "f0"),
	"stat": ("stat", "p0"), "lstat": ("fstatat", "p0"), "fstat": ("fstat", "f0"),
	"newfstatat": ("stat", "a0"), "statx": ("stat", "a0"), "statfs": ("statfs", "p0"),
	"fstatfs": ("fstatfs", "f0"), "access": ("access", "p0"), "faccessat": ("access", "a0"),
	"faccessat2": ("access", "a0"), "mkdir": ("mkdir", "p0"), "mkdirat": ("mkdir", "a0"),
	"rmdir": ("rmdir", "p0"), "unlink": ("unlink", "p0"), "unlinkat": ("unlink", "a0"),
	"rename": ("rename", "p0 p1"), "renameat": ("rename", "a0 a2"),
	"renameat2": ("rename", "a0 a2"), "link": ("link", "p0 p1"), "linkat": ("link", "a0 a2"),
	"symlink": ("symlink", "p0 p1"), "symlinkat": ("symlink", "p0 a1"),
	"readlink": ("readlink", "p0"), "readlinkat": ("readlink", "a0"),
	"chmod": ("chmod", "p0"), "fchmod": ("fchmod", "f0"), "fchmodat": ("chmod", "a0"),
	"chown": ("chown", "p0"), "lchown": ("chown", "p0"), "fchown": ("fchown", "f0"),
	"fchownat": ("chown", "a0"), "utime": ("utime", "p0"), "utimes": ("utime", "p0"),
	"futimesat": ("utime", "a0"), "utimensat": ("utime", "a0"), "mknod": ("mknod", "p0"),
	"mknodat": ("mknod", "a0"), "getdents": ("readdir", "f0"), "getdents64": ("readdir", "f0"),
	"fcntl": ("fcntl", "f0"), "flock": ("flock", "f0"), "dup": ("dup", "f0"),
	"dup2": ("dup2", "f0"), "dup3": ("dup3", "f0"), "mmap": ("mmap", "f4"),
	"msync": ("msync", None), "sendfile": ("sendfile", "f1"),
	"copy_file_range": ("copy_file_range", "f0"), "splice": ("splice", "f0"),
	"tee": ("tee", "f0"), "chdir": ("chdir", "p0"), "fchdir": ("fchdir", "f0"),
	"fork": ("fork", None), "vfork": ("fork", None), "clone": ("fork", None),
	"clone3": ("fork", None), "execve": ("exec", "p0"), "execveat": ("exec", "a0"),
	"pipe": ("pipe", None), "pipe2": ("pipe", None), "kill": ("kill", None),
	"tkill": ("kill", None), "tgkill": ("kill", None),
	**{call: (call, "f0" if call[0] == "f" else "p0") for stem in ("getxattr", "setxattr",
	   "listxattr", "removexattr") for call in (stem, "l" + stem, "f" + stem)},
}
RETURNS_FD = ("open", "openat", "openat2", "creat", "dup", "dup2", "dup3")
SECOND = {"sendfile": 0, "copy_file_range": 2, "splice": 2, "tee": 1}


def unhex(text):
	"""The bytes of strace's -xx."""
	return bytes.fromhex(text.replace("\\x", "")).decode("utf-8", "replace")


def split_args(text):
	"""Arguments at the top level. With -xx no string can hold a bracket or a comma."""
	parts, depth, start = [], 0, 0
	for at, char in enumerate(text):
		if char in "([{<":
			depth += 1
		elif char in ")]}>" and text[at - 1:at + 1] != "=>":
			depth -= 1
		elif char == "," and depth == 0:
			parts.append(text[start:at].strip())
			start = at + 1
	parts.append(text[start:].strip())
	return parts


class Image:
	"""One process and program."""

	def __init__(self, pid):
		self.pid = pid
		self.tids = {pid}
		self.calls = []

	def is_loader_only(self):
		return all(path is None and name in ("fork", "wait", "pipe", "kill")
			   or path is not None and (LOADER.search(path) or name == "exec" and ret == 0)
			   for name, path, ret, _ in self.calls)


class Strace:
	"""Reads strace's log and gives the calls of every image."""

	def __init__(self, log, cwd):
		self.images, self.current, self.leader, self.cwds = [], {}, {}, {}
		self.start_cwd = cwd
		self.alias = {}
		self.pending = {}
		self.first = True
		self.parents = {}
		self.renamed = {}
		with open(log, encoding="ascii") as file:
			lines = [self._joined(line.rstrip("\n")) for line in file]
		for line in filter(None, lines):
			self._child(line)
		for line in filter(None, lines):
			self._line(line)

	def _joined(self, line):
		"""The match of a whole line; of a call in two parts, that of both at the place of the second."""
		if match := UNFINISHED.match(line):
			self.pending[match[1]] = match[3]
			return None
		if match := RESUMED.match(line):
			line = f"{match[1]} {match[2]}({self.pending.pop(match[1], '')}{match[3]}"
		return LINE.match(line)

	def _child(self, match):
		"""A child runs before its parent's call is over, so who it belongs to is found out first."""
		if match[2] in ("clone", "clone3", "fork", "vfork") and match[6] is None and match[4].isdigit():
			self.parents[int(match[4])] = int(match[1]), "CLONE_THREAD" in match[3]

	def _meet(self, tid):
		"""The first time that a thread is seen."""
		parent, is_thread = self.parents.get(tid, (None, False))
		if parent is not None and parent not in self.leader:
			self._meet(parent)
		self.leader[tid] = self.leader[parent] if is_thread else tid
		if not is_thread and parent is not None:
			self.cwds[tid] = self._cwd(parent)

	def _line(self, match):
		tid = int(match[1])
		if tid not in self.leader:
			self._meet(tid)
		self._call(tid, match[2], match[3], match[4], match[5], match[6])

	def _image(self, tid):
		leader = self.leader[tid]
		if leader not in self.current:
			self.current[leader] = Image(leader)
			self.images.append(self.current[leader])
		return self.current[leader]

	def _cwd(self, tid):
		return self.cwds.get(self.leader.get(tid, tid), self.start_cwd)

	def _call(self, tid, call, text, ret, ret_path, error):
		if call not in CALLS or ret == "?":
			return
		image = self._image(tid)
		args = split_args(text)
		name, how = CALLS[call]
		value = int(ret, 0) if error is None else -1
		number = getattr(errno, error) if error else None
		if call in ("clone", "clone3") and "CLONE_THREAD" in text:
			return
		paths = [self._file(tid, item, args) for item in (how or "").split()]
		name, paths = self._variant(call, name, args, paths)
		if self._is_left_out(name, call, how, paths):
			return
		if call in RETURNS_FD and ret_path and paths[0]:
			self.alias[unhex(ret_path)] = paths[0]
		if name == "rename" and value == 0:
			self.renamed[paths[1]] = paths[0]
		if call in ("chdir", "fchdir") and value == 0:
			self.cwds[self.leader.get(tid, tid)] = paths[0]
		if call in ("execve", "execveat") and self.first:
			self.first = False
			return
		if name in ("fork", "mmap") and value != -1:
			value = None
		image.calls.append((name, paths[0] if paths else None, value, number))
		if name == "exec" and value == 0:
			self.current.pop(self.leader[tid], None)

	def _is_left_out(self, name, call, how, paths):
		"""What the trace leaves out by its contract."""
		if not how:
			return False
		if SECOND.get(call) is not None:
			return all(path is None or path.startswith(NAMELESS) for path in paths)
		by_fd = how.startswith("f") or name in ("fstat", "fchown", "fchmod")
		return by_fd and (paths[0] is None or paths[0].startswith(NAMELESS))

	def _fd(self, text):
		match = FD.match(text)
		return unhex(match[2]) if match and match[2] else None

	def _string(self, text):
		match = re.match(r'"((?:\\x[0-9a-f]{2})*)"', text)
		return unhex(match[1]) if match else None

	def _file(self, tid, item, args):
		kind, at = item[0], int(item[1:])
		if kind == "f":
			return self._fd(args[at])
		base = self._cwd(tid) if kind == "p" else self._fd(args[at])
		given = self._string(args[at + (kind == "a")])
		if not given:
			return base if kind == "a" and "AT_EMPTY_PATH" in ", ".join(args) else None
		if base is None and not given.startswith("/"):
			return None
		return os.path.normpath(os.path.join(base or "/", given)).replace("//", "/")

	def _variant(self, call, name, args, paths):
		"""The names that depend on flags."""
		text = ", ".join(args)
		if call in ("newfstatat", "statx", "fchownat"):
			empty = self._string(args[1]) in ("", None) and "AT_EMPTY_PATH" in text
			if empty:
				return ("fchown" if call == "fchownat" else "fstat"), paths
			if "AT_SYMLINK_NOFOLLOW" in text and call != "fchownat":
				return "fstatat", paths
		if call == "unlinkat" and "AT_REMOVEDIR" in text:
			return "rmdir", paths
		if call in ("symlink", "symlinkat") and paths[1]:
			target = self._string(args[0]) or ""
			return name, [os.path.normpath(os.path.join(os.path.dirname(paths[1]), target)),
				      paths[1]]
		if call in ("utimensat", "futimesat") and args[1] == "NULL":
			return name, [self._fd(args[0])]
		if call in SECOND:
			return name, paths + [self._fd(args[SECOND[call]])]
		return name, paths

	def canonical(self, path):
		"""strace names descriptors by what the kernel resolved, the trace by the text of the open:
		the text is taken on both sides."""
		return self.alias.get(path, path)


def strace(runner, args, *, cwd=None, env=None, setup=None, timeout=120, **more):
	"""Runs under strace, with regular files as stdin, stdout and stderr."""
	run = Run(cwd or runner.fresh("strace"), runner.token())
	if setup:
		setup(run.cwd)
	log = os.path.join(runner.fresh("log"), "strace")
	command = ["strace", "-f", "-y", "-xx", "-s", "4", "--seccomp-bpf", "-o", log,
		   "-e", "trace=" + ",".join("?" + call for call in CALLS), "--", *args]
	with ordinary_files(runner) as files:
		runner._execute(run, command, env, files[0], timeout, stdout=files[1], stderr=files[2],
				**more)
	run.log = Strace(log, run.cwd)
	return run


class ordinary_files:
	"""Three regular files as standard streams, since calls on pipes are not recorded."""

	def __init__(self, runner):
		self.top = runner.fresh("std")

	def __enter__(self):
		modes = (("in", "w+b"), ("out", "wb"), ("err", "wb"))
		self.files = [open(os.path.join(self.top, name), mode) for name, mode in modes]
		return self.files

	def __exit__(self, *_):
		for file in self.files:
			file.close()


def multisets(straced, traced, *, descriptors=True, normalise=None, below=None, renames=False):
	"""The two multisets of (name, path, ret, errno) that must be equal. `renames`: files are renamed while they
	are open, where strace names them anew and the trace does not; the old name is taken on both sides."""
	renamed = {one.replace(straced.cwd, "<cwd>"): two.replace(straced.cwd, "<cwd>")
		   for one, two in straced.log.renamed.items()}

	def clean(run, path):
		if path is None:
			return None
		path = straced.log.canonical(path)
		path = path.replace(run.cwd, "<cwd>")
		if renames:
			path = renamed.get(path, path)
		path = re.sub(r"/proc/\d+", "/proc/<pid>", path)
		path = re.sub(r".*/std\d+/(in|out|err)\Z", r"<\1>", path)
		return normalise(path) if normalise else path

	def keep(path):
		return below is None or (path or "").startswith("<cwd>")

	def value(name, ret):
		if name == "fork" and ret not in (None, -1):
			return None
		if not descriptors and (name in ("open", "dup", "dup2", "dup3") and ret != -1):
			return "<fd>"
		if name == "fcntl" and not descriptors and ret not in (0, -1):
			return "<fd>"
		return ret

	def add(counter, name, path, ret, number):
		# Hooks add pages, so what is read of a list of mappings differs.
		mappings = name == "read" and path == "/proc/self/maps"
		if keep(path) and not (mappings and ret > 0):
			counter[name, path, ret, number] += 1

	theirs, ours = collections.Counter(), collections.Counter()
	images = [image for image in straced.log.images if not image.is_loader_only()
		  or image is straced.log.images[0]]
	for image in images:
		for name, path, ret, number in image.calls:
			add(theirs, name, clean(straced, path), value(name, ret), number)
	for event in traced.events:
		if event.cat not in ("POSIX", "SYSCALL"):
			continue  # strace knows of no functions
		if event.name == "wait":
			continue
		ret = event.args.get("len") if event.name == "readlink" and event.ret is None else event.ret
		add(ours, event.name, clean(traced, event.path), value(event.name, ret), event.errno)
	return theirs, ours


def comparable(found):
	"""How often a program has to read its own list of mappings depends on the capture: the recorder's are among them."""
	maps = collections.Counter({key: count for key, count in found.items() if "/proc/self/maps" in key})
	return by_capture(found, found - maps)


def agrees(runner, args, options=(), *, setup=None, env=None, timeout=120, **how):
	"""Asserts that trace and strace tell the same story of a deterministic program."""
	theirs = strace(runner, args, setup=setup, env=env, timeout=timeout)
	with ordinary_files(runner) as files:
		ours = runner.traced(args, options, setup=setup, env=env, timeout=timeout,
				     stdin=files[0], stdout=files[1], stderr=files[2])
	assert ours.status == theirs.status
	left, right = map(comparable, multisets(theirs, ours, **how))
	assert sum(left.values()) > 0
	missing, extra = left - right, right - left
	assert not missing and not extra, (
		f"only strace has {sum(missing.values())}: {list(missing.items())[:12]}\n"
		f"only the trace has {sum(extra.values())}: {list(extra.items())[:12]}")
	return theirs, ours
