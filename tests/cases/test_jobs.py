"""Real launchers: one tracer per rank, or one around the launcher; how jobs end."""

import collections
import contextlib
import os
import re
import shutil
import signal
import subprocess
import threading
import time

import pytest

from lib.jobs import ENVIRONMENT, MPIS, by_rank, job, lines, memory_group, mpi_program, mpirun, open_to_all, run_as, same_status, written
from lib.run import BUILD, Run, is_alive, owned, proc, tracers, wait_until
from lib.trace import Trace, trace_files

FILLED = 300 << 20  # bytes of memory for three ranks, of which one takes all that it gets
TIMES = [0, *(pytest.param(n, marks=pytest.mark.full) for n in range(1, 20))]


@pytest.fixture(params=MPIS)
def mpi(request):
	if not shutil.which(f"mpirun.{request.param}"):
		pytest.skip(f"no mpirun.{request.param}")
	return request.param


@pytest.fixture(params=["root", "user"])
def user(request, base):
	"""How subprocess is told who runs the job."""
	options = run_as(request.param)
	for path, _, _ in os.walk(base) if options else ():
		os.chmod(path, 0o777)
	return options


@pytest.fixture
def open_runner(runner):
	return open_to_all(runner)


def whole(traces):
	"""Each rank has the file of its program, complete."""
	assert all(trace.end for trace in traces)


@pytest.mark.parametrize("kind", ["ranks", "wrapped"])
def test_ranks_and_bytes(open_runner, mpi, user, kind):
	"""Four ranks: output, status and files as without us; each rank's trace has its own bytes."""
	args = [mpi_program(mpi)]
	native = job(open_runner, mpirun(mpi, 4), args, kind="native", **user)
	run = job(open_runner, mpirun(mpi, 4), args, kind=kind, **user)
	assert native.status == 0, native.stderr
	assert (run.status, lines(run)) == (0, lines(native)), run.stderr
	assert run.program_stderr == native.stderr
	found = by_rank(run, range(4))
	for rank, traces in found.items():
		path = run.path(f"own.{rank}")
		assert written(traces, path) == os.path.getsize(path) == 100 * (10 + rank)
		main, = [trace for trace in traces if trace.command.startswith(args[0])]
		assert main.exec_name == f"Rank {rank} {os.path.basename(args[0])}"
		assert main.properties["world_size"] == "4" and main.properties["local_rank"] == str(rank)
		assert main.properties["launcher"] == {"openmpi": "Open MPI", "mpich": "MPICH"}[mpi]
		# What the guide of DFTracer's preload library looks for.
		assert any(line["name"] == "rank" and line["args"]["value"] == str(rank) for line in main.meta)
	assert len(re.findall(rb"^dftrace-run: ", run.stderr, re.MULTILINE)) == 1
	if kind == "ranks":
		assert run.stderr.count(b"dftrace-run: rank 0: ") == 1


def same_traces(one, two):
	"""Events of the program's own files, rank by rank."""
	def key(run):
		return {rank: sorted((e.name, os.path.relpath(e.path, run.cwd), e.ret) for trace in traces
				     for e in trace.events if e.path and e.path.startswith(run.cwd + "/own"))
			for rank, traces in by_rank(run).items()}

	assert key(one) == key(two)


def test_wrapping_is_the_same(runner, mpi):
	args = [mpi_program(mpi)]
	same_traces(job(runner, mpirun(mpi, 3), args, kind="ranks"), job(runner, mpirun(mpi, 3), args, kind="wrapped"))


def test_fortran(runner, mpi):
	run = job(runner, mpirun(mpi, 4), [mpi_program(mpi, "rank_io.f90")])
	assert run.status == 0, run.stderr
	for rank, traces in by_rank(run, range(4)).items():
		assert written(traces, run.path(f"own.{rank}")) == 1000 + 100 * rank


