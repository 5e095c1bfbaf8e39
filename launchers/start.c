#include "launchers/start.h"

#include "launchers/explain.h"
#include "launchers/handoff.h"
#include "launchers/parent.h"
#include "launchers/program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/close_range.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* Open at once at least: what the tracer works by, a trace, the memory of a few processes. */
#define FILES_LEAST 16

void start_say(const char *format, ...)
{
	va_list args;
	char text[1024];

	/* In one write, and without stdio's buffers, which an exec would lose. */
	va_start(args, format);
	int n = snprintf(text, sizeof(text), "dftrace-run: ");
	int len = vsnprintf(text + n, sizeof(text) - (size_t)n - 1, format, args);
	va_end(args);
	if (len < 0)
		return;
	size_t total = strlen(text);
	text[total++] = '\n';
	(void)!write(STDERR_FILENO, text, total);
}

/* @return what to do about limits that are too low even to begin, behind the error's words. */
static const char *remedy(int reason)
{
	switch (reason) {
	case EMFILE:
		return "; raise the limit of open files (ulimit -n)";
	case EAGAIN:
		return "; raise the limit of processes (ulimit -u), or end some";
	default:
		return "";
	}
}

/* The tracer works within the hard limits only, and its own passing of a limit is no signal. */
static void raise_limits(void)
{
	const int limits[] = {RLIMIT_NOFILE, RLIMIT_AS,    RLIMIT_DATA,   RLIMIT_FSIZE,
			      RLIMIT_CPU,    RLIMIT_NPROC, RLIMIT_MEMLOCK};
	const int ignored[] = {SIGXCPU, SIGXFSZ, SIGPIPE};
	struct rlimit limit;

	for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
		if (getrlimit((__rlimit_resource_t)limits[i], &limit) == 0) {
			limit.rlim_cur = limit.rlim_max;
			setrlimit((__rlimit_resource_t)limits[i], &limit);
		}
	}
	for (size_t i = 0; i < sizeof(ignored) / sizeof(*ignored); i++)
		signal(ignored[i], SIG_IGN);
}

/* The tracer is alone in its process group and keeps nothing of the program's but stderr. It stays in the session: in
 * one of its own it would have a scheduling group of its own (autogroup), and where ranks that wait give up their CPU
 * with sched_yield, which is heard within a group only, each stop would last as long as their turn.
 * @return the descriptor of stderr, -1: none. */
static int become_tracer(struct channel *channel)
{
	const int kept[] = {SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS, SIGCHLD};
	sigset_t none;

	setpgid(0, 0);
	/* What is sent to everybody, as by the program's kill(-1), must not end or stop the tracer: the
	 * program would be killed with it. It ends by itself when nothing is left to trace. */
	for (int sig = 1; sig <= SIGRTMAX; sig++)
		signal(sig, SIG_IGN);
	for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++)
		signal(kept[i], SIG_DFL);
	raise_limits();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);

	/* Launchers wait for the end of pipes, so every descriptor goes but the two that are needed. They
	 * are moved to 3 and 4, wherever they were. */
	int end = fcntl(channel->tracer, F_DUPFD_CLOEXEC, 5);
	if (end < 0 || dup3(end, 3, O_CLOEXEC) < 0)
		_exit(EXIT_OURS);
	/* Under a low limit there may be one number above the two only. */
	close(end);
	int report = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 5);
	channel->tracer = 3;
	channel->program = -1; /* closed with the rest */
	if (report >= 0)
		report = dup3(report, 4, O_CLOEXEC);
	close_range(report >= 0 ? 5 : 4, ~0U, 0);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; null >= 0 && fd < 3; fd++)
		dup3(null, fd, O_CLOEXEC);
	close(null);
	(void)!chdir("/");
	return report;
}

/* The middle process: makes the tracer and is gone, so that nobody is the tracer's parent. */
static pid_t fork_tracer(struct channel *channel, const struct options *options, pid_t program,
			 bool has_stderr)
{
	struct handoff_end end;
	pid_t middle = fork();

	if (middle != 0)
		return middle;
	pid_t pid = fork();
	if (pid != 0) {
		channel->shared->tracer_pid = pid > 0 ? pid : 0;
		channel->shared->error_number = pid < 0 ? errno : 0;
		_exit(0);
	}
	int report = become_tracer(channel);
	if (!has_stderr && report >= 0) {
		close(report);
		report = -1;
	}
	_exit(handoff_trace(channel, options, program, false, report, NULL, &end) ? 0 : EXIT_OURS);
}

