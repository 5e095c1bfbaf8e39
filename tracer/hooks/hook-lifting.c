/* Breakpoints that are taken out while their code stays: of functions called too often, of code that is being moved, of
 * what is known, or all. A point stays on record then, since threads may have hit it already. */
#include "tracer/hooks/library.h"
#include "tracer/memory.h"

#define SECOND 1000000000ULL

/* Stops at most that are spent on learning what brief functions are hooked for. */
#define BRIEF_MOST 200

static bool has_bytes(const struct hook_function *function)
{
	return function->row && function->row->bytes != HOOK_B_NONE;
}

/* @return whether calls of the function can be missed without making others wrong. */
static bool may_be_lifted(const struct hook_function *function)
{
	const struct hook_library *library = hook_library(function->layer);

	/* A region that has not been seen to end would go on. */
	if (!library)
		return !has_bytes(function) && function->layer != HOOK_APP;
	return !function->row->serves && !(library->uses && library->uses(function->row));
}

void hook_points_limit(struct hooks *hooks, struct tracer *tracer, struct task *task,
		       struct hook_point *point)
{
	struct hook_space *space = task->mm->hooks;
	struct hook_function *function = point->place->function;

	if (!hooks->options.limit || point->lifted || point->stub || !may_be_lifted(function))
		return;
	if (tracer->now - point->second >= SECOND) {
		point->second = tracer->now;
		point->hits = 0;
	}
	if (++point->hits <= hooks->options.limit ||
	    memory_write(task, point->address, point->insn.bytes, 1) < 0)
		return;
	point->lifted = true;
	space->lifted++;
	uint64_t until = point->second + SECOND;
	if (space->lifted == 1 || until < space->lifted_until)
		space->lifted_until = until;
	/* At the rate that it had; unhooked it is faster, so this is the least. */
	uint64_t spent = tracer->now - point->second;
	uint64_t missed = spent ? point->hits * (SECOND - spent) / spent : point->hits;
	function->dropped += missed;
	task->process->lost[LOST_DROPPED] += missed;
}

bool hook_point_is_lifted_for_good(const struct hook_space *space, const struct hook_point *point)
{
	return space->withdrawn || (space->brief_over && point->place && point->place->brief);
}

static bool is_within(uint64_t address, uint64_t begin, uint64_t length)
{
	return address >= begin && address - begin < length;
}

bool hooks_begin_move(struct tracer *tracer, struct task *task, uint64_t from, uint64_t from_length,
		      uint64_t to, uint64_t to_length)
{
	struct hook_space *space = task->mm->hooks;
	struct map_slot *slot;
	bool found = false;
	size_t at = 0;

	if (!space || space->withdrawn)
		return false;
	while ((slot = map_next(&space->points, &at))) {
		struct hook_point *point = slot->value;
		if (!is_within(point->address, from, from_length) &&
		    !is_within(point->address, to, to_length))
			continue;
		found = true;
		if (!point->lifted && hook_point_take_out(tracer, task, point) == 0) {
			point->lifted = true;
			space->lifted++;
		}
		point->second = 0; /* due at once, should it still be there */
	}
	space->moves += found;
	return found;
}

void hook_points_restore(struct tracer *tracer, struct task *task)
{
	struct hook_space *space = task->mm->hooks;
	struct map_slot *slot;
	size_t at = 0;

	if (!space || !space->lifted || space->moves || tracer->now < space->lifted_until)
		return;
	space->lifted_until = UINT64_MAX;
	while ((slot = map_next(&space->points, &at))) {
		struct hook_point *point = slot->value;
		if (!point->lifted || hook_point_is_lifted_for_good(space, point))
			continue;
		if (tracer->now - point->second < SECOND) {
			if (point->second + SECOND < space->lifted_until)
				space->lifted_until = point->second + SECOND;
		} else if (hook_point_put_back(tracer, task, point)) {
			point->lifted = false;
			space->lifted--;
		}
	}
}

static bool is_settled(const struct hook_space *space)
{
	for (unsigned i = 0; i < HOOK_LAYERS; i++) {
		const struct hook_library *library = hook_library(i);
		if (library && library->settled && space->states[i] &&
		    library->settled(space->states[i]))
			return true;
	}
	return false;
}

/* @return whether some thread is inside a brief function: its end must be seen, or what it calls later would look
 * like that function's doing. */
static bool is_in_use(const struct tracer *tracer, const struct mm *mm)
{
	struct map_slot *slot;
	size_t at = 0;

	while ((slot = map_next(&tracer->tasks, &at))) {
		const struct task *task = slot->value;
		for (size_t i = 0; task->mm == mm && i < task->nframes; i++) {
			if (task->frames[i].hook && task->frames[i].hook->brief)
				return true;
		}
	}
	return false;
}

void hook_points_end_brief(struct tracer *tracer, struct task *task)
{
	struct hook_space *space = task->mm->hooks;
	struct map_slot *slot;
	size_t at = 0;

	if (space->brief_over || (++space->brief_hits < BRIEF_MOST && !is_settled(space)) ||
	    is_in_use(tracer, task->mm))
		return;
	space->brief_over = true;
	while ((slot = map_next(&space->points, &at))) {
		struct hook_point *point = slot->value;
		/* It stays on record: threads may have hit it already. */
		if (!point->place || !point->place->brief || point->waiting ||
		    memory_write(task, point->address, point->insn.bytes, 1) < 0)
			continue;
		/* By a move of its code. */
		if (point->lifted)
			space->lifted--;
		point->lifted = true;
	}
}

void hooks_end_move(struct tracer *tracer, struct task *task)
{
	struct hook_space *space = task->mm->hooks;

	if (!space || !space->moves)
		return;
	space->moves--;
	space->lifted_until = 0;
	hook_points_restore(tracer, task);
}

void hooks_withdraw(struct tracer *tracer, struct task *task)
{
	struct hook_space *space = task->mm->hooks;
	struct map_slot *slot;
	unsigned layers = 0;
	size_t at = 0;

	if (!space || space->withdrawn)
		return;
	space->withdrawn = true;
	while ((slot = map_next(&space->points, &at))) {
		struct hook_point *point = slot->value;
		if (point->place && point->place->function)
			layers |= 1U << point->place->function->layer;
		hook_point_take_out(tracer, task, point);
		/* It stays on record: threads may have hit it already. */
		point->lifted = true;
	}
	space->lifted = 0;
	/* Streams are in every program, found or not. */
	task->process->lost[LOST_UNHOOKED_STDIO]++;
	task->process->lost[LOST_UNHOOKED_MPI] += layers >> HOOK_MPI & 1;
	task->process->lost[LOST_UNHOOKED_HDF5] += layers >> HOOK_HDF5 & 1;
}
