"""Every row of the syscall table, and the kernel's calls that have none."""

import collections
import glob
import os
import re

import pytest

from lib.oracle import differences, multiset, said
from lib.run import ROOT, program

TABLE = os.path.join(ROOT, "tracer", "syscalls.def")
DEFAULT = ("DATA", "DESC", "META", "PROCESS")
Row = collections.namedtuple("Row", "kernel written group")


def rows():
	with open(TABLE, encoding="utf-8") as file:
		text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.DOTALL)
	found = re.findall(r'^CALL\((\w+), *(NULL|"(\w+)"), *(\w+),', text, re.MULTILINE)
	assert len(found) > 100
	return [Row(kernel, written or None, group) for kernel, _, written, group in found]


def not_io():
	with open(os.path.join(os.path.dirname(__file__), "not-io.txt"), encoding="utf-8") as file:
		return [line.strip() for line in file if line.strip() and not line.startswith("#")]


def kernel_calls():
	headers = glob.glob("/usr/include/*/asm/unistd_64.h") + ["/usr/include/asm/unistd_64.h"]
	for header in headers:
		if os.path.exists(header):
			with open(header, encoding="utf-8") as file:
				return re.findall(r"#define __NR_(\w+)", file.read())
	pytest.skip("no kernel header asm/unistd_64.h")


def test_every_call_of_the_kernel_has_a_row_or_a_reason():
	left_alone = not_io()
	assert len(left_alone) == len(set(left_alone))
	table = {row.kernel for row in rows()}
	calls = kernel_calls()
	assert len(calls) > 300
	missing = [call for call in calls if call not in table and call not in left_alone]
	assert not missing


def test_no_call_is_both_recorded_and_left_alone():
	written = {row.kernel for row in rows() if row.written}
	assert not written & set(not_io())


def recorded(run, lines):
	"""The events that the program said: those below its directory and those without a file."""
	names = {line.name for line in lines if line.path is None}
	top = run.cwd + "/"
	found = []
	for event in run.trace_of_program.events:
		path = event.path
		if path is None and event.name in names or path and (path + "/").startswith(top):
			ret = event.ret
			if event.name == "readlink" and ret is None:
				ret = event.args.get("len")
			if event.name in ("fork", "pipe", "wait") and ret != -1:
				ret = None
			found.append((event.name, path, ret, event.errno))
	return found


@pytest.mark.parametrize("options", [[], ["--no-seccomp"], ["--no-syscall-info"], ["--no-proc-mem"],
				     ["--no-proc-mem", "--no-vm-readv"]], ids=" ".join)
def test_every_row(runner, options):
	run = runner.traced([program("everycall")], options)
	assert run.status == 0, run.stderr
	lines = said(run.stdout, run.cwd)
	run.trace_of_program = next(t for t in run.traces if t.exec_name == "everycall"
				    and len(t.events) > 50)
	expected = multiset((line.name, line.path, line.ret, line.errno) for line in lines)
	message = differences(expected, multiset(recorded(run, lines)))
	assert not message, message
	covered = {line.kernel for line in lines}
	wanted = {row.kernel for row in rows() if row.written and row.group in DEFAULT}
	assert not wanted - covered, "rows that no call in everycall.c stands for"


def test_every_row_that_is_off(runner):
	items = "+%memory,+%network,+%ipc,+%ioctl,+%sync,+%time"
	with open("/etc/passwd", "rb") as file:
		run = runner.traced([program("offcalls")], ["-e", items], stdin=file)
	assert run.status == 0, run.stderr
	lines = said(run.stdout, run.cwd)
	expected = multiset((line.name, line.ret, line.errno) for line in lines)
	without_ret = {line.name for line in lines if line.ret is None}
	found = multiset((e.name, None if e.name in without_ret and e.ret != -1 else e.ret, e.errno)
			 for e in run.events)
	assert not expected - found, differences(expected, found)
	wanted = {row.kernel for row in rows() if row.written and row.group not in DEFAULT}
	assert not wanted - {line.kernel for line in lines}


def test_what_is_off_is_off(runner):
	run = runner.traced([program("offcalls")])
	assert run.status == 0, run.stderr
	off = {row.written for row in rows() if row.written and row.group not in DEFAULT}
	assert not off & {event.name for event in run.events}


def test_arguments(runner):
	"""The arguments of a few calls, by their keys and in their order."""
	run = runner.traced([program("everycall")])
	first = {}
	for event in run.below():
		first.setdefault(event.name, {key: value for key, value in event.args.items()
					      if key not in ("hhash", "p_idx", "level", "fhash", "errno")})
	assert first["open"] == {"flags": 0o200000, "ret": 3}
	assert first["write"] == {"fd": 4, "count": 4096, "ret": 4096}
	assert first["pread"] == {"fd": 4, "count": 100, "offset": 4000, "ret": 96}
	assert first["readv"] == {"fd": 4, "iovcnt": 2, "count": 128, "ret": 128}
	assert first["preadv"] == {"fd": 4, "iovcnt": 2, "count": 128, "offset": 5, "ret": 128}
	assert first["lseek"] == {"fd": 4, "offset": 0, "whence": 0, "ret": 0}
	assert first["mkdir"] == {"mode": 0o755, "ret": 0}
	assert first["access"] == {"mode": 4, "ret": 0}
	assert first["readlink"] == {"bufsize": 100, "len": 1}
	assert first["dup2"] == {"fd": 4, "newfd": 50, "ret": 50}
	assert first["ftruncate"] == {"fd": 4, "length": 9000, "ret": 0}
	assert first["fallocate"] == {"fd": 4, "offset": 0, "len": 10000, "mode": 0, "ret": 0}
	assert first["mmap"] == {"fd": 4, "length": 4096, "prot": 1, "flags": 1, "offset": 0}
	assert first["chown"]["owner"] == os.geteuid() and first["chown"]["group"] == os.getegid()
	assert first["setxattr"] == {"name": "user.a", "ret": 0}
	sent = first["sendfile"]
	assert (sent["in_fd"], sent["out_fd"], sent["count"], sent["ret"]) == (4, 8, 300, 300)
	assert sent["in_offset"] == 0
	moved = run.of("rename")[0]
	assert (moved.path, moved.newpath) == (run.path("c"), run.path("c2"))
	link = run.of("symlink")[0]
	assert (link.path, link.newpath) == (run.path("f"), run.path("soft"))
	assert run.of("sendfile")[0].out == run.path("out")
	asynchronous = [event for event in run.of("pread") if event.args.get("aio") == 1]
	assert [(e.args["count"], e.args["offset"], e.ret) for e in asynchronous] == [(333, 11, 333)] * 2
