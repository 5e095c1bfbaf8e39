"""On a terminal: Ctrl-C, Ctrl-Z and fg, Ctrl-\\, hangup, reading from the keyboard."""

import os
import re
import signal
import time

import pytest

from lib.run import EXTRA, TRACER, is_alive, owned, proc, program, state, wait_until
from lib.terminal import Terminal
from lib.trace import read_traces

PROMPT = "READY> "


@pytest.fixture
def terminals(runner):
	opened = []

	def make(args, **env):
		token = runner.token()
		full = runner.environment(token, {"PS1": PROMPT, "HISTFILE": "/dev/null", **env})
		terminal = Terminal(args, runner.fresh("tty"), full)
		terminal.token = token
		opened.append(terminal)
		return terminal

	yield make
	for terminal in opened:
		terminal.close()


@pytest.fixture(params=["detached", "parent"])
def command(request, runner):
	"""The words in front of a program, and where its traces go."""
	prefix = os.path.join(runner.fresh("out"), "t")
	words = [TRACER, "-o", prefix, *EXTRA, "--tracer", request.param, "--"]
	return words, prefix


def traces(runner, terminal, prefix):
	runner.settle(terminal.token)
	return read_traces(prefix)


def calls_of(terminal, more_than=80):
	"""Waits until progress.c has made calls; returns how many bytes it has written."""
	data = os.path.join(terminal.cwd, "data")
	wait_until(lambda: os.path.exists(data) and os.path.getsize(data) > more_than, what="calls")
	return os.path.getsize(data)


@pytest.mark.parametrize("key,number", [("\x03", signal.SIGINT), ("\x1c", signal.SIGQUIT)])
def test_keys_that_kill(runner, terminals, command, key, number):
	words, prefix = command
	terminal = terminals([*words, program("progress"), "data", "0", "2000"])
	calls_of(terminal)
	terminal.type(key)
	assert terminal.finish() == -number
	assert [trace.end.args["signal"] for trace in traces(runner, terminal, prefix)] == [number]
	assert b"dftrace-run: " in terminal.seen


def test_interrupt_once(runner, terminals, command):
	"""One key, one signal: the handler runs once."""
	words, prefix = command
	code = ("import signal, time, sys\nn = 0\n"
		"def f(*_):\n    global n\n    n += 1\n"
		"signal.signal(signal.SIGINT, f)\nprint('started', flush=True)\n"
		"open('f', 'w').close()\nwhile not n: time.sleep(0.05)\n"
		"time.sleep(0.3)\nprint('handled', n, flush=True)\nsys.exit(5)\n")
	terminal = terminals([*words, "/usr/bin/python3", "-c", code])
	terminal.expect("started")
	terminal.type("\x03")
	terminal.expect("handled 1")
	assert terminal.finish() == 5
	assert traces(runner, terminal, prefix)


def test_keyboard_and_size(runner, terminals, command):
	"""The program reads from the terminal, and knows it as one."""
	words, prefix = command
	terminal = terminals([*words, "sh", "-c", "test -t 0 && test -t 1 && test -t 2 && echo tty; "
			      "read line; echo got $line; tty; ps -o tpgid=,pgid= -p $$"])
	terminal.expect("tty")
	terminal.type("some words\n")
	terminal.expect("got some words")
	terminal.expect("/dev/pts/")
	assert terminal.finish() == 0
	foreground, group = re.findall(rb"^ *(\d+) +(\d+)", terminal.seen, re.MULTILINE)[-1]
	assert foreground == group
	# The terminal itself is no file that the trace is about, unless asked for.
	events = [event for trace in traces(runner, terminal, prefix) for event in trace.events]
	assert not [e for e in events if e.name == "read" and e.path and "/dev/pts" in e.path]


@pytest.mark.parametrize("shell", [["bash", "--norc", "--noprofile", "-i"], ["dash", "-i"]],
			 ids=["bash", "dash"])
def test_job_control(runner, terminals, command, shell):
	"""Ctrl-Z stops the job and gives the shell back, fg continues it, Ctrl-C ends it."""
	words, prefix = command
	terminal = terminals(shell)
	terminal.expect(PROMPT)
	terminal.type(" ".join([*words, program("progress"), "data", "0", "2000"]) + "\n")
	calls_of(terminal)
	for _ in range(2):
		terminal.type("\x1a")
		terminal.expect("Stopped")
		terminal.expect(PROMPT)
		terminal.type("echo in-$((1 + 1))-shell\n")
		terminal.expect("in-2-shell")
		size = calls_of(terminal, 0)
		terminal.type("fg\n")
		calls_of(terminal, size)
	terminal.type("\x03")
	terminal.expect(PROMPT)
	terminal.type("echo status $?\n")
	terminal.expect("status 130")
	terminal.type("exit 3\n")
	assert terminal.finish() == 3
	found = traces(runner, terminal, prefix)
	assert [trace.end.args["signal"] for trace in found] == [signal.SIGINT]


def test_background_job_that_reads_is_stopped(runner, terminals, command):
	"""SIGTTIN stops a background job; fg lets it read."""
	words, prefix = command
	terminal = terminals(["bash", "--norc", "--noprofile", "-i"])
	terminal.expect(PROMPT)
	terminal.type(" ".join([*words, "sh", "-c", "'read x; echo line:$x; echo > f'"]) + " &\n")
	terminal.expect(PROMPT)

	def stopped():
		return [p for p in owned(terminal.token) if state(p) in ("T", "t") and proc(p, "comm") == b"sh\n"]

	def stays_stopped():
		# A tracer's stop looks the same, but passes.
		for _ in range(10):
			if not stopped():
				return False
			time.sleep(0.02)
		return True

	wait_until(stays_stopped, what="the job's stop")
	terminal.type("fg\n")
	wait_until(lambda: not stopped(), what="the job's continuation")
	terminal.type("typed\n")
	terminal.expect("line:typed")
	terminal.expect(PROMPT)
	terminal.type("exit\n")
	terminal.finish()
	assert traces(runner, terminal, prefix)


def test_hangup(runner, terminals, command):
	"""The terminal goes away: the program gets its SIGHUP, the trace its end."""
	words, prefix = command
	terminal = terminals([*words, program("progress"), "data", "0", "2000"])
	calls_of(terminal)
	terminal.hang_up()
	runner.settle(terminal.token)
	assert not [pid for pid in owned(terminal.token) if is_alive(pid)]
	assert [trace.end.args["signal"] for trace in read_traces(prefix)] == [signal.SIGHUP]
