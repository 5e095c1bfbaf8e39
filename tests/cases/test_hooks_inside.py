"""Hooks without stops: calls that are recorded inside the program are those that stops see. All cases of hooks and streams hold
with --capture recorder, too; here is what they do not show."""

import collections
import os
import re
import subprocess

import pytest

from lib.hooked import Func, consistent, same_calls, same_functions, seen, some
from lib.oracle import values
from lib.run import EXTRA, exit_line_agrees
from lib.trace import Trace

INSIDE = ["--capture", "recorder", "--recorder-hits", "1", "-v"]
TWO = ("gcc.pie.O2", "gcc.static.O2")


def census(run):
	"""What -v says: functions that begin by a jump, all, exits that are jumps, all; records."""
	found = re.search(rb"recorded inside the program: (\d+) of (\d+) functions, (\d+) of (\d+) exits(?:, (\d+) records)?", run.stderr)
	assert found, run.stderr
	return [int(number or 0) for number in found.groups()]


def traced(runner, form, case, options=()):
	return runner.traced([form.build("hooks_ends"), *case.split()], ["-x", "hooked_*", *INSIDE, *options])


@pytest.mark.parametrize("form", some("gcc.pie.O2", "gcc.static.O2", "gcc.no-pie.O0", "gcc.static-pie.Os", "clang.pie.O2",
				      "musl.static.O2", "gcc.pie.O3.cf"))
@pytest.mark.parametrize("case", ("recursion", "tail", "longjmp", "callback", "siglongjmp", "arguments", "coroutines", "cancel",
				  # Ten seconds each; other forms have signals in the cases below.
				  pytest.param("signals", marks=pytest.mark.full), "killed"))
def test_calls_are_those_of_the_program(runner, form, case, monkeypatch):
	if case == "coroutines":
		monkeypatch.setattr(Trace, "_nesting", lambda trace: None)
	if form.musl and case == "coroutines":
		pytest.skip("musl has no contexts")
	native = runner.native([form.build("hooks_ends"), case])
	run = traced(runner, form, case)
	assert run.status == native.status
	# Its own count of signals is never the same.
	if case != "signals":
		assert (run.stdout, run.program_stderr) == (native.stdout, native.stderr)
	same_functions(run)
	assert not any(trace.lost() for trace in run.traces), run.stderr
	jumps, functions, _, _, records = census(run)
	assert jumps > functions // 2
	# The first call of a thread stops: it has no ring yet.
	if case in ("recursion", "longjmp", "siglongjmp", "signals"):
		assert records > 50
	exit_line_agrees(run)


@pytest.mark.parametrize("form", some(*(f"gcc.{link}.{level}" for link in ("pie", "no-pie") for level in ("O1", "O2", "Os")), "gcc.static.O1",
				      "clang.pie.O2", "clang.no-pie.Os"))
def test_labels(runner, form):
	"""No jump is placed over what a value leads to."""
	args = [form.build("hooks_labels"), "40"]
	native = runner.native(args)
	run = runner.traced(args, ["-x", "hooked_*", *INSIDE])
	assert (run.status, run.stdout, run.program_stderr) == (native.status, native.stdout, native.stderr)
	same_functions(run)
	assert census(run)[0] > 50 or form.static


def test_short_functions_do_not_stop(runner):
	"""The room of an exit is behind it where the entry's is before."""
	form, = some("gcc.pie.O2")
	run = runner.traced([form.values[0].build("hooks_labels"), "500"], ["-x", "hooked_short", *INSIDE])
	same_functions(run, {"hooked_short": Func(500, 0, 500 * 23)})
	assert int(re.search(rb"(\d+) stops", run.stderr)[1]) < 200


PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
	long n = atol(argv[1]);
	char line[200];
	(void)argc;
	FILE *f = fopen("data", "w+");
	if (!f)
		return 1;
	for (long i = 0; i < n; i++) {
		fputc('x', f);
		fwrite("abcd", 2, 2, f);
		fputs("some text\n", f);
		if (i % 100 == 0)
			fflush(f);
	}
	fseek(f, 0, SEEK_SET);
	for (long i = 0; i < n; i++) {
		if (!fgets(line, sizeof(line), f))
			return 2;
	}
	rewind(f);
	while (fgetc(f) != EOF)
		;
	if (fgets(line, sizeof(line), f))
		return 3;
	fread(line, 1, 10, f);
	ftell(f);
	fclose(f);
	puts("done");
	return 0;
}
"""


@pytest.fixture(scope="module", params=["dynamic", "static", "static-pie"])
def streams(request, tmp_path_factory):
	directory = tmp_path_factory.mktemp("inside")
	source, out = str(directory / "streams.c"), str(directory / "streams")
	with open(source, "w", encoding="ascii") as file:
		file.write(PROGRAM)
	subprocess.run(["gcc", "-O2", *([] if request.param == "dynamic" else ["-" + request.param]), "-Wno-unused-result", "-fno-builtin",
			"-o", out, source], check=True)
	return out


def shape(event):
	return event.cat, event.name, os.path.basename(event.path or ""), event.args["level"], \
		tuple((key, event.args[key]) for key in ("size", "count", "offset", "whence", "num", "ret", "size_sum") if key in event.args)


def test_events_are_those_of_stops(runner, streams):
	"""In their order, with their nesting, to the byte."""
	stops = runner.traced([streams, "150"], ["--capture", "stops"])
	run = runner.traced([streams, "150"], INSIDE)
	assert (stops.status, stops.stdout) == (run.status, run.stdout) == (0, b"done\n"), run.stderr

	def shapes(one):
		return [shape(event) for event in sorted(one.events, key=lambda event: event.id)
			if event.path == one.path("data")]
	assert shapes(run) == shapes(stops)
	consistent(run)
	assert len(shapes(run)) > 5 * 150
	assert census(run)[4] > 2 * 4 * 150


def test_full_rings_lose_nothing(runner, streams):
	"""Many more calls than a ring has room for, without a system call between most of them."""
	run = runner.traced([streams, "3000"], INSIDE)
	assert run.status == 0, run.stderr
	found = collections.Counter(event.name for event in run.events if event.cat == "STDIO" and event.path == run.path("data"))
	assert found["fputc"] == found["fwrite"] == found["fputs"] == 3000
	assert found["fgets"] == 3001 and found["fgetc"] == 3000 * 15 + 1
	sums = collections.Counter()
	for event in run.events:
		if event.cat == "STDIO":
			sums[event.name] += event.args.get("size_sum", 0)
	assert (sums["fputc"], sums["fwrite"], sums["fputs"]) == (3000, 12000, 30000)
	assert (sums["fgets"], sums["fgetc"]) == (45000, 45000)
	assert b"ring full" in run.stderr
	exit_line_agrees(run)


def test_few_stops(runner, streams):
	"""A call in a burst does not stop."""
	run = runner.traced([streams, "1000"], INSIDE)
	stops = int(re.search(rb"(\d+) stops", run.stderr)[1])
	calls = sum(event.cat == "STDIO" for event in run.events)
	assert calls > 19000 and stops < 1000, (calls, stops)


@pytest.mark.skipif("recorder" in EXTRA, reason="it is asked for")
def test_only_with_the_recorder(runner, streams):
	run = runner.traced([streams, "100"], ["-v"])
	assert b"inside the program" not in run.stderr
	assert int(re.search(rb"(\d+) stops", run.stderr)[1]) > 2 * 4 * 100


def test_without_the_recorder_in_this_program(runner, streams):
	"""Its stubs stop, since it has no rings."""
	run = runner.traced([streams, "100"], [*INSIDE, "--no-recorder=streams"])
	assert run.status == 0 and census(run)[4] == 0
	found = collections.Counter(event.name for event in run.events if event.path == run.path("data"))
	assert found["fputc"] == found["fputs"] == 100 and found["fgetc"] == 1501


def test_what_is_not_recorded_inside_is_said(runner, streams):
	run = runner.traced([streams, "10"], INSIDE)
	assert re.search(rb"outside \d+: strings that have to be read", run.stderr)


def test_streams_nobody_saw_being_opened(runner, tmp_path):
	"""The first call on a descriptor stops, and tells what it is."""
	code = ("import ctypes\nlibc = ctypes.CDLL(None)\nlibc.fdopen.restype = ctypes.c_void_p\n"
		"libc.fgetc.argtypes = [ctypes.c_void_p]\nf = libc.fdopen(7, b'r')\n"
		"print(sum(libc.fgetc(f) >= 0 for i in range(200)))")
	(tmp_path / "input").write_bytes(b"x" * 200)
	run = runner.traced(["sh", "-c", f"exec 7<{tmp_path}/input python3 -c \"{code}\""], [*INSIDE, "-e", "stdio,posix"])
	assert run.status == 0 and run.stdout == b"200\n", run.stderr
	calls = [event for event in run.events if event.name == "fgetc"]
	assert len(calls) == 200 and {event.path for event in calls} == {f"{tmp_path}/input"}


@pytest.mark.parametrize("form", some(*TWO))
def test_shapes(runner, form):
	"""Registers, flags, vector registers and what lies below the stack pointer are those of an unhooked call."""
	args = [form.build("hooks_shapes"), "200"]
	native = runner.native(args)
	run = runner.traced(args, ["-x", "shape_*", *INSIDE])
	assert (run.status, run.stdout) == (native.status, native.stdout), run.stderr
	jumps, _, exits, _, records = census(run)
	assert jumps > 20 and exits > 15 and records > 200 * 40


@pytest.mark.parametrize("form", some(*TWO))
def test_every_stream_call(runner, form):
	args = [form.build("stdio_calls")]
	stops = runner.traced(args, ["--capture", "stops"], stdin=subprocess.DEVNULL)
	run = runner.traced(args, INSIDE, stdin=subprocess.DEVNULL)
	assert run.status == stops.status

	def calls(one):
		return seen(event for event in one.events if event.cat == "STDIO" and event.path == one.path("data"))
	same_calls(calls(stops), calls(run))


@pytest.mark.parametrize("form", some(*TWO))
@pytest.mark.parametrize("calls", ["0", "20"])
def test_faults_of_ours_leave_masks_and_handlers(runner, form, calls):
	"""With a ring and without one: of the first call nobody has written below the stack pointer."""
	args = [form.build("hooks_inside"), "guard", calls]
	native = runner.native(args)
	run = runner.traced(args, ["-x", "hooked_*", *INSIDE])
	assert (run.status, run.stdout) == (native.status, native.stdout), run.stderr
	assert sum(event.name == "hooked_leaf" for event in run.events) == 4 + int(calls)


@pytest.mark.parametrize("form", some(*TWO))
@pytest.mark.parametrize("threads", [0, 2])
def test_hooks_taken_out_for_a_move(runner, form, threads):
	"""The calls in progress return, whatever lies where they return to."""
	args = [form.build("hooks_inside"), "moved", str(threads)]
	native = runner.native(args)
	run = runner.traced(args, ["-x", "hooked_*", *INSIDE])
	assert native.status == 0, native.stderr
	assert (run.status, run.stdout) == (0, native.stdout), run.stderr
	calls = collections.Counter(event.name for event in run.events)
	assert calls["hooked_caller1"] == calls["hooked_tail1"] >= 201
	assert not any(trace.lost() for trace in run.traces), run.stderr


@pytest.mark.parametrize("form", some(*TWO))
def test_jumps_are_kept_from_named_programs(runner, form):
	"""Their code has breakpoints, as without a recorder."""
	path = form.build("hooks_inside")
	first = {}
	for name, options in (("recorder", INSIDE), ("stops", ["--capture", "stops"]),
			      ("named", [*INSIDE, f"--no-recorder={os.path.basename(path)[:15]}"]),
			      ("other", [*INSIDE, "--no-recorder=other"])):
		run = runner.traced([path, "code"], ["-x", "hooked_*", *options])
		assert run.status == 0, run.stderr
		first[name] = values(run.stdout)["first byte"]
		assert sum(event.name == "hooked_leaf" for event in run.events) == 20
	assert first == {"recorder": "e9", "stops": "cc", "named": "cc", "other": "e9"}


CAPTURES = {"recorder": INSIDE, "stops": ["--capture", "stops"]}


@pytest.mark.parametrize("form", some(*TWO))
@pytest.mark.parametrize("capture", CAPTURES)
def test_faults_of_the_program_are_where_it_has_them(runner, form, capture):
	"""A handler sees the instruction in its own place, and what it mends goes on, recorded once."""
	args = [form.build("hooks_inside"), "faults"]
	native = runner.native(args)
	run = runner.traced(args, ["-x", "hooked_*", *CAPTURES[capture]])
	assert (run.status, run.stdout) == (native.status, native.stdout), run.stderr
	calls = collections.Counter(event.name for event in run.events if event.cat == "FUNC" and "cut" not in event.args)
	assert calls == {"hooked_first": 10, "hooked_second": 10, "hooked_last": 10}
	exit_line_agrees(run)


@pytest.mark.parametrize("form", some(*TWO))
@pytest.mark.parametrize("capture", CAPTURES)
def test_signals_are_seen_where_the_program_is(runner, form, capture):
	"""A profiler's samples: at none of them the program is outside of its own code."""
	run = runner.traced([form.build("hooks_inside"), "interrupted", "40"], ["-x", "hooked_*", *CAPTURES[capture]])
	assert run.status == 0, run.stderr
	said = values(run.stdout)
	assert said["wrong"] == said["elsewhere"] == "0"
	calls = collections.Counter("cut" in event.args for event in run.events if event.name == "hooked_first")
	assert calls == {False: int(said["calls"])}
	exit_line_agrees(run)
