#include "launchers/options-table.h"

#include "launchers/options.h"

const struct option_row option_rows[OPTION_COUNT] = {
#define OPTION(id, name, letter, argument, group, shown, help, more)                               \
	[OPTION_##id] = {name, letter, argument, GROUP_##group, shown, help, more},
#include "launchers/options.def"
};

const char *const option_groups[GROUP_COUNT] = {
#define GROUP(id, title) [GROUP_##id] = (title),
#include "launchers/options.def"
};

const struct option_table options_table = {
	.program = "dftrace-run",
	.rows = option_rows,
	.count = OPTION_COUNT,
	.groups = option_groups,
	.group_count = GROUP_COUNT,
};

int option_refuse_attach(struct buf *error)
{
	buf_add_str(error,
		    "-p (--attach) is refused: programs can only be launched, because the filter "
		    "that stops "
		    "at system calls cannot be added to a running process; use " OPTIONS_USAGE);
	return -1;
}

const struct option_row *option_row(int value)
{
	return option_find(&options_table, value);
}

int option_refuse(int value, const char *word, struct buf *error)
{
	if (option_row(optopt) == &option_rows[OPTION_ATTACH])
		return option_refuse_attach(error);
	return option_refuse_word(&options_table, value, word, error);
}
