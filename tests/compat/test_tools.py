"""More of upstream's readers: comparator, replay, analyzer; Perfetto's rules; and their numbers are the programs' own words."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess

import pytest

from lib import perfetto, upstream
from lib.checked import check
from lib.run import PATIENCE, program, wait_until
from lib.trace import Trace

WORKERS = ["workers", "threads", "4", "50"]
# Children, threads and streams, and paths that analyzers do not leave out.
MANY = ["sh", "-c", f"for i in 1 2 3; do seq 1 2000 > f$i; cat f$i | wc -c; done; {program('workers')} threads 3 40; "
	f"{program('workers')} children 3 20; cp f1 f4"]
# Files that the analyzer takes for the system's are left out, by these parts of their paths.
SYSTEM = ("/dev/", "/etc/", "/gapps/python", "/lib/python", "/proc/", "/software/", "/sys/", "/usr/lib", "/usr/tce/backend",
	  "/usr/tce/packages", "/venv", "__pycache__")


def said(stdout):
	"""Bytes that the threads or children say they have written and read."""
	words = [line.split("\t")[1].split() for line in stdout.decode().splitlines() if line.startswith("file")]
	return [sum(int(word[i]) for word in words) for i in range(2)]


def tool(runner, name, *args, version="0.0.14", statuses=(0,), **more):
	command = [upstream.venv(version, name), *map(str, args)]
	done = subprocess.run(command, capture_output=True, check=False, timeout=120 * PATIENCE, cwd=runner.fresh("reader"), **more)
	assert done.returncode in statuses, (command, done.stdout[-2000:], done.stderr[-2000:])
	return done.stdout.decode()


def directory(run):
	return os.path.dirname(run.prefix)


def workers(runner, *words):
	return runner.traced([program(words[0]), *words[1:]], ["-q", "-d", runner.base])


def test_comparator_of_equal_runs(runner):
	"""Two runs of one program: the same calls and bytes, and the bytes are those that the program tells."""
	one, two = workers(runner, *WORKERS), workers(runner, *WORKERS)
	assert said(one.stdout) == said(two.stdout)
	out = json.loads(tool(runner, "dftracer_comparator", "--baseline", directory(one), "--variant", directory(two),
			      "--format", "json"))
	assert [out[side]["total_bytes"] for side in ("baseline_meta", "variant_meta")] == [sum(said(one.stdout))] * 2
	root = {metric["name"]: metric for metric in out["nodes"][0]["summary"]["metrics"]}
	assert root["count"]["baseline"] == root["count"]["variant"] == len(one.events) + 2
	assert root["threads"]["baseline"] == root["threads"]["variant"] == 5


def test_comparator_sees_more_calls(runner):
	"""The check of the check: one that wrote more is not the same."""
	one, two = workers(runner, *WORKERS), workers(runner, "workers", "threads", "4", "60")
	out = json.loads(tool(runner, "dftracer_comparator", "--baseline", directory(one), "--variant", directory(two),
			      "--format", "json"))
	assert out["variant_meta"]["total_bytes"] == sum(said(two.stdout)) > out["baseline_meta"]["total_bytes"]


def replayed(text):
	return {name.strip(): int(value) for name, value in re.findall(r"^\s*([A-Z][\w ]+): +(\d+)$", text, re.MULTILINE)}


def test_replay(runner):
	"""A dry run executes all our events. start and end are no calls to it, in upstream's own traces neither."""
	run = workers(runner, *WORKERS)
	out = replayed(tool(runner, "dftracer_replay", "--dry-run", "--filter-category", "POSIX", *run.files))
	assert out["Executed"] == len(run.events) and out["Failed"] == 0
	theirs = upstream.traced(runner, [program(WORKERS[0]), *WORKERS[1:]])
	for files, events in ((run.files, len(run.events)), ([theirs.theirs[0].file], len(theirs.theirs[0].events))):
		out = replayed(tool(runner, "dftracer_replay", "--dry-run", *files, statuses=(2,)))
		assert out["Executed"] == events and out["Failed"] == 2


def test_perfetto_takes_the_joined_trace(runner):
	run = runner.traced(MANY, ["-q"])
	assert len(run.traces) > 5
	joined = os.path.join(runner.fresh("joined"), "all.pfw")
	assert check("--merge", joined, directory(run)).status == 0
	with open(joined, "rb") as file:
		raw = file.read()
	slices, names = perfetto.imported(raw)
	assert sum(len(found) for found in slices.values()) == len(run.events) + 2 * len(run.traces)
	assert {thread[0] for thread in slices} == {trace.pid for trace in run.traces}
	for trace in run.traces:
		assert names["process_name", trace.pid, trace.pid]
	assert {name for kind, *_, name in ((key[0], value) for key, value in names.items()) if kind == "thread_name"} >= {"sh", "seq"}


@pytest.mark.parametrize("change", [
	lambda raw: raw.replace(b'"ph":"X"', b'"ph":1', 1), lambda raw: raw[2:], lambda raw: raw + b"[\n]\n",
	lambda raw: raw.replace(b'"args":{', b'"args":[{', 1).replace(b"}}", b"}]}", 1), lambda raw: raw.replace(b'"sh"', b'"\\ud800"', 1)])
