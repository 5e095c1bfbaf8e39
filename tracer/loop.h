/* What the parts of the loop know of each other: wait → classify → dispatch → restart.
 *
 * The order of a traced call's stops (Linux 4.8 and later), with the filter:
 *
 *	seccomp stop ──PTRACE_SYSCALL──► [fork, exec event] ──► exit stop ──PTRACE_CONT──►
 *
 * and without it PTRACE_SYSCALL throughout: entry stop ► exit stop ► entry stop … A signal that interrupts the
 * call comes after its exit stop. */
#ifndef TRACER_LOOP_H
#define TRACER_LOOP_H

#include "tracer/tracer.h"

enum stop_kind {
	STOP_SECCOMP,   /* entry of a call that the filter wants */
	STOP_SYSCALL,   /* entry or exit */
	STOP_NEW_CHILD, /* a task has made another */
	STOP_EXEC,
	STOP_EXIT,  /* a task at its end, its state still to be looked at */
	STOP_EVENT, /* a new task's first stop; the end of a group-stop; PTRACE_INTERRUPT */
	STOP_GROUP,
	STOP_SIGNAL, /* about to be delivered */
	STOP_OTHER,
	STOP_DEAD, /* a zombie, not yet reaped */
};

enum stop_kind loop_classify(const struct status *status);

/* Lets a stopped task go on, delivering `sig` (0: none). */
void loop_restart(struct tracer *tracer, struct task *task, int sig);

/* calls.c: system calls. */
void calls_stop(struct tracer *tracer, struct task *task, const struct status *status,
		enum stop_kind kind);

/* signals.c: signals, handlers, interrupted calls. */
void signals_stop(struct tracer *tracer, struct task *task, const struct status *status);
void signals_group_stop(struct tracer *tracer, struct task *task, int sig);

/* Settles what a new call at (ip, sp) says of the task's interrupted calls: those that it can't come
 * from are over. @return whether it is the restart of the innermost one. */
bool signals_settle(struct tracer *tracer, struct task *task, uint64_t nr, uint64_t ip, uint64_t sp,
		    uint64_t now);

/* A handler returns (rt_sigreturn with this stack pointer). */
void signals_handler_returns(struct tracer *tracer, struct task *task, uint64_t sp, uint64_t now);

/* ignored.c: a signal that the program ignores is about to be delivered, or another one after it: the
 * call that it woke goes on as if it had not come. */
void ignored_before_delivery(struct tracer *tracer, struct task *task, int sig);

/* tree.c: tasks come and go. */
void tree_new_child(struct tracer *tracer, struct task *parent, const struct status *status);

/* A stop of a task that is not known, or not started: @return whether it was dealt with. */
bool tree_first_stop(struct tracer *tracer, pid_t tid, const struct status *status);
void tree_exec(struct tracer *tracer, struct task *task, const struct status *status);
void tree_exit_stop(struct tracer *tracer, struct task *task, const struct status *status);
void tree_dead(struct tracer *tracer, const struct status *status);

/* Lets ranks go whose end was held back for the others' sake. */
void tree_leave(struct tracer *tracer, uint64_t now);

/* Starts tasks that have been held for long: their parent died before its event could be told. */
void tree_adopt(struct tracer *tracer, uint64_t now);

/* Gives the task of a process that has just been seized its objects. @return 0, or -1 with ENOMEM. */
int tree_seized(struct tracer *tracer, pid_t pid);

/* watchdog.c: finds tasks that stand still though they were let go on. */
void watchdog_tick(struct tracer *tracer, uint64_t now);

/* report.c: the exit line; only once. */
void report_exit(struct tracer *tracer, uint64_t now);

/* report.c: the summary, if one is wanted and has changed since. */
void report_summary(struct tracer *tracer);

/* debug.c: a line of --debug. */
void debug_stop(struct tracer *tracer, const struct status *status, enum stop_kind kind);

#endif
