/* How many bytes a call moved, and where to. */
#ifndef WRITER_BYTES_H
#define WRITER_BYTES_H

#include <stddef.h>

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

/* @return the row of a call by its name in the trace, NULL when it moves none. */
const struct bytes_row *bytes_row(const char *name, size_t len);

/* @return the i-th row, NULL behind the last. */
const struct bytes_row *bytes_row_at(size_t i);

#endif