def test_perfetto_can_refuse(runner, change):
	run = runner.traced(["sh", "-c", "cat /etc/passwd > f; cat f"], ["-q"])
	raw = next(trace.text for trace in run.traces if trace.exec_name == "sh")
	perfetto.imported(raw)
	with pytest.raises((perfetto.Refused, json.JSONDecodeError)):
		perfetto.imported(change(raw))


def test_perfetto_refuses_what_overlaps():
	perfetto.nested("thread", [(0, 10, "a"), (2, 10, "b"), (3, 4, "c"), (10, 12, "d")])
	with pytest.raises(perfetto.Refused):
		perfetto.nested("thread", [(0, 10, "a"), (5, 11, "b")])


# --- what was killed ---------------------------------------------------------------

def killed(runner):
	"""The repaired trace of a program whose tracer was killed, in a directory of its own."""
	run = runner.start([program("progress"), "data", "100000000"], [])
	tracer = runner.tracer_of(run)
	wait_until(lambda: run.files and os.path.getsize(run.files[0]) > 3000, what="a trace")
	os.kill(tracer, signal.SIGKILL)
	runner.finish(run)
	out = runner.fresh("mended")
	assert check("--repair", "-o", out, *run.files).status == 0
	path, = (os.path.join(out, name) for name in os.listdir(out))
	return Trace(path)


def test_readers_take_a_repaired_trace(runner):
	trace = killed(runner)
	where, count = os.path.dirname(trace.file), len(trace.events)
	assert count > 100 and trace.end.args["repaired"] == 1
	out = replayed(tool(runner, "dftracer_replay", "--dry-run", "--filter-category", "POSIX", trace.file))
	assert out["Executed"] == count and out["Failed"] == 0
	out = json.loads(tool(runner, "dftracer_comparator", "--baseline", where, "--variant", where, "--format", "json"))
	root = {metric["name"]: metric for metric in out["nodes"][0]["summary"]["metrics"]}
	assert root["count"]["baseline"] == root["count"]["variant"] == count + 2
	for version in ("0.0.14", "0.0.12"):
		tool(runner, "dftracer_validate", "-d", where, version=version)
		index = runner.fresh("index")
		assert int(tool(runner, "dftracer_event_count", "-d", where, "--index-dir", index, version=version).split()[-1]) == count + 2
	slices, _ = perfetto.imported(trace.text)
	assert sum(map(len, slices.values())) == count + 2


# --- dfanalyzer --------------------------------------------------------------------

def analyzed(runner, path, *settings):
	"""The numbers of its table. It needs USER; its cluster is in threads, unless `settings` say otherwise."""
	where = runner.fresh("analysis")
	command = [upstream.venv("analyzer", "dfanalyzer"), f"trace_path={path}", "analyzer/preset=posix", f"hydra.run.dir={where}/hydra",
		   *(settings or ["cluster.n_workers=1", "cluster.processes=false"])]
	done = subprocess.run(command, capture_output=True, check=False, timeout=500 * PATIENCE, cwd=where,
			      env={**os.environ, "USER": "somebody", "COLUMNS": "200"})
	assert done.returncode == 0, (done.stdout[-3000:], done.stderr[-3000:])
	return {name.strip(): float(value.replace(",", "")) for name, value in
		re.findall(r"^│ ([\w \-]+?) *│ [\w/]+ *│ +([\d.,]+) │", done.stdout.decode(), re.MULTILINE)}


def kept(event):
	return not any(part in (event.path or "") for part in SYSTEM)


def expected(run):
	"""Calls and bytes of what the analyzer takes for I/O of the user's files."""
	posix = [event for event in run.events if event.cat in ("POSIX", "STDIO") and kept(event)]
	return {"Trace Count": len(run.events) + 2 * len(run.traces), "Total Processes": len(run.traces),
		"POSIX - All Count": len(posix)}


@pytest.mark.full
def test_analyzer(runner):
	"""dfanalyzer on one joined trace, and on the directory with one worker: all processes, all events."""
	run = runner.traced(MANY, ["-q"])
	joined = os.path.join(runner.fresh("joined"), "all.pfw.gz")
	assert check("--merge", joined, directory(run)).status == 0
	for path in (joined, directory(run)):
		found = analyzed(runner, path)
		ours = expected(run)
		assert {name: found[name] for name in ours} == ours


@pytest.mark.full
def test_analyzer_of_a_repaired_trace(runner):
	trace = killed(runner)
	found = analyzed(runner, trace.file)
	assert found["Trace Count"] == len(trace.events) + 2 and found["Total Processes"] == 1


@pytest.mark.full
def test_analyzer_with_several_workers_loses_files_of_upstream_as_well(runner):
	"""With more than one worker the analyzer leaves out files of a directory, whoever wrote them. docs/differences.md tells
	people to join traces first; when this fails, it is mended, and that can go."""
	ours = runner.traced(MANY, ["-q"])
	theirs = runner.fresh("six")
	count = 0
	for _ in range(6):
		run = upstream.traced(runner, [program("progress"), "data", "50"])
		with contextlib.suppress(FileExistsError):
			shutil.copy(run.theirs[0].file, theirs)
		count += len(run.theirs[0].events) + 2
	several = ["cluster.n_workers=2", "cluster.processes=true"]
	assert analyzed(runner, directory(ours), *several)["Trace Count"] < expected(ours)["Trace Count"]
	assert analyzed(runner, theirs, *several)["Trace Count"] < count
