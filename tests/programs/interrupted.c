/* interrupted MODE: a signal handler comes while read(2) waits on a FIFO.
 *	eintr    the call fails with EINTR
 *	restart  SA_RESTART: the kernel makes it again, and it completes
 *	jump     the handler leaves by siglongjmp, so that the call never returns
 *	nested   the handler makes a call of its own, then the first one completes
 *	exit     the handler ends the program
 *	die      no handler: the signal kills */
#include "say.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <sys/stat.h>
#include <sys/wait.h>

static sigjmp_buf back;
static const char *mode;
static volatile sig_atomic_t handled;

static void handler(int signal)
{
	(void)signal;
	handled++;
	if (strcmp(mode, "nested") == 0)
		(void)!access("in-handler", F_OK);
	if (strcmp(mode, "jump") == 0)
		siglongjmp(back, 1);
	if (strcmp(mode, "exit") == 0)
		_exit(7);
}

/* Whether a process sleeps in a call, which /proc says. */
static bool sleeps(pid_t pid)
{
	char name[64], text[512] = "";
	FILE *file;
	char *at;

	snprintf(name, sizeof(name), "/proc/%d/stat", pid);
	file = fopen(name, "r");
	CHECK(file);
	CHECK(fgets(text, sizeof(text), file));
	fclose(file);
	at = strrchr(text, ')');
	return at && at[2] == 'S';
}

static void helper(pid_t parent, int fd)
{
	struct timespec moment = {.tv_nsec = 20000000};
	int quiet = 0;

	/* Asleep several times in a row: in the read, not in a stop that passes. */
	while (quiet < 10) {
		nanosleep(&moment, NULL);
		quiet = sleeps(parent) ? quiet + 1 : 0;
	}
	kill(parent, SIGUSR1);
	if (strcmp(mode, "restart") == 0 || strcmp(mode, "nested") == 0) {
		struct timespec longer = {.tv_nsec = 300000000};

		nanosleep(&longer, NULL);
		CHECK(write(fd, "after", 5) == 5);
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = handler};
	char text[16];
	pid_t parent = getpid(), child;
	volatile ssize_t n = -2;
	int fd;

	CHECK(argc == 2);
	mode = argv[1];
	if (strcmp(mode, "restart") == 0 || strcmp(mode, "nested") == 0)
		action.sa_flags = SA_RESTART;
	if (strcmp(mode, "die") != 0)
		CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
	CHECK(mkfifo("fifo", 0600) == 0);
	fd = open("fifo", O_RDWR);
	CHECK(fd >= 0);
	child = fork();
	CHECK(child >= 0);
	if (child == 0)
		helper(parent, fd);
	if (sigsetjmp(back, 1) == 0)
		n = read(fd, text, sizeof(text));
	printf("read\t%zd\nerrno\t%d\nhandled\t%d\n", n, n == -1 ? errno : 0, (int)handled);
	(void)!access("behind", F_OK);
	CHECK(waitpid(child, NULL, 0) == child);
	return 0;
}
