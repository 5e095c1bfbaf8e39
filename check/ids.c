#include "check/ids.h"

#include <stdlib.h>

static struct ids_block *new_block(struct ids *ids, uint64_t key)
{
	struct ids_block *block = NULL;

	if (ids->allocated < IDS_BLOCKS)
		block = calloc(1, sizeof(*block));
	if (block && map_put(&ids->blocks, key, block) < 0) {
		free(block);
		return NULL;
	}
	ids->allocated += block != NULL;
	return block;
}

static struct ids_block *find_block(struct ids *ids, uint64_t key)
{
	if (ids->last && ids->last_key == key)
		return ids->last;
	struct ids_block *block = map_get(&ids->blocks, key);
	if (!block)
		block = new_block(ids, key);
	ids->last = block;
	ids->last_key = key;
	return block;
}

enum ids_answer ids_add(struct ids *ids, uint64_t id)
{
	uint64_t key = id / IDS_BLOCK;
	uint64_t bit = (uint64_t)1 << id % 64;
	struct ids_block *block = find_block(ids, key);

	if (!block)
		return IDS_WILD;
	if (block == &ids->full)
		return IDS_TWICE;
	uint64_t *word = &block->bits[id % IDS_BLOCK / 64];
	if (*word & bit)
		return IDS_TWICE;
	*word |= bit;
	if (++block->count == IDS_BLOCK && map_put(&ids->blocks, key, &ids->full) == 0) {
		free(block);
		ids->last = &ids->full;
		ids->allocated--;
	}
	return IDS_NEW;
}

void ids_free(struct ids *ids)
{
	struct map_slot *slot;
	size_t at = 0;

	while ((slot = map_next(&ids->blocks, &at))) {
		if (slot->value != &ids->full)
			free(slot->value);
	}
	map_free(&ids->blocks);
}
