"""Bash's completion, typed into bash: what a TAB makes of a line."""

import os
import re

import pytest

from lib.run import BUILD, ROOT
from lib.terminal import Terminal

PROMPT = "ready> "


@pytest.fixture
def shell(runner):
	cwd = runner.fresh("shell")
	for name in ("data one", "results"):
		os.mkdir(os.path.join(cwd, name))
	for name in ("settings.yaml", "run.pfw.gz", "input.nml"):
		with open(os.path.join(cwd, name), "w", encoding="ascii"):
			pass
	env = {"PATH": "/usr/bin:/bin", "PS1": PROMPT, "TERM": "dumb", "HOME": cwd, "HISTFILE": ""}
	terminal = Terminal(["bash", "--noprofile", "--norc", "-i"], cwd, env)
	terminal.expect(PROMPT)
	for line in ("bind 'set enable-bracketed-paste off'", "set +o histexpand",
		     *(f". {BUILD}/completions/{name}" for name in ("dftrace-run", "dftrace-check"))):
		terminal.type(line + "\n")
		terminal.expect(PROMPT)
	yield terminal
	terminal.close()


def completed(terminal, line):
	"""The words that the line has after a TAB behind it."""
	terminal.type(line + "\t")
	# Ctrl-A, a command in front, Ctrl-E: the line is printed instead of run.
	terminal.type("\x01printf '<%s>' \x05; echo '(end)'\n")
	terminal.expect("'(end)'")
	start = terminal.at
	terminal.expect("(end)")
	terminal.expect(PROMPT)
	text = terminal.seen[start:terminal.at].decode()
	return re.findall(r"<([^>]*)>", text)


@pytest.mark.parametrize("line,words", [
	("dftrace-run --form", ["dftrace-run", "--format"]),
	("dftrace-run --summary-f", ["dftrace-run", "--summary-file"]),
	("dftrace-run --dump", ["dftrace-run", "--dump-config"]),
	("dftrace-run --no-seccom", ["dftrace-run", "--no-seccom"]),
	("dftrace-run --format v", ["dftrace-run", "--format", "v"]),
	("dftrace-run --tracer par", ["dftrace-run", "--tracer", "parent"]),
	("dftrace-run --tracer=par", ["dftrace-run", "--tracer=parent"]),
	("dftrace-run --init f", ["dftrace-run", "--init", "function"]),
	("dftrace-run --log-level=d", ["dftrace-run", "--log-level=debug"]),
	("dftrace-run -q --config s", ["dftrace-run", "-q", "--config", "settings.yaml"]),
	("dftrace-run --config=s", ["dftrace-run", "--config=settings.yaml"]),
	("dftrace-run -d al", ["dftrace-run", "-d", "all"]),
	("dftrace-run -d res", ["dftrace-run", "-d", "results/"]),
	("dftrace-run -d /usr:res", ["dftrace-run", "-d", "/usr:results/"]),
	("dftrace-run -d d", ["dftrace-run", "-d", "data one/"]),
	("dftrace-run -e %net", ["dftrace-run", "-e", "%network"]),
	("dftrace-run -e open,+%net", ["dftrace-run", "-e", "open,+%network"]),
	("dftrace-run -e +mpi:coll", ["dftrace-run", "-e", "+mpi:collective"]),
	("dftrace-run -e hdf5:H5PL", ["dftrace-run", "-e", "hdf5:H5PL"]),
	("dftrace-run --trace=%de", ["dftrace-run", "--trace=%desc"]),
	# The program, and its own words.
	("dftrace-run -q -- mkfif", ["dftrace-run", "-q", "--", "mkfifo"]),
	("dftrace-run mkfif", ["dftrace-run", "mkfifo"]),
	("dftrace-run -o out/x cat inp", ["dftrace-run", "-o", "out/x", "cat", "input.nml"]),
	("dftrace-run --no-stdio -- cat --form", ["dftrace-run", "--no-stdio", "--", "cat", "--form"]),
	("dftrace-check --rep", ["dftrace-check", "--repair"]),
	("dftrace-check --to=v", ["dftrace-check", "--to=v"]),
	("dftrace-check --require HDF5,ra", ["dftrace-check", "--require", "HDF5,rank"]),
	("dftrace-check run", ["dftrace-check", "run.pfw.gz"]),
	("dftrace-check res --anon", ["dftrace-check", "res", "--anonymize"]),
	("dftrace-check -o res", ["dftrace-check", "-o", "results/"]),
	("dftrace-check -- res --anon", ["dftrace-check", "--", "res", "--anon"]),
])
def test_completed(shell, line, words):
	assert completed(shell, line) == words


@pytest.mark.parametrize("name,table", [("dftrace-run", "launchers/options.def"),
					("dftrace-check", "check/options.def")])
def test_every_option_of_the_table(shell, name, table):
	with open(os.path.join(ROOT, table), encoding="utf-8") as file:
		rows = re.findall(r'^OPTION\(\w+, "([\w-]+)", [^,]+, (NULL|"[^"]*"), \w+, (true|false)', file.read(), re.MULTILINE)
	assert len(rows) > 10
	with open(os.path.join(BUILD, "completions", name), encoding="utf-8") as file:
		text = file.read()
	offered = re.search(r"_options='([^']*)'", text)[1].split()
	assert offered == [f"--{option}" for option, _, shown in rows if shown == "true"]
	for option, argument, shown in rows:
		takes = re.search(rf"--{option}\) echo '(\w+)", text)
		# What may be left out, "[=WORD]", is no word of its own.
		needs = argument != "NULL" and not argument.startswith('"[')
		assert bool(takes) == (shown == "true" and needs), option
	# And bash takes it.
	assert completed(shell, f"{name} --versi") == [name, "--version"]
