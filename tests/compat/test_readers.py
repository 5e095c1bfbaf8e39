"""Upstream's readers read our traces, and their numbers are ours."""

import collections
import gzip
import json
import os
import re
import subprocess

import pytest

from lib.run import Runner, program
from lib.upstream import venv

WORK = ["sh", "-c", f"mkdir d; for i in 1 2 3; do seq 1 5000 > d/$i; cat d/$i | wc -c; done; "
	f"{program('workers')} threads 4 50; mv d/1 'd/a \"b\" ä'; cat none; ls -l d > list"]
FORMATS = ("v1", "v2")


def tools(version):
	return os.path.dirname(venv(version, "dftracer_validate"))


@pytest.fixture(scope="module", params=FORMATS)
def traced(request, tmp_path_factory):
	"""One traced run per format, read by all cases below."""
	runner = Runner(str(tmp_path_factory.mktemp(request.param)))
	run = runner.traced(WORK, ["--format", request.param])
	assert run.status == 0, run.stderr
	run.format = request.param
	assert run.traces
	yield run
	runner.close()


@pytest.fixture(params=["0.0.14", "0.0.12"])
def version(request, traced):
	if traced.format == "v2" and request.param == "0.0.12":
		pytest.skip("0.0.12 is older than the v2 lines and takes them for plain JSON")
	return request.param


def call(version, runner, tool, *args):
	command = [os.path.join(tools(version), "dftracer_" + tool), *args]
	done = subprocess.run(command, capture_output=True, check=False, timeout=120,
			      cwd=runner.fresh("reader"))
	assert done.returncode == 0, (command, done.stdout[-2000:], done.stderr[-2000:])
	return done.stdout.decode()


def directory(run):
	return os.path.dirname(run.prefix)


def lines(run):
	return sum(len(trace.meta) + len(trace.events) + 2 for trace in run.traces)


def with_ends(run):
	"""Our events, start and end lines counted as well, as the readers do."""
	return sum(len(trace.events) + 2 for trace in run.traces)


def test_validate(traced, version, runner):
	out = call(version, runner, "validate", "-d", directory(traced))
	count = len(traced.traces)
	assert f"Validated {count} file(s): {count} passed, 0 failed" in out
	assert int(re.search(r"(\d+) lines", out)[1]) == lines(traced)


