"""dftrace-check: traces of ours and of upstream pass, and the report is right."""

import collections
import os
import re

import pytest

from lib import upstream
from lib.checked import SHAPES, as_json, check, clean, findings, module_runner, store, validated
from lib.run import BUILD, program


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


# --- upstream's own ----------------------------------------------------------

@pytest.mark.parametrize("compressed", ["0", "1"])
@pytest.mark.parametrize("metadata", ["0", "1"])
@pytest.mark.parametrize("aggregated", ["0", "1"])
def test_upstream_is_good(runner, compressed, metadata, aggregated):
	run = upstream.traced(runner, ["sh", "-c", "seq 1 1000 > f; cat f | wc -l; mv f 'a b'; cat none; true"],
			      env={"DFTRACER_INC_METADATA": metadata, "DFTRACER_ENABLE_AGGREGATION": aggregated,
				   "DFTRACER_TRACE_COMPRESSION": compressed})
	top = os.path.dirname(run.prefix)
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
