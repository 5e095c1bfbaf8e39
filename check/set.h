/* All files together: are the ranks complete, is the time of each host one, is there what was asked for? */
#ifndef CHECK_SET_H
#define CHECK_SET_H

#include "base/buf.h"
#include "check/trace.h"

#include <stdbool.h>
#include <stddef.h>

struct set_process {
	struct process process;
	uint64_t host; /* hash of the host's name, the same in all forms of traces; 0: not known */
};

struct set_birth {
	struct birth birth;
	uint64_t host;
};

struct set {
	struct tally total;
	size_t files;
	size_t bad; /* with findings */
	size_t unusable;
	size_t foreign;
	size_t hosts;
	struct set_process *processes;
	size_t nprocesses;
	struct set_birth *births;
	size_t nbirths;
	char **findings; /* sentences about the whole */
	size_t nfindings;
	bool no_memory;
};

void set_init(struct set *set);

/* Adds what a file holds; `strict`: notes are findings. */
void set_add(struct set *set, const struct trace *trace, bool strict);

/* When all are added: ranks, clocks, and what has to be there. */
void set_finish(struct set *set, const char *const *required, unsigned nrequired);

/* @return the exit status: 0 good, 1 findings, 2 unusable. */
int set_status(const struct set *set);

/* How many different ranks there are. */
size_t set_ranks(const struct set *set);

void set_free(struct set *set);

#endif
