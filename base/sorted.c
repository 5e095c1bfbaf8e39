#include "base/sorted.h"

#include <string.h>

size_t sorted_up_to(const void *items, size_t count, size_t size, size_t offset, uint64_t most)
{
	size_t low = 0;

	while (low < count) {
		size_t middle = low + (count - low) / 2;
		uint64_t number;
		memcpy(&number, (const char *)items + middle * size + offset, sizeof(number));
		if (number <= most)
			low = middle + 1;
		else
			count = middle;
	}
	return low;
}
