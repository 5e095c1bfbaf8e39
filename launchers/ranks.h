/* Which rank a process is, by the environment that its launcher gave it, and what launchers there are. The
 * rows stand in ranks.def. */
#ifndef LAUNCHERS_RANKS_H
#define LAUNCHERS_RANKS_H

#include <stdbool.h>
#include <stddef.h>

enum rank_value {
	RANK_RANK,
	RANK_LOCAL_RANK,
	RANK_WORLD_SIZE,
	RANK_JOBID,
	RANK_STEP,
	RANK_NODE,
	RANK_VALUE_COUNT,
};

/* An environment as it stands in /proc/PID/environ: VARIABLE=value, each with a NUL behind it. */
struct environment {
	const char *text;
	size_t len;
};

/* What an environment tells. Its strings point into the environment's text. */
struct rank_info {
	const char *launcher;                 /* NULL: no rank is told */
	const char *batch;                    /* the batch system; NULL: none */
	const char *values[RANK_VALUE_COUNT]; /* NULL: not told; numbers, but for jobid and step */
};

/* What our own environment tells, with the memory of it. */
struct rank_own {
	char *text;
	struct rank_info info;
};

/* @return 0, or -1: out of memory. */
int ranks_own(struct rank_own *own);
void ranks_own_free(struct rank_own *own);

/* @return the value of a variable, NULL: not set. */
const char *environment_get(const struct environment *environment, const char *name);

/* Reads what launcher and batch system tell. */
void ranks_read(struct rank_info *info, const struct environment *environment);

/* The name of a value in metadata: "rank", "local_rank", "world_size", "jobid", "step", "node". */
const char *ranks_value_name(enum rank_value value);

struct rank_starter {
	const char *program;
	bool is_above;       /* its ranks on this host are descendants of it */
	const char *words;   /* what its first argument has to be one of; "": anything */
	const char *options; /* for it to start dftrace-run, with a blank behind them; or "" */
};

/* @return the row of the launcher that is called by these words, NULL: it is none. */
const struct rank_starter *ranks_starter(const char *const *argv, size_t argc);

#endif
