"""dftrace-check says one line of what is no trace, in bounded memory, and survives mutations."""

import gzip
import json
import os
import re
import subprocess
import zlib

import pytest

from lib.checked import CHECK, as_json, check, findings, module_runner, nested, store, threads
from lib.run import BUILD, PATIENCE


def one_line(path, *words, status=2):
	said = check("-q", path)
	lines = said.out.splitlines()
	assert said.status == status and not said.err, said
	assert len(lines) == 2 and lines[0].startswith(f"{path}: ") and any(word in lines[0] for word in words), said.out
	return said


def test_bad_input(base):
	def made(name, raw):
		path = os.path.join(base, name)
		with open(path, "wb") as file:
			file.write(raw)
		return path

	one_line(os.path.join(base, "missing.pfw.gz"), "No such file")
	one_line(made("empty.pfw.gz", b""), "the file is empty")
	one_line(made("empty.pfw", b""), "the file is empty")
	one_line(made("text.pfw.gz", b"hello\nworld\n"), "neither gzip nor lines of JSON")
	one_line(made("binary.pfw.gz", bytes(range(256)) * 100), "neither gzip nor lines of JSON")
	one_line(made("binary-gz.pfw.gz", gzip.compress(os.urandom(100000))), "holds no line of a trace")
	one_line(made("no-events.pfw.gz", gzip.compress(b"[\n]\n")), "holds no line of a trace")
	one_line(made("header.pfw.gz", gzip.compress(b"x" * 99)[:12]), "holds no line of a trace")
	one_line(made("nested.pfw", b"[\n" + b'{"a":' * 100000 + b"\n"), "holds no line of a trace")
	os.mkdir(os.path.join(base, "none"))
	said = check(os.path.join(base, "none"))
	assert said.status == 2 and "no *.pfw and no *.pfw.gz" in said.err
	fifo = os.path.join(base, "fifo.pfw")
	os.mkfifo(fifo)
	one_line(fifo, "not a regular file")
	if os.geteuid() != 0:
		path = made("closed.pfw.gz", b"x")
		os.chmod(path, 0)
		one_line(path, "Permission denied")


def test_permission(base, nested):
	"""As a user who may not read it."""
	path = store(os.path.join(base, "t.pfw.gz"), nested)
	os.chmod(path, 0)
	if os.geteuid() != 0:
		one_line(path, "Permission denied")
		return
	done = subprocess.run(["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--reuid=65534", "--clear-groups", CHECK, "-q", path],
			      capture_output=True, check=False, timeout=60)
	if b"setpriv" in done.stderr:
		pytest.skip(done.stderr.decode())
	assert done.returncode in (2, 126, 127)
	if done.returncode == 2:
		assert b"Permission denied" in done.stdout


def squeezed(piece, times):
	"""A gzip file of a piece many times, without having it in memory."""
	deflater = zlib.compressobj(9, zlib.DEFLATED, 31)
	out = [deflater.compress(piece) for _ in range(times)]
	return b"".join([*out, deflater.flush()])


def limited(path):
	"""Checks with 64 MiB of memory at most."""
	return subprocess.run(["prlimit", "--data=67108864", CHECK, "-q", path], capture_output=True, check=False, timeout=120 * PATIENCE)


@pytest.mark.skipif(BUILD.endswith("san"), reason="address sanitizers want more memory")
@pytest.mark.parametrize("name, piece, times", [("zeros", bytes(1 << 20), 200), ("letters", b"a" * (1 << 20), 200), ("newlines", b"\n" * (1 << 20), 200),
						 ("braces", b'{"a":' * 200000, 200)], ids=["zeros", "letters", "newlines", "braces"])
def test_bomb(base, name, piece, times):
	path = os.path.join(base, f"{name}.pfw.gz")
	with open(path, "wb") as file:
		file.write(squeezed(piece, times))
	done = limited(path)
	lines = done.stdout.decode().splitlines()
	assert done.returncode == 2 and not done.stderr, done
	assert len(lines) == 2 and lines[0].startswith(path), lines


@pytest.mark.skipif(BUILD.endswith("san"), reason="address sanitizers want more memory")
def test_one_long_line(base, nested):
	"""A plain file with a line of 1 GB, mostly a hole, between good lines."""
	path = os.path.join(base, "t.pfw")
	with open(path, "wb") as file:
		file.write(b"\n".join(nested[:-2]) + b"\n{")
		file.seek(10 ** 9, os.SEEK_CUR)
		file.write(b"\n" + b"\n".join(nested[-2:]) + b"\n")
	done = limited(path)
	lines = done.stdout.decode().splitlines()
	assert done.returncode == 1 and not done.stderr, done
	assert len(lines) == 2 and "a line of more than 16 MiB" in lines[0], lines


