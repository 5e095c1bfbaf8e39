#include "base/nearest.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* The number of single-character changes between two words: insert, remove, replace. */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[64];
	size_t len = strlen(b);

	if (len >= sizeof(row) / sizeof(row[0]))
		return UINT_MAX;
	for (size_t j = 0; j <= len; j++)
		row[j] = (unsigned)j;
	for (size_t i = 1; *a; a++, i++) {
		unsigned diagonal = row[0];
		row[0] = (unsigned)i;
		for (size_t j = 1; j <= len; j++) {
			unsigned best = diagonal + (*a != b[j - 1]);
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			diagonal = row[j];
			row[j] = best;
		}
	}
	return row[len];
}

void nearest_try(struct nearest *nearest, const char *meant, const char *known)
{
	unsigned d = distance(meant, known);
	bool contained = strlen(meant) > 2 && (strstr(known, meant) || strstr(meant, known));

	if ((!nearest->word || d < nearest->distance) && (contained || d <= 2)) {
		nearest->word = known;
		nearest->distance = d;
	}
}
