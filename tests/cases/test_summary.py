"""The summary: it says what the traces add up to, event by event."""

import collections
import json
import os
import re
import threading

import pytest

from lib.hooked import Form
from lib.run import BUILD, EXTRA, TRACER, program

READS = {"read", "pread", "readv", "preadv", "recvfrom", "recvmsg"}
WRITES = {"write", "pwrite", "writev", "pwritev", "sendto", "sendmsg"}
BOTH = {"sendfile", "copy_file_range", "splice"}


def bytes_of(event):
	"""Independent of the table that dftrace has: the contract's words."""
	if "size_sum" in event.args:
		return event.args["size_sum"]
	if event.cat in ("POSIX", "SYSCALL") and event.name in READS | WRITES | BOTH and (event.ret or 0) > 0:
		return event.ret
	return 0


def is_error(event):
	if event.cat in ("FUNC", "C_APP") or event.ret is None:
		return False
	return event.ret != 0 if event.cat == "MPI" else event.ret == -1


def sums(traces):
	"""Of the traces: by category and name."""
	found = collections.defaultdict(lambda: [0] * 6)
	for trace in traces:
		for event in trace.events:
			row = found[event.cat, event.name]
			for i, value in enumerate((1, is_error(event), "cut" in event.args, event.dur, 0, bytes_of(event))):
				row[i] += value
			row[4] = max(row[4], event.dur)
	return dict(found)


def files(traces):
	"""Bytes read and written by system calls, by path."""
	found = collections.defaultdict(lambda: [0, 0])
	for trace in traces:
		for event in trace.events:
			if event.cat not in ("POSIX", "SYSCALL"):
				continue
			bytes_moved = bytes_of(event)
			if event.path and event.name in READS | BOTH:
				found[event.path][0] += bytes_moved
			if event.path and event.name in WRITES:
				found[event.path][1] += bytes_moved
			if event.out and event.name in BOTH:
				found[event.out][1] += bytes_moved
	return {path: moved for path, moved in found.items() if any(moved)}


def read_summary(path):
	with open(path, "rb") as file:
		summary = json.loads(file.read().decode("utf-8"))
	rows = {(row["category"], row["name"]): [row[key] for key in ("calls", "errors", "cut", "us", "longest_us", "bytes")]
		for row in summary["call_sums"]}
	assert len(rows) == len(summary["call_sums"])
	return summary, rows


def summarized(runner, args, options=(), **more):
	"""A run with traces and the summary beside them."""
	path = os.path.join(runner.fresh("sums"), "s.json")
	run = runner.traced(args, ["-c", "--json", "--summary-file", path, *options], **more)
	run.summary, run.rows = read_summary(path)
	return run


def agree(run):
	assert run.rows == sums(run.traces)
	assert run.summary["events"] == len(run.events)
	assert run.summary["process_images"] == len(run.traces)
	assert run.summary["outermost_us"] == sum(event.dur for event in run.events if event.args["level"] == 1)
	moved = {row["path"]: [row["read"], row["written"]] for row in run.summary["file_sums"]}
	by_calls = files(run.traces)
	assert {path: moved[path] for path in by_calls} == by_calls
	subjects = {event.path for event in run.events if event.path}
	assert subjects <= set(moved) <= subjects | {event.out for event in run.events}
	assert run.summary["other_files"]["count"] == 0


@pytest.mark.parametrize("options", [[], ["-e", "+%ipc,+%network,+%memory,+%time"], ["--no-stdio"], ["--no-seccomp"],
				     ["--tracer", "parent"], ["--names", "trace", "--format", "v1"]], ids=" ".join)
def test_every_call(runner, options):
	run = summarized(runner, [program("everycall")], options)
	assert run.status == 0 and len(run.rows) > 50
	agree(run)


def test_processes(runner):
	"""One table for all, without those that do nothing but load themselves, whose events nobody writes."""
	run = summarized(runner, ["sh", "-c", "cat /etc/passwd | sort > sorted; /bin/true; (cp sorted copy); ls /no; wc -l < copy"])
	assert len(run.traces) > 4 and run.summary["process_images"] == len(run.traces)
	agree(run)
	assert run.rows["POSIX", "fork"][0] >= 5


