#include "symbols/walk.h"

#include "symbols/regs.h"
#include "symbols/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Marks of a byte. With hand-written code that jumps over a prefix a byte can be both. */
#define FIRST  1
#define INSIDE 2

/* A function with more takes longer to plan than its calls are worth. */
#define MAX_STEPS 400000
/* Of these, as many may be further ways to what is known. */
#define MAX_WAYS (MAX_STEPS / 2)

/* An indirect jump is judged again when more ways to it have been found, so often at most. */
#define MAX_ROUNDS 16

/* A walk that is refused for this begins anew, without what others have found. */
static const char ANEW[] = "";

struct walk_range {
	uint64_t begin;
	uint64_t end;
};

/* A function that others jump to: all there is to know for a walk that comes to it as a call would. */
struct walk_part {
	uint64_t function;
	struct walk_range *ranges; /* where the walk has been */
	unsigned nranges;
	unsigned deepest;
	struct walk_exit *exits;
	size_t nexits;
	const char *refused;
	bool unfit; /* cut by the limits, or still being made */
};

struct walk_jump {
	size_t step;
	struct table_set known; /* what has been followed */
	bool judged;
};

/* @return the array with room for one item more, NULL when out of memory. */
static void *with_room(void *items, size_t count, size_t *size, size_t item)
{
	if (count < *size)
		return items;
	size_t bigger = *size ? *size * 2 : 64;
	void *moved = reallocarray(items, bigger, item);
	if (moved)
		*size = bigger;
	return moved;
}

static void add_exit(struct walk *walk, uint64_t address, bool tail)
{
	struct walk_exit *exits =
		with_room(walk->exits, walk->nexits, &walk->exits_size, sizeof(*exits));

	if (!exits) {
		walk->failed = true;
		return;
	}
	walk->exits = exits;
	exits[walk->nexits++] = (struct walk_exit){address, tail};
}

/* @return the step's number, WALK_NO_STEP: no memory, or too many. */
static size_t add_step(struct walk *walk, unsigned piece, uint64_t address, size_t previous,
		       int32_t depth)
{
	struct walk_step *steps =
		with_room(walk->steps, walk->nsteps, &walk->steps_size, sizeof(*steps));

	if (!steps) {
		walk->failed = true;
		return WALK_NO_STEP;
	}
	walk->steps = steps;
	if (walk->nsteps == MAX_STEPS) {
		walk->refused = "it is too large";
		return WALK_NO_STEP;
	}
	struct walk_piece *in = &walk->pieces[piece];
	uint32_t *latest = &in->latest[address - in->begin];
	steps[walk->nsteps] = (struct walk_step){
		.address = address,
		.previous = previous,
		.piece = piece,
		.depth = depth,
		.same = *latest,
	};
	*latest = (uint32_t)++walk->nsteps;
	return walk->nsteps - 1;
}

/* Notes one more way, from the step `previous`, to an instruction that has been reached. */
static void add_way(struct walk *walk, struct walk_piece *piece, uint64_t address, size_t previous,
		    int32_t depth)
{
	uint32_t latest = piece->latest[address - piece->begin];

	/* Tables lead to the same place again and again. */
	if (previous == WALK_NO_STEP || (latest && walk->steps[latest - 1].previous == previous))
		return;
	if (walk->nsteps >= MAX_WAYS)
		walk->ways_lost = true;
	else
		add_step(walk, (unsigned)(piece - walk->pieces), address, previous, depth);
}

size_t walk_way(const struct walk *walk, size_t step)
{
	const struct walk_piece *piece = &walk->pieces[walk->steps[step].piece];

	return piece->latest[walk->steps[step].address - piece->begin] - 1;
}

size_t walk_other_way(const struct walk *walk, size_t way)
{
	uint32_t same = walk->steps[way].same;

	return same ? same - 1 : WALK_NO_STEP;
}

struct walk_piece *walk_piece_at(struct walk *walk, uint64_t address)
{
	for (unsigned i = 0; i < walk->npieces; i++) {
		if (address >= walk->pieces[i].begin && address < walk->pieces[i].end)
			return &walk->pieces[i];
	}
	return NULL;
}

static bool is_marked(const struct walk_piece *piece, uint64_t address, unsigned char mark)
{
	return piece->marks[address - piece->begin] & mark;
}

