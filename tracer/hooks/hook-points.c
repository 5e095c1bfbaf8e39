/* Breakpoints in an address space. They stay where they are for as long as the code is mapped, so that no
 * thread can slip by; what they displace is emulated, or executed from a copy nearby. */
#include "tracer/hooks/annotate.h"
#include "tracer/hooks/library.h"
#include "tracer/memory.h"
#include "tracer/remote.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE      4096
#define SLOT_SIZE 32

static void remove_point(struct hook_space *space, struct hook_point *point)
{
	map_remove(&space->points, point->address);
	if (point->lifted && space->lifted && !hook_point_is_lifted_for_good(space, point))
		space->lifted--;
	free(point);
}

/* Where memory may have become another's. */
struct doubtful {
	struct stretch *items;
	size_t count;
	bool failed; /* out of memory */
};

static void add_doubt(struct doubtful *doubtful, uint64_t begin, uint64_t end)
{
	struct stretch *items = reallocarray(doubtful->items, doubtful->count + 1, sizeof(*items));

	if (!items) {
		doubtful->failed = true;
		return;
	}
	items[doubtful->count++] = (struct stretch){begin, end};
	doubtful->items = items;
}

static void module_gone(const struct module *module, void *data)
{
	add_doubt(data, module->begin, module->end);
}

static bool is_doubtful(const struct doubtful *doubtful, uint64_t address)
{
	for (size_t i = 0; i < doubtful->count; i++) {
		if (address >= doubtful->items[i].begin && address < doubtful->items[i].end)
			return true;
	}
	return false;
}

bool hook_point_put_back(struct tracer *tracer, struct task *task, struct hook_point *point)
{
	unsigned char bytes[INSN_MAX];

	/* Code that was copied has brought the jump along. */
	if (point->stub && hook_point_is_there(tracer, task, point) &&
	    hook_point_take_out(tracer, task, point) < 0)
		return false;
	if (memory_read(tracer, task, point->address, bytes, point->insn.len) != point->insn.len)
		return false;
	if (bytes[0] == ARCH_BREAKPOINT)
		bytes[0] = point->insn.bytes[0];
	if (memcmp(bytes, point->insn.bytes, point->insn.len) != 0 ||
	    !hook_point_write(task, point->address))
		return false;
	point->stub = 0;
	return true;
}

/* @return whether the point stays: a module may have lost a page, or its code been copied to other memory, and then
 * what is ours is in it; or such a copy is still to come. */
static bool stays(struct tracer *tracer, struct task *task, struct hook_point *point)
{
	const struct module *module = modules_find(&task->mm->hooks->modules, point->address);
	unsigned char byte;

	if (!point->lifted && hook_point_is_there(tracer, task, point))
		return true;
	if (memory_read(tracer, task, point->address, &byte, 1) != 1)
		return false;
	/* The file's own code anew: it is placed as any other. */
	if (module && module->object)
		return false;
	if (!point->lifted)
		hook_point_put_back(tracer, task, point);
	return true;
}

/* Looks at the points where memory may have become another's. */
static void settle_doubts(struct tracer *tracer, struct task *task, const struct doubtful *doubtful)
{
	struct hook_space *space = task->mm->hooks;
	struct hook_point **gone = NULL;
	struct map_slot *slot;
	size_t count = 0;
	size_t at = 0;

	if (!doubtful->count || doubtful->failed)
		return;
	gone = calloc(space->points.count + 1, sizeof(struct hook_point *));
	while (gone && (slot = map_next(&space->points, &at))) {
		struct hook_point *point = slot->value;
		if (is_doubtful(doubtful, point->address) && !stays(tracer, task, point))
			gone[count++] = point;
	}
	for (size_t i = 0; i < count; i++)
		remove_point(space, gone[i]);
	free(gone);
	if (count)
		hook_jumps_forget(space);
}

struct hook_point *hook_points_add(struct hook_space *space, uint64_t address,
				   const struct hook_place *place, const struct insn *insn)
{
	struct hook_point *point = calloc(1, sizeof(*point));

	if (!point)
		return NULL;
	point->address = address;
	point->place = place;
	point->insn = *insn;
	if (map_put(&space->points, address, point) < 0) {
		free(point);
		return NULL;
	}
	return point;
}

bool hook_point_write(struct task *task, uint64_t address)
{
	const unsigned char breakpoint = ARCH_BREAKPOINT;
	return memory_write(task, address, &breakpoint, 1) == 0;
}

