/* --help, from the table of options and the table of classes. */
#include "launchers/options-table.h"
#include "launchers/options.h"

void options_help(FILE *out)
{
	const char *name;
	const char *what;
	bool on;

	fputs("usage: " OPTIONS_USAGE "\n\n"
	      "Runs a program and writes what it did as DFTracer traces, one file per process.\n",
	      out);
	option_print_help(&options_table, out);
	fputs("\nClasses for -e (*: recorded by default):\n", out);
	for (unsigned i = 0; selection_class(i, &name, &what, &on); i++) {
		int at = fprintf(out, "  %c %s", on ? '*' : ' ', name);
		option_print_words(out, at, what);
	}
	fputs("\nExit status: the program's; 125 when dftrace-run itself fails, 126 when the\n"
	      "program cannot be executed, 127 when it is not found.\n",
	      out);
}
