/* hostile_signals CASE: signals in every way that they come. */
#include "asleep.h"
#include "hostile.h"

#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>

#include <linux/futex.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>

static volatile sig_atomic_t caught;
static volatile int last_code, last_value;
static volatile pid_t last_sender;

static void note(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	caught++;
	last_code = info->si_code;
	last_value = info->si_value.sival_int;
	last_sender = info->si_pid;
}

static void on_signal(int signal, int flags)
{
	struct sigaction action = {.sa_sigaction = note, .sa_flags = SA_SIGINFO | flags};

	CHECK(sigaction(signal, &action, NULL) == 0);
}

static void ignore(int signal)
{
	struct sigaction action = {.sa_handler = SIG_IGN};

	CHECK(sigaction(signal, &action, NULL) == 0);
}

static void block(int how, int signal)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, signal);
	CHECK(sigprocmask(how, &set, NULL) == 0);
}

static const char *disposition(int signal)
{
	struct sigaction action;

	CHECK(sigaction(signal, NULL, &action) == 0);
	return action.sa_handler == SIG_IGN   ? "ignored"
	       : action.sa_handler == SIG_DFL ? "default"
					      : "caught";
}

/* A job in the background changes its terminal: it stops, and goes on when it is told to. */
static void ttou(long count)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY), slave, status;
	char *name;

	(void)count;
	CHECK(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
	name = ptsname(master);
	pid_t leader = fork();
	CHECK(leader >= 0);
	if (leader == 0) {
		int pipes[2];
		char byte;
		CHECK(setsid() > 0 && (slave = open(name, O_RDWR)) >= 0 && pipe(pipes) == 0);
		pid_t job = fork();
		CHECK(job >= 0);
		if (job == 0) {
			CHECK(setpgid(0, 0) == 0);
			/* Not ours yet, hence SIGTTOU. */
			int result = tcsetpgrp(slave, getpgrp());
			tell("job\t%d %d", result, tcgetpgrp(slave) == getpgrp());
			put("job", 12);
			/* Not before it has been seen to go on. */
			CHECK(read(pipes[0], &byte, 1) == 1);
			_exit(3);
		}
		CHECK(waitpid(job, &status, WUNTRACED) == job);
		tell("stopped\t%d %d", WIFSTOPPED(status), WSTOPSIG(status) == SIGTTOU);
		ignore(SIGTTOU);
		CHECK(tcsetpgrp(slave, job) == 0 && kill(job, SIGCONT) == 0);
		CHECK(waitpid(job, &status, WCONTINUED) == job);
		tell("continued\t%d", WIFCONTINUED(status));
		CHECK(write(pipes[1], "x", 1) == 1);
		reap(job, "job");
		_exit(0);
	}
	reap(leader, "leader");
}

/* A signal every millisecond while it writes. */
static void timer(long count)
{
	const struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
	static const char text[4096];
	int fd = open("data", O_RDWR | O_CREAT, 0644);

	on_signal(SIGALRM, SA_RESTART);
	CHECK(fd >= 0 && setitimer(ITIMER_REAL, &often, NULL) == 0);
	for (long i = 0; i < count; i++) {
		CHECK(pwrite(fd, text, (size_t)i + 1, i) == i + 1);
		if (i % 50 == 0)
			CHECK(fsync(fd) == 0);
	}
	while (caught < 20)
		;
	CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
	tell("pwrites\t%ld", count);
	tell("often\t%d", caught >= 20);
}

/* How long waits take that nobody ends, and until the pipe is written to. */
static long wait_ms = 300, pipe_ms = 300;

struct waiting {
	const char *name;
	int (*run)(void);
};

static int wait_nanosleep(void)
{
	struct timespec time = {wait_ms / 1000, wait_ms % 1000 * 1000000};

	return nanosleep(&time, NULL);
}

static int wait_poll(void)
{
	return poll(NULL, 0, (int)wait_ms);
}

static int wait_futex(void)
{
	static uint32_t word;
	struct timespec time = {wait_ms / 1000, wait_ms % 1000 * 1000000};

	return (int)syscall(SYS_futex, &word, FUTEX_WAIT, 0, &time, NULL, 0);
}

