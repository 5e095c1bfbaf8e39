/* Which calls the filter has to stop: from the table and the selection. */
#ifndef TRACER_WANTED_H
#define TRACER_WANTED_H

#include "seccomp/filter.h"
#include "tracer/select.h"

/* Room for all rows, and for those with two rules. */
#define WANTED_MAX (SELECTION_MAX_ROWS + 16)

/* Fills `rules` (WANTED_MAX). @return their number. */
size_t wanted_rules(const struct selection *selection, struct filter_rule *rules);

#endif
