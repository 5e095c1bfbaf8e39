/* Capture inside the program: calls that are made often at one place are recorded there, by an agent that the tracer
 * puts into the process, and taken from shared memory later. Each becomes a struct call, as one that has stopped.
 *
 * It comes lazily, and only where it is certain: a place that has stopped a few times gets a jump to a stub, a
 * thread that stopped there a ring. Whoever has none goes on as before, and stops. What a call must be seen
 * with (signals, forks, what is not known of a descriptor) stays with the stops.
 *
 *	window.h, stub.h	what may be displaced, and what lies there instead: pure
 *	agent/			the code that runs in the program, and the ring's layout
 *	space.c			a process's agent and rings: made, given, copied, switched off
 *	patch.c			the jumps
 *	drain.c			records become calls
 *	hooked.c		function hooks that are recorded (their stubs: tracer/hooks/inside.c)
 *	native.c		a thread is made to look as without us before a signal is delivered
 *	cost.c			what of a recorded time is the filter's
 *	census.c		what has come of it
 *	recorder.c		all of it, as the loop sees it */
#ifndef TRACER_RECORDER_RECORDER_H
#define TRACER_RECORDER_RECORDER_H

#include "tracer/task.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arch_stop;
struct objects;
struct recorder;
struct recorder_space;
struct syscall_row;
struct clock;
struct observer;
struct selection;
struct tracer;
struct trace;

struct recorder_options {
	bool wanted;
	unsigned hits; /* at one place before it is patched */
	/* Programs that are to stop only; may be NULL. */
	bool (*excludes)(const void *data, const char *comm);
	const void *excludes_data;
};

/* @return NULL when the machine can record calls so, else why not. */
const char *recorder_obstacle(void);

/* Tries in this process what a program's memory has to allow. @return as above; `*threads` is whether code that several
 * threads run can be changed, too. */
const char *recorder_trial(bool *threads);

/* Where the one system call instruction ends from which the filter lets calls pass. */
uint64_t recorder_allowed_ip(void);

/* @param objects  borrowed. @return NULL with errno ENOMEM. */
struct recorder *recorder_new(const struct recorder_options *options,
			      const struct selection *selection, const struct clock *clock,
			      struct objects *objects);
void recorder_free(struct recorder *recorder);
struct observer *recorder_observer(struct recorder *recorder);

/* All functions below, but the last, do nothing where the tracer has no recorder. */

/* A task has stopped or died: what its process has recorded comes first. */
void recorder_stop(struct tracer *tracer, const struct task *task);

/* Takes what all processes have recorded. */
void recorder_tick(struct tracer *tracer);

/* A call that has stopped at its entry. Where it comes from a stub, `ip` becomes the program's own. */
void recorder_call_enters(struct tracer *tracer, const struct task *task, uint64_t *ip);

/* … and may give its process another thread, move code, or have calls answered by where they come from. @return true: the task was taken back to in front of it,
 * because there was something to do by calls of its own. */
bool recorder_prepares(struct tracer *tracer, struct task *task, const struct syscall_row *row,
		       const struct arch_stop *stop);

/* … and has been decoded so far. @return whether its end has to stop. */
bool recorder_call_begins(struct tracer *tracer, struct task *task, const struct frame *frame);

/* … and has ended; `ip` as recorder_call_enters left it. */
void recorder_call_ended(struct tracer *tracer, struct task *task, const struct call *call);

/* A signal is about to be delivered: the task is made native. @return true to swallow it: it was ours. */
bool recorder_signal(struct tracer *tracer, struct task *task, const siginfo_t *info);

/* A handler returns; `sp` is the stack pointer at rt_sigreturn. */
void recorder_sigreturn(struct tracer *tracer, struct task *task, uint64_t sp);

/* A task is at its end, or leaves its address space by exec. */
void recorder_task_over(struct tracer *tracer, struct task *task);

/* @return whether hooked functions of the program may be recorded inside it. */
bool recorder_takes_hooks(struct tracer *tracer, struct task *task);

/* A hooked call has stopped in its stub, and been dealt with: the thread may get a ring. At a stop at which the
 * program's signal is swallowed. */
void recorder_hook_stopped(struct tracer *tracer, struct task *task);

/* A stream's call has been seen to be about the descriptor: the agent need not ask again. */
void recorder_note_descriptor(struct tracer *tracer, struct task *task, int fd, uint64_t time);

/* @return whether a hooked call with this stack pointer and return address ends in what is still to be taken. */
bool recorder_ends_call(const struct task *task, uint64_t sp, uint64_t return_address);

/* For a forked address space: the code is there, the rings are not. @return NULL: nothing to copy, or with errno
 * ENOMEM. */
struct recorder_space *recorder_space_copy(const struct recorder_space *space);
void recorder_space_free(struct recorder_space *space);

/* An image of a process is over: writes what has come of it as metadata, `recorder`. */
void recorder_ended(struct tracer *tracer, struct process *process);

/* What has come of it in all processes. */
void recorder_report(const struct tracer *tracer, struct buf *out);

#endif
