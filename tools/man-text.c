#include "tools/man-text.h"

#include <stdio.h>
#include <stdlib.h>

void man_print_text(const char *text)
{
	if (*text == '.' || *text == '\'')
		fputs("\\&", stdout);
	for (; *text; text++) {
		if (*text == '\\')
			fputs("\\e", stdout);
		else if (*text == '-')
			fputs("\\-", stdout);
		else
			putchar(*text);
	}
}

/* Help begins in lower case and has no full stop, as lists do. */
static void print_sentence(const char *help)
{
	char first[2] = {help[0], '\0'};

	if (first[0] >= 'a' && first[0] <= 'z')
		first[0] = (char)(first[0] - 'a' + 'A');
	man_print_text(first);
	man_print_text(help + 1);
	fputs(".\n", stdout);
}

static void print_option(const struct option_row *row)
{
	fputs(".TP\n", stdout);
	if (row->letter) {
		printf("\\fB\\-%c\\fR", row->letter);
		if (row->argument) {
			fputs(" \\fI", stdout);
			man_print_text(row->argument);
			fputs("\\fR", stdout);
		}
		fputs(", ", stdout);
	}
	fputs("\\fB\\-\\-", stdout);
	man_print_text(row->name);
	fputs("\\fR", stdout);
	if (row->argument) {
		fputs(option_is_optional(row) ? "\\fI" : " \\fI", stdout);
		man_print_text(row->argument);
		fputs("\\fR", stdout);
	}
	putchar('\n');
	print_sentence(row->help);
	if (row->more) {
		man_print_text(row->more);
		putchar('\n');
	}
}

void man_print_options(const struct option_table *table)
{
	for (size_t group = 0; group < table->group_count; group++) {
		printf(".SS %s\n", table->groups[group]);
		for (size_t i = 0; i < table->count; i++) {
			if (table->rows[i].group == group && table->rows[i].shown)
				print_option(&table->rows[i]);
		}
	}
}

int man_finish(void)
{
	if (fflush(stdout) || ferror(stdout)) {
		perror("man-page: standard output");
		return EXIT_FAILURE;
	}
	return EXIT_SUCCESS;
}
