/* Calls that are never restarted, and signals that are ignored: natively the calls do not notice.
 * usage: ignored quiet|handled
 * With `handled` a signal with a handler comes behind the ignored ones: then the call ends with EINTR. */
#include "asleep.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/wait.h>

static pthread_t main_thread;
static volatile sig_atomic_t handled;

struct plan {
	int with_handler;
	void (*wake)(void);
};

static int ends[2];
static int sem;

static void on_signal(int sig)
{
	(void)sig;
	handled++;
}

static void wake_epoll(void)
{
	if (write(ends[1], "x", 1) != 1)
		perror("write");
}

static void wake_wait(void)
{
	pthread_kill(main_thread, SIGUSR2);
}

static void wake_semop(void)
{
	struct sembuf up = {0, 1, 0};
	if (semop(sem, &up, 1) < 0)
		perror("semop");
}

static void *disturb(void *arg)
{
	const struct plan *plan = arg;

	await_sleep(getpid());
	for (int i = 0; i < 4; i++) {
		usleep(20000);
		pthread_kill(main_thread,
			     i % 2 ? SIGWINCH : SIGHUP); /* by default, and by SIG_IGN */
	}
	usleep(20000);
	if (plan->with_handler) {
		pthread_kill(main_thread, SIGWINCH);
		pthread_kill(main_thread, SIGUSR1);
	}
	usleep(50000);
	plan->wake();
	return NULL;
}

static void report(const char *call, int result)
{
	printf("%s\t%d\t%d\thandled %d\n", call, result, result < 0 ? errno : 0, (int)handled);
}

int main(int argc, char **argv)
{
	struct plan plan = {.with_handler = argc > 1 && strcmp(argv[1], "handled") == 0};
	struct epoll_event event = {.events = EPOLLIN};
	struct sembuf down = {0, -1, 0};
	pthread_t thread;
	sigset_t set;

	main_thread = pthread_self();
	signal(SIGHUP, SIG_IGN);
	signal(SIGUSR1, on_signal);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	int poll = epoll_create1(0);
	sem = semget(IPC_PRIVATE, 1, 0600);
	if (pipe(ends) < 0 || poll < 0 || sem < 0 ||
	    epoll_ctl(poll, EPOLL_CTL_ADD, ends[0], &event) < 0)
		return 1;

	plan.wake = wake_epoll;
	pthread_create(&thread, NULL, disturb, &plan);
	report("epoll_wait", epoll_wait(poll, &event, 1, -1));
	pthread_join(thread, NULL);

	plan.wake = wake_wait;
	pthread_create(&thread, NULL, disturb, &plan);
	report("sigwaitinfo", sigwaitinfo(&set, NULL));
	pthread_join(thread, NULL);

	plan.wake = wake_semop;
	pthread_create(&thread, NULL, disturb, &plan);
	report("semop", semop(sem, &down, 1));
	pthread_join(thread, NULL);
	semctl(sem, 0, IPC_RMID);
	return 0;
}
