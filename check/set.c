#include "check/set.h"

#include "base/map.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void set_init(struct set *set)
{
	*set = (struct set){0};
	tally_init(&set->total);
}

__attribute__((format(printf, 2, 3))) static void say(struct set *set, const char *format, ...)
{
	char **grown = reallocarray(set->findings, set->nfindings + 1, sizeof(*grown));
	char *text = NULL;
	va_list args;

	if (grown)
		set->findings = grown;
	va_start(args, format);
	int len = vasprintf(&text, format, args);
	va_end(args);
	if (!grown || len < 0) {
		if (len >= 0)
			free(text);
		set->no_memory = true;
		return;
	}
	grown[set->nfindings++] = text;
}

/* The host of a process: its name's hash is the same whatever form the trace has. */
static uint64_t host_of(const struct trace *trace, const struct process *process)
{
	const char *host = trace_host(trace, process->host);
	return host ? name_hash_in(NAME_HEX, (struct text){host, strlen(host)}) : 0;
}

static void add_processes(struct set *set, const struct trace *trace)
{
	size_t more = trace->nprocesses;
	struct set_process *grown =
		reallocarray(set->processes, set->nprocesses + more + 1, sizeof(*grown));

	if (!grown) {
		set->no_memory = true;
		return;
	}
	set->processes = grown;
	for (size_t i = 0; i < more; i++)
		grown[set->nprocesses++] = (struct set_process){
			.process = trace->processes[i],
			.host = host_of(trace, &trace->processes[i]),
		};
}

/* Which host that was on is only asked in files of one host. */
static void add_births(struct set *set, const struct trace *trace)
{
	size_t more = trace->nhosts == 1 && trace->nprocesses > 0 ? trace->nbirths : 0;
	struct set_birth *grown =
		reallocarray(set->births, set->nbirths + more + 1, sizeof(*grown));

	if (!grown) {
		set->no_memory = true;
		return;
	}
	set->births = grown;
	for (size_t i = 0; i < more; i++)
		grown[set->nbirths++] =
			(struct set_birth){trace->births[i], host_of(trace, &trace->processes[0])};
}

void set_add(struct set *set, const struct trace *trace, bool strict)
{
	enum finding_class worst = findings_worst(&trace->findings);

	set->files++;
	set->unusable += worst == FINDING_UNUSABLE;
	set->bad += worst != FINDING_UNUSABLE && findings_count(&trace->findings, strict) > 0;
	if (worst == FINDING_UNUSABLE)
		return;
	set->foreign += trace->findings.foreign;
	tally_add(&set->total, &trace->tally);
	add_processes(set, trace);
	add_births(set, trace);
}

/* Processes of one job by rank: jobs are told apart by their id and size. */
static int by_rank(const void *a, const void *b)
{
	const struct process *one = &((const struct set_process *)a)->process;
	const struct process *two = &((const struct set_process *)b)->process;
	int job = strcmp(one->job, two->job);

	if (job)
		return job;
	if (one->world != two->world)
		return one->world < two->world ? -1 : 1;
	return (one->rank > two->rank) - (one->rank < two->rank);
}

static bool same_job(const struct process *one, const struct process *two)
{
	return one->world == two->world && strcmp(one->job, two->job) == 0;
}

static void check_job(struct set *set, size_t from, size_t to)
{
	const struct process *first = &set->processes[from].process;
	int64_t world = first->world;
	int64_t next = 0;
	int64_t missing = 0;
	int64_t example = -1;

	if (world < 0)
		world = set->processes[to - 1].process.rank + 1;
	for (size_t i = from; i < to; i++) {
		int64_t rank = set->processes[i].process.rank;
		if (rank < next)
			continue;
		if (rank > next && example < 0)
			example = next;
		missing += rank - next;
		next = rank + 1;
	}
	if (next > world) {
		say(set, "there is a rank %lld of %lld", (long long)next - 1, (long long)world);
		return;
	}
	if (world > next && example < 0)
		example = next;
	missing += world - next;
	if (missing > 0)
		say(set, "rank %lld of %lld has no file%s", (long long)example, (long long)world,
		    missing > 1 ? ", and others neither" : "");
}

static void check_ranks(struct set *set)
{
	qsort(set->processes, set->nprocesses, sizeof(*set->processes), by_rank);
	for (size_t from = 0; from < set->nprocesses;) {
		size_t to = from + 1;
		while (to < set->nprocesses &&
		       same_job(&set->processes[from].process, &set->processes[to].process))
			to++;
		size_t ranked = from;
		/* Those without a rank come first. */
		while (ranked < to && set->processes[ranked].process.rank < 0)
			ranked++;
		if (ranked < to)
			check_job(set, ranked, to);
		from = to;
	}
}

size_t set_ranks(const struct set *set)
{
	size_t count = 0;
	for (size_t i = 0; i < set->nprocesses; i++) {
		const struct process *process = &set->processes[i].process;
		bool again = i > 0 && same_job(process, &set->processes[i - 1].process) &&
			     process->rank == set->processes[i - 1].process.rank;
		count += process->rank >= 0 && !again;
	}
	return count;
}

static uint64_t process_key(uint64_t host, uint64_t pid)
{
	return host ^ pid * 0x9e3779b97f4a7c15U;
}

