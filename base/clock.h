/* The one clock of a run. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

/* CLOCK_MONOTONIC shifted so that it agreed with CLOCK_REALTIME when the clock was made: it never
 * steps, and its values are times since the epoch. */
struct clock {
	int64_t offset; /* ns from monotonic to real time */
};

struct clock clock_new(void);

/* @return ns since the epoch. */
uint64_t clock_now(const struct clock *clock);

#endif
