#include "tracer/loop.h"

#include "tracer/place.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sys/ptrace.h>
#include <sys/wait.h>

/* Until the main program has exec'ed, and while tasks are held; else. */
#define TICK_SOON 5000000
#define TICK_IDLE 100000000
/* While programs record calls themselves: how late they are seen at most. */
#define TICK_RECORDER 20000000

enum stop_kind loop_classify(const struct status *status)
{
	int sig = status->value & 0xff;
	int event = status->value >> 8;

	if (status->code != CLD_TRAPPED && status->code != CLD_STOPPED)
		return STOP_DEAD;
	if (sig == (SIGTRAP | 0x80))
		return STOP_SYSCALL;
	switch (event) {
	case 0:
		return STOP_SIGNAL;
	case PTRACE_EVENT_SECCOMP:
		return STOP_SECCOMP;
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
	case PTRACE_EVENT_CLONE:
		return STOP_NEW_CHILD;
	case PTRACE_EVENT_EXEC:
		return STOP_EXEC;
	case PTRACE_EVENT_EXIT:
		return STOP_EXIT;
	case PTRACE_EVENT_STOP:
		return sig == SIGTRAP ? STOP_EVENT : STOP_GROUP;
	default:
		return STOP_OTHER;
	}
}

void loop_restart(struct tracer *tracer, struct task *task, int sig)
{
	/* The request follows from the stop that is wanted next, never from the one that was. */
	int request = PTRACE_CONT;

	if (task->stepping)
		request = PTRACE_SINGLESTEP;
	else if (task->want_exit || !tracer->filter)
		request = PTRACE_SYSCALL;
	task->state = TASK_RUNNING;
	task->restarted = tracer->now;
	/* ESRCH: it was killed in this stop, and its end will be reported like any other. */
	ptrace(request, task->tid, NULL, (uintptr_t)(unsigned)sig);
}

static int push(struct tracer *tracer, const siginfo_t *info)
{
	struct status *status = STAILQ_FIRST(&tracer->spare);

	if (status) {
		STAILQ_REMOVE_HEAD(&tracer->spare, link);
	} else {
		status = malloc(sizeof(*status));
		if (!status)
			return -1;
	}
	status->tid = info->si_pid;
	status->code = info->si_code;
	status->value = info->si_status;
	status->time = clock_now(&tracer->clock);
	STAILQ_INSERT_TAIL(&tracer->queue, status, link);
	return 0;
}

enum wait_result { WAIT_STATUS, WAIT_TICK, WAIT_NOTHING_LEFT, WAIT_FAILED };

/* Waits until some task has news, without taking it. @return as waitid. */
static int wait_for_news(struct tracer *tracer, siginfo_t *info)
{
	const int what = WSTOPPED | WEXITED | WNOWAIT | __WALL;
	uint64_t spin = place_spin_ns(tracer->place);

	if (spin) {
		uint64_t until = clock_now(&tracer->clock) + spin;
		do {
			if (waitid(P_ALL, 0, info, what | WNOHANG) < 0 || info->si_pid)
				return info->si_pid ? 0 : -1;
		} while (clock_now(&tracer->clock) < until);
	}
	return waitid(P_ALL, 0, info, what);
}

/* Takes one stop if there is one. @return 1, 0, or -1 when out of memory. */
static int take_stop(struct tracer *tracer)
{
	siginfo_t info;

	info.si_pid = 0;
	if (waitid(P_ALL, 0, &info, WSTOPPED | WNOHANG | __WALL) < 0 || info.si_pid == 0)
		return 0;
	return push(tracer, &info) < 0 ? -1 : 1;
}

/* Queues all stops that are to be had, and one death. Taking them all before any is answered keeps busy
 * tasks from starving the others. The dead stay unreaped until they have been dealt with. */
static int drain(struct tracer *tracer)
{
	siginfo_t info;
	int taken;

	do
		taken = take_stop(tracer);
	while (taken > 0);
	if (taken < 0)
		return -1;
	info.si_pid = 0;
	if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 && info.si_pid)
		return push(tracer, &info);
	return 0;
}

static enum wait_result wait_more(struct tracer *tracer)
{
	siginfo_t info = {0};
	/* Mostly the next stop is there already, on the CPU that the program has just left to us. */
	int taken = take_stop(tracer);

