/* Paths as text: no file system is asked. */
#ifndef BASE_PATH_H
#define BASE_PATH_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

/* Replaces `out` by `path` made absolute from `base` (used when `path` is relative; an absolute
 * path itself), without `.`, `..`, doubled and trailing slashes. Symbolic links are not followed.
 * A base that is not absolute (`pipe:[7]`) stays in front as it is. */
void path_absolute(struct buf *out, const char *base, size_t base_len, const char *path,
		   size_t path_len);

/* @return whether `path` is `dir` or lies below it, component-wise: `/data` does not hold
 * `/data2`. Both absolute and normalised. */
bool path_is_below(const char *path, const char *dir);

/* @return the part of `path` behind its last slash. */
const char *path_basename(const char *path);

#endif
