/* Which files the command line means. */
#ifndef CHECK_FILES_H
#define CHECK_FILES_H

#include "base/buf.h"

#include <stddef.h>
#include <stdint.h>

struct files {
	char **paths;
	size_t count;
	uint64_t size; /* bytes of all */
};

/* Adds a file, or all traces below a directory, by name. A name that does not exist is added as it is:
 * opening it says why.
 * @return 0, or -1 with a sentence in `error`. */
int files_add(struct files *files, const char *path, struct buf *error);

void files_free(struct files *files);

#endif
