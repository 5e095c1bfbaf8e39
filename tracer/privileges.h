/* Programs that would have gained rights at exec, and do not under a tracer. */
#ifndef TRACER_PRIVILEGES_H
#define TRACER_PRIVILEGES_H

#include "tracer/observer.h"

/* Makes `observer` the one that notices them: counted as lost:setuid, and said once. */
void privileges_init(struct observer *observer);

#endif
