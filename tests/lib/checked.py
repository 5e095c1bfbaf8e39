"""What the cases of dftrace-check share: running it, lines of traces of ours, and changes to them."""

import collections
import gzip
import json
import os
import re
import subprocess

import pytest

from .hooked import Form
from .run import BUILD, PATIENCE, Runner, program
from .upstream import venv

CHECK = os.path.join(BUILD, "dftrace-check")
Said = collections.namedtuple("Said", "status out err")


def check(*args, timeout=60, **more):
	done = subprocess.run([CHECK, *map(str, args)], capture_output=True, check=False, timeout=timeout * PATIENCE, **more)
	assert done.returncode in (0, 1, 2), (args, done.returncode, done.stderr[-2000:])
	assert b"Sanitizer" not in done.stderr and b"runtime error" not in done.stderr, (args, done.stderr[-2000:])
	return Said(done.returncode, done.stdout.decode(), done.stderr.decode())


def as_json(*args):
	said = check("--json", *args)
	assert not said.err, said.err
	report = json.loads(said.out)
	assert report["status"] == said.status
	return report


def findings(report, notes=False):
	return {found["id"] for file in report["files"] for found in file["findings"] if notes or found["class"] != "note"}


def clean(*args):
	"""The report of traces that have nothing wrong."""
	report = as_json(*args)
	assert report["status"] == 0, [(file["path"], file["findings"]) for file in report["files"] if file["findings"]] \
		+ report["findings"]
	return report


def store(path, lines):
	"""Writes lines as one gzip member, or plain, by the name."""
	text = b"".join(line + b"\n" for line in lines)
	with (gzip.open if str(path).endswith(".gz") else open)(path, "wb") as file:
		file.write(text)
	return str(path)


def upstream(version, tool):
	return venv(version, "dftracer_" + tool)


def validated(directory, version="0.0.14"):
	"""Upstream's readers take what is there."""
	done = subprocess.run([upstream(version, "validate"), "-d", directory], capture_output=True, check=False, timeout=60 * PATIENCE)
	assert done.returncode == 0 and b" 0 failed" in done.stdout, (done.stdout[-1000:], done.stderr[-1000:])


# --- traces of ours --------------------------------------------------------------

@pytest.fixture(scope="module")
def module_runner(tmp_path_factory):
	runner = Runner(str(tmp_path_factory.mktemp("check")))
	yield runner
	runner.close()


@pytest.fixture(scope="module")
def nested(module_runner):
	"""The lines of a trace of a static program: calls within calls of streams."""
	run = module_runner.traced([Form("gcc.static.O2").build("stdio_calls")])
	with gzip.open(run.trace.file) as file:
		return file.read().split(b"\n")[:-1]


@pytest.fixture(scope="module")
def threads(module_runner):
	"""The lines of a trace of a program with threads."""
	run = module_runner.traced([program("workers"), "threads", "4", "50"])
	with gzip.open(run.trace.file) as file:
		return file.read().split(b"\n")[:-1]


SHAPES = {
	"static": lambda: [Form("gcc.static.O2").build("stdio_calls")],
	"threads": lambda: [program("workers"), "threads", "4", "200"],
	"forks": lambda: [program("workers"), "children", "5", "50"],
	"shell": lambda: ["sh", "-c", "seq 1 2000 > f; cat f | wc -l; mv f 'ä \"q\"'; cat none; true"],
}


# --- changes to lines ------------------------------------------------------------

def edit(lines, where, change):
	"""Changes the first line that fits: `change` gets the line as JSON and gives the new one, None for none."""
	for at, raw in enumerate(lines):
		if not raw.startswith(b"{"):
			continue
		line = json.loads(raw)
		if where(line):
			new = change(line)
			lines[at:at + 1] = [] if new is None else [json.dumps(new, separators=(",", ":"), ensure_ascii=False).encode()]
			return lines
	raise AssertionError("no such line")


def named(*names):
	return lambda line: line["name"] in names


def posix(*names):
	return lambda line: line["cat"] == "POSIX" and (not names or line["name"] in names)


def child(line):
	return line.get("args", {}).get("level") == 2


def put(**values):
	def change(line):
		line.update(values)
		return line
	return change


def put_args(**values):
	def change(line):
		line["args"].update(values)
		return line
	return change


def without(key):
	return lambda line: {name: value for name, value in line.items() if name != key}


def renamed(line):
	line["args"]["name"] += "x"
	return line


def changed(where, change):
	return lambda lines: edit(lines, where, change)


def replaced(old, new, *, at=posix("read", "write", "open", "close", "fstat", "pwrite", "pread")):
	"""Replaces bytes in an event."""
	def change(lines):
		for i, raw in enumerate(lines):
			if raw.startswith(b"{") and at(json.loads(raw)) and re.search(old, raw):
				lines[i] = re.sub(old, new, raw, count=1)
				return lines
		raise AssertionError("no such line")
	return change


def moved(lines, where, to):
	"""Moves a line."""
	at = next(i for i, raw in enumerate(lines) if raw.startswith(b"{") and where(json.loads(raw)))
	line = lines.pop(at)
	lines.insert(to if to >= 0 else len(lines) + to, line)
	return lines


def fh_of_first_event(lines):
	used = next(json.loads(raw)["args"]["fhash"] for raw in lines if raw.startswith(b"{") and b'"fhash"' in raw)
	return lambda line: line["name"] == "FH" and line["args"]["value"] == used


def other_thread(lines):
	"""A call inside another one claims to be of another thread."""
	edit(lines, lambda line: line["name"] == "thread_name", lambda line: line)
	name = next(raw for raw in lines if b'"thread_name"' in raw)
	line = json.loads(name)
	line["tid"] += 100000
	line["id"] = 10 ** 6
	lines.insert(4, json.dumps(line, separators=(",", ":")).encode())
	return edit(lines, child, put(tid=line["tid"]))


def swapped(lines):
	"""Two calls at the same time."""
	first = []

	def where(line):
		if line["cat"] in ("POSIX", "STDIO") and line["args"]["level"] == 1 and not child(line):
			first.append(line)
		return len(first) == 4
	return edit(lines, where, lambda line: {**line, "ts": first[0]["ts"] - 0, "dur": line["ts"] - first[0]["ts"] + line["dur"] + 1})
