/* The mark at the executable's entry point: what comes before it is the loader's. */
#ifndef TRACER_ENTRY_H
#define TRACER_ENTRY_H

#include "tracer/observer.h"

/* Makes `observer` the one that notices when a process reaches its entry point (process->started), and reads mm->entry
 * and mm->vdso. */
void entry_init(struct observer *observer);

#endif
