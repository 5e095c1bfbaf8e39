/* The paths through a function: every instruction that can be reached from its entry, and the
 * places where it is left. */
#ifndef SYMBOLS_WALK_H
#define SYMBOLS_WALK_H

#include "base/map.h"
#include "symbols/insn.h"
#include "symbols/object.h"
#include "symbols/parse.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A function with more parts jumps to functions, and these to others: the last ones are not
 * followed. */
#define WALK_PIECES 48
#define WALK_DEPTH  6

#define WALK_NO_STEP SIZE_MAX

/* A stretch of code with bounds of its own: the function, a .cold part, what a tail call leads
 * to. */
struct walk_piece {
	uint64_t begin;
	uint64_t end;
	const unsigned char *code;
	unsigned char *marks; /* one for each byte */
	uint32_t *latest;     /* the same: 1 + the last step that was noted there, 0: none */
	unsigned depth;       /* tail calls away from the function */
	bool sweep;           /* a jump may lead to anywhere in it */
	bool must_sweep;
	bool swept;
	bool has_data;       /* it cannot be swept */
	int32_t sweep_depth; /* of the stack, at that jump */
};

/* An instruction that was reached, and the one from which: the steps back lead to the entry on a
 * way that the program can take. An instruction has a step for each way that leads to it. */
struct walk_step {
	uint64_t address;
	size_t previous; /* WALK_NO_STEP: none */
	unsigned piece;
	int32_t depth; /* of the stack before it, below the entry's; REGS_DEPTH_UNKNOWN */
	uint32_t same; /* 1 + another step at this address, 0: no more */
	uint32_t seen; /* by this search; of the latest step at an address */
};

struct walk_exit {
	uint64_t address;
	bool tail;
};

/* What earlier walks have found of functions that others jump to: all of printf's kin lead to one. */
struct walk_cache {
	struct map by_function;
};

struct walk_part;
struct walk_jump;

struct walk {
	const struct object *object;
	struct insn_decoder *decoder;
	struct walk_cache *cache; /* NULL: none */
	unsigned nesting;         /* walks for the sake of which this one is made */
	const struct walk_part *parts[WALK_PIECES]; /* functions whose exits were taken over */
	unsigned nparts;
	unsigned npart_pieces;
	unsigned deepest; /* tail calls away from the function, of what was followed */
	bool cut;         /* the limits have kept it from following more */
	struct walk_piece pieces[WALK_PIECES];
	unsigned npieces;
	struct walk_step *steps;
	size_t nsteps;
	size_t steps_size;
	size_t *todo; /* steps that are still to be taken */
	size_t ntodo;
	size_t todo_size;
	struct walk_exit *exits;
	size_t nexits;
	size_t exits_size;
	struct walk_jump *jumps; /* those that are indirect */
	size_t njumps;
	size_t jumps_size;
	uint32_t searches; /* that have been made through the steps */
	size_t searched;   /* instructions that they have looked at */
	bool ways_lost;    /* not every way to an instruction has its step: there were too many */
	uint64_t function;
	uint64_t entry;      /* where the entry's breakpoint will be */
	bool loops;          /* a jump leads there */
	const char *refused; /* why the exits cannot be known; NULL: they are */
	bool failed;         /* out of memory */
};

/* Walks the function at `address`; of the walk `object`, `decoder` and `cache` are set, the rest is zero.
 * @return 0, with `refused` or the exits, or -1 with errno ENOMEM; to be freed in all cases. */
int walk_function(struct walk *walk, uint64_t address);
void walk_free(struct walk *walk);
void walk_cache_free(struct walk_cache *cache);

/* @return whether an instruction that was reached has the byte at `address` inside, not as its
 * first. */
bool walk_is_inside(const struct walk *walk, uint64_t address);

/* @return a step at the same address as `step`, the first of all of them. */
size_t walk_way(const struct walk *walk, size_t step);
/* @return the one behind `way`, WALK_NO_STEP: no more. */
size_t walk_other_way(const struct walk *walk, size_t way);

/* The instruction of a step, once more. */
void walk_parse(const struct walk *walk, size_t step, struct parse *parse);

/* @return the piece that holds `address`, NULL: none. */
struct walk_piece *walk_piece_at(struct walk *walk, uint64_t address);

#endif
