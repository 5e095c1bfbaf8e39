/* Where breakpoints go so that each call of a function is seen to begin and to end. Nothing on the
 * stack is ever changed, and no return address is watched: a jump to one looks like a return. */
#ifndef SYMBOLS_PLAN_H
#define SYMBOLS_PLAN_H

#include "symbols/insn.h"
#include "symbols/object.h"

enum plan_kind {
	PLAN_ENTRY, /* behind an endbr64, where there is one */
	PLAN_RET,
	PLAN_TAIL, /* a jump out of the function: for that one call its end is at the return address */
};

/* What a hit means is told by the frame rule: an exit is that of the call whose stack pointer and
 * return address it has. So functions may share exits; and a TAIL at which the stack pointer is not
 * the entry's is a jump that stays inside, and nothing is to be done at what lies on the stack. */
struct plan_place {
	uint64_t address; /* the object's */
	enum plan_kind kind;
	/* Of a TAIL, and of an ENTRY that is such a jump itself: a function that is no more. */
	bool tail;
	/* What the breakpoint displaces. JCC as a TAIL: the call ends only if it jumps. RET as an
	 * ENTRY (a function that is nothing else): the call begins and ends. */
	struct insn insn;
};

struct plan {
	uint64_t function;
	const char *refused; /* why it cannot be hooked; NULL: it can */
	/* A jump inside leads back to the entry: a hit with the stack pointer and return address of
	 * a call that is open is no new call. */
	bool loops;
	struct plan_place *places; /* by address, no two at one */
	size_t nplaces;
};

/* Finds the entry and all exits of the function at `address`: it decodes every path through the
 * function from its entry, follows branches and jump tables within its bounds, and direct jumps out
 * of it (tail calls, .cold parts) into what they lead to. What it refuses it names.
 * @return the plan, kept with the object as its attachment, NULL with errno ENOMEM. */
const struct plan *plan_function(struct object *object, struct insn_decoder *decoder,
				 uint64_t address);

#endif
