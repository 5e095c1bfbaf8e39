/* A raw deflate stream and gzip's checksum, by zlib or by ISA-L: the build has one of them. */
#ifndef WRITER_DEFLATER_H
#define WRITER_DEFLATER_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct deflater;

/* @return NULL with errno ENOMEM. */
struct deflater *deflater_new(void);
void deflater_free(struct deflater *deflater);

/* Makes the stream forget what it saw. */
void deflater_reset(struct deflater *deflater);

/* Appends compressed bytes to `out`. With `flush` the block ends at a byte; without, some bytes may still be in
 * the stream. `len` < 2^31.
 * @return 0, or -1 with errno ENOMEM. */
int deflater_add(struct deflater *deflater, struct buf *out, const char *bytes, size_t len,
		 bool flush);

/* @return the CRC-32 of what `crc` is that of (0: of nothing) with these bytes behind it. */
uint32_t deflater_crc(uint32_t crc, const char *bytes, size_t len);

#endif
