/* A hash map from 64-bit keys to pointers: open addressing, linear probing. */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_slot {
	uint64_t key;
	void *value; /* NULL: empty */
};

/* A zeroed map is an empty one. */
struct map {
	struct map_slot *slots;
	size_t cap; /* a power of two, or 0 */
	size_t count;
};

/* What map_hash begins with. */
#define MAP_HASH 0xcbf29ce484222325U

/* @return a key made of the text and of `hash`, what came before it (FNV-1a). */
uint64_t map_hash(uint64_t hash, const char *text);

/* @return the value of `key`, NULL if it has none. */
void *map_get(const struct map *m, uint64_t key);

/* Sets the value (not NULL) of `key`. @return 0, or -1 with errno ENOMEM and the map unchanged. */
int map_put(struct map *m, uint64_t key, void *value);

/* Removes `key`. @return its value, NULL if it had none. */
void *map_remove(struct map *m, uint64_t key);

/* Walks the map in no order: `*at` starts at 0. @return the next occupied slot, NULL at the end.
 * The map must not be changed meanwhile. */
struct map_slot *map_next(const struct map *m, size_t *at);

/* Frees the table, not the values. */
void map_free(struct map *m);

/* Frees the table, and by free() the values. */
void map_free_values(struct map *m);

#endif
