#include "writer/member.h"

void member_open(struct member *member, struct buf *out)
{
	static const unsigned char header[] = {0x1f, 0x8b, 8 /* deflate */, 0, 0, 0, 0, 0, 0, 3};
	*member = (struct member){0};
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
	member->crc = deflater_crc(member->crc, bytes, len);
	member->size += len;
}

void member_store(struct member *member, struct buf *out, const char *bytes, size_t len)
{
	add_stored(out, false, bytes, len);
	count(member, bytes, len);
}

int member_add(struct member *member, struct deflater *deflater, struct buf *out, const char *bytes,
	       size_t len, bool flush)
{
	if (deflater_add(deflater, out, bytes, len, flush) < 0)
		return -1;
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