static int wait_epoll(void)
{
	struct epoll_event event;
	int fd = epoll_create1(EPOLL_CLOEXEC);
	int result = epoll_wait(fd, &event, 1, (int)wait_ms);
	int error = errno;

	close(fd);
	errno = error;
	return result;
}

static int wait_clock(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	time.tv_nsec += wait_ms % 1000 * 1000000;
	time.tv_sec += wait_ms / 1000 + time.tv_nsec / 1000000000;
	time.tv_nsec %= 1000000000;
	return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

static int wait_read(void)
{
	int pipes[2];
	char byte;

	CHECK(pipe(pipes) == 0);
	pid_t writer = fork();
	CHECK(writer >= 0);
	if (writer == 0) {
		pause_ms(pipe_ms);
		(void)!write(pipes[1], "x", 1);
		_exit(0);
	}
	int result = (int)read(pipes[0], &byte, 1), error = errno;
	kill(writer, SIGKILL);
	close(pipes[0]);
	close(pipes[1]);
	errno = error;
	return result;
}

static const struct waiting waits[] = {
	{"nanosleep", wait_nanosleep}, {"poll", wait_poll}, {"futex", wait_futex},
	{"clock", wait_clock},         {"read", wait_read}, {"epoll_wait", wait_epoll},
};

static void wait_child(const struct waiting *waiting)
{
	struct timespec begin, end;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	errno = 0;
	int result = waiting->run();
	int error = result < 0 ? errno : 0;
	clock_gettime(CLOCK_MONOTONIC, &end);
	long ms = (end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000;
	tell("%s\t%d %d %s", waiting->name, result, error,
	     ms >= (waiting->run == wait_read ? pipe_ms : wait_ms) - 5 ? "whole" : "cut");
	_exit(0);
}

/* Each blocking call with signals in it: 0 stop and continue, 1 a handler, 2 one with SA_RESTART, 3 one that
 * is ignored; 4 as 0, for a machine that is busy. */
static void restart(long way)
{
	const bool stops = way == 0 || way == 4;
	pid_t pids[sizeof(waits) / sizeof(*waits)];
	const int signal = way == 3 ? SIGUSR2 : SIGUSR1;
	/* The kernel wakes whoever is traced for an ignored signal, and a wait for events that has an
	 * end is not begun again. */
	size_t count = sizeof(waits) / sizeof(*waits) - (way == 3);

	/* Long, where the signal must come before the end. */
	if (way == 1 || way == 2)
		wait_ms = 20000;
	if (way == 1)
		pipe_ms = 20000;
	if (stops)
		wait_ms = way == 4 ? 2500 : 900;
	on_signal(SIGUSR1, way == 2 ? SA_RESTART : 0);
	ignore(SIGUSR2);
	for (size_t i = 0; i < count; i++) {
		pids[i] = fork();
		CHECK(pids[i] >= 0);
		if (pids[i] == 0)
			wait_child(&waits[i]);
	}
	for (size_t i = 0; i < count; i++)
		await_sleep(pids[i]);
	for (size_t i = 0; i < count; i++)
		CHECK(kill(pids[i], stops ? SIGSTOP : signal) == 0);
	pause_ms(20);
	for (size_t i = 0; stops && i < count; i++)
		CHECK(kill(pids[i], SIGCONT) == 0);
	for (size_t i = 0; i < count; i++)
		reap(pids[i], waits[i].name);
}

/* Values arrive, in order and all of them. */
static void queue(long count)
{
	block(SIG_BLOCK, SIGRTMIN);
	pid_t pid = fork_said();
	if (pid == 0) {
		long sum = 0, in_order = 1;
		for (long i = 0; i < count; i++) {
			siginfo_t info;
			sigset_t set;
			sigemptyset(&set);
			sigaddset(&set, SIGRTMIN);
			CHECK(sigwaitinfo(&set, &info) == SIGRTMIN);
			CHECK(info.si_code == SI_QUEUE && info.si_pid == getppid());
			in_order &= info.si_value.sival_int == i;
			sum += info.si_value.sival_int;
		}
		tell("sum\t%ld %ld", sum, in_order);
		on_signal(SIGRTMIN + 1, 0);
		CHECK(sigqueue(getpid(), SIGRTMIN + 1, (union sigval){.sival_int = 4711}) == 0);
		tell("own\t%d %d %d %d", (int)caught, last_code, last_value,
		     last_sender == getpid());
		on_signal(SIGUSR1, 0);
		CHECK(syscall(SYS_tgkill, getpid(), getpid(), SIGUSR1) == 0);
		tell("thread\t%d %d", (int)caught, last_code);
		_exit(0);
	}
	for (long i = 0; i < count; i++)
		CHECK(sigqueue(pid, SIGRTMIN, (union sigval){.sival_int = (int)i}) == 0);
	reap(pid, "receiver");
}

/* Signals keep coming while a process execs again and again; what is pending stays pending. */
static void at_exec(long count)
{
	char *const image[] = {"hostile_signals", "exec-image", "20", NULL};

	(void)count;
	ignore(SIGUSR1);
	block(SIG_BLOCK, SIGRTMIN);
	block(SIG_BLOCK, SIGUSR2);
	pid_t pid = fork_said();
	if (pid == 0) {
		execv("/proc/self/exe", image);
		_exit(99);
	}
	/* Alive from here to its last image, which waits for the end. */
	for (int i = 0; i < 100; i++) {
		CHECK(kill(pid, SIGUSR1) == 0 && kill(pid, SIGUSR2) == 0);
		CHECK(sigqueue(pid, SIGRTMIN, (union sigval){.sival_int = i}) == 0);
		pause_ms(1);
	}
	CHECK(sigqueue(pid, SIGRTMIN, (union sigval){.sival_int = -1}) == 0);
	reap(pid, "images");
}

static void exec_image(long count)
{
	char number[32];
	char *const image[] = {"hostile_signals", "exec-image", number, NULL};
	siginfo_t info;
	sigset_t set;
	int got = 0;

	snprintf(number, sizeof(number), "%ld", count - 1);
	CHECK(strcmp(disposition(SIGUSR1), "ignored") == 0);
	if (count > 0) {
		execv("/proc/self/exe", image);
		CHECK(!"reached");
	}
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	for (;;) {
		/* A tracer's program is woken by signals that it ignores. */
		int signal = sigwaitinfo(&set, &info);
		if (signal < 0 && errno == EINTR)
			continue;
		CHECK(signal == SIGRTMIN);
		if (info.si_value.sival_int < 0)
			break;
		CHECK(info.si_value.sival_int == got);
		got++;
	}
	sigpending(&set);
	tell("got\t%d %d %d", got, sigismember(&set, SIGUSR2), sigismember(&set, SIGUSR1));
	put("last", 13);
}

static void breakpoint(void)
{
	__asm__ volatile("int3");
}

/* SIGTRAP is the program's: from kill, and from its own breakpoints. */
static void trap(long count)
{
	sigset_t pending;

	(void)count;
	tell("at start\t%s", disposition(SIGTRAP));
	on_signal(SIGTRAP, 0);
	breakpoint();
	tell("int3\t%d %x", (int)caught, (unsigned)last_code);
	CHECK(raise(SIGTRAP) == 0);
	tell("raise\t%d %d", (int)caught, last_code);
	__asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq; nop; nop; pushfq; andq $~0x100, "
			 "(%%rsp); popfq" ::
				 : "memory", "cc");
	tell("steps\t%d %d", (int)caught, last_code);
	put("between", 14);
	block(SIG_BLOCK, SIGTRAP);
	CHECK(raise(SIGTRAP) == 0);
	CHECK(sigpending(&pending) == 0);
	tell("blocked\t%d %d", (int)caught, sigismember(&pending, SIGTRAP));
	block(SIG_UNBLOCK, SIGTRAP);
	tell("unblocked\t%d", (int)caught);
	ignore(SIGTRAP);
	CHECK(raise(SIGTRAP) == 0);
	tell("ignored\t%d", (int)caught);
	for (int i = 0; i < 3; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			if (i == 1)
				block(SIG_BLOCK, SIGTRAP);
			else if (i == 2)
				signal(SIGTRAP, SIG_DFL);
			breakpoint();
			_exit(1);
		}
		reap(pid, "int3");
	}
}

