"""DFTracer's preload library: runs with it, and its traces."""

import collections
import json
import os
import re
import subprocess
import zlib

import pytest

from .run import ROOT, Run

VENV = os.path.join(ROOT, "build", "venv")


def venv(name, file):
	"""A file of a virtual environment that `make test` has made."""
	top = os.path.join(VENV, name)
	if os.path.exists(top + ".reason"):
		with open(top + ".reason", encoding="utf-8") as reason:
			pytest.skip(f"{name} is not here: {reason.read().strip()}")
	for where, _, names in os.walk(top):
		if file in names:
			return os.path.join(where, file)
	pytest.skip(f"make test has not installed {name}")
	return None


def preload():
	"""The library's path."""
	return venv("preload", "libdftracer_preload.so")


def settings(prefix, *, directories="all", **more):
	"""The variables of a job script that was written for the library, LD_PRELOAD left out."""
	return {"DFTRACER_ENABLE": "1", "DFTRACER_INIT": "PRELOAD", "DFTRACER_LOG_FILE": prefix,
		"DFTRACER_DATA_DIR": directories, "DFTRACER_INC_METADATA": "1", "DFTRACER_ENABLE_AGGREGATION": "0",
		"DFTRACER_TRACE_COMPRESSION": "1", **more}


class Event:
	__slots__ = ("name", "cat", "pid", "tid", "ts", "dur", "args", "names")

	def __init__(self, line, names):
		self.name, self.cat = line["name"], line["cat"]
		self.pid, self.tid, self.ts, self.dur = (line[key] for key in ("pid", "tid", "ts", "dur"))
		self.args, self.names = line.get("args", {}), names

	@property
	def path(self):
		return self.names.get(self.args.get("fhash"))

	@property
	def others(self):
		return {key: self.names.get(value) for key, value in self.args.items() if key.endswith("_hash")}

	def __repr__(self):
		args = {key: value for key, value in self.args.items() if key not in ("hhash", "fhash")}
		return f"<upstream {self.pid}/{self.tid} {self.name} {self.path!r} {args} {self.others}>"


class Trace:
	"""A file of the library's. One that was killed or whose process was replaced may be empty."""

	def __init__(self, path, names):
		# A forked child does not write again what its parent has written.
		self.file, self.lines, self.names = path, [], names
		self.events, self.start, self.end = [], None, None
		self.properties = {}
		with open(path, "rb") as file:
			raw = file.read()
		text = b""
		if path.endswith(".gz"):
			while raw:
				inflater = zlib.decompressobj(31)
				text += inflater.decompress(raw)
				raw = inflater.unused_data
		else:
			text = raw
		for line in text.decode("utf-8", "replace").split("\n"):
			if line.startswith("{"):
				self._line(json.loads(line))

	def _line(self, line):
		self.lines.append(line)
		args = line.get("args", {})
		if line["name"] in ("FH", "SH"):
			# One string is written once, as whatever it was first.
			self.names[args["value"]] = args["name"]
		elif line["name"] in ("PR", "rank") and "value" in args:
			self.properties[args["name"]] = args["value"]
		elif line["cat"] == "dftracer" and line["name"] in ("start", "end"):
			setattr(self, line["name"], line)
		elif "dur" in line:
			self.events.append(Event(line, self.names))

	@property
	def pid(self):
		return self.lines[0]["pid"]

	@property
	def command(self):
		return self.names[self.start["args"]["cmd_hash"]]

	@property
	def cwd(self):
		return self.names[self.start["args"]["cwd"]]


def read_traces(prefix):
	"""The traces that have a start line, and the number of those that do not."""
	directory, stem = os.path.split(prefix)
	texts = {}
	found = [Trace(os.path.join(directory, name), texts) for name in sorted(os.listdir(directory))
		 if name.startswith(stem + "-") and re.search(r"\.pfw(\.gz)?$", name)]
	return [trace for trace in found if trace.start], sum(1 for trace in found if not trace.start)


def traced(runner, args, *, env=None, directories="all", **more):
	"""Runs with the preload library. run.theirs: its traces that hold something; run.empty: how many do not."""
	prefix = os.path.join(runner.fresh("upstream"), "t")
	cwd = more.pop("cwd", None) or runner.fresh("preloaded")
	# hwloc's plugins would have descriptors of their own in a program.
	full = {**settings(prefix, directories=directories.replace("%", cwd)), "LD_PRELOAD": preload(),
		"HWLOC_COMPONENTS": "-all", **(env or {})}
	run = runner.native(args, env=full, cwd=cwd, **more)
	run.prefix = prefix
	run.theirs, run.empty = read_traces(prefix)
	return run


# --- job scripts ---------------------------------------------------------------

JOB = """#!/bin/bash
set -eu
export DFTRACER_ENABLE=1
export DFTRACER_INIT={mode}
export DFTRACER_LOG_FILE={prefix}
export DFTRACER_DATA_DIR={directories}
export DFTRACER_INC_METADATA=1
export DFTRACER_ENABLE_AGGREGATION=0
{start} {command}
"""


def job(runner, start, command, *, directories="all", cwd=None, mode="PRELOAD"):
	"""Runs a job script that was written for the library, with `start` in front of its command; traces are below the run's
	prefix."""
	run = Run(cwd or runner.fresh("job"), runner.token())
	run.prefix = os.path.join(runner.fresh("out"), "t")
	script = os.path.join(run.cwd, "job.sh")
	with open(script, "w", encoding="utf-8") as file:
		file.write(JOB.format(prefix=run.prefix, directories=directories, start=start, command=command,
				      mode=mode))
	runner._execute(run, ["bash", script], {"HWLOC_COMPONENTS": "-all"}, subprocess.DEVNULL, 120)
	runner.settle(run.token)
	os.unlink(script)
	return run


def view(runner, directory, keys):
	"""The rows of upstream's reader: calls and bytes by `keys`."""
	said = subprocess.run([venv("0.0.14", "dftracer_view"), "-d", directory, "--index-dir", runner.fresh("index"),
			       "--group-by", ",".join(keys), "--agg", "count,sum:size"],
			      check=True, capture_output=True, cwd=runner.fresh("reader")).stdout
	return [row for row in map(json.loads, (line for line in said.decode().splitlines() if line.startswith("{")))
		if "cat" in row]


def viewed(runner, directory):
	"""Calls and bytes of each category, as upstream's reader adds them up."""
	found = collections.defaultdict(collections.Counter)
	for row in view(runner, directory, ["cat", "name"]) if read_traces(os.path.join(directory, "t"))[0] else ():
		found[row["cat"].upper()]["calls"] += row["count"]
		kind = "written" if "write" in row["name"] else "read"
		found[row["cat"].upper()][kind] += row["sum_size"] or 0
	return found


def viewed_calls(runner, directory, cat):
	"""Calls and bytes of one category by name, file and rank."""
	return {(row["name"], row["file_path"], row["rank"]): [row["count"], row["sum_size"]]
		for row in view(runner, directory, ["cat", "name", "file_path", "rank"]) if row["cat"].upper() == cat}


__all__ = ["Event", "Trace", "job", "preload", "read_traces", "settings", "traced", "venv", "viewed", "viewed_calls"]
