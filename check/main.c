/* dftrace-check: reads traces, says what they hold and what is wrong, and writes mended or converted ones.
 *
 * The way from here: source.c gives the lines of a file, line.c reads one, trace.c checks a file with
 * verify*.c, set.c looks at all files together, report*.c prints. rewrite.c writes. */
#include "check/files.h"
#include "check/options.h"
#include "check/report.h"
#include "check/rewrite.h"
#include "check/set.h"
#include "version.h"

#include <stdlib.h>
#include <string.h>

enum { UNUSABLE = 2 };

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
	va_list args;

	fputs("dftrace-check: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

static void say_lines(struct buf *lines)
{
	const char *text = buf_str(lines);
	char *rest = text && *text ? strdup(text) : NULL;
	char *all = rest;

	while (rest)
		say("%s", strsep(&rest, "\n"));
	free(all);
}

static void print_json(json_t *report)
{
	json_dumpf(report, stdout, JSON_INDENT(1));
	putchar('\n');
	json_decref(report);
}

/* Checks all files. @return the exit status. */
static int check_files(const struct check_options *options, const struct files *files,
		       const char *what)
{
	json_t *array = options->json ? json_array() : NULL;
	struct progress progress;
	struct trace *trace = malloc(sizeof(*trace));
	struct set set;

	if (!trace) {
		say("out of memory");
		return UNUSABLE;
	}
	set_init(&set);
	progress_begin(&progress, what, files->size, !options->quiet);
	for (size_t i = 0; i < files->count; i++) {
		trace_check(trace, files->paths[i], &progress);
		progress_next(&progress, trace->size);
		set_add(&set, trace, options->strict);
		progress_clear(&progress);
		if (options->json)
			json_array_append_new(array, report_json_file(trace));
		else
			report_file(stdout, trace, options->quiet);
		trace_free(trace);
	}
	set_finish(&set, options->required, options->nrequired);
	int status = set_status(&set);
	if (options->json) {
		print_json(report_json(&set, array));
	} else {
		report_total(stdout, &set, options->quiet);
	}
	set_free(&set);
	free(trace);
	return status;
}

/* Writes what is asked for, and checks that instead of the originals. */
static int write_files(const struct check_options *options, const struct files *files)
{
	struct files written = {0};
	struct buf error = {0};
	int status = rewrite(options, files, &written, &error);

	say_lines(&error);
	if (written.count > 0) {
		int checked = check_files(options, &written, "checking");
		status = checked > status ? checked : status;
	} else if (options->json) {
		json_t *report =
			json_pack("{s:s, s:s, s:i, s:[]}", "version", DFTRACE_VERSION, "verdict",
				  report_verdict(status), "status", status, "files");
		print_json(report);
	} else if (options->repair && status == 0) {
		puts("good: nothing to repair");
	}
	files_free(&written);
	buf_free(&error);
	return status;
}

static int run(const struct check_options *options)
{
	struct files files = {0};
	struct buf error = {0};
	int status = 0;

	for (int i = 0; i < options->npaths; i++) {
		buf_clear(&error);
		if (files_add(&files, options->paths[i], &error) < 0) {
			say("%s", buf_str(&error));
			status = UNUSABLE;
		}
	}
	if (files.count > 0) {
		int found = check_options_write(options) ? write_files(options, &files)
							 : check_files(options, &files, "checking");
		status = found > status ? found : status;
	}
	files_free(&files);
	buf_free(&error);
	if (fflush(stdout) || ferror(stdout)) {
		say("standard output: %m");
		return UNUSABLE;
	}
	return status;
}

int main(int argc, char **argv)
{
	struct check_options options;
	struct buf error = {0};
	int status = 0;

	if (check_options_parse(&options, argc, argv, &error) < 0) {
		say("%s", buf_str(&error));
		status = UNUSABLE;
	} else if (options.help) {
		check_options_help(stdout);
	} else if (options.version) {
		printf("dftrace-check %s (%s)\n", DFTRACE_VERSION, DFTRACE_BUILD);
	} else {
		status = run(&options);
	}
	buf_free(&error);
	return status;
}
