/* hostile_exec CASE: programs that become others at awkward moments, and processes without parents. */
#include "hostile.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static char *const after[] = {"hostile_exec", "after", NULL};

static void *spin(void *data)
{
	for (;;)
		(void)!access(data, F_OK);
	return NULL;
}

static void *sleep_in_read(void *data)
{
	int pipes[2];
	char byte;

	(void)data;
	CHECK(pipe2(pipes, O_CLOEXEC) == 0);
	(void)!read(pipes[0], &byte, 1);
	return NULL;
}

static void *sleep_in_nanosleep(void *data)
{
	(void)data;
	for (;;)
		pause_ms(10000);
	return NULL;
}

static void *fork_on(void *data)
{
	(void)data;
	for (;;) {
		pid_t pid = fork();
		if (pid == 0) {
			tell("~am\t%d", getpid());
			_exit(0);
		}
		if (pid > 0)
			waitpid(pid, NULL, 0);
	}
	return NULL;
}

static void *exec_after(void *data)
{
	pause_ms(30);
	put("before", 11);
	/* A leader that has ended has no executable. */
	execv("/proc/thread-self/exe", data);
	CHECK(!"reached");
	return NULL;
}

/* A thread that is not the leader execs while the others run, sleep in calls, and fork. */
static void among(long count)
{
	void *(*const others[])(void *) = {spin, sleep_in_read, sleep_in_nanosleep, fork_on};
	pthread_t thread;

	for (long i = 0; i < count; i++)
		CHECK(pthread_create(&thread, NULL, others[i % 4], "x") == 0);
	CHECK(pthread_create(&thread, NULL, exec_after, (void *)after) == 0);
	pthread_join(thread, NULL);
}

static void after_exec(long count)
{
	(void)count;
	/* Children of the threads that are gone are still ours. */
	while (waitpid(-1, NULL, __WALL) > 0)
		;
	put("after", 22);
	tell("pid\t~%d", getpid());
}

/* The leader has ended when another thread execs. */
static void leader_gone(long count)
{
	pthread_t thread;

	(void)count;
	CHECK(pthread_create(&thread, NULL, exec_after, (void *)after) == 0);
	pthread_exit(NULL);
}

static void in_place(long count)
{
	(void)count;
	put("image", 5);
	_exit(7);
}

/* The child of a vfork changes descriptors and directory, which are its own, and memory, which is its
 * parent's, before it execs; another thread of the parent works on meanwhile. */
static void in_vfork(long count)
{
	static volatile int shared;
	static char *const image[] = {"hostile_exec", "in-place", NULL};
	pthread_t thread;
	char text[8];

	CHECK(mkdir("below", 0755) == 0);
	CHECK(pthread_create(&thread, NULL, spin, "y") == 0);
	for (long i = 0; i < count; i++) {
		int fd = open("kept", O_RDWR | O_CREAT, 0644);
		pid_t pid = vfork();
		CHECK(fd >= 0 && pid >= 0);
		if (pid == 0) {
			shared++;
			int other = open("other", O_RDWR | O_CREAT, 0644);
			if (dup2(other, fd) != fd || write(fd, "child", 5) != 5 ||
			    chdir("below") < 0)
				_exit(90);
			execv("/proc/self/exe", image);
			_exit(91);
		}
		tell("made\t~%d", pid);
		tell("put\tother\t5");
		reap(pid, "image");
		CHECK(write(fd, "parent!", 7) == 7 && pread(fd, text, 1, 0) == 1);
		tell("put\tkept\t7");
		CHECK(close(fd) == 0);
	}
	tell("shared\t%d", shared);
}

/* The bytes of a file that was put there for us. */
static void to_script(long count)
{
	char *const args[] = {"script", "one", "two words", NULL};

	(void)count;
	put("first", 3);
	execv("./script", args);
	CHECK(!"reached");
}

static void try_exec(const char *path)
{
	char *const args[] = {"x", NULL};

	execv(path, args);
	tell("failed\t%s\t%d", strlen(path) < 100 ? path : "long", errno);
}

/* A good exec, then ones that fail: the program goes on as what it was. */
static void fails(long count)
{
	static char longer[5000];
	static char huge[300000];
	char *const self[] = {"hostile_exec", "fails", "1", NULL};
	char *const big[] = {"x", huge, NULL};
	FILE *file;

	if (count == 0) {
		execv("/proc/self/exe", self);
		CHECK(!"reached");
	}
	file = fopen("text", "w");
	CHECK(file && fputs("no program\n", file) > 0 && fclose(file) == 0);
	file = fopen("lost", "w");
	CHECK(file && fputs("#!/none/such\n", file) > 0 && fclose(file) == 0);
	tell("put\ttext\t11");
	tell("put\tlost\t13");
	CHECK(chmod("text", 0755) == 0 && chmod("lost", 0755) == 0);
	CHECK(symlink("round", "round") == 0 && mkdir("dir", 0755) == 0);
	memset(longer, 'l', sizeof(longer) - 1);
	memset(huge, 'h', sizeof(huge) - 1);
	try_exec("none");
	try_exec("text");
	try_exec("lost");
	try_exec("round");
	try_exec("dir");
	try_exec("text/below");
	try_exec(longer);
	execv("/bin/true", big);
	tell("failed\t/bin/true\t%d", errno);
	put("still", 4);
}

