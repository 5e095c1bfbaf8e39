"""dftrace-check finds each planted defect."""

import gzip
import json
import os
import re

import pytest

from lib.checked import (as_json, changed, check, child, clean, edit, fh_of_first_event, findings, module_runner, moved, named,
			 nested, other_thread, posix, put, put_args, renamed, replaced, store, swapped, threads, without)
from lib.run import program


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
