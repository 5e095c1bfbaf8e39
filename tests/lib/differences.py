"""Which row of docs/differences.md a difference belongs to. Each key of its first table has a rule here; where the row names
calls or files, they have to fit as well."""

import fnmatch

from . import parity

RULES = {}


def rule(function):
	RULES[function.__name__.replace("_", "-")] = function
	return function


def is_ours(difference):
	return difference.kind == "only ours"


def is_theirs(difference):
	return difference.kind == "only theirs"


def is_argument(difference):
	return difference.kind == "argument"


def posix(difference):
	return is_ours(difference) and difference.ours.event.cat == "POSIX"


def stdio(difference):
	return is_ours(difference) and difference.ours.event.cat == "STDIO"


@rule
def loader(difference):
	return posix(difference)


@rule
def library_files(difference):
	return is_ours(difference)


@rule
def below_streams(difference):
	return is_ours(difference) and difference.ours.event.cat == "SYSCALL"


@rule
def inside(difference):
	return posix(difference)


@rule
def not_intercepted(difference):
	return posix(difference)


@rule
def not_followed(difference):
	return posix(difference) and difference.ours.followed is False


@rule
def streams_not_followed(difference):
	return stdio(difference) and difference.ours.followed is False


@rule
def streams_not_intercepted(difference):
	return stdio(difference)


@rule
def no_file(difference):
	return is_ours(difference) and difference.what == "no file"


@rule
def no_system_call(difference):
	return is_theirs(difference)


@rule
def symlinkat(difference):
	return difference.kind in ("only ours", "only theirs") and \
		(is_ours(difference) or difference.theirs.event.name == "symlinkat")


@rule
def vfork(difference):
	return is_theirs(difference) and difference.theirs.event.pid != difference.theirs.event.tid


@rule
def refused(difference):
	event = difference.theirs and difference.theirs.event
	return is_theirs(difference) and event.args.get("offset", 0) % 4096 != 0


@rule
def directory(difference):
	return difference.kind == "path" and difference.what == "the directory"


@rule
def out_file(difference):
	return difference.kind == "path" and difference.what == "the other file"


@rule
def reopened(difference):
	return difference.kind == "path" and difference.what == "the former file"


@rule
def file_type(difference):
	return is_argument(difference) and difference.what == "mode" and \
		difference.ours.event.args["mode"] == 0o10000 | difference.theirs.event.args["mode"]


@rule
def descriptor_numbers(difference):
	return is_argument(difference) and difference.what in ("fd_out", "in_fd") and \
		difference.theirs.event.args[difference.what] > difference.ours.event.args["out_fd"
			if difference.what == "fd_out" else "in_fd"]


@rule
def own_view(difference):
	return difference.name in ("read", "lseek")


@rule
def list_prefix(difference):
	return is_theirs(difference)


@rule
def list_relative(difference):
	return is_ours(difference)


def fits(row, difference):
	calls, files = parity.words(row[1]), parity.words(row[2])
	side = difference.ours or difference.theirs
	return RULES[parity.words(row[0])[0]](difference) and (not calls or difference.name in calls) and \
		(not files or any(fnmatch.fnmatch(side.path or "", pattern) for pattern in files))


def explained(difference, listed):
	"""The key of the first row that explains it; None if there is none. `listed`: a list of directories was given."""
	for row in parity.tables()["Differences"]:
		if fits(row, difference) and (listed or not row[0].startswith("`list-")):
			return parity.words(row[0])[0]
	return None


def explain(ours, theirs, listed=False):
	"""Compares two runs. Gives the differences that no row explains, (key, call) of all others, and the number of
	events that both have."""
	found, both = parity.compare(ours, theirs)
	open_ones = [difference for difference in found if not explained(difference, listed)]
	used = {(explained(difference, listed), difference.name) for difference in found}
	unlisted = []
	for difference in open_ones:
		if difference.image and is_ours(difference):
			end = difference.image.end
			rest = [other for other in open_ones if other.image is difference.image]
			if len(rest) < 5 or "exec" in end.args:
				difference = difference._replace(what="no file")
		key = explained(difference, listed)
		if key:
			used.add((key, difference.name))
		else:
			unlisted.append(difference)
	return unlisted, used - {(None, difference.name) for difference in found}, both
