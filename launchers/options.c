#include "base/number.h"
#include "base/path.h"
#include "launchers/options-internal.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <sys/stat.h>

#define COMM_BYTES 15
#define ALL_IO     "!posix,!stdio,!mpi,!hdf5"

int options_no_memory(struct buf *error)
{
	buf_clear(error);
	buf_add_str(error, "out of memory while reading the command line");
	return -1;
}

/* `-output x` would be read as `-o utput` and a program x. @return whether `word` is such a slip. */
static bool is_one_dash_name(const char *word)
{
	if (!word || word[0] != '-' || word[1] == '-')
		return false;
	for (size_t i = 0; i < OPTION_COUNT; i++) {
		size_t len = option_rows[i].name ? strlen(option_rows[i].name) : 0;
		if (len && strncmp(word + 1, option_rows[i].name, len) == 0 &&
		    (word[1 + len] == '\0' || word[1 + len] == '='))
			return true;
	}
	return false;
}

char *options_working_directory(const char *option, struct buf *error)
{
	char *cwd = getcwd(NULL, 0);
	if (!cwd) {
		buf_addf(error,
			 "the working directory cannot be told (%s): give %s an absolute path",
			 strerror(errno), option);
	}
	return cwd;
}

/* Adds a directory to the list; that it does not exist (yet) is worth a warning. */
static int add_data_dir(struct options *options, const char *entry, size_t len, struct buf *error)
{
	struct buf path = {0};
	struct stat st;
	char *cwd = NULL;
	int result = -1;

	if (entry[0] != '/') {
		cwd = options_working_directory("--data-dir", error);
		if (!cwd)
			return -1;
	}
	path_absolute(&path, cwd ? cwd : "/", cwd ? strlen(cwd) : 1, entry, len);
	free(cwd);
	const char *text = buf_str(&path);
	if (!text || strings_take(&options->data_dirs, strdup(text)) < 0) {
		options_no_memory(error);
		goto out;
	}
	if (stat(text, &st) < 0) {
		struct buf warning = {0};
		int why = errno;
		buf_add_str(&warning, "--data-dir: ");
		option_add_quoted(&warning, text);
		buf_addf(&warning, ": %s; nothing is recorded there until it exists",
			 strerror(why));
		const char *sentence = buf_str(&warning);
		int taken = sentence ? strings_take(&options->warnings, strdup(sentence)) : -1;
		buf_free(&warning);
		if (taken < 0) {
			options_no_memory(error);
			goto out;
		}
	}
	result = 0;
out:
	buf_free(&path);
	return result;
}

static int add_data_dirs(struct options *options, const char *list, bool *all, struct buf *error)
{
	size_t before = options->data_dirs.count;

	if (strcmp(list, "all") == 0) {
		*all = true;
		return 0;
	}
	for (const char *at = list; *at;) {
		size_t len = strcspn(at, ":");
		if (len && add_data_dir(options, at, len, error) < 0)
			return -1;
		at += len + (at[len] == ':');
	}
	if (options->data_dirs.count == before)
		*all = true;
	for (size_t i = before; i < options->data_dirs.count; i++)
		*all |= strcmp(options->data_dirs.items[i], "/") == 0;
	return 0;
}

/* Takes the names of programs. */
static int add_names(enum option_id id, struct strings *names, const char *list, struct buf *error)
{
	for (const char *at = list;;) {
		size_t len = strcspn(at, ",");
		if (len == 0) {
			option_add_name(error, &option_rows[id]);
			buf_add_char(error, ' ');
			option_add_quoted(error, list);
			buf_add_str(error, " has an empty name in it: give names as in bash,git");
			return -1;
		}
		if (strings_take(names, strndup(at, len)) < 0)
			return options_no_memory(error);
		if (!at[len])
			return 0;
		at += len + 1;
	}
}

int options_choose(const char *words, const char *value)
{
	size_t value_len = strlen(value);

	for (int i = 0;; i++) {
		size_t len = strcspn(words, "|");
		if (len == value_len && strncasecmp(words, value, len) == 0)
			return i;
		if (!words[len])
			return -1;
		words += len + 1;
	}
}

void options_add_words(struct buf *out, const char *words)
{
	for (;;) {
		size_t len = strcspn(words, "|");
		buf_add(out, words, len);
		words += len;
		if (!*words++)
			return;
		buf_add_str(out, strchr(words, '|') ? ", " : " or ");
	}
}

