#include "base/map.h"

#include <stdlib.h>

static size_t home(const struct map *m, uint64_t key)
{
	/* Fibonacci hashing: tids, descriptors and addresses come in runs. */
	return (size_t)((key * 0x9e3779b97f4a7c15U) >> 32) & (m->cap - 1);
}

/* The slot of `key`, or the empty one where it would go. */
static struct map_slot *find(const struct map *m, uint64_t key)
{
	size_t i = home(m, key);
	while (m->slots[i].value && m->slots[i].key != key)
		i = (i + 1) & (m->cap - 1);
	return &m->slots[i];
}

static int grow(struct map *m)
{
	struct map bigger = {.cap = m->cap ? m->cap * 2 : 16, .count = m->count};
	bigger.slots = calloc(bigger.cap, sizeof(*bigger.slots));
	if (!bigger.slots)
		return -1;
	for (size_t i = 0; i < m->cap; i++) {
		if (m->slots[i].value)
			*find(&bigger, m->slots[i].key) = m->slots[i];
	}
	free(m->slots);
	*m = bigger;
	return 0;
}

uint64_t map_hash(uint64_t hash, const char *text)
{
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3U;
	return hash;
}

void *map_get(const struct map *m, uint64_t key)
{
	return m->cap ? find(m, key)->value : NULL;
}

int map_put(struct map *m, uint64_t key, void *value)
{
	if ((m->count + 1) * 4 > m->cap * 3 && grow(m) < 0)
		return -1;
	struct map_slot *slot = find(m, key);
	if (!slot->value)
		m->count++;
	slot->key = key;
	slot->value = value;
	return 0;
}

void *map_remove(struct map *m, uint64_t key)
{
	if (!m->cap)
		return NULL;
	struct map_slot *slot = find(m, key);
	void *value = slot->value;
	if (!value)
		return NULL;
	m->count--;
	/* Close the gap: move back each follower whose home does not lie behind the gap. */
	size_t gap = (size_t)(slot - m->slots);
	for (size_t i = (gap + 1) & (m->cap - 1); m->slots[i].value; i = (i + 1) & (m->cap - 1)) {
		size_t h = home(m, m->slots[i].key);
		if (((i - h) & (m->cap - 1)) >= ((i - gap) & (m->cap - 1))) {
			m->slots[gap] = m->slots[i];
			gap = i;
		}
	}
	m->slots[gap].value = NULL;
	return value;
}

struct map_slot *map_next(const struct map *m, size_t *at)
{
	while (*at < m->cap) {
		struct map_slot *slot = &m->slots[(*at)++];
		if (slot->value)
			return slot;
	}
	return NULL;
}

void map_free(struct map *m)
{
	free(m->slots);
	*m = (struct map){0};
}

void map_free_values(struct map *m)
{
	struct map_slot *slot;
	size_t at = 0;

	while ((slot = map_next(m, &at)))
		free(slot->value);
	map_free(m);
}
