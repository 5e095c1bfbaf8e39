"""Upstream's reader reports our numbers on the files of a parallel HDF5 program, by call, file and rank."""

import collections
import os

import pytest

from lib.hdf5 import hdf5
from lib.mpi import Form, launch, rank_of
from lib.run import BUILD
from lib.upstream import viewed_calls


@pytest.mark.parametrize("form", ["mpich.static", "openmpi.dyn"])
@pytest.mark.parametrize("lines", ["v1", "v2"])
def test_view(runner, form, lines):
	form = Form(form)
	program = os.path.join(BUILD, "examples", f"hdf5_rows.{form.mpi}{'.static' if form.static else ''}")
	if not os.path.exists(program):
		pytest.skip("the example is not built")
	run = launch(runner, form, 2, [program, "."], ["--format", lines])
	assert run.status == 0, run.stderr
	ours = collections.defaultdict(lambda: [0, 0])
	ranks = {trace.events[0].pid: str(rank_of(trace)) for trace in run.traces}
	for event in hdf5(run):
		key = event.name, event.path, ranks[event.pid]
		ours[key][0] += 1
		ours[key][1] += event.args.get("size_sum", 0)
	assert len(ours) > 10
	assert viewed_calls(runner, os.path.dirname(run.prefix), "HDF5") == dict(ours)
