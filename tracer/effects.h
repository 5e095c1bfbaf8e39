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

/* @return whether a call of EFFECT_OWN_FILTER asks for calls of the program to be answered without the kernel, by a filter of
 * its own or by a signal to itself: those may never stop. A signal comes before any stop, a filter before that of our
 * filter. */
bool effects_own_filter(const struct tracer *tracer, uint64_t nr, const uint64_t args[6]);

/* The flags of a call that makes a process or thread: CLONE_*, with the exit signal. */
uint64_t effects_clone_flags(const struct call *call);

#endif
