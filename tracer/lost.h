/* What could not be seen and what was left out, by the names that the trace gives them. */
#ifndef TRACER_LOST_H
#define TRACER_LOST_H

#include "tracer/task.h"

/* @return the word behind `lost:` or `skipped:`. */
const char *lost_name(enum lost what);
const char *skipped_name(enum skipped what);

/* @return which count a call on a file of this kind goes to. */
enum skipped skipped_for(enum file_skip skip);

/* Writes a process's counts as metadata before its end line. */
void lost_write(struct trace *trace, const struct process *process);

#endif
