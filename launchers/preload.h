/* DFTracer's own libraries in LD_PRELOAD: with us, both would record the program. */
#ifndef LAUNCHERS_PRELOAD_H
#define LAUNCHERS_PRELOAD_H

#include "launchers/options.h"

/* Says so if the program is going to be traced, or removes them with --drop-preload. @return 0, or -1: out of
 * memory. */
int preload_check(const struct options *options, bool traced);

#endif
