"""What an H5Dwrite of one element costs: untraced, hooked, and with HDF5 left out."""

import os
import subprocess
from pathlib import Path

WRITE = Path(__file__).resolve().parent.parent / "tests" / "programs" / "hdf5" / "hdf5_one.c"
WRITES = 100_000
HOOKED_WRITES = 5_000

# Name, what is shown, format, and the aim: at most that much.
TABLE = [
    ("h5_native_us", "H5Dwrite of one element, native, us", "{:.2f}", None),
    ("h5_hooked_us", "  under dftrace-run, us", "{:.2f}", None),
    ("h5_unhooked_us", "  under dftrace-run -e '!hdf5', us", "{:.2f}", None),
]


def flags(*what):
    """@return the words of pkg-config, None where there is no serial HDF5."""
    done = subprocess.run(
        ["pkg-config", *what, "hdf5-serial"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    return done.stdout.decode().split() if done.returncode == 0 else None


def find():
    """@return whether there is an HDF5 to measure."""
    return flags("--cflags") is not None


def figures(bench):
    """@return the figures of one round, by name; none without HDF5."""
    if not find():
        return {}
    program = bench.directory / "hdf5_one"
    if not program.exists():
        command = [os.environ.get("CC", "gcc"), "-std=gnu17", "-O2", "-D_GNU_SOURCE", str(WRITE)]
        command += [*flags("--cflags"), *flags("--libs"), "-o", str(program)]
        subprocess.run(command, check=True)
    found = {}
    for name, count, tracer in (
        ("h5_native_us", WRITES, []),
        ("h5_hooked_us", HOOKED_WRITES, bench.dftrace()),
        ("h5_unhooked_us", WRITES, bench.dftrace("-e", "!hdf5")),
    ):
        said = bench.run([*tracer, str(program), str(count), str(bench.directory / "one.h5")])
        found[name] = float(said.split()[0])
    return found
