"""The recorder: calls that are recorded inside the program are those that the program makes, and it notices nothing."""

import collections
import os
import re
import shutil
import signal
import struct
import subprocess

import pytest

from lib.oracle import differences, multiset, values
from lib.run import ROOT, exit_line_agrees, program, wait_until

RECORDER = ["--capture", "recorder", "-v"]
FORMS = {
	"dynamic": ["gcc", "-O2", "-pthread"],
	"static": ["gcc", "-O2", "-pthread", "-static"],
	"static-pie": ["gcc", "-O2", "-pthread", "-static-pie"],
	"musl": ["musl-gcc", "-O2", "-pthread", "-static"],
}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
	"""Makes a test program in one of the forms."""
	directory = tmp_path_factory.mktemp("recorder")
	made = {}

	def build(name, form):
		if (name, form) not in made:
			compiler = FORMS[form]
			if not shutil.which(compiler[0]):
				pytest.skip(f"no {compiler[0]}")
			out = str(directory / f"{name}.{form}")
			subprocess.run([*compiler, "-D_GNU_SOURCE", "-o", out,
					os.path.join(ROOT, "tests", "programs", name + ".c")], check=True)
			made[name, form] = out
		return made[name, form]
	return build


def census(run):
	"""What -v says: calls recorded, places patched, before and behind the call."""
	found = re.search(rb"recorder: (\d+) calls from (\d+) places(?: \((\d+) before the call, (\d+) behind it\))?", run.stderr)
	assert found, run.stderr
	return [int(number or 0) for number in found.groups()]


def counted(run, path):
	return collections.Counter(event.name for event in run.events if event.path == path)


def agrees(run, names=("pread", "pwrite", "lseek", "readv"), file="data"):
	"""What the program says it did is what the trace has."""
	said = values(run.stdout)
	found = counted(run, run.path(file))
	for name in names:
		if name in said:
			assert found[name] == int(said[name]), (name, said, found)
	exit_line_agrees(run)


def hits(count):
	return [*RECORDER, "--recorder-hits", str(count)]


# --- what the program sees -------------------------------------------------------

@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("first", [1, 8])
def test_registers_flags_and_red_zone_are_the_kernels(runner, built, form, first):
	run = runner.traced([built("recorder_sites", form), "registers", "200"], hits(first))
	assert run.status == 0, run.stderr
	said = values(run.stdout)
	calls = int(said.pop("pread"))
	assert set(said.values()) == {"kept"}, said
	assert counted(run, run.path("hello"))["pread"] == calls
	recorded, _, before, behind = census(run)
	# All shapes but one; which of them reads first is left to the tracer.
	assert before >= 4 and behind >= 4 and recorded >= calls * 8 // 9 - 8 * 9 * first


@pytest.mark.parametrize("what", ["stacks", "pointers"])
@pytest.mark.parametrize("form", ["dynamic", "static", "musl"])
def test_narrow_stacks_and_bad_pointers(runner, built, form, what):
	args = [built("recorder_sites", form), what]
	native = runner.native(args)
	run = runner.traced(args, hits(2))
	assert run.status == native.status == 0, run.stderr
	assert run.stdout == native.stdout
	assert census(run)[0] > 100
	said = values(run.stdout)
	if what == "pointers":
		assert counted(run, "/etc/passwd")["open"] == int(said["open"])
		assert counted(run, "/etc/passwd")["readv"] >= int(said["readv"])
	else:
		assert counted(run, "/etc/passwd")["pread"] == int(said["pread"])


@pytest.mark.parametrize("form", ["dynamic", "static", "musl"])
@pytest.mark.parametrize("what", ["faults", "handlers"])
@pytest.mark.parametrize("first", [1, 8])
def test_faults_of_ours_leave_masks_and_handlers(runner, built, form, what, first):
	"""The kernel unblocks a signal that it has to force, and takes its handler away."""
	args = [built("recorder_sites", form), what]
	native = runner.native(args)
	run = runner.traced(args, hits(first))
	assert native.status == 0, native.stderr
	assert run.status == 0 and run.stdout == native.stdout, run.stderr
	assert census(run)[0] > 100


# --- threads and children --------------------------------------------------------

