/* Starting the program and its tracer.
 *
 * Detached: the calling process becomes the program; the tracer is its detached grandchild.
 * Parent: the program is a child, the calling process traces it and ends as it did. */
#ifndef LAUNCHERS_START_H
#define LAUNCHERS_START_H

#include "launchers/options.h"

/* Runs the program at `path` under a tracer, in the form that the options ask for or that works here.
 * @return only when it did not become the program: the status to exit with. What went wrong has been said. */
int start(const struct options *options, const char *path);

/* Prints one line on stderr: the program's name, then what printf would print. */
__attribute__((format(printf, 1, 2))) void start_say(const char *format, ...);

#endif
