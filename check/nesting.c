#include "check/nesting.h"

#include <errno.h>
#include <stdlib.h>

enum { LEVELS = 8 };

struct nesting_thread {
	bool named;
	/* The call that ended last, for each level. */
	struct {
		uint64_t start;
		uint64_t end;
	} last[LEVELS];
};

/* What the children of one call have said of it. */
struct awaited {
	uint64_t line; /* of the first child */
	uint64_t key;  /* of their thread */
	uint64_t start;
	uint64_t end;
	uint64_t child; /* the smallest id */
	int64_t level;
	bool differ; /* in thread or level */
};

static uint64_t key_of(uint64_t pid, uint64_t tid)
{
	return pid << 32 ^ tid;
}

/* @return the thread, made when it is new; NULL when out of memory. */
static struct nesting_thread *thread_of(struct nesting *nesting, uint64_t key)
{
	if (nesting->last && nesting->last_key == key)
		return nesting->last;
	struct nesting_thread *thread = map_get(&nesting->threads, key);
	if (!thread) {
		thread = calloc(1, sizeof(*thread));
		if (!thread || map_put(&nesting->threads, key, thread) < 0) {
			free(thread);
			return NULL;
		}
	}
	nesting->last = thread;
	nesting->last_key = key;
	return thread;
}

/* Adds a child to what its parent is asked for. */
static int await(struct nesting *nesting, const struct nesting_call *call, uint64_t key)
{
	struct awaited *awaited = map_get(&nesting->awaited, (uint64_t)call->parent);

	if (!awaited) {
		awaited = malloc(sizeof(*awaited));
		if (!awaited || map_put(&nesting->awaited, (uint64_t)call->parent, awaited) < 0) {
			free(awaited);
			errno = ENOMEM;
			return -1;
		}
		*awaited = (struct awaited){
			.line = call->line,
			.key = key,
			.start = call->start,
			.end = call->end,
			.child = call->id,
			.level = call->level,
		};
		return 0;
	}
	awaited->differ |= awaited->key != key || awaited->level != call->level;
	if (call->start < awaited->start)
		awaited->start = call->start;
	if (call->end > awaited->end)
		awaited->end = call->end;
	if (call->id < awaited->child)
		awaited->child = call->id;
	return 0;
}

/* A call has come: is it what its children said? */
static void answer(struct nesting *nesting, const struct nesting_call *call, uint64_t key,
		   struct findings *findings)
{
	struct awaited *awaited =
		nesting->awaited.count > 0 ? map_remove(&nesting->awaited, call->id) : NULL;

	if (!awaited)
		return;
	if (awaited->key != key)
		finding_add(findings, FINDING_PARENT_THREAD, awaited->line, "parent %llu",
			    (unsigned long long)call->id);
	if (awaited->differ || awaited->level != call->level + 1)
		finding_add(findings, FINDING_PARENT_LEVEL, awaited->line, "level %lld below %lld",
			    (long long)awaited->level, (long long)call->level);
	if (awaited->start < call->start || awaited->end > call->end)
		finding_add(findings, FINDING_PARENT_TIME, awaited->line, "parent %llu",
			    (unsigned long long)call->id);
	if (awaited->child <= call->id)
		finding_add(findings, FINDING_PARENT_LATER, awaited->line, "id %llu below %llu",
			    (unsigned long long)awaited->child, (unsigned long long)call->id);
	free(awaited);
}

static void compare_times(struct nesting_thread *thread, const struct nesting_call *call,
			  struct findings *findings)
{
	if (call->beside || call->level < 1 || call->level > LEVELS)
		return;
	uint64_t *start = &thread->last[call->level - 1].start;
	uint64_t *end = &thread->last[call->level - 1].end;
	/* One system call may be written as several events, as close_range is. */
	if (call->start < *end && (call->start != *start || call->end != *end))
		finding_add(findings, FINDING_OVERLAP, call->line,
			    "it begins %llu before the one above ends",
			    (unsigned long long)(*end - call->start));
	*start = call->start;
	*end = call->end;
}

int nesting_call(struct nesting *nesting, const struct nesting_call *call,
		 struct findings *findings)
{
	uint64_t key = key_of(call->pid, call->tid);
	struct nesting_thread *thread = thread_of(nesting, key);

	if (!thread)
		return -1;
	if (call->id)
		answer(nesting, call, key, findings);
	compare_times(thread, call, findings);
	if (call->parent <= 0) {
		if (call->level != 1 && !call->beside)
			finding_add(findings, FINDING_PARENT_LEVEL, call->line,
				    "level %lld without a parent", (long long)call->level);
		return 0;
	}
	return await(nesting, call, key);
}

int nesting_name(struct nesting *nesting, uint64_t pid, uint64_t tid)
{
	struct nesting_thread *thread = thread_of(nesting, key_of(pid, tid));
	if (!thread)
		return -1;
	thread->named = true;
	return 0;
}

bool nesting_is_named(struct nesting *nesting, uint64_t pid, uint64_t tid)
{
	uint64_t key = key_of(pid, tid);
	const struct nesting_thread *thread = nesting->last && nesting->last_key == key
						      ? nesting->last
						      : map_get(&nesting->threads, key);
	return thread && thread->named;
}

void nesting_finish(struct nesting *nesting, bool killed, struct findings *findings)
{
	const struct awaited *first = NULL;
	struct map_slot *slot;
	uint64_t id = 0;
	size_t at = 0;

	if (killed)
		return;
	while ((slot = map_next(&nesting->awaited, &at))) {
		const struct awaited *awaited = slot->value;
		if (first && first->line < awaited->line)
			continue;
		first = awaited;
		id = slot->key;
	}
	if (first)
		finding_add(findings, FINDING_PARENT_MISSING, first->line, "parent %llu",
			    (unsigned long long)id);
}

void nesting_free(struct nesting *nesting)
{
	map_free_values(&nesting->threads);
	map_free_values(&nesting->awaited);
}
