/* A line of a trace as a JSON object: the keys that all lines have, and the args.
 *
 * Integers and strings are read here. Whatever else a line holds (fractions, null, nested objects) is
 * left as it stands, and jansson judges the line. */
#ifndef CHECK_LINE_H
#define CHECK_LINE_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum line_key {
#define TOP(id, key) KEY_##id,
#include "check/keys.def"
	LINE_KEYS,
};

enum line_arg {
#define ARG(id, key) ARG_##id,
#include "check/keys.def"
	LINE_ARG_KEYS,
};

enum { LINE_ARGS = 192 };

struct text {
	const char *at;
	size_t len;
};

enum field_kind {
	FIELD_ABSENT,
	FIELD_STRING,
	FIELD_NUMBER, /* an integer that 64 bits hold */
	FIELD_NULL,
	FIELD_FRACTION, /* a number that is no such integer */
	FIELD_OTHER,    /* true, false, an object, an array */
};

struct field {
	enum field_kind kind;
	bool negative;
	struct text key;
	struct text raw;    /* as it stands in the line */
	struct text text;   /* of a string, escapes resolved */
	uint64_t magnitude; /* of a number */
};

struct line {
	struct field top[LINE_KEYS];
	struct field args[LINE_ARGS];
	const struct field *arg[LINE_ARG_KEYS]; /* NULL: absent */
	unsigned nargs;
	bool has_blanks;   /* outside of strings */
	bool out_of_order; /* keys in another order than written */
	bool has_stranger; /* an unknown key beside the known ones */
	bool has_fraction; /* a number that is no integer of 64 bits */
	bool has_null;
	const char *wrong; /* why line_read failed */
	struct buf scratch;
};

/* Reads a line. The fields point into `bytes` and into `line`.
 * @return 0, or -1 with `wrong` set. */
int line_read(struct line *line, const char *bytes, size_t len);

void line_free(struct line *line);

/* The value of an integer, also of one in quotes, as traces of 2023 have them.
 * @return whether there is one that fits. */
bool field_integer(const struct field *field, int64_t *value);
bool field_unsigned(const struct field *field, uint64_t *value);

/* Whether the field is this string. */
bool field_is(const struct field *field, const char *text);
bool text_is(struct text text, const char *other);

/* What a field that refers to a name has: 16 hexadecimal digits in quotes, or, in older traces, a
 * number. @return whether it is one. */
bool field_hash(const struct field *field, uint64_t *hash);

#endif
