/* How many bytes a call moved, and where to. */
#ifndef CHECK_BYTES_H
#define CHECK_BYTES_H

#include "check/line.h"

#include <stdbool.h>
#include <stdint.h>

enum bytes_direction {
	BYTES_READ = 1,
	BYTES_WRITTEN = 2,
	BYTES_BOTH = 3,
};

enum bytes_ret {
	BYTES_COUNTED,
	BYTES_BYTES,
	BYTES_ITEMS,
	BYTES_NOTHING,
};

struct bytes_row {
	const char *name;
	enum bytes_direction direction;
	enum bytes_ret ret;
};

/* @return the row of a call, NULL when it moves none. */
const struct bytes_row *bytes_row(struct text name);

/* @return the i-th row, NULL behind the last. */
const struct bytes_row *bytes_row_at(size_t i);

#endif
