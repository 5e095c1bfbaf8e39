/* dftrace-run: reads what it is asked for, finds the program, and starts it under a tracer (start.c).
 *
 * The way from here: handoff.c brings program and tracer together; tracer/loop.c waits for stops;
 * tracer/calls.c turns them into calls, tracer/decode.c calls into events; writer/ puts them on disk. */
#include "base/proc.h"
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

static bool is_dftrace(uint64_t pid)
{
	char path[64];
	char comm[32] = "";

	snprintf(path, sizeof(path), "/proc/%llu/comm", (unsigned long long)pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return false;
	bool ours = fgets(comm, sizeof(comm), f) && strcmp(comm, "dftrace-run\n") == 0;
	fclose(f);
	return ours;
}

/* @return whether children of this process would be in another pid namespace than itself. */
static bool has_pending_pid_namespace(void)
{
	struct stat own;
	struct stat children;

	if (stat("/proc/self/ns/pid", &own) < 0)
		return false;
	/* One that has no process yet cannot even be named. */
	if (stat("/proc/self/ns/pid_for_children", &children) < 0)
		return errno == ENOENT;
	return own.st_ino != children.st_ino;
}

static int run(const struct options *options)
{
	struct buf path = {0};
	struct buf error = {0};

	int status = program_find(options->argv[0], &path, &error);
	if (status) {
		start_say("%s", buf_str(&error));
		return status;
	}
	const char *const key = "TracerPid:";
	uint64_t tracer = 0;
	proc_status(getpid(), 10, &key, &tracer, 1);
	if (tracer && is_dftrace(tracer)) {
		/* The outer one follows the program too. */
		start_say("already under dftrace-run, which records this program as well");
		status = program_exec(buf_str(&path), options->argv, &error);
		start_say("%s", buf_str(&error));
		return status;
	}
	if (tracer) {
		start_say("already traced by process %ld: a process has one tracer; run it without "
			  "the other",
			  tracer);
		return EXIT_OURS;
	}
	if (has_pending_pid_namespace()) {
		start_say("the program would be in another pid namespace than its tracer; use "
			  "unshare with --fork");
		return EXIT_OURS;
	}
	status = prepare_output(options);
	return status ? status : start(options, buf_str(&path));
}

int main(int argc, char **argv)
{
	bool stderr_closed = hold_standard_descriptors();
	struct options options;
	struct buf error = {0};

	if (argc == 1) {
		fprintf(stderr, "usage: %s\nTry dftrace-run --help.\n", OPTIONS_USAGE);
		return EXIT_OURS;
	}
	int action = options_parse(&options, argc, argv, &error);
	if (action < 0) {
		start_say("%s", buf_str(&error));
		return EXIT_OURS;
	}
	if (action == OPTIONS_HELP) {
		options_help(stdout);
		return fflush(stdout) == 0 ? 0 : EXIT_OURS;
	}
	if (action == OPTIONS_VERSION) {
		printf("dftrace-run %s\n", DFTRACE_VERSION);
		return fflush(stdout) == 0 ? 0 : EXIT_OURS;
	}
	options.stderr_closed = stderr_closed;
	for (size_t i = 0; i < options.warnings.count && !options.quiet; i++)
		start_say("%s", options.warnings.items[i]);
	return run(&options);
}
