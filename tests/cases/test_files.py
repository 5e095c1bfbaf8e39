"""The files and their lines: names, formats, selection."""

import hashlib
import os
import re
import socket
import time

import pytest

from lib.run import EXTRA, exit_line_agrees, program, wait_until
from lib.trace import Trace, name_hash, trace_files

WORK = ["sh", "-c", "mkdir d; echo hello > d/f; cat d/f; rm d/f; cat none 2>/dev/null; : < /etc/passwd"]


def test_hashes():
	"""Vectors of the format."""
	assert name_hash(b"vm") == "6882804a826580cd"
	assert name_hash(b"tuolumne1001") == "8e0caa2d595b2a4d"
	assert name_hash(b"data/x") == "3ef582c7652c68e6"


def test_file_name(both):
	run = both.traced(WORK)
	for trace in run.traces:
		text = f"{trace.exec_name}-{socket.gethostname()}-{trace.pid}"
		assert os.path.basename(trace.file) == f"t-{name_hash(text.encode())}-preload.pfw.gz"


@pytest.mark.parametrize("args,name", [
	(["/bin/sh", "-c", "echo > f; exit"], "sh"),
	(["/usr/bin/python3", "-u", "./train.py", "x"], "train.py"),
	(["/usr/bin/python3", "-c", "open('f', 'w')"], "python3"),
	(["env", "A=b", "./tool", "-v"], "tool"),
	(["./tool", "other"], "tool"),
	(["bash", "./script.sh"], "script.sh"),
	(["bash", "-lc", "echo > f; exit"], "bash"),
])
def test_exec_name(runner, args, name):
	def setup(cwd):
		for script, text in (("train.py", "open('f', 'w').close()\n"), ("script.sh", "echo > f\n"),
				     ("tool", "#!/bin/sh\necho > f\n")):
			path = os.path.join(cwd, script)
			with open(path, "w", encoding="utf-8") as file:
				file.write(text)
			os.chmod(path, 0o755)

	run = runner.traced(args, setup=setup)
	assert run.status == 0, run.stderr
	opened = next(t for t in run.traces if any(e.name == "open" and e.path == run.path("f")
						   for e in t.events))
	assert opened.exec_name == name


def test_start_and_end(both):
	before = int(time.time() * 1e6)
	run = both.traced(["sh", "-c", "echo > 'a b'; exit 3"])
	after = int(time.time() * 1e6)
	trace = run.trace
	start = trace.start.args
	assert trace.names[start["cwd"]] == run.cwd
	assert trace.command == "sh;-c;echo > 'a b'; exit 3"
	assert trace.texts[start["exec_hash"]] == "sh"
	assert start["version"] and start["date"] and start["ppid"] > 0
	assert trace.end.args["exit_status"] == 3
	for event in [trace.start, *trace.events, trace.end]:
		assert before <= event.ts <= event.end <= after + 1
	assert list(trace.hosts.values()) == [socket.gethostname()]
	assert trace.threads[trace.pid] == "sh"
	if both.form == "detached":
		assert start["ppid"] == os.getpid()


def test_only_the_loader_is_no_file(both):
	"""A program whose only calls are the loader's has no file, but the one that was given has."""
	run = both.traced(["sh", "-c", "/bin/true; /bin/true; exit 0"])
	assert len(run.traces) == 1
	alone = both.traced(["true"])
	assert len(alone.traces) == 1
	assert alone.traces[0].exec_name == "true"
	exit_line_agrees(alone)


def test_max_files(both):
	script = "for i in 1 2 3 4 5 6 7 8; do cat /etc/passwd >/dev/null; done; echo $i"
	run = both.traced(["sh", "-c", script], ["--max-files", "3"])
	assert run.status == 0 and run.stdout == b"8\n"
	assert len(run.traces) == 3
	assert b"6" in run.stderr or b"5" in run.stderr, "those left out are counted"
	everything = both.traced(["sh", "-c", script], ["--max-files", "0"])
	assert len(everything.traces) == 9


@pytest.mark.parametrize("options", [[], ["--format", "v1"], ["--format", "v2"],
				     ["--no-compress"], ["--no-compress", "--format", "v2"]], ids=" ".join)
def test_formats(both, options):
	run = both.traced(WORK, options)
	assert run.status == 0
	exit_line_agrees(run)
	for trace in run.traces:
		assert trace.v2 == ("v2" in options)
		assert trace.compressed == ("--no-compress" not in options)
		if trace.v2:
			assert any(line["name"] == "CM" for line in trace.meta)
	assert {e.name for e in run.below()} >= {"mkdir", "open", "write", "read", "close", "unlink"}


def test_formats_hold_the_same(runner):
	def content(options):
		run = runner.traced(WORK, options)
		return sorted((e.name, (e.path or "").replace(run.cwd, ""), e.ret, e.errno)
			      for e in run.below())

	plain = content([])
	assert plain
	for options in (["--format", "v2"], ["--no-compress"]):
		assert content(options) == plain


