/* --list-hooks. */
#ifndef LAUNCHERS_LIST_HOOKS_H
#define LAUNCHERS_LIST_HOOKS_H

#include "launchers/options.h"

/* Prints each function of the tables: what a run with these options does with it, its group, its name, and what
 * turns it on where it is off. @return 0, or -1 with errno of writing. */
int list_hooks(const struct options *options);

#endif
