"""Hostile programs that strace survives: its view and ours of what they do to their files are one. Left out are
those that do as much as they have time for, those without files, and those where strace's log does not say
what it would take: whose directory is meant after unshare, which descriptors close_range closes, names longer
than a path can be."""

import pytest

from lib.hostile import hostile
from lib.straced import agrees

CASES = [
	("exec", "leader-gone"), ("exec", "in-place"), ("exec", "doomed"), ("exec", "grandchildren", 24),
	("clone", "share-memory"), ("clone", "parent"), ("clone", "same-pid", 5),
	("clone", "pid-namespace"),
	("signals", "timer", 300), ("signals", "at-exec"), ("signals", "trap"), ("signals", "flood", 400),
	("signals", "kill-all"), ("signals", "cores", 0), ("signals", "kill-self", 15), ("signals", "parent-death"),
	("signals", "orphans"),
	("threads", "churn", 300), ("threads", "leader-first", 0), ("threads", "relay", 8),
	("watch", "trace-me"), ("watch", "hidden"), ("watch", "vsyscall"), ("watch", "no-calls"),
	("limits", "dup-everything"), ("limits", "no-files"), ("limits", "address-space"), ("limits", "file-size"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))
def test_agrees_with_strace(runner, case):
	agrees(runner, hostile(*case), descriptors=False, below=True)