/* Reads one of several words. @return which, -1 with the sentence. */
static int choice(enum option_id id, const char *value, const char *words, struct buf *error)
{
	int which = options_choose(words, value);

	if (which >= 0)
		return which;
	option_add_name(error, &option_rows[id]);
	buf_add_char(error, ' ');
	option_add_quoted(error, value);
	buf_add_str(error, " is unknown: give ");
	options_add_words(error, words);
	return -1;
}

static int set_choice(enum option_id id, const char *value, const char *words, bool *is_second,
		      struct buf *error)
{
	int which = choice(id, value, words, error);
	if (which < 0)
		return -1;
	*is_second = which == 1;
	return 0;
}

static int set_tracer(struct options *options, const char *value, struct buf *error)
{
	int which = choice(OPTION_TRACER, value, "detached|parent", error);
	if (which < 0)
		return -1;
	options->tracer = which ? TRACER_FORM_PARENT : TRACER_FORM_DETACHED;
	return 0;
}

static int set_count(const char *option, const char *what, const char *value, long least,
		     unsigned long *to, struct buf *error)
{
	long count;
	if (number_parse(value, least, LONG_MAX, &count) < 0) {
		buf_addf(error, "%s ", option);
		option_add_quoted(error, value);
		buf_addf(error, " is not a number of %s", what);
		return -1;
	}
	*to = (unsigned long)count;
	return 0;
}

/* @return 0, or -1 with the sentence when `/…/` is no regular expression. */
static int check_regex(const char *value, struct buf *error)
{
	const char *end = strrchr(value, '/');
	char why[128];
	regex_t regex;

	if (end == value) {
		buf_add_str(error, "-x ");
		option_add_quoted(error, value);
		buf_add_str(error, ": a regular expression ends with a slash, too");
		return -1;
	}
	char *text = strndup(value + 1, (size_t)(end - value) - 1);
	int failed = text ? regcomp(&regex, text, REG_EXTENDED | REG_NOSUB) : REG_ESPACE;
	free(text);
	if (!failed) {
		regfree(&regex);
		return 0;
	}
	regerror(failed, &regex, why, sizeof(why));
	buf_add_str(error, "-x ");
	option_add_quoted(error, value);
	buf_addf(error, " is no regular expression: %s", why);
	return -1;
}

static int add_hook(struct options *options, const char *value, struct buf *error)
{
	if (value[0] == '\0' || value[0] == '@') {
		buf_add_str(error,
			    "-x needs a function's name or a pattern for it, such as 'solve_*'");
		return -1;
	}
	if (value[0] == '/' && check_regex(value, error) < 0)
		return -1;
	return strings_take(&options->hooks, strdup(value)) < 0 ? options_no_memory(error) : 0;
}

static int add_hook_file(struct options *options, const char *path, struct buf *error)
{
	char *line = NULL;
	size_t size = 0;
	int result = 0;

	FILE *f = fopen(path, "re");
	if (!f) {
		buf_add_str(error, "--hook-file ");
		option_add_quoted(error, path);
		buf_addf(error, " cannot be read: %s", strerror(errno));
		return -1;
	}
	while (result == 0 && getline(&line, &size, f) >= 0) {
		line[strcspn(line, "\r\n")] = '\0';
		const char *pattern = line + strspn(line, " \t");
		if (pattern[0] && pattern[0] != '#')
			result = add_hook(options, pattern, error);
	}
	free(line);
	fclose(f);
	return result;
}

static int add_symbols(struct options *options, const char *value, struct buf *error)
{
	char *path = realpath(value, NULL);
	if (!path) {
		buf_add_str(error, "--symbols ");
		option_add_quoted(error, value);
		buf_addf(error, ": %s", strerror(errno));
		return -1;
	}
	return strings_take(&options->symbol_dirs, path) < 0 ? options_no_memory(error) : 0;
}

static int set_rank(struct options *options, const char *value, struct buf *error)
{
	unsigned long rank;

	if (set_count("--rank", "a rank: give one from 0 up", value, 0, &rank, error) < 0)
		return -1;
	free(options->rank);
	free(options->summary_file);
	config_file_free(&options->file);
	/* As a number is written: without zeros in front. */
	return asprintf(&options->rank, "%lu", rank) < 0 ? options_no_memory(error) : 0;
}

