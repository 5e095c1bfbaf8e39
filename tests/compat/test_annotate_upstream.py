"""DFTracer's own annotations and ours: the table has all that its header offers, the stub compiles what the header
does, and both traces of one program say the same."""

import collections
import json
import os
import re
import subprocess

import pytest

from lib.annotated import STUB, Said, annotations, build, library, table
from lib.run import BUILD


def header():
	with open(os.path.join(library(), "include", "dftracer", "dftracer.h"), encoding="utf-8") as file:
		text = file.read()
	return re.sub(r"//[^\n]*", "", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL))


def stub_header():
	with open(os.path.join(STUB, "dftracer_stub.h"), encoding="utf-8") as file:
		return file.read()


def macros(text):
	"""The macros of a header, with what they stand for."""
	joined = text.replace("\\\n", " ")
	return {name: body for name, body in re.findall(r"^#define (DFTRACER_C(?:PP)?_\w+)(.*)$", joined, re.MULTILINE)
		if body.strip() or name == "DFTRACER_C_REGION_CLEANUP"}


def functions(text):
	"""The functions and methods that a header declares."""
	plain = re.sub(r"^#.*?(?<!\\)$", "", text.replace("\\\n", " "), flags=re.MULTILINE)
	body = re.search(r"class DFTracer \{(.*?)^\};", plain, re.DOTALL | re.MULTILINE)[1]
	public = body.split("public:")[1]
	methods = ["DFTracer::" + name for name in re.findall(r"(~?\w+)\s*\([^)]*\)\s*(?:;|$)", public, re.MULTILINE)]
	plain = plain.replace(body, "")
	return re.findall(r"(\w+)\s*\([^()]*\)\s*;", plain) + methods


def test_the_table_has_every_function_and_macro():
	text = header()
	assert sorted(name for name, _ in table("FUNCTION")) == sorted(functions(text))
	found = macros(text)
	assert sorted(row[0] for row in table("MACRO")) == sorted(found)
	for name, *called in table("MACRO"):
		words = set(re.findall(r"\w+", found[name]))
		if name == "DFTRACER_C_REGION_CLEANUP":
			words.add("finalize_region_cleanup")
		known = {function.split("::")[-1] for function, _ in table("FUNCTION")}
		assert set(called) == words & (known | {"DFTracer"}), name


def test_every_annotation_leads_somewhere():
	hooked = {does for _, _, does, _ in table("ANNOTATION")}
	assert {does for _, does in table("FUNCTION")} <= hooked
	for group in ("stub", "library"):
		assert {does for _, of, does, _ in table("ANNOTATION") if of == group} == hooked


def test_the_librarys_functions_have_these_symbols():
	path = os.path.join(library(), "lib64", "libdftracer_core.so")
	out = subprocess.run(["nm", "-D", "--defined-only", path], check=True, capture_output=True).stdout.decode()
	names = {line.split()[2] for line in out.splitlines()}
	for _, group, _, symbol in table("ANNOTATION"):
		assert group == "stub" or symbol in names, symbol


def test_the_stub_offers_the_same():
	theirs, ours = header(), stub_header()
	assert set(macros(theirs)) == set(macros(ours))
	for name, _ in table("FUNCTION"):
		assert re.search(rf"\b{re.escape(name.split('::')[-1])}\s*\(", ours) or "~" in name, name

	def parameters(text):
		return {name: values.count(",") for name, values in
			re.findall(r"#define (DFTRACER_C\w+)\(([^)]*)\)", text)}
	assert parameters(theirs) == parameters(ours)
	values = r"^\s*((?:MT|TRACE_TYPE)_\w+) = (\d+)"
	where = os.path.join(library(), "include", "dftracer", "core", "common", "enumeration.h")
	with open(where, encoding="utf-8") as file:
		known = dict(re.findall(values, file.read(), re.MULTILINE))
	mine = dict(re.findall(r"((?:MT|TRACE_TYPE)_\w+) = (\d+)", ours))
	assert {name: number for name, number in known.items() if name.startswith("TRACE_TYPE")} == \
		{name: number for name, number in mine.items() if name.startswith("TRACE_TYPE")}


