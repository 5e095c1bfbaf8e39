/* --dump-config: all settings as they are in force, with where they come from. */
#ifndef LAUNCHERS_DUMP_CONFIG_H
#define LAUNCHERS_DUMP_CONFIG_H

#include "launchers/options.h"

#include <stdio.h>

/* Prints a line for each, or with --json an object. @return 0, or -1. */
int dump_config(const struct options *options, FILE *out);

#endif
