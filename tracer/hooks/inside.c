/* Hooks without stops: which functions' calls can be recorded inside the program, and the jumps that lead to it. A jump
 * is placed when its code has just been mapped, and nobody can have been there. */
#include "symbols/room.h"
#include "tracer/hooks/internal.h"
#include "tracer/memory.h"
#include "tracer/recorder/agent/layout.h"
#include "tracer/remote.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 4096

/* --- which functions --------------------------------------------------------------------------- */

/* @return whether the agent, or the tracer from a record, can tell what a stream's call is about. */
static bool is_simple(const struct hook_row *row, enum hook_outside *why)
{
	*why = HOOK_OUT_TEXT;
	for (const struct hook_field *f = row->fields; f->kind != HOOK_END; f++) {
		switch (f->kind) {
		case HOOK_STREAM:
		case HOOK_STDIN:
		case HOOK_STDOUT:
		case HOOK_STDERR:
		case HOOK_INT:
		case HOOK_LONG:
		case HOOK_SIZE:
			break;
		default:
			return false;
		}
	}
	*why = HOOK_OUT_STREAM;
	return row->result != HOOK_R_POINTER || row->fields[0].kind != HOOK_END;
}

bool hook_is_recorded(struct hooks *hooks, const struct hook_function *function)
{
	enum hook_outside why = HOOK_OUT_COUNT;

	if (function->chooses)
		why = HOOK_OUT_CHOICE;
	else if (function->brief)
		why = HOOK_OUT_BRIEF;
	else if (function->layer != HOOK_FUNC && function->layer != HOOK_STDIO)
		why = HOOK_OUT_LAYER;
	else if (function->layer == HOOK_STDIO && function->libc != OBJECT_GLIBC)
		why = HOOK_OUT_LIBC;
	else if (function->layer == HOOK_FUNC || is_simple(function->row, &why))
		return true;
	hooks->inside.outside[why]++;
	return false;
}

/* What is to be recorded of a function beside its registers. */
static void fill_recipe(struct hook_jump *jump, const struct hook_place *place)
{
	const struct hook_row *row = place->function ? place->function->row : NULL;

	if (jump->exit)
		jump->recipe[RECIPE_FILLED] = place->filled;
	if (jump->exit || !row)
		return;
	for (const struct hook_field *f = row->fields; f->kind != HOOK_END; f++) {
		if (f->kind == HOOK_STREAM)
			jump->recipe[RECIPE_STREAM] = f->arg + 1;
		if (f->kind == HOOK_STDIN || f->kind == HOOK_STDOUT || f->kind == HOOK_STDERR)
			jump->recipe[RECIPE_FIXED] = (unsigned char)(f->kind - HOOK_STDIN + 1);
	}
	if (row->bytes == HOOK_B_STRING || row->bytes == HOOK_B_LINE)
		jump->recipe[RECIPE_STRING] = row->bytes_arg + 1;
}

/* --- which places ------------------------------------------------------------------------------ */

/* @return whether a place is to have a jump, if there is room. */
static bool wants_jump(const struct hook_place *place)
{
	if (place->tail)
		return false;
	if (place->function)
		return place->function->recorded && !place->ret;
	return place->exits && !place->stops && !place->mixed;
}

/* An object's jumps, while they are being chosen. */
struct choice {
	struct hooks *hooks;
	const struct object *object;
	struct rooms *rooms;
};

/* @param from  the jump of an exit must not begin before. @return 0, or -1 with errno ENOMEM. */
static int find_jump(const struct choice *choice, struct hook_place *place, uint64_t from)
{
	bool exit = !place->function;
	struct room room;
	size_t len = 0;

	if (exit)
		rooms_exit(choice->rooms, place->address, from, &room);
	else
		rooms_entry(choice->rooms, place->address, &room);
	const unsigned char *code = object_code(choice->object, room.begin, &len);
	if (room.refused || !code || len < room.len)
		return 0;
	struct hook_jump *jump = malloc(sizeof(*jump));
	if (!jump)
		return -1;
	if (hook_jump_make(jump, choice->hooks->decoder, &room, exit, code) < 0) {
		free(jump);
		return 0;
	}
	fill_recipe(jump, place);
	place->jump = jump;
	return 0;
}

