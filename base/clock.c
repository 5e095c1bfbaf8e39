#include "base/clock.h"

#include <time.h>

static int64_t read_ns(clockid_t id)
{
	struct timespec ts;
	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

struct clock clock_new(void)
{
	/* Real time is read between two readings of the monotonic clock, so that the offset is off
	 * by half the distance at most. */
	int64_t before = read_ns(CLOCK_MONOTONIC);
	int64_t real = read_ns(CLOCK_REALTIME);
	int64_t after = read_ns(CLOCK_MONOTONIC);
	return (struct clock){.offset = real - (before + (after - before) / 2)};
}

uint64_t clock_now(const struct clock *clock)
{
	return (uint64_t)(read_ns(CLOCK_MONOTONIC) + clock->offset);
}
