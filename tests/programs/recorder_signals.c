/* recorder_signals WHAT ROUNDS: signals among calls that are made often. Prints how many calls of each name there
 * were on the file `data`, and on the pipe. */
#include "say.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>

static int data;
static int ends[2];
static volatile long handled;
static volatile long read_in_handler;
static sigjmp_buf back;

static void on_alarm(int sig)
{
	int error = errno;
	char byte;

	(void)sig;
	handled++;
	if (pread(data, &byte, 1, 1) == 1 && byte == 'e')
		read_in_handler++;
	errno = error;
}

static void on_jump(int sig)
{
	(void)sig;
	handled++;
	siglongjmp(back, 1);
}

static void on_nothing(int sig)
{
	(void)sig;
	handled++;
}

static void handle(void (*handler)(int), int flags)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags};

	CHECK(sigaction(SIGALRM, &action, NULL) == 0);
}

static void start_timer(long us)
{
	struct itimerval each = {{0, us}, {0, us}};

	CHECK(setitimer(ITIMER_REAL, &each, NULL) == 0);
}

/* Calls under a fast timer whose handler reads as well. */
static void storm(long rounds)
{
	char bytes[4];
	long reads = 0;
	long writes = 0;
	long opens = 0;

	handle(on_alarm, SA_RESTART);
	start_timer(1000);
	for (long i = 0; i < rounds; i++) {
		CHECK(pread(data, bytes, 3, 1) == 3 && memcmp(bytes, "ell", 3) == 0);
		reads++;
		CHECK(pwrite(data, "hello", 5, 0) == 5);
		writes++;
		if (i % 10 == 0) {
			int fd = open("data", O_RDONLY);
			CHECK(fd >= 0 && close(fd) == 0);
			opens++;
		}
	}
	start_timer(0);
	CHECK(read_in_handler == handled);
	printf("pread\t%ld\npwrite\t%ld\nopen\t%ld\n", reads + read_in_handler, writes, opens);
}

static void *feed(void *rounds)
{
	for (long i = 0; i < (long)rounds; i++) {
		usleep(3000);
		CHECK(write(ends[1], "z", 1) == 1);
	}
	return NULL;
}

/* Reads that wait, and are made again by the kernel after the handler. */
static void restarted(long rounds)
{
	pthread_t thread;
	char byte;
	sigset_t set;

	handle(on_alarm, SA_RESTART);
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	CHECK(pthread_create(&thread, NULL, feed, (void *)rounds) == 0);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	start_timer(1000);
	for (long i = 0; i < rounds; i++)
		CHECK(read(ends[0], &byte, 1) == 1 && byte == 'z');
	start_timer(0);
	pthread_join(thread, NULL);
	printf("read\t%ld\npread\t%ld\n", rounds, read_in_handler);
}

/* … and are not. */
static void interrupted(long rounds)
{
	char byte;

	handle(on_nothing, 0);
	start_timer(1000);
	for (long i = 0; i < rounds; i++)
		CHECK(read(ends[0], &byte, 1) == -1 && errno == EINTR);
	start_timer(0);
	printf("read\t%ld\n", rounds);
}

/* … or left by a jump. */
static void jumped(volatile long rounds)
{
	volatile long reads = 0;
	char bytes[4];

	handle(on_jump, 0);
	for (volatile long i = 0; i < rounds; i++) {
		if (sigsetjmp(back, 1) == 0) {
			/* Not before there is a place to jump to. */
			if (i == 0)
				start_timer(1000);
			for (;;)
				reads += read(ends[0], bytes, 1) >= 0;
		}
	}
	start_timer(0);
	CHECK(reads == 0);
	handle(SIG_IGN, 0);
	for (long i = 0; i < 100; i++)
		CHECK(pread(data, bytes, 3, 1) == 3 && memcmp(bytes, "ell", 3) == 0);
	printf("cut\t%ld\npread\t100\n", handled);
}

