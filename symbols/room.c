#include "symbols/room.h"

#include "base/map.h"
#include "symbols/walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Pieces of code that are looked at though nobody hooks them. C libraries, where hand-written code is, have fewer. */
#define ALL_MOST 20000

/* A `ret` and the instructions before it, from the last to the first. */
struct straight {
	uint64_t starts[ROOM_JUMP];
	unsigned count;
};

struct rooms {
	const struct object *object;
	struct insn_decoder *decoder;
	struct map
		targets;  /* addresses that something leads to, other than the instruction before */
	struct map exits; /* struct straight by the address of the `ret` */
	struct map
		taken; /* addresses of code that the program has as values: what is jumped to through them is known */
	struct map swept;  /* pieces, by their beginnings */
	struct map unsure; /* … whose jumps are not all known */
	bool all;          /* all functions have been swept */
	bool untold;       /* there may be more addresses of code in the file's data */
	bool failed;       /* out of memory */
};

static void note(struct rooms *rooms, struct map *map, uint64_t address)
{
	if (map_put(map, address, rooms) < 0)
		rooms->failed = true;
}

/* --- what is known ----------------------------------------------------------------------------- */

/* Hand-written code calls the middle of a function, too. */
static bool is_branch(const struct parse *p)
{
	return p->flow == PARSE_JMP || p->flow == PARSE_JCC ||
	       (p->flow == PARSE_CALL && p->opcode == 0xe8);
}

/* An address of code that is a value. */
static void take(void *data, uint64_t address)
{
	struct rooms *rooms = data;
	size_t len;

	if (!object_code(rooms->object, address, &len))
		return;
	note(rooms, &rooms->taken, address);
	note(rooms, &rooms->targets, address);
}

/* What the instruction loads may be the address of a label. */
static void take_value(struct rooms *rooms, const struct parse *p, uint64_t behind)
{
	if (p->flow != PARSE_NEXT)
		return;
	if (p->map == 0 && p->opcode == 0x8d && p->rip_relative)
		take(rooms, behind + (uint64_t)(int64_t)p->disp);
	else if (p->map == 0 && p->imm > 0 && !object_is_position_independent(rooms->object))
		take(rooms, (uint64_t)p->imm);
}

/* Reads the piece from its beginning to its end, for branches in what no path was found to: the ways out of landing
 * pads. Data among the code may look like anything. */
static void sweep(struct rooms *rooms, uint64_t begin, uint64_t end)
{
	size_t len = 0;
	const unsigned char *code = object_code(rooms->object, begin, &len);
	struct parse p;

	for (uint64_t at = begin; at < end; at += p.len) {
		if (!code || len < end - begin ||
		    parse_insn(rooms->decoder, code + (at - begin), end - at, at, &p) < 0) {
			note(rooms, &rooms->unsure, begin);
			return;
		}
		if (is_branch(&p))
			note(rooms, &rooms->targets, p.target);
		take_value(rooms, &p, at + p.len);
	}
}

static void learn_piece(struct rooms *rooms, uint64_t address);

static void learn_pad(void *data, uint64_t pad)
{
	struct rooms *rooms = data;

	note(rooms, &rooms->targets, pad);
	learn_piece(rooms, pad);
}

/* The piece that holds the address, and those that exceptions lead to from there. */
static void learn_piece(struct rooms *rooms, uint64_t address)
{
	uint64_t begin;
	uint64_t end;

	if (!object_bounds(rooms->object, address, &begin, &end) || map_get(&rooms->swept, begin))
		return;
	note(rooms, &rooms->swept, begin);
	if (rooms->failed)
		return;
	sweep(rooms, begin, end);
	if (!object_landing_pads(rooms->object, begin, learn_pad, rooms))
		note(rooms, &rooms->unsure, begin);
}

/* @return the step from which control runs on to this one, WALK_NO_STEP: none, it is led to. */
static size_t step_before(const struct walk *walk, size_t step)
{
	size_t previous = walk->steps[step].previous;
	struct parse p;

	if (previous == WALK_NO_STEP || walk->steps[previous].piece != walk->steps[step].piece)
		return WALK_NO_STEP;
	walk_parse(walk, previous, &p);
	return walk->steps[previous].address + p.len == walk->steps[step].address ? previous
										  : WALK_NO_STEP;
}