/* Notes that control comes to `address` from the step `previous`. */
static void come_to(struct walk *walk, struct walk_piece *piece, uint64_t address, size_t previous)
{
	int32_t depth = previous == WALK_NO_STEP ? 0 : walk->steps[previous].depth;

	if (is_marked(piece, address, FIRST)) {
		add_way(walk, piece, address, previous, depth);
		return;
	}
	size_t *todo = with_room(walk->todo, walk->ntodo, &walk->todo_size, sizeof(*todo));
	if (!todo) {
		walk->failed = true;
		return;
	}
	walk->todo = todo;
	size_t step = add_step(walk, (unsigned)(piece - walk->pieces), address, previous, depth);
	if (step != WALK_NO_STEP)
		todo[walk->ntodo++] = step;
}

static struct walk_piece *add_piece(struct walk *walk, uint64_t address, unsigned depth)
{
	struct walk_piece piece = {.depth = depth, .sweep_depth = REGS_DEPTH_UNKNOWN};
	size_t len = 0;

	if (walk->npieces + walk->npart_pieces == WALK_PIECES || depth > WALK_DEPTH) {
		walk->cut = true;
		return NULL;
	}
	if (!object_bounds(walk->object, address, &piece.begin, &piece.end) ||
	    address < piece.begin || address >= piece.end)
		return NULL;
	piece.code = object_code(walk->object, piece.begin, &len);
	if (!piece.code || len < piece.end - piece.begin)
		return NULL;
	piece.marks = calloc(piece.end - piece.begin, 1);
	piece.latest = calloc(piece.end - piece.begin, sizeof(*piece.latest));
	if (!piece.marks || !piece.latest) {
		free(piece.marks);
		free(piece.latest);
		walk->failed = true;
		return NULL;
	}
	if (depth > walk->deepest)
		walk->deepest = depth;
	walk->pieces[walk->npieces] = piece;
	return &walk->pieces[walk->npieces++];
}

static bool part_has(const struct walk_part *part, uint64_t address)
{
	for (unsigned i = 0; i < part->nranges; i++) {
		if (address >= part->ranges[i].begin && address < part->ranges[i].end)
			return true;
	}
	return false;
}

static void part_free(struct walk_part *part)
{
	free(part->ranges);
	free(part->exits);
	free(part);
}

void walk_cache_free(struct walk_cache *cache)
{
	size_t at = 0;
	struct map_slot *slot;

	while ((slot = map_next(&cache->by_function, &at)))
		part_free(slot->value);
	map_free(&cache->by_function);
}

/* Keeps what the walk of a whole function has found. @return 0, or -1: out of memory. */
static int part_fill(struct walk_part *part, struct walk *walk)
{
	unsigned nranges = walk->npieces + walk->npart_pieces;

	part->ranges = reallocarray(NULL, nranges + 1, sizeof(*part->ranges));
	if (!part->ranges)
		return -1;
	for (unsigned i = 0; i < walk->npieces; i++)
		part->ranges[part->nranges++] =
			(struct walk_range){walk->pieces[i].begin, walk->pieces[i].end};
	for (unsigned i = 0; i < walk->nparts; i++) {
		const struct walk_part *inner = walk->parts[i];
		for (unsigned n = 0; n < inner->nranges; n++)
			part->ranges[part->nranges++] = inner->ranges[n];
	}
	part->refused = walk->refused;
	part->deepest = walk->deepest;
	part->unfit = walk->cut || !nranges;
	for (size_t i = 0; i < walk->nexits; i++)
		part->unfit |= walk_is_inside(walk, walk->exits[i].address);
	part->exits = walk->exits;
	part->nexits = walk->nexits;
	walk->exits = NULL;
	return 0;
}

/* @return what is known of the function, which is walked if it has not been; NULL: nothing. */
static const struct walk_part *part_of(struct walk *walk, uint64_t function)
{
	struct walk_part *part = map_get(&walk->cache->by_function, function);

	if (part || walk->nesting == WALK_DEPTH)
		return part;
	part = calloc(1, sizeof(*part));
	if (!part || map_put(&walk->cache->by_function, function, part) < 0) {
		free(part);
		walk->failed = true;
		return NULL;
	}
	part->function = function;
	part->unfit = true;
	struct walk *inner = calloc(1, sizeof(*inner));
	if (inner) {
		inner->object = walk->object;
		inner->decoder = walk->decoder;
		inner->cache = walk->cache;
		inner->nesting = walk->nesting + 1;
	}
	if (!inner || walk_function(inner, function) < 0 || part_fill(part, inner) < 0)
		walk->failed = true;
	if (inner)
		walk_free(inner);
	free(inner);
	return part;
}

