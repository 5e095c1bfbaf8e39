/* Looks at itself: whatever a program can see of its process. Printed as `key <TAB> value`. */
#include "say.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <sys/resource.h>
#include <sys/wait.h>

extern char **environ;

static void status_line(const char *key)
{
	FILE *file = fopen("/proc/self/status", "r");
	char line[4096];

	CHECK(file);
	while (fgets(line, sizeof(line), file))
		if (strncmp(line, key, strlen(key)) == 0 && line[strlen(key)] == ':')
			printf("%s", line);
	fclose(file);
}

static void descriptors(void)
{
	for (int fd = 0; fd < 1024; fd++)
		if (fcntl(fd, F_GETFD) != -1)
			printf("fd %d\t%d %d\n", fd, fcntl(fd, F_GETFD), fcntl(fd, F_GETFL));
}

static void limits(void)
{
	for (int i = 0; i < RLIM_NLIMITS; i++) {
		struct rlimit limit;

		if (getrlimit(i, &limit) == 0)
			printf("limit %d\t%llu %llu\n", i, (unsigned long long)limit.rlim_cur,
			       (unsigned long long)limit.rlim_max);
	}
}

static void signals(void)
{
	sigset_t pending;
	struct sigaction action;

	CHECK(sigpending(&pending) == 0);
	for (int i = 1; i < NSIG; i++) {
		if (sigismember(&pending, i))
			printf("pending %d\tyes\n", i);
		if (sigaction(i, NULL, &action) == 0 && action.sa_handler != SIG_DFL)
			printf("signal %d\t%s\n", i,
			       action.sa_handler == SIG_IGN ? "ignored" : "?");
	}
}

int main(int argc, char **argv)
{
	struct rusage usage;
	siginfo_t info = {0};
	char *last = argc > 1 ? argv[1] : "";

	printf("pid\t%d\nppid\t%d\npgrp\t%d\nsession\t%d\nfirst\t%s\n", getpid(), getppid(),
	       getpgrp(), getsid(0), last);
	errno = 0;
	printf("wait\t%d", waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOHANG | __WALL));
	printf(" %d\n", errno);
	CHECK(getrusage(RUSAGE_CHILDREN, &usage) == 0);
	printf("children\t%ld %ld %ld %ld %ld\n", usage.ru_utime.tv_usec + usage.ru_utime.tv_sec,
	       usage.ru_stime.tv_usec + usage.ru_stime.tv_sec, usage.ru_maxrss, usage.ru_minflt,
	       usage.ru_nvcsw);
	status_line("SigPnd");
	status_line("ShdPnd");
	status_line("SigBlk");
	status_line("SigIgn");
	status_line("SigCgt");
	status_line("CapEff");
	status_line("Cpus_allowed_list");
	status_line("Threads");
	status_line("Umask");
	printf("nice\t%d\n", getpriority(PRIO_PROCESS, 0));
	printf("dumpable\t%d\n", access("/proc/self/mem", R_OK));
	for (int i = 0; environ[i]; i++)
		if (strncmp(environ[i], "_=", 2) != 0)
			printf("env\t%s\n", environ[i]);
	for (int i = 0; i < argc; i++)
		printf("arg\t%s\n", argv[i]);
	descriptors();
	limits();
	signals();
	return 0;
}
