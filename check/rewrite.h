/* Writing traces: mended, converted, anonymous, joined. */
#ifndef CHECK_REWRITE_H
#define CHECK_REWRITE_H

#include "check/files.h"
#include "check/options.h"

/* Does what the options ask for to all files. What was written is added to `written`.
 * @return 0, or 2 with a sentence in `error` for what could not be done. */
int rewrite(const struct check_options *options, const struct files *files, struct files *written,
	    struct buf *error);

#endif