/* How SIGTRAP stands, inherited from whoever started us. */
static void trap_state(long count)
{
	sigset_t blocked;

	(void)count;
	CHECK(sigprocmask(SIG_BLOCK, NULL, &blocked) == 0);
	tell("trap\t%s %d", disposition(SIGTRAP), sigismember(&blocked, SIGTRAP));
	put("state", 15);
}

static volatile int reaped;

static void reap_in_handler(int signal)
{
	int error = errno;

	(void)signal;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		reaped++;
	errno = error;
}

/* Very many children end while their parent works. */
static void flood(long count)
{
	struct sigaction action = {.sa_handler = reap_in_handler, .sa_flags = SA_RESTART};
	int fd = open("data", O_RDWR | O_CREAT, 0644);

	CHECK(fd >= 0 && sigaction(SIGCHLD, &action, NULL) == 0);
	for (long i = 0; i < count; i++) {
		pid_t pid = fork();
		CHECK(pid >= 0);
		if (pid == 0)
			_exit(0);
		CHECK(pwrite(fd, "12345678", 8, i) == 8);
	}
	while (reaped < count)
		pause_ms(1);
	tell("reaped\t%d", reaped);
	tell("pwrites\t%ld", count);
}

static int all_inside(void *data)
{
	pid_t pids[5];
	int ready[2];
	char byte = 0;

	(void)data;
	CHECK(pipe(ready) == 0);
	on_signal(SIGTERM, 0);
	for (int i = 0; i < 5; i++) {
		pids[i] = fork();
		CHECK(pids[i] >= 0);
		if (pids[i] == 0) {
			if (i > 0)
				signal(SIGTERM, SIG_DFL);
			CHECK(write(ready[1], &byte, 1) == 1);
			if (i == 0) {
				while (!caught)
					pause_ms(1);
				put("caught", 16);
				_exit(8);
			}
			pause_ms(10000);
			_exit(9);
		}
	}
	for (int i = 0; i < 5; i++)
		CHECK(read(ready[0], &byte, 1) == 1);
	CHECK(kill(-1, SIGTERM) == 0);
	for (int i = 0; i < 5; i++)
		reap(pids[i], "all");
	tell("own\t%d", (int)caught);
	_exit(0);
}

