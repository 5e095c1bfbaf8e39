/* A trace's file, which is valid up to its ending at any time. */
#ifndef WRITER_OUTPUT_H
#define WRITER_OUTPUT_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/types.h>

enum {
	OUTPUT_PAGE = 4096,
	OUTPUT_MAX_ENDING = 32,
};

/* What a file is named after. */
struct output_name {
	const char *prefix;
	const char *exec;
	const char *host;
	pid_t pid;
	const char *suffix; /* `.pfw` or `.pfw.gz` */
};

struct output {
	int fd;     /* -1: not open */
	char *path; /* NULL: never tried */
	dev_t dev;
	ino_t ino;
	uint64_t ending_at; /* where the ending begins, and the next lines go */
	size_t ending_len;
	char ending[OUTPUT_MAX_ENDING];
};

/* Creates the file under the first free name, and the directories above it.
 * @return 0, or -1 with errno; `path` then says where it was tried. */
int output_create(struct output *output, const struct output_name *name);

/* Replaces the ending by `bytes`, whose last `ending_len` bytes are the new ending (as long as
 * the old one, or there was none). First what lies beyond the old ending, then, in one call,
 * what replaces it: the file is valid before and after each. The caller sees to it that no
 * ending crosses a OUTPUT_PAGE, so that not even a SIGKILL can tear that last call.
 * @return 0, or -1 with errno; the file then ends where it ended before. */
int output_append(struct output *output, const struct buf *bytes, size_t ending_len);

/* Removes the file if output_create made it. */
void output_remove(struct output *output);

/* Moves a closed file to the first free name, creating the directories above it. Under that name it is there as a
 * whole or not at all; the old one is removed only afterwards.
 * @return 0, or -1 with errno: it stayed. */
int output_move(struct output *output, const struct output_name *name);

/* Closes the descriptor and lets output_open take it up again. @return 0, or -1 with errno. */
int output_close(struct output *output);

/* Opens the file again if it is closed. @return 0, or -1 with errno (ENOENT, ESTALE: it is no
 * more). */
int output_open(struct output *output);

/* @return whether someone removed the file. It must be open. */
bool output_is_removed(const struct output *output);

#endif