static uint64_t first_byte(const struct hook_place *place)
{
	return place->jump ? place->jump->begin : place->address;
}

static uint64_t end_byte(const struct hook_place *place)
{
	return place->jump ? place->jump->begin + place->jump->len : place->address + 1;
}

static int by_first_byte(const void *a, const void *b)
{
	uint64_t x = first_byte(*(struct hook_place *const *)a);
	uint64_t y = first_byte(*(struct hook_place *const *)b);

	return (x > y) - (x < y);
}

static void drop_jump(struct hook_place *place)
{
	free(place->jump);
	place->jump = NULL;
}

static bool share_bytes(const struct hook_place *a, const struct hook_place *b)
{
	return end_byte(a) > first_byte(b) && end_byte(b) > first_byte(a);
}

/* Of two places no jump of one may have bytes of the other's: an exit may find its room behind, or has none.
 * @return 0, or -1 with errno ENOMEM. */
static int settle(const struct choice *choice, struct hook_place *a, struct hook_place *b)
{
	if (!share_bytes(a, b))
		return 0;
	struct hook_place *exit = a->function || (!b->function && b->address > a->address) ? b : a;
	uint64_t from = end_byte(exit == a ? b : a);
	bool again = exit->jump && !exit->function && exit->address >= from;
	drop_jump(exit);
	if (again && find_jump(choice, exit, from) < 0)
		return -1;
	if (share_bytes(a, b)) {
		drop_jump(a);
		drop_jump(b);
	}
	return 0;
}

static int settle_all(const struct choice *choice, struct hook_object *result)
{
	struct hook_place **places = calloc(result->nplaces + 1, sizeof(struct hook_place *));

	if (!places)
		return -1;
	for (size_t i = 0; i < result->nplaces; i++)
		places[i] = &result->places[i];
	qsort(places, result->nplaces, sizeof(struct hook_place *), by_first_byte);
	int done = 0;
	for (size_t i = 0; i < result->nplaces && done == 0; i++) {
		/* As many as can begin within one room; one that has lost its jump begins later. */
		for (size_t k = i + 1; k < result->nplaces && k <= i + 2 * INSN_MAX && done == 0;
		     k++)
			done = settle(choice, places[i], places[k]);
	}
	free(places);
	return done;
}

static void count_jumps(struct hooks *hooks, const struct hook_object *result)
{
	struct hook_inside *inside = &hooks->inside;

	for (size_t i = 0; i < result->nplaces; i++) {
		const struct hook_place *place = &result->places[i];
		if (place->function && place->function->recorded) {
			inside->functions += place->jump != NULL;
			inside->entries += !place->jump;
		} else if (place->exits && !place->stops) {
			inside->jumps += place->jump != NULL;
			inside->exits += !place->jump;
		}
	}
}

int hook_jumps_find(struct hooks *hooks, const struct object *object, struct hook_object *result)
{
	struct choice choice = {hooks, object, NULL};
	int done = 0;

	for (size_t i = 0; i < result->nfunctions && done == 0; i++) {
		if (!result->functions[i].recorded)
			continue;
		if (!choice.rooms)
			choice.rooms = rooms_new(object, hooks->decoder);
		done = choice.rooms ? rooms_learn(choice.rooms, result->functions[i].address) : -1;
	}
	for (size_t i = 0; choice.rooms && i < result->nplaces && done == 0; i++) {
		if (wants_jump(&result->places[i]))
			done = find_jump(&choice, &result->places[i], 0);
	}
	if (choice.rooms && done == 0)
		done = settle_all(&choice, result);
	rooms_free(choice.rooms);
	count_jumps(hooks, result);
	return done;
}