/* Everybody in a pid namespace is signalled. */
static void kill_all(long count)
{
	static char stack[1 << 18] __attribute__((aligned(64)));
	pid_t pid = clone(all_inside, stack + sizeof(stack), (int)(CLONE_NEWPID | SIGCHLD), NULL);

	(void)count;
	CHECK(pid > 0);
	reap(pid, "namespace");
}

static void everybody(long number)
{
	pid_t pid = fork_said();

	if (pid == 0) {
		pause_ms(10000);
		_exit(9);
	}
	put("before", 17);
	signal((int)number, SIG_IGN);
	CHECK(kill(-1, (int)number) == 0);
	reap(pid, "other");
	put("behind", 18);
	tell("alive\tyes");
}

static void fault(int kind)
{
	static volatile int zero;
	char *gone;
	int fd;

	switch (kind) {
	case 0:
		*(volatile char *)(uintptr_t)(zero + 8) = 1;
		break;
	case 1:
		__asm__ volatile("ud2");
		break;
	case 2:
		__asm__ volatile("xorl %%ecx, %%ecx; movl $1, %%eax; cltd; idivl %%ecx" ::
					 : "eax", "ecx", "edx", "cc");
		break;
	case 3:
		__asm__ volatile("hlt");
		break;
	case 4:
		fd = open("short", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
		gone = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		CHECK(gone != MAP_FAILED);
		gone[0] = 1;
		break;
	default:
		breakpoint();
	}
}

/* Deaths that leave a core file or would: by a signal that was sent, by a fault, in a thread. */
static void *die_in_thread(void *data)
{
	(void)data;
	fault(0);
	return NULL;
}

static void cores(long limit)
{
	const int signals[] = {SIGQUIT, SIGILL,  SIGTRAP, SIGABRT, SIGBUS,
			       SIGFPE,  SIGSEGV, SIGXCPU, SIGXFSZ, SIGSYS};
	struct rlimit core;
	char name[32];

	CHECK(getrlimit(RLIMIT_CORE, &core) == 0);
	core.rlim_cur = limit ? core.rlim_max : 0;
	CHECK(setrlimit(RLIMIT_CORE, &core) == 0);
	for (size_t i = 0; i < 10 + 6 + 1; i++) {
		pid_t pid = fork();
		CHECK(pid >= 0);
		if (pid == 0) {
			pthread_t thread;
			if (i < 10)
				raise(signals[i]);
			else if (i < 16)
				fault((int)i - 10);
			else if (pthread_create(&thread, NULL, die_in_thread, NULL) == 0)
				pause();
			_exit(1);
		}
		snprintf(name, sizeof(name), "way %zu", i);
		reap(pid, name);
		(void)!unlink("core");
	}
}

static void kill_self(long number)
{
	struct rlimit none = {0, 0};

	CHECK(setrlimit(RLIMIT_CORE, &none) == 0);
	put("last", 19);
	signal((int)number, SIG_DFL);
	raise((int)number);
	tell("alive\tyes");
}

static void *make_dependent(void *data)
{
	int *pipes = data;
	pid_t pid = fork_said();

	if (pid == 0) {
		on_signal(SIGUSR1, 0);
		CHECK(prctl(PR_SET_PDEATHSIG, SIGUSR1, 0, 0, 0) == 0);
		CHECK(write(pipes[1], &(pid_t){getpid()}, sizeof(pid_t)) == sizeof(pid_t));
		for (int i = 0; i < 2000 && !caught; i++)
			pause_ms(1);
		put("orphan", 20);
		tell("death\t%d %d", (int)caught, last_code);
		_exit(0);
	}
	pid_t child;
	CHECK(read(pipes[0], &child, sizeof(child)) == sizeof(child));
	return NULL;
}

/* The signal comes when the thread ends that made the child; and when its process does. */
static void parent_death(long count)
{
	int pipes[2];
	pthread_t thread;

	(void)count;
	CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0);
	CHECK(pipe(pipes) == 0);
	CHECK(pthread_create(&thread, NULL, make_dependent, pipes) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(waitpid(-1, NULL, 0) > 0);
	pid_t middle = fork_said();
	if (middle == 0) {
		put("middle", 21);
		make_dependent(pipes);
		_exit(0);
	}
	while (waitpid(-1, NULL, 0) > 0)
		;
}

/* A stopped process whose group is orphaned gets SIGHUP and SIGCONT. */
static void orphans(long count)
{
	int pipes[2];
	char byte;

	(void)count;
	CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0 && pipe(pipes) == 0);
	pid_t middle = fork();
	CHECK(middle >= 0);
	if (middle == 0) {
		int status;
		CHECK(setsid() > 0);
		pid_t pid = fork();
		CHECK(pid >= 0);
		if (pid == 0) {
			CHECK(setpgid(0, 0) == 0);
			on_signal(SIGHUP, 0);
			raise(SIGSTOP);
			/* Continued; the hangup was sent first. */
			put("orphan", 22);
			tell("hangup\t%d", (int)caught);
			CHECK(write(pipes[1], "x", 1) == 1);
			_exit(0);
		}
		CHECK(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
		_exit(4);
	}
	reap(middle, "middle");
	CHECK(read(pipes[0], &byte, 1) == 1);
	while (waitpid(-1, NULL, 0) > 0)
		;
	tell("orphans\tdone");
}

static const struct hostile_case cases[] = {
	{"ttou", ttou},           {"timer", timer},
	{"restart", restart},     {"queue", queue},
	{"at-exec", at_exec},     {"exec-image", exec_image},
	{"trap", trap},           {"trap-state", trap_state},
	{"flood", flood},         {"kill-all", kill_all},
	{"everybody", everybody}, {"cores", cores},
	{"kill-self", kill_self}, {"parent-death", parent_death},
	{"orphans", orphans},
};

int main(int argc, char **argv)
{
	return run_case(argc, argv, cases, sizeof(cases) / sizeof(*cases));
}
