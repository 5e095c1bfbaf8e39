/* DFTRACER_* variables: each stands for an option, which wins over it. */
#include "launchers/options-internal.h"

#include <stdlib.h>
#include <strings.h>

enum kind {
	VALUE,
	WHEN_YES,
	WHEN_NO,
};

static const struct {
	const char *variable;
	enum option_id id;
	enum kind kind;
} variables[] = {
#define VARIABLE(name, option, kind, help) {name, OPTION_##option, kind},
#include "launchers/environment.def"
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

static bool is_given(const struct options *options, enum option_id id)
{
	for (size_t i = 0; i < options->nsettings; i++) {
		if (options->settings[i].id == (int)id)
			return true;
	}
	return false;
}

/* @return whether the option is to be applied, -1 with the sentence for a value that is neither. */
static int means_it(const char *variable, enum kind kind, const char *value, struct buf *error)
{
	if (kind == VALUE)
		return *value != '\0';
	/* Set to nothing is not set. */
	if (!*value)
		return 0;
	int answer = options_yes_or_no(value);
	if (answer < 0) {
		buf_addf(error, "%s=", variable);
		option_add_quoted(error, value);
		buf_add_str(error, " in the environment is neither 1 nor 0");
		return -1;
	}
	return answer == (kind == WHEN_YES);
}

int options_read_environment(struct options *options, bool *all, struct buf *error)
{
	for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++) {
		const char *variable = variables[i].variable;
		const char *value = getenv(variable);
		if (!value)
			continue;
		int wanted = means_it(variable, variables[i].kind, value, error);
		if (wanted < 0)
			return -1;
		if (!wanted || is_given(options, variables[i].id))
			continue;
		if (variables[i].kind != VALUE)
			value = NULL;
		if (options_apply(options, variables[i].id, value, all, error) < 0 ||
		    options_note(options, variables[i].id, value, variable, error) < 0)
			return -1;
	}
	return 0;
}