/* @return whether a stub of the PLT lies at `address`: an indirect jump that everyone shares. */
static bool is_stub(const struct walk *walk, uint64_t address)
{
	size_t len;
	struct parse p;
	const unsigned char *code = object_code(walk->object, address, &len);

	for (int i = 0; code && i < 2; i++) {
		if (parse_insn(walk->decoder, code, len, address, &p) < 0)
			return false;
		if (p.flow == PARSE_INDIRECT)
			return p.rip_relative;
		if (p.map != 0x0f || p.opcode != 0x1e) /* endbr64 */
			return false;
		code += p.len;
		len -= p.len;
	}
	return false;
}

/* Functions that everything calls: their exits as exits of one caller would stop all
 * other calls. */
static bool is_everyones(const struct walk *walk, uint64_t address)
{
	static const char *const names[] = {
		"free",   "malloc",  "calloc", "realloc", "cfree",  "__libc_free", "memcpy",
		"memset", "memmove", "strlen", "strcmp",  "memcmp", "_int_free",
	};
	size_t count;
	const struct object_symbol *symbols = object_symbols(walk->object, &count);

	for (size_t at = object_symbols_up_to(walk->object, address);
	     at > 0 && symbols[at - 1].address == address; at--) {
		for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
			if (strcmp(symbols[at - 1].name, names[i]) == 0)
				return true;
		}
	}
	return false;
}

/* @return the function that was taken over and holds the address, NULL: none. */
static const struct walk_part *part_at(const struct walk *walk, uint64_t address)
{
	for (unsigned i = 0; i < walk->nparts; i++) {
		if (part_has(walk->parts[i], address))
			return walk->parts[i];
	}
	return NULL;
}

/* Control goes from `step` to `target`. @param jumps  it need not be followed.
 * @return false: it is not. */
static bool go_to(struct walk *walk, size_t step, uint64_t target, bool jumps)
{
	unsigned depth = walk->pieces[walk->steps[step].piece].depth + 1;
	struct walk_piece *piece = walk_piece_at(walk, target);

	if (!piece && part_at(walk, target)) {
		/* Into the middle of what was taken over as a whole. */
		walk->refused = ANEW;
		return true;
	}
	if (!piece) {
		if (jumps && (is_stub(walk, target) || is_everyones(walk, target)))
			return false;
		piece = add_piece(walk, target, depth);
	}
	if (!piece)
		return walk->failed;
	/* What jumps here from functions far away calls it anew. */
	if (target >= walk->function && target <= walk->entry && depth <= 2)
		walk->loops = true;
	come_to(walk, piece, target, step);
	return true;
}

/* @return whether the piece's code is that of the part, too. */
static bool is_shared(const struct walk *walk, const struct walk_part *part)
{
	for (unsigned i = 0; i < walk->npieces; i++) {
		if (part_has(part, walk->pieces[i].begin))
			return true;
	}
	for (unsigned i = 0; i < walk->nparts; i++) {
		for (unsigned n = 0; n < walk->parts[i]->nranges; n++) {
			if (part_has(part, walk->parts[i]->ranges[n].begin))
				return true;
		}
	}
	return false;
}

/* A tail call to a whole function: its exits are ours, as they are everyone's who jumps to it. What is found is
 * the same as when it is followed once more.
 * @return false: it has to be followed. */
static bool take_over(struct walk *walk, size_t step, uint64_t target)
{
	unsigned depth = walk->pieces[walk->steps[step].piece].depth + 1;
	uint64_t begin, end;

	/* What stands on the stack is part of what a walk knows. */
	if (!walk->cache || walk->steps[step].depth != 0 || walk_piece_at(walk, target))
		return false;
	const struct walk_part *part = part_at(walk, target);
	if (part)
		return part->function == target;
	if (!object_bounds(walk->object, target, &begin, &end) || begin != target ||
	    is_stub(walk, target) || is_everyones(walk, target))
		return false;
	part = part_of(walk, target);
	if (!part || part->unfit || depth + part->deepest > WALK_DEPTH ||
	    walk->npieces + walk->npart_pieces + part->nranges > WALK_PIECES ||
	    is_shared(walk, part))
		return false;
	for (size_t i = 0; i < part->nexits; i++)
		add_exit(walk, part->exits[i].address, part->exits[i].tail);
	walk->parts[walk->nparts++] = part;
	walk->npart_pieces += part->nranges;
	if (depth + part->deepest > walk->deepest)
		walk->deepest = depth + part->deepest;
	walk->refused = part->refused;
	return true;
}

