/* hostile_clone CASE: processes that share what processes do not share, and namespaces. */
#include "hostile.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>

#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

struct clone_arguments {
	uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid,
		set_tid_size, cgroup;
};

static char stack[1 << 18] __attribute__((aligned(64)));
static int pipes[2];

static pid_t clone_here(int (*function)(void *), uint64_t flags)
{
	pid_t pid = clone(function, stack + sizeof(stack), (int)flags | SIGCHLD, NULL);

	CHECK(pid > 0);
	tell("made\t~%d", pid);
	return pid;
}

static void write_to(int fd, const char *name, size_t size)
{
	static const char text[4096];

	CHECK(write(fd, text, size) == (ssize_t)size);
	tell("put\t%s\t%zu", name, size);
}

static int open_new(const char *name)
{
	int fd = open(name, O_RDWR | O_CREAT, 0644);

	CHECK(fd >= 0);
	return fd;
}

static int memory_child(void *data)
{
	(void)data;
	int fd = open_new("child");
	write_to(fd, "child", 31);
	CHECK(write(pipes[1], "x", 1) == 1);
	pause_ms(20);
	write_to(fd, "child", 32);
	_exit(fd);
}

/* One memory, two descriptor tables: the same number is two files. */
static void share_memory(long count)
{
	char byte;

	(void)count;
	CHECK(pipe(pipes) == 0);
	pid_t pid = clone_here(memory_child, CLONE_VM);
	int fd = open_new("parent");
	CHECK(read(pipes[0], &byte, 1) == 1);
	write_to(fd, "parent", 41);
	CHECK(WEXITSTATUS(reap(pid, "child")) == fd);
	write_to(fd, "parent", 42);
}

static int files_child(void *data)
{
	char *const image[] = {"hostile_clone", "say", NULL};
	char byte;
	int fd = open_new("by-child");

	(void)data;
	CHECK(fd == 5 && write(pipes[1], "x", 1) == 1);
	while (access("by-parent", F_OK) < 0)
		pause_ms(1);
	pause_ms(10);
	/* The parent has put another file there. */
	write_to(5, "by-parent", 52);
	CHECK(fcntl(5, F_SETFD, FD_CLOEXEC) == 0);
	(void)byte;
	execv("/proc/self/exe", image);
	_exit(99);
}

static void say_it(long count)
{
	(void)count;
	put("image", 53);
	/* Close-on-exec took it from the copy only. */
	tell("descriptor\t%d", fcntl(5, F_GETFD));
	_exit(0);
}

/* Two memories, one descriptor table, until the child execs. */
static void share_files(long count)
{
	char byte;

	(void)count;
	CHECK(pipe(pipes) == 0 && pipes[1] == 4);
	pid_t pid = clone_here(files_child, CLONE_FILES);
	CHECK(read(pipes[0], &byte, 1) == 1);
	write_to(5, "by-child", 51);
	CHECK(close(5) == 0);
	int fd = open_new("by-parent");
	CHECK(fd == 5);
	reap(pid, "child");
	write_to(5, "by-parent", 54);
}

static pid_t clone3_here(struct clone_arguments *args)
{
	return (pid_t)syscall(SYS_clone3, args, sizeof(*args));
}

/* The structure is as it was, for parent and child, also where the program cannot write to it. */
static void untraced(long count)
{
	struct clone_arguments args = {.flags = CLONE_UNTRACED, .exit_signal = SIGCHLD};
	struct clone_arguments *fixed =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pid_t pid;

	(void)count;
	CHECK(fixed != MAP_FAILED);
	*fixed = args;
	CHECK(mprotect(fixed, 4096, PROT_READ) == 0);
	struct clone_arguments *both[] = {&args, fixed};
	for (size_t i = 0; i < 2; i++) {
		pid = clone3_here(both[i]);
		CHECK(pid >= 0);
		if (pid == 0) {
			tell("child\t%llx", (unsigned long long)both[i]->flags);
			put("untraced", 61);
			_exit(0);
		}
		reap(pid, "untraced");
		tell("made\t~%d", pid);
		tell("parent\t%llx", (unsigned long long)both[i]->flags);
	}
	/* Also where the call fails. */
	args.set_tid_size = 1;
	CHECK(clone3_here(&args) == -1);
	tell("refused\t%d %llx", errno, (unsigned long long)args.flags);
}

static int sibling(void *data)
{
	(void)data;
	put("sibling", 71);
	tell("parent\t~%d", getppid());
	_exit(17);
}

/* The child of a child becomes our own. */
static void parent(long count)
{
	int status;

	(void)count;
	CHECK(pipe(pipes) == 0);
	pid_t middle = fork_said();
	if (middle == 0) {
		pid_t pid = clone(sibling, stack + sizeof(stack), CLONE_PARENT | SIGCHLD, NULL);
		CHECK(pid > 0 && write(pipes[1], &pid, sizeof(pid)) == sizeof(pid));
		tell("made\t~%d", pid);
		put("middle", 72);
		CHECK(waitpid(pid, NULL, 0) == -1);
		_exit(errno == ECHILD ? 18 : 19);
	}
	pid_t pid;
	CHECK(read(pipes[0], &pid, sizeof(pid)) == sizeof(pid));
	CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 17);
	reap(middle, "middle");
	tell("sibling\t~%d %d", pid, getpid());
}

