/* Capture by ptrace stops: copies what a call's row asks for out of the stopped program. */
#ifndef TRACER_CAPTURE_H
#define TRACER_CAPTURE_H

#include "tracer/arch/arch.h"
#include "tracer/tracer.h"

/* Fills the frame's call at its entry. */
void capture_entry(struct tracer *tracer, struct task *task, struct frame *frame,
		   const struct syscall_row *row, const struct arch_stop *stop, uint64_t now);

/* Adds the result and what the kernel has written for the program. */
void capture_exit(struct tracer *tracer, struct task *task, struct frame *frame, int64_t ret,
		  uint64_t now);

#endif
