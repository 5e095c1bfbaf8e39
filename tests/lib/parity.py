"""Compares our traces of a program event by event with those of DFTracer's preload library. Whatever differs has to be
listed in docs/differences.md, whose tables are read here."""

import collections
import functools
import os
import re

from .hooked import libc, names_of
from .run import ROOT

DOCUMENT = os.path.join(ROOT, "docs", "differences.md")
# Their path is the directory's, and the name stands beside.
AT = {"openat", "readlinkat"}
PIDS = {("fork", "ret"), ("waitpid", "ret"), ("waitpid", "pid"), ("wait", "ret")}
Difference = collections.namedtuple("Difference", "kind name what ours theirs image", defaults=[None])


@functools.cache
def tables():
	"""The document's tables: for each heading of level 2 its rows, as lists of cells."""
	found, heading = collections.defaultdict(list), None
	with open(DOCUMENT, encoding="utf-8") as file:
		for line in file:
			if line.startswith("## "):
				heading = line[3:].strip()
			elif line.startswith("|") and not re.match(r"\|[-|: ]+\|$", line.strip()):
				found[heading].append([cell.strip() for cell in line.strip()[1:-1].split("|")])
	return {heading: rows[1:] for heading, rows in found.items()}


def words(cell):
	return re.findall(r"`([^`]+)`", cell)


@functools.cache
def names():
	"""Ours for each name of upstream's: where there are several, it depends on what is done."""
	return {theirs: words(row[1]) for row in tables()["Names of calls"] for theirs in words(row[0])}


@functools.cache
def arguments():
	"""Ours for each (call, argument) of upstream's; None where we have none."""
	found = {}
	for row in tables()["Names of arguments"]:
		for call in words(row[0]):
			for theirs in words(row[1]):
				ours = words(row[2])
				found[call, theirs] = ours[0] if ours else None
	return found


@functools.cache
def aliases():
	"""Functions of the C library that are one under several names."""
	return names_of(libc())


# --- events made alike -----------------------------------------------------------

class Side:
	"""One event, of either side, with names and paths as they are compared."""

	__slots__ = ("event", "name", "path", "key", "cwd", "here", "followed", "former")

	def __init__(self, event, name, path, cwd, here=None):
		self.event, self.name, self.path = event, name, shown(path, cwd)
		self.key = name, self.path
		self.cwd, self.here, self.followed, self.former = cwd, here, None, False


def shown(path, cwd):
	"""A path as both sides can have it: upstream blanks some characters out; the runs' directories differ."""
	if path is None:
		return None
	path = "<cwd>" + path[len(cwd):] if (path + "/").startswith(cwd.rstrip("/") + "/") else path
	return re.sub(r"[()\\\"'|\x00-\x1f]", " ", path)


def command(trace, cwd):
	return shown(trace.command.replace(cwd, "<cwd>"), cwd)


def theirs_of(trace, cwd, have):
	"""Their events, in order, with paths made absolute as the program's directory was at the moment. `have`: keys of
	ours, where a name of theirs may be several of ours."""
	here, found, reopened = trace.cwd, [], {}
	for event in trace.events:
		path = event.path
		# The descriptor of the directory is followed, and the name in it stands beside.
		leaf = event.others.get("pathname_hash") or event.args.get("path")
		if event.name in AT and isinstance(leaf, str):
			path = os.path.join(path or "", leaf)
		if path is not None:
			path = os.path.normpath(os.path.join(here, path)).replace("//", "/")
		if event.name == "chdir":
			here = path
		# It goes on calling a stream by the file that it had before freopen.
		former = path
		if event.name == "freopen":
			reopened[path] = path = os.path.normpath(os.path.join(here, event.others["path_hash"]))
		elif event.cat == "STDIO" and path in reopened:
			path = reopened.pop(path) if event.name == "fclose" else reopened[path]
		choice = names().get(event.name) or [aliases().get(event.name, event.name), event.name]
		name = next((one for one in choice if (one, shown(path, cwd)) in have), choice[0])
		found.append(Side(event, name, path, cwd, here))
		found[-1].former = former != path
	return found


