/* A gzip member in the making: whole deflate blocks, so that it can be closed after any of them. */
#ifndef WRITER_MEMBER_H
#define WRITER_MEMBER_H

#include "writer/deflater.h"

#include <stdint.h>

enum {
	MEMBER_STORED = 5,                /* bytes of a stored block without its contents */
	MEMBER_CLOSE = MEMBER_STORED + 8, /* bytes that member_close takes for an empty text */
};

struct member {
	uint32_t crc;
	uint64_t size; /* uncompressed */
};

/* Appends the header of a new member. */
void member_open(struct member *member, struct buf *out);

/* Appends a stored block, not the last one. `len` < 64 KiB; 0: padding of MEMBER_STORED bytes.
 * The block before must have ended at a byte. */
void member_store(struct member *member, struct buf *out, const char *bytes, size_t len);

/* Appends compressed bytes. With `flush` the block ends at a byte, and member_store and
 * member_close may follow, or another, reset stream. Without, some bytes may still be in the
 * stream.
 * @return 0, or -1 with errno ENOMEM. */
int member_add(struct member *member, struct deflater *deflater, struct buf *out, const char *bytes,
	       size_t len, bool flush);

/* Appends what ends the member after `text` (short, may be empty) as its last bytes. The member
 * itself is not changed: it may go on in place of this end. */
void member_close(const struct member *member, struct buf *out, const char *text, size_t len);

#endif
