/* Where breakpoints go so that each call of a function is seen to begin and to end. Nothing on the stack is
 * ever changed, and no return address is watched: a jump to one looks like a return. */
#ifndef SYMBOLS_PLAN_H
#define SYMBOLS_PLAN_H

#include "symbols/insn.h"
#include "symbols/object.h"

enum plan_kind {
	PLAN_ENTRY, /* behind an endbr64, where there is one */
	PLAN_RET,
	PLAN_TAIL, /* an indirect jump out of the function: its end is at the return address, for that one call */
};

struct plan_place {
	uint64_t address; /* the object's */
	enum plan_kind kind;
	struct insn insn; /* what the breakpoint displaces */
};

struct plan {
	uint64_t function;
	const char *refused; /* why it cannot be hooked; NULL: it can */
	struct plan_place *places;
	size_t nplaces;
};

/* Finds the entry and all exits of the function at `address`: it decodes every path through the function from its entry, follows branches and
 * jump tables within its bounds, and direct jumps out of it (tail calls, .cold parts) into what they lead to. What it refuses it names.
 * @return the plan, kept with the object, NULL with errno ENOMEM. */
const struct plan *plan_function(struct object *object, struct insn_decoder *decoder,
				 uint64_t address);

#endif
