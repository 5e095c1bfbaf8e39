/* dftrace-run: reads what it is asked for, finds the program, and starts it under a tracer (start.c).
 *
 * The way from here: handoff.c brings program and tracer together; tracer/loop.c waits for stops;
 * tracer/calls.c turns them into calls, tracer/decode.c calls into events; writer/ puts them on disk. */
#include "launchers/doctor.h"
#include "launchers/explain.h"
#include "launchers/list-hooks.h"
#include "launchers/options.h"
#include "launchers/program.h"
#include "launchers/start.h"
#include "version.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

/* Descriptors 0 to 2 that were closed must not become ours: what is written to stderr would go
 * there. The placeholders are gone after exec. @return whether stderr was closed. */
static bool hold_standard_descriptors(void)
{
	bool stderr_closed = fcntl(STDERR_FILENO, F_GETFD) < 0;
	int fd;

	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd < 3);
	if (fd >= 3)
		close(fd);
	return stderr_closed;
}

/* Creates the directories of the prefix. @return 0, or EXIT_OURS when traces could not be written there. */
static int prepare_output(const struct options *options)
{
	char *dir = strdup(options->output_absolute);
	int result = 0;

	if (!dir)
		return EXIT_OURS;
	for (char *p = dir + 1; result == 0 && (p = strchr(p, '/')); p++) {
		*p = '\0';
		if (mkdir(dir, 0777) < 0 && errno != EEXIST && errno != EROFS && errno != EACCES)
			result = errno;
		*p = '/';
	}
	*(strrchr(dir, '/') + 1) = '\0';
	if (result == 0 && faccessat(AT_FDCWD, dir, W_OK | X_OK, AT_EACCESS) < 0)
		result = errno;
	if (result)
		start_say("traces cannot be written to %s: %s; choose another place with -o", dir,
			  strerror(result));
	free(dir);
	return result ? EXIT_OURS : 0;
}

/* @return the status to exit with, said why; the program at `path` has not become of this process. */
static int run_found(const struct options *options, const char *path, struct buf *error)
{
	struct explanation why;

	if (explain_is_recorded()) {
		/* The outer one follows the program too. */
		start_say("already under dftrace-run, which records this program as well");
		int status = program_exec(path, options->argv, error);
		start_say("%s", buf_str(error));
		return status;
	}
	if (!explain_kernel(&why) || !explain_place(&why)) {
		start_say("%s; %s", why.cause, why.remedy);
		return EXIT_OURS;
	}
	int status = prepare_output(options);
	return status ? status : start(options, path);
}

static int run(const struct options *options)
{
	struct buf path = {0};
	struct buf error = {0};

	int status = program_find(options->argv[0], &path, &error);
	if (status)
		start_say("%s", buf_str(&error));
	else
		status = run_found(options, buf_str(&path), &error);
	buf_free(&path);
	buf_free(&error);
	return status;
}

/* One line, with what it was built from: the first thing to know of a copy that somebody passed on. */
static void print_version(void)
{
#ifdef __clang__
	const char *compiler = __VERSION__;
#else
	const char *compiler = "gcc " __VERSION__;
#endif
	printf("dftrace-run %s (%s; %s, glibc %d.%d, %s)\n", DFTRACE_VERSION, DFTRACE_BUILD,
	       compiler, __GLIBC__, __GLIBC_MINOR__, DFTRACE_LIBRARIES);
}

static int act(enum options_action action, const struct options *options)
{
	switch (action) {
	case OPTIONS_HELP:
		options_help(stdout);
		return fflush(stdout) == 0 ? 0 : EXIT_OURS;
	case OPTIONS_VERSION:
		print_version();
		return fflush(stdout) == 0 ? 0 : EXIT_OURS;
	default:
		if (options->list_hooks)
			return list_hooks(options) == 0 ? 0 : EXIT_OURS;
		for (size_t i = 0; i < options->warnings.count && !options->quiet; i++)
			start_say("%s", options->warnings.items[i]);
		return options->doctor ? doctor(options) : run(options);
	}
}

int main(int argc, char **argv)
{
	bool stderr_closed = hold_standard_descriptors();
	struct options options;
	struct buf error = {0};
	int status = EXIT_OURS;

	if (argc == 1) {
		fprintf(stderr, "usage: %s\nTry dftrace-run --help.\n", OPTIONS_USAGE);
		return EXIT_OURS;
	}
	int action = options_parse(&options, argc, argv, &error);
	options.stderr_closed = stderr_closed;
	if (action < 0)
		start_say("%s", buf_str(&error));
	else
		status = act((enum options_action)action, &options);
	options_free(&options);
	buf_free(&error);
	return status;
}
