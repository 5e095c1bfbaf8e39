"""The preload guide's three checks, as its users type them, on job scripts that were written for the preload library."""

import collections
import json
import os
import subprocess

import pytest

from lib import upstream
from lib.checked import check
from lib.mpi import Form, rank_of
from lib.run import BUILD, TRACER, Run, program

RANKS = 4
# The guide's loops, on the traces of a directory.
EXIST = 'ls -lh "$1"/*.pfw.gz && for f in "$1"/*.pfw.gz; do test -s "$f" || exit 1; done'
CATEGORIES = """
import collections, glob, gzip, json, sys
for path in sorted(glob.glob(sys.argv[1] + "/*.pfw.gz")):
	seen = collections.Counter()
	with gzip.open(path, "rt") as file:
		for line in file:
			line = line.strip().rstrip(",")
			if line in ("", "[", "]"):
				continue
			try:
				seen[json.loads(line).get("cat")] += 1
			except json.JSONDecodeError:
				pass
	print(json.dumps(seen))
"""
RANK = """
import glob, gzip, json, sys
for path in sorted(glob.glob(sys.argv[1] + "/*.pfw.gz")):
	with gzip.open(path, "rt") as file:
		for line in file:
			if line.startswith("{"):
				event = json.loads(line)
				if event.get("name") == "rank":
					print(event["args"]["value"])
					break
"""
def python(text, directory):
	return subprocess.run(["python3", "-c", text, directory], check=True, capture_output=True).stdout.decode().splitlines()


@pytest.mark.parametrize("form", ["mpich.dyn", "openmpi.dyn", "mpich.static"])
def test_four_ranks(runner, form):
	"""A parallel HDF5 program: all five categories in all files, and the ranks."""
	form = Form(form)
	example = os.path.join(BUILD, "examples", f"hdf5_rows.{form.mpi}{'.static' if form.static else ''}")
	if not os.path.exists(example):
		pytest.skip("the example is not built")
	run = Run(runner.fresh("job"), runner.token())
	run.prefix = os.path.join(runner.fresh("out"), "t")
	runner._execute(run, [*form.launcher(RANKS), TRACER, "--", example, "."],
			{**form.environment(), **upstream.settings(run.prefix)}, subprocess.DEVNULL, 120)
	runner.settle(run.token)
	assert run.status == 0, run.stderr
	directory = os.path.dirname(run.prefix)
	subprocess.run(["bash", "-c", EXIST, "bash", directory], check=True, capture_output=True)
	found = [json.loads(line) for line in python(CATEGORIES, directory)]
	assert len(found) == RANKS
	for seen in found:
		assert {"POSIX", "STDIO", "HDF5", "MPI", "dftracer"} <= set(seen)
	ours = [collections.Counter(event.cat for event in trace.events) for trace in sorted(run.traces, key=lambda trace: trace.file)]
	for seen, counted in zip(found, ours):
		assert all(seen[cat] == count for cat, count in counted.items())
	assert sorted(python(RANK, directory)) == [str(rank) for rank in range(RANKS)]
	assert sorted(rank_of(trace) for trace in run.traces) == list(range(RANKS))
	assert check("--require", "POSIX,STDIO,HDF5,MPI,rank", directory).status == 0


@pytest.mark.parametrize("command", [f"{program('workers')} threads 4 50", f"{program('progress')} data 100"])
@pytest.mark.parametrize("directories", ["all", "{cwd}"])
def test_only_ld_preload_is_replaced(runner, command, directories):
	"""The same script with the library and with dftrace-run: the categories, and the bytes that readers add up."""
	library = upstream.preload()
	runs = []
	for start in (f"LD_PRELOAD={library}", f"{TRACER} -q --"):
		cwd = runner.fresh("job")
		# Absolute names, which lists of the library need.
		runs.append(upstream.job(runner, start, command, directories=directories.format(cwd=cwd), cwd=cwd))
	theirs, ours = runs
	assert theirs.status == ours.status, (theirs.stderr, ours.stderr)
	assert theirs.stdout == ours.stdout
	their, our = (upstream.viewed(runner, os.path.dirname(run.prefix)) for run in (theirs, ours))
	if directories == "all":
		# What the loader reads is dftrace's alone.
		loaded = sum(event.ret for event in ours.events if event.cat == "POSIX" and event.name in ("read", "pread")
			     and ".so" in event.path)
		our["POSIX"]["read"] -= loaded
		assert {"POSIX", "DFTRACER"} <= set(their) <= set(our)
		for cat, kinds in their.items():
			for kind in ("read", "written"):
				assert our[cat][kind] == kinds[kind], (cat, kind)
	else:
		# Its programs name their files relatively, which its list never matches.
		assert their["POSIX"]["written"] == 0 < our["POSIX"]["written"]
	if "workers" in command:
		words = [line.split("\t")[1].split() for line in ours.stdout.decode().splitlines()]
		assert our["POSIX"]["written"] == sum(int(word[0]) for word in words)
		assert our["POSIX"]["read"] == sum(int(word[1]) for word in words)
	assert check(os.path.dirname(ours.prefix)).status == 0
