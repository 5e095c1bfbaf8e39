/* Variables of the environment and the file of settings: who wins, and what is refused. */
#include "launchers/options.h"
#include "launchers/settings.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/stat.h>

#include <cmocka.h>

static char path[] = "/tmp/dftrace-settings-XXXXXX";

static int make_file(void **state)
{
	(void)state;
	int fd = mkstemp(path);
	return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

static void write_file(const char *text, size_t len)
{
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, len, f), len);
	fclose(f);
}

struct read {
	struct config_file file;
	struct buf error;
	int result;
};

static void read_text(struct read *read, const char *text)
{
	write_file(text, strlen(text));
	*read = (struct read){0};
	read->result = config_file_read(&read->file, path, &read->error);
}

static void drop(struct read *read)
{
	config_file_free(&read->file);
	buf_free(&read->error);
}

static const char *value_of(const struct read *read, const char *key)
{
	for (size_t i = 0; i < read->file.count; i++) {
		if (strcmp(read->file.values[i].key, key) == 0)
			return read->file.values[i].value;
	}
	return NULL;
}

static void test_values(void **state)
{
	(void)state;
	struct read read;

	read_text(&read, "# a comment\n"
			 "enable: True\n"
			 "tracer:\n"
			 "  init: PRELOAD  # and another\n"
			 "  log_file: \"a b\"\n"
			 "  data_dirs: [/a, '/b']\n"
			 "  time_metric: ~\n"
			 "  libuv_threads: null\n"
			 "features: {io: {posix: No, stdio: on}, tid: &anchor yes}\n"
			 "internal:\n"
			 "gotcha:\n"
			 "  priority: |\n"
			 "    1\n");
	if (read.result < 0)
		fail_msg("%s", buf_str(&read.error));
	assert_string_equal(value_of(&read, "enable"), "True");
	assert_string_equal(value_of(&read, "tracer.init"), "PRELOAD");
	assert_string_equal(value_of(&read, "tracer.log_file"), "a b");
	assert_string_equal(value_of(&read, "tracer.data_dirs"), "/a:/b");
	assert_string_equal(value_of(&read, "tracer.time_metric"), "");
	assert_string_equal(value_of(&read, "tracer.libuv_threads"), "");
	assert_string_equal(value_of(&read, "features.io.posix"), "No");
	assert_string_equal(value_of(&read, "features.io.stdio"), "on");
	assert_string_equal(value_of(&read, "features.tid"), "yes");
	assert_string_equal(value_of(&read, "internal"), "");
	assert_string_equal(value_of(&read, "gotcha.priority"), "1\n");
	char place[64];
	snprintf(place, sizeof(place), "%s:4", path);
	assert_string_equal(read.file.values[1].place, place);
	drop(&read);
}

static void test_nothing(void **state)
{
	(void)state;
	static const char *const cases[] = {"", "\n\n", "# nothing\n", "---\n", "--- {}\n", "{}"};
	struct read read;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		read_text(&read, cases[i]);
		if (read.result < 0)
			fail_msg("'%s': %s", cases[i], buf_str(&read.error));
		assert_int_equal(read.file.count, 0);
		drop(&read);
	}
}

