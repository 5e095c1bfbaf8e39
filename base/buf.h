/* A growable byte buffer. Running out of memory sets `failed` and later additions do nothing, so a
 * writer checks once at its end instead of after each piece. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
	char *data; /* not NUL-terminated */
	size_t len;
	size_t cap;
	bool failed;
};

/* Makes room for `more` bytes after `len`. @return where they go, NULL when out of memory. */
char *buf_reserve(struct buf *b, size_t more);

/* Appends bytes, a NUL-terminated string, one byte, decimal numbers. */
void buf_add(struct buf *b, const void *bytes, size_t len);
void buf_add_str(struct buf *b, const char *s);
void buf_add_char(struct buf *b, char c);
void buf_add_u64(struct buf *b, uint64_t value);
void buf_add_i64(struct buf *b, int64_t value);

/* Appends what printf would print. For messages and rare lines; the hot path uses the above. */
__attribute__((format(printf, 2, 3))) void buf_addf(struct buf *b, const char *format, ...);

/* @return the contents with a NUL behind them (not counted in len), NULL when out of memory. The
 * memory stays the buffer's. */
const char *buf_str(struct buf *b);

/* Empties the buffer and keeps its memory; clears `failed`. */
void buf_clear(struct buf *b);

/* Frees the memory; the buffer may be used again. */
void buf_free(struct buf *b);

#endif
