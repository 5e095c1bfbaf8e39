"""What an annotated function costs: DFTracer's macros by the stub of examples/annotate, alone and traced."""

import os
import subprocess
from pathlib import Path

STUB = Path(__file__).resolve().parent.parent / "examples" / "annotate"
# Where neighbours would decide: as many runs, the quickest counts.
REPEATS = 8
NATIVE_CALLS = 1_000_000
TRACED_CALLS = 2_000

SOURCE = """
#include <dftracer/dftracer.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

__attribute__((noinline)) static void annotated(void)
{
	DFTRACER_C_FUNCTION_START();
	DFTRACER_C_FUNCTION_END();
}

int main(int argc, char **argv)
{
	struct timespec a, b;
	long count = argc > 1 ? atol(argv[1]) : 1;

	clock_gettime(CLOCK_MONOTONIC, &a);
	for (long i = 0; i < count; i++)
		annotated();
	clock_gettime(CLOCK_MONOTONIC, &b);
	printf("%f\\n", ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / (double)count);
	return 0;
}
"""

TABLE = [
    ("annotated_native_ns", "an annotated function, native, ns", "{:.1f}", 20),
    ("annotated_us", "  under dftrace-run, us", "{:.2f}", None),
    ("annotated_pinned_us", "  under dftrace-run, both on one CPU, us", "{:.2f}", 25),
]


def build(bench):
    """@return the program's path, built once."""
    out = bench.directory / "annotated"
    if not out.exists():
        source = bench.directory / "annotated.c"
        source.write_text(SOURCE, encoding="utf-8")
        compiler = os.environ.get("CC", "gcc")
        command = [compiler, "-O2", "-static", f"-I{STUB}", source, STUB / "dftracer_stub.c", "-o", out]
        subprocess.run(command, check=True)
    return str(out)


def figures(bench):
    """@return the figures of one round, by name."""
    program = build(bench)

    def taken(tracer, count, pinned=False):
        return min(
            float(bench.run([*tracer(), program, str(count)], pinned)) for _ in range(REPEATS)
        )

    return {
        "annotated_native_ns": taken(list, NATIVE_CALLS),
        "annotated_us": taken(bench.dftrace, TRACED_CALLS) / 1e3,
        "annotated_pinned_us": taken(bench.dftrace, TRACED_CALLS, pinned=True) / 1e3,
    }