def test_small_trace_is_one_member_and_long_one_several(runner):
	run = runner.traced([program("progress"), "data", "60000"])
	trace = run.trace
	assert 1 <= trace.members <= 3 and len(trace.text) > 8 << 20
	assert runner.traced(["true"]).trace.members == 1


def test_paths_given(runner):
	script = "mkdir d; cd d; echo > ../d/./f; cat < f; rm f"
	run = runner.traced(["sh", "-c", script], ["--paths", "given"])
	paths = {event.path for event in run.events if event.name in ("open", "mkdir", "unlink", "chdir")}
	assert {"d", "../d/./f"} <= paths
	absolute = runner.traced(["sh", "-c", script])
	assert absolute.of("open", absolute.path("d", "f"))


def test_kernel_names(runner):
	run = runner.traced([program("everycall")], ["--names", "kernel"])
	names = {event.name for event in run.events if "aio" not in event.args}
	assert {"openat", "openat2", "creat", "pread64", "newfstatat", "statx", "getdents64", "unlinkat",
		"execve", "clone3", "wait4", "pipe2", "fchmodat2"} <= names
	assert not names & {"pread", "readdir", "exec", "wait", "fstatat"}


def select(runner, items, args=None):
	options = [word for item in items for word in ("-e", item)]
	return runner.traced(args or WORK, options)


@pytest.mark.parametrize("items,there,gone", [
	(["open"], {"open"}, {"read", "write", "close", "mkdir", "fork", "exec"}),
	(["openat"], {"open"}, {"read", "write", "close", "mkdir"}),
	(["open,close"], {"open", "close"}, {"read", "write", "mkdir"}),
	(["trace=open,close"], {"open", "close"}, {"read", "write", "mkdir"}),
	(["!read"], {"open", "write", "close", "mkdir"}, {"read"}),
	(["!read,!write"], {"open", "close"}, {"read", "write"}),
	(["posix,!mmap"], {"open", "read", "fork"}, {"mmap"}),
	(["+%memory"], {"open", "read", "munmap", "brk"}, set()),
	(["%memory"], {"munmap", "brk", "mprotect"}, {"open", "read"}),
	(["open", "+mkdir"], {"open", "mkdir"}, {"read", "write"}),
	(["open", "mkdir"], {"open", "mkdir"}, {"read", "write"}),
	(["open,+mkdir,!open"], {"mkdir"}, {"open"}),
])
def test_selection(runner, items, there, gone):
	run = select(runner, items)
	assert run.status == 0, run.stderr
	names = {event.name for event in run.events}
	assert there <= names
	assert not gone & names


def test_selected_calls_know_their_files(runner):
	"""Following descriptors does not depend on what is recorded."""
	run = select(runner, ["write,read"], ["sh", "-c", "cd /; exec 3> $OLDPWD/f; echo hello >&3; "
						    "cd $OLDPWD; cat < f"])
	written, = [event for event in run.of("write") if event.ret == 6]
	assert written.path == run.path("f")
	assert run.of("read", run.path("f"))


def test_ipc(runner):
	script = "echo hello | cat; echo null > /dev/null"
	off = runner.traced(["sh", "-c", script])
	on = runner.traced(["sh", "-c", script], ["-e", "+%ipc"])
	assert not [e for e in off.events if (e.path or "").startswith("pipe:")]
	assert sum(t.skipped().get("pipe", 0) for t in off.traces) >= 3
	pipes = [e for e in on.events if re.fullmatch(r"pipe:\[\d+\]", e.path or "")]
	assert {"read", "write"} <= {event.name for event in pipes}


def test_data_dir(runner):
	script = "mkdir in inner; echo a > in/a; echo b > inner/b; echo c > c; cat in/a in/../c; echo > in/x.py"
	run = runner.traced(["sh", "-c", script], ["-d", "in"])
	paths = {event.path for event in run.events if event.path and event.name == "open"}
	assert paths == {run.path("in", "a")}
	assert run.of("exec") or run.of("fork") or len(run.traces) >= 1
	assert sum(t.skipped().get("datadir", 0) for t in run.traces) > 5
	two = runner.traced(["sh", "-c", script], ["-d", "in:inner"])
	paths = {event.path for event in two.events if event.path and event.name == "open"}
	assert paths == {two.path("in", "a"), two.path("inner", "b")}
	for everything in ("all", "/", ""):
		assert runner.traced(["sh", "-c", script], ["-d", everything]).of("open", None)


def test_exclude(runner):
	script = "cat /etc/passwd > out; sh -c 'ls / > list'; sort out > sorted"
	run = runner.traced(["sh", "-c", script], ["--exclude", "cat,sort"])
	assert run.status == 0
	names = {trace.exec_name for trace in run.traces}
	assert "ls" in names and not names & {"cat", "sort"}
	again = runner.traced(["sh", "-c", script], ["--exclude", "cat", "--exclude", "ls"])
	names = {trace.exec_name for trace in again.traces}
	assert "sort" in names and not names & {"cat", "ls"}


