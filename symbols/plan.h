/* Where breakpoints go so that each call of a function is seen to begin and to end. Nothing on the stack is
 * ever changed, and no return address is watched: a jump to one looks like a return. */
#ifndef SYMBOLS_PLAN_H
#define SYMBOLS_PLAN_H

#include "symbols/insn.h"
#include "symbols/object.h"

enum plan_kind {
	PLAN_ENTRY, /* behind an endbr64, where there is one */
	PLAN_RET,
	PLAN_TAIL, /* a jump out of the function: its end is at the return address, for that one call */
};

/* What else a hit can mean is told by the frame rule: an exit is that of the call whose stack pointer and return
 * address it has. So exits may be shared by functions, and a TAIL may be a jump that stays inside when the
 * stack pointer is not the entry's: then it is none. */
struct plan_place {
	uint64_t address; /* the object's */
	enum plan_kind kind;
	bool tail;        /* of a TAIL, and of an ENTRY that is one itself (the function is a jump) */
	struct insn insn; /* what the breakpoint displaces; JCC as a TAIL: only if it jumps. A function that
			   * is nothing but a `ret` has an ENTRY with RET, which begins and ends the call */
};

struct plan {
	uint64_t function;
	const char *refused; /* why it cannot be hooked; NULL: it can */
	bool loops;          /* a jump inside leads back to the entry's place: a hit with the open frame's stack
			      * pointer and return address is no new call */
	struct plan_place *places; /* by address, no two at one */
	size_t nplaces;
};

/* Finds the entry and all exits of the function at `address`: it decodes every path through the function from its
 * entry, follows branches and jump tables within its bounds, and direct jumps out of it (tail calls,
 * .cold parts) into what they lead to. What it refuses it names.
 * @return the plan, kept with the object as its attachment, NULL with errno ENOMEM. */
const struct plan *plan_function(struct object *object, struct insn_decoder *decoder,
				 uint64_t address);

#endif
