/* The rows of options.def, for the parser, --help and the manual page. */
#ifndef LAUNCHERS_OPTIONS_TABLE_H
#define LAUNCHERS_OPTIONS_TABLE_H

#include "base/buf.h"

#include <stdbool.h>

enum option_group {
#define GROUP(id, title) GROUP_##id,
#include "launchers/options.def"
	GROUP_COUNT,
};

enum option_id {
#define OPTION(id, name, letter, argument, group, shown, help, more) OPTION_##id,
#include "launchers/options.def"
	OPTION_COUNT,
};

struct option_row {
	const char *name;     /* NULL: only a letter */
	char letter;          /* 0: only a name */
	const char *argument; /* NULL: takes none */
	enum option_group group;
	bool shown; /* in --help and the manual */
	const char *help;
	const char *more; /* NULL: nothing */
};

/* By enum option_id and by enum option_group. */
extern const struct option_row option_rows[OPTION_COUNT];
extern const char *const option_groups[GROUP_COUNT];

/* getopt_long's value of an option that has a name: beyond every letter. */
#define OPTION_LONG_VALUE(id) (0x100 + (int)(id))

/* @return the option behind a value of getopt_long or its optopt, NULL when there is none. */
const struct option_row *option_row(int value);

/* Quotes what a person typed, so that an error stays one line whatever is in it. */
void option_add_quoted(struct buf *out, const char *text);

/* Appends the option's name, or its letter if it has no name. */
void option_add_name(struct buf *out, const struct option_row *row);

/* Says why getopt_long answered `value` ('?' or ':') to `word`. @return -1 */
int option_refuse(int value, const char *word, struct buf *error);

/* Says why -p is not taken. @return -1 */
int option_refuse_attach(struct buf *error);

#endif
