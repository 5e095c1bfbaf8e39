"""What calls cost that are recorded inside the program: in each kind of program, in threads, in real ones, in memory."""

import gzip
import shutil
import subprocess
import sys
import time
from pathlib import Path

import proc

HERE = Path(__file__).parent
# How the program is made, by kind.
KINDS = {
    "dynamic": ["gcc", "-O2", "-pthread"],
    "static": ["gcc", "-O2", "-pthread", "-static"],
    "static_pie": ["gcc", "-O2", "-pthread", "-static-pie"],
    "musl": ["musl-gcc", "-O2", "-pthread", "-static"],
    "gfortran": ["gfortran", "-O2", "-static"],
}
# Of 2,000 calls each, with pauses in which the tracer catches up.
BURSTS = 40
STOPS_BURSTS = 8
PRELOAD_BURSTS = 20
LONG_CALLS = 300_000
SUSTAINED_CALLS = 5_000_000
CHILDREN = 1_000
TREE = "/usr/include"

RECORDER = ["--capture", "recorder"]
STOPS = ["--capture", "stops"]

# Name, what is shown, format, and the aim: at most that much.
TABLE = [
    *(
        row
        for kind, title in (
            ("dynamic", "dynamic"),
            ("static", "static"),
            ("static_pie", "static-PIE"),
            ("musl", "static with musl"),
            ("gfortran", "static, gfortran"),
        )
        for row in (
            (f"recorder_{kind}_native_ns", f"1-byte pread, {title}, native, ns", "{:.0f}", None),
            (f"recorder_{kind}_ns", "  added by --capture recorder, ns", "{:.0f}", 200),
            (f"recorder_{kind}_stops_ns", "  added by --capture stops, ns", "{:.0f}", None),
            (f"recorder_{kind}_against_stops", "  recorder against stops", "{:.3f}x", 0.02),
        )
    ),
    ("recorder_preload_ns", "  added by DFTracer's library, dynamic, ns", "{:.0f}", None),
    ("recorder_against_preload", "  recorder against DFTracer's library", "{:.3f}x", 0.1),
    ("recorder_pair_native_ns", "open and close, native, ns", "{:.0f}", None),
    ("recorder_pair_ns", "  added by --capture recorder, ns", "{:.0f}", 600),
    ("recorder_threads_native_ns", "pread in 4 threads, native, CPU ns", "{:.0f}", None),
    ("recorder_threads_ns", "  added by --capture recorder, CPU ns", "{:.0f}", 200),
    ("recorder_long_us", "pread in a loop without end, recorder, us", "{:.2f}", None),
    ("recorder_tar_native_s", f"tar of {TREE}, native, s", "{:.2f}", None),
    ("recorder_tar", "  recorder, trace written, against native", "{:.2f}x", 1.15),
    ("recorder_starts_stops_s", "1,000 x true, --capture stops, s", "{:.2f}", None),
    ("recorder_starts", "  recorder against stops", "{:.2f}x", 1.0),
    ("recorder_sustained", "events/s without end, on disk and read back", "{:.0f}", None),
    ("recorder_memory_mib", "memory of program and tracer, 4 threads: more, MiB", "{:.2f}", 6),
    ("recorder_cold_mib", "  without a hot place: more, MiB", "{:.2f}", 0.25),
]


def make_kinds(bench):
    """@return the program in each kind that can be made here."""
    made = {}
    for kind, compiler in KINDS.items():
        out = str(bench.directory / f"calls.{kind}")
        source = HERE / ("calls.f90" if kind == "gfortran" else "calls.c")
        language = [] if kind == "gfortran" else ["-D_GNU_SOURCE"]
        command = [*compiler, *language, "-o", out, str(source)]
        if shutil.which(compiler[0]) and not subprocess.run(command, check=False).returncode:
            made[kind] = out
        else:
            print(f"bench: no program of kind {kind} here: its rows are left out", file=sys.stderr)
    return made


