/* What a program says of itself by DFTracer's annotations. They begin and end regions, which become events; whatever
 * the thread calls in between is inside them. */
#ifndef TRACER_HOOKS_ANNOTATE_H
#define TRACER_HOOKS_ANNOTATE_H

#include "symbols/hooks.h"
#include "tracer/arch/arch.h"
#include "tracer/hooks/regions.h"
#include "tracer/tracer.h"

#include <stdbool.h>
#include <stdint.h>

/* A thread stands at the entry of an annotation. */
void annotate(struct tracer *tracer, struct task *task, const struct hook_row *row,
	      const struct arch_regs *regs);

/* @return the innermost region of the thread that began before the event with this id, NULL: none. */
const struct region *annotations_around(const struct task *task, uint64_t id);

/* @return whether DFTracer's library records this program by itself, as its environment says; so said once. */
bool annotations_are_theirs(struct tracer *tracer, struct task *task);

/* The process is over, or executes another program: what is open ends here, cut. `end` is told what the program has
 * said of itself; its strings live as long as the process. */
void annotations_finish(struct tracer *tracer, struct process *process, struct trace_end *end,
			uint64_t now);

/* The thread is no more. Its regions may be ended by others. */
void annotations_thread_over(struct task *task);

/* Gives a forked process what its parent had begun. @return 0, or -1 with errno ENOMEM. */
int annotations_fork(const struct process *parent, struct process *child, uint64_t now);

void annotations_free(struct annotations *annotations);

#endif