Theirs = collections.namedtuple("Theirs", "name cat args start end tid type")


def upstream(runner, command):
	"""Runs with DFTracer's own library at work: its events and custom lines, process by process."""
	top = runner.fresh("upstream")
	run = runner.native(command, env={
		"DFTRACER_ENABLE": "1", "DFTRACER_INIT": "FUNCTION", "DFTRACER_LOG_FILE": os.path.join(top, "t"),
		"DFTRACER_DATA_DIR": "all", "DFTRACER_INC_METADATA": "1", "DFTRACER_TRACE_COMPRESSION": "0"})
	run.found, run.custom, run.ends = [], [], []
	for name in sorted(os.listdir(top)):
		with open(os.path.join(top, name), encoding="utf-8", errors="replace") as file:
			lines = [json.loads(line) for line in file if line.startswith("{")]
		for line in lines:
			args = {key: value for key, value in line.get("args", {}).items() if key != "hhash"}
			if line["name"] == "CM" and args["name"] != "time_metric":
				run.custom.append((args["name"], args["value"]))
			elif line["name"] == "end":
				run.ends.append(args)
			elif line["ph"] == 1 and line["cat"] not in ("dftracer", "POSIX", "STDIO"):
				run.found.append(Theirs(line["name"], line["cat"], args, line["ts"],
							line["ts"] + line["dur"], line["tid"], line["type"]))
	return run


def ours_of(trace):
	return [(name, cat, {key: value for key, value in args.items() if key not in ("cut", "overlap")})
		for name, cat, _, args in annotations(trace)]


def is_nested_as_theirs(trace, theirs):
	"""What ours puts inside a region lies inside it in time there, too."""
	for (name, _, parent, args), event in zip(annotations(trace), theirs):
		if parent and "overlap" not in args:
			around = [other for other in theirs if other is not event and other.tid == event.tid and
				  other.start <= event.start and event.end <= other.end]
			assert parent in [other.name for other in around], (name, parent)


SAME = [("annotated.c", "nest"), ("annotated.c", "order"), ("annotated.c", "arguments"), ("annotated.c", "metadata"),
	("annotated.c", "calls"), ("annotated.c", "longjumps"), ("annotated_cxx.cpp", None),
	("annotated_fortran.f90", None), ("steps.c", None), ("steps.cpp", None), ("steps.f90", None)]


@pytest.mark.parametrize("source, case", SAME, ids=lambda value: str(value))
def test_both_traces_say_the_same(runner, source, case):
	words = [case, "fini"] if case else []
	theirs = upstream(runner, [build(source, "gcc.upstream.O2"), *words])
	ours = runner.traced([build(source, "gcc.static.O2"), *words])
	assert theirs.status == ours.status == 0, (theirs.stderr, ours.stderr)
	assert theirs.stdout == ours.stdout
	assert theirs.found
	# Objects that are finalized by hand are written twice there: the second time is the destructor's.
	found = [event for i, event in enumerate(theirs.found)
		 if not (event.name == "early" and i and theirs.found[i - 1].name == "early")]
	assert ours_of(ours.trace) == [(event.name, event.cat, event.args) for event in found]
	assert ours.trace.custom == theirs.custom
	is_nested_as_theirs(ours.trace, found)
	end, = theirs.ends
	for key in ("app", "used"):
		# There is more in its own: the layers of the library.
		mine = ours.trace.end.args.get(key, {})
		assert mine.items() <= end[key].items(), (key, mine, end[key])
	assert ours.trace.end.args.get("app", {}) == end["app"]


def test_both_say_the_same_types(runner):
	theirs = upstream(runner, [build("annotated_cxx.cpp", "gcc.upstream.O2")])
	ours = runner.traced([build("annotated_cxx.cpp", "gcc.static.O2")], ["--format", "v2", "--no-compress"])
	with open(ours.files[0], encoding="utf-8") as file:
		lines = [json.loads(line) for line in file]
	types = {(line["cat"], line["type"]) for line in lines if line["cat"].endswith(("_APP", "TCAT"))}
	assert types == {(event.cat, event.type) for event in theirs.found}


