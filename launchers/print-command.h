/* --print-command: the command line that says all that the environment says now. */
#ifndef LAUNCHERS_PRINT_COMMAND_H
#define LAUNCHERS_PRINT_COMMAND_H

#include "launchers/options.h"

#include <stdio.h>

/* Prints it on a line, quoted for a shell. @return 0, or -1. */
int print_command(const struct options *options, FILE *out);

/* Appends where the settings come from, as "output: DFTRACER_LOG_FILE, names: command line". */
void print_sources(const struct options *options, struct buf *out);

#endif
