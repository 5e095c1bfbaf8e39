/* hostile_threads CASE [N]: very many threads, and threads that end in unusual ways. */
#include "hostile.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static long made, wrote;
static int data_fd;

static void *one_write(void *data)
{
	long number = (long)data;

	CHECK(pwrite(data_fd, "12345678", 8, number * 8) == 8);
	__atomic_add_fetch(&wrote, 1, __ATOMIC_RELAXED);
	return NULL;
}

/* Threads that are made and end, some awaited, some detached, a few at a time. */
static void churn(long count)
{
	pthread_t threads[8];
	pthread_attr_t attr;

	data_fd = open("data", O_RDWR | O_CREAT, 0644);
	CHECK(data_fd >= 0 && pthread_attr_init(&attr) == 0);
	CHECK(pthread_attr_setstacksize(&attr, 1 << 16) == 0);
	for (long i = 0; i < count;) {
		long n = 0;
		for (; n < 8 && i < count; n++, i++)
			CHECK(pthread_create(&threads[n], &attr, one_write, (void *)i) == 0);
		made += n;
		for (long k = 0; k < n; k++) {
			if (k % 4 == 3)
				CHECK(pthread_detach(threads[k]) == 0);
			else
				CHECK(pthread_join(threads[k], NULL) == 0);
		}
	}
	while (__atomic_load_n(&wrote, __ATOMIC_RELAXED) < count)
		sched_yield();
	tell("threads\t%ld %ld", made, wrote);
}

static int never[2];

static void *in_call(void *data)
{
	static uint32_t word;
	struct pollfd poller = {.fd = never[0], .events = POLLIN};
	char byte;

	switch ((long)data % 6) {
	case 0:
		(void)!read(never[0], &byte, 1);
		break;
	case 1:
		pause_ms(100000);
		break;
	case 2:
		syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0);
		break;
	case 3:
		poll(&poller, 1, -1);
		break;
	case 4:
		for (;;)
			(void)!access("none", F_OK);
	default:
		for (;;)
			(void)!pwrite(data_fd, "12345678", 8, 0);
	}
	return NULL;
}

static void many_in_calls(long count)
{
	pthread_attr_t attr;
	pthread_t thread;

	CHECK(pipe(never) == 0 && pthread_attr_init(&attr) == 0);
	CHECK(pthread_attr_setstacksize(&attr, 1 << 16) == 0);
	data_fd = open("data", O_RDWR | O_CREAT, 0644);
	CHECK(data_fd >= 0);
	for (long i = 0; i < count; i++)
		CHECK(pthread_create(&thread, &attr, in_call, (void *)i) == 0);
	pause_ms(50);
}

/* All of them are in a call when the program ends. */
static void exit_group(long count)
{
	many_in_calls(count);
	tell("threads\t%ld", count);
	_exit(6);
}

static void *exit_from_here(void *data)
{
	(void)data;
	_exit(7);
}

static void exit_thread(long count)
{
	pthread_t thread;

	many_in_calls(count);
	tell("threads\t%ld", count);
	CHECK(pthread_create(&thread, NULL, exit_from_here, NULL) == 0);
	pause_ms(100000);
}

static void die(long count)
{
	many_in_calls(count);
	tell("threads\t%ld", count);
	raise(SIGTERM);
	pause_ms(100000);
}

static void *later(void *data)
{
	/* The leader has ended by now. */
	pause_ms(50);
	put("later", 31);
	if (data)
		raise((int)(long)data);
	exit(9);
}

/* The leader ends first; a thread ends the process: by a signal, or by itself. */
static void leader_first(long number)
{
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, later, (void *)number) == 0);
	pthread_exit(NULL);
}

static void *leader_is_gone_too(void *data)
{
	pthread_t thread;

	pause_ms(20);
	if ((long)data > 0) {
		CHECK(pthread_create(&thread, NULL, leader_is_gone_too, (void *)((long)data - 1)) ==
		      0);
		return NULL;
	}
	put("last", 32);
	pid_t pid = fork_said();
	if (pid == 0) {
		put("child", 33);
		_exit(1);
	}
	reap(pid, "child");
	return NULL;
}

/* Each thread makes the next and ends: the leader is a zombie, the program ends with its last one. */
static void relay(long count)
{
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, leader_is_gone_too, (void *)count) == 0);
	pthread_exit(NULL);
}

static void forbid_getppid(uint32_t action)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rmdir, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {sizeof(code) / sizeof(*code), code};

	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0);
}

static volatile int tid_of_victim;

static void *victim(void *data)
{
	tid_of_victim = (int)syscall(SYS_gettid);
	put("victim", 34);
	forbid_getppid(SECCOMP_RET_KILL_THREAD);
	/* One call that is traced, one that is not. */
	if (data)
		(void)syscall(SYS_rmdir, "none");
	else
		(void)syscall(SYS_getppid);
	put("never", 1);
	return NULL;
}

/* A filter kills a single thread; the others live on. 1: the call is one that is traced. 2: the leader. */
static void killed_thread(long way)
{
	char path[64];
	pthread_t thread;

	if (way == 2) {
		CHECK(pthread_create(&thread, NULL, later, NULL) == 0);
		victim(NULL);
	}
	CHECK(pthread_create(&thread, NULL, victim, (void *)way) == 0);
	while (!tid_of_victim)
		pause_ms(1);
	snprintf(path, sizeof(path), "/proc/self/task/%d", tid_of_victim);
	while (access(path, F_OK) == 0)
		pause_ms(1);
	put("survivor", 35);
}

static void killed_process(long way)
{
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, later, NULL) == 0);
	put("before", 36);
	forbid_getppid(SECCOMP_RET_KILL_PROCESS);
	if (way)
		(void)syscall(SYS_rmdir, "none");
	else
		(void)syscall(SYS_getppid);
	put("never", 1);
}

/* A process that waits for its vfork child is told to end: the signal takes hold when the child lets go, a
 * SIGKILL at once. */
static void vfork_parent(long number)
{
	int pipes[2];
	char byte;

	CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0 && pipe(pipes) == 0);
	pid_t parent = fork_said();
	if (parent == 0) {
		put("parent", 37);
		pid_t pid = vfork();
		if (pid == 0) {
			(void)!write(pipes[1], "x", 1);
			struct timespec moment = {.tv_nsec = 300000000};
			nanosleep(&moment, NULL);
			int fd = open("child", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
			(void)!write(fd, "from vfork", 10);
			_exit(2);
		}
		tell("unexpected");
		_exit(3);
	}
	CHECK(read(pipes[0], &byte, 1) == 1);
	tell("put\tchild\t10");
	CHECK(kill(parent, (int)number) == 0);
	reap(parent, "parent");
	/* Nobody traced can be ended in this wait by a signal that it could catch. */
	tell("child done\t%s%d", number == SIGKILL ? "" : "~", access("child", F_OK));
	while (waitpid(-1, NULL, 0) > 0)
		;
}

static const struct hostile_case cases[] = {
	{"churn", churn},
	{"exit-group", exit_group},
	{"exit-thread", exit_thread},
	{"die", die},
	{"leader-first", leader_first},
	{"relay", relay},
	{"killed-thread", killed_thread},
	{"killed-process", killed_process},
	{"vfork-parent", vfork_parent},
};

int main(int argc, char **argv)
{
	return run_case(argc, argv, cases, sizeof(cases) / sizeof(*cases));
}
