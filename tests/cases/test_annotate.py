"""DFTracer's annotations in programs that are linked with the stub of examples/annotate: the trace says what the
programs say."""

import os
import re
import subprocess

import pytest

from lib.annotated import Said, annotations, build, table
from lib.run import BUILD, TRACER, exit_line_agrees

FORMS = ["gcc.static.O2", "gcc.static-pie.O3", "gcc.pie.O2", "gcc.no-pie.O0", "gcc.so.O2", "gcc.static.O2.lto",
	 "clang.static.O2", "clang.pie.O0", "musl.static.O2"]
LANGUAGES = [("annotated_cxx.cpp", "gcc.static.O2"), ("annotated_cxx.cpp", "gcc.pie.O0"), ("annotated_cxx.cpp", "clang.static.O2"),
	     ("annotated_cxx.cpp", "gcc.static-pie.O3.lto"), ("annotated_fortran.f90", "gcc.static.O2"),
	     ("annotated_fortran.f90", "gcc.no-pie.O0"), ("annotated_fortran.f90", "gcc.static-pie.O2")]
CASES = ["nest", "arguments", "order", "cut", "longjumps", "across", "metadata", "calls"]


def agrees(trace, said, events=None):
	assert annotations(trace) == (said.events if events is None else events)
	assert [" ".join(pair) for pair in trace.custom] == said.custom
	if said.app is not None:
		assert trace.end.args.get("app") == said.app
	if said.used is not None:
		assert trace.end.args.get("used") == said.used


def same(runner, command, options=()):
	"""Runs natively and traced. Returns the traced run and what the program said."""
	native, traced = runner.native(command), runner.traced(command, options)
	assert (traced.status, traced.stdout) == (native.status, native.stdout), traced.stderr
	assert traced.program_stderr == native.stderr
	return traced, Said(traced.stdout)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", CASES)
def test_cases(runner, case, form):
	run, said = same(runner, [build("annotated.c", form), case], ["-e", "app"])
	assert said.events
	agrees(run.trace, said)
	exit_line_agrees(run)


@pytest.mark.parametrize("source, form", LANGUAGES)
def test_languages(runner, source, form):
	run, said = same(runner, [build(source, form)])
	assert said.events and said.app and said.custom
	agrees(run.trace, said)
	assert run.trace.properties["hooks:app"] == "9 of 9"


@pytest.mark.parametrize("form", ["gcc.static.O2", "gcc.pie.O0"])
def test_hostile_strings(runner, form):
	run, said = same(runner, [build("annotated.c", form), "hostile"], ["-e", "app"])
	found = annotations(run.trace)
	expected = said.events[:-2]
	assert found[:len(expected)] == expected
	assert [" ".join(pair) for pair in run.trace.custom] == said.custom
	assert run.trace.end.args["app"] == said.app
	assert found[-2][3] == {"text": "a" * 65536}
	assert found[-1][3] == {f"k{i}": i for i in range(100)}
	assert run.trace.lost() == {"unreadable": 1, "truncated": 1}


def test_threads(runner):
	run, said = same(runner, [build("annotated.c", "gcc.static.O2"), "threads"], ["-e", "app"])
	found = annotations(run.trace)
	assert sorted(map(repr, found)) == sorted(map(repr, said.events))
	assert len({event.tid for event in run.events}) == 4
	for tid in {event.tid for event in run.events}:
		assert [event.args["i"] for event in run.events if event.tid == tid and event.name == "inner"] == \
			list(range(50))


def test_an_end_in_another_thread_is_told_where_it_began(runner):
	run, _ = same(runner, [build("annotated.c", "gcc.static.O2"), "across"])
	across, own = run.of("across")[0], run.of("own")[0]
	assert across.tid == run.trace.pid != own.tid


def test_fork(runner):
	run, said = same(runner, [build("annotated.c", "gcc.static.O2"), "forks"], ["-e", "app,%process"])
	child, parent = sorted(run.traces, key=lambda trace: trace.pid == run.traces[0].start.args["ppid"])
	if child.start.args["ppid"] != parent.pid:
		child, parent = parent, child
	# The shell of system() has no annotations, and so no file.
	agrees(child, said, said.events[:2])
	assert annotations(parent) == said.events[2:]
	assert child.end.args["app"] == {"who": "child"} and parent.end.args["app"] == {"who": "parent"}


def test_a_fatal_signal(runner):
	run = runner.traced([build("annotated.c", "gcc.static.O2"), "killed"], ["-e", "app"])
	assert run.status == -6
	agrees(run.trace, Said(run.stdout))
	assert run.trace.end.args["signal"] == 6


def test_exec(runner):
	run, said = same(runner, [build("annotated.c", "gcc.static.O2"), "executes"], ["-e", "app"])
	first, second = sorted(run.traces, key=lambda trace: trace.start.ts)
	assert annotations(first) == said.events[:1] and annotations(second) == said.events[1:]


def test_behind_fini_nothing_is_recorded(runner):
	run, said = same(runner, [build("annotated.c", "gcc.static.O2"), "finishes"], ["-e", "app"])
	agrees(run.trace, said)
	assert run.trace.properties["app:log_file"] == "some/file"
	assert run.trace.properties["app:data_dirs"] == "/some:/dirs"


