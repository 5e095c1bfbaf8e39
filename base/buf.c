#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *buf_reserve(struct buf *b, size_t more)
{
	if (b->failed)
		return NULL;
	if (!b->data || more > b->cap - b->len) {
		size_t cap = b->cap ? b->cap : 256;
		while (cap - b->len < more)
			cap *= 2;
		char *data = realloc(b->data, cap);
		if (!data) {
			b->failed = true;
			return NULL;
		}
		b->data = data;
		b->cap = cap;
	}
	return b->data + b->len;
}

void buf_add(struct buf *b, const void *bytes, size_t len)
{
	char *to = buf_reserve(b, len);
	if (to && len) {
		memcpy(to, bytes, len);
		b->len += len;
	}
}

void buf_add_str(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

void buf_add_char(struct buf *b, char c)
{
	buf_add(b, &c, 1);
}

void buf_add_u64(struct buf *b, uint64_t value)
{
	char digits[20];
	char *p = digits + sizeof(digits);
	do {
		*--p = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	buf_add(b, p, (size_t)(digits + sizeof(digits) - p));
}

void buf_add_i64(struct buf *b, int64_t value)
{
	if (value < 0) {
		buf_add_char(b, '-');
		buf_add_u64(b, -(uint64_t)value);
	} else {
		buf_add_u64(b, (uint64_t)value);
	}
}

void buf_addf(struct buf *b, const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	int len = vasprintf(&text, format, args);
	va_end(args);
	if (len < 0) {
		b->failed = true;
		return;
	}
	buf_add(b, text, (size_t)len);
	free(text);
}

const char *buf_str(struct buf *b)
{
	char *end = buf_reserve(b, 1);
	if (!end)
		return NULL;
	*end = '\0';
	return b->data;
}

void buf_clear(struct buf *b)
{
	b->len = 0;
	b->failed = false;
}

void buf_free(struct buf *b)
{
	free(b->data);
	*b = (struct buf){0};
}
