/* fds CASE: descriptors in every way that they can come to be, each followed by a write whose size tells which
 * file it must have gone to: file `a` gets 1, 2, 3, … bytes at a time, and so on. */
#include "say.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static int opened(const char *path, int flags)
{
	int fd = open(path, O_RDWR | O_CREAT | flags, 0644);

	CHECK(fd >= 0);
	return fd;
}

/* Writes through `fd` and says which file that is about. */
static void put(int fd, const char *path, size_t size)
{
	static const char text[4096];

	say("write", "write", NULL, path, write(fd, text, size));
}

static void duplicates(void)
{
	int a = opened("a", 0), b = opened("b", 0), c;

	put(c = dup(a), "a", 1);
	put(dup2(b, c), "b", 2);
	put(dup2(b, b), "b", 3);
	CHECK(dup2(999, c) == -1);
	put(c, "b", 4);
	put(dup3(a, c, O_CLOEXEC), "a", 5);
	put(fcntl(b, F_DUPFD, 100), "b", 6);
	put(fcntl(a, F_DUPFD_CLOEXEC, 100), "a", 7);
	CHECK(close(a) == 0);
	put(c, "a", 8);
	a = opened("c", 0);
	put(a, "c", 9);
	CHECK(rename("c", "renamed") == 0);
	put(a, "c", 10);
	CHECK(unlink("b") == 0);
	put(b, "b", 11);
}

static void ranges(void)
{
	int a = opened("a", 0), b = opened("b", 0), low;

	CHECK(dup2(a, 40) == 40 && dup2(b, 41) == 41 && dup2(a, 42) == 42);
	CHECK(syscall(SYS_close_range, 41, 41, 0) == 0);
	put(42, "a", 1);
	CHECK(dup2(b, 41) == 41);
	put(41, "b", 2);
	CHECK(syscall(SYS_close_range, 40, 45, CLOSE_RANGE_CLOEXEC) == 0);
	put(41, "b", 3);
	CHECK(syscall(SYS_close_range, 40, ~0U, 0) == 0);
	low = opened("c", 0);
	CHECK(dup2(low, 41) == 41);
	put(41, "c", 4);
}

static void send_fd(int socket, int fd)
{
	char byte = 'x';
	struct iovec iov = {&byte, 1};
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct msghdr message = {.msg_iov = &iov,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};

	control.header.cmsg_len = CMSG_LEN(sizeof(int));
	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	CHECK(sendmsg(socket, &message, 0) == 1);
}

static int receive_fd(int socket)
{
	char byte;
	int fd;
	struct iovec iov = {&byte, 1};
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct msghdr message = {.msg_iov = &iov,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};

	CHECK(recvmsg(socket, &message, 0) == 1);
	memcpy(&fd, CMSG_DATA(&control.header), sizeof(fd));
	return fd;
}

static void passed(void)
{
	int pair[2], fd;
	pid_t child;

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		send_fd(pair[1], opened("sent", 0));
		_exit(0);
	}
	fd = receive_fd(pair[0]);
	put(fd, "sent", 1);
	CHECK(waitpid(child, NULL, 0) == child);
	put(fd, "sent", 2);
	send_fd(pair[0], opened("own", 0));
	put(receive_fd(pair[1]), "own", 3);
}

static void taken(void)
{
	int gate[2], pidfd, fd;
	pid_t child;
	char byte;

	CHECK(pipe(gate) == 0);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		CHECK(dup2(opened("theirs", 0), 77) == 77);
		CHECK(write(gate[1], "x", 1) == 1);
		pause();
	}
	CHECK(read(gate[0], &byte, 1) == 1);
	pidfd = (int)syscall(SYS_pidfd_open, child, 0);
	CHECK(pidfd >= 0);
	fd = (int)syscall(SYS_pidfd_getfd, pidfd, 77, 0);
	CHECK(fd >= 0);
	put(fd, "theirs", 1);
	CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
}

static int shared_fd;

static int shares(void *data)
{
	(void)data;
	shared_fd = opened("shared", 0);
	put(shared_fd, "shared", 1);
	CHECK(close(50) == 0);
	return 0;
}

