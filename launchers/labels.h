/* What the environment of each traced program tells of it, at its exec: its rank and job, whether it belongs to a
 * launcher of ranks, whether it is to be recorded. */
#ifndef LAUNCHERS_LABELS_H
#define LAUNCHERS_LABELS_H

#include "base/buf.h"
#include "launchers/options.h"
#include "tracer/observer.h"

struct labeler {
	struct observer observer; /* for tracer_observe */
	const struct options *options;
	struct buf environment; /* of the process that is looked at */
	struct buf starter;     /* the first launcher that was seen */
	bool starter_is_above;
	unsigned long ranks; /* that started below it */
	unsigned long left_out;
};

/* `options` must outlive the labeler. */
void labeler_init(struct labeler *labeler, const struct options *options);

void labeler_free(struct labeler *labeler);

#endif
