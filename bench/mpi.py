"""What a message costs: untraced, with the default set, which hooks nothing on its way, and with all of MPI hooked."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

RING = Path(__file__).resolve().parent.parent / "tests" / "programs" / "mpi" / "mpi_ring.c"
ROUNDS = 2_000
HOOKED_ROUNDS = 300
# Shared memory: a network would hide what is measured.
ENVIRONMENT = {
    "UCX_TLS": "self,sysv,posix",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}

# Name, what is shown, format, and the aim: at most that much.
TABLE = [
    ("ring2_us", "1-byte message between 2 ranks, native, us", "{:.2f}", None),
    ("ring2_default_us", "  under dftrace-run, MPI's default set, us", "{:.2f}", None),
    ("ring2_all_us", "  with all of MPI hooked (2 calls), us", "{:.2f}", None),
    ("ring4_us", "1-byte message in a ring of 4 ranks, native, us", "{:.2f}", None),
    ("ring4_default_us", "  under dftrace-run, MPI's default set, us", "{:.2f}", None),
    ("ring4_all_us", "  with all of MPI hooked (2 calls), us", "{:.2f}", None),
]


def find():
    """@return the MPI that is here, None: none. Open MPI's ranks give way to each other where they share CPUs."""
    for name in ("openmpi", "mpich"):
        if shutil.which(f"mpicc.{name}") and shutil.which(f"mpirun.{name}"):
            return name
    return None


def message_us(name, program, ranks, rounds, tracer):
    command = [f"mpirun.{name}", *(["--oversubscribe"] if name == "openmpi" else []), "-np", str(ranks)]
    command += [*tracer, str(program), str(rounds), "time"]
    done = subprocess.run(
        command, env={**os.environ, **ENVIRONMENT}, stdout=subprocess.PIPE, check=False
    )
    if done.returncode:
        sys.exit(f"bench: exit status {done.returncode} from: {' '.join(command)}")
    return next(
        float(line.split()[0]) for line in done.stdout.decode().splitlines() if "a message" in line
    )


def figures(bench):
    """@return the figures of one round, by name; none without an MPI."""
    name = find()
    if not name:
        return {}
    program = bench.directory / "ring"
    if not program.exists():
        subprocess.run([f"mpicc.{name}", "-O2", str(RING), "-o", str(program)], check=True)
    found = {}
    for ranks in (2, 4):
        variants = (
            ("", ROUNDS, []),
            ("_default", ROUNDS, bench.dftrace("-e", "mpi")),
            ("_all", HOOKED_ROUNDS, bench.dftrace("-e", "mpi:all")),
        )
        for variant, rounds, tracer in variants:
            found[f"ring{ranks}{variant}_us"] = message_us(name, program, ranks, rounds, tracer)
    return found