static void jump(struct walk *walk, size_t step, uint64_t target)
{
	if (take_over(walk, step, target))
		return;
	if (!go_to(walk, step, target, true))
		add_exit(walk, walk->steps[step].address, true);
}

static void want_sweep(struct walk *walk, size_t step, bool must)
{
	struct walk_piece *piece = &walk->pieces[walk->steps[step].piece];
	int32_t depth = walk->steps[step].depth;

	/* Jumps between parts of a function find the stack the same. */
	if (must && piece->sweep_depth == REGS_DEPTH_UNKNOWN)
		piece->sweep_depth = depth;
	piece->sweep = true;
	piece->must_sweep |= must;
}

/* @return whether all entries lead to code, and one of them into the piece: a table of functions is
 * none of a switch. */
static bool is_sound(struct walk *walk, size_t step, const struct table *table)
{
	const struct walk_piece *piece = &walk->pieces[walk->steps[step].piece];
	uint64_t target, begin, end;
	bool local = false;

	for (size_t i = 0; i < table->count; i++) {
		if (!table_entry(walk, table, i, &target))
			return false;
		if (target >= piece->begin && target < piece->end)
			local = true;
		else if (!object_bounds(walk->object, target, &begin, &end))
			return false;
	}
	return local;
}

/* @return whether the table's extent is known, and it has been followed. */
static bool follow(struct walk *walk, size_t step, const struct table *table)
{
	uint64_t target = 0;

	if (!table->count || !is_sound(walk, step, table))
		return false;
	for (size_t i = 0; i < table->count; i++) {
		if (table_entry(walk, table, i, &target) && !go_to(walk, step, target, true))
			want_sweep(walk, step, true);
	}
	return true;
}

/* What else can be said of a jump through a table that is not to be followed. */
static void judge_table(const struct walk *walk, const struct walk_piece *piece,
			const struct table *table, struct table_set *set)
{
	uint64_t target = 0;

	/* The first entry tells a switch from a table of functions, if it is in the file. */
	bool known = table->size == 8 && table_entry(walk, table, 0, &target) && target != 0;
	bool inside = target >= piece->begin && target < piece->end;

	set->leaves |= table->size == 8 && !(known && inside);
	set->unknown |= table->size != 8 || !known || inside;
}

static bool is_same_set(const struct table_set *a, const struct table_set *b)
{
	bool same = a->count == b->count && a->leaves == b->leaves && a->unknown == b->unknown;

	for (unsigned i = 0; same && i < a->count; i++) {
		const struct table *x = &a->tables[i];
		const struct table *y = &b->tables[i];
		same = x->address == y->address && x->base == y->base && x->count == y->count &&
		       x->size == y->size;
	}
	return same;
}

static void judge(struct walk *walk, size_t number)
{
	size_t step = walk->jumps[number].step;
	const struct walk_piece *piece = &walk->pieces[walk->steps[step].piece];
	struct table_set set;

	table_find(walk, step, &set);
	if (walk->jumps[number].judged && is_same_set(&set, &walk->jumps[number].known))
		return;
	walk->jumps[number].known = set;
	walk->jumps[number].judged = true;
	for (unsigned i = 0; i < set.count; i++) {
		if (!follow(walk, step, &set.tables[i]))
			judge_table(walk, piece, &set.tables[i], &set);
	}
	/* The way out begins where the way in ended. */
	int32_t depth = walk->steps[step].depth;
	if (set.leaves && depth != 0 && depth != REGS_DEPTH_UNKNOWN) {
		set.leaves = false;
		set.unknown = true;
	}
	if (set.leaves || set.unknown)
		want_sweep(walk, step, set.unknown);
	if (set.leaves)
		add_exit(walk, walk->steps[step].address, true);
}

static void indirect_jump(struct walk *walk, size_t step)
{
	struct walk_jump *jumps =
		with_room(walk->jumps, walk->njumps, &walk->jumps_size, sizeof(*jumps));

	if (!jumps) {
		walk->failed = true;
		return;
	}
	walk->jumps = jumps;
	jumps[walk->njumps] = (struct walk_jump){.step = step};
	judge(walk, walk->njumps++);
}

