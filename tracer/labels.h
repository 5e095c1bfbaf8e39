/* What traces say of a process that comes from outside of it: its rank, its job. An image passes it on to its
 * children and to the programs that it executes. */
#ifndef TRACER_LABELS_H
#define TRACER_LABELS_H

#include <stddef.h>

enum {
	LABELS_MOST = 12,
};

struct label {
	const char *key; /* lives as long as the tracer */
	char *value;
};

/* Reference-counted, not changed once a process has it. */
struct labels {
	unsigned refs;
	size_t count;
	struct label items[LABELS_MOST];
};

/* @return no labels yet, with one reference; NULL with errno ENOMEM. */
struct labels *labels_new(void);
/* @return others with the same contents, NULL with errno ENOMEM. `labels` may be NULL. */
struct labels *labels_copy(const struct labels *labels);
struct labels *labels_ref(struct labels *labels);
void labels_unref(struct labels *labels);

/* Adds a label, or replaces its value; a value of NULL is none. Beyond LABELS_MOST it is left out.
 * @return 0, or -1 with errno ENOMEM. */
int labels_set(struct labels *labels, const char *key, const char *value);

/* @return a label's value, NULL: none; `labels` may be NULL. */
const char *labels_get(const struct labels *labels, const char *key);

#endif
