#include "launchers/options-table.h"

#include "launchers/options.h"

#include <ctype.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

const struct option_row option_rows[OPTION_COUNT] = {
#define OPTION(id, name, letter, argument, group, shown, help, more)                               \
	[OPTION_##id] = {name, letter, argument, GROUP_##group, shown, help, more},
#include "launchers/options.def"
};

const char *const option_groups[GROUP_COUNT] = {
#define GROUP(id, title) [GROUP_##id] = (title),
#include "launchers/options.def"
};

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

/* The number of single-character changes between two words: insert, remove, replace. */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[64];
	size_t len = strlen(b);

	if (len >= sizeof(row) / sizeof(row[0]))
		return UINT_MAX;
	for (size_t j = 0; j <= len; j++)
		row[j] = (unsigned)j;
	for (size_t i = 1; *a; a++, i++) {
		unsigned diagonal = row[0];
		row[0] = (unsigned)i;
		for (size_t j = 1; j <= len; j++) {
			unsigned best = diagonal + (*a != b[j - 1]);
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			diagonal = row[j];
			row[j] = best;
		}
	}
	return row[len];
}

/* @return the option that was probably meant by `--name`, NULL when none is near. A wrong letter or
 * two are near, and so is a name with something missing or added at either end. */
static const struct option_row *nearest(const char *name)
{
	const struct option_row *found = NULL;
	unsigned best = UINT_MAX;

	for (size_t i = 0; i < OPTION_COUNT; i++) {
		const struct option_row *row = &option_rows[i];
		if (!row->name || !row->shown)
			continue;
		unsigned d = distance(name, row->name);
		bool contained =
			strlen(name) > 2 && (strstr(row->name, name) || strstr(name, row->name));
		if (d < best && (contained || d <= 2)) {
			best = d;
			found = row;
		}
	}
	return found;
}

/* Lists the options that begin with `len` bytes of `name`; hidden ones when there are no others.
 * @return whether there were any. */
static bool add_candidates(struct buf *out, const char *name, size_t len)
{
	bool any = false;

	for (int shown = 1; shown >= 0 && !any && len > 0; shown--) {
		for (size_t i = 0; i < OPTION_COUNT; i++) {
			if (!option_rows[i].name || option_rows[i].shown != shown ||
			    strncmp(option_rows[i].name, name, len) != 0)
				continue;
			buf_addf(out, "%s--%s", any ? ", " : "", option_rows[i].name);
			any = true;
		}
	}
	return any;
}

/* getopt_long said no to `--name` or `--name=value`: several options begin so, or none does. */
static int refuse_name(const char *word, struct buf *error)
{
	struct buf candidates = {0};
	char *name = strndup(word + 2, strcspn(word + 2, "="));

	if (!name) {
		buf_add_str(error, "out of memory while reading the command line");
		return -1;
	}
	if (add_candidates(&candidates, name, strlen(name))) {
		buf_add_str(error, "ambiguous option ");
		option_add_quoted(error, word);
		buf_add_str(error, ": could be ");
		buf_add(error, candidates.data, candidates.len);
	} else {
		const struct option_row *near = nearest(name);
		buf_add_str(error, "unknown option ");
		option_add_quoted(error, word);
		if (near)
			buf_addf(error, ": did you mean --%s?", near->name);
		else
			buf_add_str(error, ": dftrace-run --help lists the options");
	}
	buf_free(&candidates);
	free(name);
	return -1;
}

static int refuse_letter(int letter, const char *word, struct buf *error)
{
	buf_add_str(error, "unknown option ");
	if (isalnum(letter))
		buf_addf(error, "-%c", letter);
	else
		option_add_quoted(error, word);
	for (size_t i = 0; i < OPTION_COUNT; i++) {
		if (option_rows[i].shown && option_rows[i].letter && isalpha(letter) &&
		    tolower(option_rows[i].letter) == tolower(letter)) {
			buf_addf(error, ": did you mean -%c (--%s)?", option_rows[i].letter,
				 option_rows[i].name);
			return -1;
		}
	}
	buf_add_str(error, ": dftrace-run --help lists the options");
	return -1;
}

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
	for (size_t i = 0; i < OPTION_COUNT; i++) {
		if (value == OPTION_LONG_VALUE(i) || (value && value == option_rows[i].letter))
			return &option_rows[i];
	}
	return NULL;
}

int option_refuse(int value, const char *word, struct buf *error)
{
	const struct option_row *row = option_row(optopt);

	if (row == &option_rows[OPTION_ATTACH])
		return option_refuse_attach(error);
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
	return optopt ? refuse_letter(optopt, word, error) : refuse_name(word, error);
}
