#!/usr/bin/env python3
"""Prints what tracing costs on this machine, as ratios against native, strace and ltrace.

Each round runs every variant once, so that a change of the machine's mood meets all of them; a ratio is
made within its round, and the table shows the median of the rounds and their range. Nothing here is a
test: a missed aim is printed, and the exit status stays 0 (other than when something did not run).
"""

import argparse
import gzip
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import annotate
import hdf5
import mpi
import proc
import recorder

# Where neighbours would decide: as many runs, each of so many calls less.
REPEATS = 8
# Calls per run: some tenths of a second each.
NATIVE_CALLS = 300_000
TRACED_CALLS = 30_000
STRACE_CALLS = 20_000
NATIVE_STREAM_CALLS = 10_000_000
STREAM_CALLS = 20_000
LTRACE_CALLS = 4_000
PRELOAD_CALLS = 200_000
UNPINNED_CALLS = 3_000
GETPPID_CALLS = 1_000_000
STARTS = 20
BIG_STARTS = 5
# A static program of the size of a solver's with MPI and HDF5 inside: functions, and bytes of each.
BIG_FUNCTIONS = 60_000
BIG_FUNCTION_SIZE = 660


class Bench:
    def __init__(self, build, directory):
        self.calls = str(build / "bench" / "calls")
        self.tracer = [str(build / "dftrace-run"), "-q"]
        self.directory = directory
        self.byte = directory / "byte"
        self.byte.write_bytes(b"x")
        self.preload = find_preload(build)
        self.cpu = {min(os.sched_getaffinity(0))}
        self.runs = 0

    def prefix(self):
        self.runs += 1
        return self.directory / f"run{self.runs}" / "t"

    def dftrace(self, *options):
        return [*self.tracer, "-o", str(self.prefix()), *options, "--"]

    def strace(self, what):
        return ["strace", "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null", "-e", f"trace={what}"]

    def ltrace(self, function):
        return ["ltrace", "-o", "/dev/null", "-e", function]

    def preloaded(self):
        """@return the environment in which DFTracer's own library records."""
        prefix = self.prefix()
        prefix.parent.mkdir()
        return os.environ | {
            "LD_PRELOAD": self.preload,
            "DFTRACER_ENABLE": "1",
            "DFTRACER_INIT": "PRELOAD",
            "DFTRACER_LOG_FILE": str(prefix),
            "DFTRACER_DATA_DIR": "all",
            "DFTRACER_INC_METADATA": "1",
            "DFTRACER_ENABLE_AGGREGATION": "0",
        }

    def make_big(self):
        """@return the path of a large static program that does nothing; None with a sentence."""
        source, code, out = (self.directory / name for name in ("big.c", "big.s", "big"))
        source.write_text(
            "#include <stdio.h>\n"
            "int main(int argc, char **argv) { return argc > 1 ? puts(argv[1]) : 0; }\n"
        )
        with code.open("w") as file:
            file.write(".text\n")
            for i in range(BIG_FUNCTIONS):
                name = f"solver_{i % 97}_mod_MOD_advance_block_{i}"
                file.write(
                    f".globl {name}\n.type {name},@function\n{name}:\n.cfi_startproc\n"
                    f".fill {BIG_FUNCTION_SIZE},1,0x90\nret\n.cfi_endproc\n"
                    f".size {name},.-{name}\n"
                )
            file.write('.section .note.GNU-stack,"",@progbits\n')
        command = [os.environ.get("CC", "gcc"), "-O2", "-static", "-o", out, source, code]
        made = subprocess.run(command, stderr=subprocess.PIPE, check=False)
        code.unlink()
        if made.returncode:
            said = made.stderr.decode().strip().splitlines()[-1:]
            print(f"bench: no large static program here: {said}", file=sys.stderr)
            return None
        return str(out)

    def run(self, command, pinned=False, env=None):
        """@return what the command printed; its failure ends the bench."""
        pin = (lambda: os.sched_setaffinity(0, self.cpu)) if pinned else None
        done = subprocess.run(command, stdout=subprocess.PIPE, preexec_fn=pin, check=False, env=env)
        if done.returncode:
            sys.exit(f"bench: exit status {done.returncode} from: {' '.join(command)}")
        return done.stdout.decode()

    def call_ns(self, tracer, call, count, pinned=False, env=None):
        file = "/dev/zero" if call == "fread" else str(self.byte)
        command = [*tracer, self.calls, call, str(count), file]
        return float(self.run(command, pinned, env))

    def best_ns(self, tracer, call, count):
        """All on one CPU, which others may use, too: the quickest of some short runs."""
        return min(self.call_ns(tracer(), call, count // REPEATS, True) for _ in range(REPEATS))

    def start_ns(self, tracer, program="true", starts=STARTS):
        """A program that does nothing, from its start until its status is there."""
        taken = []
        for _ in range(starts):
            start = time.perf_counter_ns()
            self.run([*tracer, shutil.which(program)])
            taken.append(time.perf_counter_ns() - start)
        return statistics.median(taken)

    def start_cpu_ms(self, program):
        """@return what the tracer says of its own time, which neighbours do not lengthen much."""
        command = [self.tracer[0], "-o", str(self.prefix()), "--", program]
        done = subprocess.run(command, stderr=subprocess.PIPE, check=False)
        said = re.search(rb"(\d+) ms tracer CPU", done.stderr)
        if not said:
            sys.exit(f"bench: no exit line from: {' '.join(command)}")
        return int(said[1])

    def memory_and_size(self, count):
        """@return (peak memory of the tracer in KiB, bytes on disk, events) of one process."""
        prefix = self.prefix()
        command = [*self.tracer, "-o", str(prefix), "--", self.calls, "pread", str(count)]
        program = subprocess.Popen([*command, str(self.byte)], stdout=subprocess.DEVNULL)
        tracer = peak = 0
        while program.poll() is None:
            # The program keeps its process, so it names its tracer.
            tracer = tracer or proc.field(f"/proc/{program.pid}/status", "TracerPid")
            if tracer:
                peak = max(peak, proc.field(f"/proc/{tracer}/status", "VmHWM"))
            time.sleep(0.005)
        if program.returncode:
            sys.exit(f"bench: exit status {program.returncode} from: {' '.join(command)}")
        # On a slow machine the last of the trace is written after the program's end.
        while tracer and Path(f"/proc/{tracer}").exists():
            time.sleep(0.005)
        files = list(prefix.parent.glob("*.pfw.gz"))
        if not files or not peak:
            sys.exit("bench: no trace was written, or its tracer was not seen")
        size = events = 0
        for file in files:
            size += file.stat().st_size
            with gzip.open(file, "rt") as lines:
                events += sum('"ph":"X"' in line for line in lines)
        if events < count:
            sys.exit(f"bench: {events} events of {count} calls")
        return peak, size, events


def find_preload(build):
    """@return DFTracer's own library, where the tests have installed it; None: nowhere."""
    return next(map(str, (build / "venv" / "preload").rglob("libdftracer_preload.so")), None)


def stream_figures(bench, has_ltrace):
    """A fread of one byte: without a stop, with two that are emulated, with two that are not."""
    native = bench.call_ns([], "fread", NATIVE_STREAM_CALLS)

    def stopped(*options):
        return bench.dftrace(*recorder.STOPS, *options)

    pinned = bench.best_ns(stopped, "fread", STREAM_CALLS)
    stepped = bench.best_ns(lambda: stopped("--no-emulation"), "fread", STREAM_CALLS)
    figures = {
        "stream_native_ns": native,
        "stream_us": bench.call_ns(stopped(), "fread", STREAM_CALLS) / 1e3,
        "stream_pinned_us": pinned / 1e3,
        "stream_stepped_us": stepped / 1e3,
        "stream_unhooked_ns": bench.call_ns(
            bench.dftrace("--no-stdio"), "fread", NATIVE_STREAM_CALLS
        ),
    }
    if has_ltrace:
        ltrace = bench.best_ns(lambda: bench.ltrace("fread"), "fread", LTRACE_CALLS)
        figures |= {
            "ltrace_us": ltrace / 1e3,
            "against_ltrace": pinned / ltrace,
            "stepped_against_ltrace": stepped / ltrace,
        }
    if bench.preload:
        figures["preload_us"] = (
            bench.call_ns([], "fread", PRELOAD_CALLS, env=bench.preloaded()) / 1e3
        )
    return figures


def one_round(bench, has_strace, has_ltrace, big, kinds):
    """@return the figures of one round, by name."""
    native = bench.call_ns([], "pread", NATIVE_CALLS)
    traced = bench.call_ns(bench.dftrace(*recorder.STOPS), "pread", TRACED_CALLS)
    pinned = bench.call_ns(bench.dftrace(*recorder.STOPS), "pread", TRACED_CALLS, pinned=True)
    untraced_native = bench.call_ns([], "getppid", GETPPID_CALLS)
    untraced = bench.call_ns(bench.dftrace(), "getppid", GETPPID_CALLS)
    figures = {
        "native_us": native / 1e3,
        "traced_us": traced / 1e3,
        "pinned_us": pinned / 1e3,
        "added_us": (traced - native) / 1e3,
        "against_native": traced / native,
        "untraced_ns": untraced - untraced_native,
    }
    figures |= stream_figures(bench, has_ltrace)
    figures |= recorder.figures(bench, kinds)
    start = bench.start_ns(bench.dftrace())
    figures["start_native_ms"] = bench.start_ns([]) / 1e6
    figures["start_ms"] = start / 1e6
    if big:
        figures |= {
            "big_native_ms": bench.start_ns([], big, BIG_STARTS) / 1e6,
            "big_unhooked_ms": bench.start_ns(bench.dftrace("--no-stdio"), big, BIG_STARTS) / 1e6,
            "big_ms": bench.start_ns(bench.dftrace(), big, BIG_STARTS) / 1e6,
            "big_cpu_ms": bench.start_cpu_ms(big),
        }
    if has_strace:
        alone = bench.call_ns(bench.strace("pread64"), "pread", UNPINNED_CALLS)
        beside = bench.call_ns(bench.strace("pread64"), "pread", STRACE_CALLS, pinned=True)
        strace_untraced = bench.call_ns(bench.strace("pread64"), "getppid", GETPPID_CALLS)
        strace_start = bench.start_ns(bench.strace("%file,%desc"))
        figures |= {
            "strace_us": alone / 1e3,
            "strace_pinned_us": beside / 1e3,
            "against_strace": traced / alone,
            "against_strace_pinned": traced / beside,
            "strace_untraced_ns": strace_untraced - untraced_native,
            "strace_start_ms": strace_start / 1e6,
            "start_against_strace": start / strace_start,
        }
    peak, size, events = bench.memory_and_size(NATIVE_CALLS // 2)
    figures["peak_mib"] = peak / 1024
    figures["event_bytes"] = size / events
    return figures | annotate.figures(bench) | mpi.figures(bench) | hdf5.figures(bench)


# Name, what is shown, format, and the aim: at most that much.
TABLE = [
    ("native_us", "1-byte pread, native, us", "{:.2f}", None),
    ("traced_us", "  stopped by dftrace-run, us", "{:.2f}", None),
    ("pinned_us", "  stopped by dftrace-run, both on one CPU, us", "{:.2f}", None),
    ("strace_us", "  under strace -f --seccomp-bpf, us", "{:.2f}", None),
    ("strace_pinned_us", "  under the same strace, both on one CPU, us", "{:.2f}", None),
    ("added_us", "added to a call that stops, us", "{:.2f}", None),
    ("against_native", "call that stops against native", "{:.1f}x", None),
    ("against_strace", "call that stops against strace", "{:.2f}x", 0.25),
    ("against_strace_pinned", "call that stops against strace on one CPU", "{:.2f}x", 0.75),
    ("stream_native_ns", "1-byte fread from a buffer, native, ns", "{:.1f}", None),
    ("stream_unhooked_ns", "  under dftrace-run --no-stdio, ns", "{:.1f}", None),
    ("stream_us", "  hooked, with stops, us", "{:.2f}", None),
    ("stream_pinned_us", "  the same, both on one CPU, us", "{:.2f}", None),
    ("stream_stepped_us", "  the same, nothing emulated, us", "{:.2f}", None),
    ("ltrace_us", "  under ltrace, both on one CPU, us", "{:.2f}", None),
    ("preload_us", "  with DFTracer's preload library, us", "{:.2f}", None),
    ("against_ltrace", "hooked fread against ltrace, on one CPU", "{:.2f}x", 0.35),
    ("stepped_against_ltrace", "  the same, nothing emulated", "{:.2f}x", None),
    ("untraced_ns", "added to a call that is not traced, ns", "{:.0f}", 60),
    ("strace_untraced_ns", "  by strace, ns", "{:.0f}", None),
    ("start_native_ms", "start and end of true, native, ms", "{:.2f}", None),
    ("start_ms", "  under dftrace-run, ms", "{:.2f}", None),
    ("strace_start_ms", "  under strace (%file,%desc), ms", "{:.2f}", None),
    ("start_against_strace", "start and end of true against strace", "{:.2f}x", 1.0),
    ("big_native_ms", "start and end of a 46 MB static program, ms", "{:.2f}", None),
    ("big_unhooked_ms", "  under dftrace-run --no-stdio, ms", "{:.2f}", None),
    ("big_ms", "  under dftrace-run, streams hooked, ms", "{:.2f}", 50),
    ("big_cpu_ms", "  the tracer's own CPU time of that, ms", "{:.0f}", None),
    ("event_bytes", "bytes on disk per event, preads", "{:.1f}", 10),
    ("peak_mib", "peak memory of the tracer, one process, MiB", "{:.1f}", 16),
]


def print_markdown(rounds):
    """The same table as README.md has it."""
    print("| what | median | range |\n|---|---|---|")
    for _, title, form, _, values in rows(rounds):
        title = ("… " if title.startswith(" ") else "") + title.strip()
        low, middle, high = (form.format(f(values)) for f in (min, statistics.median, max))
        print(f"| {title} | {middle} | {low} to {high} |")


def rows(rounds):
    """Yields the table's rows that have values, with these."""
    for name, title, form, aim in TABLE + recorder.TABLE + annotate.TABLE + mpi.TABLE + hdf5.TABLE:
        values = [figures[name] for figures in rounds if name in figures]
        if values:
            yield name, title, form, aim, values


def print_table(rounds):
    row = "{:51}{:>10}{:>20}{:>10}  {}"
    print(row.format("", "median", "range", "aim", ""))
    for _, title, form, aim, values in rows(rounds):
        middle = statistics.median(values)
        spread = f"{form.format(min(values))} - {form.format(max(values))}"
        aimed = "" if aim is None else "<= " + form.format(aim)
        verdict = "" if aim is None else "met" if middle <= aim else "MISSED"
        print(row.format(title, form.format(middle), spread, aimed, verdict).rstrip())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=Path("build"), help="build directory")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=["recorder"], help="these rows only")
    parser.add_argument("--markdown", action="store_true", help="the table as README.md has it")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds: at least 1")
    has_strace = shutil.which("strace") is not None
    if not has_strace:
        print("bench: strace is not installed: the rows against it are left out", file=sys.stderr)
    if not mpi.find():
        print("bench: there is no MPI: the rows on messages are left out", file=sys.stderr)
    if not hdf5.find():
        print("bench: there is no HDF5: the rows on it are left out", file=sys.stderr)
    has_ltrace = shutil.which("ltrace") is not None
    if not has_ltrace:
        print("bench: ltrace is not installed: the rows against it are left out", file=sys.stderr)
    rounds = []
    with tempfile.TemporaryDirectory(prefix="dftrace-bench-") as directory:
        bench = Bench(options.build.resolve(), Path(directory))
        if not bench.preload:
            print("bench: no preload library of DFTracer's here: make test", file=sys.stderr)
        big = None if options.only else bench.make_big()
        kinds = recorder.make_kinds(bench)
        for number in range(options.rounds):
            print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
            if options.only:
                rounds.append(recorder.figures(bench, kinds))
            else:
                rounds.append(one_round(bench, has_strace, has_ltrace, big, kinds))
    cpus = len(os.sched_getaffinity(0))
    print(f"{cpus} CPUs, Linux {os.uname().release}, {options.rounds} rounds, interleaved")
    if options.markdown:
        print_markdown(rounds)
    else:
        print_table(rounds)


if __name__ == "__main__":
    main()