/* @return whether the path ends with this instruction. */
static bool leave(struct walk *walk, size_t step, const struct parse *p)
{
	switch (p->flow) {
	case PARSE_RET:
		add_exit(walk, walk->steps[step].address, false);
		return true;
	case PARSE_JMP:
		jump(walk, step, p->target);
		return true;
	case PARSE_JCC:
		jump(walk, step, p->target);
		return false;
	case PARSE_INDIRECT:
		indirect_jump(walk, step);
		return true;
	case PARSE_FAR:
		walk->refused = "it has a far jump or return";
		return true;
	default:
		return p->flow == PARSE_TRAP;
	}
}

static bool is_nop(const struct parse *p)
{
	return (p->map == 0x0f && (p->opcode == 0x1f || p->opcode == 0x1e)) ||
	       (p->map == 0 && p->opcode == 0x90);
}

static void mark(struct walk_piece *piece, uint64_t address, size_t len)
{
	unsigned char *marks = piece->marks + (address - piece->begin);

	marks[0] |= FIRST;
	for (size_t i = 1; i < len; i++)
		marks[i] |= INSIDE;
}

/* Control runs over the end of a piece, and perhaps over padding, into what lies behind it. */
static void run_on(struct walk *walk, size_t step, uint64_t at)
{
	uint64_t begin, end;
	size_t len = 0;
	const unsigned char *code = object_code(walk->object, at, &len);
	struct parse p;

	while (code && !object_bounds(walk->object, at, &begin, &end) &&
	       parse_insn(walk->decoder, code, len, at, &p) == 0 && is_nop(&p)) {
		code += p.len;
		len -= p.len;
		at += p.len;
	}
	if (!go_to(walk, step, at, false))
		walk->refused = "it runs over its end";
}

/* Takes the step and those behind it, up to a way out or a place where the walk has been. @param
 * idle  nothing is known to come here: what cannot be decoded, and padding up to the end, is no
 * code. */
static void take(struct walk *walk, size_t step, bool idle)
{
	unsigned number = walk->steps[step].piece;
	struct walk_piece *piece = &walk->pieces[number];
	uint64_t at = walk->steps[step].address;
	struct parse p;

	while (!is_marked(piece, at, FIRST)) {
		if (parse_insn(walk->decoder, piece->code + (at - piece->begin), piece->end - at,
			       at, &p) < 0) {
			if (!idle)
				walk->refused = "an instruction in it is not understood";
			return;
		}
		mark(piece, at, p.len);
		if (leave(walk, step, &p) || walk->refused || walk->failed)
			return;
		/* A call may be of what does not return: behind it anything can lie. */
		idle = p.flow == PARSE_CALL || (idle && is_nop(&p));
		at += p.len;
		if (at == piece->end) {
			if (!idle)
				run_on(walk, step, at);
			return;
		}
		int32_t depth = regs_depth_behind(&p, walk->steps[step].depth);
		if (is_marked(piece, at, FIRST)) {
			add_way(walk, piece, at, step, depth);
			return;
		}
		step = add_step(walk, number, at, step, depth);
		if (step == WALK_NO_STEP)
			return;
	}
}

static void take_all(struct walk *walk)
{
	while (walk->ntodo && !walk->refused && !walk->failed)
		take(walk, walk->todo[--walk->ntodo], false);
}

/* Takes what is to be taken, and judges the indirect jumps again by all the ways that lead to them: compilers make one
 * jump of several, with a table for each way. */
static void take_everything(struct walk *walk)
{
	size_t judged = 0; /* by so many steps */

	for (unsigned round = 0; !walk->refused && !walk->failed; round++) {
		take_all(walk);
		if (walk->nsteps == judged)
			break;
		walk->ways_lost |= round == MAX_ROUNDS;
		if (walk->ways_lost)
			break;
		judged = walk->nsteps;
		for (size_t i = 0; i < walk->njumps && !walk->refused && !walk->failed; i++)
			judge(walk, i);
	}
	for (size_t i = 0; walk->ways_lost && i < walk->njumps; i++)
		want_sweep(walk, walk->jumps[i].step, true);
}

/* @return whether the piece is instructions from its beginning to its end, and those that were
 * reached are among them: no data between. */