static bool needs_copy(const struct tracer *tracer, const struct insn *insn)
{
	return tracer->hooks->options.no_emulation || insn->kind == INSN_COPY ||
	       insn->kind == INSN_COPY_RIP;
}

/* @return whether the place is hooked now. */
static bool place_one(struct tracer *tracer, struct task *task, const struct module *module,
		      const struct hook_place *place)
{
	struct hook_space *space = task->mm->hooks;
	uint64_t address = module->bias + place->address;
	unsigned char bytes[INSN_MAX];

	if (map_get(&space->points, address) || (space->brief_over && place->brief))
		return true;
	if (module->shared)
		return false;
	/* What lies there must be what the plan was made from, but for the entry point's mark. */
	if (memory_read(tracer, task, address, bytes, place->insn.len) != place->insn.len)
		return false;
	if (address == task->mm->entry && task->mm->entry_pending)
		bytes[0] = task->mm->entry_byte;
	if (memcmp(bytes, place->insn.bytes, place->insn.len) != 0)
		return false;
	struct hook_point *point = hook_points_add(space, address, place, &place->insn);
	if (!point)
		return false;
	if ((needs_copy(tracer, &place->insn) && !hook_points_slot(tracer, task, point)) ||
	    !hook_point_write(task, address)) {
		remove_point(space, point);
		return false;
	}
	return true;
}

static uint64_t first_address(const struct hook_object *object)
{
	return object->nplaces ? object->places[0].address : 0;
}

/* @return how many functions --max-hooks has left out. */
static unsigned long place_object(struct hooks *hooks, struct tracer *tracer, struct task *task,
				  const struct module *module, const struct hook_object *object)
{
	struct hook_space *space = task->mm->hooks;
	unsigned long unverified = 0;
	unsigned long beyond = 0;

	/* Said once for each image that has the file. */
	if (module->begin <= module->bias + first_address(object) &&
	    module->bias + first_address(object) < module->end)
		unverified += !map_get(&space->points, module->bias + first_address(object))
				      ? object->refused
				      : 0;
	if (!module->shared && recorder_takes_hooks(tracer, task))
		hook_jumps_place(tracer, task, module, object);
	for (size_t i = 0; i < object->nplaces; i++) {
		const struct hook_place *place = &object->places[i];
		/* The part of the file that is mapped here. */
		uint64_t address = module->bias + place->address;
		if (address < module->begin || address >= module->end)
			continue;
		const struct hook_row *row = place->function ? place->function->row : NULL;
		if (row && row->of_library && annotations_are_theirs(tracer, task))
			continue;
		bool user = place->function && !row;
		if (user && !map_get(&space->points, address)) {
			if (space->user_hooks >= hooks->options.max_hooks) {
				beyond++;
				continue;
			}
			space->user_hooks++;
		}
		unverified += !place_one(tracer, task, module, place);
	}
	task->process->lost[LOST_UNVERIFIED] += unverified;
	return beyond;
}

static unsigned long place_module(struct hooks *hooks, struct tracer *tracer, struct task *task,
				  const struct module *module)
{
	bool is_program = task->mm->entry >= module->begin && task->mm->entry < module->end;
	const struct hook_object *object =
		hook_object_get(hooks, module->object, module->path, is_program);
	unsigned long beyond = 0;

	for (; object; object = object->next)
		beyond += place_object(hooks, tracer, task, module, object);
	return beyond;
}

void hook_points_choose(struct tracer *tracer, struct task *task, struct hook_function *resolver,
			uint64_t target)
{
	struct hooks *hooks = tracer->hooks;
	struct hook_space *space = task->mm->hooks;

	if (!space || space->withdrawn)
		return;
	const struct module *module = modules_find(&space->modules, target);
	if (!module || !module->object) {
		/* The kernel's own clock functions lie in no file. */
		task->process->lost[LOST_UNVERIFIED]++;
		hook_object_refuse_choice(hooks, resolver, "what was chosen is in no file");
		return;
	}
	const struct hook_object *chosen =
		hook_object_choose(hooks, module->object, resolver, target - module->bias);
	if (!chosen)
		return;
	task->process->lost[LOST_UNVERIFIED] += chosen->refused;
	unsigned long beyond = place_object(hooks, tracer, task, module, chosen);
	if (beyond > hooks->beyond)
		hooks->beyond = beyond;
}