@pytest.mark.parametrize("form", ["gcc.pie.O2", "gcc.static.O2"])
def test_streams_and_what_is_inside(runner, form):
	run = summarized(runner, [Form(form).build("stdio_calls")])
	assert {category for category, _ in run.rows} >= {"POSIX", "STDIO", "SYSCALL"}
	agree(run)


def test_functions_and_cut_calls(runner):
	run = summarized(runner, [program("hooks_shapes"), "40"], ["-x", "shape_*", "--no-stdio"])
	assert ("FUNC", "shape_call") in run.rows
	agree(run)
	run = summarized(runner, ["sh", "-c", "kill -9 $$"])
	assert sum(row[2] for row in run.rows.values()) == 1
	agree(run)


@pytest.mark.parametrize("name", ["mpiio.mpich", "hdf5_fields.dynamic"])
def test_libraries(runner, name):
	run = summarized(runner, [os.path.join(BUILD, "examples", name), "."], ["-e", "+mpi:all,+hdf5:all"])
	assert run.status == 0, run.stderr
	assert ("MPI" if name.startswith("mpi") else "HDF5") in {category for category, _ in run.rows}
	agree(run)


def test_threads(runner):
	run = summarized(runner, [program("workers")])
	agree(run)


def test_asynchronous_and_failed(runner):
	"""A file that is opened, read beyond its end, and one that is not there."""
	code = "import os\nfd = os.open('f', os.O_RDWR | os.O_CREAT)\nos.write(fd, b'x' * 1000)\nos.pread(fd, 500, 900)\n" \
		"[os.path.exists('none') for _ in range(7)]\n"
	run = summarized(runner, ["python3", "-c", code])
	agree(run)
	assert files(run.traces)[run.path("f")] == [100, 1000]


# --- the table -------------------------------------------------------------------------

def table(text):
	"""The rows of a table, by layer and call."""
	lines = text.decode().splitlines()
	head = next(i for i, line in enumerate(lines) if line.startswith("% time"))
	has_cut = " cut " in lines[head]
	rows = {}
	for line in lines[head + 1:]:
		if not line:
			break
		columns = re.match(r"^(.{6}) +(\d+)\.(\d{6}) +(\d+) +(\d+) +(\d+) (.{7})" + (" (.{5})" if has_cut else "()") +
				   r" (.{15})  (\w+) +(\S.*)$", line)
		assert columns, line
		share, seconds, micro, mean, longest, calls, errors, cut, moved, layer, name = columns.groups()
		number = lambda word: int(word.strip() or 0)
		us = int(seconds) * 1000000 + int(micro)
		assert int(mean) == us // int(calls)
		rows[layer, name] = [int(calls), number(errors), number(cut), us, int(longest), number(moved)]
	return rows


def test_table_says_the_same(runner):
	run = runner.traced(["sh", "-c", "cat /etc/passwd > x; ls /nowhere; kill -9 $$"], ["-c"])
	rows = table(run.stderr)
	expected = sums(run.traces)
	totals = {key: row for key, row in rows.items() if key[1] == "total"}
	assert {key: row for key, row in rows.items() if key[1] != "total"} == expected
	for (layer, _), row in totals.items():
		mine = [value for (category, _), value in expected.items() if category == layer]
		assert row == [sum(column) for column in list(zip(*mine))[:4]] + [max(m[4] for m in mine), sum(m[5] for m in mine)]
	assert {layer for layer, _ in totals} == {category for category, _ in expected}
	assert re.search(rb"^dftrace-run: summary: \d+ calls of \d+ process images$", run.stderr, re.MULTILINE)
	assert re.search(rb"^ +0 +\d+ +\d+ +\d+\.\d{6}  " + run.path("x").encode() + rb"$", run.stderr, re.MULTILINE)
	# The line of the end is the last.
	assert run.stderr.splitlines()[-1].startswith(b"dftrace-run: ") and run.exit_line


