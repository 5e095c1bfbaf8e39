/* races CASE [N]: processes and threads that come and go in awkward ways. */
#include "say.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static void put(const char *stem, long number, size_t size)
{
	static const char text[4096];
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "%s%ld", stem, number);
	fd = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	CHECK(fd >= 0 && write(fd, text, size) == (ssize_t)size && close(fd) == 0);
}

static void reap_all(void)
{
	int status;

	while (wait(&status) > 0)
		;
}

static void *spin(void *data)
{
	atomic_long *at_work = data;

	(void)!access("a", F_OK);
	atomic_fetch_add(at_work, 1);
	for (;;)
		(void)!access("b", F_OK);
	return NULL;
}

/* Returns when each of them has made a call. */
static void spinners(long count)
{
	static atomic_long at_work;
	pthread_t thread;

	for (long i = 0; i < count; i++)
		CHECK(pthread_create(&thread, NULL, spin, &at_work) == 0);
	while (atomic_load(&at_work) < count)
		sched_yield();
}

static void *exec_here(void *data)
{
	char *argv[] = {"races", "after-exec", NULL};

	(void)data;
	put("before", 1, 11);
	execv("/proc/self/exe", argv);
	CHECK(!"reached");
	return NULL;
}

/* A thread that is not the leader execs while the others are in calls. */
static void exec_thread(long count)
{
	pthread_t thread;

	printf("pid\t%d\n", getpid());
	fflush(stdout);
	spinners(count);
	CHECK(pthread_create(&thread, NULL, exec_here, NULL) == 0);
	pthread_join(thread, NULL);
}

static void after_exec(long count)
{
	(void)count;
	put("after", 1, 22);
	printf("after\t%d\n", getpid());
}

static void exec_chain(long count)
{
	char number[32];
	char *argv[] = {"races", "exec-chain", number, NULL};

	put("chain", count, (size_t)count + 1);
	if (count == 0) {
		printf("end\t%d\n", getpid());
		return;
	}
	snprintf(number, sizeof(number), "%ld", count - 1);
	execv("/proc/self/exe", argv);
	CHECK(!"reached");
}

static void *later(void *data)
{
	struct timespec moment = {.tv_nsec = 200000000};

	(void)data;
	nanosleep(&moment, NULL);
	put("later", 1, 33);
	exit(6);
}

/* The leader ends first; the process lives on as a zombie leader with a running thread. */
static void leader_gone(long count)
{
	pthread_t thread;

	(void)count;
	CHECK(pthread_create(&thread, NULL, later, NULL) == 0);
	pthread_exit(NULL);
}

static int cloned(void *data)
{
	(void)data;
	put("clone", 1, 44);
	_exit(0);
}

/* Children whose parent asks that no tracer follow them. */
static void untraced(long count)
{
	static char stack[1 << 16] __attribute__((aligned(16)));
	struct clone_args {
		uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
	} args = {.flags = CLONE_UNTRACED, .exit_signal = SIGCHLD};
	pid_t pid;

	(void)count;
	pid = clone(cloned, stack + sizeof(stack), CLONE_UNTRACED | SIGCHLD, NULL);
	CHECK(pid > 0 && waitpid(pid, NULL, 0) == pid);
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	CHECK(pid >= 0);
	if (pid == 0) {
		put("clone", 3, 55);
		_exit(0);
	}
	CHECK(waitpid(pid, NULL, 0) == pid);
	printf("untraced\tdone\n");
}

/* One child by vfork, which execs a program that is there or one that is not. */
static void vfork_once(const char *path, int expected)
{
	char *const argv[] = {"program", NULL};
	int status;
	pid_t pid = vfork();

	CHECK(pid >= 0);
	if (pid == 0) {
		execv(path, argv);
		_exit(9);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == expected);
}

static void vforks(long count)
{
	for (long i = 0; i < count; i += 2) {
		vfork_once("/bin/true", 0);
		vfork_once("/none", 9);
	}
	put("vforks", 0, 1);
	printf("vforks\t%ld\n", count);
}