static bool is_all_code(const struct walk *walk, const struct walk_piece *piece)
{
	struct parse p;

	for (uint64_t at = piece->begin; at < piece->end; at += p.len) {
		const unsigned char *code = piece->code + (at - piece->begin);
		if (parse_insn(walk->decoder, code, piece->end - at, at, &p) < 0)
			return false;
		if ((p.flow == PARSE_JMP || p.flow == PARSE_JCC) && p.target > piece->begin &&
		    p.target < piece->end && is_marked(piece, p.target, INSIDE) &&
		    !is_marked(piece, p.target, FIRST))
			return false;
		if (is_marked(piece, at, INSIDE) && !is_marked(piece, at, FIRST))
			return false;
		/* Code may jump over a lock prefix. */
		for (unsigned i = code[0] == 0xf0 ? 2 : 1; i < p.len; i++) {
			if (is_marked(piece, at + i, FIRST))
				return false;
		}
	}
	return true;
}

/* Walks what lies in the piece and was not reached. */
static void sweep(struct walk *walk, struct walk_piece *piece)
{
	unsigned number = (unsigned)(piece - walk->pieces);
	struct parse p;

	piece->swept = true;
	piece->has_data = !is_all_code(walk, piece);
	if (piece->has_data)
		return;
	for (uint64_t at = piece->begin; at < piece->end; at += p.len) {
		if (walk->refused || walk->failed)
			return;
		if (parse_insn(walk->decoder, piece->code + (at - piece->begin), piece->end - at,
			       at, &p) < 0)
			return;
		if (is_marked(piece, at, FIRST))
			continue;
		size_t step = add_step(walk, number, at, WALK_NO_STEP, piece->sweep_depth);
		if (step != WALK_NO_STEP)
			take(walk, step, true);
		take_all(walk);
	}
}

/* Behind an endbr64: what jumps indirectly to the function needs that one in place. */
static uint64_t entry_of(const struct walk_piece *piece, uint64_t address)
{
	static const unsigned char endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	const unsigned char *code = piece->code + (address - piece->begin);

	if (piece->end - address > sizeof(endbr64) && memcmp(code, endbr64, sizeof(endbr64)) == 0)
		return address + sizeof(endbr64);
	return address;
}

static void walk_all(struct walk *walk, uint64_t address)
{
	struct walk_piece *piece = add_piece(walk, address, 0);

	if (!piece) {
		walk->refused = "its code is not in the file, or its end is not known";
		return;
	}
	walk->function = address;
	walk->entry = entry_of(piece, address);
	come_to(walk, piece, address, WALK_NO_STEP);
	take_everything(walk);
	for (bool again = true; again && !walk->refused && !walk->failed;) {
		again = false;
		for (unsigned i = 0; i < walk->npieces; i++) {
			if (walk->pieces[i].sweep && !walk->pieces[i].swept) {
				sweep(walk, &walk->pieces[i]);
				take_everything(walk);
				again = true;
			}
		}
	}
	for (unsigned i = 0; i < walk->npieces; i++) {
		if (walk->pieces[i].must_sweep && walk->pieces[i].has_data && !walk->refused)
			walk->refused = "it has a jump that cannot be followed";
	}
}

int walk_function(struct walk *walk, uint64_t address)
{
	walk_all(walk, address);
	if (walk->refused == ANEW && !walk->failed) {
		struct walk anew = {.object = walk->object, .decoder = walk->decoder};
		walk_free(walk);
		*walk = anew;
		walk_all(walk, address);
	}
	if (walk->failed)
		errno = ENOMEM;
	return walk->failed ? -1 : 0;
}

void walk_free(struct walk *walk)
{
	for (unsigned i = 0; i < walk->npieces; i++) {
		free(walk->pieces[i].marks);
		free(walk->pieces[i].latest);
	}
	free(walk->jumps);
	free(walk->steps);
	free(walk->todo);
	free(walk->exits);
}

bool walk_is_inside(const struct walk *walk, uint64_t address)
{
	for (unsigned i = 0; i < walk->npieces; i++) {
		const struct walk_piece *piece = &walk->pieces[i];
		if (address >= piece->begin && address < piece->end &&
		    is_marked(piece, address, INSIDE))
			return true;
	}
	return false;
}

void walk_parse(const struct walk *walk, size_t step, struct parse *p)
{
	const struct walk_step *at = &walk->steps[step];
	const struct walk_piece *piece = &walk->pieces[at->piece];

	if (parse_insn(walk->decoder, piece->code + (at->address - piece->begin),
		       piece->end - at->address, at->address, p) < 0)
		*p = (struct parse){.map = PARSE_OTHER_MAP, .len = 1};
}
