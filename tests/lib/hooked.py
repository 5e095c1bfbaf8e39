"""What the cases of hooks share: test programs in many forms, and their words about streams and functions."""

import collections
import functools
import os
import re
import shutil
import subprocess
import tempfile

import pytest

from .run import PROGRAMS, ROOT

HERE = os.path.join(ROOT, "tests", "programs")
FLAGS = ("-Wall", "-Wextra", "-Werror", "-g", "-pthread")
LINKS = {"pie": ("-fPIE", "-pie"), "no-pie": ("-no-pie", "-fno-pie"), "static": ("-static", "-fno-pie"),
	 "static-pie": ("-static-pie", "-fPIE")}


def clang():
	return next(filter(shutil.which, ("clang", *(f"clang-{n}" for n in range(25, 10, -1)))), None)


class Form:
	"""How a program is made: compiler, link, optimisation, stripped or not. Written as gcc.static.O2.cf.strip."""

	def __init__(self, text):
		self.text = text
		self.compiler, self.link, self.level, *rest = text.split(".")
		self.protected, self.stripped = "cf" in rest, "strip" in rest
		self.static = self.link.startswith("static")
		self.musl = self.compiler == "musl"
		# No name of a function is left in it.
		self.nameless = self.static and self.stripped

	def build(self, name):
		"""The program's path; the case is skipped where this machine cannot make it."""
		source = next(path for path in (os.path.join(HERE, name + end) for end in (".c", ".cpp", ".f90"))
			      if os.path.exists(path))
		return _build(self.text, source)

	def command(self, source):
		cxx, fortran = source.endswith(".cpp"), source.endswith(".f90")
		compiler = {"gcc": "g++" if cxx else "gfortran" if fortran else "gcc", "musl": "musl-gcc",
			    "clang": None if fortran else clang()}[self.compiler]
		if not compiler or not shutil.which(compiler):
			pytest.skip(f"no {self.compiler} for {os.path.basename(source)}")
		if cxx and self.compiler == "clang":
			compiler = compiler.replace("clang", "clang++", 1)
		flags = [*FLAGS] if not fortran else ["-g", "-fno-inline", "-J", tempfile.gettempdir()]
		if not cxx and not fortran:
			flags += ["-std=gnu17", "-D_GNU_SOURCE"]
		if self.protected:
			flags.append("-fcf-protection=full")
		return [compiler, *flags, "-" + self.level, *LINKS[self.link], source]


@functools.cache
def _build(text, source):
	form = Form(text)
	out = os.path.join(PROGRAMS, "forms", f"{os.path.basename(source).split('.')[0]}.{text}")
	if os.path.exists(out) and os.path.getmtime(out) > newest(source):
		return out
	os.makedirs(os.path.dirname(out), exist_ok=True)
	# The other half of the cases may be making the same one.
	mine = f"{out}.{os.getpid()}"
	made = subprocess.run([*form.command(source), "-o", mine], check=False, capture_output=True)
	if made.returncode != 0:
		pytest.skip(f"{text}: {made.stderr.decode().splitlines()[-1]}")
	if form.stripped:
		subprocess.run(["strip", mine], check=True)
	os.rename(mine, out)
	return out


def newest(source):
	headers = [os.path.join(HERE, name) for name in os.listdir(HERE) if name.endswith(".h")]
	return max(map(os.path.getmtime, [source, *headers]))


def matrix(*, compilers=("gcc", "clang", "musl"), stripped=True):
	"""All forms; those that `make test` runs are not marked."""
	quick = {"gcc.pie.O2", "gcc.static.O2", "gcc.static-pie.O3.cf", "gcc.no-pie.O0", "musl.static.O2",
		 "clang.pie.O1", "clang.static.O2.cf", "gcc.pie.O2.strip", "gcc.static.O2.strip"}
	texts = []
	for compiler in compilers:
		for link in ("static",) if compiler == "musl" else LINKS:
			for level in ("O0", "O1", "O2", "O3"):
				for protected in ("", ".cf"):
					for strip in ("", ".strip") if stripped else ("",):
						texts.append(f"{compiler}.{link}.{level}{protected}{strip}")
	return [pytest.param(Form(text), id=text, marks=() if text in quick else pytest.mark.full)
		for text in texts]


def some(*texts):
	return [pytest.param(Form(text), id=text) for text in texts]


# --- names -------------------------------------------------------------------

Row = collections.namedtuple("Row", "name symbols")


@functools.cache
def table():
	"""The rows of stdio.def."""
	with open(os.path.join(ROOT, "symbols", "hooks", "stdio.def"), encoding="utf-8") as file:
		text = file.read()
	return [Row(match[1], re.findall(r'"(\w+)"', match[2]))
		for match in re.finditer(r"^HOOK\((\w+),.*NAMES\((.*)\)\)$", text, re.MULTILINE)]


@functools.cache
def names_of(path):
	"""For each symbol, the name of its calls: several have one address, and the first row has it."""
	out = ""
	for option in ("--defined-only", "--dynamic"):
		out += subprocess.run(["nm", option, "--defined-only", path], check=False,
				      capture_output=True).stdout.decode()
	at, by_address = {}, collections.defaultdict(set)
	for line in out.splitlines():
		match = re.match(r"([0-9a-f]+) [TtWwi] (\w+)", line)
		if match:
			at[match[2]] = match[1]
			by_address[match[1]].add(match[2])
	found = {}
	for symbol, address in at.items():
		for row in table():
			if by_address[address] & set(row.symbols):
				found.setdefault(symbol, row.name)
	return found


@functools.cache
def libc():
	"""The path of the C library that dynamic programs here get."""
	out = subprocess.run(["ldd", shutil.which("true")], check=True, capture_output=True).stdout.decode()
	return re.search(r"=> (/\S*libc\.so\S*)", out)[1]


