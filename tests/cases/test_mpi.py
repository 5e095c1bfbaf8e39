"""MPI: each call with its bytes, file and communicator is what the program says, on both MPIs, in C and Fortran."""

import pytest

from lib.mpi import agree, forms, launch, rank_of, words

EVERY = forms("mpich.dyn", "openmpi.dyn", "mpich.static", "mpich.no-pie", "openmpi.no-pie")
MESSAGES = ["-e", "mpi,mpi:p2p,mpi:collective,mpi:neighbour,mpi:rma"]


def by_rank(run, ranks):
	traces = {rank_of(trace): trace for trace in run.traces}
	assert sorted(traces) == list(range(ranks))
	return traces


@pytest.mark.parametrize("form", EVERY)
def test_messages(runner, form):
	run = launch(runner, form, 4, [form.build("mpi_messages.c")], MESSAGES)
	assert run.status == 0, run.stderr
	for rank, trace in by_rank(run, 4).items():
		agree(trace, words(run.cwd, rank), run.cwd)
		# One communicator's size was not asked for.
		assert trace.lost() == {"unsized:mpi": 1}


@pytest.mark.parametrize("form", EVERY)
def test_files(runner, form):
	run = launch(runner, form, 3, [form.build("mpi_files.c")], ["-e", "mpi,+MPI_Wait"])
	assert run.status == 0, run.stderr
	for rank, trace in by_rank(run, 3).items():
		agree(trace, words(run.cwd, rank), run.cwd)
		assert not trace.lost()


@pytest.mark.parametrize("interface", ["mpi", "mpif", "f08"])
@pytest.mark.parametrize("form", forms("mpich.dyn", "openmpi.dyn", "mpich.static", "openmpi.no-pie"))
def test_fortran(runner, form, interface):
	flags = {"mpi": [], "mpif": ["-DMPIF"], "f08": ["-DF08"]}[interface]
	run = launch(runner, form, 3, [form.build("mpi_fortran.f90", *flags)], [*MESSAGES, "-e", "+MPI_Wait"])
	assert run.status == 0, run.stderr
	for rank, trace in by_rank(run, 3).items():
		agree(trace, words(run.cwd, rank), run.cwd)
		assert not trace.lost()
