/* The rows of options.def, for the parser, --help and the manual page. */
#ifndef LAUNCHERS_OPTIONS_TABLE_H
#define LAUNCHERS_OPTIONS_TABLE_H

#include "base/option.h"

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

/* By enum option_id and by enum option_group. */
extern const struct option_row option_rows[OPTION_COUNT];
extern const char *const option_groups[GROUP_COUNT];
extern const struct option_table options_table;

/* @return the option behind a value of getopt_long or its optopt, NULL when there is none. */
const struct option_row *option_row(int value);

/* Says why getopt_long answered `value` ('?' or ':') to `word`. @return -1 */
int option_refuse(int value, const char *word, struct buf *error);

/* Says why -p is not taken. @return -1 */
int option_refuse_attach(struct buf *error);

#endif
