#include "tracer/recorder/census.h"

#include "base/buf.h"

void census_add(struct recorder_census *sum, const struct recorder_census *census)
{
	sum->calls += census->calls;
	sum->full += census->full;
	sum->native += census->native;
	sum->stale += census->stale;
	for (int i = 0; i < WINDOW_REFUSED; i++)
		sum->forms[i] += census->forms[i];
	for (int i = 0; i < WINDOW_REFUSALS; i++)
		sum->refused[i] += census->refused[i];
	for (int i = 0; i < OFF_COUNT; i++)
		sum->off[i] += census->off[i];
}

static void add(struct buf *out, const char *what, uint64_t count)
{
	if (count)
		buf_addf(out, ", %s %llu", what, (unsigned long long)count);
}

void census_describe(const struct recorder_census *census, struct buf *out)
{
	static const char *const whys[OFF_COUNT] = {
		[OFF_EXCLUDED] = "--no-recorder",
		[OFF_GS] = "the program uses %gs",
		[OFF_FILTER] = "it has a seccomp filter of its own",
		[OFF_FILES] = "descriptors, directory and memory are shared differently",
		[OFF_ADDRESS] = "the agent's address is taken",
		[OFF_MEMORY] = "no memory for it",
		[OFF_WRITES] = "its memory cannot be written while it runs",
		[OFF_THREADS] = "too many threads",
		[OFF_EARLIER] = "it had threads before",
		[OFF_NO_SYNC] = "no membarrier for code",
		[OFF_FAULT] = "the program took away what it needs",
	};
	uint64_t patched = census->forms[WINDOW_BEFORE] + census->forms[WINDOW_AFTER];

	buf_addf(out, "%llu calls from %llu places", (unsigned long long)census->calls,
		 (unsigned long long)patched);
	if (patched)
		buf_addf(out, " (%llu before the call, %llu behind it)",
			 (unsigned long long)census->forms[WINDOW_BEFORE],
			 (unsigned long long)census->forms[WINDOW_AFTER]);
	add(out, "ring full", census->full);
	add(out, "signals", census->native);
	add(out, "stale", census->stale);
	for (int i = 0; i < WINDOW_REFUSALS; i++) {
		add(out, "refused", census->refused[i]);
		if (census->refused[i])
			buf_addf(out, ": %s", window_refusal((enum window_refusal)i));
	}
	for (int i = 0; i < OFF_COUNT; i++) {
		add(out, "off", census->off[i]);
		if (census->off[i])
			buf_addf(out, ": %s", whys[i]);
	}
}
