/* The command line: what is accepted, what is refused and in which words. */
#include "base/buf.h"
#include "launchers/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include <cmocka.h>

struct parsed {
	struct options options;
	struct buf error;
	int action;
	char *words[32];
};

/* Parses `dftrace-run` and the words of `line`, which are separated by blanks; '' is an empty word. */
static struct parsed *parse(const char *line)
{
	struct parsed *parsed = calloc(1, sizeof(*parsed));
	char *copy = strdup(line);
	char *rest = copy;
	int argc = 0;

	assert_non_null(parsed);
	assert_non_null(copy);
	parsed->words[argc++] = strdup("dftrace-run");
	for (char *word; (word = strsep(&rest, " "));) {
		if (*word)
			parsed->words[argc++] = strdup(strcmp(word, "''") == 0 ? "" : word);
		assert_true(argc < 31);
	}
	free(copy);
	parsed->action = options_parse(&parsed->options, argc, parsed->words, &parsed->error);
	return parsed;
}

static void drop(struct parsed *parsed)
{
	options_free(&parsed->options);
	buf_free(&parsed->error);
	for (size_t i = 0; i < 32; i++)
		free(parsed->words[i]);
	free(parsed);
}

static struct parsed *parse_ok(const char *line)
{
	struct parsed *parsed = parse(line);
	if (parsed->action != OPTIONS_RUN)
		fail_msg("'%s' was refused: %s", line, buf_str(&parsed->error));
	assert_int_equal(parsed->error.len, 0);
	return parsed;
}

/* The line is refused, in one line in which `part` stands. */
static void refused(const char *line, const char *part)
{
	struct parsed *parsed = parse(line);
	const char *sentence = buf_str(&parsed->error);

	if (parsed->action != -1)
		fail_msg("'%s' was accepted", line);
	if (!strstr(sentence, part))
		fail_msg("'%s' was refused with '%s', without '%s'", line, sentence, part);
	assert_null(strchr(sentence, '\n'));
	drop(parsed);
}

static void test_defaults(void **state)
{
	(void)state;
	struct parsed *p = parse_ok("true");
	const struct options *o = &p->options;
	char *cwd = getcwd(NULL, 0);
	struct selection selection;

	assert_string_equal(o->output, "trace");
	assert_true(o->output_absolute[0] == '/');
	assert_int_equal(strncmp(o->output_absolute, cwd, strlen(cwd)), 0);
	assert_string_equal(o->output_absolute + strlen(o->output_absolute) - 6, "/trace");
	assert_int_equal(o->data_dirs.count, 0);
	assert_int_equal(o->exclude.count, 0);
	assert_int_equal(o->warnings.count, 0);
	assert_int_equal(o->tracer, TRACER_FORM_AUTO);
	assert_int_equal(o->max_files, 0);
	assert_false(o->v2 || o->paths_given || o->names_kernel || o->no_compress);
	assert_false(o->quiet || o->debug || o->verbose || o->no_placement);
	assert_false(o->no_seccomp || o->no_syscall_info || o->no_proc_mem || o->no_vm_readv ||
		     o->no_setptracer || o->no_emulation);
	selection_default(&selection);
	assert_memory_equal(&selection, &o->selection, sizeof(selection));
	free(cwd);
	drop(p);
}

