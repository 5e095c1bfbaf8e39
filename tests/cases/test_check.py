"""dftrace-check: our traces pass, each planted defect is found, what is written is right."""

import collections
import gzip
import json
import os
import re
import signal
import subprocess
import zlib

import pytest

from lib.hooked import Form
from lib.run import BUILD, PATIENCE, ROOT, STATIC, Runner, program, wait_until
from lib.trace import Trace, name_hash, read_traces

CHECK = os.path.join(BUILD, "dftrace-check")
VENV = os.path.join(ROOT, "build", "venv")
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
	path = os.path.join(VENV, version, "bin", "dftracer_" + tool)
	if not os.path.exists(path):
		pytest.skip(f"dftracer-utils {version} is not here")
	return path


# --- our own traces ----------------------------------------------------------

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


@pytest.mark.parametrize("options", ["v1", "v2", "plain", "given"])
@pytest.mark.parametrize("shape", SHAPES)
def test_ours_are_good(runner, shape, options):
	more = {"v1": [], "v2": ["--format", "v2"], "plain": ["--no-compress"], "given": ["--paths", "given"]}[options]
	run = runner.traced(SHAPES[shape](), more)
	report = clean(os.path.dirname(run.prefix))
	assert all(file["dftrace"] for file in report["files"])
	if options == "given":
		return
	assert report["total"]["events"] == len(run.events)
	assert report["total"]["processes"] == len(run.traces)
	ours = collections.Counter(event.cat for event in run.events)
	assert {name: found["events"] for name, found in report["total"]["categories"].items()} == ours
	for name, way in (("read", "read"), ("write", "written")):
		moved = sum(max(event.ret or 0, 0) for event in run.events
			    if event.cat == "POSIX" and event.name in (name, f"p{name}", f"{name}v"))
		stdio = sum(event.args.get("size_sum", 0) for event in run.events if event.cat == "STDIO" and
			    (event.name in ("fread", "fgets", "fgetc", "getc", "getline", "getdelim", "fscanf", "getchar")) == (way == "read"))
		if shape in ("threads", "forks"):
			assert report["total"][way] == moved + stdio


def test_text_report(runner):
	run = runner.traced([program("workers"), "children", "3", "20"])
	said = check(os.path.dirname(run.prefix))
	assert said.status == 0 and not said.err
	lines = said.out.splitlines()
	assert lines[-1] == f"good: {len(run.traces)} files, {len(run.events)} events"
	assert all(trace.file in lines for trace in run.traces)
	assert any(re.match(r"  workers, pid \d+ on \S+; v1, gzip$", line) for line in lines)
	quiet = check("-q", os.path.dirname(run.prefix))
	assert quiet.out.splitlines() == lines[-1:]


def test_bundled_with_make_install(runner):
	"""--help, --version and the manual page agree about the options."""
	text = check("--help").out
	with open(os.path.join(BUILD, "dftrace-check.1"), encoding="utf-8") as file:
		page = file.read().replace("\\-", "-")
	options = set(re.findall(r"--[a-z-]+", text)) - {"--help"}
	assert {"--repair", "--merge", "--to", "--anonymize", "--json", "--require"} <= options
	assert all(option in page for option in options)
	assert re.match(r"dftrace-check \d+\.\d+", check("--version").out)


@pytest.mark.parametrize("args, words", [
	([], "no file and no directory"), (["--repare", "x"], "did you mean --repair?"), (["--to", "v3", "x"], "neither v1 nor v2"),
	(["--to"], "needs an argument: v1|v2"), (["--merge", "out.txt", "x"], "must end in .pfw.gz or .pfw"), (["-o", "d", "x"], "nothing is to be written"),
	(["--in-place", "--repair", "-o", "d", "x"], "contradict"), (["--require", ",", "x"], "needs categories"), (["-Z", "x"], "unknown option -Z"),
])
def test_wrong_usage(args, words):
	said = check(*args)
	assert said.status == 2 and words in said.err and said.err.count("\n") == 1, said


# --- planted defects ---------------------------------------------------------

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


