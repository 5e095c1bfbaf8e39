/* Calls that fail because the program is traced, so that its user need not wonder. */
#ifndef TRACER_REFUSED_H
#define TRACER_REFUSED_H

#include "tracer/tracer.h"

/* Says in the line at the end, once for each kind, that a failed call of the task owes its failure to us. */
void refused_note(struct tracer *tracer, const struct task *task, const struct call *call);

#endif
