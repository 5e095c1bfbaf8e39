"""A strict reader of traces: what the trace contract says is asserted for every line."""

import collections
import hashlib
import json
import os
import re
import zlib

HASH = re.compile(r"[0-9a-f]{16}\Z")
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
UNWANTED = re.compile(r"\s|null|true|false")  # outside of strings
NAMED_ARGS = ("fhash", "newpath_hash", "out_fhash", "exec", "cmd_hash", "exec_hash", "cwd")
TYPES = {"dftracer": 1, "POSIX": 3, "STDIO": 3, "HDF5": 5, "MPI": 10, "C_APP": 2, "CPP_APP": 9, "SYSCALL": 0,
	 "FUNC": 0}


class TraceError(AssertionError):
	"""A trace that breaks the contract."""


def name_hash(raw):
	"""The trace's hash of a name: every second byte of its MD5."""
	return hashlib.md5(raw).digest()[::2].hex()


class Event:
	"""One X line, with its hashes resolved."""

	__slots__ = ("id", "name", "cat", "pid", "tid", "ts", "dur", "args", "path", "newpath", "out")

	def __init__(self, line, names):
		args = line.get("args", {})
		self.id, self.name, self.cat = line["id"], line["name"], line["cat"]
		self.pid, self.tid, self.ts, self.dur = (line[k] for k in ("pid", "tid", "ts", "dur"))
		self.args = args
		self.path = names.get(args.get("fhash"))
		self.newpath = names.get(args.get("newpath_hash"))
		self.out = names.get(args.get("out_fhash"))

	ret = property(lambda self: self.args.get("ret"))
	errno = property(lambda self: self.args.get("errno"))
	end = property(lambda self: self.ts + self.dur)

	def __repr__(self):
		args = {k: v for k, v in self.args.items() if k not in ("hhash", "fhash", "p_idx", "level")}
		return f"<{self.pid}/{self.tid} {self.name} {self.path!r} {args}>"


def inflate(raw, whole=True):
	"""Walks the gzip members. Without `whole`, bytes that a death left behind a valid end are
	allowed. Returns the text and the number of members."""
	text, members = [], 0
	while raw:
		inflater = zlib.decompressobj(31)
		try:
			part = inflater.decompress(raw)
		except zlib.error as error:
			if members and not whole:
				break
			raise TraceError(f"member {members}: {error}") from error
		if not inflater.eof:
			if members and not whole:
				break
			raise TraceError(f"member {members} is not complete")
		if members and not part and whole:
			raise TraceError("an empty member")
		text.append(part)
		members += 1
		raw = inflater.unused_data
	if not members:
		raise TraceError("no gzip member")
	for part in text[:-1]:
		if not part.endswith(b"\n"):
			raise TraceError("a member does not end at a line's end")
	return b"".join(text), members


def no_doubles(pairs):
	found = dict(pairs)
	if len(found) != len(pairs):
		raise TraceError(f"a key stands twice: {[key for key, _ in pairs]}")
	return found


def no_float(text):
	raise TraceError(f"{text} is not a whole number")


DECODER = json.JSONDecoder(object_pairs_hook=no_doubles, parse_float=no_float, parse_constant=no_float)


def need(condition, what, *values):
	"""`values` go into the text's {}: what is dear to print stands there."""
	if not condition:
		raise TraceError(what.format(*values) if values else what)


