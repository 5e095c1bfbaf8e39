#include "launchers/admit.h"

#include "launchers/start.h"

#include <stdlib.h>

/* --ranks in front of a rank. */
static enum admission admit_rank(const struct options *options, const char *rank)
{
	const char *local = options->own.info.values[RANK_LOCAL_RANK];

	if (!local && rank_list_wants_local(&options->ranks)) {
		start_say("--ranks first-per-node: %s does not tell the rank within a node; give "
			  "numbers of ranks",
			  options->own.info.launcher ? options->own.info.launcher : "--rank");
		return ADMIT_REFUSED;
	}
	return rank_list_has(&options->ranks, strtol(rank, NULL, 10),
			     local ? strtol(local, NULL, 10) : -1)
		       ? ADMIT_TRACED
		       : ADMIT_FREE;
}

static enum admission admit_starter(const struct options *options,
				    const struct rank_starter *starter)
{
	const char *name = starter->program;

	if (options->rank) {
		start_say("--rank says one rank, and %s starts several, whose environment tells "
			  "theirs; leave it out",
			  name);
		return ADMIT_REFUSED;
	}
	if (starter->is_above)
		return ADMIT_TRACED;
	if (options->ranks.count) {
		start_say("--ranks: %s starts its ranks where they cannot be seen; put dftrace-run "
			  "behind it: %s ... %sdftrace-run ... -- ./app",
			  name, name, starter->options);
		return ADMIT_REFUSED;
	}
	if (!options->quiet)
		start_say("%s starts its ranks where they cannot be seen, and they are not "
			  "recorded; put dftrace-run behind it: %s ... %sdftrace-run ... -- ./app",
			  name, name, starter->options);
	return ADMIT_TRACED;
}

enum admission admit(const struct options *options)
{
	const struct rank_starter *starter =
		ranks_starter((const char *const *)options->argv, (size_t)options->argc);
	const char *rank = options->own.info.values[RANK_RANK];

	if (options->disabled)
		return ADMIT_FREE;
	if (starter)
		return admit_starter(options, starter);
	if (!options->ranks.count)
		return ADMIT_TRACED;
	if (rank)
		return admit_rank(options, rank);
	start_say(
		"--ranks: no launcher tells which rank this is; put dftrace-run behind one (mpirun "
		"... dftrace-run --ranks ...), or say it with --rank");
	return ADMIT_REFUSED;
}
