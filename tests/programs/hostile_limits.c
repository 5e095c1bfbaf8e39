/* hostile_limits CASE: a program that closes, limits and exhausts whatever it can. */
#include "hostile.h"

#include <limits.h>
#include <signal.h>
#include <stdint.h>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static void limit(int what, rlim_t soft, rlim_t hard)
{
	const struct rlimit value = {soft, hard};

	CHECK(setrlimit((__rlimit_resource_t)what, &value) == 0);
}

static int open_new(const char *name)
{
	return open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
}

/* Closes everything but what it speaks by, twice; what it opens next has the lowest number. */
static void close_range_all(long count)
{
	int fd = open_new("one");

	(void)count;
	CHECK(fd >= 0 && dup2(fd, 1000) == 1000);
	tell("close\t%ld", syscall(SYS_close_range, 3, ~0U, 0));
	int next = open_new("two");
	tell("next\t%d", next);
	CHECK(write(next, "12", 2) == 2 && write(1000, "1", 1) == -1 && errno == EBADF);
	tell("put\ttwo\t2");
	CHECK(fcntl(next, F_SETFD, 0) == 0);
	/* Close-on-exec: gone in the next image only. */
	tell("mark\t%ld", syscall(SYS_close_range, 3, ~0U, 4));
	CHECK(fcntl(next, F_GETFD) == FD_CLOEXEC && write(next, "123", 3) == 3);
	tell("put\ttwo\t3");
	pid_t pid = fork_said();
	if (pid == 0) {
		/* With a table of its own. */
		CHECK(syscall(SYS_close_range, 0, ~0U, 2) == 0);
		fd = open_new("child");
		CHECK(fd == 0 && write(fd, "1234", 4) == 4);
		_exit(0);
	}
	tell("put\tchild\t4");
	reap(pid, "child");
	put("after", 5);
}

/* One file behind every number there is. */
static void dup_everything(long count)
{
	int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 500), fd = open_new("every");

	CHECK(fd >= 0 && out >= 500);
	for (int i = 0; i < count; i++)
		if (i != out)
			CHECK(dup2(fd, i) == i);
	for (int i = 0; i < count; i += 7)
		if (i != out)
			CHECK(write(i, "x", 1) == 1);
	CHECK(dup2(out, STDOUT_FILENO) == STDOUT_FILENO);
	for (int i = 0; i < count; i += 7)
		if (i != out)
			tell("put\tevery\t1");
	put("after", 6);
}

/* No descriptor can be had: neither by the program nor by its children. */
static void no_files(long count)
{
	char *const image[] = {"hostile_limits", "after-no-files", NULL};

	(void)count;
	limit(RLIMIT_NOFILE, 3, 3);
	tell("open\t%d %d", open_new("none"), errno);
	tell("dup\t%d %d", dup(1), errno);
	pid_t pid = fork_said();
	if (pid == 0)
		_exit(open_new("none") < 0 ? errno : 0);
	reap(pid, "child");
	close(0);
	put("lowest", 7);
	execv("/proc/self/exe", image);
	CHECK(!"reached");
}

static void address_space(long count)
{
	char *map;

	(void)count;
	limit(RLIMIT_AS, 200 << 20, 200 << 20);
	map = mmap(NULL, 1UL << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	tell("map\t%d %d", map == MAP_FAILED, errno);
	pid_t pid = fork_said();
	if (pid == 0) {
		put("child", 8);
		_exit(0);
	}
	reap(pid, "child");
	put("after", 9);
}

static volatile sig_atomic_t caught;

static void count_signal(int signal)
{
	(void)signal;
	caught++;
}

/* A second of its own: told once, and killed in the next one. */
static void cpu(long count)
{
	(void)count;
	put("before", 10);
	CHECK(signal(SIGXCPU, count_signal) != SIG_ERR);
	limit(RLIMIT_CPU, 1, 2);
	for (long i = 0; !caught; i++)
		if (i % 100000000 == 0)
			(void)!access("none", F_OK);
	put("told", 11);
	CHECK(signal(SIGXCPU, SIG_DFL) != SIG_ERR);
	limit(RLIMIT_CPU, 1, 2);
	for (;;)
		;
}

static void file_size(long count)
{
	static const char text[4096];
	struct rlimit value;
	int fd = open_new("data");

	(void)count;
	CHECK(getrlimit(RLIMIT_FSIZE, &value) == 0);
	limit(RLIMIT_FSIZE, 5000, value.rlim_max);
	CHECK(signal(SIGXFSZ, count_signal) != SIG_ERR);
	for (int i = 0; i < 3; i++) {
		long n = write(fd, text, sizeof(text));
		tell("write\t%ld %d %d", n, n < 0 ? errno : 0, (int)caught);
		if (n > 0)
			tell("put\tdata\t%ld", n);
	}
	pid_t pid = fork_said();
	if (pid == 0) {
		put("child", 12);
		CHECK(signal(SIGXFSZ, SIG_DFL) != SIG_ERR);
		(void)!write(fd, text, sizeof(text));
		_exit(1);
	}
	reap(pid, "child");
}

/* No process more: only for whom the limit counts. */
static void no_processes(long count)
{
	(void)count;
	limit(RLIMIT_NPROC, 0, 0);
	put("before", 13);
	pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	tell("fork\t%d %d", pid, pid < 0 ? errno : 0);
	if (pid > 0)
		reap(pid, "child");
	put("after", 14);
}

static void look(long count)
{
	const int all[] = {RLIMIT_NOFILE, RLIMIT_AS,    RLIMIT_CPU,  RLIMIT_NPROC,
			   RLIMIT_CORE,   RLIMIT_FSIZE, RLIMIT_DATA, RLIMIT_STACK};
	char text[32] = "";
	struct rlimit value;

	(void)count;
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		CHECK(getrlimit((__rlimit_resource_t)all[i], &value) == 0);
		tell("limit %d\t%llu %llu", all[i], (unsigned long long)value.rlim_cur,
		     (unsigned long long)value.rlim_max);
	}
	FILE *file = fopen("/proc/self/oom_score_adj", "re");
	if (file) {
		CHECK(fgets(text, sizeof(text), file));
		fclose(file);
	}
	tell("oom\t%d", atoi(text));
	int fd = open_new("look");
	tell("lowest\t%d", fd);
	if (fd >= 0)
		CHECK(write(fd, "123456789012345", 15) == 15);
}

/* Takes memory until somebody ends it. */
static void hog(long megabytes)
{
	put("before", 16);
	for (long i = 0; i < megabytes; i++) {
		char *map = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		CHECK(map != MAP_FAILED);
		(void)!access("step", F_OK);
	}
	put("survived", 17);
}

static void after_no_files(long count)
{
	(void)count;
	tell("after\tyes");
}

static const struct hostile_case cases[] = {
	{"close-range", close_range_all},
	{"dup-everything", dup_everything},
	{"no-files", no_files},
	{"after-no-files", after_no_files},
	{"address-space", address_space},
	{"cpu", cpu},
	{"file-size", file_size},
	{"no-processes", no_processes},
	{"look", look},
	{"hog", hog},
};

int main(int argc, char **argv)
{
	return run_case(argc, argv, cases, sizeof(cases) / sizeof(*cases));
}