class Trace:
	"""One trace file. `whole`: its process has ended, so the end line must be there."""

	def __init__(self, path, whole=True, metadata=True):
		self.file, self.whole, self.metadata = path, whole, metadata
		with open(path, "rb") as file:
			raw = file.read()
		self.size = len(raw)
		self.compressed = path.endswith(".gz")
		self.text, self.members = inflate(raw, whole) if self.compressed else (raw, 0)
		if not whole and not self.compressed:
			# The death may have come in the middle of a write.
			self.text = raw[:raw.rfind(b"\n") + 1]
		need(self.text, f"{path}: empty")
		self.names, self.texts, self.threads = {}, {}, {}
		self.hosts, self.properties, self.processes, self.custom = {}, {}, [], []
		self.all, self.meta, self.start, self.end = [], [], None, None
		self._ids = set()
		try:
			self._read()
		except TraceError as error:
			raise TraceError(f"{os.path.basename(path)}: {error}") from None

	def _read(self):
		need(self.text.endswith(b"\n"), "the last line is cut")
		lines = self.text.split(b"\n")[:-1]
		self.v2 = lines[0] != b"["
		if not self.v2:
			need(lines[-1] == b"]", "the last line is not ]")
			lines = lines[1:-1]
		need(lines, "no lines")
		for number, raw in enumerate(lines):
			self.number = number
			if not self.compressed and raw.endswith(b" "):
				# Keeps the ending of a plain file from straddling a page.
				raw = raw[:-1]
			try:
				text = raw.decode("utf-8")
				line = DECODER.decode(text)
			except (UnicodeDecodeError, json.JSONDecodeError) as error:
				raise TraceError(f"line {number + 2}: {error}: {raw[:200]!r}") from None
			self._line(line, text)
		self._finish()

	def _line(self, line, text):
		is_meta = line.get("ph") in ("M", 4)
		keys = ["name", "cat"] + (["type"] if self.v2 else []) + ["pid", "tid"]
		keys += ["ph", "args"] if is_meta else ["ts", "dur", "ph", "args"]
		if not (self.v2 and is_meta):
			keys.insert(0, "id")
		if not self.metadata and not is_meta:
			keys.remove("args")
		need(list(line) == keys, f"keys {list(line)}, not {keys}: {text[:200]}")
		for key in ("id", "pid", "tid", "ts", "dur"):
			if key in line:
				need(type(line[key]) is int and line[key] >= 0, f"{key}: {text[:200]}")
		if UNWANTED.search(text):
			need(not UNWANTED.search(STRING.sub('""', text)), f"blanks or null: {text[:200]}")
		if "id" in line:
			need(line["id"] >= 1 and line["id"] not in self._ids, f"id {line['id']} twice or < 1")
			self._ids.add(line["id"])
		if self.v2:
			need(line["type"] == TYPES.get(line["cat"], line["type"]), f"type: {text[:200]}")
		(self._meta if is_meta else self._event)(line, text)

	def _hash(self, value):
		need(isinstance(value, str) and HASH.match(value), f"{value!r} is not a hash")

	def _meta(self, line, text):
		args, kind = line["args"], line["name"]
		need(line["ph"] == (4 if self.v2 else "M"), f"ph: {text[:200]}")
		need(line["cat"] == "dftracer", f"cat: {text[:200]}")
		need(list(args) == ["hhash", "name", "value"], f"args of M: {text[:200]}")
		need(all(isinstance(v, str) for v in args.values()), f"args of M: {text[:200]}")
		self._hash(args["hhash"])
		if kind == "HH":
			need(not self.meta and not self.all, "HH is not the first line")
			need(args["value"] == args["hhash"] == name_hash(args["name"].encode()), "HH's hash")
			self.hosts[args["hhash"]] = args["name"]
		else:
			need(args["hhash"] in self.hosts, f"unknown host: {text[:200]}")
		if kind in ("FH", "SH"):
			self._hash(args["value"])
			known = self.names if kind == "FH" else self.texts
			# A command line without arguments is the program's name as well.
			need(kind == "SH" or args["value"] not in known, f"FH stands twice: {text[:200]}")
			if "\ufffd" not in args["name"]:
				need(args["value"] == name_hash(args["name"].encode()), f"hash: {text[:200]}")
			known[args["value"]] = args["name"]
		elif kind == "thread_name":
			need(args["value"] == "thread_name", text)
			need(line["tid"] not in self.threads, f"thread_name stands twice: {text}")
			self.threads[line["tid"]] = args["name"]
		elif kind == "process_name":
			need(args["value"] == "process_name" and args["name"], text)
			need(len(self.meta) == 1 or self.processes, "process_name is not the second line")
			self.processes.append(args["name"])
		elif kind in ("PR", "rank"):
			need(args["name"] not in self.properties or args["name"] in ("rank", "world_size"), f"PR twice: {text}")
			self.properties[args["name"]] = args["value"]
		elif kind == "CM":
			if args["name"] == "time_metric":
				need(self.v2 and args["value"] == "US", text)
			else:
				self.custom.append((args["name"], args["value"]))
		else:
			need(kind == "HH", f"unknown M line {kind}")
		self.meta.append(line)

	def _event(self, line, text):
		args, need_args = line.get("args", {}), self.metadata
		need(line["ph"] == (1 if self.v2 else "X"), f"ph: {text[:200]}")
		need(line["ts"] > 0, f"ts: {text[:200]}")
		need(self.end is None, f"an event behind the end line: {text[:200]}")
		if line["cat"] != "dftracer":
			need(line["tid"] in self.threads, f"no thread_name before: {text[:200]}")
		if need_args:
			self._args(line, args, text)
		if line["cat"] == "dftracer":
			need(line["dur"] == 0 and line["name"] in ("start", "end"), text[:200])
			if line["name"] == "start":
				need(self.start is None and not self.all, "start is not the first X line")
				self.start = Event(line, self.names)
			else:
				self.end = Event(line, self.names)
			return
		need(self.start is not None, "an event before the start line")
		self.all.append(Event(line, self.names))

	def _args(self, line, args, text):
		order = list(args)
		first = ["hhash"] if self.v2 or line["cat"] == "dftracer" else ["hhash", "p_idx", "level"]
		if "fhash" in args:
			first.append("fhash")
		if line["cat"] != "dftracer":
			need(order[:len(first)] == first, f"args start with {order[:4]}: {text[:200]}")
			last = [key for key in ("size_sum", "ret", "errno", "cut") if key in args]
			need(not last or order[-len(last):] == last, f"args end: {text[:300]}")
			need(("errno" in args) <= ("ret" in args), f"errno without ret: {text[:300]}")
			if "errno" in args:
				need(args["ret"] == -1 and args["errno"] > 0, f"errno: {text[:300]}")
			need(args.get("cut") in (None, 1) and not ("cut" in args and "ret" in args), text)
			if self.v2:
				need("level" not in args and "p_idx" not in args, f"level in v2: {text[:200]}")
		need(args["hhash"] in self.hosts, f"unknown host: {text[:200]}")
		for key in NAMED_ARGS:
			if key in args:
				self._hash(args[key])
				known = self.texts if key in ("cmd_hash", "exec_hash") else self.names
				need(args[key] in known, f"{key} used before its line: {text[:300]}")
		for key, value in args.items():
			types = (dict,) if line["name"] == "end" and key in ("app", "used") else (int, str)
			need(type(value) in types, f"{key} is {type(value)}: {text[:200]}")

	def _finish(self):
		need(self.processes, "no process_name")
		if self.whole:
			need(self.start and self.end, "no start or no end line")
			if self.metadata:
				count = self.end.args["num_events"]
				need(count == len(self.all), f"num_events {count}, {len(self.all)} events")
		need(len({event.pid for event in self.all}) <= 1, "several pids in one file")
		if self.metadata and not self.v2:
			self._nesting()

	def _nesting(self):
		by_id = {event.id: event for event in self.all}
		top = collections.defaultdict(list)
		for event in self.all:
			parent, level = event.args["p_idx"], event.args["level"]
			# It has outlived what it began in.
			if "overlap" in event.args:
				need(parent < event.id and (parent in by_id or level == 1), "parent of {}", event)
				continue
			if parent == -1:
				need(level == 1, "level {} without parent: {}", level, event)
				# Asynchronous I/O goes on beside what its thread does.
				if "aio" not in event.args:
					top[event.tid].append(event)
				continue
			need(0 < parent < event.id and level > 1, f"parent {parent} of {event.id}")
			outer = by_id.get(parent)
			if outer is None and not self.whole:
				continue
			need(outer is not None, "parent {} is not in the file: {}", parent, event)
			need(outer.tid == event.tid and outer.args["level"] == level - 1, "parent: {}", event)
			need(outer.ts <= event.ts and event.end <= outer.end, "{} outside {}", event, outer)
		for events in top.values():
			events.sort(key=lambda event: (event.ts, event.end, event.id))
			for one, two in zip(events, events[1:]):
				# A close_range closes several files in one call.
				if one.name == two.name == "close" and (one.ts, one.dur) == (two.ts, two.dur):
					continue
				need(one.end <= two.ts, "{} at {}+{} overlaps {} at {}", one, one.ts, one.dur, two, two.ts)

	@property
	def events(self):
		return self.all

	@property
	def pid(self):
		return self.meta[0]["pid"]

	@property
	def exec_name(self):
		return self.processes[0]

	@property
	def command(self):
		return self.texts[self.start.args["cmd_hash"]]

	def lost(self):
		return {k[5:]: int(v) for k, v in self.properties.items() if k.startswith("lost:")}

	def skipped(self):
		return {k[8:]: int(v) for k, v in self.properties.items() if k.startswith("skipped:")}

	def __repr__(self):
		return f"<trace of {self.pid} {self.exec_name}: {len(self.all)} events>"


def trace_files(prefix):
	"""The trace files of a prefix, by name."""
	directory, stem = os.path.split(prefix)
	if not os.path.isdir(directory):
		return []
	found = [name for name in os.listdir(directory)
		 if name.startswith(stem + "-") and name.endswith((".pfw", ".pfw.gz"))]
	for name in found:
		pattern = re.escape(stem) + r"-[0-9a-f]{16}-preload\.pfw(\.gz)?\Z"
		need(re.match(pattern, name), f"a file with a name of its own: {name}")
	return sorted(os.path.join(directory, name) for name in found)


def read_traces(prefix, whole=True, metadata=True):
	return [Trace(path, whole, metadata) for path in trace_files(prefix)]
