/* Functions that are hooked by default: what they are called, where their arguments are, what they say. */
#ifndef SYMBOLS_HOOKS_H
#define SYMBOLS_HOOKS_H

#include <stdbool.h>
#include <stddef.h>

enum hook_field_kind {
	HOOK_END,
	HOOK_STREAM, /* FILE *, the call's file */
	HOOK_STDIN,  /* the call is about the standard stream */
	HOOK_STDOUT,
	HOOK_STDERR,
	HOOK_OPENS, /* path */
	HOOK_ON_FD, /* descriptor, the call's file */
	HOOK_INT,
	HOOK_LONG,
	HOOK_SIZE,
	HOOK_TEXT,
	HOOK_FLUSHES, /* no event: what streams write inside is theirs */
};

struct hook_field {
	enum hook_field_kind kind;
	unsigned char arg;
	const char *key;
};

enum hook_result { HOOK_R_NONE, HOOK_R_INT, HOOK_R_LONG, HOOK_R_POINTER };

enum hook_bytes {
	HOOK_B_NONE,
	HOOK_B_ITEMS,
	HOOK_B_RESULT,
	HOOK_B_STRING,
	HOOK_B_LINE,
	HOOK_B_FILLED,
	HOOK_B_ONE,
};

#define HOOK_MAX_FIELDS 5
#define HOOK_MAX_NAMES  6

struct hook_row {
	const char *name; /* in the trace */
	struct hook_field fields[HOOK_MAX_FIELDS];
	enum hook_result result;
	enum hook_bytes bytes;
	unsigned char bytes_arg;
	const char *symbols[HOOK_MAX_NAMES]; /* up to the first NULL */
};

/* The table of stdio.def. */
extern const struct hook_row hooks_stdio[];
extern const size_t hooks_stdio_count;

#endif