def name_of(symbol, form, path):
	names = names_of(path if form.static else libc())
	# Headers make other symbols of some names.
	return next(names[one] for one in (symbol, "__isoc99_" + symbol, "__isoc23_" + symbol) if one in names)


# --- streams -----------------------------------------------------------------

Call = collections.namedtuple("Call", "name path ret moved more")


def told(run, form, path, name="said"):
	"""The calls that the program tells of, in order. What it was unable to do is a failure."""
	with open(run.path(name), encoding="utf-8") as file:
		lines = [line.rstrip("\n").split("\t") for line in file]
	failed = [line for line in lines if line[0] == "failed"]
	assert not failed, failed
	found = []
	for kind, *fields in lines:
		if kind == "stdio":
			symbol, file, ret, moved, *more = fields
			found.append(Call(name_of(symbol, form, path),
					  None if file == "-" else os.path.normpath(run.path(file)),
					  None if ret == "-" else int(ret), int(moved),
					  tuple(tuple(item.split("=", 1)) for item in more)))
	return found


def moved(text, directory):
	"""The lines `moved`: by path, bytes written and read."""
	return {os.path.normpath(os.path.join(directory, fields[1])): (int(fields[2]), int(fields[3]))
		for fields in (line.split("\t") for line in text.splitlines()) if fields[0] == "moved"}


KEPT = ("hhash", "p_idx", "level", "fhash", "size_sum", "ret", "cut", "path_hash")


def seen(events):
	"""The STDIO calls of one thread that the trace has, in order."""
	calls = [event for event in events if event.cat == "STDIO"]
	return [Call(event.name, event.path, event.ret, event.args.get("size_sum", 0),
		     tuple((key, str(value)) for key, value in event.args.items() if key not in KEPT))
		for event in sorted(calls, key=lambda event: (event.ts, event.id))]


def same_calls(expected, found):
	"""Asserts equality, and shows where it ends."""
	for at, (one, two) in enumerate(zip(expected, found)):
		assert two == one, f"call {at}: the program says {one}, the trace {two}"
	assert len(found) == len(expected), (expected[len(found):][:5], found[len(expected):][:5])


WRITES = ("write", "writev", "pwrite", "pwritev")
READS = ("read", "readv", "pread", "preadv")
STDIO_WRITES = ("fwrite", "fputs", "puts", "fputc", "putc", "putchar", "fprintf", "vfprintf", "printf", "vprintf")


def bytes_of(run):
	"""By file: bytes written and read, as readers add them up, of POSIX and STDIO together."""
	found = collections.defaultdict(lambda: [0, 0])
	for event in run.events:
		if event.cat == "POSIX" and event.name in WRITES + READS:
			found[event.path][event.name in READS] += max(event.ret or 0, 0)
		elif event.cat == "STDIO":
			found[event.path][event.name not in STDIO_WRITES] += event.args.get("size_sum", 0)
	return {path: tuple(sums) for path, sums in found.items()}


def kernel_bytes(run, path):
	"""Bytes written to a file by system calls of any category."""
	return sum(max(event.ret or 0, 0) for event in run.events
		   if event.cat in ("POSIX", "SYSCALL") and event.name in WRITES and event.path == path)


def consistent(run, *, exit_flushes=True):
	"""What holds for every trace with hooks: only outermost calls, and what is inside is inside. Calls with
	which exit empties buffers have nobody above them."""
	for trace in run.traces:
		by_id = {event.id: event for event in trace.events}
		for event in trace.events:
			parent = by_id.get(event.args["p_idx"])
			above = []
			while parent:
				above.append(parent)
				parent = by_id.get(parent.args["p_idx"])
			inside = [one for one in above if one.cat == "STDIO"]
			if event.cat == "STDIO":
				# One that a handler makes may stand in an interrupted system call.
				assert not inside or any(one.cat in ("POSIX", "SYSCALL") for one in above), (event, above)
			elif event.cat == "POSIX":
				assert not inside, (event, above)
			elif event.cat == "SYSCALL":
				assert inside or exit_flushes, (event, above)
				if inside and event.name in WRITES + READS and inside[0].path \
				   and inside[0].name not in ("freopen", "fclose", "fflush"):
					assert event.path == inside[0].path, (event, inside)


# --- functions ---------------------------------------------------------------

Func = collections.namedtuple("Func", "done cut sum")


def functions(text):
	"""The lines `func`: by name."""
	return {fields[1]: Func(*map(int, fields[2:])) for fields in
		(line.split("\t") for line in text.splitlines()) if fields[0] == "func"}


def signed(value):
	value &= (1 << 64) - 1
	return value - (1 << 64) if value >> 63 else value


def hooked(run, pid=None):
	"""The same by the trace's FUNC events."""
	found = {}
	for event in run.events:
		if event.cat != "FUNC" or pid not in (None, event.pid):
			continue
		done, cut, total = found.get(event.name, (0, 0, 0))
		if event.args.get("cut"):
			assert event.ret is None, event
			found[event.name] = Func(done, cut + 1, total)
		else:
			assert event.ret is not None, event
			found[event.name] = Func(done + 1, cut, signed(total + event.ret))
	return found


def same_functions(run, expected=None):
	expected = functions(run.stdout.decode()) if expected is None else expected
	found = hooked(run)
	assert found == expected, {name: (expected.get(name), found.get(name))
				   for name in {*expected, *found} if expected.get(name) != found.get(name)}


__all__ = ["HERE", "WRITES", "Call", "Form", "Func", "bytes_of", "consistent", "functions", "hooked", "kernel_bytes", "libc",
	   "matrix", "moved", "name_of", "names_of", "same_calls", "same_functions", "seen", "some", "told"]