@pytest.mark.parametrize("form", ["dynamic", pytest.param("static", marks=pytest.mark.full), "musl"])
@pytest.mark.parametrize("threads, rounds", [(1, 5000), (8, 1000), (64, 100)])
@pytest.mark.parametrize("first", [1, 8])
def test_threads_run_on_while_their_code_is_changed(runner, built, form, threads, rounds, first):
	run = runner.traced([built("recorder_threads", form), "together", str(threads), str(rounds)], hits(first))
	assert run.status == 0, run.stderr
	agrees(run)
	assert census(run)[0] > threads * rounds


def test_short_threads(runner, built):
	run = runner.traced([built("recorder_threads", "static"), "shortly", "500", "20"], hits(3))
	assert run.status == 0, run.stderr
	agrees(run)
	assert census(run)[0] > 500


@pytest.mark.parametrize("form", ["dynamic", "static", "musl"])
def test_children_by_fork_vfork_and_spawn(runner, built, form):
	run = runner.traced([built("recorder_threads", form), "children", "15", "100"], hits(4))
	assert run.status == 0, run.stderr
	agrees(run)
	assert census(run)[0] > 1500


def test_exec_while_threads_record(runner, built):
	run = runner.traced([built("recorder_threads", "static"), "replaced", "4", "0"], hits(2))
	assert run.status == 0, run.stderr
	assert census(run)[0] > 100
	exit_line_agrees(run)


def test_code_that_comes_and_goes(runner, built):
	run = runner.traced([built("recorder_threads", "dynamic"), "code", "60", "30"], hits(2))
	assert run.status == 0, run.stderr
	agrees(run)


@pytest.mark.parametrize("form", ["dynamic", "static", "musl"])
def test_code_that_is_moved(runner, built, form):
	args = [built("recorder_threads", form), "moved", "20", "40"]
	assert runner.native(args).status == 0
	run = runner.traced(args, hits(2))
	assert run.status == 0, run.stderr
	agrees(run)
	# In each place anew.
	assert census(run)[1] >= 30


@pytest.mark.parametrize("form", ["dynamic", "static"])
def test_memory_that_is_copied_while_code_is_changed(runner, built, form):
	args = [built("recorder_threads", form), "copied", "1", "6"]
	assert runner.native(args).status == 0
	run = runner.traced(args, hits(2))
	assert run.status == 0, run.stderr
	agrees(run)
	_, patched, before, behind = census(run)
	assert patched > 100 and before > 50 and behind > 50


@pytest.mark.parametrize("form", ["dynamic", "static"])
def test_code_that_is_changed_back_among_threads(runner, built, form):
	args = [built("recorder_threads", form), "withdrawn", "400", "6"]
	assert runner.native(args).status == 0
	# Hooks would take the breakpoints for theirs.
	run = runner.traced(args, [*hits(2), "--no-stdio", "-e", "posix"])
	assert run.status == 0, run.stderr
	agrees(run)
	assert census(run)[3] > 50


@pytest.mark.parametrize("form", ["dynamic", "musl"])
def test_no_descriptor_among_threads(runner, built, form):
	run = runner.traced([built("recorder_threads", form), "alone", "15", "100"], hits(2))
	assert run.status == 0, run.stderr
	found = counted(run, run.path("data"))
	assert found["open"] == 15 * 100 + 2 and found["lseek"] == 2 * 15 * 100
	assert census(run)[0] > 15 * 100
	exit_line_agrees(run)


def test_libraries_that_come_and_go(runner, built):
	def setup(cwd):
		for name, extra in (("one", []), ("two", ["-DOTHER"])):
			subprocess.run(["gcc", "-O2", "-shared", "-fPIC", *extra, "-o", os.path.join(cwd, name + ".so"),
					os.path.join(ROOT, "tests", "programs", "recorder_lib.c")], check=True)
	run = runner.traced([built("recorder_threads", "dynamic"), "library", "100", "30"], hits(3), setup=setup)
	assert run.status == 0, run.stderr
	agrees(run)
	assert census(run)[0] > 1500


@pytest.mark.parametrize("first", [1, 8])
def test_descriptors_that_nobody_saw(runner, built, first):
	"""A number that was a file, then a pipe that does not stop, then another file."""
	run = runner.traced([built("recorder_threads", "dynamic"), "descriptors", "200", "1"], hits(first))
	assert run.status == 0, run.stderr
	agrees(run)
	found = counted(run, run.path("data"))
	assert found["open"] == 201 and found["close"] >= 200 and found["read"] == 0 and found["write"] == 1