static void test_where_options_end(void **state)
{
	(void)state;
	static const struct {
		const char *line;
		int argc;
		const char *first;
		const char *last;
	} cases[] = {
		{"-q prog -o x --help", 4, "prog", "--help"},
		{"-- prog -q", 2, "prog", "-q"},
		{"-q -- -prog", 1, "-prog", "-prog"},
		{"prog -- x", 3, "prog", "x"},
		{"-- -- x", 2, "--", "x"},
		{"-o -q prog", 1, "prog", "prog"},
		{"-q - x", 2, "-", "x"},
		{"-q '' x", 2, "", "x"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct parsed *p = parse_ok(cases[i].line);
		const struct options *o = &p->options;
		assert_int_equal(o->argc, cases[i].argc);
		assert_string_equal(o->argv[0], cases[i].first);
		assert_string_equal(o->argv[o->argc - 1], cases[i].last);
		assert_null(o->argv[o->argc]);
		drop(p);
	}
	refused("", "usage");
	refused("-q", "no program to run");
	refused("-q --", "no program to run");
}

static void test_output(void **state)
{
	(void)state;
	static const char *const cases[][3] = {
		{"-o /a/run x", "/a/run", "/a/run"},
		{"-o/a/run x", "/a/run", "/a/run"},
		{"--output=/a/run x", "/a/run", "/a/run"},
		{"--out /a/run x", "/a/run", "/a/run"},
		{"-o /a/run.pfw x", "/a/run", "/a/run"},
		{"-o /a/run.pfw.gz x", "/a/run", "/a/run"},
		{"-o /a/run.pfw.pfw x", "/a/run.pfw", "/a/run.pfw"},
		{"-o /a/run.gz x", "/a/run.gz", "/a/run.gz"},
		{"-o /a/ x", "/a/trace", "/a/trace"},
		{"-o /a/.pfw x", "/a/trace", "/a/trace"},
		{"-o /a/../b x", "/a/../b", "/a/../b"},
		{"-o /a -o /b x", "/b", "/b"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct parsed *p = parse_ok(cases[i][0]);
		assert_string_equal(p->options.output, cases[i][1]);
		assert_string_equal(p->options.output_absolute, cases[i][2]);
		drop(p);
	}
	refused("-o - x", "-o -");
	refused("-o '' x", "leaves no name");
	refused("-o .pfw x", "leaves no name");
	refused("-o .pfw.gz x", "leaves no name");
	refused("-o", "--output needs an argument: PREFIX");
}

/* In a directory of its own: relative things are relative to it, and it may be gone. */
static void test_working_directory(void **state)
{
	(void)state;
	char dir[] = "/tmp/test_options.XXXXXX";
	char *home = getcwd(NULL, 0);
	char want[64];

	assert_non_null(mkdtemp(dir));
	assert_int_equal(chdir(dir), 0);
	assert_int_equal(mkdir("data", 0700), 0);

	struct parsed *p = parse_ok("-o out/run -d data:../../usr//lib/:/ x");
	snprintf(want, sizeof(want), "%s/out/run", dir);
	assert_string_equal(p->options.output, "out/run");
	assert_string_equal(p->options.output_absolute, want);
	assert_int_equal(p->options.data_dirs.count, 0); /* "/" holds everything */
	drop(p);

	p = parse_ok("-d data:../../usr//lib/ x");
	snprintf(want, sizeof(want), "%s/data", dir);
	assert_int_equal(p->options.data_dirs.count, 2);
	assert_string_equal(p->options.data_dirs.items[0], want);
	assert_string_equal(p->options.data_dirs.items[1], "/usr/lib");
	assert_int_equal(p->options.warnings.count, 0);
	drop(p);

	assert_int_equal(rmdir("data"), 0);
	assert_int_equal(rmdir(dir), 0);
	refused("x", "--output");
	refused("-o run x", "--output");
	refused("-o /run -d data x", "--data-dir");
	drop(parse_ok("-o /run -d /usr x"));
	assert_int_equal(chdir(home), 0);
	free(home);
}

static void test_data_dirs(void **state)
{
	(void)state;
	static const char *const everything[] = {"-d all x", "-d / x",           "-d '' x",
						 "-d : x",   "-d /usr -d all x", "-d /usr:/ x"};
	for (size_t i = 0; i < sizeof(everything) / sizeof(everything[0]); i++) {
		struct parsed *p = parse_ok(everything[i]);
		assert_int_equal(p->options.data_dirs.count, 0);
		assert_int_equal(p->options.warnings.count, 0);
		drop(p);
	}
	struct parsed *p = parse_ok("-d :/usr/./lib::/tmp: --data-dir=/etc x");
	assert_int_equal(p->options.data_dirs.count, 3);
	assert_string_equal(p->options.data_dirs.items[0], "/usr/lib");
	assert_string_equal(p->options.data_dirs.items[1], "/tmp");
	assert_string_equal(p->options.data_dirs.items[2], "/etc");
	assert_int_equal(p->options.warnings.count, 0);
	drop(p);

	p = parse_ok("-d /usr:/no/such\ndirectory x");
	assert_int_equal(p->options.data_dirs.count, 2);
	assert_int_equal(p->options.warnings.count, 1);
	assert_non_null(strstr(p->options.warnings.items[0], "'/no/such\\x0adirectory'"));
	drop(p);
}

static void test_choices(void **state)
{
	(void)state;
	struct parsed *p = parse_ok("--format v2 --paths given --names kernel --tracer parent "
				    "--max-files 7 --no-compress --no-placement x");
	const struct options *o = &p->options;
	assert_true(o->v2 && o->paths_given && o->names_kernel && o->no_compress);
	assert_true(o->no_placement);
	assert_int_equal(o->tracer, TRACER_FORM_PARENT);
	assert_int_equal(o->max_files, 7);
	drop(p);

	p = parse_ok("--format v2 --format v1 --paths absolute --names trace --tracer detached "
		     "--max-files 7 --max-files 0 x");
	o = &p->options;
	assert_false(o->v2 || o->paths_given || o->names_kernel);
	assert_int_equal(o->tracer, TRACER_FORM_DETACHED);
	assert_int_equal(o->max_files, 0);
	drop(p);

	refused("--format v3 x", "give v1 or v2");
	refused("--format '' x", "give v1 or v2");
	refused("--format v3 x", "give v1 or v2");
	refused("--init x x", "give preload, hybrid or function");
	refused("--log-level x x", "give error, warn, info or debug");
	refused("--paths relative x", "give absolute or given");
	refused("--names posix x", "give trace or kernel");
	refused("--tracer child x", "give detached or parent");
	refused("--max-files many x", "--max-files 'many'");
	refused("--max-files -1 x", "--max-files '-1'");
	refused("--max-files 1k x", "--max-files '1k'");
	refused("--max-files 99999999999999999999 x", "--max-files");
	refused("--max-files '' x", "--max-files");
	refused("--no-compress=1 x", "--no-compress takes no argument");
}

static void test_selection(void **state)
{
	(void)state;
	struct selection once;
	struct buf error = {0};
	struct parsed *p = parse_ok("-e open,close x");

	selection_default(&once);
	assert_int_equal(selection_apply(&once, "open,close", &error), 0);
	assert_memory_equal(&once, &p->options.selection, sizeof(once));
	drop(p);
	p = parse_ok("-e open --trace=close x");
	assert_memory_equal(&once, &p->options.selection, sizeof(once));
	drop(p);
	refused("-e no_such_call x", "no_such_call");
	refused("-e no_such\ncall x", "no_such?call");
}

static void test_exclude(void **state)
{
	(void)state;
	struct parsed *p = parse_ok("--exclude bash,git --exclude=a-name-of-more-than-15 x");
	const struct options *o = &p->options;
	assert_int_equal(o->exclude.count, 3);
	assert_true(options_excludes(o, "bash"));
	assert_true(options_excludes(o, "git"));
	assert_true(options_excludes(o, "a-name-of-more-"));
	assert_false(options_excludes(o, "a-name-of-more"));
	assert_false(options_excludes(o, "bas"));
	assert_false(options_excludes(o, "bash2"));
	assert_false(options_excludes(o, ""));
	drop(p);
	refused("--exclude '' x", "empty name");
	refused("--exclude bash,,git x", "empty name");
	refused("--exclude bash, x", "empty name");
}

static void test_messages(void **state)
{
	(void)state;
	static const struct {
		const char *line;
		bool quiet;
		unsigned verbose;
		bool debug;
	} cases[] = {
		{"-q x", true, 0, false},
		{"--quiet x", true, 0, false},
		{"-v x", false, 1, false},
		{"-vvv x", false, 3, false},
		{"-v --verbose x", false, 2, false},
		{"-vq x", true, 0, false},
		{"-qv x", false, 1, false},
		{"--debug x", false, 0, true},
		{"-q --debug x", true, 0, true},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct parsed *p = parse_ok(cases[i].line);
		assert_int_equal(p->options.quiet, cases[i].quiet);
		assert_int_equal(p->options.verbose, cases[i].verbose);
		assert_int_equal(p->options.debug, cases[i].debug);
		drop(p);
	}
}

static void test_habits(void **state)
{
	(void)state;
	struct parsed *plain = parse_ok("-q x");
	struct parsed *p = parse_ok("-f -ff -yy -fqy x");
	assert_true(p->options.quiet);
	assert_memory_equal(&plain->options.selection, &p->options.selection,
			    sizeof(struct selection));
	drop(p);
	drop(plain);
	refused("-p 1", "only be launched");
	refused("-p", "only be launched");
	refused("-fp 1", "only be launched");
	refused("--attach 1", "only be launched");
	refused("--attach", "only be launched");
}

static void test_capture(void **state)
{
	(void)state;
	struct parsed *p = parse_ok("x");
	assert_false(p->options.recorder);
	assert_int_equal(p->options.recorder_hits, 8);
	assert_false(options_excludes_recorder(&p->options, "x"));
	drop(p);
	p = parse_ok("--capture recorder --no-recorder=java,node --no-recorder=sh x");
	assert_true(p->options.recorder);
	assert_true(options_excludes_recorder(&p->options, "java"));
	assert_true(options_excludes_recorder(&p->options, "sh"));
	assert_false(options_excludes_recorder(&p->options, "bash"));
	assert_false(options_excludes(&p->options, "sh"));
	drop(p);
	p = parse_ok("--capture recorder --capture stops x");
	assert_false(p->options.recorder);
	drop(p);
	refused("--capture all x", "give stops or recorder");
	p = parse_ok("--capture recorder --no-recorder java x");
	assert_false(p->options.recorder);
	assert_string_equal(p->options.argv[0], "java");
	drop(p);
	p = parse_ok("--no-recorder --capture recorder x");
	assert_true(p->options.recorder);
	assert_false(options_excludes_recorder(&p->options, "x"));
	drop(p);
	refused("--no-recorder=a,,b x", "--no-recorder");
	refused("--no-recorder= x", "--no-recorder");
	refused("--recorder-hits 0 x", "is not a number of stops");
}

static void test_ladder(void **state)
{
	(void)state;
	struct parsed *p = parse_ok("--no-seccomp x");
	assert_true(p->options.no_seccomp);
	assert_false(p->options.no_syscall_info);
	drop(p);
	p = parse_ok(
		"--no-syscall-info --no-proc-mem --no-vm-readv --no-setptracer --no-emulation x");
	assert_false(p->options.no_seccomp);
	assert_true(p->options.no_syscall_info && p->options.no_proc_mem);
	assert_true(p->options.no_vm_readv && p->options.no_setptracer);
	assert_true(p->options.no_emulation);
	drop(p);
}

static void test_unknown(void **state)
{
	(void)state;
	refused("--outptu run x", "did you mean --output?");
	refused("--formt v1 x", "did you mean --format?");
	refused("--compress x", "did you mean --no-compress?");
	refused("--data-dirs x", "did you mean --data-dir?");
	refused("--qiet x", "did you mean --quiet?");
	refused("--frobnicate x", "unknown option '--frobnicate': dftrace-run --help");
	refused("--=x y", "unknown option");
	refused("-O run x", "did you mean -o (--output)?");
	refused("-z x", "unknown option -z: dftrace-run --help");
	refused("-qz x", "unknown option -z");
	refused("--new\nline x", "'--new\\x0aline'");
	refused("-\n x", "unknown option");
	refused("--no x", "ambiguous option '--no': could be --no-posix, --no-stdio, --no-io, ");
	refused("--no-s x", "could be --no-stdio");
	/* What later versions bring, and what strace has. */
	refused("-S x", "unknown option -S");
	refused("--config=/no/such/file x", "--config: /no/such/file: ");
	refused("--surgeon", "unknown option '--surgeon'");
	refused("--json true", "--doctor");
	/* `-o utput` would be a trace in a file "utput". */
	refused("-output run x", "two dashes: --output");
	refused("-debug x", "two dashes: --debug");
	refused("-format=v2 x", "two dashes: --format=v2");
	refused("-q -names kernel x", "two dashes: --names");
}

static char *help(void)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	options_help(out);
	fclose(out);
	return text;
}

static void test_help(void **state)
{
	(void)state;
	static const struct {
		const char *line;
		int action;
	} cases[] = {
		{"-h", OPTIONS_HELP},           {"--help", OPTIONS_HELP},
		{"-q --help x", OPTIONS_HELP},  {"-V", OPTIONS_VERSION},
		{"--version", OPTIONS_VERSION}, {"-qV --nonsense", OPTIONS_VERSION},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct parsed *p = parse(cases[i].line);
		assert_int_equal(p->action, cases[i].action);
		drop(p);
	}
	refused("--nonsense --help", "unknown option");

	char *text = help();
	assert_non_null(strstr(text, "-o, --output PREFIX"));
	assert_non_null(strstr(text, "--max-files N"));
	assert_non_null(strstr(text, "-V, --version"));
	assert_null(strstr(text, "no-seccomp"));
	assert_null(strstr(text, "attach"));
	const char *name;
	const char *what;
	bool on;
	unsigned classes = 0;
	for (; selection_class(classes, &name, &what, &on); classes++)
		assert_non_null(strstr(text, name));
	assert_true(classes > 0);
	char *rest = text;
	for (char *line; (line = strsep(&rest, "\n"));)
		assert_true(strlen(line) <= 80);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),  cmocka_unit_test(test_where_options_end),
		cmocka_unit_test(test_output),    cmocka_unit_test(test_working_directory),
		cmocka_unit_test(test_data_dirs), cmocka_unit_test(test_choices),
		cmocka_unit_test(test_selection), cmocka_unit_test(test_exclude),
		cmocka_unit_test(test_messages),  cmocka_unit_test(test_habits),
		cmocka_unit_test(test_capture),   cmocka_unit_test(test_ladder),
		cmocka_unit_test(test_unknown),   cmocka_unit_test(test_help),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
