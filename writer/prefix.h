/* The prefix of traces, in which %r stands for the rank, %h for the host, %p for the process id, %j for the
 * job, %% for a percent sign. */
#ifndef WRITER_PREFIX_H
#define WRITER_PREFIX_H

#include "base/buf.h"

#include <stdbool.h>

#define PREFIX_NONE "none"

/* NULL: not known; PREFIX_NONE is written. A slash or a control character in them is written as
 * an underscore. */
struct prefix_values {
	const char *rank;
	const char *host;
	const char *pid;
	const char *job;
};

/* @return what is wrong: the % of an expansion that is unknown; NULL: nothing. */
const char *prefix_check(const char *prefix);

/* Appends the prefix with its expansions made. */
void prefix_expand(struct buf *out, const char *prefix, const struct prefix_values *values);

/* Appends text so that prefix_expand gives it back. */
void prefix_escape(struct buf *out, const char *text);

/* @return the length of the prefix up to the first part that differs between the processes of a rank's host:
 * the directories that can be made beforehand end there. */
size_t prefix_common(const char *prefix);

#endif
