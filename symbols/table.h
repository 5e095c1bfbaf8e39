/* Indirect jumps: those through the table of a switch stay in the function. */
#ifndef SYMBOLS_TABLE_H
#define SYMBOLS_TABLE_H

#include "symbols/walk.h"

enum table_kind {
	TABLE_NONE,    /* the jump leaves the function */
	TABLE_FOUND,   /* it goes through this table, whose extent is known */
	TABLE_UNKNOWN, /* it stays in the function */
	TABLE_MAYBE,   /* one or the other */
};

struct table {
	uint64_t address;
	uint64_t base;      /* what is added to entries that are not addresses */
	size_t count;       /* 0: unknown */
	unsigned char size; /* of an entry: 1, 2, 4 (signed, relative), or 8: an address */
};

/* What the indirect jump at `step` is, judged by the instructions that lead to it. */
enum table_kind table_find(const struct walk *walk, size_t step, struct table *table);

/* @return whether entry `i` could be read: the address it leads to. */
bool table_entry(const struct walk *walk, const struct table *table, size_t i, uint64_t *target);

#endif
