/* Lines of a trace, as text. */
#ifndef WRITER_LINE_H
#define WRITER_LINE_H

#include "base/buf.h"
#include "writer/event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/types.h>

/* What all lines of a run have in common. */
struct line_format {
	bool v2;
	bool metadata; /* false: events without args */
	uint64_t host_hash;
};

/* The part of a line that says whose it is: `,"pid":P,"tid":T`. */
struct line_ids {
	size_t len;
	char text[40]; /* two numbers of 11 bytes and 14 of text */
};

void line_ids(struct line_ids *ids, pid_t pid, pid_t tid);

/* A metadata line. */
struct line_record {
	uint64_t id;      /* not written in v2 */
	const char *kind; /* HH, FH, PR, … */
	const char *name;
	size_t name_len;
	const char *value; /* NULL: the hash */
	uint64_t hash;
};

/* Appends the line; nothing when `out` fails. */
void line_record(struct buf *out, const struct line_format *format, const struct line_ids *ids,
		 const struct line_record *record);

/* Appends an event's line; nothing when `out` fails. An event with level 0 has neither level nor
 * p_idx; a name argument without a name is left out. The names that it refers to must have been
 * hashed and written. */
void line_event(struct buf *out, const struct line_format *format, const struct line_ids *ids,
		const struct event *event);

#endif