bool hooks_expect_code(struct tracer *tracer, struct task *task, uint64_t address, uint64_t length)
{
	struct hook_space *space = task->mm->hooks;
	const struct stretch wanted = {address, address + length};
	struct stretch known;

	if (!tracer->hooks || task->process->excluded || !length || wanted.end < address)
		return false;
	if (!space)
		return true;
	for (unsigned i = 0; i < HOOK_KNOWN; i++) {
		if (space->known[i].begin <= address && wanted.end <= space->known[i].end)
			return false;
	}
	if (!modules_know(&space->modules, task->tid, &wanted, &known))
		return true;
	/* Programs that make code do so thousands of times, in few places. */
	space->known[space->nknown++ % HOOK_KNOWN] = known;
	return false;
}

void hooks_file_mapped(struct task *task)
{
	if (task->mm->hooks)
		memset(task->mm->hooks->known, 0, sizeof(task->mm->hooks->known));
}

void hook_points_place(struct hooks *hooks, struct tracer *tracer, struct task *task,
		       const struct stretch *mapped)
{
	struct doubtful doubtful = {0};
	struct mm *mm = task->mm;

	if (!mm->hooks)
		mm->hooks = calloc(1, sizeof(*mm->hooks));
	if (!mm->hooks || mm->hooks->withdrawn)
		return;
	if (mapped)
		add_doubt(&doubtful, mapped->begin, mapped->end);
	int read = modules_read(&mm->hooks->modules, hooks->objects, task->tid, module_gone,
				&doubtful);
	if (read == 0)
		settle_doubts(tracer, task, &doubtful);
	free(doubtful.items);
	if (read < 0)
		return;
	hooks_file_mapped(task);
	unsigned long beyond = 0;
	for (size_t i = 0; i < mm->hooks->modules.count; i++) {
		if (mm->hooks->modules.items[i].object)
			beyond += place_module(hooks, tracer, task, &mm->hooks->modules.items[i]);
	}
	if (beyond > hooks->beyond)
		hooks->beyond = beyond;
}

/* Maps a page near the code. */
static uint64_t map_page(struct tracer *tracer, struct task *task, const struct hook_space *space,
			 uint64_t near)
{
	const struct module *module = modules_find(&space->modules, near);
	/* Code may be larger than the distances tried. */
	uint64_t begin = module ? module->begin : near;

	return remote_map_near(tracer, task, begin, hook_blocks_size(space) + space->npages * PAGE,
			       PAGE);
}

/* @return the address of SLOT_SIZE unused bytes near the code at `address`, 0: none. */
static uint64_t take_slot(struct tracer *tracer, struct task *task, struct hook_space *space,
			  uint64_t address)
{
	for (unsigned i = 0; i < space->nfreed; i++) {
		uint64_t slot = space->freed[i];
		if (remote_reaches(slot, address)) {
			space->freed[i] = space->freed[--space->nfreed];
			return slot;
		}
	}
	for (size_t i = 0; i < space->npages; i++) {
		struct hook_page *page = &space->pages[i];
		if (page->used + SLOT_SIZE <= PAGE && remote_reaches(page->address, address)) {
			page->used += SLOT_SIZE;
			return page->address + page->used - SLOT_SIZE;
		}
	}
	struct hook_page *pages = reallocarray(space->pages, space->npages + 1, sizeof(*pages));
	uint64_t page = pages ? map_page(tracer, task, space, address) : 0;
	if (pages)
		space->pages = pages;
	if (!page)
		return 0;
	pages[space->npages++] = (struct hook_page){.address = page, .used = SLOT_SIZE};
	return page;
}

static void free_slot(struct hook_space *space, uint64_t slot)
{
	if (slot && space->nfreed < HOOK_FREED)
		space->freed[space->nfreed++] = slot;
}

uint64_t hook_points_slot(struct tracer *tracer, struct task *task, struct hook_point *point)
{
	unsigned char code[SLOT_SIZE];

	if (point->slot)
		return point->slot;
	uint64_t slot = take_slot(tracer, task, task->mm->hooks, point->address);
	size_t len =
		slot ? insn_relocate(&point->insn, point->address, slot, code, sizeof(code)) : 0;
	if (!len || memory_write(task, slot, code, len) < 0)
		return 0;
	point->slot = slot;
	return slot;
}

uint64_t hook_points_data(struct tracer *tracer, struct task *task, struct hook_space *space,
			  const void *bytes, size_t len)
{
	/* Used for one call only, so one place does; any will. */
	if (!space->data)
		space->data = take_slot(tracer, task, space, task->mm->entry);
	if (!space->data || len > SLOT_SIZE || memory_write(task, space->data, bytes, len) < 0)
		return 0;
	return space->data;
}

