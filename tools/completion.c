/* Prints what completion.bash has to know of a program: which options there are and what they take, from the table
 * that the program itself uses. usage: completion dftrace-run|dftrace-check */
#include "check/options.h"
#include "launchers/options-table.h"
#include "symbols/hooks.h"
#include "tools/man-text.h"
#include "tracer/select.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct program {
	const char *name;
	const struct option_table *table;
	bool runs_another; /* the first word that is no option is a program */
	void (*print_items)(void);
};

static void print_groups(const struct hook_table *table)
{
	const char *last = "";

	printf(" %s %s:all", table->name, table->name);
	for (size_t i = 0; i < table->count; i++) {
		const struct hook_row *row = &table->rows[i];
		if (row->mode == HOOK_NEVER || !row->group || strcmp(row->group, last) == 0)
			continue;
		bool before = false;
		for (size_t n = 0; n < i && !before; n++)
			before = table->rows[n].group && table->rows[n].mode != HOOK_NEVER &&
				 strcmp(table->rows[n].group, row->group) == 0;
		if (!before)
			printf(" %s:%s", table->name, row->group);
		last = row->group;
	}
}

/* What -e takes, but for single calls. */
static void print_trace_items(void)
{
	const char *name;
	const char *what;
	bool on;

	fputs(" posix", stdout);
	for (unsigned i = 0; selection_class(i, &name, &what, &on); i++)
		printf(" %s", name);
	for (unsigned i = 0; i < HOOK_LAYERS; i++)
		print_groups(&hook_tables[i]);
}

/* What --require takes. */
static void print_categories(void)
{
	fputs(" POSIX STDIO MPI HDF5 rank", stdout);
}

/* A word that stands for itself, and not for what a person thinks of. */
static bool is_literal(const char *word, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (!islower((unsigned char)word[i]) && !isdigit((unsigned char)word[i]) &&
		    word[i] != '-')
			return false;
	}
	return len > 0;
}

/* Prints the literals of "v1|v2" or "all|A:B". @return whether there is something else as well. */
static bool print_literals(const char *words)
{
	bool other = false;

	for (size_t len; *words; words += len + (words[len] == '|')) {
		len = strcspn(words, "|");
		if (is_literal(words, len))
			printf(" %.*s", (int)len, words);
		else
			other = true;
	}
	return other;
}

/* What the argument is, for the shell: a kind, and words. */
static void print_argument(const struct program *program, const char *argument)
{
	if (strcmp(argument, "ITEM,...") == 0) {
		fputs("list", stdout);
		program->print_items();
	} else if (strchr(argument, '|') && strchr(argument, ':')) {
		fputs("dirs", stdout);
		print_literals(argument);
	} else if (strchr(argument, '|')) {
		fputs("words", stdout);
		print_literals(argument);
	} else if (strcmp(argument, "DIR") == 0) {
		fputs("dirs", stdout);
	} else if (strcmp(argument, "FILE") == 0 || strcmp(argument, "PREFIX") == 0 ||
		   strcmp(argument, "OUT") == 0) {
		fputs("files", stdout);
	} else {
		fputs("none", stdout);
	}
}

static void print_table(const struct program *program)
{
	const struct option_table *table = program->table;

	puts("PROGRAM_takes() {\n\tcase $1 in");
	for (size_t i = 0; i < table->count; i++) {
		const struct option_row *row = &table->rows[i];
		/* What may be left out is no word of its own. */
		if (!row->argument || option_is_optional(row) || !row->shown)
			continue;
		fputc('\t', stdout);
		if (row->letter)
			printf("-%c | ", row->letter);
		printf("--%s) echo '", row->name);
		print_argument(program, row->argument);
		fputs("' ;;\n", stdout);
	}
	fputs("\tesac\n}\n\nPROGRAM_options='", stdout);
	for (size_t i = 0; i < table->count; i++) {
		if (table->rows[i].shown)
			printf("%s--%s", i ? " " : "", table->rows[i].name);
	}
	printf("'\nPROGRAM_runs=%d\n\n", program->runs_another);
}

int main(int argc, char **argv)
{
	static const struct program programs[] = {
		{"dftrace-run", &options_table, true, print_trace_items},
		{"dftrace-check", &check_option_table, false, print_categories},
	};
	const struct program *program = NULL;

	for (size_t i = 0; argc == 2 && i < sizeof(programs) / sizeof(*programs); i++) {
		if (strcmp(argv[1], programs[i].name) == 0)
			program = &programs[i];
	}
	if (!program) {
		fputs("usage: completion dftrace-run|dftrace-check\n", stderr);
		return EXIT_FAILURE;
	}
	printf("# bash completion for %s(1), made from its table of options: do not edit.\n\n",
	       program->name);
	print_table(program);
	return man_finish();
}