/* --- in an address space ----------------------------------------------------------------------- */

/* @return room for so many stubs near the module, NULL: none. */
static struct hook_block *take_block(struct tracer *tracer, struct task *task,
				     const struct module *module, size_t count)
{
	struct hook_space *space = task->mm->hooks;
	size_t size = (count * HOOK_STUB_SIZE + PAGE - 1) & ~(size_t)(PAGE - 1);
	size_t others = hook_blocks_size(space) + space->npages * PAGE;

	for (size_t i = 0; i < space->nblocks; i++) {
		struct hook_block *block = &space->blocks[i];
		if (block->count == 0 && block->room >= count &&
		    remote_reaches(block->address, module->begin))
			return block;
	}
	struct hook_block *blocks =
		reallocarray(space->blocks, space->nblocks + 1, sizeof(*blocks));
	if (!blocks)
		return NULL;
	space->blocks = blocks;
	size_t room = size / HOOK_STUB_SIZE;
	uint64_t *points = calloc(room, sizeof(*points));
	uint64_t address = points ? remote_map_near(tracer, task, module->begin, others, size) : 0;
	if (!address) {
		free(points);
		return NULL;
	}
	blocks[space->nblocks] =
		(struct hook_block){.address = address, .room = room, .points = points};
	return &blocks[space->nblocks++];
}

/* @return whether a jump may go where the file's code is still what was planned. */
static bool is_as_planned(struct tracer *tracer, struct task *task, const struct module *module,
			  const struct hook_jump *jump)
{
	uint64_t begin = module->bias + jump->begin;
	unsigned char bytes[ROOM_JUMP * INSN_MAX];
	size_t len = 0;
	const unsigned char *code = object_code(module->object, jump->begin, &len);

	if (task->mm->entry_pending && task->mm->entry >= begin &&
	    task->mm->entry < begin + jump->len)
		return false;
	return code && len >= jump->len &&
	       memory_read(tracer, task, begin, bytes, jump->len) == jump->len &&
	       memcmp(bytes, code, jump->len) == 0;
}

static bool may_have(struct tracer *tracer, struct task *task, const struct module *module,
		     const struct hook_place *place)
{
	const struct hook_space *space = task->mm->hooks;
	uint64_t address = module->bias + place->address;

	if (!place->jump || address >= module->end ||
	    module->bias + place->jump->begin < module->begin ||
	    module->bias + place->jump->begin + place->jump->len > module->end ||
	    map_get(&space->points, address))
		return false;
	return is_as_planned(tracer, task, module, place->jump);
}

struct placing {
	const struct hook_place **wanted; /* the places that are to have jumps */
	size_t count;
	struct hook_block *block;
	unsigned char *stubs;
	/* By stub: */
	unsigned char (*jumps)[ROOM_JUMP];
	const struct hook_place **places;
};

/* By -x: --max-hooks limits these. */
static bool is_users(const struct hook_place *place)
{
	return place->function && !place->function->row;
}

static void choose_places(struct tracer *tracer, struct task *task, const struct module *module,
			  const struct hook_object *object, struct placing *p)
{
	unsigned long users = task->mm->hooks->user_hooks;

	for (size_t i = 0; i < object->nplaces; i++) {
		const struct hook_place *place = &object->places[i];
		if ((is_users(place) && users >= tracer->hooks->options.max_hooks) ||
		    !may_have(tracer, task, module, place))
			continue;
		users += is_users(place);
		p->wanted[p->count++] = place;
	}
}

static void make_stub(const struct module *module, const struct hook_place *place,
		      struct placing *p)
{
	const struct hook_jump *jump = place->jump;
	size_t n = p->block->count;
	uint64_t begin = module->bias + jump->begin;

	if (n == p->block->room)
		return;
	uint64_t target = hook_stub_make(jump, begin, p->block->address + n * HOOK_STUB_SIZE,
					 p->stubs + n * HOOK_STUB_SIZE);
	if (!target || hook_jump_bytes(begin, target, p->jumps[n]) < 0)
		return;
	p->places[n] = place;
	p->block->points[n] = module->bias + place->address;
	p->block->count++;
}

