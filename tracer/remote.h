/* System calls made in the traced program on our behalf. */
#ifndef TRACER_REMOTE_H
#define TRACER_REMOTE_H

#include "tracer/arch/arch.h"
#include "tracer/tracer.h"

/* Runs a system call in a stopped task: at an exec stop, a new task's first stop, or the exit of a call
 * (at a call's entry that call is not made, before a signal is delivered the signal is lost). Signals wait
 * meanwhile, the registers are as before afterwards; stops of other tasks stay in the kernel's queue.
 * @return 0 and the kernel's result (-errno) in `*result`; -1 with errno ESRCH (the task was killed),
 * ENOTSUP (no system call instruction was found) or of ptrace. */
int remote_syscall(struct tracer *tracer, struct task *task, uint64_t nr, const uint64_t args[6],
		   int64_t *result);

/* Runs code of ours in a task that stands at the exit of a call, from `ip`, with two arguments for it, until it makes a
 * call that the filter stops; that one is not made. Signals wait meanwhile, the registers are as before afterwards.
 * @return 0 and what they were at the stop in `*regs`; -1 as above. */
int remote_run(struct tracer *tracer, struct task *task, uint64_t ip, uint64_t first,
	       uint64_t second, struct arch_regs *regs);

/* A displacement of 32 bits reaches this far, less the size of a large program. */
#define REMOTE_REACH (1UL << 30)

bool remote_reaches(uint64_t a, uint64_t b);

/* Maps executable memory within reach of code that begins at `begin`, below it and the `others` bytes that were
 * mapped there before. @return its address, 0: there is none. */
uint64_t remote_map_near(struct tracer *tracer, struct task *task, uint64_t begin, uint64_t others,
			 uint64_t size);

#endif
