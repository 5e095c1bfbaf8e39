#include "base/option.h"

#include "base/nearest.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define COLUMN 30
#define WIDTH  80

void option_add_quoted(struct buf *out, const char *text)
{
	buf_add_char(out, '\'');
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;
		if (c < ' ' || c == 0x7f)
			buf_addf(out, "\\x%02x", c);
		else
			buf_add_char(out, *text);
	}
	buf_add_char(out, '\'');
}

void option_add_name(struct buf *out, const struct option_row *row)
{
	if (row->name)
		buf_addf(out, "--%s", row->name);
	else
		buf_addf(out, "-%c", row->letter);
}

/* @return the option that was probably meant by `--name`, NULL when none is near. */
static const char *nearest(const struct option_table *table, const char *name)
{
	struct nearest found = {0};

	for (size_t i = 0; i < table->count; i++) {
		if (table->rows[i].name && table->rows[i].shown)
			nearest_try(&found, name, table->rows[i].name);
	}
	return found.word;
}

/* Lists the options that begin with `len` bytes of `name`; hidden ones when there are no others.
 * @return whether there were any. */
static bool add_candidates(const struct option_table *table, struct buf *out, const char *name,
			   size_t len)
{
	bool any = false;

	for (int shown = 1; shown >= 0 && !any && len > 0; shown--) {
		for (size_t i = 0; i < table->count; i++) {
			if (!table->rows[i].name || table->rows[i].shown != shown ||
			    strncmp(table->rows[i].name, name, len) != 0)
				continue;
			buf_addf(out, "%s--%s", any ? ", " : "", table->rows[i].name);
			any = true;
		}
	}
	return any;
}

/* getopt_long said no to `--name` or `--name=value`: several options begin so, or none does. */
static int refuse_name(const struct option_table *table, const char *word, struct buf *error)
{
	struct buf candidates = {0};
	char *name = strndup(word + 2, strcspn(word + 2, "="));

	if (!name) {
		buf_add_str(error, "out of memory while reading the command line");
		return -1;
	}
	if (add_candidates(table, &candidates, name, strlen(name))) {
		buf_add_str(error, "ambiguous option ");
		option_add_quoted(error, word);
		buf_add_str(error, ": could be ");
		buf_add(error, candidates.data, candidates.len);
	} else {
		const char *near = nearest(table, name);
		buf_add_str(error, "unknown option ");
		option_add_quoted(error, word);
		if (near)
			buf_addf(error, ": did you mean --%s?", near);
		else
			buf_addf(error, ": %s --help lists the options", table->program);
	}
	buf_free(&candidates);
	free(name);
	return -1;
}

static int refuse_letter(const struct option_table *table, int letter, const char *word,
			 struct buf *error)
{
	buf_add_str(error, "unknown option ");
	if (isalnum(letter))
		buf_addf(error, "-%c", letter);
	else
		option_add_quoted(error, word);
	const struct option_row *end = table->rows + table->count;
	for (const struct option_row *row = table->rows; row && row < end && isalpha(letter);
	     row++) {
		if (row->shown && row->letter && tolower(row->letter) == tolower(letter)) {
			buf_addf(error, ": did you mean -%c (--%s)?", row->letter, row->name);
			return -1;
		}
	}
	buf_addf(error, ": %s --help lists the options", table->program);
	return -1;
}

const struct option_row *option_find(const struct option_table *table, int value)
{
	for (size_t i = 0; i < table->count; i++) {
		if (value == OPTION_LONG_VALUE(i) || (value && value == table->rows[i].letter))
			return &table->rows[i];
	}
	return NULL;
}

int option_refuse_word(const struct option_table *table, int value, const char *word,
		       struct buf *error)
{
	const struct option_row *row = option_find(table, optopt);

	if (value == ':' && row) {
		option_add_name(error, row);
		buf_addf(error, " needs an argument: %s", row->argument);
		return -1;
	}
	if (row) {
		option_add_name(error, row);
		buf_add_str(error, " takes no argument: ");
		option_add_quoted(error, word);
		return -1;
	}
	return optopt ? refuse_letter(table, optopt, word, error) : refuse_name(table, word, error);
}

bool option_is_optional(const struct option_row *row)
{
	return row->argument && row->argument[0] == '[';
}

static int takes(const struct option_row *row)
{
	if (!row->argument)
		return no_argument;
	return option_is_optional(row) ? optional_argument : required_argument;
}

void option_getopt(const struct option_table *table, const char *first, struct option *names,
		   char *letters)
{
	letters = stpcpy(letters, first);
	/* Tell a missing argument from an unknown option. */
	*letters++ = ':';
	for (size_t i = 0; i < table->count; i++) {
		const struct option_row *row = &table->rows[i];
		if (row->name) {
			*names++ = (struct option){
				.name = row->name,
				.has_arg = takes(row),
				.val = OPTION_LONG_VALUE(i),
			};
		}
		if (row->letter) {
			*letters++ = row->letter;
			if (row->argument)
				*letters++ = ':';
		}
	}
	*names = (struct option){0};
	*letters = '\0';
}

void option_print_words(FILE *out, int at, const char *text)
{
	if (at >= COLUMN) { /* the words begin on a line of their own */
		fputc('\n', out);
		at = 0;
	}
	fprintf(out, "%*s", COLUMN - at, "");
	at = COLUMN;
	while (*text) {
		int len = (int)strcspn(text, " ");
		if (at > COLUMN && at + 1 + len > WIDTH) {
			fprintf(out, "\n%*s", COLUMN, "");
			at = COLUMN;
		}
		if (at > COLUMN)
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
		at += fprintf(out, "%s%s", option_is_optional(row) ? "" : " ", row->argument);
	option_print_words(out, at, row->help);
}

void option_print_help(const struct option_table *table, FILE *out)
{
	for (size_t group = 0; group < table->group_count; group++) {
		fprintf(out, "\n%s:\n", table->groups[group]);
		for (size_t i = 0; i < table->count; i++) {
			if (table->rows[i].group == group && table->rows[i].shown)
				print_option(out, &table->rows[i]);
		}
	}
}