bool hook_points_plant_return(struct hooks *hooks, struct tracer *tracer, struct task *task,
			      uint64_t address)
{
	struct hook_space *space = task->mm->hooks;
	struct hook_point *point = map_get(&space->points, address);
	unsigned char bytes[INSN_MAX];
	struct insn insn;

	/* Where a jump lies nothing stops. */
	if (point && point->stub)
		return false;
	if (point) {
		point->waiting++;
		return true;
	}
	const struct module *module = modules_find(&space->modules, address);
	if (module && module->shared)
		return false;
	ssize_t n = memory_read(tracer, task, address, bytes, sizeof(bytes));
	if (n <= 0 || insn_decode(hooks->decoder, bytes, (size_t)n, address, &insn) < 0 ||
	    insn.kind == INSN_REFUSED)
		return false;
	point = hook_points_add(space, address, NULL, &insn);
	if (!point)
		return false;
	if ((needs_copy(tracer, &insn) && !hook_points_slot(tracer, task, point)) ||
	    !hook_point_write(task, address)) {
		remove_point(space, point);
		return false;
	}
	point->waiting = 1;
	return true;
}

void hook_points_drop_return(struct tracer *tracer, struct task *task, struct hook_point *point)
{
	if (point->waiting > 0 && --point->waiting > 0)
		return;
	if (point->place)
		return;
	/* For good: a thread that has hit it meanwhile is told from the byte that is there now. */
	if (hook_point_take_out(tracer, task, point) == 0 ||
	    !hook_point_is_there(tracer, task, point)) {
		/* Its copy may be where a thread stands, if it was executed there. */
		if (!point->slot_used)
			free_slot(task->mm->hooks, point->slot);
		remove_point(task->mm->hooks, point);
	}
}

bool hook_space_has(const struct hook_space *space, uint64_t address)
{
	return space && map_get(&space->points, address);
}

static int copy_states(struct hook_space *to, const struct hook_space *from)
{
	for (unsigned i = 0; i < HOOK_LAYERS; i++) {
		if (!from->states[i])
			continue;
		to->states[i] = hook_library(i)->copy(from->states[i]);
		if (!to->states[i])
			return -1;
	}
	return 0;
}

struct hook_space *hook_space_copy(const struct hook_space *space)
{
	struct map_slot *slot;
	size_t at = 0;

	if (!space)
		return NULL;
	struct hook_space *copy = calloc(1, sizeof(*copy));
	if (!copy || modules_copy(&copy->modules, &space->modules) < 0) {
		free(copy);
		return NULL;
	}
	copy->pages = reallocarray(NULL, space->npages + 1, sizeof(*copy->pages));
	if (!copy->pages) {
		hook_space_free(copy);
		return NULL;
	}
	if (space->npages)
		memcpy(copy->pages, space->pages, space->npages * sizeof(*copy->pages));
	copy->npages = space->npages;
	if (hook_blocks_copy(copy, space) < 0) {
		hook_space_free(copy);
		return NULL;
	}
	copy->data = space->data;
	copy->user_hooks = space->user_hooks;
	copy->withdrawn = space->withdrawn;
	copy->brief_over = space->brief_over;
	copy->brief_hits = space->brief_hits;
	copy->lifted_until = space->lifted_until;
	if (copy_states(copy, space) < 0) {
		hook_space_free(copy);
		return NULL;
	}
	while ((slot = map_next(&space->points, &at))) {
		const struct hook_point *point = slot->value;
		struct hook_point *same =
			hook_points_add(copy, point->address, point->place, &point->insn);
		if (!same) {
			hook_space_free(copy);
			return NULL;
		}
		same->slot = point->slot;
		same->stub = point->stub;
		same->lifted = point->lifted;
		same->second = point->second;
		copy->lifted += point->lifted && !hook_point_is_lifted_for_good(space, point);
		same->waiting = point->waiting;
	}
	return copy;
}

void hook_space_free(struct hook_space *space)
{
	if (!space)
		return;
	map_free_values(&space->points);
	modules_free(&space->modules);
	for (unsigned i = 0; i < HOOK_LAYERS; i++) {
		if (space->states[i])
			hook_library(i)->free(space->states[i]);
	}
	hook_blocks_free(space);
	free(space->pages);
	free(space);
}
