/* The names that a trace refers to by their hashes. */
#ifndef CHECK_NAMES_H
#define CHECK_NAMES_H

#include "base/map.h"
#include "check/line.h"

#include <stdbool.h>
#include <stdint.h>

/* How a trace writes hashes: all are made of the MD5 of the name. */
enum name_form {
	NAME_HEX, /* every second byte, 16 hexadecimal digits in quotes: dftracer 1.0.9 and later */
	NAME_NIBBLES, /* the upper half of each byte, a 64-bit number: 1.0.8 */
	NAME_SHORT,   /* two bytes, a 16-bit number: before that */
};

/* @return the hash of a name in a form. */
uint64_t name_hash_in(enum name_form form, struct text name);

/* The form of a name's hash, given its value. @return whether the hash is that of the name. */
bool name_form_of(struct text name, const struct field *value, enum name_form *form);

/* Appends a hash as a trace of that form has it. */
void name_add_hash(struct buf *out, enum name_form form, uint64_t hash);

enum name_kind {
	NAME_FILE = 1,
	NAME_TEXT = 2,
	NAME_HOST = 4,
};

/* The hashes seen; zeroed: none. */
struct names {
	struct map kinds;
};

/* Remembers a hash. @return 0, or -1 with errno ENOMEM. */
int names_add(struct names *names, uint64_t hash, enum name_kind kind);

/* The kinds in which a hash was seen, 0: not at all. */
unsigned names_kinds(const struct names *names, uint64_t hash);

void names_free(struct names *names);

#endif