def test_a_path_stays_on_its_line(runner):
	run = runner.traced(["sh", "-c", "echo xx > 'a\nb'"], ["-C"])
	assert b"/a?b\n" in run.stderr and len(run.traces) == 1


def test_no_traces(runner):
	"""--summary-only: the same table, and nothing else: no file, no directory."""
	command = ["sh", "-c", "cat /etc/passwd > x; cat x; ls /nowhere"]
	path = os.path.join(runner.fresh("sums"), "s.json")
	prefix = os.path.join(runner.fresh("out"), "sub", "t")
	run = runner.traced(command, ["--summary-only", "--json", "--summary-file", path], prefix=prefix)
	_, rows = read_summary(path)
	both = summarized(runner, command)
	assert run.status == both.status and run.stdout == both.stdout
	assert not os.path.exists(os.path.dirname(prefix))
	strip = lambda rows: {key: [*row[:3], row[5]] for key, row in rows.items()}
	assert strip(rows) == strip(both.rows)
	assert re.search(rb"^dftrace-run: \d+ events \(0 lost\), \d+ ms tracer CPU, no traces \(--summary-only\)", run.stderr, re.MULTILINE)


@pytest.mark.parametrize("options", [["--no-metadata"], ["--format", "v2"], ["--max-files", "1"], ["--no-tids"]], ids=" ".join)
def test_whatever_is_written(runner, options):
	command = ["sh", "-c", "cat /etc/passwd > x; cat x; ls /nowhere"]
	strip = lambda rows: {key: [*row[:3], row[5]] for key, row in rows.items()}
	assert strip(summarized(runner, command, options).rows) == strip(summarized(runner, command).rows)


def test_ranks(runner):
	env = {"PMI_RANK": "3", "PMI_SIZE": "4"}
	assert b"% time" not in runner.traced(["true"], ["-c"], env=env).stderr
	assert b"dftrace-run: rank 3: summary: " in runner.traced(["true"], ["-c", "-v"], env=env).stderr
	assert b"dftrace-run: rank 0: summary: " in runner.traced(["true"], ["-c"], env={**env, "PMI_RANK": "0"}).stderr
	top = runner.fresh("sums")
	run = runner.traced(["true"], ["--summary-file", "new/%r-%%.txt"], env=env, cwd=top)
	with open(os.path.join(top, "new", "3-%.txt"), "rb") as file:
		assert table(file.read())
	assert b"% time" not in run.stderr


def test_what_outlives_the_program(runner):
	"""The file gets it; what was on stderr at the program's end cannot."""
	path = os.path.join(runner.fresh("sums"), "s.json")
	run = runner.traced(["sh", "-c", "(exec >/dev/null 2>&1; sleep 1; cat /etc/passwd > late) & cat /etc/hostname"],
			    ["--json", "--summary-file", path], settle=False)
	early, _ = read_summary(path)
	assert not any(row["path"] == run.path("late") for row in early["file_sums"])
	runner.settle(run.token)
	run.summary, run.rows = read_summary(path)
	agree(run)
	assert any(row["path"] == run.path("late") and row["written"] for row in run.summary["file_sums"])


def test_quiet_leaves_the_table(runner):
	run = runner.traced(["true"], ["-c", "-q"])
	assert b"% time" in run.stderr and not run.exit_line


def test_json_on_stderr(runner):
	run = runner.traced(["true"], ["-c", "-q", "--json"])
	assert json.loads(run.stderr)["events"] == len(run.events)


@pytest.mark.full
def test_many_files(runner):
	"""More than are kept one by one: the sums are whole, and the largest are there."""
	code = "import os\n" \
		"for i in range(18000):\n" \
		"  fd = os.open(f'f{i % 3}-{i}', os.O_WRONLY | os.O_CREAT)\n  os.write(fd, b'x' * (i % 50 + 1))\n  os.close(fd)\n" \
		"  os.unlink(f'f{i % 3}-{i}')\n" \
		"for i in range(1000):\n  fd = os.open('large', os.O_WRONLY | os.O_CREAT)\n  os.write(fd, b'x' * 1000)\n  os.close(fd)\n"
	run = summarized(runner, ["python3", "-c", code], ["--summary-only", "-e", "%data,%desc,unlink"])
	written = sum(size % 50 + 1 for size in range(18000)) + 1000000
	others = run.summary["other_files"]
	assert others["count"] > 1000 and len(run.summary["file_sums"]) <= 16384
	assert others["written"] + sum(row["written"] for row in run.summary["file_sums"]) == written
	largest = run.summary["file_sums"][0]
	assert largest["path"] == run.path("large") and largest["written"] == 1000000


