"""The targets of fuzzing take the inputs that it starts from, and those that it once found."""

import os
import subprocess

import pytest

from lib.run import BUILD, PATIENCE, ROOT

HERE = os.path.join(ROOT, "tests", "fuzz")
TARGETS = sorted(name[5:-2] for name in os.listdir(HERE) if name.startswith("fuzz_") and name.endswith(".c"))


@pytest.fixture(scope="module")
def seeds(tmp_path_factory):
	top = str(tmp_path_factory.mktemp("seeds"))
	subprocess.run([os.path.join(HERE, "seeds"), top], check=True)
	return top


def files(*directories):
	return [os.path.join(top, name) for top in directories if os.path.isdir(top) for name in sorted(os.listdir(top))]


@pytest.mark.parametrize("target", TARGETS)
def test_replay(seeds, target, tmp_path):
	inputs = files(os.path.join(seeds, target), os.path.join(HERE, "found", target))
	assert len(inputs) > 3
	binary = os.path.join(BUILD, "tests", "fuzz", target)
	if not os.path.exists(binary):
		subprocess.run(["make", "-s", "-C", ROOT, f"B={os.path.relpath(BUILD, ROOT)}", "replays"], check=True)
	done = subprocess.run([binary, *inputs], capture_output=True, check=False, cwd=tmp_path, timeout=120 * PATIENCE)
	assert done.returncode == 0, done.stderr[-2000:]
	assert done.stderr.count(b"\n") >= len(inputs)


def test_a_target_can_fail(tmp_path):
	"""The check of the check: what does not hold ends the program."""
	path = tmp_path / "source.c"
	path.write_text('#include "tests/fuzz/fuzz.h"\nint LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)\n'
			"{\n\tFUZZ_HOLDS(size != 2 || data[0] == data[1]);\n\treturn 0;\n}\n")
	subprocess.run(["gcc", f"-I{ROOT}", "-D_GNU_SOURCE", path, os.path.join(HERE, "replay.c"), "-o", tmp_path / "target"], check=True)
	for name, text in (("good", b"aa"), ("bad", b"ab")):
		(tmp_path / name).write_bytes(text)
	assert subprocess.run([tmp_path / "target", tmp_path / "good"], check=False, capture_output=True).returncode == 0
	done = subprocess.run([tmp_path / "target", tmp_path / "good", tmp_path / "bad"], check=False, capture_output=True)
	assert done.returncode != 0 and b"does not hold" in done.stderr
