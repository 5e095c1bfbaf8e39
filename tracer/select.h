/* Which calls are recorded: the layers, classes and names of `-e`. */
#ifndef TRACER_SELECT_H
#define TRACER_SELECT_H

#include "base/buf.h"

#include <stdbool.h>

#define SELECTION_MAX_ROWS    512
#define SELECTION_MAX_STREAMS 128

struct selection {
	bool rows[SELECTION_MAX_ROWS]; /* by row of the syscall table */
	bool ipc;                      /* calls on terminals, pipes and other anonymous files */
	bool network;                  /* calls on sockets */
	bool streams[SELECTION_MAX_STREAMS]; /* by row of the stdio table */
	bool memory;                         /* mmap without a file */
	bool traps;    /* breakpoints are placed: what becomes of SIGTRAP is followed */
	bool replaced; /* a bare item has replaced the default set */
};

/* The default set of the trace contract. */
void selection_default(struct selection *selection);

/* Applies `[trace=]ITEM,…`, left to right: a bare ITEM replaces the default set (once; the next bare
 * one joins it), `+ITEM` adds, `!ITEM` removes. ITEM is a layer (`posix`), a `%class` or a call's name,
 * the trace's or the kernel's.
 * @return 0, or -1 with one sentence in `error` that says which items are known. */
int selection_apply(struct selection *selection, const char *items, struct buf *error);

/* @return whether any call of a stream is recorded. */
bool selection_has_streams(const struct selection *selection);

/* Lists the classes with what they hold, for --help and the manual: one call per class, in order.
 * @return false behind the last one. `on`: part of the default set. */
bool selection_class(unsigned index, const char **name, const char **what, bool *on);

#endif