	if (taken == 0) {
		if (wait_for_news(tracer, &info) < 0) {
			if (errno == EINTR)
				return WAIT_TICK;
			return errno == ECHILD ? WAIT_NOTHING_LEFT : WAIT_FAILED;
		}
		taken = take_stop(tracer);
	}
	/* A single task cannot starve anybody: its stop is dealt with without asking for more. */
	if (taken < 0 || ((taken == 0 || tracer->tasks.count > 1) && drain(tracer) < 0))
		return WAIT_FAILED;
	return WAIT_STATUS;
}

static void dispatch(struct tracer *tracer, const struct status *status)
{
	enum stop_kind kind = loop_classify(status);

	tracer->stops++;
	tracer->now = status->time;
	if (tracer->debug)
		debug_stop(tracer, status, kind);
	struct task *task = map_get(&tracer->tasks, (uint64_t)status->tid);
	if (task)
		recorder_stop(tracer, task);
	if (kind == STOP_DEAD) {
		tree_dead(tracer, status);
		return;
	}
	if ((!task || task->state == TASK_NEW) && kind != STOP_EXEC) {
		if (tree_first_stop(tracer, status->tid, status))
			return;
		task = map_get(&tracer->tasks, (uint64_t)status->tid);
	}
	if (!task)
		return;
	task->state = TASK_STOPPED;
	place_stop(tracer->place, task->tid, status->time);
	hooks_tick(tracer, task);
	switch (kind) {
	case STOP_SECCOMP:
	case STOP_SYSCALL:
		calls_stop(tracer, task, status, kind);
		break;
	case STOP_SIGNAL:
		signals_stop(tracer, task, status);
		break;
	case STOP_GROUP:
		signals_group_stop(tracer, task, status->value & 0xff);
		break;
	case STOP_NEW_CHILD:
		tree_new_child(tracer, task, status);
		break;
	case STOP_EXEC:
		tree_exec(tracer, task, status);
		break;
	case STOP_EXIT:
		tree_exit_stop(tracer, task, status);
		break;
	default:
		loop_restart(tracer, task, 0);
	}
}

static long idle_tick(const struct tracer *tracer)
{
	return tracer->recorder ? TICK_RECORDER : TICK_IDLE;
}

static void tick(struct tracer *tracer, uint64_t now)
{
	recorder_tick(tracer);
	writer_tick(tracer->writer);
	if (tracer->held)
		tree_adopt(tracer, now);
	if (tracer->leaving)
		tree_leave(tracer, now);
	watchdog_tick(tracer, now);
	if (tracer->before_exec && !tracer->main_execed)
		tracer->before_exec(tracer, tracer->before_exec_data);
	if (tracer->each_tick)
		tracer->each_tick(tracer, now, tracer->parent_data);
	bool soon = tracer->held || tracer->leaving || !tracer->main_execed;
	tracer->next_tick = now + (soon ? TICK_SOON : idle_tick(tracer));
}

/* A periodic signal ends the wait: were it sent once, it could come just before the wait begins. */
static int start_timer(const struct tracer *tracer, timer_t *timer)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
	struct itimerspec period = {.it_interval.tv_nsec = idle_tick(tracer) / 2,
				    .it_value.tv_nsec = TICK_SOON};

	if (timer_create(CLOCK_MONOTONIC, &event, timer) < 0)
		return -1;
	return timer_settime(*timer, 0, &period, NULL);
}

static void wake(int sig)
{
	(void)sig;
}

int tracer_run(struct tracer *tracer)
{
	struct sigaction action = {.sa_handler = wake};
	enum wait_result result = WAIT_STATUS;
	timer_t timer;

	if (sigaction(SIGALRM, &action, NULL) < 0 || start_timer(tracer, &timer) < 0)
		return -1;
	while (result != WAIT_NOTHING_LEFT && result != WAIT_FAILED) {
		struct status *status = STAILQ_FIRST(&tracer->queue);
		if (!status) {
			result = wait_more(tracer);
			status = STAILQ_FIRST(&tracer->queue);
		}
		uint64_t now = status ? status->time : clock_now(&tracer->clock);
		if (now >= tracer->next_tick)
			tick(tracer, now);
		if (!status)
			continue;
		STAILQ_REMOVE_HEAD(&tracer->queue, link);
		dispatch(tracer, status);
		STAILQ_INSERT_HEAD(&tracer->spare, status, link);
	}
	int saved = errno;
	/* With what outlived the program. */
	if (tracer->options->summary_file)
		report_summary(tracer);
	timer_delete(timer);
	errno = saved;
	return result == WAIT_NOTHING_LEFT ? 0 : -1;
}
