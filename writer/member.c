#include "writer/member.h"

#include <errno.h>

/* Chosen by measurement on the lines of a program that reads one byte at a time, 12 µs apart:
 * level 1 makes 9.1 bytes of an event, 4 the first fewer than 8; with longer windows, more
 * memory or deeper searches it costs more time and gains little. See member_stream_reset for the
 * searches. */
enum {
	LEVEL = 4,
	WINDOW_BITS = 15,
	MEMORY = 7,
	OUT_STEP = 16384,
};

int member_stream_new(z_stream *stream)
{
	*stream = (z_stream){0};
	if (deflateInit2(stream, LEVEL, Z_DEFLATED, -WINDOW_BITS, MEMORY, Z_DEFAULT_STRATEGY) !=
	    Z_OK) {
		errno = ENOMEM;
		return -1;
	}
	member_stream_reset(stream);
	return 0;
}

void member_stream_reset(z_stream *stream)
{
	deflateReset(stream);
	/* A reset undoes this. Lines repeat the line before: the first few candidates are the
	 * best. */
	deflateTune(stream, 4, 4, 64, 8);
}

void member_open(struct member *member, struct buf *out)
{
	static const unsigned char header[] = {0x1f, 0x8b, Z_DEFLATED, 0, 0, 0, 0, 0, 0, 3};
	*member = (struct member){.crc = (uint32_t)crc32(0, NULL, 0)};
	buf_add(out, header, sizeof(header));
}

static void add_stored(struct buf *out, bool final, const char *bytes, size_t len)
{
	unsigned char head[MEMBER_STORED] = {
		final,
		(unsigned char)len,
		(unsigned char)(len >> 8),
		(unsigned char)~len,
		(unsigned char)(~len >> 8),
	};
	buf_add(out, head, sizeof(head));
	buf_add(out, bytes, len);
}

static void count(struct member *member, const char *bytes, size_t len)
{
	member->crc = (uint32_t)crc32_z(member->crc, (const Bytef *)bytes, len);
	member->size += len;
}

void member_store(struct member *member, struct buf *out, const char *bytes, size_t len)
{
	add_stored(out, false, bytes, len);
	count(member, bytes, len);
}

int member_add(struct member *member, z_stream *stream, struct buf *out, const char *bytes,
	       size_t len, bool flush)
{
	/* The stream counts in 32 bits; no chunk is that long. */
	stream->next_in = (z_const Bytef *)bytes;
	stream->avail_in = (uInt)len;
	do {
		char *room = buf_reserve(out, OUT_STEP);
		if (!room) {
			errno = ENOMEM;
			return -1;
		}
		stream->next_out = (Bytef *)room;
		stream->avail_out = OUT_STEP;
		deflate(stream, flush ? Z_SYNC_FLUSH : Z_NO_FLUSH);
		out->len += OUT_STEP - stream->avail_out;
	} while (stream->avail_out == 0);
	count(member, bytes, len);
	return 0;
}

static void add_le32(struct buf *out, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		buf_add_char(out, (char)(value >> 8 * i));
}

void member_close(const struct member *member, struct buf *out, const char *text, size_t len)
{
	struct member closed = *member;
	if (len > 0)
		count(&closed, text, len);
	add_stored(out, true, text, len);
	add_le32(out, closed.crc);
	add_le32(out, (uint32_t)closed.size);
}