def test_memory_does_not_grow(base, nested):
	"""Twenty times the events, the same memory."""
	def peak(count):
		event = json.loads(next(raw for raw in nested if b'"POSIX"' in raw and b'"ret":0' in raw))
		path = os.path.join(base, f"{count}.pfw.gz")
		with gzip.open(path, "wb", compresslevel=1) as file:
			file.write(b"\n".join(nested[:-2]) + b"\n")
			end = json.loads(nested[-2])
			for i in range(count):
				event.update(id=10 ** 6 + i, ts=end["ts"] + 10 * i, dur=5)
				file.write(json.dumps(event, separators=(",", ":")).encode() + b"\n")
			end["id"], end["ts"] = 10 ** 6 + count, end["ts"] + 10 * count
			end["args"]["num_events"] += count
			file.write(json.dumps(end, separators=(",", ":")).encode() + b"\n]\n")
		done = subprocess.run(["/usr/bin/env", "python3", "-c", "import resource,subprocess,sys\n"
				       "r=subprocess.run(sys.argv[1:],stdout=subprocess.DEVNULL)\n"
				       "print(r.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)", CHECK, path],
				      capture_output=True, check=True, timeout=60 * PATIENCE)
		status, memory = map(int, done.stdout.split())
		assert status == 0
		return memory
	small, large = peak(5000), peak(100000)
	assert large < small + 1024, (small, large)


def on_terminal(*args):
	"""Runs with stderr on a terminal; gives what came there."""
	main, other = os.openpty()
	process = subprocess.Popen([CHECK, *args], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=other)
	os.close(other)
	said = b""
	try:
		while piece := os.read(main, 65536):
			said += piece
	except OSError:
		pass
	os.close(main)
	process.wait()
	return said


def test_progress_on_a_terminal(base, nested):
	event = next(raw for raw in nested if b'"POSIX"' in raw)
	path = store(os.path.join(base, "t.pfw"), [*nested[:-2], *[event] * 60000, *nested[-2:]])
	paths = [path] * (6 if BUILD.endswith("san") else 20)
	said = on_terminal(*paths)
	assert re.match(rb"\rchecking \[#*\.*\] +\d+ %", said), said[:200]
	assert said.endswith(b"\r\033[K")
	assert on_terminal("-q", *paths) == b""
	assert not check(*paths).err


# --- mutations ---------------------------------------------------------------

def mutated(random, raw):
	"""A few bytes, pieces or numbers of a trace changed."""
	data = bytearray(raw)
	for _ in range(random.randint(1, 6)):
		at = random.randrange(len(data) or 1)
		kind = random.randrange(7)
		if kind == 0:
			data[at:at + 1] = bytes([random.randrange(256)])
		elif kind == 1:
			del data[at:at + random.randint(1, 40)]
		elif kind == 2:
			data[at:at] = data[random.randrange(len(data) or 1):][:random.randint(1, 300)]
		elif kind == 3:
			data[at:at] = random.choice([b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"\n", b"\x00", b"\xff", b"null", b"-", b"1e9", b"\\u",
						     b"\\ud83d\\ude00", b"18446744073709551616", b"{\"a\":[1,{\"b\":null}]}"])
		elif kind == 4:
			data = data[:at]
		elif kind == 5:
			data[at:at + 1] = bytes([data[at] ^ (1 << random.randrange(8))]) if data else b""
		else:
			number = re.search(rb"\d+", bytes(data[at:at + 400]))
			if number:
				data[at + number.start():at + number.end()] = random.choice([b"0", b"-1", b"4294967296", b"9223372036854775808", b"00"])
	return bytes(data)


def fuzz(base, seed_lines, rounds, first):
	import random as random_module
	text = b"".join(line + b"\n" for line in seed_lines[:60])
	zipped = gzip.compress(text)
	for number in range(first, first + rounds):
		random = random_module.Random(number)
		plain = random.random() < 0.6
		path = os.path.join(base, "m.pfw" if plain else "m.pfw.gz")
		raw = mutated(random, text if plain or random.random() < 0.5 else zipped)
		with open(path, "wb") as file:
			file.write(raw if plain or raw[:2] == b"\x1f\x8b" else gzip.compress(raw))
		out = os.path.join(base, "out")
		for options in ([], ["--repair", "-o", out], ["--to", "v2", "--anonymize", "-o", out], ["--to", "v1", "--repair", "--merge", out + ".pfw"]):
			said = check("--json", *options, path)
			for line in said.out.splitlines()[:1]:
				assert line in ("{", "good: nothing to repair"), (number, said.out[:200])
			if "--repair" in options and os.path.isdir(out):
				for name in os.listdir(out):
					again = as_json(os.path.join(out, name))
					left = {"TRUNCATED", "DAMAGED", "TRAILING", "JSON", "COMMA", "INNER_BRACKET", "LONG", "NO_END"} & findings(again)
					assert not left or all(not p.get("ended") for f in again["files"] for p in f["processes"]), (number, left)
			for name in (out, out + ".pfw"):
				subprocess.run(["rm", "-rf", name], check=True)


def test_mutations(base, nested):
	fuzz(base, nested, 25, 0)


@pytest.mark.full
def test_many_mutations(base, nested, threads):
	fuzz(base, nested, 400, 1000)
	fuzz(base, threads, 400, 100000)
