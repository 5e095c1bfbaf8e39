#include "writer/put.h"

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

/* @return the length of the valid UTF-8 sequence at `s`, which starts with a byte >= 0x80; 0 when
 * there is none (overlong forms, surrogates and values past U+10FFFF are not valid). */
static size_t sequence_len(const unsigned char *s, size_t len)
{
	unsigned char low = 0x80;
	unsigned char high = 0xbf;
	size_t want;

	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		want = 2;
	else if (s[0] >= 0xe0 && s[0] <= 0xef)
		want = 3;
	else if (s[0] >= 0xf0 && s[0] <= 0xf4)
		want = 4;
	else
		return 0;
	if (len < want)
		return 0;
	if (s[0] == 0xe0)
		low = 0xa0;
	else if (s[0] == 0xed)
		high = 0x9f;
	else if (s[0] == 0xf0)
		low = 0x90;
	else if (s[0] == 0xf4)
		high = 0x8f;
	if (s[1] < low || s[1] > high)
		return 0;
	for (size_t i = 2; i < want; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	}
	return want;
}

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
			n = sequence_len(s, (size_t)(end - s));
			p = n ? put_bytes(p, (const char *)s, n) : put_text(p, "\xef\xbf\xbd");
			s += n ? n : 1;
			break;
		}
	}
	return p;
}