@pytest.mark.parametrize("form", ["dynamic", "musl"])
@pytest.mark.parametrize("what, opened", [("renamed", 1200), ("renamed-by-another", 600), ("taken-along", 300)])
def test_names_from_where_the_program_is(runner, built, form, what, opened):
	"""Each file bears the name of the directory that it was made in."""
	run = runner.traced([built("recorder_threads", form), what, "300", "0"], hits(2))
	assert run.status == 0, run.stderr
	names = collections.Counter(os.path.relpath(event.path, run.cwd) for event in run.of("open")
				    if os.path.basename(event.path).startswith("in-"))
	below = "/below" if what == "renamed" else ""
	assert names == {f"{name}{below}/{name}": opened // 2 for name in ("in-one", "in-two")}, names
	exit_line_agrees(run)


@pytest.mark.parametrize("times", [*range(3), *(pytest.param(n, marks=pytest.mark.full) for n in range(3, 50))])
def test_killed_at_full_speed(runner, built, times):
	"""The program's own counter, in a file, is at most one behind the trace."""
	run = runner.start([built("recorder_threads", "static"), "counting", "1", "0"], hits(2))
	counter = run.path("counter")

	def ended():
		if not os.path.exists(counter) or os.path.getsize(counter) < 8:
			return 0
		with open(counter, "rb") as file:
			return struct.unpack("q", file.read(8))[0]
	wait_until(lambda: ended() > 2000 * (times % 10 + 1), what="the program's calls")
	os.kill(run.process.pid, signal.SIGKILL)
	runner.finish(run)
	assert run.status == -signal.SIGKILL
	calls = [event for event in run.of("pread", run.path("data"))]
	cut = [event for event in calls if event.args.get("cut")]
	assert len(cut) <= 1
	assert 0 <= len(calls) - ended() <= 1, (len(calls), ended())


# --- signals ---------------------------------------------------------------------

@pytest.mark.parametrize("form", ["dynamic", "static", "musl"])
@pytest.mark.parametrize("what, rounds", [("storm", 20000), ("restarted", 60), ("interrupted", 60), ("jumped", 60),
					  ("cancelled", 60), ("stopped", 30)])
def test_signals(runner, built, form, what, rounds):
	run = runner.traced([built("recorder_signals", form), what, str(rounds)], hits(2))
	assert run.status == 0, run.stderr
	said = values(run.stdout)
	agrees(run)
	found = counted(run, run.path("data"))
	if what == "storm":
		assert found["open"] == int(said["open"]) + 1
		assert census(run)[0] > rounds
	if what == "cancelled":
		assert int(said["cleaned"]) == rounds


@pytest.mark.parametrize("form", ["dynamic", "static"])
def test_stopped_while_it_begins(runner, built, form):
	"""SIGSTOP comes while the tracer makes calls of its own in the process."""
	run = runner.traced([built("recorder_signals", form), "early", "200"], hits(2), timeout=120)
	assert run.status == 0, run.stderr
	assert values(run.stdout)["stopped"] == "200"


@pytest.mark.parametrize("form", ["dynamic", "musl"])
@pytest.mark.parametrize("what", ["restarted", "interrupted", "jumped", "stopped"])
def test_interrupted_calls_are_one_event_each(runner, built, form, what):
	run = runner.traced([built("recorder_signals", form), what, "60"], [*hits(2), "-e", "+%ipc"])
	assert run.status == 0, run.stderr
	said = values(run.stdout)
	reads = [event for event in run.of("read") if (event.path or "").startswith("pipe:")]
	if what == "jumped":
		# The timer may hit between two of them.
		assert 30 <= len(reads) <= int(said["cut"]) and all(event.args.get("cut") for event in reads)
	else:
		assert len(reads) == int(said["read"]), collections.Counter(str(event.args) for event in reads).most_common(4)
		errors = {event.args.get("errno") for event in reads}
		assert errors == ({4} if what == "interrupted" else {None}), errors


# --- the same as with stops ------------------------------------------------------

def shape(event, cwd):
	"""What does not change from run to run."""
	known = ["errno", "count", "offset", "flags", "mode", "whence", "iovcnt", "length", "level"]
	if event.name not in ("fork", "wait"):
		known.append("ret")
	path = "" if event.path in (None, cwd) else os.path.basename(event.path)
	return event.cat, event.name, path, \
		tuple((key, event.args[key]) for key in known if key in event.args)


PROGRAMS = {
	"tar": ["sh", "-c", "tar cf t.tar /usr/include/linux; tar tf t.tar | wc -l; mkdir x; tar xf t.tar -C x; rm -r x"],
	"python": ["python3", "-c", "import os\nfor i in range(300):\n f = open(f'f{i % 7}', 'w'); f.write('x' * i); f.close(); "
		   "os.stat(f'f{i % 7}'); os.rename(f'f{i % 7}', 'g'); os.access('g', os.R_OK); os.unlink('g')"],
	"find": ["sh", "-c", "find /usr/include/linux -newer /etc/passwd | wc -l; grep -rl main /usr/include/linux | wc -l"],
	"sqlite": ["python3", "-c", "import sqlite3\ndb = sqlite3.connect('db')\ndb.execute('create table t (n integer, s text)')\n"
		   "for i in range(60):\n db.execute('insert into t values (?, ?)', (i, 'x' * i)); db.commit()\n"
		   "print(db.execute('select sum(n), count(s) from t').fetchone()); db.execute('vacuum'); db.close()"],
	"pipes": ["sh", "-c", "seq 20000 > a; sort -r a > b; sort -n b | cmp - a; gzip -k a; gzip -dc a.gz | cksum; "
		  "dd if=a of=c bs=100 status=none; tail -n 3 c; split -b 5000 a part; cat part* | cmp - a"],
	"copy": ["sh", "-c", "cp -r /usr/include/linux copy; du -s copy | wc -l; diff -r /usr/include/linux copy; rm -r copy"],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_events_are_those_of_stops(runner, name):
	stops = runner.traced(PROGRAMS[name], ["--capture", "stops"])
	run = runner.traced(PROGRAMS[name], hits(2))
	assert (run.status, run.stdout) == (stops.status, stops.stdout), run.stderr
	assert census(run)[0] > 500

	def shapes(one):
		# grep and diff look at their own memory, in which the recorder can be seen.
		return multiset(shape(event, one.cwd) for event in one.events if not (event.path or "").endswith("/maps"))
	assert not differences(shapes(stops), shapes(run))


# --- what it leaves alone --------------------------------------------------------

def test_named_programs_have_none(runner, built):
	args = [built("recorder_threads", "static"), "together", "1", "500"]
	name = os.path.basename(args[0])
	run = runner.traced(args, [*RECORDER, f"--no-recorder={name}"])
	assert run.status == 0 and census(run)[0] == 0 and b"off 1: --no-recorder" in run.stderr
	agrees(run)


def test_a_call_or_two_leave_no_trace_of_it(runner):
	"""A program without a hot place has neither agent nor ring."""
	run = runner.traced(["cat", "/proc/self/maps"], RECORDER, env={"LANG": "C"})
	assert b"[stack]" in run.stdout and b"7e8100000000" not in run.stdout
	assert census(run)[0] == 0


def test_no_descriptor_and_no_agent_is_inherited(runner, built):
	code = ("import os\nfd = os.open('/etc/passwd', 0)\n"
		"for i in range(500): os.pread(fd, 1, i)\n"
		"print(sorted(os.listdir('/proc/self/fd')))\n"
		"print('7e8100000000' in open('/proc/self/maps').read())\n")
	native = runner.native(["python3", "-c", code])
	run = runner.traced(["python3", "-c", code], RECORDER)
	assert run.stdout.splitlines()[0] == native.stdout.splitlines()[0]
	assert run.stdout.splitlines()[1] == b"True"
	assert census(run)[0] > 400


def test_without_a_name_it_is_off(runner, built):
	args = [built("recorder_threads", "static"), "together", "1", "500"]
	run = runner.traced(args, [*RECORDER, "--no-recorder"])
	assert run.status == 0 and b", recorder: " not in run.stderr and "recorder" not in run.trace.properties
	agrees(run)


OWN_FILTER = "it has a seccomp filter of its own"
TAKEN_AWAY = "the program took away what it needs"


@pytest.mark.parametrize("form", ["dynamic", "static"])
@pytest.mark.parametrize("what, recorded, said", [
	("gs-before", 0, "the program uses %gs"), ("gs-later", 490, None), ("gs-of-one", 900, None),
	("mdwe", 490, None), ("memory", 0, "no memory for it"), ("locked", 490, None),
	("taken", 0, "the agent's address is taken"), ("filter", 490, OWN_FILTER),
	("clock", 490, TAKEN_AWAY), ("clock-before", 0, TAKEN_AWAY), ("code-gone", 490, TAKEN_AWAY), ("table-gone", 490, TAKEN_AWAY),
	("rings-gone", 490, TAKEN_AWAY), ("answered", 980, OWN_FILTER), ("dispatched", 490, OWN_FILTER),
	("trap-blocked", 1450, None), ("trap-ignored", 1450, None), ("trap-handled", 1450, None),
])
def test_obstacles(runner, built, form, what, recorded, said):
	"""What the program needs it keeps, and no call is lost for it."""
	args = [built("recorder_obstacles", form), what, "500"]
	native = runner.native(args)
	if native.status:
		pytest.skip(native.stderr.decode())
	run = runner.traced(args, hits(4))
	assert (run.status, run.stdout) == (native.status, native.stdout), run.stderr
	found = counted(run, run.path("data"))
	for name, count in values(run.stdout).items():
		assert found[name] == int(count), name
	assert run.trace.lost() == ({"own_filter": 1} if said == OWN_FILTER else {}), run.stderr
	assert (census(run)[0] >= recorded) if recorded else (census(run)[0] == 0), run.stderr
	line = run.trace.properties["recorder"]
	assert "ring full" not in line, line
	assert (said is None) == ("off " not in line) and (said or "") in line, line


@pytest.mark.parametrize("options, recorded", [(["--no-proc-mem"], True), (["--no-proc-mem", "--no-vm-readv"], False)])
def test_ways_into_memory(runner, built, options, recorded):
	"""Where bytes cannot be written beside those of running threads, nothing is recorded."""
	run = runner.traced([built("recorder_threads", "dynamic"), "descriptors", "200", "1"], [*hits(2), *options])
	assert run.status == 0, run.stderr
	agrees(run)
	assert (census(run)[0] > 0) == recorded
	assert ("cannot be written while it runs" in run.trace.properties["recorder"]) != recorded


@pytest.mark.parametrize("sanitizer", ["address", "thread"])
@pytest.mark.parametrize("first", [1, 8])
def test_sanitized_programs(runner, tmp_path, sanitizer, first):
	"""They keep shadows of their memory where others have none."""
	out = str(tmp_path / sanitizer)
	source = os.path.join(ROOT, "tests", "programs", "recorder_threads.c")
	subprocess.run(["gcc", "-O1", "-g", "-pthread", "-D_GNU_SOURCE", f"-fsanitize={sanitizer}", "-o", out, source],
		       check=True)
	# Looking for leaks is done by ptrace.
	run = runner.traced([out, "together", "8", "200"], hits(first), env={"ASAN_OPTIONS": "detect_leaks=0"})
	assert run.status == 0, run.stderr
	agrees(run)
	assert census(run)[0] > 3000, run.stderr


def test_memory(runner, built):
	"""Four threads cost less than 6 MiB, though both sides count the rings."""
	args = [built("recorder_threads", "static"), "peaks", "4", "1000"]
	stops, run = (values(runner.traced(args, options).stdout) for options in (["--capture", "stops"], hits(8)))
	more = sum(int(run[who]) - int(stops[who]) for who in ("own", "tracer"))
	print(f"own {stops['own']} -> {run['own']} KiB, tracer {stops['tracer']} -> {run['tracer']} KiB")
	assert more <= 6 << 10, more


def test_memory_of_many_programs(runner, built):
	"""A file costs no more for being recorded in."""
	program, count = built("recorder_threads", "static"), 60
	script = (f"for i in $(seq {count}); do cp {program} one; ./one together 1 50 > /dev/null; rm one; done; "
		  "tracer=$(sed -n 's/TracerPid:\\t//p' /proc/self/status); sed -n 's/RssAnon:/anon/p' /proc/$tracer/status")
	stops, run = (runner.traced(["sh", "-c", script], options) for options in (["--capture", "stops"], hits(8)))
	assert census(run)[0] > count * 100
	stops, run = (int(values(one.stdout)["anon"].split()[0]) for one in (stops, run))
	print(f"{stops} -> {run} KiB")
	assert run - stops < count * 80


def test_many_threads(runner, built):
	"""Each has little memory, and leaves neither that nor work for others behind."""
	run = runner.traced([built("recorder_threads", "static"), "gone", "1000", "600"], hits(2))
	said = {what: int(value) for what, value in values(run.stdout).items()}
	print(said)
	assert said["threads"] <= 80 << 10 and said["left"] <= 1 << 10
	assert said["behind"] < 2 * said["before"]


# --- what it says of itself ------------------------------------------------------

def test_the_trace_has_the_census(runner, built):
	"""One line in each trace; -v has their sum."""
	run = runner.traced([built("recorder_threads", "static"), "children", "5", "50"], hits(4))
	assert run.status == 0, run.stderr
	lines = [trace.properties["recorder"] for trace in run.traces]
	found = [re.fullmatch(r"(\d+) calls from (\d+) places(?: \(\d+ before the call, \d+ behind it\))?(, .*)?", line)
		 for line in lines]
	assert all(found), lines
	assert [sum(int(match.group(i)) for match in found) for i in (1, 2)] == census(run)[:2]
	assert "recorder" not in runner.traced(["true"], ["--capture", "stops"]).trace.properties


def test_the_census_says_why_not(runner, built):
	args = [built("recorder_sites", "static"), "registers", "200"]
	line = runner.traced(args, hits(2)).trace.properties["recorder"]
	assert "refused 1: there is no room for a jump" in line, line
	line = runner.traced(args, [*hits(2), f"--no-recorder={os.path.basename(args[0])}"]).trace.properties["recorder"]
	assert line == "0 calls from 0 places, off 1: --no-recorder"


def test_the_filters_time_is_not_the_calls(runner, built):
	"""A thread that does nothing but calls: what lies between them is the filter's time at least."""
	run = runner.traced([built("recorder_threads", "static"), "together", "1", "20000"], hits(2))
	assert run.status == 0
	cost = int(re.search(rb"filter (\d+) ns", run.stderr).group(1))
	events = [event for event in run.events if event.path == run.path("data") and event.name in ("pread", "lseek")]
	events = [event for event in events if event.tid == events[-1].tid]
	span = events[-1].ts + events[-1].dur - events[0].ts
	assert 0 < cost < 2000 and len(events) > 50000
	assert (span - sum(event.dur for event in events)) * 1000 >= cost * len(events)


# --- the agent -------------------------------------------------------------------

def agent_text():
	agent = os.path.join(ROOT, "build", "obj", "tracer", "recorder", "agent", "agent.o")
	done = subprocess.run(["objdump", "-D", "-j", ".rodata.agent", "--no-show-raw-insn", agent], capture_output=True,
			      check=True, text=True)
	return done.stdout


def test_the_agent_uses_neither_stack_nor_vectors():
	lines = [line.split("\t", 1)[1] for line in agent_text().splitlines() if re.match(r"\s+[0-9a-f]+:\t", line)]
	code = [line.strip() for line in lines]
	end = next(i for i, line in enumerate(code) if line.startswith("syscall"))
	assert end >= 0 and len(code) > 100
	for line in code:
		assert not re.search(r"%[xyz]mm|%st|%mm", line), line
		assert not re.match(r"(push|pop|call|ret|enter|leave|int3|cpuid)\b", line), line
		# The stack pointer is stored once, and nothing goes by it.
		assert "(%rsp" not in line and not re.search(r",%[re]sp$", line), line
		for register in re.findall(r",\s*%(r\w+|e\w+)$", line):
			assert register.lstrip("re") in ("ax", "cx", "dx", "di", "si", "11") or line.startswith(("cmp", "test", "or", "and"))
	assert sum("syscall" in line for line in code) == 1


def test_the_agent_is_small():
	agent = os.path.join(ROOT, "build", "obj", "tracer", "recorder", "agent", "agent.o")
	done = subprocess.run(["size", "-A", agent], capture_output=True, check=True, text=True)
	size = int(re.search(r"\.rodata\.agent\s+(\d+)", done.stdout).group(1))
	assert size <= 2048
