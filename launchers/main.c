/* dftrace-run: reads what it is asked for, finds the program, and starts it under a tracer (start.c).
 *
 * The way from here: handoff.c brings program and tracer together; tracer/loop.c waits for stops;
 * tracer/calls.c turns them into calls, tracer/decode.c calls into events; writer/ puts them on disk. */
#include "base/mount.h"
#include "launchers/admit.h"
#include "launchers/doctor.h"
#include "launchers/dump-config.h"
#include "launchers/explain.h"
#include "launchers/list-hooks.h"
#include "launchers/options.h"
#include "launchers/preload.h"
#include "launchers/print-command.h"
#include "launchers/program.h"
#include "launchers/start.h"
#include "version.h"
#include "writer/prefix.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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

/* Creates a directory and those above it. Many ranks may do so at once.
 * @return 0, or why files cannot be written there. */
static int make_directory(char *dir)
{
	for (char *p = dir + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		bool failed = mkdir(dir, 0777) < 0;
		*p = '/';
		if (failed && errno != EEXIST && errno != EROFS && errno != EACCES)
			return errno;
	}
	return faccessat(AT_FDCWD, dir, W_OK | X_OK, AT_EACCESS) < 0 ? errno : 0;
}

static void note_file_system(struct options *options, const char *dir)
{
	struct mount mount;
	int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0 && mount_find(fd, &mount))
		snprintf(options->file_system, sizeof(options->file_system), "%s", mount.type);
	if (fd >= 0)
		close(fd);
}

/* @return 0, or EXIT_OURS, said why. */
static int make_or_say(char *dir, const char *what, const char *option)
{
	int reason = make_directory(dir);

	if (reason)
		start_say("%s cannot be written to %s: %s; choose another place with %s", what, dir,
			  strerror(reason), option);
	return reason ? EXIT_OURS : 0;
}

/* Creates the directories of a pattern, as far as they are the same for all processes; `dir` becomes the last of them.
 * @return 0, or EXIT_OURS when files could not be written there. */
static int prepare_directory(const char *pattern, const char *what, const char *option,
			     struct buf *dir)
{
	char host[HOST_NAME_MAX + 1] = "";
	struct prefix_values values = {.host = host};
	char *common = strndup(pattern, prefix_common(pattern));

	gethostname(host, sizeof(host) - 1);
	if (common)
		prefix_expand(dir, common, &values);
	if (!common || !buf_str(dir)) {
		free(common);
		return EXIT_OURS;
	}
	free(common);
	strrchr(dir->data, '/')[1] = '\0';
	return make_or_say(dir->data, what, option);
}

/* Creates the directories that are written to. @return 0, or EXIT_OURS when that cannot be. */
static int prepare_output(struct options *options)
{
	struct buf dir = {0};
	int status = 0;

	if (options->summary_file) {
		status = prepare_directory(options->summary_file, "the summary", "--summary-file",
					   &dir);
		buf_free(&dir);
	}
	if (status || options->summary_only)
		return status;
	status = prepare_directory(options->output_absolute, "traces", "-o", &dir);
	if (status == 0)
		note_file_system(options, dir.data);
	buf_free(&dir);
	if (status == 0 && options->stage) {
		buf_addf(&dir, "%s/", options->stage);
		status = buf_str(&dir) ? make_or_say(dir.data, "traces", "--stage") : EXIT_OURS;
		buf_free(&dir);
	}
	return status;
}

static int run_untraced(const struct options *options, const char *path, struct buf *error)
{
	int status = program_exec(path, options->argv, error);
	start_say("%s", buf_str(error));
	return status;
}

/* @return the status to exit with, said why; the program at `path` has not become of this process. */
static int run_found(struct options *options, const char *path, struct buf *error)
{
	struct explanation why;

	enum admission admission = admit(options);
	if (admission == ADMIT_REFUSED)
		return EXIT_OURS;
	if (preload_check(options, admission == ADMIT_TRACED) < 0) {
		start_say("out of memory");
		return EXIT_OURS;
	}
	if (admission == ADMIT_FREE)
		return run_untraced(options, path, error);
	if (explain_is_recorded()) {
		/* The outer one follows the program too. */
		start_say("already under dftrace-run, which records this program as well");
		return run_untraced(options, path, error);
	}
	if (!explain_kernel(&why) || !explain_place(&why)) {
		start_say("%s; %s", why.cause, why.remedy);
		return EXIT_OURS;
	}
	int status = prepare_output(options);
	return status ? status : start(options, path);
}

static int run(struct options *options)
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

static int act(enum options_action action, struct options *options)
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
		for (size_t i = 0; i < options->warnings.count && options_speaks(options); i++)
			start_say("%s", options->warnings.items[i]);
		if (options->dump_config)
			return dump_config(options, stdout) < 0 ? EXIT_OURS : 0;
		if (options->print_command)
			return print_command(options, stdout) < 0 ? EXIT_OURS : 0;
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