def ours_of(trace, cwd):
	events = sorted(trace.events, key=lambda event: (event.end, event.id))
	return [Side(event, event.name, event.path, cwd) for event in events]


def by_thread(sides):
	found = collections.defaultdict(list)
	for side in sides:
		found[side.event.tid].append(side)
	return found


def common(one, two):
	left, right = (collections.Counter(side.key for side in sides) for sides in (one, two))
	return sum((left & right).values())


def pairs(one, two, likeness, least=0):
	"""Pairs what is most alike, first come first served; what is left of either side has None beside it."""
	grades = sorted(((likeness(a, b), -i, -j) for i, a in enumerate(one) for j, b in enumerate(two)), reverse=True)
	left, right, found = set(), set(), []
	for grade, i, j in grades:
		if grade >= least and -i not in left and -j not in right:
			left.add(-i)
			right.add(-j)
			found.append((one[-i], two[-j]))
	found += [(a, None) for i, a in enumerate(one) if i not in left]
	found += [(None, b) for j, b in enumerate(two) if j not in right]
	return found


def aligned(ours, theirs):
	"""Pairs of events in the order of both, as many as there can be; None stands for the missing one."""
	common_keys = {side.key for side in ours} & {side.key for side in theirs}
	left = [i for i, side in enumerate(ours) if side.key in common_keys]
	right = [j for j, side in enumerate(theirs) if side.key in common_keys]
	at_ours = at_theirs = 0
	for i, j in longest([ours[i] for i in left], [theirs[j] for j in right]):
		yield from ((side, None) for side in ours[at_ours:left[i]])
		yield from ((None, side) for side in theirs[at_theirs:right[j]])
		yield ours[left[i]], theirs[right[j]]
		at_ours, at_theirs = left[i] + 1, right[j] + 1
	yield from ((side, None) for side in ours[at_ours:])
	yield from ((None, side) for side in theirs[at_theirs:])


def alike(one, two):
	"""How well two events fit: not at all, by name and path, or with all arguments."""
	return 0 if one.key != two.key else 20 if any(compare_arguments(one, two)) else 21


def longest(one, two):
	"""The longest common subsequence, as pairs of indices; of several the one whose arguments agree most."""
	start = 0
	while start < min(len(one), len(two)) and alike(one[start], two[start]) == 21:
		start += 1
	n, m = len(one) - start, len(two) - start
	best = [[0] * (m + 1) for _ in range(n + 1)]
	for i in range(n - 1, -1, -1):
		row, below = best[i], best[i + 1]
		for j in range(m - 1, -1, -1):
			grade = alike(one[start + i], two[start + j])
			row[j] = max(below[j], row[j + 1], grade and below[j + 1] + grade)
	found, i, j = [(k, k) for k in range(start)], 0, 0
	while i < n and j < m:
		if best[i][j] == best[i + 1][j]:
			i += 1
		elif best[i][j] == best[i][j + 1]:
			j += 1
		else:
			found.append((start + i, start + j))
			i, j = i + 1, j + 1
	return found


def bridged(ours, theirs):
	"""The same, and within what is between pairs those of one name whose path differs in a known way."""
	left, right = [], []
	for one, two in [*aligned(ours, theirs), (True, True)]:
		if one and two:
			yield from renamed(left, right)
			left, right = [], []
			if one is not True:
				yield one, two
		elif one:
			left.append(one)
		else:
			right.append(two)


def renamed(left, right):
	at = 0
	for two in right:
		one = next((i for i in range(at, len(left)) if left[i].name == two.name and
			    other_path(left[i], two)), None)
		if one is None:
			yield None, two
			continue
		for side in left[at:one]:
			yield side, None
		yield left[one], two
		at = one + 1
	for side in left[at:]:
		yield side, None