/* The new image cannot be completed after the old one is gone: the kernel kills the process. */
static void doomed(long count)
{
	char *const args[] = {"doomed", NULL};
	pid_t pid;

	(void)count;
	put("alive", 6);
	pid = fork_said();
	if (pid == 0) {
		execv("./doomed", args);
		_exit(errno == ENOEXEC ? 81 : 82);
	}
	reap(pid, "doomed");
}

/* Children that fork and are gone at once, by exit or by a signal; their children work on. */
static void grandchildren(long count)
{
	CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0);
	for (long i = 0; i < count; i++) {
		pid_t pid = fork_said();
		if (pid > 0)
			continue;
		put("middle", 2);
		if (fork() == 0) {
			char name[32];
			snprintf(name, sizeof(name), "grand%ld", i);
			tell("made\t~%d", getpid());
			put(name, (size_t)i + 1);
			_exit(0);
		}
		if (i % 2)
			kill(getpid(), SIGKILL);
		_exit(0);
	}
	while (waitpid(-1, NULL, 0) > 0)
		;
}

static void *fork_and_tell(void *data)
{
	(void)data;
	for (;;) {
		pid_t pid = fork();
		if (pid == 0) {
			char name[32];
			snprintf(name, sizeof(name), "by%d", getpid());
			int fd = open(name, O_WRONLY | O_CREAT, 0644);
			if (fd < 0 || write(fd, name, 9) != 9)
				_exit(1);
			tell("~put\t%s\t9", name);
			_exit(0);
		}
	}
	return NULL;
}

/* Forking processes are killed in the middle of it: the tracer may never hear of the call that made a
 * child. */
static void killed_parents(long count)
{
	CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0);
	for (long i = 0; i < count; i++) {
		pid_t pid = fork();
		CHECK(pid >= 0);
		if (pid == 0) {
			pthread_t thread;
			CHECK(pthread_create(&thread, NULL, fork_and_tell, NULL) == 0);
			fork_and_tell(NULL);
		}
		struct timespec moment = {.tv_nsec = 1000000 + i * 370000 % 5000000};
		nanosleep(&moment, NULL);
		kill(pid, SIGKILL);
		while (waitpid(-1, NULL, 0) > 0)
			;
	}
	tell("killed\t%ld", count);
}

struct clone_arguments {
	uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid,
		set_tid_size;
};

static void *tell_and_exec(void *data)
{
	char *const image[] = {"true", NULL};

	*(volatile pid_t *)data = (pid_t)syscall(SYS_gettid);
	execv("/bin/true", image);
	return NULL;
}

/* Processes are killed in the moment in which a thread becomes the leader by exec, so that it is not seen;
 * then its former number comes again. */
static void killed_exec(long count)
{
	volatile pid_t *tid =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_t thread;

	CHECK(tid != MAP_FAILED);
	for (long i = 0; i < count; i++) {
		*tid = 0;
		pid_t pid = fork();
		CHECK(pid >= 0);
		if (pid == 0) {
			put("killed", 1);
			CHECK(pthread_create(&thread, NULL, tell_and_exec, (void *)tid) == 0);
			pause_ms(10000);
			_exit(1);
		}
		while (*tid == 0)
			;
		for (volatile long k = 0; k < i % 200 * 2000; k++)
			;
		kill(pid, SIGKILL);
		CHECK(waitpid(pid, NULL, 0) == pid);
		pid_t wanted[1] = {*tid};
		struct clone_arguments args = {
			.exit_signal = SIGCHLD, .set_tid = (uintptr_t)wanted, .set_tid_size = 1};
		pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
		if (pid < 0) {
			tell("refused\t%d", errno);
			return;
		}
		if (pid == 0) {
			put("again", 2);
			_exit(0);
		}
		tell("again\t~%d", pid);
		CHECK(waitpid(pid, NULL, 0) == pid);
	}
}

/* Leaves a process behind that has nothing of ours and works `count` ms later. */
static void behind(long count)
{
	pid_t pid = fork_said();

	if (pid > 0) {
		reap(pid, "middle");
		return;
	}
	CHECK(setsid() > 0);
	put("middle", 65);
	pid = fork_said();
	if (pid > 0)
		_exit(0);
	for (int fd = 0; fd < 64; fd++)
		close(fd);
	CHECK(open("/dev/null", O_RDWR) == 0 && dup2(0, 1) == 1 && dup2(0, 2) == 2);
	pause_ms(count);
	put("behind", 66);
	_exit(3);
}

static void ids(long count)
{
	(void)count;
	tell("uid\t%d %d", getuid(), geteuid());
	put("/dev/null", 1);
}

/* Execs its argument after the mark, as a login program would. */
static void exec_ids(long count)
{
	char *const args[] = {"setuid", "ids", NULL};

	(void)count;
	for (int i = 0; i < 2; i++) {
		pid_t pid = fork();
		CHECK(pid >= 0);
		if (pid == 0) {
			execv("./setuid", args);
			_exit(99);
		}
		reap(pid, "setuid");
	}
}

static const struct hostile_case cases[] = {
	{"among", among},
	{"after", after_exec},
	{"leader-gone", leader_gone},
	{"in-vfork", in_vfork},
	{"in-place", in_place},
	{"script", to_script},
	{"fails", fails},
	{"doomed", doomed},
	{"grandchildren", grandchildren},
	{"killed-parents", killed_parents},
	{"behind", behind},
	{"killed-exec", killed_exec},
	{"ids", ids},
	{"exec-ids", exec_ids},
};

int main(int argc, char **argv)
{
	return run_case(argc, argv, cases, sizeof(cases) / sizeof(*cases));
}