# --- where it goes ---------------------------------------------------------------------

def test_reader_that_has_gone(runner):
	"""Nobody reads stderr: the program's end and status stay as they are."""
	read, write = os.pipe()
	os.close(read)
	run = runner.traced(["sh", "-c", "cat /etc/passwd > x; exit 3"], ["-c"], stderr=write)
	os.close(write)
	assert run.status == 3 and run.traces


def test_slow_reader_gets_all(runner):
	"""A pipe that is read in small pieces, as by a launcher: no line is missing or torn."""
	read, write = os.pipe()
	seen = []

	def drain():
		while True:
			piece = os.read(read, 300)
			if not piece:
				return
			seen.append(piece)

	reader = threading.Thread(target=drain)
	reader.start()
	run = runner.traced([program("everycall")], ["-c", "-v"], stderr=write)
	os.close(write)
	reader.join()
	os.close(read)
	text = b"".join(seen)
	assert {key: row for key, row in table(text).items() if key[1] != "total"} == sums(run.traces)
	assert b"tracer CPU" in text


def test_full_pipe_does_not_keep_the_program(runner):
	"""A pipe that nobody reads from any more, and that is full."""
	read, write = os.pipe()
	os.set_blocking(write, False)
	try:
		while True:
			os.write(write, b"x" * 4096)
	except BlockingIOError:
		os.set_blocking(write, True)
	run = runner.traced(["sh", "-c", "exit 4"], ["-c"], stderr=write, timeout=30)
	os.close(read)
	os.close(write)
	assert run.status == 4 and run.traces


@pytest.mark.parametrize("path,words", [
	("", ["--summary-file needs the name of a file"]),
	("dir/", ["--summary-file needs the name of a file"]),
	("plain/x", ["the summary cannot be written", "--summary-file"]),
	("%x", ["--summary-file '%x'", "%r (rank)"]),
])
def test_file_that_cannot_be(runner, path, words):
	cwd = runner.fresh("bad")
	with open(os.path.join(cwd, "plain"), "w", encoding="ascii"):
		pass
	run = runner.native([TRACER, *EXTRA, "--summary-file", path, "--", "echo", "ran"], cwd=cwd)
	lines = run.stderr.decode().splitlines()
	assert run.status == 125 and run.stdout == b"" and len(lines) == 1, run.stderr
	for word in words:
		assert word in lines[0]


def test_file_is_replaced_and_said_when_it_cannot(runner):
	top = runner.fresh("sums")
	path = os.path.join(top, "s.txt")
	with open(path, "w", encoding="ascii") as file:
		file.write("old\n" * 100000)
	runner.traced(["true"], ["--summary-file", path])
	with open(path, "rb") as file:
		text = file.read()
	assert b"old" not in text and table(text)
	os.mkdir(os.path.join(top, "dir"))
	run = runner.traced(["sh", "-c", "exit 5"], ["--summary-file", os.path.join(top, "dir")])
	assert run.status == 5 and b"the summary cannot be written to " in run.stderr and b"Is a directory" in run.stderr


def test_summary_costs_no_descriptor(runner):
	"""The program has what it would have: nothing of the summary's is open in it."""
	native = runner.native(["ls", "-l", "/proc/self/fd"])
	path = os.path.join(runner.fresh("sums"), "s.txt")
	run = runner.traced(["ls", "-l", "/proc/self/fd"], ["--summary-file", path])
	assert len(run.stdout.splitlines()) == len(native.stdout.splitlines())
