/* DFTRACER_* variables and the keys of a YAML file: each stands for an option, which wins over it. */
#include "launchers/settings.h"

#include "base/nearest.h"
#include "base/number.h"
#include "launchers/options-internal.h"

#include <fnmatch.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static const char prefix[] = "DFTRACER_";
static const char boolean[] = "1 (true, yes, on) or 0 (false, no, off)";
static const char number[] = "a number from 0 up";

#define BOOLEAN  boolean
#define NUMBER   number
#define ANYTHING NULL

const struct settings_row settings_rows[] = {
#define SETTING(variable, keys, option, kind, help)                                                \
	{variable, keys, OPTION_##option, SETTINGS_##kind, NULL, NULL, help},
#define IGNORED(variable, keys, legal, why)                                                        \
	{variable, keys, OPTION_COUNT, SETTINGS_IGNORED, legal, NULL, why},
#define REFUSED(variable, keys, legal, accepted, why)                                              \
	{variable, keys, OPTION_COUNT, SETTINGS_REFUSED, legal, accepted, why},
#include "launchers/environment.def"
};

const size_t settings_row_count = sizeof(settings_rows) / sizeof(*settings_rows);

/* A value, and where it was found. */
struct found {
	const char *value; /* NULL: nowhere */
	const char *place; /* "DFTRACER_INIT", "conf.yaml:7" */
	const char *key;   /* of the YAML file; NULL: it is a variable */
	bool inverted;     /* yes means no */
	bool is_list;
};

int options_yes_or_no(const char *value)
{
	static const char *const yes[] = {"1", "true", "yes", "on"};
	static const char *const no[] = {"", "0", "false", "no", "off"};

	for (size_t i = 0; i < sizeof(yes) / sizeof(*yes); i++) {
		if (strcasecmp(value, yes[i]) == 0)
			return 1;
	}
	for (size_t i = 0; i < sizeof(no) / sizeof(*no); i++) {
		if (strcasecmp(value, no[i]) == 0)
			return 0;
	}
	return -1;
}

/* "DFTRACER_INIT='x' in the environment", "conf.yaml:7: tracer.init: 'x'" */
static void add_found(struct buf *out, const struct found *found)
{
	buf_add_str(out, found->place);
	if (found->key)
		buf_addf(out, ": %s: ", found->key);
	else
		buf_add_char(out, '=');
	option_add_quoted(out, found->value);
	if (!found->key)
		buf_add_str(out, " in the environment");
}

static int refuse_value(const struct found *found, const char *legal, struct buf *error)
{
	add_found(error, found);
	buf_add_str(error, ": give ");
	options_add_words(error, legal);
	return -1;
}

/* @return what a boolean says for the variable, -1 with the sentence. */
static int boolean_of(const struct found *found, struct buf *error)
{
	int answer = options_yes_or_no(found->value);

	if (answer < 0)
		return refuse_value(found, boolean, error);
	return found->inverted ? !answer : answer;
}

/* Checks a value that stands for no option. @return 0, or -1 with the sentence. */
static int check(const struct settings_row *row, const struct found *found, struct buf *error)
{
	long value;

	if (!row->legal)
		return 0;
	if (row->legal == boolean) {
		int answer = boolean_of(found, error);
		if (answer < 0 || row->kind == SETTINGS_IGNORED)
			return answer < 0 ? -1 : 0;
		if (answer == options_yes_or_no(row->accepted))
			return 0;
	} else if (row->legal == number) {
		if (number_parse(found->value, 0, LONG_MAX, &value) == 0)
			return 0;
		return refuse_value(found, number, error);
	} else {
		if (options_choose(row->legal, found->value) < 0)
			return refuse_value(found, row->legal, error);
		if (row->kind == SETTINGS_IGNORED || strcasecmp(found->value, row->accepted) == 0)
			return 0;
	}
	add_found(error, found);
	buf_addf(error, " is refused: %s; unset it, or give %s", row->help, row->accepted);
	return -1;
}

/* @return whether the command line says what the option would. */
static bool is_given(const struct setting *words, size_t count, enum option_id id)
{
	for (size_t i = 0; i < count; i++) {
		int given = words[i].id;
		if (given == (int)id)
			return true;
		if (id == OPTION_LOG_LEVEL &&
		    (given == OPTION_QUIET || given == OPTION_VERBOSE || given == OPTION_DEBUG))
			return true;
	}
	return false;
}

static int apply(struct options *options, const struct settings_row *row, const struct found *found,
		 bool *all, struct buf *error)
{
	bool is_flag = row->kind == SETTINGS_WHEN_YES || row->kind == SETTINGS_WHEN_NO;
	struct buf why = {0};

	if (is_flag) {
		int answer = boolean_of(found, error);
		if (answer < 0)
			return -1;
		if (answer != (row->kind == SETTINGS_WHEN_YES))
			return 0;
	}
	if (options_apply(options, row->option, is_flag ? "" : found->value, all, &why) < 0) {
		add_found(error, found);
		buf_addf(error, ": %s", buf_str(&why) ? buf_str(&why) : "out of memory");
		buf_free(&why);
		return -1;
	}
	buf_free(&why);
	return options_note(options, row->option, is_flag ? NULL : found->value, found->place,
			    error);
}

static void find_variable(const struct settings_row *row, struct found *found)
{
	const char *value = row->variable ? getenv(row->variable) : NULL;

	/* Set to nothing is not set. */
	if (value && *value)
		*found = (struct found){.value = value, .place = row->variable};
}

/* Keys of "profiler" are those of "tracer". */
static bool is_key(const char *key, const char *wanted, size_t len)
{
	static const char old[] = "profiler.";
	static const char new[] = "tracer.";

	if (strncmp(key, old, sizeof(old) - 1) == 0 && strncmp(wanted, new, sizeof(new) - 1) == 0) {
		key += sizeof(old) - 1;
		wanted += sizeof(new) - 1;
		len -= sizeof(new) - 1;
	}
	return strncmp(key, wanted, len) == 0 && key[len] == '\0';
}

/* Looks for the row's keys in the file and marks them as known. */
static void find_key(const struct settings_row *row, struct config_file *file, struct found *found)
{
	const char *at = row->keys ? row->keys : "";

	while (*(at += strspn(at, " "))) {
		bool inverted = *at == '!';
		at += inverted;
		size_t len = strcspn(at, " ");
		for (size_t i = 0; i < file->count; i++) {
			struct config_value *value = &file->values[i];
			if (!is_key(value->key, at, len))
				continue;
			value->known = true;
			if (*value->value && !found->value)
				*found = (struct found){.value = value->value,
							.place = value->place,
							.key = value->key,
							.inverted = inverted,
							.is_list = value->is_list};
		}
		at += len;
	}
}

static int warn(struct options *options, struct buf *warning, struct buf *error)
{
	const char *text = buf_str(warning);
	int result = text ? strings_take(&options->warnings, strdup(text)) : -1;

	buf_free(warning);
	return result < 0 ? options_no_memory(error) : 0;
}

static void add_nearest(struct buf *out, const struct nearest *nearest)
{
	if (nearest->word)
		buf_addf(out, "; did you mean %s?", nearest->word);
}

static int warn_of_variable(struct options *options, const char *name, struct buf *error)
{
	struct nearest nearest = {0};
	struct buf warning = {0};

	for (size_t i = 0; i < settings_row_count; i++) {
		const char *known = settings_rows[i].variable;
		if (known && fnmatch(known, name, 0) == 0)
			return 0;
		if (known && !strchr(known, '*'))
			nearest_try(&nearest, name, known);
	}
	option_add_quoted(&warning, name);
	buf_add_str(&warning, " in the environment is no setting of DFTracer");
	add_nearest(&warning, &nearest);
	return warn(options, &warning, error);
}

/* Says which names that begin as settings do are none. */
static int warn_of_variables(struct options *options, struct buf *error)
{
	int result = 0;

	for (char **at = environ; *at && result == 0; at++) {
		if (strncmp(*at, prefix, sizeof(prefix) - 1) != 0)
			continue;
		char *name = strndup(*at, strcspn(*at, "="));
		result = name ? warn_of_variable(options, name, error) : options_no_memory(error);
		free(name);
	}
	return result;
}

/* Looks at each key of a row. @return whether `section` holds one of them. */
static bool try_keys(const char *keys, const char *key, struct nearest *nearest,
		     struct strings *words)
{
	bool section = false;
	size_t key_len = strlen(key);

	for (const char *at = keys; *(at += strspn(at, " !"));) {
		size_t len = strcspn(at, " ");
		section |= len > key_len && strncmp(at, key, key_len) == 0 && at[key_len] == '.';
		char *word = strndup(at, len);
		if (word && strings_take(words, word) == 0)
			nearest_try(nearest, key, word);
		at += len;
	}
	return section;
}

static int warn_of_key(struct options *options, const struct config_value *value, struct buf *error)
{
	struct nearest nearest = {0};
	struct strings words = {0};
	struct buf warning = {0};
	bool section = strcmp(value->key, "profiler") == 0;

	for (size_t i = 0; i < settings_row_count; i++) {
		if (settings_rows[i].keys)
			section |= try_keys(settings_rows[i].keys, value->key, &nearest, &words);
	}
	/* A section without anything in it. */
	if (section && !*value->value) {
		strings_free(&words);
		return 0;
	}
	buf_addf(&warning, "%s: ", value->place);
	option_add_quoted(&warning, value->key);
	buf_add_str(&warning, " is no setting of DFTracer");
	add_nearest(&warning, &nearest);
	strings_free(&words);
	return warn(options, &warning, error);
}

static int read_file(struct options *options, const struct setting *words, size_t count,
		     struct buf *error)
{
	const char *path = getenv(settings_rows[0].variable);
	const char *named = settings_rows[0].variable;
	struct buf why = {0};

	for (size_t i = 0; i < count; i++) {
		if (words[i].id == OPTION_CONFIG) {
			path = words[i].value;
			named = "--config";
		}
	}
	if (!path || (!*path && named == settings_rows[0].variable))
		return 0;
	if (config_file_read(&options->file, path, &why) == 0)
		return 0;
	buf_addf(error, "%s: %s", named, buf_str(&why) ? buf_str(&why) : "out of memory");
	buf_free(&why);
	return -1;
}

static int take_row(struct options *options, const struct settings_row *row,
		    const struct setting *words, size_t count, bool *all, struct buf *error)
{
	struct found found = {0};

	find_variable(row, &found);
	find_key(row, &options->file, &found);
	if (!found.value)
		return 0;
	bool takes_list =
		row->kind == SETTINGS_LIST || (row->kind == SETTINGS_IGNORED && !row->legal);
	if (found.is_list && !takes_list) {
		buf_addf(error, "%s: %s: one value is wanted, not a list", found.place, found.key);
		return -1;
	}
	if (row->option == OPTION_COUNT) {
		struct setting ignored = {(int)(row - settings_rows), found.value, found.place};
		if (check(row, &found, error) < 0)
			return -1;
		return options_add_setting(&options->ignored, &options->nignored, ignored, error);
	}
	if (is_given(words, count, row->option))
		return 0;
	return apply(options, row, &found, all, error);
}

int options_read_settings(struct options *options, const struct setting *words, size_t count,
			  bool *all, struct buf *error)
{
	int result = 0;

	/* A run that is not traced is not to fail by how it would be. */
	if (is_given(words, count, OPTION_DISABLE)) {
		options->disabled = true;
		return 0;
	}
	const char *enabled = getenv("DFTRACER_ENABLE");
	if (!enabled || options_yes_or_no(enabled) != 0 || !*enabled)
		result = read_file(options, words, count, error);
	for (size_t i = 0; i < settings_row_count && result == 0 && !options->disabled; i++)
		result = take_row(options, &settings_rows[i], words, count, all, error);
	if (result < 0 || options->disabled)
		return result;
	if (warn_of_variables(options, error) < 0)
		return -1;
	for (size_t i = 0; i < options->file.count && result == 0; i++) {
		if (!options->file.values[i].known)
			result = warn_of_key(options, &options->file.values[i], error);
	}
	return result;
}