/* Ends while its threads are in calls. */
static void exit_busy(long count)
{
	struct timespec moment = {.tv_nsec = 50000000};

	spinners(count);
	nanosleep(&moment, NULL);
	_exit(5);
}

static void killed_busy(long count)
{
	struct timespec moment = {.tv_nsec = 50000000};

	spinners(count);
	nanosleep(&moment, NULL);
	kill(getpid(), SIGKILL);
	pause();
}

/* Children that die at once, some before their parent's call is over, some with children of their own. */
static void storm(long count)
{
	for (long i = 0; i < count; i++) {
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (pid == 0) {
			if (i % 3 == 0)
				kill(getpid(), SIGKILL);
			if (i % 3 == 1 && fork() == 0)
				_exit(0);
			_exit(1);
		}
		if (i % 4 == 0)
			kill(pid, SIGKILL);
		if (i % 16 == 15)
			reap_all();
	}
	reap_all();
	put("storm", 0, 1);
	printf("storm\t%ld\n", count);
}

static void *forks(void *data)
{
	long number = (long)data;

	for (long i = 0; i < 10; i++) {
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (pid == 0) {
			put("fork", number * 10 + i, (size_t)(number + i + 1));
			_exit(0);
		}
		CHECK(waitpid(pid, NULL, 0) == pid);
	}
	return NULL;
}

static void fork_threads(long count)
{
	pthread_t threads[32];

	CHECK(count <= 32);
	for (long i = 0; i < count; i++)
		CHECK(pthread_create(&threads[i], NULL, forks, (void *)i) == 0);
	for (long i = 0; i < count; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	printf("forks\t%ld\n", count * 10);
}

/* A daemon: forks twice, leaves the session, closes everything, works on. */
static void daemonize(long count)
{
	struct timespec moment = {.tv_nsec = 300000000};
	pid_t pid = fork();

	(void)count;
	CHECK(pid >= 0);
	if (pid > 0) {
		CHECK(waitpid(pid, NULL, 0) == pid);
		printf("daemon\tstarted\n");
		return;
	}
	CHECK(setsid() > 0);
	if (fork() > 0)
		_exit(0);
	for (int fd = 0; fd < 256; fd++)
		close(fd);
	nanosleep(&moment, NULL);
	put("daemon", 1, 66);
	_exit(0);
}

static void trapped(int signal, siginfo_t *info, void *context)
{
	(void)context;
	put("trapped", info->si_syscall, (size_t)signal);
}

/* The program's own filter: one call fails, another one raises SIGSYS. */
static void own_filter(long count)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mkdir, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 42),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rmdir, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {sizeof(code) / sizeof(*code), code};
	struct sigaction action = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO};
	int made;

	(void)count;
	CHECK(sigaction(SIGSYS, &action, NULL) == 0);
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
	made = mkdir("d", 0755);
	printf("mkdir\t%d %d\n", made, errno);
	(void)rmdir("d");
	put("filtered", 1, 77);
}

static const struct {
	const char *name;
	void (*run)(long count);
} cases[] = {
	{"exec-thread", exec_thread}, {"after-exec", after_exec},     {"exec-chain", exec_chain},
	{"leader-gone", leader_gone}, {"untraced", untraced},         {"vforks", vforks},
	{"exit-busy", exit_busy},     {"killed-busy", killed_busy},   {"storm", storm},
	{"daemon", daemonize},        {"fork-threads", fork_threads}, {"own-filter", own_filter},
};

int main(int argc, char **argv)
{
	long count = argc > 2 ? atol(argv[2]) : 8;

	CHECK(argc >= 2);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (strcmp(cases[i].name, argv[1]) == 0) {
			cases[i].run(count);
			return 0;
		}
	}
	fprintf(stderr, "no case %s\n", argv[1]);
	return 2;
}
