"""Upstream's reader reports our numbers on the files of an MPI program, by call, file and rank."""

import collections
import json
import os
import subprocess

import pytest

from lib.mpi import calls, forms, launch, rank_of
from lib.run import BUILD
from lib.upstream import venv


@pytest.mark.parametrize("form", forms("mpich.static", "openmpi.dyn"))
@pytest.mark.parametrize("lines", ["v1", "v2"])
def test_view(runner, form, lines):
	example = os.path.join(BUILD, "examples", "mpiio." + ("static" if form.static else form.mpi))
	run = launch(runner, form, 2, [example], ["--format", lines])
	assert run.status == 0, run.stderr
	ours = collections.defaultdict(lambda: [0, 0])
	for trace in run.traces:
		for event in calls(trace):
			key = event.name, event.path or "", str(rank_of(trace))
			ours[key][0] += 1
			ours[key][1] += event.args.get("size_sum", 0)
	assert len(ours) > 20
	said = subprocess.run([venv("0.0.14", "dftracer_view"), "-d", os.path.dirname(run.prefix), "--group-by", "cat,name,file_path,rank", "--agg",
			       "count,sum:size"], check=True, capture_output=True, cwd=runner.fresh("reader")).stdout
	found = {}
	for line in said.decode().splitlines():
		row = json.loads(line) if line.startswith("{") else {}
		if row.get("cat", "").upper() == "MPI":
			found[row["name"], row["file_path"], row["rank"]] = [row["count"], row["sum_size"]]
	assert found == dict(ours)
