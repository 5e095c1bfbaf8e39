/* Whether the program is to be traced at all: not where DFTRACER_ENABLE says no, nor as a rank that --ranks
 * leaves out. */
#ifndef LAUNCHERS_ADMIT_H
#define LAUNCHERS_ADMIT_H

#include "launchers/options.h"

enum admission {
	ADMIT_TRACED,
	ADMIT_FREE,    /* to be executed at once */
	ADMIT_REFUSED, /* the options ask for what cannot be; said */
};

/* Also says what a user who traces a launcher has to know beforehand. */
enum admission admit(const struct options *options);

#endif
