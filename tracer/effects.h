/* What calls do to the state of the traced program. */
#ifndef TRACER_EFFECTS_H
#define TRACER_EFFECTS_H

#include "tracer/tracer.h"

/* What changes already at the call's start. */
void effects_begin(struct tracer *tracer, struct task *task, struct frame *frame);

/* @return whether the state depends on the call's result. */
bool effects_need_exit(const struct frame *frame);

/* What changes when the call has ended. */
void effects_end(struct tracer *tracer, struct task *task, struct frame *frame);

/* The flags of a call that makes a process or thread: CLONE_*, with the exit signal. */
uint64_t effects_clone_flags(const struct call *call);

#endif