DEFECTS = {
	"no opening": (lambda lines: lines[1:], "NO_OPENING"),
	"no closing": (lambda lines: lines[:-1], "NO_CLOSING"),
	"bracket inside": (lambda lines: [*lines[:9], b"[", *lines[9:]], "INNER_BRACKET"),
	"lines behind the end": (lambda lines: [*lines, lines[1].replace(b'"id":1,', b'"id":999999,')], "INNER_BRACKET"),
	"empty line": (lambda lines: [*lines[:9], b"", *lines[9:]], "EMPTY"),
	"comma": (lambda lines: [*lines[:9], lines[9] + b",", *lines[10:]], "COMMA"),
	"cut line": (lambda lines: [*lines[:9], lines[9][:-20], *lines[10:]], "JSON"),
	"rubbish": (lambda lines: [*lines[:9], b"killed", *lines[9:]], "JSON"),
	"two objects": (lambda lines: [*lines[:9], lines[9] + lines[9], *lines[10:]], "JSON"),
	"not UTF-8": (replaced(rb'"name":"(\w+)"', b'"name":"\xff"'), "JSON"),
	"control character": (replaced(rb'"name":"(\w+)"', b'"name":"a\x01"'), "JSON"),
	"half a surrogate": (replaced(rb'"name":"(\w+)"', rb'"name":"\\ud800"'), "JSON"),
	"wrong escape": (replaced(rb'"name":"(\w+)"', rb'"name":"\\x41"'), "JSON"),
	"key twice": (replaced(rb'"dur":', b'"dur":1,"dur":'), "JSON"),
	"arg twice": (replaced(rb'"level":1', b'"level":1,"level":1'), "JSON"),
	"blanks": (replaced(rb'"dur":', b'"dur": '), "BLANKS"),
	"order": (replaced(rb'("ts":\d+),("dur":\d+)', rb"\2,\1"), "ORDER"),
	"stranger": (replaced(rb'"dur":', b'"extra":1,"dur":'), "STRANGER"),
	"no ph": (changed(posix(), without("ph")), "KEY_MISSING"),
	"no name": (changed(posix(), without("name")), "KEY_MISSING"),
	"no pid": (changed(posix(), without("pid")), "KEY_MISSING"),
	"no ts": (changed(posix(), without("ts")), "KEY_MISSING"),
	"no id": (changed(posix(), without("id")), "KEY_MISSING"),
	"pid is text": (changed(posix(), put(pid="x")), "KEY_TYPE"),
	"negative tid": (changed(posix(), put(tid=-1)), "KEY_TYPE"),
	"args is a list": (changed(posix(), put(args=[1])), "KEY_TYPE"),
	"quoted number": (changed(posix(), lambda line: {**line, "ts": str(line["ts"])}), "QUOTED"),
	"null": (changed(posix(), put_args(fd=None)), "NULL_VALUE"),
	"fraction": (replaced(rb'"fd":\d+', b'"fd":1.5'), "FRACTION"),
	"hexadecimal": (replaced(rb'"ret":-?\d+', b'"ret":0x10'), "JSON"),
	"unknown phase": (changed(posix(), put(ph="Y")), "PHASE"),
	"mixed": (changed(posix(), put(ph=1)), "MIXED"),
	"id twice": (changed(posix(), put(id=5)), "ID_TWICE"),
	"id 0": (changed(posix(), put(id=0)), "ID"),
	"parent is not there": (changed(child, put_args(p_idx=123456)), "PARENT_MISSING"),
	"parent is younger": (changed(child, put(id=2)), "PARENT_LATER"),
	"parent of another thread": (other_thread, "PARENT_THREAD"),
	"level": (changed(child, put_args(level=3)), "PARENT_LEVEL"),
	"level without parent": (changed(posix(), put_args(level=2)), "PARENT_LEVEL"),
	"not within the parent": (changed(child, lambda line: {**line, "dur": 10 ** 8}), "PARENT_TIME"),
	"overlap": (swapped, "OVERLAP"),
	"fhash is no hash": (changed(lambda line: "fhash" in line.get("args", {}), put_args(fhash="XYZ")), "HASH"),
	"FH is missing": (lambda lines: edit(lines, fh_of_first_event(lines), lambda line: None), "NAME_UNKNOWN"),
	"FH is late": (lambda lines: moved(lines, fh_of_first_event(lines), -3), "NAME_UNKNOWN"),
	"FH's hash": (changed(named("FH"), renamed), "HASH_WRONG"),
	"SH's hash": (changed(named("SH"), renamed), "HASH_WRONG"),
	"HH is missing": (changed(named("HH"), lambda line: None), "HOST_UNKNOWN"),
	"HH is late": (lambda lines: moved(lines, named("HH"), 8), "HOST_UNKNOWN"),
	"other host": (changed(posix(), put_args(hhash="0123456789abcdef")), "HOST_UNKNOWN"),
	"no hhash": (changed(posix(), lambda line: {**line, "args": without("hhash")(line["args"])}), "HOST_UNKNOWN"),
	"no thread_name": (changed(named("thread_name"), lambda line: None), "THREAD_UNKNOWN"),
	"no process_name": (changed(named("process_name"), lambda line: None), "PROCESS_UNKNOWN"),
	"unknown metadata": (changed(named("process_name"), put(name="XX")), "METADATA"),
	"no start": (changed(named("start"), lambda line: None), "NO_START"),
	"two starts": (lambda lines: [*lines[:9], *[raw.replace(b'"id":', b'"id":99999') for raw in lines if b'"name":"start"' in raw], *lines[9:]],
		       "START_TWICE"),
	"start is late": (lambda lines: moved(lines, named("start"), 30), "BEFORE_START"),
	"no end": (changed(named("end"), lambda line: None), "NO_END"),
	"event behind the end": (lambda lines: moved(lines, named("end"), -8), "AFTER_END"),
	"num_events": (changed(named("end"), put_args(num_events=1)), "NUM_EVENTS"),
	"an event is missing": (changed(posix("close", "read", "fstat"), lambda line: None), "NUM_EVENTS"),
	"other process": (changed(posix(), lambda line: {**line, "pid": line["pid"] + 1}), "OTHER_PROCESS"),
	"ts 0": (changed(posix(), put(ts=0)), "TIME"),
	"negative dur": (changed(posix(), put(dur=-5)), "TIME"),
	"ts in ns": (changed(posix(), lambda line: {**line, "ts": line["ts"] * 1000}), "TIME_ODD"),
	"before the start": (changed(posix(), lambda line: {**line, "ts": line["ts"] - 10 ** 9}), "BEFORE_OWN_START"),
	"behind the end line": (changed(named("end"), lambda line: {**line, "ts": line["ts"] - 10 ** 9}), "AFTER_OWN_END"),
	"date": (changed(named("start"), put_args(date="Tue Dec  1 02:43:16 2015")), "DATE"),
	"errno without failure": (changed(lambda line: line.get("args", {}).get("ret") == 0, put_args(errno=2)), "RESULT"),
	"failure without errno": (changed(lambda line: posix()(line) and line["args"].get("ret") == 0, put_args(ret=-1)), "RESULT"),
	"more than asked for": (changed(lambda line: line["name"] in ("read", "write") and line["args"].get("ret", 0) > 0,
					lambda line: put_args(ret=line["args"]["count"] + 1)(line)), "SIZE"),
	"negative size": (changed(lambda line: line["name"] in ("read", "write") and "ret" in line["args"], put_args(ret=-4096)), "SIZE_ODD"),
	"huge size_sum": (changed(lambda line: line["name"] in ("fwrite", "fread") and "size_sum" in line["args"], put_args(size_sum=1 << 62)), "SIZE_ODD"),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_defect_is_found(base, nested, defect):
	plant, expected = DEFECTS[defect]
	path = store(os.path.join(base, "t-0123456789abcdef-preload.pfw.gz"), nested)
	clean(path)
	lines = plant(list(nested))
	assert lines != nested
	path = store(path, lines)
	report = as_json(path)
	assert report["status"] == 1
	assert expected in findings(report), findings(report)
	assert report["verdict"] == "findings"
	said = check("-q", path)
	assert said.status == 1 and said.out.startswith(path) and said.out.splitlines()[-1].startswith("findings: 1 file, 1 with findings")


V2 = {
	"type": (changed(posix(), put(type=10)), "TYPE"),
	"no type": (changed(posix(), without("type")), "TYPE"),
	"brackets": (lambda lines: [b"[", *lines, b"]"], "BRACKETS"),
	"letter": (changed(posix(), put(ph="X")), "MIXED"),
}


@pytest.mark.parametrize("defect", V2)
def test_defect_in_v2_is_found(base, nested, defect):
	plant, expected = V2[defect]
	path = store(os.path.join(base, "t.pfw.gz"), nested)
	out = os.path.join(base, "out")
	assert check("--to", "v2", "-o", out, path).status == 0
	with gzip.open(os.path.join(out, "t.pfw.gz")) as file:
		lines = file.read().split(b"\n")[:-1]
	path = store(path, plant(lines))
	assert expected in findings(as_json(path))


def members(lines, cut):
	"""Two gzip members, the first of `cut` bytes."""
	text = b"".join(line + b"\n" for line in lines)
	return gzip.compress(text[:cut]) + gzip.compress(text[cut:])


def flipped(raw):
	at = len(raw) // 2
	return raw[:at] + bytes([raw[at] ^ 0x55]) + raw[at + 1:]


FILES = {
	"truncated": (lambda lines, raw: raw[:len(raw) // 2], "TRUNCATED"),
	"without its last bytes": (lambda lines, raw: raw[:-4], "TRUNCATED"),
	"trailing bytes": (lambda lines, raw: raw + b"rest of a block", "TRAILING"),
	"trailing zeros": (lambda lines, raw: raw + bytes(512), "TRAILING"),
	"wrong sum": (lambda lines, raw: raw[:-8] + bytes([raw[-8] ^ 1]) + raw[-7:], "DAMAGED"),
	"damaged": (lambda lines, raw: flipped(raw), "DAMAGED"),
	"cut member": (lambda lines, raw: members(lines, 1001), "MEMBER_CUT"),
	"not compressed": (lambda lines, raw: gzip.decompress(raw), "NOT_COMPRESSED"),
}


@pytest.mark.parametrize("defect", FILES)
def test_defect_of_the_file_is_found_and_repaired(base, nested, defect):
	spoil, expected = FILES[defect]
	path = store(os.path.join(base, "t.pfw.gz"), nested)
	with open(path, "rb") as file:
		raw = file.read()
	with open(path, "wb") as file:
		file.write(spoil(nested, raw))
	report = as_json(path)
	assert report["status"] == 1 and expected in findings(report), report["files"]
	said = check("--repair", path)
	if defect == "damaged":
		# Of the lines before the place where it shows some may be lines, and say something else.
		assert not {"DAMAGED", "TRUNCATED", "JSON", "NO_END", "NO_CLOSING"} & findings(as_json(os.path.join(base, "t-repaired.pfw.gz")))
		return
	assert said.status == 0, said
	clean(os.path.join(base, "t-repaired.pfw.gz"))


def ranked(line_of, rank, size=4):
	"""The lines of a trace with a rank."""
	lines = list(line_of)
	at = next(i for i, raw in enumerate(lines) if b'"thread_name"' in raw)
	for i, (name, value) in enumerate([("rank", str(rank)), ("world_size", str(size))]):
		line = json.loads(lines[at])
		line.update(name="PR", id=10 ** 6 + i)
		line["args"].update(name=name, value=value)
		lines.insert(at + 1, json.dumps(line, separators=(",", ":")).encode())
	return lines


def test_missing_rank(base, threads):
	for rank in (0, 1, 3):
		store(os.path.join(base, f"t-{rank}.pfw.gz"), ranked(threads, rank))
	report = as_json(base)
	assert report["status"] == 1
	assert report["findings"] == ["rank 2 of 4 has no file"]
	assert report["total"]["ranks"] == 3
	store(os.path.join(base, "t-2.pfw.gz"), ranked(threads, 2))
	report = clean("--require", "POSIX,rank", base)
	assert report["total"]["ranks"] == 4


def test_rank_beyond_the_size(base, threads):
	store(os.path.join(base, "t.pfw.gz"), ranked(threads, 4))
	assert as_json(base)["findings"] == ["there is a rank 4 of 4"]


def test_clock_of_a_host(runner):
	"""A child that began before its parent made it."""
	run = runner.traced([program("workers"), "children", "2", "20"])
	top = os.path.dirname(run.prefix)
	clean(top)
	victim = next(trace for trace in run.traces if not any(event.name == "fork" for event in trace.events))
	text = re.sub(rb'"ts":(\d+)', lambda match: b'"ts":%d' % (int(match[1]) - 10 ** 8), victim.text)
	store(victim.file, text.split(b"\n")[:-1])
	assert "the clocks of one host differ" in as_json(top)["findings"][0]


def test_loss_is_said(base, threads):
	lines = list(threads)
	line = json.loads(next(raw for raw in lines if b'"tracer"' in raw))
	line["id"] = 10 ** 6
	line["args"].update(name="lost:io_uring", value="7")
	lines.insert(-2, json.dumps(line, separators=(",", ":")).encode())
	path = store(os.path.join(base, "t.pfw.gz"), lines)
	report = clean(path)
	assert findings(report, notes=True) == {"LOST"} and report["total"]["counts"]["lost:io_uring"] == 7
	assert "7 lost" in check(path).out
	assert check("--strict", path).status == 1


@pytest.mark.parametrize("item, words", [("HDF5", "did not call HDF5"), ("MPI", "did not call MPI"), ("rank", "launcher set no rank")])
def test_requirement_that_is_missing(base, threads, item, words):
	path = store(os.path.join(base, "t.pfw.gz"), threads)
	assert check("--require", "posix,dftracer", path).status == 0
	said = check("--require", f"POSIX,{item}", path)
	assert said.status == 1 and f"{item} is required and missing: " in said.out and words in said.out, said.out


# --- repair, conversion, joining ---------------------------------------------

def validated(directory, version="0.0.14"):
	"""Upstream's readers take what is there."""
	done = subprocess.run([upstream(version, "validate"), "-d", directory], capture_output=True, check=False, timeout=60 * PATIENCE)
	assert done.returncode == 0 and b" 0 failed" in done.stdout, (done.stdout[-1000:], done.stderr[-1000:])


@pytest.mark.parametrize("form", ["v1", "v2", "plain"])
def test_killed_tracer_is_repaired(runner, form):
	more = {"v1": [], "v2": ["--format", "v2"], "plain": ["--no-compress"]}[form]
	run = runner.start([program("progress"), "data", "100000000"], more)
	tracer = runner.tracer_of(run)
	wait_until(lambda: run.files and os.path.getsize(run.files[0]) > 1500, what="a trace")
	os.kill(tracer, signal.SIGKILL)
	runner.finish(run)
	path = run.files[0]
	assert findings(as_json(path)) >= {"NO_END"}
	with open(path, "rb") as file:
		before = file.read()
	out = runner.fresh("mended")
	said = check("--repair", "-o", out, path)
	assert said.status == 0, said
	with open(path, "rb") as file:
		assert file.read() == before
	mended = os.path.join(out, os.path.basename(path))
	assert os.stat(mended).st_mode & 0o777 == 0o600
	report = clean(mended)
	trace = Trace(mended)
	assert trace.end.args["repaired"] == 1 and len(trace.events) == report["total"]["events"] > 0
	assert set(trace.end.args) == {"hhash", "num_events", "repaired"}
	assert Trace(path, whole=False).events[-1].id == trace.events[-1].id
	if form != "plain":
		validated(out)
		count = subprocess.run([upstream("0.0.14", "event_count"), "-d", out, "--index-dir", runner.fresh("index")],
				       capture_output=True, check=True, timeout=60 * PATIENCE)
		assert int(count.stdout.split()[-1]) == len(trace.events) + 2
	# Again there is nothing to do.
	again = check("--repair", mended)
	assert again.status == 0 and again.out == "good: nothing to repair\n"
	# In place.
	assert check("--repair", "--in-place", path).status == 0
	clean(path)


def test_repair_without_metadata(base, threads):
	"""Events without args: the line of its own says that the trace was repaired."""
	lines = []
	for raw in threads[:-2]:
		line = json.loads(raw) if raw.startswith(b"{") else None
		if line and line["ph"] == "X":
			line.pop("args")
			raw = json.dumps(line, separators=(",", ":")).encode()
		lines.append(raw)
	path = store(os.path.join(base, "t.pfw.gz"), lines)
	assert check("--repair", "--in-place", path).status == 0
	trace = Trace(path, metadata=False)
	assert trace.properties["repaired"] == "1" and trace.end


def test_nothing_is_overwritten(base, nested):
	path = store(os.path.join(base, "t.pfw.gz"), nested[:-2])
	there = os.path.join(base, "t-repaired.pfw.gz")
	with open(there, "w", encoding="utf-8") as file:
		file.write("mine")
	said = check("--repair", path)
	assert said.status == 2 and "File exists" in said.err and said.err.count("\n") == 1
	with open(there, encoding="utf-8") as file:
		assert file.read() == "mine"
	assert sorted(os.listdir(base)) == ["t-repaired.pfw.gz", "t.pfw.gz"]


def test_defects_that_no_repair_mends(base, nested):
	path = store(os.path.join(base, "t.pfw.gz"), DEFECTS["FH's hash"][0](list(nested)))
	said = check("--repair", path)
	assert said.status == 1 and "none that a repair mends" in said.err
	assert os.listdir(base) == ["t.pfw.gz"]


def essence(events):
	"""What an event says, whatever its ids."""
	return [(event.name, event.cat, event.pid, event.tid, event.ts, event.dur, event.path,
		 sorted((key, str(value)) for key, value in event.args.items() if key not in ("p_idx", "level")))
		for event in events]


def test_conversion_there_and_back(runner):
	run = runner.traced(SHAPES["shell"]())
	two, one = runner.fresh("two"), runner.fresh("one")
	assert check("--to", "v2", "-o", two, os.path.dirname(run.prefix)).status == 0
	stem = os.path.join(two, os.path.basename(run.prefix))
	converted = read_traces(stem)
	assert all(trace.v2 for trace in converted)
	assert [essence(trace.events) for trace in converted] == [essence(trace.events) for trace in run.traces]
	validated(two)
	assert check("--to", "v1", "-o", one, two).status == 0
	report = clean(one)
	assert report["total"]["events"] == len(run.events)
	assert {file["format"] for file in report["files"]} == {"v1"}
	validated(one)
	# Ours in v2 converts as well.
	run = runner.traced(SHAPES["threads"](), ["--format", "v2"])
	back = runner.fresh("back")
	assert check("--to", "v1", "-o", back, os.path.dirname(run.prefix)).status == 0
	assert clean(back)["total"]["events"] == len(run.events)


def test_merge(runner):
	run = runner.traced(SHAPES["shell"]())
	out = os.path.join(runner.fresh("merged"), "all.pfw.gz")
	assert check("--merge", out, os.path.dirname(run.prefix)).status == 0
	report = clean(out)
	assert report["total"]["events"] == len(run.events) and report["total"]["processes"] == len(run.traces)
	with gzip.open(out, "rt", encoding="utf-8") as file:
		lines = file.read().splitlines()
	assert lines[0] == "[" and lines[-1] == "]" and not any(line in "[]" for line in lines[1:-1])
	parsed = [json.loads(line) for line in lines[1:-1]]
	ids = [line["id"] for line in parsed]
	assert len(set(ids)) == len(ids)
	names = [(line["name"], line["args"]["value"]) for line in parsed if line["name"] in ("HH", "FH", "SH")]
	assert len(set(names)) == len(names)
	# Parents are those that they were: by name, thread and time.
	by_id = {line["id"]: line for line in parsed}
	found = collections.Counter()
	for line in parsed:
		parent = by_id.get(line.get("args", {}).get("p_idx"))
		if parent:
			found[(line["name"], line["tid"], line["ts"], parent["name"], parent["ts"])] += 1
	ours = collections.Counter()
	for trace in run.traces:
		events = {event.id: event for event in trace.events}
		for event in trace.events:
			parent = events.get(event.args["p_idx"])
			if parent:
				ours[(event.name, event.tid, event.ts, parent.name, parent.ts)] += 1
	assert found == ours
	# What Perfetto wants: letters, integers, processes and threads with names.
	assert all(line["ph"] in ("X", "M") for line in parsed)
	assert {line["pid"] for line in parsed if line["name"] == "process_name"} == {line["pid"] for line in parsed}
	validated(os.path.dirname(out))
	# The file is not written again, and plain works as well.
	assert check("--merge", out, os.path.dirname(run.prefix)).status == 2
	plain = os.path.join(runner.fresh("plain"), "all.pfw")
	assert check("--merge", plain, "--to", "v2", os.path.dirname(run.prefix)).status == 0
	assert clean(plain)["files"][0]["format"] == "v2"


def test_merge_of_hosts(base, threads):
	"""The same process id on two hosts."""
	other = []
	old = json.loads(threads[1])["args"]["value"]
	new = name_hash(b"other")
	for raw in threads:
		raw = raw.replace(old.encode(), new.encode())
		if b'"name":"HH"' in raw:
			raw = re.sub(rb'"name":"[^"]*","value"', b'"name":"other","value"', raw)
		other.append(raw)
	one, two = store(os.path.join(base, "1.pfw.gz"), threads), store(os.path.join(base, "2.pfw.gz"), other)
	out = os.path.join(base, "all.pfw.gz")
	assert check("--merge", out, one, two).status == 0
	report = clean(out)
	pids = [process["pid"] for process in report["files"][0]["processes"]]
	assert pids[1] == pids[0] + 4194304
	assert {process["host"] for process in report["files"][0]["processes"]} == set(report["files"][0]["hosts"])
	assert len(report["files"][0]["hosts"]) == 2


def test_anonymize(runner):
	run = runner.traced(["sh", "-c", "mkdir -p secret; seq 1 200 > secret/results.h5; cat secret/results.h5 > secret/copy; cat secret/copy"])
	out = runner.fresh("anonymous")
	assert check("--anonymize", "-o", out, os.path.dirname(run.prefix)).status == 0
	report = clean(out)
	assert report["total"]["events"] == len(run.events)
	traces = [Trace(os.path.join(out, name)) for name in os.listdir(out)]
	text = b"".join(trace.text for trace in traces)
	host = os.uname().nodename
	for word in (b"secret", b"results", b"/usr", b"seq", os.path.basename(run.cwd).encode(), host.encode() + b'"'):
		assert word not in text, word
	assert not any(os.path.basename(run.prefix) + "-" in name for name in os.listdir(out))
	# One path stays one, and what it was is told by nothing but how it was used.
	def uses(some):
		count = collections.Counter((event.name, event.path) for trace in some for event in trace.events if event.path)
		by_path = collections.defaultdict(list)
		for (name, path), times in count.items():
			by_path[path].append((name, times))
		return sorted(sorted(kinds) for kinds in by_path.values())
	assert uses(traces) == uses(run.traces)
	path = next(event.path for trace in traces for event in trace.events if event.path and event.path.endswith(".h5"))
	assert path.count("/") == run.path("secret", "results.h5").count("/")
	sizes = [sorted((event.ts, event.name, event.ret) for trace in some for event in trace.events) for some in (traces, run.traces)]
	assert [[item[1] for item in one] for one in sizes][0] == [[item[1] for item in one] for one in sizes][1]


# --- what is no trace --------------------------------------------------------

def one_line(path, *words, status=2):
	said = check("-q", path)
	lines = said.out.splitlines()
	assert said.status == status and not said.err, said
	assert len(lines) == 2 and lines[0].startswith(f"{path}: ") and any(word in lines[0] for word in words), said.out
	return said


def test_bad_input(base):
	def made(name, raw):
		path = os.path.join(base, name)
		with open(path, "wb") as file:
			file.write(raw)
		return path

	one_line(os.path.join(base, "missing.pfw.gz"), "No such file")
	one_line(made("empty.pfw.gz", b""), "the file is empty")
	one_line(made("empty.pfw", b""), "the file is empty")
	one_line(made("text.pfw.gz", b"hello\nworld\n"), "neither gzip nor lines of JSON")
	one_line(made("binary.pfw.gz", bytes(range(256)) * 100), "neither gzip nor lines of JSON")
	one_line(made("binary-gz.pfw.gz", gzip.compress(os.urandom(100000))), "holds no line of a trace")
	one_line(made("no-events.pfw.gz", gzip.compress(b"[\n]\n")), "holds no line of a trace")
	one_line(made("header.pfw.gz", gzip.compress(b"x" * 99)[:12]), "holds no line of a trace")
	one_line(made("nested.pfw", b"[\n" + b'{"a":' * 100000 + b"\n"), "holds no line of a trace")
	os.mkdir(os.path.join(base, "none"))
	said = check(os.path.join(base, "none"))
	assert said.status == 2 and "no *.pfw and no *.pfw.gz" in said.err
	fifo = os.path.join(base, "fifo.pfw")
	os.mkfifo(fifo)
	one_line(fifo, "not a regular file")
	if os.geteuid() != 0:
		path = made("closed.pfw.gz", b"x")
		os.chmod(path, 0)
		one_line(path, "Permission denied")


def test_permission(base, nested):
	"""As a user who may not read it."""
	path = store(os.path.join(base, "t.pfw.gz"), nested)
	os.chmod(path, 0)
	if os.geteuid() != 0:
		one_line(path, "Permission denied")
		return
	done = subprocess.run(["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--reuid=65534", "--clear-groups", CHECK, "-q", path],
			      capture_output=True, check=False, timeout=60)
	if b"setpriv" in done.stderr:
		pytest.skip(done.stderr.decode())
	assert done.returncode in (2, 126, 127)
	if done.returncode == 2:
		assert b"Permission denied" in done.stdout


def squeezed(piece, times):
	"""A gzip file of a piece many times, without having it in memory."""
	deflater = zlib.compressobj(9, zlib.DEFLATED, 31)
	out = [deflater.compress(piece) for _ in range(times)]
	return b"".join([*out, deflater.flush()])


def limited(path):
	"""Checks with 64 MiB of memory at most."""
	return subprocess.run(["prlimit", "--data=67108864", CHECK, "-q", path], capture_output=True, check=False, timeout=120 * PATIENCE)


@pytest.mark.skipif(BUILD.endswith("san"), reason="address sanitizers want more memory")
@pytest.mark.parametrize("name, piece, times", [("zeros", bytes(1 << 20), 200), ("letters", b"a" * (1 << 20), 200), ("newlines", b"\n" * (1 << 20), 200),
						 ("braces", b'{"a":' * 200000, 200)], ids=["zeros", "letters", "newlines", "braces"])
def test_bomb(base, name, piece, times):
	path = os.path.join(base, f"{name}.pfw.gz")
	with open(path, "wb") as file:
		file.write(squeezed(piece, times))
	done = limited(path)
	lines = done.stdout.decode().splitlines()
	assert done.returncode == 2 and not done.stderr, done
	assert len(lines) == 2 and lines[0].startswith(path), lines


@pytest.mark.skipif(BUILD.endswith("san"), reason="address sanitizers want more memory")
def test_one_long_line(base, nested):
	"""A plain file with a line of 1 GB, mostly a hole, between good lines."""
	path = os.path.join(base, "t.pfw")
	with open(path, "wb") as file:
		file.write(b"\n".join(nested[:-2]) + b"\n{")
		file.seek(10 ** 9, os.SEEK_CUR)
		file.write(b"\n" + b"\n".join(nested[-2:]) + b"\n")
	done = limited(path)
	lines = done.stdout.decode().splitlines()
	assert done.returncode == 1 and not done.stderr, done
	assert len(lines) == 2 and "a line of more than 16 MiB" in lines[0], lines


def test_memory_does_not_grow(base, nested):
	"""Twenty times the events, the same memory."""
	def peak(count):
		event = json.loads(next(raw for raw in nested if b'"POSIX"' in raw and b'"ret":0' in raw))
		path = os.path.join(base, f"{count}.pfw.gz")
		with gzip.open(path, "wb", compresslevel=1) as file:
			file.write(b"\n".join(nested[:-2]) + b"\n")
			end = json.loads(nested[-2])
			for i in range(count):
				event.update(id=10 ** 6 + i, ts=end["ts"] + 10 * i, dur=5)
				file.write(json.dumps(event, separators=(",", ":")).encode() + b"\n")
			end["id"], end["ts"] = 10 ** 6 + count, end["ts"] + 10 * count
			end["args"]["num_events"] += count
			file.write(json.dumps(end, separators=(",", ":")).encode() + b"\n]\n")
		done = subprocess.run(["/usr/bin/env", "python3", "-c", "import resource,subprocess,sys\n"
				       "r=subprocess.run(sys.argv[1:],stdout=subprocess.DEVNULL)\n"
				       "print(r.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)", CHECK, path],
				      capture_output=True, check=True, timeout=60 * PATIENCE)
		status, memory = map(int, done.stdout.split())
		assert status == 0
		return memory
	small, large = peak(5000), peak(100000)
	assert large < small + 1024, (small, large)


def on_terminal(*args):
	"""Runs with stderr on a terminal; gives what came there."""
	main, other = os.openpty()
	process = subprocess.Popen([CHECK, *args], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=other)
	os.close(other)
	said = b""
	try:
		while piece := os.read(main, 65536):
			said += piece
	except OSError:
		pass
	os.close(main)
	process.wait()
	return said


def test_progress_on_a_terminal(base, nested):
	event = next(raw for raw in nested if b'"POSIX"' in raw)
	path = store(os.path.join(base, "t.pfw"), [*nested[:-2], *[event] * 60000, *nested[-2:]])
	paths = [path] * (6 if BUILD.endswith("san") else 20)
	said = on_terminal(*paths)
	assert re.match(rb"\rchecking \[#*\.*\] +\d+ %", said), said[:200]
	assert said.endswith(b"\r\033[K")
	assert on_terminal("-q", *paths) == b""
	assert not check(*paths).err


# --- upstream's own ----------------------------------------------------------

def preload():
	for top, _, names in os.walk(os.path.join(VENV, "preload")):
		if "libdftracer_preload.so" in names:
			return os.path.join(top, "libdftracer_preload.so")
	return pytest.skip("dftracer is not here")


@pytest.mark.parametrize("compressed", ["0", "1"])
@pytest.mark.parametrize("metadata", ["0", "1"])
@pytest.mark.parametrize("aggregated", ["0", "1"])
def test_upstream_is_good(runner, compressed, metadata, aggregated):
	top = runner.fresh("upstream")
	run = runner.native(["sh", "-c", "seq 1 1000 > f; cat f | wc -l; mv f 'a b'; cat none; true"],
			    env={"LD_PRELOAD": preload(), "DFTRACER_ENABLE": "1", "DFTRACER_INIT": "PRELOAD", "DFTRACER_DATA_DIR": "all",
				 "DFTRACER_LOG_FILE": os.path.join(top, "t"), "DFTRACER_INC_METADATA": metadata,
				 "DFTRACER_ENABLE_AGGREGATION": aggregated, "DFTRACER_TRACE_COMPRESSION": compressed,
				 "HWLOC_COMPONENTS": "-all"})
	assert run.status == 0
	paths = [path for path in (os.path.join(top, name) for name in os.listdir(top)) if os.path.getsize(path)]
	assert paths
	report = clean(*paths)
	assert not any(file["dftrace"] for file in report["files"])
	assert report["total"]["events"] + report["total"]["aggregated"] > 0
	# Converted and joined it is one that all readers take.
	out = os.path.join(runner.fresh("one"), "all.pfw.gz")
	assert check("--merge", out, "--to", "v1", *paths).status == 0
	validated(os.path.dirname(out))


OLD = {
	"strings of 2023": ['[', '{"id":"6","name":"opendir","cat":"POSIX","pid":"0","tid":"338684","ts":"1698352097224361","dur":"70975","ph":"X",'
			    '"args":{"hostname":"a","name":"/p/x","fname":"/p/x"}}'],
	"16 bits": ['[', '{"id":1,"name":"HH","cat":"dftracer","pid":35,"tid":35,"ph":"M","args":{"name":"corona173","value":5692}}',
		    '{"id":2,"name":"thread_name","cat":"dftracer","pid":35,"tid":35,"ph":"M","args":{"name":"35","value":"thread_name"}}',
		    '{"id":3,"name":"SH","cat":"dftracer","pid":35,"tid":35,"ph":"M","args":{"name":"./cm1.exe","value":33764}}',
		    '{"id":4,"name":"SH","cat":"dftracer","pid":35,"tid":35,"ph":"M","args":{"name":"DEFAULT","value":14683}}',
		    '{"id":5,"name":"start","cat":"dftracer","pid":35,"tid":35,"ts":1727387307981693,"dur":0,"ph":"X","args":{"hhash":5692,'
		    '"p_idx":-1,"cmd_hash":33764,"exec_hash":14683,"level":1,"version":100005,"date":"Thu Sep 26 14:48:27 2024","ppid":3}}',
		    '{"id":8,"name":"fread","cat":"STDIO","pid":35,"tid":35,"ts":1727387307985825,"dur":10,"ph":"X","args":{"hhash":5692,'
		    '"p_idx":-1,"level":1,"ret":3107,"fhash":33764,"count":8192,"size":2}}',
		    '{"id":9,"name":"end","cat":"dftracer","pid":35,"tid":35,"ts":1727387453267645,"dur":0,"ph":"X","args":{"hhash":5692,'
		    '"p_idx":-1,"num_events":8,"level":1}}', ']'],
	"64 bits": ['[', '{"id":1,"name":"HH","cat":"dftracer","pid":10,"tid":10,"ph":"M","args":{"hhash":9509357668201227806,"name":"corona171",'
		    '"value":9509357668201227806}}',
		    '{"id":4,"name":"SH","cat":"dftracer","pid":10,"tid":10,"ph":"M","args":{"hhash":9509357668201227806,"name":"dlio_benchmark",'
		    '"value":15997048988198709261}}',
		    '{"id":5,"name":"start","cat":"dftracer","pid":10,"tid":10,"ts":1744611912981173,"dur":0,"ph":"X","args":{'
		    '"hhash":9509357668201227806,"p_idx":-1,"level":1,"version":100008,"date":"Sun Apr 13 23:25:12 2025","ppid":1}}',
		    '{"id":6,"name":"PR","cat":"dftracer","pid":10,"tid":10,"ph":"M","args":{"hhash":9509357668201227806,"name":"core_affinity",'
		    '"value":[0,1,2]}}',
		    '{"id":7,"name":"pread","cat":"POSIX","pid":10,"tid":10,"ts":1744611915154438,"dur":9,"ph":"X","args":{'
		    '"hhash":9509357668201227806,"p_idx":231,"fd":16,"ret":8,"count":8,"offset":0,"level":11}}',
		    '{"id":8,"name":"end","cat":"dftracer","pid":10,"tid":10,"ts":1744611969672133,"dur":0,"ph":"X","args":{'
		    '"hhash":9509357668201227806,"p_idx":2290,"num_events":7,"level":7}}', ']'],
}


@pytest.mark.parametrize("name", OLD)
def test_older_generations(base, name):
	path = store(os.path.join(base, "t.pfw"), [line.encode() for line in OLD[name]])
	report = as_json(path)
	if name == "strings of 2023":
		# They never said when they end.
		assert findings(report) == {"NO_END"}
	else:
		clean(path)
	assert report["total"]["events"] == 1
	assert report["total"]["read"] == {"strings of 2023": 0, "16 bits": 6214, "64 bits": 8}[name]
	with open(path, "rb") as file:
		raw = file.read()
	# As it stands on disk without an end of its last line, and unfinished.
	with open(path, "wb") as file:
		file.write(raw[:-1])
	assert as_json(path)["status"] == report["status"]


# --- mutations ---------------------------------------------------------------

def mutated(random, raw):
	"""A few bytes, pieces or numbers of a trace changed."""
	data = bytearray(raw)
	for _ in range(random.randint(1, 6)):
		at = random.randrange(len(data) or 1)
		kind = random.randrange(7)
		if kind == 0:
			data[at:at + 1] = bytes([random.randrange(256)])
		elif kind == 1:
			del data[at:at + random.randint(1, 40)]
		elif kind == 2:
			data[at:at] = data[random.randrange(len(data) or 1):][:random.randint(1, 300)]
		elif kind == 3:
			data[at:at] = random.choice([b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"\n", b"\x00", b"\xff", b"null", b"-", b"1e9", b"\\u",
						     b"\\ud83d\\ude00", b"18446744073709551616", b"{\"a\":[1,{\"b\":null}]}"])
		elif kind == 4:
			data = data[:at]
		elif kind == 5:
			data[at:at + 1] = bytes([data[at] ^ (1 << random.randrange(8))]) if data else b""
		else:
			number = re.search(rb"\d+", bytes(data[at:at + 400]))
			if number:
				data[at + number.start():at + number.end()] = random.choice([b"0", b"-1", b"4294967296", b"9223372036854775808", b"00"])
	return bytes(data)


def fuzz(base, seed_lines, rounds, first):
	import random as random_module
	text = b"".join(line + b"\n" for line in seed_lines[:60])
	zipped = gzip.compress(text)
	for number in range(first, first + rounds):
		random = random_module.Random(number)
		plain = random.random() < 0.6
		path = os.path.join(base, "m.pfw" if plain else "m.pfw.gz")
		raw = mutated(random, text if plain or random.random() < 0.5 else zipped)
		with open(path, "wb") as file:
			file.write(raw if plain or raw[:2] == b"\x1f\x8b" else gzip.compress(raw))
		out = os.path.join(base, "out")
		for options in ([], ["--repair", "-o", out], ["--to", "v2", "--anonymize", "-o", out], ["--to", "v1", "--repair", "--merge", out + ".pfw"]):
			said = check("--json", *options, path)
			for line in said.out.splitlines()[:1]:
				assert line in ("{", "good: nothing to repair"), (number, said.out[:200])
			if "--repair" in options and os.path.isdir(out):
				for name in os.listdir(out):
					again = as_json(os.path.join(out, name))
					left = {"TRUNCATED", "DAMAGED", "TRAILING", "JSON", "COMMA", "INNER_BRACKET", "LONG", "NO_END"} & findings(again)
					assert not left or all(not p.get("ended") for f in again["files"] for p in f["processes"]), (number, left)
			for name in (out, out + ".pfw"):
				subprocess.run(["rm", "-rf", name], check=True)


def test_mutations(base, nested):
	fuzz(base, nested, 25, 0)


@pytest.mark.full
def test_many_mutations(base, nested, threads):
	fuzz(base, nested, 400, 1000)
	fuzz(base, threads, 400, 100000)
