/* The list of --ranks: 0,4-7,%16,first-per-node. */
#ifndef LAUNCHERS_RANK_LIST_H
#define LAUNCHERS_RANK_LIST_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

struct rank_item {
	long first; /* to last, by step */
	long last;
	long step;
	bool first_per_node; /* the others do not count */
};

struct rank_list {
	struct rank_item *items;
	size_t count; /* 0: every rank */
};

/* Adds what a word of the command line lists. @return 0, or -1 with one sentence in `error`. */
int rank_list_add(struct rank_list *list, const char *word, struct buf *error);

/* @return whether some item asks for the rank within the node. */
bool rank_list_wants_local(const struct rank_list *list);

/* @return whether a rank is listed. `local_rank`: within its node, -1: not known. */
bool rank_list_has(const struct rank_list *list, long rank, long local_rank);

void rank_list_free(struct rank_list *list);

#endif
