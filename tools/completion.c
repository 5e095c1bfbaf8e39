/* Prints bash's completion of a program: which options there are and what they take comes from the table that the
 * program itself uses. usage: completion dftrace-run|dftrace-check */
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
	const char *function; /* what the shell's names begin with */
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

	printf("# Says what an option takes: a kind, and words; nothing when it takes none.\n"
	       "%s_takes() {\n\tcase $1 in\n",
	       program->function);
	for (size_t i = 0; i < table->count; i++) {
		const struct option_row *row = &table->rows[i];
		if (!row->argument || !row->shown)
			continue;
		fputc('\t', stdout);
		if (row->letter)
			printf("-%c | ", row->letter);
		printf("--%s) echo '", row->name);
		print_argument(program, row->argument);
		fputs("' ;;\n", stdout);
	}
	printf("\tesac\n}\n\n%s_options='", program->function);
	for (size_t i = 0; i < table->count; i++) {
		if (table->rows[i].shown)
			printf("%s--%s", i ? " " : "", table->rows[i].name);
	}
	fputs("'\n\n", stdout);
}

/* The same for each program; @ is what its names begin with. */
static const char functions[] =
	"# Words as the user sees them: bash splits at = and : as well. `starts` are their places in COMP_WORDS.\n"
	"@_split() {\n"
	"\tlocal rest=${COMP_LINE:0:COMP_POINT} gap piece i\n"
	"\twords=() starts=()\n"
	"\tfor ((i = 0; i <= COMP_CWORD; i++)); do\n"
	"\t\tgap=${rest%%[![:blank:]]*}\n"
	"\t\trest=${rest#\"$gap\"}\n"
	"\t\tpiece=${COMP_WORDS[i]}\n"
	"\t\t((i == COMP_CWORD)) && piece=$rest\n"
	"\t\tif [[ -n $gap || $i == 0 ]]; then\n"
	"\t\t\twords+=(\"$piece\")\n"
	"\t\t\tstarts+=(\"$i\")\n"
	"\t\telse\n"
	"\t\t\twords[${#words[@]} - 1]+=$piece\n"
	"\t\tfi\n"
	"\t\trest=${rest#\"$piece\"}\n"
	"\tdone\n"
	"}\n"
	"\n"
	"# What may become of $1, by a kind and words.\n"
	"@_candidates() {\n"
	"\tlocal value=$1 kind=$2 before sign\n"
	"\tshift 2\n"
	"\tcase $kind in\n"
	"\twords) compgen -W \"$*\" -- \"$value\" ;;\n"
	"\tfiles) compgen -f -- \"$value\" ;;\n"
	"\tprograms)\n"
	"\t\tcompgen -c -- \"$value\"\n"
	"\t\t[[ $value == */* ]] && compgen -d -- \"$value\"\n"
	"\t\t;;\n"
	"\tdirs)\n"
	"\t\tbefore=${value%\"${value##*:}\"}\n"
	"\t\tcompgen -P \"$before\" -d -- \"${value##*:}\"\n"
	"\t\tcompgen -W \"$*\" -- \"$value\"\n"
	"\t\t;;\n"
	"\tlist)\n"
	"\t\tbefore=${value%\"${value##*,}\"}\n"
	"\t\tvalue=${value##*,}\n"
	"\t\tsign=${value%%[!+!]*}\n"
	"\t\tcompgen -P \"$before$sign\" -W \"$*\" -- \"${value#\"$sign\"}\"\n"
	"\t\t;;\n"
	"\tesac\n"
	"}\n"
	"\n"
	"# Fills COMPREPLY with what may become of $1, without what bash takes for another word.\n"
	"@_reply() {\n"
	"\tlocal cut=${1%\"${1##*[=:]}\"} line\n"
	"\t[[ $2 == files || $2 == dirs || $2 == programs ]] && compopt -o filenames 2>/dev/null\n"
	"\twhile IFS= read -r line; do\n"
	"\t\tCOMPREPLY+=(\"${line#\"$cut\"}\")\n"
	"\tdone < <(@_candidates \"$@\")\n"
	"}\n"
	"\n";

