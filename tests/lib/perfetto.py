"""What Perfetto asks of a JSON trace: the file is read as its importer does, which is stricter here and laxer there than JSON."""

import collections
import json

OFTEN = 128


class Refused(AssertionError):
	"""Perfetto would drop something, or all."""


def need(condition, what):
	if not condition:
		raise Refused(what)


def objects(text):
	"""The objects between the brackets: commas between them may be missing, nothing may stand behind the last bracket."""
	head = "".join(text[:OFTEN].split())
	need(head.startswith(('[{"', '{"')), f"not recognised as JSON: {head[:20]!r}")
	need(head.startswith("["), "one object, and data behind its end")
	decoder, at = json.JSONDecoder(), text.index("[") + 1
	while True:
		while at < len(text) and text[at] in " \t\r\n,":
			at += 1
		need(at < len(text), "no closing bracket")
		if text[at] == "]":
			need(not text[at + 1:].strip(), "data behind the closing bracket")
			return
		found, at = decoder.raw_decode(text, at)
		yield found


def check_text(value):
	need(not any("\ud800" <= letter <= "\udfff" for letter in value), f"a lone surrogate: {value!r}")


def imported(raw):
	"""The slices of each thread and the names of processes and threads, as Perfetto would show them."""
	slices, names = collections.defaultdict(list), {}
	for line in objects(raw.decode("utf-8")):
		need(isinstance(line.get("ph"), str), f"a phase that is no string: {line}")
		need(isinstance(line.get("args", {}), dict), f"args that are no object: {line}")
		need(all(type(line[key]) is int and 0 <= line[key] < 1 << 32 for key in ("pid", "tid")), f"ids: {line}")
		check_text(json.dumps(line, ensure_ascii=False))
		where = line["pid"], line["tid"]
		if line["ph"] == "X":
			need(all(type(line[key]) is int and line[key] >= 0 for key in ("ts", "dur")), f"times: {line}")
			slices[where].append((line["ts"], line["ts"] + line["dur"], line["name"]))
		elif line["ph"] == "M" and line["name"] in ("process_name", "thread_name"):
			need(isinstance(line["args"]["name"], str) and line["args"]["name"], f"no name: {line}")
			names[(line["name"], *where)] = line["args"]["name"]
	for thread, found in slices.items():
		nested(thread, found)
	return slices, names


def nested(thread, found):
	"""Slices of a thread are inside of each other or apart; others go to a track of their own."""
	open_ones = []
	for begin, end, name in sorted(found, key=lambda one: (one[0], -one[1])):
		while open_ones and open_ones[-1] <= begin:
			open_ones.pop()
		need(not open_ones or end <= open_ones[-1], f"{name} of {thread} at {begin} ends behind what it began in")
		open_ones.append(end)
