/* Which calls are recorded: the layers, classes and names of `-e`. */
#ifndef TRACER_SELECT_H
#define TRACER_SELECT_H

#include "base/buf.h"
#include "symbols/hooks.h"

#include <stdbool.h>

#define SELECTION_MAX_ROWS 512

struct selection {
	bool rows[SELECTION_MAX_ROWS]; /* by row of the syscall table */
	bool ipc;                      /* calls on terminals, pipes and other anonymous files */
	bool network;                  /* calls on sockets */
	bool hooks[HOOK_LAYERS][HOOK_MOST_ROWS]; /* by row of each layer's table */
	bool memory;                             /* mmap without a file */
	bool traps;    /* breakpoints are placed: what becomes of SIGTRAP is followed */
	bool jumps;    /* … or jumps: code that is moved, and all signals of forced.h */
	bool replaced; /* a bare item has replaced the default set */
};

/* The default set of the trace contract. */
void selection_default(struct selection *selection);

/* Applies `[trace=]ITEM,…`, left to right: a bare ITEM replaces the default set (once; the next bare
 * one joins it), `+ITEM` adds, `!ITEM` removes. ITEM is a layer (`posix`, `stdio`, `mpi`), a group of one
 * (`mpi:p2p`; `mpi:all`: everything), a `%class` or a call's name, the trace's or the kernel's.
 * @return 0, or -1 with one sentence in `error` that says which items are known. */
int selection_apply(struct selection *selection, const char *items, struct buf *error);

/* @return whether any function of the layer is recorded. */
bool selection_has_layer(const struct selection *selection, enum hook_layer layer);

/* Appends what is recorded: classes and layers, and how much of them where it is not all, as in
 * "%data %desc(1 of 20) stdio". */
void selection_describe(const struct selection *selection, struct buf *out);

/* Lists the classes with what they hold, for --help and the manual: one call per class, in order.
 * @return false behind the last one. `on`: part of the default set. */
bool selection_class(unsigned index, const char **name, const char **what, bool *on);

#endif