static const char main_function[] =
	"@() {\n"
	"\tlocal words starts i word takes\n"
	"\tCOMPREPLY=()\n"
	"\t@_split\n"
	"\tlocal last=$((${#words[@]} - 1))\n"
	"\tlocal current=${words[last]}\n"
	"\tfor ((i = 1; i < last; i++)); do\n"
	"\t\tword=${words[i]}\n"
	"\t\tcase $word in\n"
	"\t\t--)\n"
	"\t\t\t@_operand $((i + 1))\n"
	"\t\t\treturn\n"
	"\t\t\t;;\n"
	"\t\t--*=*) ;;\n"
	"\t\t-?*)\n"
	"\t\t\ttakes=$(@_takes \"$word\")\n"
	"\t\t\t[[ -z $takes ]] && continue\n"
	"\t\t\tif ((++i == last)); then\n"
	"\t\t\t\t# shellcheck disable=SC2086\n"
	"\t\t\t\t@_reply \"$current\" $takes\n"
	"\t\t\t\treturn\n"
	"\t\t\tfi\n"
	"\t\t\t;;\n"
	"\t\t*)\n"
	"\t\t\t@_operand \"$i\" && return\n"
	"\t\t\t;;\n"
	"\t\tesac\n"
	"\tdone\n"
	"\tcase $current in\n"
	"\t--*=*)\n"
	"\t\ttakes=$(@_takes \"${current%%=*}\")\n"
	"\t\t# shellcheck disable=SC2086\n"
	"\t\t[[ -n $takes ]] && @_reply \"${current#*=}\" $takes\n"
	"\t\t;;\n"
	"\t-*) @_reply \"$current\" words \"$@_options\" ;;\n"
	"\t*) @_operand \"$last\" ;;\n"
	"\tesac\n"
	"}\n";

/* $1: the place of the program among the words. */
static const char run_operand[] =
	"# Behind the options stands a command line of its own, from word $1 on.\n"
	"@_operand() {\n"
	"\tif declare -F _command_offset >/dev/null; then\n"
	"\t\t_command_offset \"${starts[$1]}\"\n"
	"\telif (($1 == ${#words[@]} - 1)); then\n"
	"\t\t@_reply \"${words[$1]}\" programs\n"
	"\telse\n"
	"\t\t@_reply \"${words[${#words[@]} - 1]}\" files\n"
	"\tfi\n"
	"\treturn 0\n"
	"}\n"
	"\n";

/* Options may stand behind files. */
static const char check_operand[] =
	"# Files; options may still follow, unless the word is the last.\n"
	"@_operand() {\n"
	"\tlocal last=$((${#words[@]} - 1))\n"
	"\t(($1 < last)) && [[ ${words[$1 - 1]} != -- ]] && return 1\n"
	"\t@_reply \"${words[last]}\" files\n"
	"\treturn 0\n"
	"}\n"
	"\n";

static void print_functions(const struct program *program, const char *text)
{
	for (; *text; text++) {
		/* "$@" and "${words[@]}" are the shell's own. */
		if (*text == '@' && (text[1] == '_' || text[1] == '('))
			fputs(program->function, stdout);
		else
			putchar(*text);
	}
}

int main(int argc, char **argv)
{
	static const struct program programs[] = {
		{"dftrace-run", "_dftrace_run", &options_table, true, print_trace_items},
		{"dftrace-check", "_dftrace_check", &check_option_table, false, print_categories},
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
	print_functions(program, functions);
	print_functions(program, program->runs_another ? run_operand : check_operand);
	print_functions(program, main_function);
	printf("\ncomplete -F %s %s\n", program->function, program->name);
	return man_finish();
}