int options_add_setting(struct setting **list, size_t *count, struct setting setting,
			struct buf *error)
{
	struct setting *longer = reallocarray(*list, *count + 1, sizeof(**list));

	if (!longer)
		return options_no_memory(error);
	*list = longer;
	longer[(*count)++] = setting;
	return 0;
}

int options_note(struct options *options, enum option_id id, const char *value, const char *source,
		 struct buf *error)
{
	return options_add_setting(&options->settings, &options->nsettings,
				   (struct setting){(int)id, value, source}, error);
}

/* Options that only say yes, and where. */
static const size_t flags[OPTION_COUNT] = {
	[OPTION_NO_COMPRESS] = offsetof(struct options, no_compress),
	[OPTION_NO_PLACEMENT] = offsetof(struct options, no_placement),
	[OPTION_NO_METADATA] = offsetof(struct options, no_metadata),
	[OPTION_NO_TIDS] = offsetof(struct options, no_tids),
	[OPTION_CORE_AFFINITY] = offsetof(struct options, core_affinity),
	[OPTION_SUMMARY] = offsetof(struct options, summary),
	[OPTION_SUMMARY_TOO] = offsetof(struct options, summary),
	[OPTION_SUMMARY_ONLY] = offsetof(struct options, summary_only),
	[OPTION_DUMP_CONFIG] = offsetof(struct options, dump_config),
	[OPTION_DEBUG] = offsetof(struct options, debug),
	[OPTION_DOCTOR] = offsetof(struct options, doctor),
	[OPTION_LIST_HOOKS] = offsetof(struct options, list_hooks),
	[OPTION_JSON] = offsetof(struct options, json),
	[OPTION_DISABLE] = offsetof(struct options, disabled),
	[OPTION_TRACE_LAUNCHER] = offsetof(struct options, trace_launcher),
	[OPTION_DROP_PRELOAD] = offsetof(struct options, drop_preload),
	[OPTION_PRINT_COMMAND] = offsetof(struct options, print_command),
	[OPTION_NO_SECCOMP] = offsetof(struct options, no_seccomp),
	[OPTION_NO_SYSCALL_INFO] = offsetof(struct options, no_syscall_info),
	[OPTION_NO_PROC_MEM] = offsetof(struct options, no_proc_mem),
	[OPTION_NO_VM_READV] = offsetof(struct options, no_vm_readv),
	[OPTION_NO_SETPTRACER] = offsetof(struct options, no_setptracer),
	[OPTION_NO_EMULATION] = offsetof(struct options, no_emulation),
};

/* The last of -q and -v counts. */
static int set_quiet(struct options *options, bool quiet)
{
	options->quiet = quiet;
	options->verbose = quiet ? 0 : options->verbose + 1;
	return OPTIONS_RUN;
}

static int set_log_level(struct options *options, const char *value, struct buf *error)
{
	int level = choice(OPTION_LOG_LEVEL, value, "error|warn|info|debug", error);
	if (level < 0)
		return -1;
	if (level == 2)
		return set_quiet(options, false);
	options->debug |= level == 3;
	return OPTIONS_RUN;
}

/* The selection repeats what it does not know as it is. */
static int set_selection(struct options *options, const char *value, struct buf *error)
{
	if (selection_apply(&options->selection, value, error) == 0)
		return OPTIONS_RUN;
	for (size_t i = 0; i < error->len; i++) {
		if ((unsigned char)error->data[i] < ' ')
			error->data[i] = '?';
	}
	return -1;
}

/* What the modes, and each -e, start from. */
static int set_init(struct options *options, const char *value, struct buf *error)
{
	int mode = choice(OPTION_INIT, value, "preload|hybrid|function", error);
	if (mode < 0)
		return -1;
	options->init = mode == 0 ? INIT_PRELOAD : mode == 1 ? INIT_HYBRID : INIT_FUNCTION;
	return mode == 2 ? set_selection(options, ALL_IO, error) : OPTIONS_RUN;
}

static int set_summary_file(struct options *options, const char *value, struct buf *error)
{
	if (!*value || value[strlen(value) - 1] == '/') {
		buf_add_str(error,
			    "--summary-file needs the name of a file, such as out/summary.txt");
		return -1;
	}
	options->summary = true;
	return options_set_path(&options->summary_file, "--summary-file", value, error);
}