static void learn_exit(struct rooms *rooms, const struct walk *walk, size_t step)
{
	uint64_t address = walk->steps[step].address;
	struct straight *known = map_get(&rooms->exits, address);
	struct straight exit = {.count = 0};

	while (step != WALK_NO_STEP && exit.count < ROOM_JUMP) {
		exit.starts[exit.count++] = walk->steps[step].address;
		step = step_before(walk, step);
	}
	if (!known) {
		known = calloc(1, sizeof(*known));
		if (!known || map_put(&rooms->exits, address, known) < 0) {
			free(known);
			rooms->failed = true;
			return;
		}
	}
	if (exit.count > known->count)
		*known = exit;
}

static void learn_step(struct rooms *rooms, const struct walk *walk, size_t step)
{
	struct parse p;

	walk_parse(walk, step, &p);
	if (step_before(walk, step) == WALK_NO_STEP)
		note(rooms, &rooms->targets, walk->steps[step].address);
	if (is_branch(&p))
		note(rooms, &rooms->targets, p.target);
	if (p.flow == PARSE_RET)
		learn_exit(rooms, walk, step);
}

/* Everything that has a name or an entry in .eh_frame, for branches to the middle of functions, which only hand-written
 * code has. A name in the middle is led to from wherever it is known. */
static void learn_all(struct rooms *rooms)
{
	size_t count;
	const struct object_symbol *symbols = object_symbols(rooms->object, &count);
	uint64_t begin;
	uint64_t end;

	rooms->all = true;
	for (size_t i = 0; i < count && !rooms->failed; i++) {
		note(rooms, &rooms->targets, symbols[i].address);
		if (i < ALL_MOST)
			learn_piece(rooms, symbols[i].address);
	}
	for (size_t i = 0; i < ALL_MOST && object_frame(rooms->object, i, &begin, &end); i++)
		learn_piece(rooms, begin);
	rooms->untold = !object_pointers(rooms->object, take, rooms);
}

/* @return whether a jump to anywhere in the piece, that may also be one out of it, can lead to places that are not known
 * one by one. Where labels are values, sums of them may be, too. */
static bool has_labels(const struct rooms *rooms, const struct walk_piece *piece)
{
	if (rooms->untold)
		return true;
	for (uint64_t at = piece->begin + 1; at < piece->end; at++) {
		if (map_get(&rooms->taken, at))
			return true;
	}
	return false;
}

int rooms_learn(struct rooms *rooms, uint64_t address)
{
	struct walk walk = {.object = rooms->object, .decoder = rooms->decoder};

	if (!rooms->all)
		learn_all(rooms);
	if (walk_function(&walk, address) < 0)
		rooms->failed = true;
	for (size_t i = 0; i < walk.nsteps && !walk.refused && !rooms->failed; i++)
		learn_step(rooms, &walk, i);
	for (unsigned i = 0; i < walk.npieces && !rooms->failed; i++) {
		const struct walk_piece *piece = &walk.pieces[i];
		learn_piece(rooms, piece->begin);
		/* A jump through a table of which nobody knows the extent may lead anywhere in it. */
		if (piece->must_sweep || walk.refused || walk.ways_lost ||
		    (piece->sweep && has_labels(rooms, piece)))
			note(rooms, &rooms->unsure, piece->begin);
	}
	walk_free(&walk);
	if (rooms->failed)
		errno = ENOMEM;
	return rooms->failed ? -1 : 0;
}

struct rooms *rooms_new(const struct object *object, struct insn_decoder *decoder)
{
	struct rooms *rooms = calloc(1, sizeof(*rooms));

	if (rooms) {
		rooms->object = object;
		rooms->decoder = decoder;
	}
	return rooms;
}

void rooms_free(struct rooms *rooms)
{
	if (!rooms)
		return;
	map_free(&rooms->targets);
	map_free_values(&rooms->exits);
	map_free(&rooms->taken);
	map_free(&rooms->swept);
	map_free(&rooms->unsure);
	free(rooms);
}