static void test_refused(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		const char *where;
		const char *why;
	} cases[] = {
		{"a: &x 1\nb: *x\n", ":2: ", "alias"},
		{"x: &x {a: 1}\ny:\n  <<: *x\n", ":3: ", "alias"},
		{"a: [1, *x]\n", ":1: ", "alias"},
		{"- a\n- b\n", ":1: ", "not a list"},
		{"just words\n", ":1: ", "settings are wanted"},
		{"a: 1\nb: 2\na: 3\n", ":3: ", "'a' stands here again, after /tmp/"},
		{"a: {b: 1, b: 2}\n", ":1: ", "'a.b' stands here again"},
		{"a: [1, [2]]\n", ":1: ", "plain values"},
		{"a:\n- b: 1\n", ":2: ", "plain values"},
		{"? {a: b}\n: c\n", ":1: ", "a name is wanted"},
		{"? [a]\n: c\n", ":1: ", "not a list"},
		{"a: {b: {c: {d: {e: {f: {g: {h: {i: 1}}}}}}}}\n", ":1: ", "nested deeper"},
		{"a: 1\n---\nb: 2\n", ":2: ", "second document"},
		{"a: \"x\\0y\"\n", ":1: ", "NUL"},
		{"a: 1\n\tb: 2\n", ":2: ", "no YAML"},
		{"a: 'open\n", ":2: ", "no YAML"},
		{"a: {b: 1\n", ":2: ", "no YAML"},
		{"a: %b\n", ":1: ", "no YAML"},
		{"a: b\x01\n", ": ", "no YAML"},
		{"a: \xff\xfe\n", ": ", "no YAML"},
	};
	struct read read;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		read_text(&read, cases[i].text);
		const char *error = buf_str(&read.error);
		if (read.result == 0 || strncmp(error, path, strlen(path)) != 0 ||
		    strncmp(error + strlen(path), cases[i].where, strlen(cases[i].where)) != 0 ||
		    !strstr(error, cases[i].why) || strchr(error, '\n'))
			fail_msg("'%s' gave '%s'", cases[i].text, error);
		drop(&read);
	}
}

static void assert_refused_soon(char *text, size_t len, const char *why)
{
	struct timespec from;
	struct timespec to;
	struct read read = {0};

	write_file(text, len);
	free(text);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
	assert_int_equal(config_file_read(&read.file, path, &read.error), -1);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
	assert_true(to.tv_sec - from.tv_sec < 5);
	const char *error = buf_str(&read.error);
	if (!strstr(error, why) || strlen(error) > 300)
		fail_msg("%.300s", error);
	drop(&read);
}

static char *repeated(const char *piece, size_t len)
{
	char *text = malloc(len + 1);
	size_t n = strlen(piece);

	assert_non_null(text);
	for (size_t i = 0; i < len; i++)
		text[i] = piece[i % n];
	text[len] = '\0';
	return text;
}

static void test_too_much(void **state)
{
	(void)state;
	const size_t most = 1 << 20;

	assert_refused_soon(repeated("a", most + 1), most + 1, "megabyte");
	assert_refused_soon(repeated("[", most), most, "not a list");
	assert_refused_soon(repeated("{", most), most, "");
	assert_refused_soon(repeated("{a: ", most), most, "nested deeper");
	assert_refused_soon(repeated("a: [", most), most, "");
	assert_refused_soon(repeated("? ", most), most, "");
	assert_refused_soon(repeated("a: 1\n", most), most, "stands here again");
	char *text = malloc(most);
	assert_non_null(text);
	int len = 0;
	for (int i = 0; len < 600000; i++)
		len += sprintf(text + len, "k%d: v\n", i);
	assert_refused_soon(text, (size_t)len, "more values");
}

static void test_files(void **state)
{
	(void)state;
	static const char *const cases[][2] = {
		{"/no/such/file", "/no/such/file: No such file or directory"},
		{"/", "/: Is a directory"},
		{"/dev/zero", "/dev/zero: larger than a megabyte, which no file of settings is"},
		{"", ": No such file or directory"},
		{"/no\nsuch", "/no?such: No such file or directory"},
	};
	struct read read;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		read = (struct read){0};
		assert_int_equal(config_file_read(&read.file, cases[i][0], &read.error), -1);
		assert_string_equal(buf_str(&read.error), cases[i][1]);
		drop(&read);
	}
	/* A pipe that nobody writes to must not hang. */
	char fifo[64];
	snprintf(fifo, sizeof(fifo), "%s.fifo", path);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	read = (struct read){0};
	assert_int_equal(config_file_read(&read.file, fifo, &read.error), 0);
	assert_int_equal(read.file.count, 0);
	drop(&read);
	unlink(fifo);
}