static volatile int cleaned;

static void clean(void *unused)
{
	(void)unused;
	cleaned++;
}

static void *wait_for_end(void *unused)
{
	char byte;

	(void)unused;
	pthread_cleanup_push(clean, NULL);
	for (;;)
		CHECK(read(ends[0], &byte, 1) == 1);
	pthread_cleanup_pop(0);
	return NULL;
}

/* Threads that are ended where they wait, and where they do not. */
static void cancelled(long rounds)
{
	pthread_t thread;
	void *result;

	for (long i = 0; i < rounds; i++) {
		for (int k = 0; k < 40 && i % 2; k++)
			CHECK(write(ends[1], "x", 1) == 1);
		CHECK(pthread_create(&thread, NULL, wait_for_end, NULL) == 0);
		if (i % 3)
			usleep(2000);
		CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0);
		CHECK(result == PTHREAD_CANCELED);
	}
	printf("cleaned\t%d\n", cleaned);
}

/* Stopped and let go on while it waits and while it works. */
static void stopped(long rounds)
{
	pid_t parent = getpid();
	char byte;

	if (fork() == 0) {
		for (long i = 0; i < rounds; i++) {
			usleep(1500);
			kill(parent, SIGSTOP);
			usleep(500);
			kill(parent, SIGCONT);
			CHECK(write(ends[1], "s", 1) == 1);
		}
		_exit(0);
	}
	long reads = 0;
	for (long i = 0; i < rounds; i++) {
		CHECK(read(ends[0], &byte, 1) == 1);
		for (int k = 0; k < 200; k++, reads++)
			CHECK(pread(data, &byte, 1, 1) == 1 && byte == 'e');
	}
	printf("read\t%ld\npread\t%ld\n", rounds, reads);
}

static _Atomic long *progress;

/* Two threads, each of which comes to a place that is new to it. */
static void *go_on(void *unused)
{
	(void)unused;
	for (;;) {
		CHECK(lseek(data, 0, SEEK_CUR) >= 0);
		++*progress;
	}
	return NULL;
}

static void run_on(void)
{
	pthread_t thread;
	char byte;

	CHECK(write(ends[1], "s", 1) == 1);
	CHECK(pthread_create(&thread, NULL, go_on, NULL) == 0);
	for (;;) {
		CHECK(pread(data, &byte, 1, 1) == 1 && byte == 'e');
		++*progress;
	}
}

/* Processes that are stopped when they have just begun: they do stop, stay so, and go on. */
static void stopped_early(long rounds)
{
	int status;
	char byte;

	progress = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(progress != MAP_FAILED);
	for (long i = 0; i < rounds; i++) {
		pid_t child = fork();
		if (child == 0)
			run_on();
		CHECK(child > 0 && read(ends[0], &byte, 1) == 1);
		usleep((useconds_t)(i * 37 % 2000));
		kill(child, SIGSTOP);
		CHECK(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
		long before = *progress;
		usleep(2000);
		CHECK(*progress == before);
		kill(child, SIGCONT);
		while (*progress == before)
			usleep(100);
		kill(child, SIGKILL);
		CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
	}
	printf("stopped\t%ld\n", rounds);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(long rounds);
	} runs[] = {{"storm", storm},        {"restarted", restarted}, {"interrupted", interrupted},
		    {"jumped", jumped},      {"cancelled", cancelled}, {"stopped", stopped},
		    {"early", stopped_early}};

	CHECK(argc == 3);
	data = open("data", O_RDWR | O_CREAT | O_TRUNC, 0600);
	CHECK(data >= 0 && write(data, "hello", 5) == 5 && pipe(ends) == 0);
	for (size_t i = 0; i < sizeof(runs) / sizeof(*runs); i++) {
		if (strcmp(argv[1], runs[i].name) == 0)
			runs[i].run(atol(argv[2]));
	}
	printf("handled\t%ld\n", handled);
	return 0;
}