def test_static_fortran(runner, mpi):
	"""A program that knows nothing of MPI, once per rank."""
	program = os.path.join(BUILD, "examples", "fortran_io.static")
	if not os.path.exists(program):
		pytest.skip("no static Fortran")
	variable = {"openmpi": "OMPI_COMM_WORLD_RANK", "mpich": "PMI_RANK"}[mpi]
	args = ["sh", "-c", f"mkdir d${variable} && cd d${variable} && exec {program} ."]
	native = job(runner, mpirun(mpi, 4), args, kind="native")
	run = job(runner, mpirun(mpi, 4), args)
	assert run.status == native.status == 0, run.stderr
	for rank, traces in by_rank(run, range(4)).items():
		directory = run.path(f"d{rank}")
		for name in os.listdir(directory):
			path = os.path.join(directory, name)
			assert os.path.getsize(path) == os.path.getsize(os.path.join(native.cwd, f"d{rank}", name))
		assert any(e.path and e.path.startswith(directory + "/") for trace in traces for e in trace.events)


@pytest.mark.parametrize("kind", ["ranks", "wrapped"])
def test_static_mpi(runner, kind):
	"""A static MPI program in Fortran: MPICH is linked into it."""
	program = os.path.join(BUILD, "examples", "mpiio.static")
	if not os.path.exists(program) or not shutil.which("mpirun.mpich"):
		pytest.skip("no static MPI")
	# A static one cannot copy out of other processes.
	env = {"UCX_TLS": "self,sysv,posix"}
	native = job(runner, mpirun("mpich", 4), [program], kind="native", env=env)
	run = job(runner, mpirun("mpich", 4), [program], kind=kind, env=env)
	assert run.status == native.status == 0, run.stderr
	assert lines(run) == lines(native)
	found = by_rank(run, range(4))
	for path in ("columns.dat", "blocks.dat"):
		total = sum(written(traces, run.path(path)) for traces in found.values())
		assert total == os.path.getsize(run.path(path)) == os.path.getsize(native.path(path))


def test_ranks_that_run_free(runner, mpi):
	"""Seen from inside: neither tracer nor filter."""
	args = ["sh", "-c", "echo $(grep -E '^(TracerPid|Seccomp):' /proc/self/status)"]
	run = job(runner, mpirun(mpi, 4), args, ["--ranks", "1-2"])
	assert run.status == 0 and lines(run).count(b"TracerPid: 0 Seccomp: 0") == 2
	by_rank(run, [1, 2])
	run = job(runner, mpirun(mpi, 4), args, ["--ranks", "first-per-node"])
	by_rank(run, [0])
	run = job(runner, mpirun(mpi, 4), args, ["--ranks", "1-2"], kind="wrapped")
	by_rank(run, [1, 2])
	assert b"2 of 4 ranks are left out by --ranks" in run.stderr


@pytest.mark.parametrize("said,line", [("3", b"MPI says that it is rank 0, the launcher's environment rank 3"), ("0", b"")])
@pytest.mark.parametrize("options", [[], ["-e", "+mpi:p2p"]], ids=["default", "p2p"])
def test_mpi_has_the_last_word(runner, said, line, options):
	"""A program of one MPI in the environment of the other's launcher is rank 0 of a world of its own."""
	env = {"OMPI_COMM_WORLD_RANK": said, "OMPI_COMM_WORLD_SIZE": "1"}
	run = job(runner, [], [mpi_program("mpich")], options, env=env)
	assert run.status == 0 and b"rank 0 of 1" in run.stdout
	assert run.stderr.count(b"MPI says") == (said != "0") and line in run.stderr
	assert run.stderr.startswith(b"dftrace-run: rank 0: ")
	values = [entry["args"]["value"] for entry in run.trace.meta if entry["name"] == "rank"]
	assert values == (["3", "0"] if said == "3" else ["0"])


# What a wrapper script does to the environment of rank 1: no MPI reads it itself.
LIE = ('test "$OMPI_COMM_WORLD_RANK$PMI_RANK" = 1 && export OMPI_COMM_WORLD_RANK=7 OMPI_COMM_WORLD_SIZE=9;'
       'exec "$@"')


