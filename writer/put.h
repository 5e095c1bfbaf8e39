/* Putting text behind a pointer: what the formatting of an event consists of. The caller has
 * reserved the room; each function returns the place behind what it wrote. */
#ifndef WRITER_PUT_H
#define WRITER_PUT_H

#include "base/buf.h"

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
	PUT_NUMBER = 20, /* most bytes of a 64-bit number in decimal, sign included */
	PUT_HASH = 18,   /* bytes of a quoted hash */
	PUT_ESCAPED = 6, /* most bytes that one byte of a string becomes */
};

/* A string literal. */
#define put_text(p, literal) put_bytes(p, literal, sizeof(literal) - 1)

static inline char *put_bytes(char *p, const char *bytes, size_t len)
{
	memcpy(p, bytes, len);
	return p + len;
}

/* A NUL-terminated string. */
static inline char *put_string(char *p, const char *s)
{
	return stpcpy(p, s);
}

static inline unsigned put_count_digits(uint64_t value)
{
	unsigned digits = 1;
	while (value >= 10000) {
		value /= 10000;
		digits += 4;
	}
	return digits + (value >= 10) + (value >= 100) + (value >= 1000);
}

static inline char *put_u64(char *p, uint64_t value)
{
	static const char pairs[] = "00010203040506070809101112131415161718192021222324"
				    "25262728293031323334353637383940414243444546474849"
				    "50515253545556575859606162636465666768697071727374"
				    "75767778798081828384858687888990919293949596979899";

	if (value < 10) {
		*p = (char)('0' + value);
		return p + 1;
	}
	char *end = p + put_count_digits(value);
	char *d = end;
	while (value >= 100) {
		d -= 2;
		memcpy(d, &pairs[value % 100 * 2], 2);
		value /= 100;
	}
	if (value >= 10)
		memcpy(p, &pairs[value * 2], 2);
	else
		*p = (char)('0' + value);
	return end;
}

static inline char *put_i64(char *p, int64_t value)
{
	if (value < 0) {
		*p++ = '-';
		return put_u64(p, -(uint64_t)value);
	}
	return put_u64(p, (uint64_t)value);
}

/* Eight hexadecimal digits at once: each nibble gets a byte, and from ten on a letter. */
static inline char *put_hex32(char *p, uint32_t value)
{
	uint64_t x = value;
	x = (x << 16 | x) & 0x0000ffff0000ffff;
	x = (x << 8 | x) & 0x00ff00ff00ff00ff;
	x = (x << 4 | x) & 0x0f0f0f0f0f0f0f0f;
	uint64_t letters = (x + 0x0606060606060606) >> 4 & 0x0101010101010101;
	x += 0x3030303030303030 + letters * ('a' - '0' - 10);
	x = htobe64(x);
	return put_bytes(p, (const char *)&x, sizeof(x));
}

/* A hash as the trace spells it: 16 lower-case hexadecimal digits in quotes. */
static inline char *put_hash(char *p, uint64_t hash)
{
	*p++ = '"';
	p = put_hex32(p, (uint32_t)(hash >> 32));
	p = put_hex32(p, (uint32_t)hash);
	*p++ = '"';
	return p;
}

/* Bytes as the inside of a JSON string: valid UTF-8 stays, every byte that is not part of a valid
 * sequence becomes U+FFFD. Takes at most PUT_ESCAPED bytes for each. */
char *put_escaped(char *p, const char *bytes, size_t len);

/* Appends a JSON string with its quotes. */
void put_json(struct buf *out, const char *text);

#endif