/* The settings of a command line `--config FILE [words…] x`, or without a file. */
static int parse(struct options *options, struct buf *error, const char *text, const char *word)
{
	static char name[] = "dftrace-run";
	static char config[] = "--config";
	static char program[] = "x";
	char *argv[8] = {name};
	int argc = 1;

	if (text) {
		write_file(text, strlen(text));
		argv[argc++] = config;
		argv[argc++] = path;
	}
	if (word)
		argv[argc++] = (char *)(uintptr_t)word;
	argv[argc++] = program;
	*error = (struct buf){0};
	return options_parse(options, argc, argv, error);
}

static void test_who_wins(void **state)
{
	(void)state;
	static const struct {
		const char *file;
		const char *variable;
		const char *option;
		const char *output;
		const char *source;
	} cases[] = {
		{NULL, NULL, NULL, "trace", NULL},
		{"tracer: {log_file: y}", NULL, NULL, "y", "file"},
		{"profiler: {log_file: y}", NULL, NULL, "y", "file"},
		{"tracer: {log_file: y}", "v", NULL, "v", "DFTRACER_LOG_FILE"},
		{NULL, "v", NULL, "v", "DFTRACER_LOG_FILE"},
		{"tracer: {log_file: y}", "v", "-oo", "o", NULL},
		{"tracer: {log_file: y}", NULL, "-oo", "o", NULL},
		{NULL, "v", "-oo", "o", NULL},
		{"tracer: {log_file: y}", "", NULL, "y", "file"},
		{"tracer: {log_file: }", "v", NULL, "v", "DFTRACER_LOG_FILE"},
	};
	struct options options;
	struct buf error;
	char line[64];

	snprintf(line, sizeof(line), "%s:1", path);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (cases[i].variable)
			setenv("DFTRACER_LOG_FILE", cases[i].variable, 1);
		if (parse(&options, &error, cases[i].file, cases[i].option) != OPTIONS_RUN)
			fail_msg("case %zu: %s", i, buf_str(&error));
		assert_string_equal(options.output, cases[i].output);
		const char *wanted = cases[i].source;
		if (wanted && strcmp(wanted, "file") == 0)
			wanted = line;
		const char *source = NULL;
		for (size_t n = 0; n < options.nsettings; n++) {
			if (options.settings[n].id == OPTION_OUTPUT)
				source = options.settings[n].source;
		}
		if (wanted)
			assert_string_equal(source, wanted);
		else
			assert_null(source);
		options_free(&options);
		unsetenv("DFTRACER_LOG_FILE");
	}
}

/* Each boolean, in both senses, in the file and as a variable. */
static void test_senses(void **state)
{
	(void)state;
	static const struct {
		const char *variable;
		const char *on_when;
		const char *file;
		size_t flag;
	} cases[] = {
		{"DFTRACER_INC_METADATA", "0", "features: {metadata: %s}",
		 offsetof(struct options, no_metadata)},
		{"DFTRACER_TRACE_COMPRESSION", "0", "tracer: {compression: %s}",
		 offsetof(struct options, no_compress)},
		{"DFTRACER_ENABLE", "0", "enable: %s", offsetof(struct options, disabled)},
		{"DFTRACER_SET_CORE_AFFINITY", "1", "features: {core_affinity: %s}",
		 offsetof(struct options, core_affinity)},
		/* What is disabled there is enabled in the file. */
		{"DFTRACER_DISABLE_TIDS", "1", "features: {tid: %s}",
		 offsetof(struct options, no_tids)},
	};
	static const char *const words[][2] = {
		{"1", "0"}, {"True", "False"}, {"YES", "no"}, {"on", "Off"}};
	struct options options;
	struct buf error;
	char text[128];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		bool inverted = strstr(cases[i].variable, "DISABLE_") != NULL;
		for (size_t w = 0; w < 8; w++) {
			const char *word = words[w / 2][w % 2];
			bool yes = w % 2 == 0;
			bool on = yes == (cases[i].on_when[0] == '1');
			setenv(cases[i].variable, word, 1);
			assert_int_equal(parse(&options, &error, NULL, NULL), OPTIONS_RUN);
			assert_int_equal(*((bool *)((char *)&options + cases[i].flag)), on);
			options_free(&options);
			unsetenv(cases[i].variable);
			snprintf(text, sizeof(text), cases[i].file, word);
			assert_int_equal(parse(&options, &error, text, NULL), OPTIONS_RUN);
			assert_int_equal(*((bool *)((char *)&options + cases[i].flag)),
					 inverted ? !on : on);
			options_free(&options);
		}
	}
}