int options_apply(struct options *options, enum option_id id, const char *value, bool *all,
		  struct buf *error)
{
	switch (id) {
	case OPTION_ATTACH:
		return option_refuse_attach(error);
	case OPTION_OUTPUT:
		return options_set_output(options, value, error);
	case OPTION_STAGE:
		return options_set_stage(options, value, error);
	case OPTION_RANK:
		return set_rank(options, value, error);
	case OPTION_RANKS:
		return rank_list_add(&options->ranks, value, error);
	case OPTION_DATA_DIR:
		return add_data_dirs(options, value, all, error);
	case OPTION_TRACE:
		return set_selection(options, value, error);
	case OPTION_INIT:
		return set_init(options, value, error);
	case OPTION_NO_POSIX:
		return set_selection(options, "!posix", error);
	case OPTION_NO_STDIO:
		return set_selection(options, "!stdio", error);
	case OPTION_NO_IO:
		return set_selection(options, ALL_IO, error);
	case OPTION_EXCLUDE:
		return add_names(id, &options->exclude, value, error);
	case OPTION_NO_RECORDER:
		if (!value) {
			options->recorder = false;
			return OPTIONS_RUN;
		}
		return add_names(id, &options->no_recorder, value, error);
	case OPTION_CAPTURE:
		return set_choice(id, value, "stops|recorder", &options->recorder, error);
	case OPTION_RECORDER_HITS:
		return set_count("--recorder-hits", "stops: give one from 1 up", value, 1,
				 &options->recorder_hits, error);
	case OPTION_FORMAT:
		return set_choice(id, value, "v1|v2", &options->v2, error);
	case OPTION_PATHS:
		return set_choice(id, value, "absolute|given", &options->paths_given, error);
	case OPTION_NAMES:
		return set_choice(id, value, "trace|kernel", &options->names_kernel, error);
	case OPTION_MAX_FILES:
		return set_count("--max-files", "files: give one from 1 up, or 0 for no limit",
				 value, 0, &options->max_files, error);
	case OPTION_MAX_HOOKS:
		return set_count("--max-hooks", "functions: give one from 1 up", value, 1,
				 &options->max_hooks, error);
	case OPTION_HOOK_LIMIT:
		return set_count("--hook-limit",
				 "calls a second: give one from 1 up, or 0 for no limit", value, 0,
				 &options->hook_limit, error);
	case OPTION_HOOK:
		return add_hook(options, value, error);
	case OPTION_HOOK_FILE:
		return add_hook_file(options, value, error);
	case OPTION_SYMBOLS:
		return add_symbols(options, value, error);
	case OPTION_BUFFER_SIZE:
		return set_count("--buffer-size", "bytes: give one from 0 up", value, 0,
				 &options->buffer_size, error);
	case OPTION_SUMMARY_FILE:
		return set_summary_file(options, value, error);
	case OPTION_LOG_LEVEL:
		return set_log_level(options, value, error);
	case OPTION_TRACER:
		return set_tracer(options, value, error);
	case OPTION_QUIET:
		return set_quiet(options, true);
	case OPTION_VERBOSE:
		return set_quiet(options, false);
	default: /* a flag, or -f and -y, which are always so */
		if (flags[id])
			*((bool *)((char *)options + flags[id])) = true;
		return OPTIONS_RUN;
	}
}

/* The options that were given, in their order. */
struct words {
	struct setting *items;
	size_t count;
};

/* Reads the words without doing what they say. @return as options_apply. */
static int parse_words(struct words *words, int argc, char **argv, struct buf *error)
{
	struct option names[OPTION_COUNT + 1];
	char letters[2 * OPTION_COUNT + 4];
	int before = 0;

	/* Stop at the first word that is no option. */
	option_getopt(&options_table, "+", names, letters);
	opterr = 0;
	optind = 0; /* GNU: start anew */
	for (;;) {
		int at = optind > 0 ? optind : 1;
		if (at != before && at < argc && is_one_dash_name(argv[at])) {
			option_add_quoted(error, argv[at]);
			buf_addf(error, ": long options have two dashes: -%s", argv[at]);
			return -1;
		}
		before = at;
		int value = getopt_long(argc, argv, letters, names, NULL);
		if (value < 0)
			return OPTIONS_RUN;
		const struct option_row *row = option_row(value);
		if (value == '?' || value == ':' || !row)
			return option_refuse(value, argv[at], error);
		enum option_id id = (enum option_id)(row - option_rows);
		if (id == OPTION_HELP)
			return OPTIONS_HELP;
		if (id == OPTION_VERSION)
			return OPTIONS_VERSION;
		if (options_add_setting(&words->items, &words->count,
					(struct setting){(int)id, optarg, NULL}, error) < 0)
			return -1;
	}
}

