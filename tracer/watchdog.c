/* A task that was let go on cannot be in a ptrace stop without news of it. If one is, some stop was lost
 * on the way, and without this the program would hang. */
#include "base/proc.h"
#include "tracer/loop.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <sys/ptrace.h>
#include <sys/wait.h>

#define PERIOD   1000000000ULL /* between looks at the table */
#define PATIENCE 5000000000ULL /* a task that stands still for longer is looked at */

static bool has_news(pid_t tid)
{
	siginfo_t info = {0};

	return waitid(P_PID, (id_t)tid, &info, WSTOPPED | WEXITED | WNOHANG | WNOWAIT | __WALL) <
		       0 ||
	       info.si_pid != 0;
}

static void check(struct tracer *tracer, struct task *task)
{
	if (proc_state(task->tid) != 't' || has_news(task->tid))
		return;
	task->given_up = true;
	task->want_exit = false;
	task->stepping = false;
	while (task->nframes)
		task_pop(task);
	task->process->lost[LOST_DROPPED]++;
	tracer_warn(
		tracer,
		"thread %d stood still in a stop that was never reported: it goes on unrecorded",
		task->tid);
	loop_restart(tracer, task, 0);
}

void watchdog_tick(struct tracer *tracer, uint64_t now)
{
	struct map_slot *slot;
	size_t at = 0;

	if (now < tracer->next_watch)
		return;
	tracer->next_watch = now + PERIOD;
	if (!STAILQ_EMPTY(&tracer->queue))
		return;
	while ((slot = map_next(&tracer->tasks, &at))) {
		struct task *task = slot->value;
		if (task->state != TASK_RUNNING || now - task->restarted < PATIENCE ||
		    now - task->watched < PATIENCE)
			continue;
		task->watched = now;
		check(tracer, task);
	}
}