def test_threads_say_the_same(runner):
	theirs = upstream(runner, [build("annotated.c", "gcc.upstream.O2"), "threads", "fini"])
	ours = runner.traced([build("annotated.c", "gcc.static.O2"), "threads", "fini"])
	assert sorted(map(repr, ours_of(ours.trace))) == \
		sorted(repr((event.name, event.cat, event.args)) for event in theirs.found)


@pytest.mark.parametrize("source, case", SAME, ids=lambda value: str(value))
def test_the_library_that_does_not_record(runner, source, case):
	"""Linked with DFTracer's own library, without DFTRACER_ENABLE: its functions are hooked instead of the stub's."""
	words = [case] if case else []
	run = runner.traced([build(source, "gcc.upstream.O2"), *words])
	assert run.status == 0, run.stderr
	said = Said(run.stdout)
	if said.events:
		assert annotations(run.trace) == said.events
	else:
		assert any(event.cat.endswith("_APP") for event in run.events)
	assert run.trace.properties["hooks:app"] == "11 of 11"


def test_the_library_that_records_has_its_annotations_for_itself(runner):
	command = [build("annotated.c", "gcc.upstream.O2"), "nest", "fini"]
	top = runner.fresh("upstream")
	run = runner.traced(command, ["--init", "hybrid"],
			    env={"DFTRACER_ENABLE": "1", "DFTRACER_LOG_FILE": os.path.join(top, "t"),
				 "DFTRACER_INIT": "FUNCTION", "DFTRACER_DATA_DIR": "all",
				 "DFTRACER_TRACE_COMPRESSION": "0"})
	assert run.status == 0
	assert run.events and not any(event.cat.endswith("_APP") for event in run.events)
	assert run.trace.properties["annotations"] == "left to DFTracer's library"
	assert run.stderr.count(b"annotations are left to that") == 1
	names = []
	for name in os.listdir(top):
		with open(os.path.join(top, name), encoding="utf-8") as file:
			names += [line["name"] for line in map(json.loads, file) if line["cat"] == "C_APP"]
	assert names.count("recurse") == 8


def test_a_preloaded_library_and_the_stub(runner):
	"""The stub's calls are not the library's: they are written here, and here only."""
	preload = os.path.join(library(), "lib64", "libdftracer_preload.so")
	top = runner.fresh("upstream")
	run = runner.traced([build("annotated.c", "gcc.pie.O2"), "calls"], env={
		"LD_PRELOAD": preload, "DFTRACER_ENABLE": "1", "DFTRACER_INIT": "PRELOAD",
		"DFTRACER_LOG_FILE": os.path.join(top, "t"), "DFTRACER_DATA_DIR": "all",
		"DFTRACER_TRACE_COMPRESSION": "0"})
	assert run.status == 0, run.stderr
	assert [event.name for event in run.events if event.cat == "C_APP"] == ["deep", "writes"]
	for name in os.listdir(top):
		with open(os.path.join(top, name), encoding="utf-8") as file:
			assert "C_APP" not in {line["cat"] for line in map(json.loads, file)}


@pytest.mark.parametrize("version", ["0.0.14", "0.0.12"])
def test_readers(runner, version):
	tool = os.path.join(BUILD, "venv", version, "bin", "dftracer_validate")
	if not os.path.exists(tool):
		pytest.skip(f"dftracer-utils {version} is not here")
	for case in ("nest", "order", "hostile", "metadata", "forks"):
		run = runner.traced([build("annotated.c", "gcc.static.O2"), case])
		done = subprocess.run([tool, "-d", os.path.dirname(run.prefix)], check=False, capture_output=True,
				      cwd=runner.fresh("reader"))
		count = len(run.files)
		assert f"{count} passed, 0 failed" in done.stdout.decode(), (case, done.stdout, done.stderr)
