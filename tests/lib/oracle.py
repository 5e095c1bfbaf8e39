"""Reads what the test programs print about themselves (tests/programs/say.h)."""

import collections
import os
import urllib.parse

Said = collections.namedtuple("Said", "kernel name path ret errno more")


def said(stdout, cwd):
	"""The lines `call <TAB> kernel name <TAB> trace's name <TAB> directory <TAB> path <TAB> ret <TAB>
	errno`; names are percent-encoded, `-` is none."""
	found = []
	for line in stdout.decode().splitlines():
		if not line.startswith("call\t"):
			continue
		_, kernel, name, directory, path, ret, number, *more = line.split("\t")
		if path == "-":
			full = None
		else:
			base = cwd if directory == "-" else decode(directory)
			base = os.path.join(cwd, base)
			full = os.path.normpath(os.path.join(base, decode(path)))
			if full.startswith("//"):
				full = full[1:]
		found.append(Said(kernel, name, full, None if ret == "-" else int(ret),
				  int(number) or None, more))
	return found


def decode(text):
	"""As the trace has it: an invalid byte is U+FFFD."""
	return replace_invalid(urllib.parse.unquote_to_bytes(text))


def replace_invalid(raw):
	"""U+FFFD for each byte that is not part of valid UTF-8."""
	return raw.decode("utf-8", "surrogateescape").translate(
		{code: "\ufffd" for code in range(0xdc80, 0xdd00)})


def values(stdout):
	"""The lines `key <TAB> value`."""
	pairs = [line.split("\t", 1) for line in stdout.decode().splitlines() if "\t" in line]
	return {key: value for key, value in pairs}


def multiset(items):
	return collections.Counter(items)


def differences(expected, found):
	"""A message that shows what is missing and what is too many; empty when equal."""
	missing, extra = expected - found, found - expected
	if not missing and not extra:
		return ""
	return f"missing {list(missing.items())[:15]}\nextra {list(extra.items())[:15]}"
