/* What the recorder has done in a process, and what not. */
#ifndef TRACER_RECORDER_CENSUS_H
#define TRACER_RECORDER_CENSUS_H

#include "tracer/recorder/window.h"

#include <stdint.h>

struct buf;

/* Why a process, or a thread of it, has no recorder. */
enum off {
	OFF_EXCLUDED,
	OFF_GS,     /* the program uses %gs itself */
	OFF_FILTER, /* it has a seccomp filter of its own */
	OFF_FILES, /* its descriptors, or its cwd, are not those of all who share its memory, and of nobody else */
	OFF_ADDRESS, /* something lies where the agent has to */
	OFF_MEMORY,  /* no memory for it: limits, policies */
	OFF_WRITES,  /* no way to write a byte of its memory while it runs */
	OFF_THREADS, /* more threads than rings */
	OFF_EARLIER, /* it had threads before it could be prepared for them */
	OFF_NO_SYNC, /* the kernel cannot make other CPUs see new code */
	OFF_FAULT,   /* the agent cannot run: no time stamp counter, or its memory is gone */
	OFF_COUNT,
};

struct recorder_census {
	uint64_t calls;                 /* that were recorded */
	uint64_t full;                  /* … or not, for lack of room in the ring */
	uint64_t native;                /* threads made native before a signal */
	uint64_t stale;                 /* jumps that were not there any more */
	uint64_t forms[WINDOW_REFUSED]; /* places patched */
	uint64_t refused[WINDOW_REFUSALS];
	uint64_t off[OFF_COUNT];
};

void census_add(struct recorder_census *sum, const struct recorder_census *census);

/* Appends it in one line: "5000 calls from 3 places (2 before the call, 1 behind it)", and what else there was. */
void census_describe(const struct recorder_census *census, struct buf *out);

#endif