/* Does what the words say: those about the mode, which the others start from, or all others. */
static int apply_words(struct options *options, const struct words *words, bool modes, bool *all,
		       struct buf *error)
{
	const struct setting *last = NULL;

	for (size_t i = 0; i < words->count; i++) {
		const struct setting *word = &words->items[i];
		enum option_id id = (enum option_id)word->id;
		if (modes && id == OPTION_INIT)
			last = word;
		if (modes || id == OPTION_INIT)
			continue;
		if (options_apply(options, id, word->value, all, error) < 0 ||
		    options_note(options, id, word->value, NULL, error) < 0)
			return -1;
	}
	if (!last)
		return 0;
	if (options_apply(options, OPTION_INIT, last->value, all, error) < 0)
		return -1;
	return options_note(options, OPTION_INIT, last->value, NULL, error);
}

/* The command line wins over the environment, so it comes last. */
static int apply_all(struct options *options, const struct words *words, bool *all,
		     struct buf *error)
{
	if (apply_words(options, words, true, all, error) < 0 ||
	    options_read_settings(options, words->items, words->count, all, error) < 0)
		return -1;
	return apply_words(options, words, false, all, error);
}

/* @return 0, or -1 with the sentence about what does not go together. */
static int check_together(const struct options *options, struct buf *error)
{
	if (options->json && !options->doctor && !options->dump_config && !options->summary) {
		buf_add_str(error, "--json says how --doctor, --dump-config or --summary is to "
				   "print: give one of them");
		return -1;
	}
	if (options->argc == 0 && !options->doctor && !options->list_hooks &&
	    !options->dump_config) {
		buf_add_str(error,
			    "no program to run; usage: " OPTIONS_USAGE ", see dftrace-run --help");
		return -1;
	}
	return 0;
}

int options_parse(struct options *options, int argc, char **argv, struct buf *error)
{
	struct words words = {0};
	bool all = false;

	*options = (struct options){.max_hooks = 4096, .recorder_hits = 8};
	selection_default(&options->selection);
	int action = argc > 0 ? parse_words(&words, argc, argv, error) : OPTIONS_RUN;
	options->argc = argc > 0 ? argc - optind : 0;
	options->argv = argc > 0 ? argv + optind : argv;
	if (action == OPTIONS_RUN && apply_all(options, &words, &all, error) < 0)
		action = -1;
	free(words.items);
	if (action != OPTIONS_RUN)
		return action;
	if (all)
		strings_free(&options->data_dirs);
	options->summary |= options->summary_only;
	if (check_together(options, error) < 0)
		return -1;
	if (ranks_own(&options->own) < 0)
		return options_no_memory(error);
	if (options->rank)
		options->own.info.values[RANK_RANK] = options->rank;
	return options_finish_output(options, error) < 0 ? -1 : OPTIONS_RUN;
}

static bool names_program(const struct strings *names, const char *comm)
{
	for (size_t i = 0; i < names->count; i++) {
		if (strncmp(names->items[i], comm, COMM_BYTES) == 0)
			return true;
	}
	return false;
}

bool options_excludes(const struct options *options, const char *comm)
{
	return names_program(&options->exclude, comm);
}

bool options_excludes_recorder(const struct options *options, const char *comm)
{
	return names_program(&options->no_recorder, comm);
}

bool options_speaks(const struct options *options)
{
	const char *rank = options->own.info.values[RANK_RANK];
	return !options->quiet && (!rank || strcmp(rank, "0") == 0);
}

void options_free(struct options *options)
{
	free(options->output);
	free(options->output_absolute);
	free(options->stage);
	free(options->rank);
	free(options->summary_file);
	config_file_free(&options->file);
	free(options->settings);
	free(options->ignored);
	rank_list_free(&options->ranks);
	ranks_own_free(&options->own);
	strings_free(&options->data_dirs);
	strings_free(&options->exclude);
	strings_free(&options->no_recorder);
	strings_free(&options->hooks);
	strings_free(&options->symbol_dirs);
	strings_free(&options->warnings);
	*options = (struct options){0};
}
