/* What a trace holds, in numbers. */
#ifndef CHECK_TALLY_H
#define CHECK_TALLY_H

#include "check/line.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	TALLY_CATEGORIES = 32, /* the last one takes all that are too many */
	TALLY_COUNTS = 32,
	TALLY_NAME = 32,
};

struct tally_category {
	char name[TALLY_NAME];
	uint64_t events;
	uint64_t errors; /* calls that failed */
	uint64_t read;
	uint64_t written;
};

/* A count that the trace itself has: lost:what, skipped:what. */
struct tally_count {
	char name[TALLY_NAME];
	uint64_t count;
};

struct tally {
	struct tally_category categories[TALLY_CATEGORIES];
	unsigned ncategories;
	unsigned last; /* the category of the event before */
	struct tally_count counts[TALLY_COUNTS];
	unsigned ncounts;
	uint64_t events;   /* without start and end */
	uint64_t counters; /* aggregated events and counters of v2 */
	uint64_t metadata;
	uint64_t first; /* earliest start in ns since the epoch; UINT64_MAX: none */
	uint64_t end;   /* latest end */
};

void tally_init(struct tally *tally);

/* @return the category's row, made when it is new. */
struct tally_category *tally_category(struct tally *tally, struct text name);

/* @return the row of a category by its name in any case, NULL when there is none. */
const struct tally_category *tally_find(const struct tally *tally, const char *name);

/* Adds to the count of a name, which is cut where it is too long. */
void tally_add_count(struct tally *tally, struct text name, uint64_t count);

/* @return the sum of the counts whose names begin so. */
uint64_t tally_counted(const struct tally *tally, const char *prefix);

/* Adds one tally to another. */
void tally_add(struct tally *sum, const struct tally *tally);

/* Bytes of POSIX and STDIO, which do not stand above each other. */
void tally_bytes(const struct tally *tally, uint64_t *read, uint64_t *written);

#endif