def other_path(one, two):
	"""What path of upstream's it is that is not ours; None if that is not known."""
	if two.former:
		return "the former file"
	if one.name in ("sendfile", "splice") and two.path == shown(one.event.out, one.cwd):
		return "the other file"
	if one.path and two.path and os.path.dirname(one.path) == two.path:
		return "the directory"
	return None


# --- differences -------------------------------------------------------------------

def compare(ours, theirs):
	"""All differences between two runs, and the number of events that both have."""
	found, both = [], 0
	mine = [(trace, ours_of(trace, ours.cwd)) for trace in ours.traces]
	have = {side.key for _, sides in mine for side in sides}
	images = pairs(mine, [(trace, theirs_of(trace, theirs.cwd, have)) for trace in theirs.theirs],
		       lambda one, two: (command(one[0], ours.cwd) == command(two[0], theirs.cwd),
					 common(one[1], two[1])), (True, 0))
	for one, two in images:
		if one is None:
			found += [Difference("only theirs", side.name, None, None, side, two[0]) for side in two[1]]
		elif two is None:
			follow(one[1], set())
			found += [Difference("only ours", side.name, None, side, None, one[0]) for side in one[1]]
		else:
			more, same = compare_images(one, two)
			found += more
			both += same
	return found, both


def compare_images(one, two):
	found, both = [], []
	threads = pairs(list(by_thread(one[1]).items()), list(by_thread(two[1]).items()),
			lambda a, b: ((a[0] == one[0].pid) == (b[0] == two[0].pid), common(a[1], b[1])), (True, 0))
	for a, b in threads:
		for left, right in bridged(a[1] if a else [], b[1] if b else []):
			if right is None:
				found.append(Difference("only ours", left.name, None, left, None))
			elif left is None:
				found.append(Difference("only theirs", right.name, None, None, right))
			else:
				both.append(left)
				if left.path != right.path or right.former:
					found.append(Difference("path", left.name, other_path(left, right), left, right))
				found += compare_arguments(left, right)
	follow(one[1], {id(side) for side in both})
	return found, len(both)


def follow(sides, both):
	"""Marks the calls on descriptors and streams that upstream does not follow: those whose open it has not written.
	Streams are known by their file."""
	followed, streams = {}, set()
	for side in sides:
		args, known = side.event.args, id(side) in both
		fd = args.get("fd", args.get("in_fd"))
		if side.event.cat == "STDIO":
			side.followed = side.path in streams
			if side.name in ("fopen", "freopen") and known:
				streams.add(side.path)
		elif fd is not None:
			side.followed = followed.get(fd, False)
		if side.name == "open" and args.get("ret", -1) >= 0:
			followed[args["ret"]] = known
		elif side.name in ("dup", "dup2", "dup3", "fcntl") and args.get("ret", -1) >= 0 and \
				(side.name != "fcntl" or args.get("cmd") in (0, 1030)):
			followed[args["ret"]] = False
		elif side.name == "close":
			followed.pop(fd, None)


def compare_arguments(left, right):
	"""The arguments that upstream has; what only we have is an addition, not a difference."""
	for key, value in right.event.args.items():
		# The runs have other process ids.
		if (right.event.name, key) in PIDS and value > 0 and left.event.args.get(key, 0) > 0:
			continue
		mine = arguments().get((right.event.name, key), arguments().get(("any", key), key))
		if mine is None:
			continue
		if mine.endswith("hash"):
			path = {"fhash": left.event.path, "newpath_hash": left.event.newpath,
				"out_fhash": left.event.out}[mine]
			text = os.path.normpath(os.path.join(right.here, right.event.others[key]))
			if shown(path, left.cwd) != shown(text, right.cwd):
				yield Difference("argument", right.event.name, key, left, right)
		elif left.event.args.get(mine) != value:
			yield Difference("argument", right.event.name, key, left, right)
