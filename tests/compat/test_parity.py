"""Event by event: what DFTracer's preload library writes of a program, and what the same settings give with dftrace-run.
All differences are rows of docs/differences.md."""

import functools
import os
import subprocess

import pytest

from lib import differences, parity, upstream
from lib.hooked import some
from lib.run import BUILD, ROOT, Runner, program

HERE = os.path.join(ROOT, "tests", "programs", "compat")
PYTHON = "/usr/bin/python3"
# In a list, one entry is a prefix of another directory's name.
LIST = "%/a:%/b"


@functools.cache
def build(source):
	"""A dynamic program, as a user would build it."""
	source = os.path.join(HERE, source)
	out = os.path.join(BUILD, "tests", "programs", "compat", os.path.splitext(os.path.basename(source))[0])
	if not os.path.exists(out) or os.path.getmtime(out) < os.path.getmtime(source):
		os.makedirs(os.path.dirname(out), exist_ok=True)
		compiler = ["g++", "-std=gnu++17"] if source.endswith(".cpp") else ["gcc", "-std=gnu17", "-D_GNU_SOURCE"]
		subprocess.run([*compiler, "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", source, "-o",
				f"{out}.{os.getpid()}"], check=True)
		os.rename(f"{out}.{os.getpid()}", out)
	return out


def calls(*words):
	return lambda cwd: [build("libc_calls.c"), *(word.replace("%", cwd) for word in words)]


def line(*words):
	return lambda cwd: [word.replace("%", cwd) for word in words]


def streams(*words):
	return lambda cwd: [some("gcc.pie.O2")[0].values[0].build(words[0]), *words[1:]]


ALL = {
	**{name: calls(name) for name in ("data", "names", "directories", "maps", "streams", "threads", "forks", "execs",
					  "descriptors")},
	"absolute": calls("data", "%"),
	"c++": lambda cwd: [build("streams.cpp")],
	"python": line(PYTHON, "-B", os.path.join(HERE, "work.py")),
	"sh": line("sh", "-c", "seq 1 2000 > f; cat f | wc -l; mv f g; cat none; ls -l g | cut -c 1-4; cp g h; "
		   "(echo a; echo b) > i; true"),
	"bash": line("bash", "-c", "for i in 1 2; do echo $i > f$i; done; cat f1 f2 > f3; read x < f3; echo $x; mkdir d; "
		     "mv f1 d; rm -r d; find . -name 'f*'; grep -c 1 f3; tar cf t.tar f2 f3; sort f3 -o f4"),
	"stdio_calls": streams("stdio_calls"),
	**{f"stdio_streams {words}": streams("stdio_streams", *words.split())
	   for words in ("threads 1 50", "threads 4 20", "names", "exit return", "exit exit")},
	"workers": lambda cwd: [program("workers"), "children", "2", "10"],
	**{words.split()[0]: line(*words.split()) for words in (
		"cat in in", "cp in copy", "sort in -o sorted", "wc in", "head -c 4 in", "dd if=in of=out bs=3",
		"tail -c 3 in", "od in", "cksum in", "cut -c 2 in")},
}
LISTED = {
	**{f"{name} in": calls(name, "%/a") for name in ("data", "streams", "threads")},
	"data beside": calls("data", "%/a2"),
	"data outside": calls("data", "%/c"),
	"relative": calls("data", "a"),
	"forks": calls("forks"),
	"python": line(PYTHON, "-B", os.path.join(HERE, "work.py"), "%/b"),
	"utilities": line("sh", "-c", "cp %/in %/a/x; cat %/a/x %/in > %/b/y; sort %/b/y -o %/c/z; wc -c %/a/x.py %/c/z"),
}


def feed(cwd):
	for name in ("a", "b", "c", "a2"):
		os.mkdir(os.path.join(cwd, name))
	for name in ("in", "a/x.py"):
		with open(os.path.join(cwd, name), "wb") as file:
			file.write(b"ab 12 13\n")


@pytest.fixture(scope="module")
def module_runner(tmp_path_factory):
	runner = Runner(str(tmp_path_factory.mktemp("parity")))
	yield runner
	runner.close()


_done = {}


def compared(runner, kind, name):
	"""Both runs and what the comparison gave; each is made once."""
	if (kind, name) not in _done:
		command = {"all": ALL, "list": LISTED}[kind][name]
		directories = "all" if kind == "all" else LIST
		places = [runner.fresh(side) for side in ("theirs", "ours")]
		theirs = upstream.traced(runner, command(places[0]), cwd=places[0], directories=directories, setup=feed)
		prefix = os.path.join(runner.fresh("out"), "t")
		settings = upstream.settings(prefix, directories=directories.replace("%", places[1]))
		ours = runner.traced(command(places[1]), ["-q"], cwd=places[1], env=settings, prefix=prefix, setup=feed)
		_done[kind, name] = theirs, ours, *differences.explain(ours, theirs, kind == "list")
	return _done[kind, name]


def check(runner, kind, name):
	theirs, ours, unlisted, _, both = compared(runner, kind, name)
	assert theirs.status == ours.status, (theirs.stderr, ours.stderr)
	# Children may come in any order.
	out = [sorted(run.stdout.replace(run.cwd.encode(), b"").splitlines()) for run in (theirs, ours)]
	assert out[0] == out[1]
	assert not unlisted, "\n".join(f"{one.kind} {one.name} {one.what or ''}: {one.ours and one.ours.event} "
				       f"{one.theirs and one.theirs.event}" for one in unlisted[:10])
	return both


