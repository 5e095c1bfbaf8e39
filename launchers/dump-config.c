#include "launchers/dump-config.h"

#include "launchers/settings.h"
#include "writer/put.h"

#include <string.h>

/* One setting as it is in force. */
struct effective {
	struct buf value; /* JSON where that is asked for */
	struct buf source;
};

/* Options that do something else than to run a program, and those of the tests. */
static bool is_setting(enum option_id id)
{
	switch (id) {
	case OPTION_DOCTOR:
	case OPTION_PRINT_COMMAND:
	case OPTION_DUMP_CONFIG:
	case OPTION_LIST_HOOKS:
	case OPTION_HELP:
	case OPTION_VERSION:
		return false;
	default:
		return option_rows[id].shown;
	}
}

/* Given several times, each counts. */
static bool adds_up(enum option_id id)
{
	switch (id) {
	case OPTION_DATA_DIR:
	case OPTION_TRACE:
	case OPTION_EXCLUDE:
	case OPTION_NO_RECORDER:
	case OPTION_HOOK:
	case OPTION_HOOK_FILE:
	case OPTION_SYMBOLS:
	case OPTION_RANKS:
		return true;
	default:
		return false;
	}
}

static void add_text(struct buf *out, const char *text, bool json)
{
	if (json) {
		put_json(out, text);
		return;
	}
	for (; *text; text++)
		buf_add_char(out, (unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text);
}

/* The default stands in the help: "(default: v1)", "(default: 0, no limit)". */
static void add_default(struct buf *out, const struct option_row *row, bool json, bool list)
{
	static const char mark[] = "(default: ";
	const char *at = strstr(row->help, mark);
	struct buf word = {0};

	if (at) {
		at += sizeof(mark) - 1;
		size_t len = strcspn(at, " )");
		if (at[len - 1] == ',')
			len--;
		buf_add(&word, at, len);
		buf_add_str(out, json && list ? "[" : "");
		if (buf_str(&word))
			add_text(out, word.data, json);
		buf_add_str(out, json && list ? "]" : "");
	} else if (json) {
		buf_add_str(out, list ? "[]" : "null");
	} else {
		buf_add_char(out, '-');
	}
	buf_free(&word);
}

/* What options make of words that were given, or of none. @return false: the words say it all. */
static bool add_made(struct buf *out, const struct options *options, enum option_id id, bool json)
{
	const char *rank = options->own.info.values[RANK_RANK];

	switch (id) {
	case OPTION_OUTPUT:
		add_text(out, options->output_absolute, json);
		return true;
	case OPTION_STAGE:
		if (options->stage)
			add_text(out, options->stage, json);
		return options->stage != NULL;
	case OPTION_SUMMARY_FILE:
		if (options->summary_file)
			add_text(out, options->summary_file, json);
		return options->summary_file != NULL;
	case OPTION_RANK:
		if (rank)
			add_text(out, rank, json);
		return rank != NULL;
	default:
		return false;
	}
}

static const char *source_of(const struct setting *setting)
{
	return setting->source ? setting->source : "command line";
}

/* The values of an option of which each counts. */
static void add_all(struct effective *effective, const struct options *options, enum option_id id,
		    bool json)
{
	struct buf *value = &effective->value;
	bool any = false;

	for (size_t i = 0; i < options->nsettings; i++) {
		const struct setting *setting = &options->settings[i];
		if (setting->id != (int)id)
			continue;
		buf_add_str(value, any ? (json ? "," : " ") : json ? "[" : "");
		add_text(value, setting->value ? setting->value : "all", json);
		buf_addf(&effective->source, "%s%s", any ? ", " : "", source_of(setting));
		any = true;
	}
	if (any && json)
		buf_add_char(value, ']');
}

/* Replaces the lists that were given by the directories that they are. */
static void add_directories(struct buf *value, const struct options *options)
{
	const struct strings *dirs = &options->data_dirs;
	bool json = options->json;

	buf_clear(value);
	buf_add_str(value, json ? "[" : "");
	for (size_t i = 0; i < dirs->count; i++) {
		buf_add_str(value, i ? (json ? "," : ":") : "");
		add_text(value, dirs->items[i], json);
	}
	if (dirs->count == 0)
		add_text(value, "all", json);
	buf_add_str(value, json ? "]" : "");
}

static const struct setting *last_of(const struct options *options, enum option_id id)
{
	const struct setting *last = NULL;

	for (size_t i = 0; i < options->nsettings; i++) {
		if (options->settings[i].id == (int)id)
			last = &options->settings[i];
	}
	return last;
}

static void find_effective(struct effective *effective, const struct options *options,
			   enum option_id id)
{
	const struct option_row *row = &option_rows[id];
	const struct setting *last = last_of(options, id);
	const char *launcher = options->own.info.launcher;
	bool json = options->json;

	if (last && adds_up(id)) {
		add_all(effective, options, id, json);
		if (id == OPTION_DATA_DIR)
			add_directories(&effective->value, options);
		return;
	}
	if (last)
		buf_add_str(&effective->source, source_of(last));
	else if (id == OPTION_RANK && launcher)
		buf_addf(&effective->source, "launcher: %s", launcher);
	else
		buf_add_str(&effective->source, "default");
	if (!row->argument)
		buf_add_str(&effective->value, json   ? (last ? "true" : "false")
					       : last ? "yes"
						      : "no");
	else if (add_made(&effective->value, options, id, json))
		return;
	else if (last)
		add_text(&effective->value, last->value, json);
	else
		add_default(&effective->value, row, json, adds_up(id));
}

/* `"name":"text"`, with what stands before it. */
static void print_field(FILE *out, const char *before, const char *name, const char *text)
{
	struct buf quoted = {0};

	put_json(&quoted, text);
	fprintf(out, "%s\"%s\":%s", before, name, buf_str(&quoted) ? buf_str(&quoted) : "null");
	buf_free(&quoted);
}

static void print_option(const struct options *options, enum option_id id, FILE *out)
{
	struct effective effective = {0};
	const char *name = option_rows[id].name;

	find_effective(&effective, options, id);
	const char *value = buf_str(&effective.value);
	const char *source = buf_str(&effective.source);
	if (!value || !source) {
		fprintf(stderr, "dftrace-run: out of memory\n");
	} else if (options->json) {
		fprintf(out, ",\n\"%s\":{\"value\":%s", name, value);
		print_field(out, ",", "source", source);
		fputc('}', out);
	} else {
		fprintf(out, "%-16s  %-40s  %s\n", name, value, source);
	}
	buf_free(&effective.value);
	buf_free(&effective.source);
}

static void print_ignored(const struct options *options, FILE *out)
{
	for (size_t i = 0; i < options->nignored; i++) {
		const struct setting *setting = &options->ignored[i];
		const struct settings_row *row = &settings_rows[setting->id];
		const char *name = row->variable ? row->variable : row->keys;
		struct buf value = {0};
		if (options->json) {
			print_field(out, i ? ",\n{" : "\n{", "name", name);
			print_field(out, ",", "value", setting->value);
			print_field(out, ",", "source", setting->source);
			print_field(out, ",", "why", row->help);
			fputc('}', out);
		} else {
			add_text(&value, setting->value, false);
			fprintf(out, "%s=%s (%s) changes nothing: %s\n", name,
				buf_str(&value) ? buf_str(&value) : "", setting->source, row->help);
			buf_free(&value);
		}
	}
}

/* What --init, -e and the --no-… options come to. */
static void print_recorded(const struct options *options, FILE *out)
{
	struct buf value = {0};

	selection_describe(&options->selection, &value);
	const char *text = buf_str(&value) ? buf_str(&value) : "";
	if (options->json)
		print_field(out, "\n", "recorded", text);
	else
		fprintf(out, "recorded: %s\n", text);
	buf_free(&value);
}

int dump_config(const struct options *options, FILE *out)
{
	if (options->json)
		fputc('{', out);
	print_recorded(options, out);
	for (int id = 0; id < OPTION_COUNT; id++) {
		if (!is_setting((enum option_id)id))
			continue;
		print_option(options, (enum option_id)id, out);
	}
	if (options->json)
		fputs(",\n\"ignored\":[", out);
	print_ignored(options, out);
	if (options->json)
		fputs("]}\n", out);
	return fflush(out) == 0 && !ferror(out) ? 0 : -1;
}
