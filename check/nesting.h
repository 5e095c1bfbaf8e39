/* Which call made which: p_idx, level and the times of each thread's calls.
 *
 * Lines stand in the order in which calls end, so a call's children come before it. What they want of
 * it is kept until it comes. */
#ifndef CHECK_NESTING_H
#define CHECK_NESTING_H

#include "base/map.h"
#include "check/findings.h"

#include <stdbool.h>
#include <stdint.h>

struct nesting_call {
	uint64_t line;
	uint64_t id;
	uint64_t pid;
	uint64_t tid;
	uint64_t start;
	uint64_t end;
	int64_t parent; /* -1: none */
	int64_t level;
	bool beside; /* asynchronous, or ended out of order: it may overlap others */
};

/* Zeroed: nothing seen. */
struct nesting {
	struct map threads; /* by pid and tid */
	struct map awaited; /* by the parent's id */
	struct nesting_thread *last;
	uint64_t last_key;
};

/* Takes a call. @return 0, or -1 with errno ENOMEM. */
int nesting_call(struct nesting *nesting, const struct nesting_call *call,
		 struct findings *findings);

/* Marks a thread as named. @return 0, or -1 with errno ENOMEM. */
int nesting_name(struct nesting *nesting, uint64_t pid, uint64_t tid);

/* Whether a thread has a name. */
bool nesting_is_named(struct nesting *nesting, uint64_t pid, uint64_t tid);

/* At the end: parents that never came. Calls that were under way when a process was killed have no line. */
void nesting_finish(struct nesting *nesting, bool killed, struct findings *findings);

void nesting_free(struct nesting *nesting);

#endif