/* The earliest birth of each process, by host and pid. */
static int index_births(const struct set *set, struct map *index)
{
	for (size_t i = 0; i < set->nbirths; i++) {
		const struct set_birth *birth = &set->births[i];
		uint64_t key = process_key(birth->host, birth->birth.child);
		const struct set_birth *other = map_get(index, key);
		if (other && other->birth.time <= birth->birth.time)
			continue;
		if (map_put(index, key, (void *)birth) < 0)
			return -1;
	}
	return 0;
}

/* A process cannot begin before the call that made it, unless they looked at different clocks. */
static void check_clocks(struct set *set)
{
	enum { SLACK = 1000000 };
	struct map index = {0};
	const struct process *first = NULL;
	unsigned long count = 0;

	if (index_births(set, &index) < 0)
		set->no_memory = true;
	for (size_t i = 0; i < set->nprocesses; i++) {
		const struct process *child = &set->processes[i].process;
		const struct set_birth *birth =
			map_get(&index, process_key(set->processes[i].host, child->pid));
		if (!child->started || !birth || birth->host != set->processes[i].host ||
		    birth->birth.child != child->pid || birth->birth.pid != child->ppid ||
		    child->start + SLACK >= birth->birth.time)
			continue;
		first = first ? first : child;
		count++;
	}
	if (first)
		say(set,
		    "the clocks of one host differ: process %llu began before its parent %llu made "
		    "it%s",
		    (unsigned long long)first->pid, (unsigned long long)first->ppid,
		    count > 1 ? ", and others too" : "");
	map_free(&index);
}

static void count_hosts(struct set *set)
{
	struct map hosts = {0};

	for (size_t i = 0; i < set->nprocesses; i++) {
		if (set->processes[i].host && map_put(&hosts, set->processes[i].host, set) < 0)
			set->no_memory = true;
	}
	set->hosts = hosts.count;
	map_free(&hosts);
}

/* Why something may be missing. The first row that fits is said; NULL stands for all items, and for
 * always. */
static const struct {
	const char *item;
	const char *count; /* a line of the trace that explains it */
	const char *reason;
	bool foreign; /* of traces that others wrote */
} reasons[] = {
	{NULL, "lost:unhooked", "libraries had no symbols, so that their calls were not found",
	 false},
	{NULL, "lost:unverified", "functions could not be hooked (dftrace-run -v says why)", false},
	{NULL, "skipped:datadir", "calls on files outside of the data directories were left out",
	 false},
	{NULL, "skipped:class", "calls were left out by -e", false},
	{NULL, "lost:dropped", "events were dropped", false},
	{"rank", NULL, "dftracer was built without MPI, or the program never called MPI_Init",
	 true},
	{"rank", NULL,
	 "the launcher set no rank, or dftrace-run stood before the launcher and not behind it",
	 false},
	{"MPI", NULL, "dftracer was built without MPI", true},
	{"MPI", NULL, "the program did not call MPI, or its layer was not recorded (-e +mpi)",
	 false},
	{"HDF5", NULL, "dftracer was built without HDF5", true},
	{"HDF5", NULL, "the program did not call HDF5, or its layer was not recorded (-e +hdf5)",
	 false},
	{"STDIO", NULL, "the program used no C streams, or DFTRACER_DISABLE_STDIO was set", true},
	{"STDIO", NULL, "the program used no C streams, or they were left out (--no-stdio)", false},
	{"POSIX", NULL,
	 "DFTRACER_INIT was FUNCTION, DFTRACER_DISABLE_POSIX was set, or the program is static",
	 true},
	{"POSIX", NULL, "the calls were left out by -e or -d", false},
	{NULL, NULL, "nothing of this category was recorded", false},
};

static const char *reason_of(const struct set *set, const char *item)
{
	bool foreign = set->foreign > 0;

	if (set->total.events == 0)
		return "there are no events at all";
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		if ((reasons[i].item && strcasecmp(reasons[i].item, item) != 0) ||
		    (reasons[i].count && tally_counted(&set->total, reasons[i].count) == 0) ||
		    (reasons[i].item && reasons[i].foreign != foreign) ||
		    (reasons[i].count && strcasecmp(item, "rank") == 0))
			continue;
		return reasons[i].reason;
	}
	return "";
}

static bool is_there(const struct set *set, const char *item)
{
	if (strcasecmp(item, "rank") == 0)
		return set_ranks(set) > 0;
	if (strcasecmp(item, "dftracer") == 0)
		return set->total.metadata > 0;
	const struct tally_category *category = tally_find(&set->total, item);
	return category && category->events > 0;
}

void set_finish(struct set *set, const char *const *required, unsigned nrequired)
{
	if (set->nprocesses > 0) {
		check_ranks(set);
		check_clocks(set);
		count_hosts(set);
	}
	for (unsigned i = 0; i < nrequired; i++) {
		if (!is_there(set, required[i]))
			say(set, "%s is required and missing: %s", required[i],
			    reason_of(set, required[i]));
	}
	if (set->no_memory)
		say(set, "out of memory: not everything was compared");
}

int set_status(const struct set *set)
{
	if (set->unusable > 0 || set->files == 0)
		return 2;
	return set->bad > 0 || set->nfindings > 0 ? 1 : 0;
}

void set_free(struct set *set)
{
	for (size_t i = 0; i < set->nfindings; i++)
		free(set->findings[i]);
	free(set->findings);
	free(set->processes);
	free(set->births);
	*set = (struct set){0};
}
