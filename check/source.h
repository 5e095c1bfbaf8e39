/* The lines of a trace file, compressed or not, in bounded memory.
 *
 * A file that ends too early, or has bytes behind its end, gives the lines that are there; what was
 * wrong is told at the end. */
#ifndef CHECK_SOURCE_H
#define CHECK_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SOURCE_LINE = 16 << 20, /* longest line that is handed out */
	SOURCE_GIVE_UP = 64,    /* times that: no trace has such a line */
};

/* How the bytes end. */
enum source_end {
	SOURCE_OPEN,      /* not reached yet */
	SOURCE_WHOLE,     /* as it should */
	SOURCE_TRUNCATED, /* inside a gzip member */
	SOURCE_DAMAGED,   /* a member that cannot be expanded or whose sum is wrong */
	SOURCE_TRAILING,  /* bytes behind the last member that are none */
	SOURCE_UNUSABLE,  /* see `why` */
};

struct source_line {
	const char *bytes; /* valid until the next call */
	size_t len;        /* without the newline */
	uint64_t number;   /* from 1 */
	bool too_long;     /* `bytes` is only its beginning */
	bool cut;          /* the file ends inside it */
};

struct source;

/* Opens a trace. @return NULL with a sentence in `why` when it cannot be read, or is none. */
struct source *source_open(const char *path, char *why, size_t size);

/* @return whether there was another line. */
bool source_next(struct source *source, struct source_line *line);

/* How it ended; `why` (may be NULL) is set to a sentence, or to NULL when it is whole. */
enum source_end source_end(const struct source *source, const char **why);

bool source_is_compressed(const struct source *source);

/* Members so far, and how many of them ended inside a line. */
unsigned long source_members(const struct source *source, unsigned long *cut);

/* Bytes of the file that were read, of how many; bytes of text. */
uint64_t source_read(const struct source *source);
uint64_t source_size(const struct source *source);
uint64_t source_text(const struct source *source);

void source_close(struct source *source);

#endif
