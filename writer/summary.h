/* What the events of a run add up to: calls by category and name, files by bytes. It takes finished events, as the
 * trace does, in whole microseconds, as the trace has them, so that both agree.
 *
 * Memory is bounded: beyond some thousands of files those with the fewest bytes are added up as one, and beyond as
 * many functions the new ones. */
#ifndef WRITER_SUMMARY_H
#define WRITER_SUMMARY_H

#include "base/buf.h"
#include "writer/event.h"

#include <stdbool.h>
#include <stdint.h>

struct summary;

/* @return an empty summary, NULL with errno ENOMEM. */
struct summary *summary_new(void);

/* Adds an event. What there is no memory for is counted with the others. */
void summary_add(struct summary *summary, const struct event *event);

/* Adds what another one holds, and one process image. */
void summary_add_image(struct summary *summary, const struct summary *image);

/* @return events added so far. */
uint64_t summary_events(const struct summary *summary);

struct summary_style {
	const char *title; /* of the table: whose it is */
	bool all_files;    /* else those with the most bytes */
};

/* Appends the table, or the same as one JSON object. */
void summary_print(struct buf *out, const struct summary *summary,
		   const struct summary_style *style);
void summary_print_json(struct buf *out, const struct summary *summary);

/* NULL is allowed. */
void summary_free(struct summary *summary);

#endif
