#include "launchers/print-command.h"

#include "launchers/options-table.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Appends a word with a blank before it, in quotes where a shell would change it. */
static void add_word(struct buf *out, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "_-+=./,:@%";

	if (out->len)
		buf_add_char(out, ' ');
	if (*word && !word[strspn(word, plain)]) {
		buf_add_str(out, word);
		return;
	}
	buf_add_char(out, '\'');
	for (; *word; word++) {
		if (*word == '\'')
			buf_add_str(out, "'\\''");
		else
			buf_add_char(out, *word);
	}
	buf_add_char(out, '\'');
}

/* Relative paths in it would mean something else where the command is started. */
static void add_option(struct buf *out, enum option_id id, const char *value)
{
	char word[64];
	char *absolute = NULL;

	snprintf(word, sizeof(word), "--%s", option_rows[id].name);
	if (value && option_is_optional(&option_rows[id])) {
		struct buf both = {0};
		buf_addf(&both, "%s=%s", word, value);
		const char *text = buf_str(&both);
		add_word(out, text ? text : "");
		out->failed |= both.failed;
		buf_free(&both);
		return;
	}
	add_word(out, word);
	if (!value)
		return;
	if (id == OPTION_HOOK_FILE || id == OPTION_SYMBOLS)
		absolute = realpath(value, NULL);
	add_word(out, absolute ? absolute : value);
	free(absolute);
}

static void add_data_dirs(struct buf *out, const struct options *options)
{
	struct buf list = {0};

	for (size_t i = 0; i < options->data_dirs.count; i++)
		buf_addf(&list, "%s%s", i ? ":" : "", options->data_dirs.items[i]);
	const char *text = buf_str(&list);
	add_option(out, OPTION_DATA_DIR, list.len && text ? text : "all");
	out->failed |= list.failed;
	buf_free(&list);
}

static bool is_the_lines_own(int id)
{
	switch (id) {
	case OPTION_OUTPUT:
	case OPTION_DATA_DIR:
	case OPTION_STAGE:
	case OPTION_SUMMARY_FILE:
	case OPTION_CONFIG: /* what it says stands in the line */
	case OPTION_PRINT_COMMAND:
		return true;
	default: /* -q and -v may have been taken back */
		return !option_rows[id].name;
	}
}

int print_command(const struct options *options, FILE *out)
{
	struct buf line = {0};
	char *self = realpath("/proc/self/exe", NULL);

	add_word(&line, self ? self : "dftrace-run");
	free(self);
	add_option(&line, OPTION_OUTPUT, options->output_absolute);
	if (options->stage)
		add_option(&line, OPTION_STAGE, options->stage);
	if (options->summary_file)
		add_option(&line, OPTION_SUMMARY_FILE, options->summary_file);
	add_data_dirs(&line, options);
	for (size_t i = 0; i < options->nsettings; i++) {
		if (!is_the_lines_own(options->settings[i].id))
			add_option(&line, (enum option_id)options->settings[i].id,
				   options->settings[i].value);
	}
	add_word(&line, "--");
	for (int i = 0; i < options->argc; i++)
		add_word(&line, options->argv[i]);
	const char *text = buf_str(&line);
	int result = text && fprintf(out, "%s\n", text) >= 0 && fflush(out) == 0 ? 0 : -1;
	buf_free(&line);
	return result;
}

void print_sources(const struct options *options, struct buf *out)
{
	for (size_t i = 0; i < options->nsettings; i++) {
		const struct setting *setting = &options->settings[i];
		const char *name = option_rows[setting->id].name;
		if (!name)
			continue;
		buf_addf(out, "%s%s: %s", out->len ? ", " : "", name,
			 setting->source ? setting->source : "command line");
	}
	if (!out->len)
		buf_add_str(out, "all defaults");
}