def check_lie(run):
	"""MPI's word is the last in the trace of each rank; where there was another one it is said."""
	assert run.status == 0, run.stderr
	for rank, traces in by_rank(run, [0, 1]).items():
		assert all(trace.properties["world_size"] == "2" for trace in traces)
		values = [line["args"]["value"] for line in traces[0].meta if line["name"] == "rank"]
		assert values == (["7", "1"] if rank else ["0"])
		assert traces[0].exec_name.startswith("Rank ")
	assert run.stderr.count(b"MPI says that it is rank 1, the launcher's environment rank 7: MPI's word counts") == 1
	assert run.stderr.count(b"MPI says that its world's size is 2, the launcher's environment 9") == 1
	assert run.stderr.count(b"MPI says") == 2


@pytest.mark.parametrize("source", ["rank_io.c", "rank_io.f90"])
def test_environment_that_lies(runner, mpi, source):
	check_lie(job(runner, [*mpirun(mpi, 2), "sh", "-c", LIE, "sh"], [mpi_program(mpi, source)]))


def test_environment_that_lies_to_a_static_program(runner):
	program = os.path.join(BUILD, "examples", "mpiio.static")
	if not os.path.exists(program) or not shutil.which("mpirun.mpich"):
		pytest.skip("no static MPI")
	check_lie(job(runner, [*mpirun("mpich", 2), "sh", "-c", LIE, "sh"], [program], env={"UCX_TLS": "self,sysv,posix"}))


def test_wrong_rank_by_option(runner):
	run = job(runner, [], [mpi_program("mpich")], ["--rank", "4"])
	assert run.status == 0 and b"MPI says that it is rank 0, --rank rank 4: MPI's word counts" in run.stderr


@pytest.mark.parametrize("what", ["world", "rank", "dup"])
def test_asking_for_the_rank_costs_a_few_stops(runner, mpi, what):
	"""Breakpoints are there until rank and size are known, or have not become so for long; then no more. What is
	called afterwards is seen."""
	def stops(times):
		run = job(runner, mpirun(mpi, 1), [mpi_program(mpi, "rank_often.c"), what, str(times)], ["-v"])
		assert run.status == 0, run.stderr
		names = [e.name for e in run.trace.events if e.cat == "MPI"]
		assert names == ["MPI_Init_thread", "MPI_File_open", "MPI_File_write", "MPI_File_close", "MPI_Finalize"]
		assert not run.trace.lost() and run.trace.properties["rank"] == "0"
		return int(re.search(rb" (\d+) stops", run.stderr)[1])

	assert stops(20000) - stops(1) < 1000


def test_functions_of_the_user_come_first(runner):
	"""-x on a function that is hooked only to learn from it."""
	run = job(runner, mpirun("mpich", 1), [mpi_program("mpich", "rank_often.c"), "world", "50"], ["-x", "MPI_Comm_rank"])
	assert len([e for e in run.trace.events if e.name == "MPI_Comm_rank" and e.cat == "FUNC"]) >= 100


def test_launcher_is_recorded_on_request(runner, mpi):
	run = job(runner, mpirun(mpi, 2), ["true"], ["--trace-launcher"], kind="wrapped")
	assert run.status == 0
	names = {trace.exec_name for trace in run.traces if "rank" not in trace.properties}
	assert f"mpirun.{mpi}" in names or "hydra_pmi_proxy" in names or len(names) > 0


def test_helper_of_a_rank(runner, mpi):
	run = job(runner, mpirun(mpi, 2), ["sh", "-c", "cat /etc/hostname | cat >out.$$; env -i cat /etc/hostname; :"])
	assert run.status == 0
	for traces in by_rank(run, [0, 1]).values():
		assert sum(trace.command.startswith("cat") for trace in traces) >= 2


@pytest.mark.parametrize("how", ["abort", "segv", "exit"])
@pytest.mark.parametrize("kind", ["ranks", "wrapped"])
@pytest.mark.parametrize("times", TIMES)
def test_a_rank_ends_badly(runner, mpi, kind, how, times):
	args = [mpi_program(mpi), how]
	run = job(runner, mpirun(mpi, 3), args, kind=kind)
	wait_until(lambda: not owned(run.token), what="the end of everything")
	same_status(run, lambda slow: job(runner, [*slow, *mpirun(mpi, 3)], args, kind="native", timeout=20), mpi, how)
	found = by_rank(run, range(3))
	for traces in found.values():
		whole(traces)
	main = found[2][0]
	if how == "segv":
		assert main.end.args["signal"] == signal.SIGSEGV
	elif how == "exit":
		assert main.end.args.get("exit_status") == 5 or main.end.args.get("signal")
	assert written(found[2], run.path("own.2")) == 1200