/* --- rooms ------------------------------------------------------------------------------------- */

static bool is_target(const struct rooms *rooms, uint64_t address)
{
	return map_get(&rooms->targets, address);
}

static bool decode(const struct rooms *rooms, uint64_t address, struct insn *insn)
{
	size_t len = 0;
	const unsigned char *code = object_code(rooms->object, address, &len);

	return code && insn_decode(rooms->decoder, code, len, address, insn) == 0;
}

/* @return whether nobody executes the byte behind a `ret`: what compilers fill the way to the next function, or to the
 * next part of this one, with. */
static bool is_padding(const struct rooms *rooms, uint64_t address, unsigned char *len)
{
	static const unsigned char breakpoint = 0xcc;
	static const unsigned char endbr[] = {0xf3, 0x0f, 0x1e};
	struct insn insn;
	uint64_t begin;
	uint64_t end;
	size_t count;
	const struct object_symbol *symbols = object_symbols(rooms->object, &count);
	size_t below = object_symbols_up_to(rooms->object, address);

	if ((below && symbols[below - 1].address == address) || is_target(rooms, address) ||
	    (object_bounds(rooms->object, address, &begin, &end) && begin == address) ||
	    !decode(rooms, address, &insn))
		return false;
	*len = insn.len;
	return insn.bytes[0] == breakpoint ||
	       (insn.kind == INSN_NOP && memcmp(insn.bytes, endbr, sizeof(endbr)) != 0);
}

/* Settles whether what has been found can be had. */
static void settle(const struct rooms *rooms, struct room *room)
{
	uint64_t begin;
	uint64_t end;

	if (room->len < ROOM_JUMP && !room->refused)
		room->refused = "there is no room for a jump";
	if (room->refused)
		return;
	for (uint64_t at = room->begin + 1; at < room->begin + room->len; at++) {
		if (is_target(rooms, at))
			room->refused = "a branch leads into it";
	}
	if (!object_bounds(rooms->object, room->begin, &begin, &end) ||
	    map_get(&rooms->unsure, begin) || !map_get(&rooms->swept, begin))
		room->refused = "its jumps are not all known";
}

void rooms_entry(const struct rooms *rooms, uint64_t address, struct room *room)
{
	struct insn insn;

	*room = (struct room){.begin = address};
	while (room->len < ROOM_JUMP) {
		if (!decode(rooms, address + room->len, &insn))
			break;
		if (!insn_is_straight(&insn)) {
			/* The last one may be a jump. */
			if ((insn.kind == INSN_JMP || insn.kind == INSN_JCC) &&
			    room->len + insn.len >= ROOM_JUMP)
				room->len += insn.len;
			else
				room->refused = "what a jump would displace has to stay";
			break;
		}
		room->len += insn.len;
	}
	settle(rooms, room);
}

void rooms_exit(const struct rooms *rooms, uint64_t address, uint64_t from, struct room *room)
{
	const struct straight *exit = map_get(&rooms->exits, address);
	struct insn insn;
	unsigned char more = 0;

	*room = (struct room){.begin = address};
	if (!exit || !decode(rooms, address, &insn) || insn.kind != INSN_RET) {
		room->refused = "no way to it is known";
		return;
	}
	room->len = insn.len;
	/* Once something leads to where it begins it cannot begin earlier. */
	for (unsigned i = 1; i < exit->count && room->len < ROOM_JUMP; i++) {
		if (exit->starts[i] < from || is_target(rooms, room->begin) ||
		    !decode(rooms, exit->starts[i], &insn) || !insn_is_straight(&insn))
			break;
		room->begin = exit->starts[i];
		room->len += insn.len;
	}
	uint64_t end = room->begin + room->len;
	while (room->len < ROOM_JUMP && is_padding(rooms, end, &more)) {
		room->len += more < ROOM_JUMP - room->len ? more : ROOM_JUMP - room->len;
		end += more;
	}
	settle(rooms, room);
}