/* Every row, with a value that cannot be right. */
static void test_wrong_values(void **state)
{
	(void)state;
	struct options options;
	struct buf error;
	unsigned refused = 0;

	for (size_t i = 0; i < settings_row_count; i++) {
		const struct settings_row *row = &settings_rows[i];
		bool is_boolean = row->kind == SETTINGS_WHEN_YES || row->kind == SETTINGS_WHEN_NO;
		if (!row->variable || (!is_boolean && !row->legal))
			continue;
		setenv(row->variable, "perhaps\n", 1);
		if (parse(&options, &error, NULL, NULL) != -1)
			fail_msg("%s was accepted", row->variable);
		const char *sentence = buf_str(&error);
		assert_non_null(strstr(sentence, row->variable));
		assert_non_null(strstr(sentence, "'perhaps\\x0a'"));
		assert_non_null(strstr(sentence, ": give "));
		assert_null(strchr(sentence, '\n'));
		buf_free(&error);
		options_free(&options);
		unsetenv(row->variable);
		refused++;
	}
	assert_true(refused > 15);
}

static bool is_warned_of(const struct options *options, const char *part)
{
	for (size_t i = 0; i < options->warnings.count; i++) {
		if (strstr(options->warnings.items[i], part))
			return true;
	}
	return false;
}

static void test_unknown_names(void **state)
{
	(void)state;
	struct options options;
	struct buf error;

	setenv("DFTRACER_LOGFILE", "x", 1);
	setenv("DFTRACER_DISABEL_IO", "1", 1);
	setenv("DFTRACER_SOMETHING_ELSE", "1", 1);
	setenv("DFTRACER_UTILS_LOG_LEVEL", "x", 1);
	setenv("DFTRACER_INDEX_STAGE", "x", 1);
	setenv("DFTRACE_TEST", "x", 1);
	assert_int_equal(
		parse(&options, &error, "enabel: 1\ntracer:\n  logfile: x\nfeatures:\n", NULL),
		OPTIONS_RUN);
	assert_true(is_warned_of(&options, "'DFTRACER_LOGFILE' in the environment is no setting of "
					   "DFTracer; did you mean DFTRACER_LOG_FILE?"));
	assert_true(is_warned_of(&options, "did you mean DFTRACER_DISABLE_IO?"));
	assert_true(is_warned_of(&options, "'DFTRACER_SOMETHING_ELSE' in the environment is no "
					   "setting of DFTracer"));
	assert_true(is_warned_of(&options, ":1: 'enabel' is no setting of DFTracer; did you mean "
					   "enable?"));
	assert_true(is_warned_of(&options,
				 ":3: 'tracer.logfile' is no setting of DFTracer; did you "
				 "mean tracer.log_file?"));
	assert_int_equal(options.warnings.count, 5);
	options_free(&options);
	/* A run that is not traced is at no cost, and silent. */
	setenv("DFTRACER_ENABLE", "0", 1);
	setenv("DFTRACER_INIT", "x", 1);
	assert_int_equal(parse(&options, &error, NULL, NULL), OPTIONS_RUN);
	assert_true(options.disabled);
	assert_int_equal(options.warnings.count, 0);
	options_free(&options);
	unsetenv("DFTRACER_ENABLE");
	unsetenv("DFTRACER_INIT");
	unsetenv("DFTRACER_LOGFILE");
	unsetenv("DFTRACER_DISABEL_IO");
	unsetenv("DFTRACER_SOMETHING_ELSE");
	unsetenv("DFTRACER_UTILS_LOG_LEVEL");
	unsetenv("DFTRACER_INDEX_STAGE");
	unsetenv("DFTRACE_TEST");
}

