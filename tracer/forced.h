/* Signals that the kernel forces on a thread for what its own instruction has done: a breakpoint, a fault. Where the
 * program blocks or ignores such a signal, the kernel unblocks it and makes its action the default. For those that
 * are the tracer's doing that is undone, by what is followed of masks and actions here. */
#ifndef TRACER_FORCED_H
#define TRACER_FORCED_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct call;
struct process;
struct task;
struct tracer;

/* The kernel's struct sigaction, and how many signals are followed: SIGTRAP, SIGSEGV, SIGBUS. */
#define FORCED_ACTION_SIZE 32
#define FORCED_SIGNALS     3

struct forced_action {
	bool set; /* it is not the default */
	unsigned char bytes[FORCED_ACTION_SIZE];
};

/* What a program starts with: exec keeps what is blocked and what is ignored. */
void forced_begin(struct task *task);

/* Entries of rt_sigprocmask and rt_sigaction. */
void forced_sigmask(struct task *task, const struct call *call);
void forced_sigaction(struct process *process, const struct call *call);

/* A handler returns; `sp` is the stack pointer at rt_sigreturn. What the handler has done to the mask ends there. */
void forced_sigreturn(struct tracer *tracer, struct task *task, uint64_t sp);

/* A signal that is the program's own is about to be delivered: with its handler begins another mask, and some are taken
 * away then. */
void forced_delivered(struct task *task, int sig);

/* @return whether the task has blocked the signal. */
bool forced_is_blocked(const struct task *task, int sig);

/* Undoes what the kernel has done to the program for a signal of ours, which the task stands at. One of the program's
 * own that was pending comes in its stead, since the kernel keeps one of a kind: it goes back to where it was.
 * @param scratch  finds FORCED_ACTION_SIZE bytes of the program's memory and fills them; @return where, 0: nowhere. */
void forced_restore(struct tracer *tracer, struct task *task, const siginfo_t *info,
		    uint64_t (*scratch)(struct tracer *tracer, struct task *task, const void *bytes,
					size_t len));

#endif
