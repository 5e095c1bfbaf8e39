#include "writer/put.h"

#include "base/utf8.h"

/* What the table says of a byte. */
enum byte_class {
	BYTE_ESCAPED, /* control characters, quote, backslash */
	BYTE_PLAIN,   /* ASCII that stands for itself */
	BYTE_HIGH,    /* part of a UTF-8 sequence, or invalid */
};

static const unsigned char classes[256] = {
	[' '] = BYTE_PLAIN,          ['!'] = BYTE_PLAIN,          ['#' ... '['] = BYTE_PLAIN,
	[']' ... 0x7f] = BYTE_PLAIN, [0x80 ... 0xff] = BYTE_HIGH,
};

static char *put_control(char *p, unsigned char c)
{
	static const char letters[] = {
		['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n',  ['\f'] = 'f',
		['\r'] = 'r', ['"'] = '"',  ['\\'] = '\\',
	};
	*p++ = '\\';
	if (letters[c]) {
		*p++ = letters[c];
		return p;
	}
	p = put_text(p, "u00");
	*p++ = (char)('0' + (c >> 4));
	*p++ = "0123456789abcdef"[c & 15];
	return p;
}

char *put_escaped(char *p, const char *bytes, size_t len)
{
	const unsigned char *s = (const unsigned char *)bytes;
	const unsigned char *end = s + len;

	while (s < end) {
		size_t n;
		switch ((enum byte_class)classes[*s]) {
		case BYTE_PLAIN:
			*p++ = (char)*s++;
			break;
		case BYTE_ESCAPED:
			p = put_control(p, *s++);
			break;
		case BYTE_HIGH:
			n = utf8_sequence(s, (size_t)(end - s));
			p = n ? put_bytes(p, (const char *)s, n) : put_text(p, "\xef\xbf\xbd");
			s += n ? n : 1;
			break;
		}
	}
	return p;
}

void put_json(struct buf *out, const char *text)
{
	size_t len = strlen(text);
	char *start = buf_reserve(out, len * PUT_ESCAPED + 2);

	if (!start)
		return;
	char *p = start;
	*p++ = '"';
	p = put_escaped(p, text, len);
	*p++ = '"';
	out->len += (size_t)(p - start);
}
