#include "symbols/plan.h"

#include "base/map.h"
#include "symbols/walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The plans of an object's functions. */
struct plans {
	struct map by_function;
	struct walk_cache walks;
};

static void free_plan(struct plan *plan)
{
	free(plan->places);
	free(plan);
}

static void release_plans(void *data)
{
	struct plans *plans = data;
	size_t at = 0;
	struct map_slot *slot;

	while ((slot = map_next(&plans->by_function, &at)))
		free_plan(slot->value);
	map_free(&plans->by_function);
	walk_cache_free(&plans->walks);
	free(plans);
}

/* @return those of the object, NULL when out of memory. */
static struct plans *plans_of(struct object *object)
{
	struct plans *plans = object_attachment(object);

	if (!plans) {
		plans = calloc(1, sizeof(*plans));
		if (plans)
			object_attach(object, plans, release_plans);
	}
	return plans;
}

/* @return whether the entry compares the stack pointer with a limit that Go (of several versions)
 * or split stacks keep. Behind that comes a call that moves the stack, and a jump back to the
 * entry. */
static bool grows_stack(const struct object *object, uint64_t address)
{
	static const struct {
		unsigned char len;
		unsigned char bytes[9];
	} forms[] = {
		{4, {0x49, 0x3b, 0x66, 0x10}}, /* cmp 0x10(%r14),%rsp */
		{4, {0x4d, 0x3b, 0x66, 0x10}}, /* cmp 0x10(%r14),%r12 */
		{4, {0x48, 0x3b, 0x61, 0x10}}, /* cmp 0x10(%rcx),%rsp */
		{9, {0x64, 0x48, 0x3b, 0x24, 0x25, 0x70, 0x00, 0x00, 0x00}}, /* cmp %fs:0x70,%rsp */
	};
	/* Behind what computes the limit. */
	enum { REACH = 24 };
	size_t len = 0;
	const unsigned char *code = object_code(object, address, &len);

	for (size_t at = 0; code && at < REACH; at++) {
		for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
			if (len >= at + forms[i].len &&
			    memcmp(code + at, forms[i].bytes, forms[i].len) == 0)
				return true;
		}
	}
	return false;
}

static bool has_symbol(const struct object *object, uint64_t address)
{
	size_t count;
	const struct object_symbol *symbols = object_symbols(object, &count);

	size_t below = object_symbols_up_to(object, address);

	return below > 0 && symbols[below - 1].address == address;
}

static int by_address(const void *a, const void *b)
{
	const struct plan_place *x = a;
	const struct plan_place *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return (int)x->kind - (int)y->kind;
}

/* Makes one place of those at the same address. An entry that is an exit as well stays the
 * entry. */
static void merge(struct plan *plan)
{
	size_t kept = 0;

	qsort(plan->places, plan->nplaces, sizeof(*plan->places), by_address);
	for (size_t i = 1; i < plan->nplaces; i++) {
		if (plan->places[kept].address == plan->places[i].address)
			plan->places[kept].tail |= plan->places[i].tail;
		else
			plan->places[++kept] = plan->places[i];
	}
	plan->nplaces = kept + 1;
}

/* Decodes what lies at the places. */
static const char *decode_places(const struct plan *plan, const struct walk *walk)
{
	for (size_t i = 0; i < plan->nplaces; i++) {
		struct plan_place *place = &plan->places[i];
		size_t len = 0;
		const unsigned char *code = object_code(walk->object, place->address, &len);
		bool entry = place->kind == PLAN_ENTRY;

		if (!code ||
		    insn_decode(walk->decoder, code, len, place->address, &place->insn) < 0)
			return "its first instruction is not understood";
		if (place->insn.kind == INSN_REFUSED)
			return entry ? place->insn.reason
				     : "an exit of a form that cannot be hooked";
		if (walk_is_inside(walk, place->address))
			return "its instructions overlap";
	}
	return NULL;
}

/* Turns the walk into places. @return 0, or -1 with errno ENOMEM. */
static int take_places(struct plan *plan, const struct walk *walk)
{
	plan->places = calloc(walk->nexits + 1, sizeof(*plan->places));
	if (!plan->places)
		return -1;
	plan->places[0] = (struct plan_place){.address = walk->entry, .kind = PLAN_ENTRY};
	for (size_t i = 0; i < walk->nexits; i++) {
		const struct walk_exit *exit = &walk->exits[i];
		plan->places[i + 1] = (struct plan_place){
			.address = exit->address,
			.kind = exit->tail ? PLAN_TAIL : PLAN_RET,
			.tail = exit->tail,
		};
	}
	plan->nplaces = walk->nexits + 1;
	plan->loops = walk->loops;
	merge(plan);
	plan->refused = decode_places(plan, walk);
	return 0;
}

static void drop_places(struct plan *plan)
{
	free(plan->places);
	plan->places = NULL;
	plan->nplaces = 0;
}

/* @return 0, or -1 with errno ENOMEM. */
static int make(struct plan *plan, struct walk *walk)
{
	if (grows_stack(walk->object, plan->function)) {
		plan->refused = "its stack moves (Go, split stacks)";
		return 0;
	}
	if (walk_function(walk, plan->function) < 0)
		return -1;
	plan->refused = walk->refused;
	if (plan->refused)
		return 0;
	if (take_places(plan, walk) < 0)
		return -1;
	if (!plan->refused && plan->nplaces == 1 &&
	    plan->places[0].insn.kind == INSN_JMP_INDIRECT && plan->places[0].insn.rip_relative &&
	    !has_symbol(walk->object, plan->function))
		plan->refused = "it is a stub of the PLT";
	if (plan->refused)
		drop_places(plan);
	return 0;
}

const struct plan *plan_function(struct object *object, struct insn_decoder *decoder,
				 uint64_t address)
{
	struct plans *plans = plans_of(object);

	if (!plans)
		return NULL;
	struct walk walk = {.object = object, .decoder = decoder, .cache = &plans->walks};
	struct plan *plan = map_get(&plans->by_function, address);
	if (plan)
		return plan;
	plan = calloc(1, sizeof(*plan));
	if (!plan)
		return NULL;
	plan->function = address;
	int made = make(plan, &walk);
	walk_free(&walk);
	if (made < 0 || map_put(&plans->by_function, address, plan) < 0) {
		free_plan(plan);
		errno = ENOMEM;
		return NULL;
	}
	return plan;
}
