/* What a jump at a hooked function leads to: it does what was displaced, and goes to the agent (recorder/agent/hooks.S),
 * which records that the function begins or ends. In a thread without a ring it is a breakpoint.
 *
 *	[what leads to the `ret`: at an exit]
 *	is %gs one of our rings? no: a breakpoint, all registers as they were
 *	rcx: the end part
 *	to the agent
 *	[the first word of the record, the recipe]
 *	end part: [what was displaced, and back: at an entry] [ret: at an exit]
 *
 * No flag and no register changes; the 8 bytes below the stack pointer do, which are nobody's there. */
#ifndef TRACER_HOOKS_STUB_H
#define TRACER_HOOKS_STUB_H

#include "symbols/insn.h"
#include "symbols/room.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Stubs lie at multiples of their size. */
#define HOOK_STUB_SIZE 128

/* Offsets in a stub. */
#define HOOK_STUB_TEST       24 /* where what was displaced at an exit has been done */
#define HOOK_STUB_BREAKPOINT 56
#define HOOK_STUB_END        96

/* A jump that can take the place of instructions; the file's. */
struct hook_jump {
	uint64_t begin;
	unsigned char len; /* bytes that it takes or breaks */
	bool exit;
	unsigned char ninsns;
	struct insn insns[ROOM_JUMP]; /* what it displaces; the last one of an exit is the `ret` */
	unsigned char recipe[8];      /* RECIPE_STREAM, … */
};

/* Decodes what lies in the room, whose bytes are given. @return 0, or -1 when it cannot be a jump's. */
int hook_jump_make(struct hook_jump *jump, struct insn_decoder *decoder, const struct room *room,
		   bool exit, const unsigned char *code);

/* Makes the stub of a jump that lies at `begin` in the process, itself to lie at `address`.
 * @return where the jump leads, 0: something is out of reach. */
uint64_t hook_stub_make(const struct hook_jump *jump, uint64_t begin, uint64_t address,
			unsigned char stub[HOOK_STUB_SIZE]);

/* Makes the jump. @return 0, or -1 when the stub is out of reach. */
int hook_jump_bytes(uint64_t begin, uint64_t target, unsigned char bytes[ROOM_JUMP]);

/* @return where a jump with these bytes leads, 0: it is none. */
uint64_t hook_jump_target(uint64_t begin, const unsigned char bytes[ROOM_JUMP]);

/* @return how many bytes the first `n` instructions take. */
size_t hook_jump_length(const struct hook_jump *jump, unsigned n);

/* @return how many of an exit's bytes are done in front of the stub's test. */
size_t hook_jump_head(const struct hook_jump *jump);

#endif