static void *apart(void *data)
{
	int *fd = data;

	CHECK(unshare(CLONE_FILES | CLONE_FS) == 0);
	CHECK(chdir("below") == 0);
	put("relative", 81); /* said as below/relative by the case */
	CHECK(dup2(open_new("other"), *fd) == *fd);
	write_to(*fd, "below/other", 82);
	return NULL;
}

/* A thread leaves the others' descriptors and directory. */
static void leave(long count)
{
	pthread_t thread;
	int fd = open_new("common");

	(void)count;
	CHECK(mkdir("below", 0755) == 0);
	CHECK(pthread_create(&thread, NULL, apart, &fd) == 0 && pthread_join(thread, NULL) == 0);
	write_to(fd, "common", 83);
	put("above", 84);
	CHECK(access("below/relative", F_OK) == 0);
}

/* One process after the other with the same number. */
static void same_pid(long count)
{
	pid_t pid = fork();
	char name[32];

	CHECK(pid >= 0);
	if (pid == 0)
		_exit(0);
	tell("made\t~%d", pid);
	CHECK(waitpid(pid, NULL, 0) == pid);
	for (long i = 0; i < count; i++) {
		pid_t wanted[1] = {pid};
		struct clone_arguments args = {
			.exit_signal = SIGCHLD, .set_tid = (uintptr_t)wanted, .set_tid_size = 1};
		pid_t got = clone3_here(&args);
		if (got < 0) {
			tell("refused\t%d", errno);
			return;
		}
		if (got == 0) {
			snprintf(name, sizeof(name), "turn%ld", i);
			put(name, 90 + (size_t)i);
			_exit((int)i);
		}
		CHECK(got == pid);
		tell("made\t~%d", pid);
		reap(pid, "turn");
	}
	tell("same\t~%d", pid);
}

static int first(void *data)
{
	(void)data;
	tell("first\t%d %d", getpid(), getppid());
	put("first", 101);
	pid_t pid = fork();
	CHECK(pid == 0 || pid == 2);
	if (pid == 0) {
		tell("second\t%d %d", getpid(), getppid());
		put("second", 102);
		_exit(4);
	}
	reap(pid, "second");
	_exit(5);
}

/* Processes in a namespace of their own, where pids are small. */
static void pid_namespace(long count)
{
	(void)count;
	reap(clone_here(first, CLONE_NEWPID), "first");
	CHECK(unshare(CLONE_NEWPID) == 0);
	pid_t pid = fork_said();
	if (pid == 0)
		first(NULL);
	reap(pid, "first");
}

static void change_root(long count)
{
	(void)count;
	CHECK(mkdir("root", 0755) == 0 && mkdir("root/sub", 0755) == 0);
	int outside = open_new("outside");
	pid_t pid = fork_said();
	if (pid == 0) {
		CHECK(chroot("root") == 0 && chdir("/sub") == 0);
		put("/at-top", 111);
		put("in-sub", 112);
		put("../beside", 113);
		write_to(outside, "outside", 114);
		_exit(0);
	}
	reap(pid, "inside");
	put("after", 115);
}

static void own_mounts(void)
{
	CHECK(unshare(CLONE_NEWNS) == 0);
	CHECK(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
}

/* A directory that only this process sees; and another's mounts, entered. */
static void mount_namespace(long count)
{
	char path[64];

	(void)count;
	CHECK(mkdir("mnt", 0755) == 0 && pipe(pipes) == 0);
	pid_t pid = fork_said();
	if (pid == 0) {
		own_mounts();
		CHECK(mount("none", "mnt", "tmpfs", 0, NULL) == 0);
		put("mnt/hidden", 121);
		CHECK(write(pipes[1], "x", 1) == 1);
		pause();
	}
	CHECK(read(pipes[0], path, 1) == 1);
	CHECK(access("mnt/hidden", F_OK) == -1);
	pid_t other = fork_said();
	if (other == 0) {
		char cwd[4096];
		CHECK(getcwd(cwd, sizeof(cwd)));
		snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		CHECK(fd >= 0 && setns(fd, CLONE_NEWNS) == 0 && chdir(cwd) == 0);
		CHECK(access("mnt/hidden", F_OK) == 0);
		put("mnt/hidden", 122);
		_exit(0);
	}
	reap(other, "visitor");
	kill(pid, SIGKILL);
	reap(pid, "owner");
	put("mnt/shown", 123);
}

static const struct hostile_case cases[] = {
	{"share-memory", share_memory},
	{"share-files", share_files},
	{"say", say_it},
	{"untraced", untraced},
	{"parent", parent},
	{"leave", leave},
	{"same-pid", same_pid},
	{"pid-namespace", pid_namespace},
	{"chroot", change_root},
	{"mount-namespace", mount_namespace},
};

int main(int argc, char **argv)
{
	return run_case(argc, argv, cases, sizeof(cases) / sizeof(*cases));
}