def test_excluded_programs_children_are_traced(runner):
	run = runner.traced(["env", "sh", "-c", "cat /etc/passwd > out; echo"], ["--exclude", "sh"])
	names = {trace.exec_name for trace in run.traces}
	assert "cat" in names


def test_inherited_descriptors(runner):
	"""Regular files that were open before are I/O; /dev/null and directories are not."""
	top = runner.fresh("inherited")
	with open(os.path.join(top, "in"), "w+b") as source, \
	     open(os.path.join(top, "out"), "wb") as target, open(os.devnull, "wb") as null:
		source.write(b"some text\n")
		source.flush()
		source.seek(0)
		run = runner.traced(["dd", "status=none"], stdin=source, stdout=target, stderr=null)
	assert sum(e.ret for e in run.of("read", os.path.join(top, "in"))) == 10
	assert sum(e.ret for e in run.of("write", os.path.join(top, "out"))) == 10
	quiet = runner.traced(["sh", "-c", "cat; echo x"], stdout=open(os.devnull, "wb"))  # noqa: SIM115
	assert not [e for e in quiet.events if e.name == "write"]


def test_fifo_opened_by_its_path(runner):
	script = "mkfifo p; (echo through > p) & cat p; wait"
	run = runner.traced(["sh", "-c", script])
	assert run.stdout == b"through\n"
	assert [e.ret for e in run.of("write", run.path("p"))] == [8]
	assert [e.ret for e in run.of("read", run.path("p"))][0] == 8


def test_symbolic_links_are_not_followed(runner):
	run = runner.traced(["sh", "-c", "mkdir d; ln -s d l; echo > l/f; cat l/../l/f"])
	assert run.of("open", run.path("l", "f"))
	assert not run.of("open", run.path("d", "f"))


def test_program_that_changes_nothing_of_the_trace_by_chdir(runner):
	"""A relative prefix is relative to where dftrace-run started."""
	cwd = runner.fresh("chdir")
	os.mkdir(os.path.join(cwd, "sub"))
	run = runner.traced(["sh", "-c", "cd sub; echo > f"], cwd=cwd, prefix="out/t")
	run.prefix = os.path.join(cwd, "out", "t")
	run._traces = None
	assert len(run.traces) == 1
	assert not os.path.exists(os.path.join(cwd, "sub", "out"))


def test_exit_line(both):
	run = both.traced(WORK)
	line = run.stderr.decode().splitlines()
	assert len(line) == 1
	# On a lower rung of the fallback ladder it says so behind.
	rest = r"; hooks \d+ of \d+" + (r"(; .*)?" if EXTRA else "")
	assert re.fullmatch(r"dftrace-run: \d+ events? in \d+ files? \(0 lost\), .*\d+ ms tracer CPU -> "
			    r".*/t-\*\.pfw\.gz" + rest, line[0]), line[0]


def test_empty_environment(both):
	run = both.traced(["/bin/sh", "-c", "echo > f"], env={"PATH": None, "HOME": None, "LANG": None})
	assert run.status == 0 and run.of("open", run.path("f"))


def test_checksum_of_contents_is_the_natives(both):
	args = ["sh", "-c", "seq 1 20000 | gzip -n > z; md5sum < z"]
	assert both.traced(args).stdout == both.native(args).stdout


def test_readable_with_the_usual_tools(runner):
	"""The one-liner of the README."""
	run = runner.traced(WORK)
	out = runner.native(["sh", "-c", f"zcat {run.files[0]} | grep '^{{' | jq -r .name"])
	assert out.status == 0, out.stderr
	assert "open" in out.stdout.decode().split()


def test_own_files_hash(runner):
	"""FH lines hash the raw bytes, whatever the text shows."""
	name = b"bad-\xff-name"
	run = runner.traced(["sh", "-c", "echo > \"$(printf 'bad-\\377-name')\""])
	raw = os.path.join(run.cwd.encode(), name)
	trace = run.trace
	assert hashlib.md5(raw).digest()[::2].hex() in trace.names
	assert trace.names[name_hash(raw)].endswith("bad-\ufffd-name")


def test_reading_while_it_is_written(runner):
	"""A reader that looks at any time sees whole lines."""
	run = runner.start([program("progress"), "data", "0", "1000"])
	wait_until(lambda: trace_files(run.prefix), what="a file")
	seen = 0
	for _ in range(30):
		trace = Trace(trace_files(run.prefix)[0], whole=False)
		assert len(trace.events) >= seen
		seen = len(trace.events)
		time.sleep(0.05)
	assert seen > 100
	os.kill(run.process.pid, 15)
	runner.finish(run)