static void write_jumps(struct task *task, const struct module *module, const struct placing *p)
{
	struct hook_space *space = task->mm->hooks;

	for (size_t i = 0; i < p->block->count; i++) {
		const struct hook_place *place = p->places[i];
		struct hook_point *point =
			place ? hook_points_add(space, module->bias + place->address, place,
						&place->insn)
			      : NULL;
		if (!point)
			continue;
		point->stub = p->block->address + i * HOOK_STUB_SIZE;
		if (memory_write(task, module->bias + place->jump->begin, p->jumps[i], ROOM_JUMP) <
		    0) {
			/* Nothing can be written, breakpoints neither. */
			map_remove(&space->points, point->address);
			free(point);
			continue;
		}
		space->user_hooks += is_users(place);
	}
}

void hook_jumps_place(struct tracer *tracer, struct task *task, const struct module *module,
		      const struct hook_object *object)
{
	struct placing p = {.wanted = calloc(object->nplaces + 1, sizeof(struct hook_place *))};

	if (p.wanted)
		choose_places(tracer, task, module, object, &p);
	if (!p.count || !(p.block = take_block(tracer, task, module, p.count)))
		goto out;
	p.stubs = calloc(p.count, HOOK_STUB_SIZE);
	p.jumps = calloc(p.count, sizeof(*p.jumps));
	p.places = calloc(p.count, sizeof(struct hook_place *));
	if (p.stubs && p.jumps && p.places) {
		for (size_t i = 0; i < p.count; i++)
			make_stub(module, p.wanted[i], &p);
		if (memory_write(task, p.block->address, p.stubs,
				 p.block->count * HOOK_STUB_SIZE) == 0)
			write_jumps(task, module, &p);
	}
	free(p.stubs);
	free(p.jumps);
	free(p.places);
out:
	free(p.wanted);
}

/* @return whether some point has its stub in the block. */
static bool is_in_use(const struct hook_space *space, const struct hook_block *block)
{
	for (size_t i = 0; i < block->count; i++) {
		const struct hook_point *point = map_get(&space->points, block->points[i]);
		if (point && point->stub == block->address + i * HOOK_STUB_SIZE)
			return true;
	}
	return false;
}

void hook_jumps_forget(struct hook_space *space)
{
	for (size_t i = 0; i < space->nblocks; i++) {
		if (!is_in_use(space, &space->blocks[i]))
			space->blocks[i].count = 0;
	}
}

size_t hook_blocks_size(const struct hook_space *space)
{
	size_t size = 0;

	for (size_t i = 0; i < space->nblocks; i++)
		size += space->blocks[i].room * HOOK_STUB_SIZE;
	return size;
}

int hook_blocks_copy(struct hook_space *to, const struct hook_space *from)
{
	to->blocks = calloc(from->nblocks + 1, sizeof(*to->blocks));
	for (size_t i = 0; to->blocks && i < from->nblocks; i++) {
		const struct hook_block *block = &from->blocks[i];
		struct hook_block *copy = &to->blocks[to->nblocks];
		*copy = *block;
		copy->points = reallocarray(NULL, block->room, sizeof(*copy->points));
		if (!copy->points)
			return -1;
		memcpy(copy->points, block->points, block->room * sizeof(*copy->points));
		to->nblocks++;
	}
	return to->blocks ? 0 : -1;
}

void hook_blocks_free(struct hook_space *space)
{
	for (size_t i = 0; i < space->nblocks; i++)
		free(space->blocks[i].points);
	free(space->blocks);
}

