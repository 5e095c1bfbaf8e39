/* A trace file in the making: lines go in, and the file appears under its name when it is complete. */
#ifndef CHECK_SINK_H
#define CHECK_SINK_H

#include "base/buf.h"
#include "writer/member.h"

#include <stdbool.h>
#include <stddef.h>

#include <sys/types.h>

struct sink {
	char *path;
	char *temporary; /* beside it */
	int fd;
	bool compressed;
	bool brackets;
	bool replace; /* what has the name already */
	bool member_is_open;
	int error; /* errno of the first failure, 0: none */
	struct member member;
	struct deflater *deflater; /* NULL: plain */
	struct buf text;
	struct buf out;
};

/* Begins a file, with `mode`. Without `replace`, a file that exists is not touched.
 * @return 0, or -1 with errno. */
int sink_open(struct sink *sink, const char *path, bool brackets, bool replace, mode_t mode);

/* Adds a line, without its newline. */
void sink_line(struct sink *sink, const char *bytes, size_t len);

/* Completes the file. @return 0, or -1 with errno, and there is no file. */
int sink_close(struct sink *sink);

/* Gives it up: there is no file. */
void sink_abandon(struct sink *sink);

#endif
