/* Putting text behind a pointer: what the formatting of an event consists of. The caller has
 * reserved the room; each function returns the place behind what it wrote. */
#ifndef WRITER_PUT_H
#define WRITER_PUT_H

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

static inline char *put_u64(char *p, uint64_t value)
{
	static const char pairs[] = "00010203040506070809101112131415161718192021222324"
				    "25262728293031323334353637383940414243444546474849"
				    "50515253545556575859606162636465666768697071727374"
				    "75767778798081828384858687888990919293949596979899";
	char digits[PUT_NUMBER];
	char *end = digits + sizeof(digits);
	char *d = end;

	while (value >= 100) {
		d -= 2;
		memcpy(d, &pairs[value % 100 * 2], 2);
		value /= 100;
	}
	if (value >= 10) {
		d -= 2;
		memcpy(d, &pairs[value * 2], 2);
	} else {
		*--d = (char)('0' + value);
	}
	return put_bytes(p, d, (size_t)(end - d));
}

static inline char *put_i64(char *p, int64_t value)
{
	if (value < 0) {
		*p++ = '-';
		return put_u64(p, -(uint64_t)value);
	}
	return put_u64(p, (uint64_t)value);
}

/* A hash as the trace spells it: 16 lower-case hexadecimal digits in quotes. */
static inline char *put_hash(char *p, uint64_t hash)
{
	*p++ = '"';
	for (int shift = 60; shift >= 0; shift -= 4)
		*p++ = "0123456789abcdef"[hash >> shift & 15];
	*p++ = '"';
	return p;
}

/* Bytes as the inside of a JSON string: valid UTF-8 stays, every byte that is not part of a valid
 * sequence becomes U+FFFD. Takes at most PUT_ESCAPED bytes for each. */
char *put_escaped(char *p, const char *bytes, size_t len);

#endif
