"""Upstream's reader reports our numbers on the files of an MPI program, by call, file and rank."""

import collections
import os

import pytest

from lib.mpi import calls, forms, launch, rank_of
from lib.run import BUILD
from lib.upstream import viewed_calls


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
	assert viewed_calls(runner, os.path.dirname(run.prefix), "MPI") == dict(ours)
