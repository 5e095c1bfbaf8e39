/* --help, from the table of options and the table of classes. */
#include "launchers/options-table.h"
#include "launchers/options.h"

#include <string.h>

#define COLUMN 30
#define WIDTH  80

/* Prints words from `column` on, where the cursor stands at `at`, within the help's width. */
static void print_wrapped(FILE *out, int at, int column, const char *text)
{
	if (at >= column) { /* the words begin on a line of their own */
		fputc('\n', out);
		at = 0;
	}
	fprintf(out, "%*s", column - at, "");
	at = column;
	while (*text) {
		int len = (int)strcspn(text, " ");
		if (at > column && at + 1 + len > WIDTH) {
			fprintf(out, "\n%*s", column, "");
			at = column;
		}
		if (at > column)
			at += fprintf(out, " ");
		at += fprintf(out, "%.*s", len, text);
		text += len;
		text += strspn(text, " ");
	}
	fputc('\n', out);
}

static void print_option(FILE *out, const struct option_row *row)
{
	int at = row->letter ? fprintf(out, "  -%c, ", row->letter) : fprintf(out, "      ");
	at += fprintf(out, "--%s", row->name);
	if (row->argument)
		at += fprintf(out, " %s", row->argument);
	print_wrapped(out, at, COLUMN, row->help);
}

void options_help(FILE *out)
{
	const char *name;
	const char *what;
	bool on;

	fputs("usage: " OPTIONS_USAGE "\n\n"
	      "Runs a program and writes what it did as DFTracer traces, one file per process.\n",
	      out);
	for (size_t group = 0; group < GROUP_COUNT; group++) {
		fprintf(out, "\n%s:\n", option_groups[group]);
		for (size_t i = 0; i < OPTION_COUNT; i++) {
			if (option_rows[i].group == group && option_rows[i].shown)
				print_option(out, &option_rows[i]);
		}
	}
	fputs("\nClasses for -e (*: recorded by default):\n", out);
	for (unsigned i = 0; selection_class(i, &name, &what, &on); i++) {
		int at = fprintf(out, "  %c %s", on ? '*' : ' ', name);
		print_wrapped(out, at, COLUMN, what);
	}
	fputs("\nExit status: the program's; 125 when dftrace-run itself fails, 126 when the\n"
	      "program cannot be executed, 127 when it is not found.\n",
	      out);
}