static void shared(void)
{
	int fd = opened("a", 0);
	char *stack =
		mmap(NULL, 1 << 18, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pid_t child;

	CHECK(stack != MAP_FAILED && dup2(fd, 50) == 50);
	child = clone(shares, stack + (1 << 18), CLONE_VM | CLONE_FILES | SIGCHLD, NULL);
	CHECK(child > 0 && waitpid(child, NULL, 0) == child);
	put(shared_fd, "shared", 2);
	CHECK(fcntl(50, F_GETFD) == -1);
	fflush(stdout);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		CHECK(close(shared_fd) == 0);
		put(opened("b", 0), "b", 3);
		fflush(stdout);
		_exit(0);
	}
	CHECK(waitpid(child, NULL, 0) == child);
	put(shared_fd, "shared", 4);
}

static void execs(void)
{
	char *argv[] = {"fds", "after-exec", NULL};

	CHECK(dup2(opened("stays", 0), 60) == 60);
	CHECK(dup3(opened("goes", 0), 61, O_CLOEXEC) == 61);
	put(60, "stays", 1);
	put(61, "goes", 2);
	fflush(stdout);
	CHECK(execv("/proc/self/exe", argv) == 0);
}

static void after_exec(void)
{
	put(60, "stays", 3);
	CHECK(fcntl(61, F_GETFD) == -1);
	CHECK(dup2(opened("new", 0), 61) == 61);
	put(61, "new", 4);
}

static void directories(void)
{
	int dir, fd;

	CHECK(mkdir("d", 0755) == 0 && mkdir("d/e", 0755) == 0);
	dir = open("d", O_RDONLY | O_DIRECTORY);
	CHECK(dir >= 0);
	fd = openat(dir, "x", O_RDWR | O_CREAT, 0644);
	put(fd, "d/x", 1);
	CHECK(chdir("d") == 0);
	put(open("./e/../y", O_RDWR | O_CREAT, 0644), "d/y", 2);
	CHECK(fchdir(dir) == 0);
	put(openat(AT_FDCWD, "e/z", O_RDWR | O_CREAT, 0644), "d/e/z", 3);
	CHECK(chdir("e") == 0);
	put(open("../w", O_RDWR | O_CREAT, 0644), "d/w", 4);
	/* Renamed under an open descriptor: the name that it was opened by stays. */
	CHECK(rename("../../d", "../../moved") == 0);
	put(openat(dir, "v", O_RDWR | O_CREAT, 0644), "d/v", 5);
	/* The kernel's name of the working directory is the new one. */
	put(open("u", O_RDWR | O_CREAT, 0644), "moved/e/u", 6);
}

static void removed(void)
{
	int fd;

	CHECK(mkdir("d", 0755) == 0 && chdir("d") == 0);
	fd = open("x", O_RDWR | O_CREAT, 0644);
	CHECK(fd >= 0 && unlink("x") == 0 && rmdir("../d") == 0);
	put(fd, "d/x", 1);
	say("open", "open", NULL, "d/y", open("y", O_RDWR | O_CREAT, 0644));
	say("access", "access", NULL, "d", access(".", R_OK));
}

static void *opens_in_thread(void *data)
{
	int *fd = data;

	*fd = opened("thread", 0);
	return NULL;
}

static void *unshares(void *data)
{
	int fd = *(int *)data;

	/* From here on this thread's descriptors are its own, whatever the others close. */
	CHECK(unshare(CLONE_FILES) == 0);
	CHECK(close(fd) == 0 && opened("private", 0) == fd);
	put(fd, "private", 2);
	return NULL;
}

static void threads(void)
{
	pthread_t thread;
	int fd;

	CHECK(pthread_create(&thread, NULL, opens_in_thread, &fd) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	put(fd, "thread", 1);
	CHECK(pthread_create(&thread, NULL, unshares, &fd) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	put(fd, "thread", 3);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{"duplicates", duplicates}, {"ranges", ranges},           {"passed", passed},
	{"taken", taken},           {"shared", shared},           {"execs", execs},
	{"after-exec", after_exec}, {"directories", directories}, {"removed", removed},
	{"threads", threads},
};

int main(int argc, char **argv)
{
	static char out[1 << 14];

	setvbuf(stdout, out, _IOFBF, sizeof(out));
	CHECK(argc == 2);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (strcmp(cases[i].name, argv[1]) == 0) {
			cases[i].run();
			return 0;
		}
	}
	fprintf(stderr, "no case %s\n", argv[1]);
	return 2;
}