def test_tracers_that_are_parents(runner, mpi):
	"""Where the tracer is the rank's parent, the launcher's SIGKILL is for the tracer: a trace without its end, but
	valid, at most a second behind, and one that says so. A rank that ends by itself has all of it."""
	args = [mpi_program(mpi), "abort"]
	run = job(runner, mpirun(mpi, 3), args, ["--tracer", "parent"])
	wait_until(lambda: not owned(run.token), what="the end of everything")
	same_status(run, lambda slow: job(runner, [*slow, *mpirun(mpi, 3)], args, kind="native", timeout=20), mpi, "abort")
	traces = [Trace(path, whole=False) for path in trace_files(run.prefix)]
	assert sorted(trace.properties["rank"] for trace in traces) == ["0", "1", "2"]
	assert all(trace.properties["tracer"].endswith(" parent") and trace.start for trace in traces)
	well = job(runner, mpirun(mpi, 3), [mpi_program(mpi)], ["--tracer", "parent"])
	assert well.status == 0
	whole([trace for traces in by_rank(well, range(3)).values() for trace in traces])


# What is sent to the launcher. Ctrl-C reaches all of the terminal's foreground group.
KILLS = {"SIGINT": signal.SIGINT, "SIGTERM": signal.SIGTERM, "SIGHUP": signal.SIGHUP, "SIGKILL": signal.SIGKILL,
	 "Ctrl-C": signal.SIGINT}


def kill_launcher(run, name):
	(os.killpg if name == "Ctrl-C" else os.kill)(run.process.pid, KILLS[name])


def spin(runner, mpi, kind, slow=()):
	"""Starts ranks that write until they are killed. @return the run."""
	run = launched(runner, mpi, kind, slow)
	wait_until(lambda: all(os.path.exists(run.path(f"own.{rank}")) for rank in range(3)), 40, "the ranks")
	wait_until(lambda: all(os.path.getsize(run.path(f"own.{rank}")) > 3000 for rank in range(3)), 40, "their work")
	return run


def launched(runner, mpi, kind, slow=()):
	"""@return a run that has just been started, natively as same_status wants it; its launcher leads a process group."""
	program = mpi_program(mpi)
	run = Run(runner.fresh(kind), runner.token())
	run.prefix = os.path.join(runner.fresh("out"), "t")
	args = [program, "spin"]
	if kind == "native":
		command = [*slow, *mpirun(mpi, 3), *args]
	elif kind == "ranks":
		command = [*mpirun(mpi, 3), *runner.command(args, [], run.prefix)]
	else:
		command = runner.command([*mpirun(mpi, 3), *args], [], run.prefix)
	run.process = subprocess.Popen(command, cwd=run.cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
				       stderr=subprocess.PIPE, start_new_session=True,
				       env=runner.environment(run.token, ENVIRONMENT))
	runner.open.append(run.process)
	return run


def finish(runner, run, seconds=40):
	"""Waits for the launcher and for everything that it left. MPICH's waits for ranks that do not end."""
	out, err = run.process.communicate(timeout=seconds)
	run.stdout, run.stderr, run.status = out, err, run.process.returncode
	return run


def agrees_with_files(run, found):
	"""What each rank wrote is in its trace. A call in which it was killed has no result: the kernel may have done it."""
	for rank, traces in found.items():
		whole(traces)
		path = run.path(f"own.{rank}")
		cut = sum(e.args["count"] for trace in traces for e in trace.events
			  if e.name == "write" and e.path == path and "cut" in e.args)
		assert written(traces, path) <= os.path.getsize(path) <= written(traces, path) + cut


