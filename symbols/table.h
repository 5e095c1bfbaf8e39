/* Indirect jumps: those through the table of a switch stay in the function. */
#ifndef SYMBOLS_TABLE_H
#define SYMBOLS_TABLE_H

#include "symbols/walk.h"

/* A jump through more is one that stays in the function, nobody knows where. */
#define TABLE_MOST 8

struct table {
	uint64_t address;
	uint64_t base;      /* what is added to entries that are not addresses */
	size_t count;       /* 0: unknown */
	unsigned char size; /* of an entry: 1, 2, 4 (signed, relative), or 8: an address */
};

/* Where a jump may lead to: all of this. */
struct table_set {
	struct table tables[TABLE_MOST]; /* no two the same */
	unsigned count;
	bool leaves;  /* out of the function */
	bool unknown; /* to some place in the function */
};

/* What the indirect jump at `step` is, judged by the instructions on all the ways to it that are known so far. */
void table_find(struct walk *walk, size_t step, struct table_set *set);

/* @return whether entry `i` could be read: the address it leads to. */
bool table_entry(const struct walk *walk, const struct table *table, size_t i, uint64_t *target);

#endif
