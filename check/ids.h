/* Which ids have been seen. Ids come nearly in order and nearly without gaps, so blocks that are full
 * take no memory. */
#ifndef CHECK_IDS_H
#define CHECK_IDS_H

#include "base/map.h"

#include <stdbool.h>
#include <stdint.h>

enum { IDS_BLOCK = 4096, IDS_BLOCKS = 1 << 16 };

struct ids_block {
	uint64_t bits[IDS_BLOCK / 64];
	unsigned count;
};

struct ids {
	struct map blocks;     /* by id / IDS_BLOCK; &full: no block any more */
	struct ids_block full; /* its address stands for a full block */
	struct ids_block *last;
	uint64_t last_key;
	unsigned allocated;
};

enum ids_answer { IDS_NEW, IDS_TWICE, IDS_WILD };

/* Adds an id. @return IDS_WILD when there are too many blocks, or no memory, to tell. */
enum ids_answer ids_add(struct ids *ids, uint64_t id);

void ids_free(struct ids *ids);

#endif