@pytest.mark.parametrize("name", KILLS)
@pytest.mark.parametrize("kind", ["ranks", "wrapped"])
@pytest.mark.parametrize("times", TIMES)
def test_launcher_is_killed(runner, moment, mpi, kind, name, times):
	"""The job ends as without us, nobody is left, and what each rank wrote is in a valid trace."""
	def once(kind, slow=()):
		run = spin(runner, mpi, kind, slow)
		time.sleep(moment(0.5))
		kill_launcher(run, name)
		finish(runner, run)
		wait_until(lambda: not owned(run.token), 20, "the end of everything")
		return run

	run = once(kind)
	agrees_with_files(run, by_rank(run, range(3)))
	same_status(run, lambda slow: once("native", slow), mpi, name)


@pytest.mark.parametrize("name", KILLS)
@pytest.mark.parametrize("kind", ["ranks", "wrapped"])
@pytest.mark.parametrize("times", TIMES)
def test_killed_while_it_starts(runner, moment, mpi, kind, name, times):
	"""At any moment from the launcher's first: the traces that there are are whole, and nobody is left. A launcher may lose
	what it has not begun to pass on, natively too: its user is told to press Ctrl-C again."""
	run = launched(runner, mpi, kind)
	time.sleep(moment(1))
	for _ in range(2):
		kill_launcher(run, name)
		with contextlib.suppress(subprocess.TimeoutExpired):
			finish(runner, run, 15)
			break
	else:
		# mpirun of Open MPI may wait in PMIx_server_finalize for a thread of its own that waits for a lock.
		left = {os.path.basename(os.readlink(f"/proc/{pid}/exe")) for pid in owned(run.token) if is_alive(pid)}
		assert left <= {"orterun", *({"dftrace-run"} if kind == "wrapped" else ())}, left
		os.kill(run.process.pid, signal.SIGKILL)
		finish(runner, run)
	wait_until(lambda: not owned(run.token), 20, "the end of everything")
	whole(run.traces)


@pytest.mark.parametrize("kind", ["ranks", "wrapped"])
@pytest.mark.parametrize("times", TIMES)
def test_a_rank_is_killed(runner, moment, mpi, kind, times):
	"""SIGKILL for one of them, as from a node that has little memory left: all have whole traces."""
	def once(kind, slow=()):
		run = spin(runner, mpi, kind, slow)
		time.sleep(moment(0.5))
		ranks = [pid for pid in owned(run.token) if os.readlink(f"/proc/{pid}/exe") == mpi_program(mpi)]
		os.kill(sorted(ranks)[int(moment(2.99))], signal.SIGKILL)
		finish(runner, run)
		wait_until(lambda: not owned(run.token), 20, "the end of everything")
		return run

	run = once(kind)
	found = by_rank(run, range(3))
	agrees_with_files(run, found)
	assert any(traces[0].end.args.get("signal") == signal.SIGKILL for traces in found.values())
	same_status(run, lambda slow: once("native", slow), mpi, "a rank")


@pytest.mark.parametrize("kind", ["ranks", "wrapped"])
@pytest.mark.parametrize("times", TIMES)
def test_memory_runs_out(runner, mpi, kind, times):
	"""The kernel kills the rank that took a node's memory: its tracer has little, lives on, and ends the trace."""
	args = [mpi_program(mpi), "fill"]
	with memory_group(FILLED) as group:
		run = job(runner, mpirun(mpi, 3), args, kind=kind, preexec_fn=group.enter)
		wait_until(lambda: not owned(run.token), 20, "the end of everything")
		if group.kills() == 1:
			found = by_rank(run, range(3))
			agrees_with_files(run, found)
			assert found[2][0].end.args["signal"] == signal.SIGKILL
		else:
			# Before the first one's memory was free it has killed another: perhaps a tracer, with its rank.
			traces = [Trace(path, whole=False) for path in trace_files(run.prefix)]
			assert {int(trace.properties["rank"]) for trace in traces} == {0, 1, 2}
		same_status(run, lambda slow: job(runner, [*slow, *mpirun(mpi, 3)], args, kind="native", timeout=20,
						  preexec_fn=group.enter), mpi, "memory")