def test_validate_can_fail(traced, version, runner):
	"""The check of the check: a broken trace is refused."""
	top = runner.fresh("broken")
	with open(traced.files[0], "rb") as file:
		raw = file.read()
	with open(os.path.join(top, "t-preload.pfw.gz"), "wb") as file:
		file.write(raw[:len(raw) // 2])
	done = subprocess.run([os.path.join(tools(version), "dftracer_validate"), "-d", top],
			      capture_output=True, check=False, timeout=60)
	assert b" 0 failed" not in done.stdout or done.returncode != 0


def test_event_count(traced, version, runner):
	out = call(version, runner, "event_count", "-d", directory(traced), "--index-dir",
		   runner.fresh("index"))
	assert int(out.split()[-1]) == with_ends(traced)


def test_info(traced, version, runner):
	out = call(version, runner, "info", "-d", directory(traced), "--index-dir", runner.fresh("index"))
	found = dict(re.findall(r"^ +([\w ]+): +(\d+)$", out, re.MULTILINE))
	assert int(found["Total Files"]) == int(found["Successful"]) == len(traced.traces)
	assert int(found["Failed"]) == 0
	assert int(found["Valid Events"]) == with_ends(traced)


def test_split(traced, version, runner):
	top = runner.fresh("split")
	out = call(version, runner, "split", "-d", directory(traced), "--verify", "-o", top,
		   "--index-dir", runner.fresh("index"))
	assert "Verification: PASSED" in out
	assert os.listdir(top)


def stats(traced, version, runner, report):
	out = call(version, runner, "stats", "-d", directory(traced), "--index-dir",
		   runner.fresh("index"), "--json", "--report", report)
	return json.loads(out[out.index("[\n"):])


def test_stats_names(traced, version, runner):
	found = collections.Counter()
	for part in stats(traced, version, runner, "names"):
		for item in part["results"]:
			found[item["name"]] += item["count"]
	ours = collections.Counter(event.name for event in traced.events)
	ours["start"] = ours["end"] = len(traced.traces)
	assert found == ours


def test_stats_summary(traced, version, runner):
	parts = stats(traced, version, runner, "summary")
	assert sum(part["total_events"] for part in parts) == with_ends(traced)
	found = collections.Counter()
	for part in parts:
		for item in part["results"]:
			found[item["name"].upper()] += item["count"]
	assert found == {**collections.Counter(event.cat for event in traced.events), "DFTRACER": 2 * len(traced.traces)}


def test_view(traced, runner):
	"""Names, paths and bytes per file, as dftracer_view adds them up."""
	out = call("0.0.14", runner, "view", "-d", directory(traced), "--index-dir", runner.fresh("index"),
		   "--group-by", "file_path,name", "--agg", "count,sum:args.ret", "--log-level", "error")
	found = {}
	for line in out.splitlines():
		if line.startswith("{"):
			item = json.loads(line)
			key = item["file_path"], item["name"]
			found[key] = item["count"], item["sum_args.ret"]
	ours = collections.defaultdict(lambda: [0, 0])
	for event in traced.events:
		if event.name in ("read", "write", "pread", "pwrite", "open"):
			ours[event.path or "", event.name][0] += 1
			ours[event.path or "", event.name][1] += event.ret or 0
	for key, value in ours.items():
		if '"' not in key[0]:
			assert found[key] == tuple(value), key


def test_view_selects(traced, version, runner):
	out = os.path.join(runner.fresh("view"), "out.pfw")
	call(version, runner, "view", "-d", directory(traced), "--index-dir", runner.fresh("index"),
	     "--query", 'name == "pwrite"', "-o", out)
	count = subprocess.run(["sh", "-c", f"cat {out} 2>/dev/null || zcat {out}.gz"],
			       capture_output=True, check=True).stdout
	assert len(re.findall(rb'"name":"pwrite"', count)) == len(traced.of("pwrite"))


def test_jq(traced, runner):
	"""zcat F | grep '^{' | jq . succeeds, with our numbers."""
	for trace in traced.traces:
		command = f"zcat {trace.file} | grep '^{{' | jq -c . | wc -l"
		out = runner.native(["bash", "-ec", "set -o pipefail; " + command])
		assert out.status == 0 and not out.stderr
		assert int(out.stdout) == len(trace.meta) + len(trace.events) + 2


def test_guide_files_exist_and_are_not_empty(traced):
	"""First check of the preload guide."""
	assert traced.files
	assert all(os.path.getsize(path) > 0 for path in traced.files)
	assert all(path.endswith("-preload.pfw.gz") for path in traced.files)


def test_guide_categories(traced):
	"""Second check: the categories of each file, read line by line as the guide's loop does."""
	for path in traced.files:
		seen = collections.Counter()
		with gzip.open(path, "rt", encoding="utf-8") as file:
			for line in file:
				line = line.strip().rstrip(",")
				if line and line not in "[]":
					seen[json.loads(line)["cat"]] += 1
		assert seen["dftracer"] >= 4
		assert set(seen) <= {"POSIX", "STDIO", "SYSCALL", "dftracer"}
	assert seen


def test_perfetto_shape(traced):
	"""What Perfetto wants of the first bytes, the phases and the threads' calls."""
	if traced.format == "v2":
		pytest.skip("integer phases are not for Perfetto; that is what v1 is for")
	for trace in traced.traces:
		head = re.sub(rb"\s", b"", trace.text[:128])
		assert head.startswith(b'[{"')
		names = {line["name"] for line in trace.meta}
		assert {"process_name", "thread_name"} <= names


def test_long_trace_of_several_members(runner):
	"""Members end at lines, so that readers which work on members side by side lose nothing."""
	run = runner.traced([program("progress"), "data", "60000"])
	assert run.trace.members > 1
	for version in ("0.0.14", "0.0.12"):
		out = call(version, runner, "event_count", "-d", directory(run), "--index-dir",
			   runner.fresh("index"))
		assert int(out.split()[-1]) == with_ends(run)
