/* Room for jumps: where a jump can take the place of the instructions that a breakpoint of a plan would lie at. They are
 * executed elsewhere then, so nothing else may lead to any but the first of them: no branch, no jump through a table,
 * no landing pad of an exception. What is not certain is refused, and stays with its breakpoint. */
#ifndef SYMBOLS_ROOM_H
#define SYMBOLS_ROOM_H

#include "symbols/insn.h"
#include "symbols/object.h"

#include <stddef.h>
#include <stdint.h>

/* A near jump. */
#define ROOM_JUMP 5

struct room {
	uint64_t begin;
	/* Bytes that the jump takes or breaks: whole instructions, and behind a `ret` padding. */
	unsigned char len;
	const char *refused; /* why there is none, in a few words; NULL: there is */
};

/* What is known of an object's code: where its branches lead. */
struct rooms;

/* @param object, decoder  borrowed. @return NULL with errno ENOMEM. */
struct rooms *rooms_new(const struct object *object, struct insn_decoder *decoder);
void rooms_free(struct rooms *rooms);

/* Looks at the function at `address` and at all that its plan was made from. All functions that get jumps have to be
 * known before the first room is asked for: they may share code. @return 0, or -1 with errno ENOMEM. */
int rooms_learn(struct rooms *rooms, uint64_t address);

/* At an entry, as the plan has it: the first instructions, whole ones. */
void rooms_entry(const struct rooms *rooms, uint64_t address, struct room *room);

/* At a `ret`: it and the straight instructions that lead to it, as many as are needed.
 * @param from  what lies before belongs to another jump; 0: nothing does. */
void rooms_exit(const struct rooms *rooms, uint64_t address, uint64_t from, struct room *room);

#endif