struct hook_point *hook_point_of_stub(const struct hook_space *space, uint64_t address,
				      size_t *offset)
{
	for (size_t i = 0; i < space->nblocks; i++) {
		const struct hook_block *block = &space->blocks[i];
		if (address < block->address ||
		    address - block->address >= block->count * HOOK_STUB_SIZE)
			continue;
		size_t at = address - block->address;
		struct hook_point *point =
			map_get(&space->points, block->points[at / HOOK_STUB_SIZE]);
		*offset = at % HOOK_STUB_SIZE;
		return point && point->place && point->place->jump ? point : NULL;
	}
	return NULL;
}

uint64_t hook_jump_address(const struct hook_point *point)
{
	return point->address - (point->place->address - point->place->jump->begin);
}

/* @return the breakpoint at a return address that lies on a jump's first byte, NULL: none does. */
static struct hook_point *return_at(const struct hook_space *space, uint64_t begin)
{
	struct hook_point *point = map_get(&space->points, begin);

	return point && !point->place ? point : NULL;
}

bool hook_point_is_there(struct tracer *tracer, struct task *task, const struct hook_point *point)
{
	unsigned char bytes[ROOM_JUMP];

	if (!point->stub)
		return memory_read(tracer, task, point->address, bytes, 1) == 1 &&
		       bytes[0] == ARCH_BREAKPOINT;
	uint64_t begin = hook_jump_address(point);
	if (memory_read(tracer, task, begin, bytes, sizeof(bytes)) != sizeof(bytes))
		return false;
	const struct hook_point *returns = return_at(task->mm->hooks, begin);
	if (returns && bytes[0] == ARCH_BREAKPOINT)
		bytes[0] = returns->insn.bytes[0];
	return hook_jump_target(begin, bytes) - point->stub < HOOK_STUB_SIZE;
}

/* What a jump has displaced goes back. Others may run: none of them finds half of it, for a breakpoint keeps them from
 * there until the rest has been written, and whoever has hit that begins again. */
static int write_back(struct task *task, uint64_t begin, const unsigned char *bytes, size_t len)
{
	const unsigned char breakpoint = ARCH_BREAKPOINT;

	if (task->mm->refs == 1)
		return memory_write(task, begin, bytes, len);
	if (memory_write(task, begin, &breakpoint, 1) < 0 ||
	    memory_write(task, begin + 1, bytes + 1, len - 1) < 0)
		return -1;
	return memory_write(task, begin, bytes, 1);
}

/* A breakpoint at a return address may lie on the jump's first byte: it stays, on what is there now. */
static void keep_return(const struct hook_space *space, uint64_t begin, const struct insn *insn,
			unsigned char *byte)
{
	struct hook_point *point = return_at(space, begin);

	if (!point)
		return;
	point->insn = *insn;
	if (!point->lifted)
		*byte = ARCH_BREAKPOINT;
}

int hook_point_take_out(struct tracer *tracer, struct task *task, const struct hook_point *point)
{
	unsigned char bytes[ROOM_JUMP * INSN_MAX];
	size_t len = 0;

	if (!hook_point_is_there(tracer, task, point))
		return -1;
	if (!point->stub)
		return memory_write(task, point->address, point->insn.bytes, 1);
	const struct hook_jump *jump = point->place->jump;
	uint64_t begin = hook_jump_address(point);
	for (unsigned i = 0; i < jump->ninsns; i++) {
		memcpy(bytes + len, jump->insns[i].bytes, jump->insns[i].len);
		len += jump->insns[i].len;
	}
	keep_return(task->mm->hooks, begin, &jump->insns[0], bytes);
	/* Padding that was broken is nobody's. */
	return write_back(task, begin, bytes, len < ROOM_JUMP ? len : ROOM_JUMP);
}

/* --- what happens there ------------------------------------------------------------------------ */

void hooks_recorded(struct tracer *tracer, struct task *task, const struct hook_moment *at)
{
	const struct hook_space *space = task->mm->hooks;
	size_t offset;
	const struct hook_point *point =
		space ? hook_point_of_stub(space, at->stub, &offset) : NULL;

	if (!point)
		return;
	tracer->hooks->inside.records++;
	hook_point_reached(tracer, task, point, at);
}
