/* A line as it is to be written: in another format, with other ids, without names. */
#ifndef CHECK_EDIT_H
#define CHECK_EDIT_H

#include "base/buf.h"
#include "check/anonymous.h"
#include "check/trace.h"

#include <stdbool.h>
#include <stdint.h>

struct edit {
	enum trace_format from;
	enum trace_format to;
	uint64_t id_shift; /* added to all ids, those of parents too */
	uint64_t
		next_id; /* not 0: the lines get ids of their own from here, as v2 lines need in v1 */
	uint64_t pid_shift;          /* added to process and thread ids */
	struct anonymous *anonymous; /* NULL: names stay */
	struct names *written;       /* NULL: names that were written are written again */
	uint64_t max_id;             /* written so far */
	bool metric;                 /* the line of v2 that names the unit of time is written */
	bool no_memory;
};

/* Appends the line or lines; nothing when it is to be left out. */
void edit_line(struct edit *edit, const struct line *line, struct buf *out);

/* Appends the end line that a process lacks. */
void edit_end(struct edit *edit, const struct trace *trace, const struct process *process,
	      struct buf *out);

#endif
