/* A program's options as a table: for getopt_long, --help, the manual page and words about mistakes. */
#ifndef BASE_OPTION_H
#define BASE_OPTION_H

#include "base/buf.h"

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct option_row {
	const char *name; /* NULL: only a letter */
	char letter;      /* 0: only a name */
	const char
		*argument; /* NULL: takes none; "[=WORD]": may be left out, and stands behind a = */
	unsigned group;
	bool shown; /* in --help and the manual */
	const char *help;
	const char *more; /* NULL: nothing */
};

struct option_table {
	const char *program;
	const struct option_row *rows;
	size_t count;
	const char *const *groups; /* titles */
	size_t group_count;
};

/* getopt_long's value of an option that has a name: beyond every letter. */
#define OPTION_LONG_VALUE(id) (0x100 + (int)(id))

/* Makes getopt_long's tables: `names` has room for all rows and one more, `letters` for two bytes a row
 * and four. `first` stands in front of the letters: "+" to stop at the first word that is no option. */
void option_getopt(const struct option_table *table, const char *first, struct option *names,
		   char *letters);

/* @return whether its argument may be left out. */
bool option_is_optional(const struct option_row *row);

/* @return the option behind a value of getopt_long or its optopt, NULL when there is none. */
const struct option_row *option_find(const struct option_table *table, int value);

/* Says why getopt_long answered `value` ('?' or ':') to `word`. @return -1 */
int option_refuse_word(const struct option_table *table, int value, const char *word,
		       struct buf *error);

/* Quotes what a person typed, so that an error stays one line whatever is in it. */
void option_add_quoted(struct buf *out, const char *text);

/* Appends the option's name, or its letter if it has no name. */
void option_add_name(struct buf *out, const struct option_row *row);

/* Prints the options for --help, by groups. */
void option_print_help(const struct option_table *table, FILE *out);

/* Prints words from the help's column on, where the cursor stands at `at`, and ends the line. */
void option_print_words(FILE *out, int at, const char *text);

#endif
