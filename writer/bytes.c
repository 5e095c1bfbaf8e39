#include "writer/bytes.h"

#include <string.h>

static const struct bytes_row rows[] = {
#define BYTES(name, direction, ret) {name, BYTES_##direction, BYTES_##ret},
#include "writer/bytes.def"
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static int compare(const char *name, size_t len, const char *other)
{
	size_t other_len = strlen(other);
	int order = memcmp(name, other, len < other_len ? len : other_len);
	return order ? order : (len > other_len) - (len < other_len);
}

const struct bytes_row *bytes_row(const char *name, size_t len)
{
	size_t low = 0;
	size_t high = ROWS;

	while (low < high) {
		size_t middle = (low + high) / 2;
		int order = compare(name, len, rows[middle].name);
		if (order == 0)
			return &rows[middle];
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

const struct bytes_row *bytes_row_at(size_t i)
{
	return i < ROWS ? &rows[i] : NULL;
}
