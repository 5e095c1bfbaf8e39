/* What the hostile programs share. Each says what it did in lines of one write each, so that processes can
 * speak at once: `put NAME BYTES` for what was written to a file, `made PID` for a process, and other
 * words of its own. What follows a `~` differs from run to run. */
#ifndef TESTS_PROGRAMS_HOSTILE_H
#define TESTS_PROGRAMS_HOSTILE_H

#include "say.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <sys/wait.h>

struct hostile_case {
	const char *name;
	void (*run)(long count);
};

__attribute__((unused, format(printf, 1, 2))) static void tell(const char *format, ...)
{
	char line[512];
	va_list args;

	va_start(args, format);
	int n = vsnprintf(line, sizeof(line) - 1, format, args);
	va_end(args);
	line[n++] = '\n';
	CHECK(write(STDOUT_FILENO, line, (size_t)n) == n);
}

/* Appends `size` bytes to a file, and says so. */
__attribute__((unused)) static void put(const char *name, size_t size)
{
	static const char text[4096];
	int fd = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

	CHECK(fd >= 0 && write(fd, text, size) == (ssize_t)size && close(fd) == 0);
	tell("put\t%s\t%zu", name, size);
}

__attribute__((unused)) static void pause_ms(long ms)
{
	struct timespec left = {ms / 1000, ms % 1000 * 1000000};

	while (nanosleep(&left, &left) < 0 && errno == EINTR)
		;
}

/* Waits for a child and says how it ended. */
__attribute__((unused)) static int reap(pid_t pid, const char *name)
{
	int status;
	pid_t got;

	do
		got = waitpid(pid, &status, __WALL);
	while (got < 0 && errno == EINTR);
	CHECK(got == pid);
	tell("reaped\t%s\t%s %d%s", name, WIFEXITED(status) ? "exit" : "signal",
	     WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status),
	     !WIFEXITED(status) && WCOREDUMP(status) ? " core" : "");
	return status;
}

__attribute__((unused)) static pid_t fork_said(void)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid > 0)
		tell("made\t~%d", pid);
	return pid;
}

__attribute__((unused)) static int run_case(int argc, char **argv, const struct hostile_case *cases,
					    size_t count)
{
	CHECK(argc >= 2);
	for (size_t i = 0; i < count; i++) {
		if (strcmp(cases[i].name, argv[1]) == 0) {
			cases[i].run(argc > 2 ? atol(argv[2]) : 0);
			return 0;
		}
	}
	fprintf(stderr, "no case %s\n", argv[1]);
	return 2;
}

#endif