def test_calls_are_inside_regions(runner):
	run, _ = same(runner, [build("annotated.c", "gcc.static.O2"), "calls"])
	by_id = {event.id: event for event in run.events}
	write, = (event for event in run.of("write", run.path("data")) if event.cat == "POSIX")
	assert by_id[write.args["p_idx"]].name == "deep" and write.args["level"] == 3
	for name in ("open", "close"):
		event, = (event for event in run.of(name, run.path("data")) if event.cat == "POSIX")
		assert by_id[event.args["p_idx"]].name == "writes"
	put, = run.of("fprintf")
	assert by_id[put.args["p_idx"]].name == "writes" and put.args["level"] == 2
	inside, = (event for event in run.of("write", run.path("data")) if event.cat == "SYSCALL")
	assert inside.args["level"] == 3


def test_modes(runner):
	"""Annotations alone, with functions of the user's, and everything but them."""
	command = [build("annotated.c", "gcc.static.O2"), "calls"]
	assert {event.cat for event in runner.traced(command).events} == {"C_APP", "POSIX", "STDIO", "SYSCALL"}
	assert {event.cat for event in runner.traced(command, ["-e", "app"]).events} == {"C_APP"}
	assert {event.cat for event in runner.traced(command, ["-e", "app", "-x", "main"]).events} == {"C_APP", "FUNC"}
	assert {event.cat for event in runner.traced(command, ["--init", "function"]).events} == {"C_APP"}
	env = {"DFTRACER_INIT": "FUNCTION"}
	assert {event.cat for event in runner.traced(command, ["-x", "main"], env=env).events} == {"C_APP", "FUNC"}
	env = {"DFTRACER_INIT": "HYBRID"}
	assert {event.cat for event in runner.traced(command, env=env).events} == {"C_APP", "POSIX", "STDIO", "SYSCALL"}
	run = runner.traced(command, ["-e", "!app"])
	assert {event.cat for event in run.events} == {"POSIX", "STDIO", "SYSCALL"}
	assert "hooks:app" not in run.trace.properties


def test_programs_without_annotations_have_nothing_hooked(runner):
	run = runner.traced(["true"])
	assert not any("hooks:app" in trace.properties for trace in run.traces)


def test_without_symbols_nothing_is_seen_and_nothing_breaks(runner):
	run, _ = same(runner, [build("annotated.c", "gcc.static.O2.strip"), "nest"], ["-e", "app"])
	assert not run.events


@pytest.mark.parametrize("options", [["--format", "v2"], ["--tracer", "parent"], ["--no-emulation"], ["--no-seccomp"],
				     ["--no-proc-mem"]], ids=lambda options: options[-1])
def test_other_ways(runner, options):
	run, said = same(runner, [build("annotated.c", "gcc.static.O2"), "nest"], ["-e", "app", *options])
	if "v2" in options:
		assert [(e.name, e.cat) for e in run.events] == [word[:2] for word in said.events]
	else:
		agrees(run.trace, said)


def test_v2_has_types(runner):
	run, _ = same(runner, [build("annotated_cxx.cpp", "gcc.static.O2")], ["--format", "v2", "--no-compress"])
	with open(run.files[0], encoding="utf-8") as file:
		text = file.read()
	for cat, number in (("CPP_APP", 9), ("C_APP", 2), ("TCAT", 6)):
		assert f'"cat":"{cat}","type":{number},' in text


@pytest.mark.parametrize("case", ["nest", "order", "forks", "across", "hostile", "cut"])
def test_check_finds_nothing(runner, case):
	run = runner.traced([build("annotated.c", "gcc.static.O2"), case])
	found = subprocess.run([os.path.join(BUILD, "dftrace-check"), *run.files], check=False, capture_output=True)
	assert found.returncode == 0, found.stdout.decode()


def test_hooks_are_listed():
	out = subprocess.run([TRACER, "--list-hooks"], check=True, capture_output=True).stdout.decode()
	listed = re.findall(r"^recorded +app:(\w+) +(.*)$", out, re.MULTILINE)
	assert listed == [(group, name) for name, group, _, _ in table("ANNOTATION")]


@pytest.mark.parametrize("language", ["c", "cpp", "f90"])
@pytest.mark.parametrize("link", ["static", "static-pie", "pie", "no-pie"])
def test_examples(runner, language, link):
	run = runner.traced([os.path.join(BUILD, "examples", f"steps.{language}.{link}"), "steps.out", "4"])
	assert run.status == 0, run.stderr
	words = run.stdout.decode().split()
	counts = {name: int(number) for name, number in zip(words[::2], words[1::2])}
	for name in ("all_steps", "compute", "checkpoint"):
		assert len([event for event in run.of(name) if event.cat.endswith("_APP")]) == counts[name]
	written = [event.args["bytes"] for event in run.of("checkpoint") if "bytes" in event.args]
	assert sum(written) == counts["bytes"] == os.path.getsize(run.path("steps.out"))
	assert [event.args["step"] for event in run.of("compute")] == [0, 1, 2, 3]
	assert run.trace.end.args["app"] == {"steps": 4}
	assert run.trace.custom == [("solver", "harmonic")]
	by_id = {event.id: event for event in run.events}
	for write in (event for event in run.events if event.name in ("write", "writev") and event.path == run.path("steps.out")):
		outer = write
		while outer and outer.name != "checkpoint":
			outer = by_id.get(outer.args["p_idx"])
		assert outer, write