@pytest.mark.parametrize("name", ALL)
def test_all(module_runner, name):
	assert check(module_runner, "all", name) > 0


@pytest.mark.parametrize("name", LISTED)
def test_list(module_runner, name):
	both = check(module_runner, "list", name)
	assert (both == 0) == (name in ("data outside", "data beside", "relative"))


def test_each_row_is_needed(module_runner):
	"""What no program shows any more does not stand in the document."""
	used = set()
	for kind, cases in (("all", ALL), ("list", LISTED)):
		for name in cases:
			used |= compared(module_runner, kind, name)[3]
	for row in parity.tables()["Differences"]:
		key = parity.words(row[0])[0]
		calls_of = {call for other, call in used if other == key}
		assert calls_of, f"{key}: no program shows it"
		assert set(parity.words(row[1])) <= calls_of, (key, set(parity.words(row[1])) - calls_of)


def test_each_name_is_needed(module_runner):
	"""The same for the names of calls and arguments."""
	seen, arguments = set(), set()
	for kind, cases in (("all", ALL), ("list", LISTED)):
		for name in cases:
			for trace in compared(module_runner, kind, name)[0].theirs:
				seen |= {event.name for event in trace.events}
				arguments |= {(event.name, key) for event in trace.events for key in event.args}
	unseen = set(parity.names()) - seen
	assert not unseen, " ".join(map(str, sorted(unseen)))
	unseen = {one for one in parity.arguments() if one[0] != "any"} - arguments
	assert not unseen, " ".join(map(str, sorted(unseen)))


def test_execl(runner):
	"""Upstream's wrapper of execl passes on other arguments than the program gave: no comparison is possible."""
	theirs = upstream.traced(runner, [build("libc_calls.c"), "execl"])
	ours = runner.traced([build("libc_calls.c"), "execl"], ["-q"])
	assert ours.status == 7 and os.path.getsize(ours.path("execl")) == 40
	assert theirs.status != 7 or not os.path.exists(theirs.path("execl"))


def test_a_wrong_argument_is_found(module_runner):
	"""The check of the check: one number, one name, one event less."""
	theirs, ours, *_ = compared(module_runner, "all", "data")
	events = {event.name: event for event in ours.trace.events if (event.path or "").startswith(ours.cwd)}

	def changed(change, back):
		change()
		found = differences.explain(ours, theirs)[0]
		back()
		return found

	pread = events["pread"]
	wrong = changed(lambda: pread.args.update(ret=22), lambda: pread.args.update(ret=21))
	assert [(one.kind, one.name, one.what) for one in wrong] == [("argument", "pread64", "ret")]
	wrong = changed(lambda: setattr(pread, "path", "/x"), lambda: setattr(pread, "path", ours.path("data")))
	assert ("only theirs", "pread") in {(one.kind, one.name) for one in wrong}
	wrong = changed(lambda: ours.trace.events.remove(pread), lambda: ours.trace.events.append(pread))
	assert [(one.kind, one.name) for one in wrong] == [("only theirs", "pread")]
	assert not differences.explain(ours, theirs)[0]


# --- what the document says beside the events ---------------------------------------

def both(runner, command, **more):
	return upstream.traced(runner, command, **more), runner.traced(command, ["-q"], **more)


def written(run):
	return [event for event in run.events if event.name in ("write", "pwrite") and event.path and event.path.startswith(run.cwd)]


def test_killed_programs(runner):
	theirs, ours = both(runner, [PYTHON, "-c", "import os; f = open('f', 'w'); f.write('x' * 9); f.flush(); os.kill(os.getpid(), 9)"])
	assert theirs.status == ours.status == -9
	assert not theirs.theirs and theirs.empty == 1
	assert [event.ret for event in written(ours)] == [9] and ours.trace.end.args["signal"] == 9


@pytest.mark.parametrize("command", [["env", "-i", program("workers"), "threads", "1", "20"], "static"])
def test_programs_that_a_library_cannot_be_loaded_into(runner, command):
	if command == "static":
		command = [some("gcc.static.O2")[0].values[0].build("stdio_calls")]
	theirs, ours = both(runner, command)
	assert theirs.status == ours.status
	assert not [event for trace in theirs.theirs for event in trace.events if event.name in ("pwrite", "fwrite")]
	assert [event for event in ours.events if event.name in ("pwrite", "fwrite")]


def test_names_of_forked_children(runner):
	theirs, ours = both(runner, [build("libc_calls.c"), "forks"])
	known = [({line["args"]["value"] for line in trace.lines if line["name"] == "FH"},
		  {event.args["fhash"] for event in trace.events if "fhash" in event.args}) for trace in theirs.theirs]
	assert any(not used <= names for names, used in known)
	# The reader of ours refuses a name that its file does not have.
	assert len(ours.traces) == 4


def test_characters_of_names(runner):
	name = "a(b)'c'|\"d\\"
	theirs, ours = both(runner, ["cp", "/etc/hostname", name])
	assert {event.path for event in ours.of("open") if event.path.startswith(ours.cwd)} == {ours.path(name)}
	assert "a b  c   d " in {event.path for trace in theirs.theirs for event in trace.events}