static bool records(const struct options *options, enum hook_layer layer)
{
	return selection_has_layer(&options->selection, layer);
}

static bool records_posix(const struct options *options)
{
	struct buf text = {0};

	selection_describe(&options->selection, &text);
	bool posix = strstr(buf_str(&text), "%data") != NULL;
	buf_free(&text);
	return posix;
}

static void test_what_is_recorded(void **state)
{
	(void)state;
	static const struct {
		const char *variable;
		const char *value;
		const char *option;
		bool posix, stdio, mpi;
	} cases[] = {
		{"DFTRACER_INIT", "PRELOAD", NULL, true, true, true},
		{"DFTRACER_INIT", "hybrid", NULL, true, true, true},
		{"DFTRACER_INIT", "Function", NULL, false, false, false},
		{"DFTRACER_INIT", "FUNCTION", "-e+mpi", false, false, true},
		{"DFTRACER_INIT", "FUNCTION", "-e+posix,+stdio", true, true, false},
		{"DFTRACER_INIT", "FUNCTION", "-eposix", true, false, false},
		{"DFTRACER_INIT", "FUNCTION", "--init=preload", true, true, true},
		{"DFTRACER_INIT", "PRELOAD", "--init=function", false, false, false},
		{"DFTRACER_DISABLE_IO", "1", NULL, false, false, false},
		{"DFTRACER_DISABLE_IO", "1", "-e+stdio", false, true, false},
		{"DFTRACER_DISABLE_POSIX", "1", NULL, false, true, true},
		{"DFTRACER_DISABLE_POSIX", "1", "-e+%data", true, true, true},
		{"DFTRACER_DISABLE_POSIX", "0", "--no-posix", false, true, true},
		{"DFTRACER_DISABLE_STDIO", "1", NULL, true, false, true},
		{"DFTRACER_DISABLE_STDIO", "0", NULL, true, true, true},
	};
	struct options options;
	struct buf error;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		setenv(cases[i].variable, cases[i].value, 1);
		assert_int_equal(parse(&options, &error, NULL, cases[i].option), OPTIONS_RUN);
		if (records_posix(&options) != cases[i].posix ||
		    records(&options, HOOK_STDIO) != cases[i].stdio ||
		    records(&options, HOOK_MPI) != cases[i].mpi)
			fail_msg("case %zu", i);
		options_free(&options);
		unsetenv(cases[i].variable);
	}
}

/* Said twice as much by the command line: the last word counts, whatever the environment says. */
static void test_log_level(void **state)
{
	(void)state;
	static const struct {
		const char *value;
		const char *option;
		bool verbose, debug, quiet;
	} cases[] = {
		{"ERROR", NULL, false, false, false},
		{"warn", NULL, false, false, false},
		{"INFO", NULL, true, false, false},
		{"DEBUG", NULL, false, true, false},
		{"DEBUG", "-q", false, false, true},
		{"INFO", "-q", false, false, true},
		{"DEBUG", "-v", true, false, false},
		{"DEBUG", "--log-level=warn", false, false, false},
	};
	struct options options;
	struct buf error;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		setenv("DFTRACER_LOG_LEVEL", cases[i].value, 1);
		assert_int_equal(parse(&options, &error, NULL, cases[i].option), OPTIONS_RUN);
		if ((options.verbose > 0) != cases[i].verbose || options.debug != cases[i].debug ||
		    options.quiet != cases[i].quiet)
			fail_msg("case %zu", i);
		options_free(&options);
	}
	unsetenv("DFTRACER_LOG_LEVEL");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),        cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_refused),       cmocka_unit_test(test_too_much),
		cmocka_unit_test(test_files),         cmocka_unit_test(test_who_wins),
		cmocka_unit_test(test_senses),        cmocka_unit_test(test_wrong_values),
		cmocka_unit_test(test_unknown_names), cmocka_unit_test(test_what_is_recorded),
		cmocka_unit_test(test_log_level),
	};
	return cmocka_run_group_tests(tests, make_file, remove_file);
}
