/* The prefix of the traces, and where they are written first. */
#include "launchers/options-internal.h"
#include "writer/prefix.h"

#include <stdlib.h>
#include <string.h>

#define DEFAULT_OUTPUT "trace"

static bool strip_ending(char *text, const char *ending)
{
	size_t len = strlen(text);
	size_t end = strlen(ending);
	if (len < end || strcmp(text + len - end, ending) != 0)
		return false;
	text[len - end] = '\0';
	return true;
}

static int check_expansions(const char *option, const char *value, struct buf *error)
{
	if (!prefix_check(value))
		return 0;
	buf_addf(error, "%s ", option);
	option_add_quoted(error, value);
	buf_add_str(error, ": known are %r (rank), %h (host), %p (process id), %j (job) "
			   "and %% (a percent sign)");
	return -1;
}

int options_set_output(struct options *options, const char *value, struct buf *error)
{
	if (strcmp(value, "-") == 0) {
		buf_add_str(error,
			    "-o - is refused: a trace is a file per process and cannot go to "
			    "standard output; give a prefix such as out/run1");
		return -1;
	}
	if (check_expansions("--output", value, error) < 0)
		return -1;
	char *output = strdup(value);
	if (!output) {
		options_no_memory(error);
		return -1;
	}
	if (!strip_ending(output, ".pfw.gz"))
		strip_ending(output, ".pfw");
	if (!*output) {
		free(output);
		buf_add_str(error, "--output ");
		option_add_quoted(error, value);
		buf_add_str(error, " leaves no name for the files: give a prefix such as out/run1");
		return -1;
	}
	free(options->output);
	options->output = output;
	return 0;
}

/* Appends the working directory and a slash where `path` is relative. @return 0, or -1 with the sentence. */
static int add_base(struct buf *out, const char *path, const char *option, bool escape,
		    struct buf *error)
{
	if (path[0] == '/')
		return 0;
	char *cwd = options_working_directory(option, error);
	if (!cwd)
		return -1;
	const char *base = strcmp(cwd, "/") == 0 ? "" : cwd;
	if (escape)
		prefix_escape(out, base);
	else
		buf_add_str(out, base);
	buf_add_char(out, '/');
	free(cwd);
	return 0;
}

/* Makes the prefix absolute. `..` stays: behind a symbolic link it leads elsewhere than its text says. */
int options_finish_output(struct options *options, struct buf *error)
{
	struct buf path = {0};

	if (!options->output && options_set_output(options, DEFAULT_OUTPUT, error) < 0)
		return -1;
	if (add_base(&path, options->output, "--output", true, error) < 0) {
		buf_free(&path);
		return -1;
	}
	buf_add_str(&path, options->output);
	if (path.len && path.data[path.len - 1] == '/') {
		char *longer;
		buf_add_str(&path, DEFAULT_OUTPUT);
		if (asprintf(&longer, "%s" DEFAULT_OUTPUT, options->output) < 0) {
			buf_free(&path);
			return options_no_memory(error);
		}
		free(options->output);
		options->output = longer;
	}
	const char *text = buf_str(&path);
	options->output_absolute = text ? strdup(text) : NULL;
	buf_free(&path);
	return options->output_absolute ? 0 : options_no_memory(error);
}

int options_set_stage(struct options *options, const char *value, struct buf *error)
{
	struct buf path = {0};

	if (!*value) {
		buf_add_str(error, "--stage needs a directory on this node, such as /tmp");
		return -1;
	}
	if (add_base(&path, value, "--stage", false, error) < 0) {
		buf_free(&path);
		return -1;
	}
	buf_add_str(&path, value);
	while (path.len > 1 && path.data && path.data[path.len - 1] == '/')
		path.len--;
	const char *text = buf_str(&path);
	free(options->stage);
	options->stage = text ? strdup(text) : NULL;
	buf_free(&path);
	return options->stage ? 0 : options_no_memory(error);
}

int options_set_path(char **to, const char *option, const char *value, struct buf *error)
{
	struct buf path = {0};

	if (check_expansions(option, value, error) < 0)
		return -1;
	if (add_base(&path, value, option, true, error) < 0) {
		buf_free(&path);
		return -1;
	}
	buf_add_str(&path, value);
	const char *text = buf_str(&path);
	free(*to);
	*to = text ? strdup(text) : NULL;
	buf_free(&path);
	return *to ? 0 : options_no_memory(error);
}
