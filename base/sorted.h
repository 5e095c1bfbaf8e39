/* Searching what is sorted by a 64-bit number. */
#ifndef BASE_SORTED_H
#define BASE_SORTED_H

#include <stddef.h>
#include <stdint.h>

/* @param items   `count` structures of `size` bytes, by the uint64_t that each has at `offset`; may be NULL when
 * there are none.
 * @return how many of them have at most `most`. */
size_t sorted_up_to(const void *items, size_t count, size_t size, size_t offset, uint64_t most);

#endif