def watched(bench, options, command, env=None):
    """Runs a program until its tracer has gone, too.
    @return (s, KiB that program and tracer had at most, directory of the trace)."""
    prefix = bench.prefix()
    args = [*bench.tracer, "-o", str(prefix), *options, "--", *command]
    start = time.perf_counter()
    program = subprocess.Popen(args, stdout=subprocess.DEVNULL, env=env)
    tracer = 0
    peaks = {}
    while program.poll() is None:
        # The program keeps its process, so it names its tracer.
        tracer = tracer or proc.field(f"/proc/{program.pid}/status", "TracerPid")
        for pid in (program.pid, tracer):
            if pid:
                peak = proc.field(f"/proc/{pid}/status", "VmHWM")
                peaks[pid] = max(peaks.get(pid, 0), peak)
        time.sleep(0.002)
    if program.returncode:
        sys.exit(f"bench: exit status {program.returncode} from: {' '.join(args)}")
    while tracer and Path(f"/proc/{tracer}").exists():
        time.sleep(0.002)
    return time.perf_counter() - start, sum(peaks.values()), prefix.parent


def events_of(directory, name):
    """@return how many events of a name the traces below a directory have."""
    count = 0
    for file in directory.glob("*.pfw.gz"):
        with gzip.open(file, "rb") as lines:
            count += sum(b'"name":"' + name + b'"' in line for line in lines)
    return count


def call_figures(bench, kinds):
    """One pread, in bursts that fit a ring."""
    figures = {}

    def burst(tracer, program, what="burst", count=BURSTS, **more):
        return float(bench.run([*tracer, program, what, str(count), str(bench.byte)], **more))

    for kind, program in kinds.items():
        native = burst([], program)
        recorded = burst(bench.dftrace(*RECORDER), program) - native
        stops = burst(bench.dftrace(*STOPS), program, count=STOPS_BURSTS) - native
        figures |= {
            f"recorder_{kind}_native_ns": native,
            f"recorder_{kind}_ns": recorded,
            f"recorder_{kind}_stops_ns": stops,
            f"recorder_{kind}_against_stops": recorded / stops,
        }
    if "dynamic" not in kinds:
        return figures
    dynamic = kinds["dynamic"]
    if bench.preload:
        library = burst([], dynamic, count=PRELOAD_BURSTS, env=bench.preloaded())
        library -= figures["recorder_dynamic_native_ns"]
        figures["recorder_preload_ns"] = library
        figures["recorder_against_preload"] = figures["recorder_dynamic_ns"] / library
    for name, what in (("pair", "pairs"), ("threads", "threads")):
        native = burst([], dynamic, what)
        figures[f"recorder_{name}_native_ns"] = native
        figures[f"recorder_{name}_ns"] = burst(bench.dftrace(*RECORDER), dynamic, what) - native
    command = [*bench.dftrace(*RECORDER), dynamic, "pread", str(LONG_CALLS), str(bench.byte)]
    figures["recorder_long_us"] = float(bench.run(command)) / 1e3
    return figures


def program_figures(bench):
    """Real programs, from their start until the trace is written."""
    tar = ["tar", "-cf", str(bench.directory / "tar"), "-C", TREE, "."]
    # Not against a cold cache.
    bench.run(tar)
    start = time.perf_counter()
    bench.run(tar)
    native = time.perf_counter() - start
    traced = watched(bench, RECORDER, tar)[0]
    loop = f"i=0; while [ $i -lt {CHILDREN} ]; do /bin/true; i=$((i+1)); done"
    stops = watched(bench, STOPS, ["sh", "-c", loop])[0]
    recorder = watched(bench, RECORDER, ["sh", "-c", loop])[0]
    return {
        "recorder_tar_native_s": native,
        "recorder_tar": traced / native,
        "recorder_starts_stops_s": stops,
        "recorder_starts": recorder / stops,
    }


def long_run_figures(bench, program):
    """What is sustained, and what it takes in memory."""
    command = [program, "pread", str(SUSTAINED_CALLS), str(bench.byte)]
    taken, _, directory = watched(bench, RECORDER, command)
    events = events_of(directory, b"pread")
    # The loader reads, too.
    if not SUSTAINED_CALLS <= events <= SUSTAINED_CALLS + 10:
        sys.exit(f"bench: {events} events of {SUSTAINED_CALLS} calls")
    shutil.rmtree(directory)

    def more(*words):
        command = [program, *words, str(bench.byte)]
        one = watched(bench, STOPS, command)[1]
        return (watched(bench, RECORDER, command)[1] - one) / 1024

    return {
        "recorder_sustained": events / taken,
        "recorder_memory_mib": more("threads", str(STOPS_BURSTS)),
        "recorder_cold_mib": more("getppid", "3000000"),
    }


def figures(bench, kinds):
    """@return the figures of one round, by name."""
    found = call_figures(bench, kinds) | program_figures(bench)
    if "dynamic" in kinds:
        found |= long_run_figures(bench, kinds["dynamic"])
    return found
