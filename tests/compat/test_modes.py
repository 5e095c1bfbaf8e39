"""Job scripts in all three modes of the library, on an annotated program: only LD_PRELOAD is replaced."""

import os
import subprocess

import pytest

from lib import upstream
from lib.run import BUILD, ROOT, TRACER

EXAMPLES = os.path.join(ROOT, "examples", "annotate")
# As often as the program says.
ANNOTATIONS = 7
STEPS = "all_steps 1 compute 3 checkpoint 3 bytes 30\n"


def built(kind):
	"""The example, linked with upstream's library or, static, with what stands for it."""
	out = os.path.join(BUILD, "tests", "programs", "compat", f"steps.{kind}")
	os.makedirs(os.path.dirname(out), exist_ok=True)
	source = os.path.join(EXAMPLES, "steps.c")
	if kind == "library":
		where = os.path.dirname(upstream.preload())
		more = [f"-I{where}/../include", source, f"-L{where}", "-ldftracer_core", "-lbrahma", "-lcpp-logger", f"-Wl,-rpath,{where}",
			"-Wl,--allow-shlib-undefined"]
	else:
		more = ["-static", f"-I{EXAMPLES}", source, os.path.join(EXAMPLES, "dftracer_stub.c")]
	subprocess.run(["gcc", "-O2", *more, "-o", f"{out}.{os.getpid()}"], check=True)
	os.rename(f"{out}.{os.getpid()}", out)
	return out


def run(runner, start, mode, program):
	done = upstream.job(runner, start, f"{program} steps.out", mode=mode)
	assert done.status == 0 and done.stdout.decode() == STEPS, done.stderr
	return upstream.viewed(runner, os.path.dirname(done.prefix))


@pytest.mark.parametrize("mode", ["PRELOAD", "HYBRID", "FUNCTION"])
def test_with_the_library_linked(runner, mode):
	"""The library writes the annotations, dftrace the rest, and nothing is there twice."""
	program = built("library")
	theirs, ours = (run(runner, start, mode, program) for start in (f"LD_PRELOAD={upstream.preload()}", f"{TRACER} -q --"))
	assert theirs["C_APP"]["calls"] == ours["C_APP"]["calls"] == ANNOTATIONS
	# HYBRID is none of its modes in 2.2.0, and its FUNCTION hooks streams as well.
	assert (theirs["STDIO"]["calls"] > 0) == (mode != "HYBRID")
	if mode != "FUNCTION":
		assert ours["STDIO"]["calls"] >= theirs["STDIO"]["calls"] and ours["POSIX"]["calls"] > 0
	else:
		assert ours["POSIX"]["calls"] == 0 and ours["STDIO"]["calls"] == theirs["STDIO"]["calls"]


@pytest.mark.parametrize("mode", ["PRELOAD", "HYBRID", "FUNCTION"])
def test_static(runner, mode):
	"""A static program has the same annotations, by dftrace."""
	ours = run(runner, f"{TRACER} -q --", mode, built("static"))
	assert ours["C_APP"]["calls"] == ANNOTATIONS
	for category in ("STDIO", "SYSCALL"):
		assert (ours[category]["calls"] > 0) == (mode != "FUNCTION"), category