/* @return as handoff_program; `error` says what the tracer could not do. */
static enum handoff_result start_detached(const struct options *options, const char *path,
					  struct buf *error, int *status)
{
	struct channel channel;
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct sigaction before;
	bool has_stderr = fcntl(STDERR_FILENO, F_GETFD) >= 0 && !options->stderr_closed;

	*status = 0;
	if (handoff_open(&channel) < 0) {
		buf_addf(error, "cannot start the tracer: %s%s", strerror(errno), remedy(errno));
		return HANDOFF_FAILED;
	}
	/* A child that dies while SIGCHLD is ignored leaves nothing: no signal, no status, no resource
	 * usage that the program could find. */
	sigaction(SIGCHLD, &ignore, &before);
	pid_t middle = fork_tracer(&channel, options, getpid(), has_stderr);
	int reason = errno;
	if (middle > 0) {
		while (waitpid(middle, NULL, 0) < 0 && errno == EINTR)
			;
	}
	sigaction(SIGCHLD, &before, NULL);
	if (middle < 0 || channel.shared->tracer_pid == 0) {
		reason = middle < 0 ? reason : channel.shared->error_number;
		buf_addf(error, "cannot start the tracer: %s%s", strerror(reason), remedy(reason));
		return HANDOFF_FAILED;
	}
	enum handoff_result result = handoff_program(&channel, path, options->argv, status);
	if (*status == 0 && channel.shared->error[0]) {
		buf_add_str(error, channel.shared->error);
	} else if (*status == 0) {
		struct explanation why;
		explain_ptrace(&why, 0, true);
		buf_addf(error, "the program cannot be traced: %s; %s", why.cause, why.remedy);
	}
	return result;
}

/* @return the status to exit with, or does not return. */
static int start_parent(const struct options *options, const char *path, const char *note)
{
	struct explanation why;
	struct channel channel;
	struct handoff_end end;
	sigset_t mask;
	int status;

	/* Here it is ourselves who would be killed, without a word. */
	if (explain_killing_filter(&why, !options->no_seccomp)) {
		start_say("the program cannot be traced: %s; %s", why.cause, why.remedy);
		return EXIT_OURS;
	}
	if (handoff_open(&channel) < 0) {
		start_say("cannot start the program: %s%s", strerror(errno), remedy(errno));
		return EXIT_OURS;
	}
	channel.shared->tracer_pid = getpid();
	parent_block(&mask);
	pid_t pid = fork();
	if (pid < 0) {
		start_say("cannot start the program: %s%s", strerror(errno), remedy(errno));
		return EXIT_OURS;
	}
	if (pid == 0) {
		sigprocmask(SIG_SETMASK, &mask, NULL);
		handoff_program(&channel, path, options->argv, &status);
		_exit(status ? status : EXIT_OURS);
	}
	signal(SIGCHLD, SIG_DFL);
	raise_limits();
	int report = options->stderr_closed ? -1 : fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	bool followed = handoff_trace(&channel, options, pid, true, report, note, &end);
	if (!followed) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		start_say("%s",
			  channel.shared->error[0] ? channel.shared->error : "lost the program");
		return EXIT_OURS;
	}
	parent_end(&end);
}

/* @return whether the limits leave room for a tracer; says so if not. */
static bool has_room(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_max >= FILES_LEAST)
		return true;
	start_say(
		"the hard limit of %llu open files (ulimit -Hn) is too low to trace with; it takes "
		"%d",
		(unsigned long long)limit.rlim_max, FILES_LEAST);
	return false;
}

int start(const struct options *options, const char *path)
{
	const char *note = NULL;
	struct buf error = {0};
	int status = 0;

	if (!has_room())
		return EXIT_OURS;
	if (options->tracer == TRACER_FORM_AUTO && getpid() == 1) {
		/* Its end would end the namespace, tracer included. */
		note = "as pid 1 of its namespace dftrace-run is the program's parent: pid and "
		       "ppid differ";
	} else if (options->tracer != TRACER_FORM_PARENT) {
		enum handoff_result result = start_detached(options, path, &error, &status);
		if (status == 0 &&
		    (result != HANDOFF_REFUSED || options->tracer == TRACER_FORM_DETACHED)) {
			start_say("%s", buf_str(&error));
			status = EXIT_OURS;
		}
		buf_free(&error);
		if (status)
			return status;
		note = "seizing its parent was refused, so the tracer is the program's parent";
	}
	return start_parent(options, path, note);
}