@pytest.mark.parametrize("times", TIMES)
def test_everything_is_killed(runner, moment, mpi, times):
	"""SIGKILL for ranks and tracers at once, as from a node that has no memory left: at most a second is missing."""
	run = spin(runner, mpi, "ranks")
	time.sleep(1.5 + moment(0.5))
	sizes = {rank: os.path.getsize(run.path(f"own.{rank}")) for rank in range(3)}
	time.sleep(1.2)
	for pid in owned(run.token):
		with contextlib.suppress(OSError):
			os.kill(pid, signal.SIGKILL)
	finish(runner, run)
	wait_until(lambda: not any(is_alive(pid) for pid in owned(run.token)), 20)
	traces = {int(t.properties["rank"]): t for t in (Trace(path, whole=False) for path in trace_files(run.prefix))}
	assert sorted(traces) == [0, 1, 2]
	for rank, trace in traces.items():
		assert written([trace], run.path(f"own.{rank}")) >= sizes[rank]


MANY = 64
MEMORY_MOST = 12 << 20


def memory_of(pid):
	"""Bytes of a process: its own, and its share of what it has together with others."""
	found = re.search(rb"^Pss:\s*(\d+) kB", proc(pid, "smaps_rollup"), re.MULTILINE)
	return int(found[1]) << 10 if found else 0


@pytest.mark.full
@pytest.mark.parametrize("kind", ["plain", "mpi"])
def test_many_ranks(runner, mpi, kind):
	"""64 ranks on the CPUs that there are start, run and end; what their tracers take is printed."""
	def timed(args, where):
		begin = time.monotonic()
		run = job(runner, mpirun(mpi, MANY), args, ["-v"], kind=where, timeout=400)
		assert run.status == 0, run.stderr[-2000:]
		return run, time.monotonic() - begin

	if kind == "plain":
		# Natively Open MPI does not always see the end of 64 programs that end at once.
		args = ["sh", "-c", "sleep 1.$OMPI_COMM_WORLD_RANK$PMI_RANK"]
	else:
		args = [mpi_program(mpi)]
	most = []
	stop = threading.Event()

	def watch():
		while not stop.wait(0.2):
			found = [memory_of(pid) for pid in tracers(runner.tokens[-1])]
			most.append(max(found, default=0))

	_, alone = timed(args, "native")
	watcher = threading.Thread(target=watch)
	watcher.start()
	try:
		run, traced = timed(args, "ranks")
	finally:
		stop.set()
		watcher.join()
	by_rank(run, range(MANY))
	cpu = sum(map(int, re.findall(rb"(\d+) ms tracer CPU", run.stderr))) / MANY
	print(f"{MANY} ranks, {mpi}, {kind}: {traced:.1f} s, alone {alone:.1f} s, so {(traced - alone) / MANY * 1000:.1f} ms "
	      f"a rank; {cpu:.1f} ms tracer CPU a rank; a tracer has {max(most) / 2 ** 20:.1f} MiB at most")
	assert 0 < max(most) < MEMORY_MOST


def cpus(text):
	found = set()
	for part in text.split(","):
		first, _, last = part.partition("-")
		found |= set(range(int(first), int(last or first) + 1))
	return found


def test_tracers_keep_to_the_ranks_cpus(runner):
	"""With a core for each rank, all threads of its tracer are there, too."""
	if len(os.sched_getaffinity(0)) < 2 or not shutil.which("mpirun.openmpi"):
		pytest.skip("no Open MPI, or one CPU")
	code = ("import glob, re, time; time.sleep(0.3);"
		"one = lambda path, key: re.search(key + r':\\s*(\\S+)', open(path).read())[1];"
		"tracer = one('/proc/self/status', 'TracerPid');"
		"print(*[one(p, 'Cpus_allowed_list') for p in"
		" ['/proc/self/status', *glob.glob(f'/proc/{tracer}/task/*/status')]])")
	start = [*mpirun("openmpi", 2), "--bind-to", "core"]
	run = job(runner, start, ["python3", "-c", code])
	if run.status and b"bind" in run.stderr:
		pytest.skip("no binding here")
	assert run.status == 0, run.stderr
	own = set()
	for line in lines(run):
		rank, *tracer = [cpus(word) for word in line.decode().split()]
		assert tracer and all(mask <= rank for mask in tracer), line
		own.add(frozenset(rank))
	assert len(own) == 2
