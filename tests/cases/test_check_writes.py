"""dftrace-check writes traces: repaired, converted, joined, anonymous."""

import collections
import gzip
import json
import os
import re
import signal
import subprocess

import pytest

from lib.checked import (SHAPES, as_json, check, clean, edit, findings, module_runner, named, nested, renamed, store, threads,
			 upstream, validated)
from lib.run import PATIENCE, program, wait_until
from lib.trace import Trace, name_hash, read_traces


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
		if form == "v1":
			validated(out, "0.0.12")
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
	path = store(os.path.join(base, "t.pfw.gz"), edit(list(nested), named("FH"), renamed))
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
