/* The parent form: what a tracer between a launcher and its program has to pass on. */
#ifndef LAUNCHERS_PARENT_H
#define LAUNCHERS_PARENT_H

#include "launchers/handoff.h"
#include "tracer/tracer.h"

#include <signal.h>
#include <stdint.h>

/* A signal sent to the tracer, until it is known whether the program got it too. */
struct parent_signal {
	siginfo_t info; /* si_signo 0: none */
	uint64_t since;
};

struct parent {
	struct tracer *tracer;
	struct parent_signal held[32];
	struct {
		pid_t sender;
		uint64_t time;
	} seen[32];           /* by the program, by signal */
	uint64_t stop_signal; /* when we last got one that stops, 0: never */
	uint64_t stopped;     /* when the program last stopped */
};

/* Makes the tracer pass on signals that were sent to it alone, and stop when its program stops. The
 * signals must be blocked (parent_block). */
void parent_attach(struct parent *parent, struct tracer *tracer);

/* Blocks what parent_attach looks after; what was blocked before is stored in `old`. */
void parent_block(sigset_t *old);

/* Ends the calling process as the program has ended. */
__attribute__((noreturn)) void parent_end(const struct handoff_end *end);

#endif
