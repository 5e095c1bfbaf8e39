#include "check/bytes.h"

#include <string.h>

static const struct bytes_row rows[] = {
#define BYTES(name, direction, ret) {name, BYTES_##direction, BYTES_##ret},
#include "check/bytes.def"
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static int compare(struct text name, const char *other)
{
	size_t len = strlen(other);
	int order = memcmp(name.at, other, name.len < len ? name.len : len);
	return order ? order : (name.len > len) - (name.len < len);
}

const struct bytes_row *bytes_row(struct text name)
{
	size_t low = 0;
	size_t high = ROWS;

	while (low < high) {
		size_t middle = (low + high) / 2;
		int order = compare(name, rows[middle].name);
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
