#include "symbols/table.h"

#include "symbols/regs.h"

#include <string.h>

/* How many instructions a search goes through: a compiler may load a table's address before the loop that has the
 * switch. */
#define FAR_STEPS 4096
/* All searches of a walk. */
#define ALL_STEPS 4000000
/* How far a compare is from the jump, and how many instructions there are on all the ways. */
#define NEAR_STEPS 40
#define NEAR_ALL   400
/* Copies from register to register on the way. */
#define MAX_COPIES 4
/* A compare with more is no switch. */
#define MAX_ENTRIES 65536
/* Places that write the register a jump goes through: where all the jumps of an interpreter were made one. */
#define MAX_ORIGINS 512

/* Where the value of a register comes from. */
struct origins {
	size_t steps[MAX_ORIGINS]; /* instructions that may have written it */
	unsigned count;
	bool call;      /* or a call has */
	bool entry;     /* or it is as it was at the entry */
	bool elsewhere; /* or control has come from where only a sweep has been */
	bool lost;      /* or from farther away */
};

static bool is_kept(unsigned reg)
{
	return reg == 3 || reg == 5 || reg >= 12;
}

/* Finds the instructions that wrote `reg` last on the ways to `step`. */
static void find_origins(struct walk *walk, size_t step, unsigned reg, struct origins *origins)
{
	size_t todo[FAR_STEPS];
	unsigned ntodo = 1;
	unsigned nseen = 1;
	struct parse p;

	*origins = (struct origins){.count = 0};
	walk->searches++;
	todo[0] = step;
	while (ntodo) {
		step = todo[--ntodo];
		for (size_t way = walk_way(walk, step); way != WALK_NO_STEP;
		     way = walk_other_way(walk, way)) {
			size_t from = walk->steps[way].previous;
			origins->entry |= from == WALK_NO_STEP && way == 0;
			origins->elsewhere |= from == WALK_NO_STEP && way != 0;
			if (from == WALK_NO_STEP)
				continue;
			struct walk_step *latest = &walk->steps[walk_way(walk, from)];
			if (latest->seen == walk->searches)
				continue;
			latest->seen = walk->searches;
			walk_parse(walk, from, &p);
			bool writes = regs_may_write(&p, reg);
			if (nseen == FAR_STEPS || ++walk->searched > ALL_STEPS ||
			    (writes && origins->count == MAX_ORIGINS)) {
				origins->lost = true;
				return;
			}
			nseen++;
			if (writes && p.flow == PARSE_CALL)
				origins->call = true;
			else if (writes)
				origins->steps[origins->count++] = from;
			else
				todo[ntodo++] = from;
		}
	}
}

/* @return whether the instructions that were found are all that matter: nobody relies on what a call leaves in a
 * register, nor on what others left in one that is kept for them. What only a sweep has found (ways of exceptions) has
 * registers as they are elsewhere. */
static bool are_all(const struct origins *origins, unsigned reg)
{
	return origins->count && !origins->lost && (!origins->entry || is_kept(reg));
}

static uint64_t behind(const struct walk *walk, size_t step, const struct parse *p)
{
	return walk->steps[step].address + p->len;
}

/* @return whether the instruction copies a whole register to `reg`: from which. */
static bool copies(const struct parse *p, unsigned reg, unsigned char *source)
{
	if (p->map || p->memory || !p->has_modrm || p->operand16)
		return false;
	if (p->opcode == 0x8b && p->reg == reg) {
		*source = p->rm;
		return true;
	}
	if (p->opcode == 0x89 && p->rm == reg) {
		*source = p->reg;
		return true;
	}
	return false;
}

static bool constant_of(struct walk *walk, size_t step, unsigned reg, unsigned copied,
			uint64_t *value);

/* @return whether the instruction makes `reg` a constant. */
static bool constant_by(struct walk *walk, size_t step, unsigned reg, unsigned copied,
			uint64_t *value)
{
	struct parse p;
	unsigned char source;

	walk_parse(walk, step, &p);
	if (p.map)
		return false;
	if (p.opcode == 0x8d && p.rip_relative) {
		*value = behind(walk, step, &p) + (uint64_t)(int64_t)p.disp;
		return true;
	}
	if (((p.opcode & 0xf8) == 0xb8 && !p.has_modrm) || (p.opcode == 0xc7 && !p.memory)) {
		*value = p.wide ? (uint64_t)p.imm : (uint32_t)p.imm;
		return true;
	}
	return copied < MAX_COPIES && copies(&p, reg, &source) &&
	       constant_of(walk, step, source, copied + 1, value);
}

/* @return whether `reg` is a constant address at `step`, the same on all ways. */
static bool constant_of(struct walk *walk, size_t step, unsigned reg, unsigned copied,
			uint64_t *value)
{
	struct origins origins;
	uint64_t other;

	find_origins(walk, step, reg, &origins);
	if (!are_all(&origins, reg))
		return false;
	for (unsigned i = 0; i < origins.count; i++) {
		if (!constant_by(walk, origins.steps[i], reg, copied, i ? &other : value) ||
		    (i && other != *value))
			return false;
	}
	return true;
}

/* The condition under which control came from the jump at `step` to the step behind. */
static unsigned condition_of(const struct walk *walk, size_t step, const struct parse *p,
			     uint64_t next)
{
	unsigned condition = p->opcode & 0xf;

	return next == behind(walk, step, p) ? condition ^ 1 : condition;
}

static bool is_compare_with(const struct parse *p, unsigned reg)
{
	if (p->map || p->memory)
		return false;
	if (p->opcode == 0x3c || p->opcode == 0x3d)
		return reg == 0;
	return (p->opcode == 0x80 || p->opcode == 0x81 || p->opcode == 0x83) && p->digit == 7 &&
	       p->rm == reg;
}

static bool leaves_flags(const struct parse *p)
{
	if (p->map == 0x0f)
		return (p->opcode >= 0xb6 && p->opcode <= 0xbf && p->opcode != 0xba &&
			p->opcode != 0xbb && p->opcode != 0xbc && p->opcode != 0xbd) ||
		       p->opcode < 0x2e || (p->opcode >= 0x40 && p->opcode <= 0x70);
	return p->map == 0 && ((p->opcode >= 0x88 && p->opcode <= 0x8d) || p->opcode == 0x63 ||
			       (p->opcode >= 0x50 && p->opcode <= 0x5f) ||
			       (p->opcode >= 0xb0 && p->opcode <= 0xbf) || p->opcode == 0xc6 ||
			       p->opcode == 0xc7 || p->opcode == 0x90 || p->opcode == 0x98);
}

static size_t extent(int64_t last)
{
	return last >= 0 && last < MAX_ENTRIES ? (size_t)last + 1 : 0;
}

/* What the instruction that writes the index says of it. @return the number of values; 0: nothing,
 * and `reg` is the register it came from, or INSN_NO_REG. */
static size_t extent_of_writer(const struct parse *p, unsigned char *reg)
{
	unsigned char from = INSN_NO_REG;
	size_t count = 0;

	if (p->map == 0x0f && (p->opcode == 0xb6 || p->opcode == 0xb7)) {
		/* The compare, if there is one, may be with the narrow register. */
		if (p->memory)
			count = p->opcode == 0xb6 ? 256 : MAX_ENTRIES;
		else
			from = p->rm;
	} else if (p->map == 0 && !p->memory && (p->opcode == 0x83 || p->opcode == 0x81) &&
		   p->digit == 4) {
		count = extent(p->imm);
	} else if (p->map == 0 && p->opcode == 0x63 && !p->memory) {
		from = p->rm;
	} else if (!copies(p, *reg, &from)) {
		from = INSN_NO_REG;
	}
	*reg = from;
	return count;
}

/* On the way back from a jump to what bounds its index. */
struct bound {
	size_t step;
	uint64_t next; /* the instruction behind it, on this way */
	unsigned n;
	unsigned char reg;                           /* that has the index */
	enum { NO_FLAGS, ABOVE, NOT_BELOW } pending; /* the way has turned on these flags */
};

enum bound_kind {
	BOUND_ON,     /* is to be looked for farther back */
	BOUND_FOUND,  /* so many values */
	BOUND_NONE,   /* nothing bounds it */
	BOUND_NOBODY, /* nobody comes this way */
};

/* What the instruction says of the index. */
static enum bound_kind look(const struct walk *walk, struct bound *at, size_t *count)
{
	struct parse p;

	walk_parse(walk, at->step, &p);
	if (p.flow == PARSE_JCC) {
		unsigned condition = condition_of(walk, at->step, &p, at->next);
		if (condition == 0x6) /* below or equal */
			at->pending = ABOVE;
		else if (condition == 0x2) /* below */
			at->pending = NOT_BELOW;
		return BOUND_ON;
	}
	if (p.flow == PARSE_JMP)
		return BOUND_ON;
	/* What a call leaves there is no index. */
	if (p.flow == PARSE_CALL && regs_may_write(&p, at->reg))
		return BOUND_NOBODY;
	if (p.flow != PARSE_NEXT || p.map == PARSE_OTHER_MAP)
		return BOUND_NONE;
	if (at->pending != NO_FLAGS && is_compare_with(&p, at->reg)) {
		/* A byte's immediate is not signed here. */
		bool byte = p.opcode == 0x80 || p.opcode == 0x3c;
		int64_t imm = byte ? (uint8_t)p.imm : p.imm;
		*count = extent(at->pending == ABOVE ? imm : imm - 1);
		return *count ? BOUND_FOUND : BOUND_NONE;
	}
	if (!leaves_flags(&p))
		at->pending = NO_FLAGS;
	if (!regs_may_write(&p, at->reg))
		return BOUND_ON;
	*count = extent_of_writer(&p, &at->reg);
	if (*count)
		return BOUND_FOUND;
	return at->reg == INSN_NO_REG ? BOUND_NONE : BOUND_ON;
}

/* @return how many values the index register can have at `step`, by all ways to it; 0: unknown. */
static size_t extent_of(struct walk *walk, size_t step, unsigned char reg)
{
	struct bound todo[NEAR_ALL];
	unsigned ntodo = 0;
	unsigned nlooked = 0;
	size_t most = 0;
	struct bound at = {.step = step, .reg = reg};

	for (bool first = true; first || ntodo; first = false) {
		size_t count = 0;
		enum bound_kind kind = BOUND_ON;
		if (!first) {
			at = todo[--ntodo];
			kind = look(walk, &at, &count);
		}
		if (kind == BOUND_FOUND || kind == BOUND_NOBODY) {
			most = count > most ? count : most;
			continue;
		}
		if (kind == BOUND_NONE || at.n == NEAR_STEPS || at.reg == INSN_NO_REG)
			return 0;
		at.next = walk->steps[at.step].address;
		at.n++;
		for (size_t way = walk_way(walk, at.step); way != WALK_NO_STEP;
		     way = walk_other_way(walk, way)) {
			at.step = walk->steps[way].previous;
			if (at.step == WALK_NO_STEP && way == 0 && !is_kept(at.reg))
				return 0;
			if (at.step == WALK_NO_STEP)
				continue;
			if (++nlooked == NEAR_ALL || ++walk->searched > ALL_STEPS)
				return 0;
			todo[ntodo++] = at;
		}
	}
	return most;
}

/* --- tables ------------------------------------------------------------------------------------ */

static void maybe(struct table_set *set)
{
	set->leaves = true;
	set->unknown = true;
}

static void add_table(struct table_set *set, const struct table *table)
{
	for (unsigned i = 0; i < set->count; i++) {
		struct table *known = &set->tables[i];
		if (known->address != table->address || known->base != table->base ||
		    known->size != table->size)
			continue;
		if (!table->count || (known->count && table->count > known->count))
			known->count = table->count;
		return;
	}
	if (set->count == TABLE_MOST)
		set->unknown = true;
	else
		set->tables[set->count++] = *table;
}

/* A jump to what `load` (or the jump itself) reads from memory. */
static void absolute(struct walk *walk, size_t step, const struct parse *load,
		     struct table_set *set)
{
	uint64_t base = 0;

	if (load->segment || load->index == INSN_NO_REG) {
		set->leaves = true;
		return;
	}
	if (load->scale != 8 ||
	    (load->base != INSN_NO_REG && !constant_of(walk, step, load->base, 0, &base))) {
		maybe(set);
		return;
	}
	struct table table = {
		.address = base + (uint64_t)(int64_t)load->disp,
		.size = 8,
		.count = extent_of(walk, step, load->index),
	};
	add_table(set, &table);
}

/* @return the size of the signed table entry that the instruction loads, 0: it does no
 * such thing. */
static unsigned char offset_size(const struct parse *p)
{
	if (!p->memory || p->index == INSN_NO_REG)
		return 0;
	if (p->map == 0 && p->opcode == 0x63 && p->scale == 4)
		return 4;
	if (p->map == 0x0f && p->opcode == 0xbf && p->scale == 2)
		return 2;
	return p->map == 0x0f && p->opcode == 0xbe && p->scale == 1 ? 1 : 0;
}

/* @return whether all that the register comes from are loads of a table's entries. */
static bool are_offsets(const struct walk *walk, const struct origins *origins, unsigned reg)
{
	struct parse p;

	if (!are_all(origins, reg))
		return false;
	for (unsigned i = 0; i < origins->count; i++) {
		walk_parse(walk, origins->steps[i], &p);
		if (!offset_size(&p) || p.segment)
			return false;
	}
	return true;
}

/* A jump to the sum of two registers: an address and what is loaded from a table. What is added up
 * is never a function's address. */
static void relative(struct walk *walk, size_t step, unsigned a, unsigned b, struct table_set *set)
{
	struct origins loads;
	struct parse load;
	struct table table = {0};

	find_origins(walk, step, a, &loads);
	if (!are_offsets(walk, &loads, a)) {
		unsigned swap = a;
		a = b;
		b = swap;
		find_origins(walk, step, a, &loads);
	}
	if (!are_offsets(walk, &loads, a) || !constant_of(walk, step, b, 0, &table.base)) {
		set->unknown = true;
		return;
	}
	for (unsigned i = 0; i < loads.count; i++) {
		size_t at = loads.steps[i];
		uint64_t address = 0;
		walk_parse(walk, at, &load);
		if (load.base != INSN_NO_REG && !constant_of(walk, at, load.base, 0, &address)) {
			set->unknown = true;
			continue;
		}
		table.size = offset_size(&load);
		table.address = address + (uint64_t)(int64_t)load.disp;
		table.count = extent_of(walk, at, load.index);
		add_table(set, &table);
	}
}

static void through_register(struct walk *walk, size_t step, unsigned reg, unsigned copied,
			     struct table_set *set);

/* A jump to what the instruction has written to `reg`. */
static void through_writer(struct walk *walk, size_t step, unsigned reg, unsigned copied,
			   struct table_set *set)
{
	struct parse p;
	unsigned char source;

	walk_parse(walk, step, &p);
	if (p.map) {
		maybe(set);
		return;
	}
	if (copies(&p, reg, &source) && copied < MAX_COPIES)
		through_register(walk, step, source, copied + 1, set);
	else if (p.opcode == 0x03 && !p.memory)
		relative(walk, step, p.reg, p.rm, set);
	else if (p.opcode == 0x01 && !p.memory)
		relative(walk, step, p.rm, p.reg, set);
	else if (p.opcode == 0x8d && p.base != INSN_NO_REG && p.index != INSN_NO_REG)
		relative(walk, step, p.base, p.index, set);
	else if (p.opcode == 0x8b && p.memory)
		absolute(walk, step, &p, set);
	else if ((!p.has_modrm && (p.opcode & 0xf8) == 0x58) ||
		 (p.opcode == 0x8d && p.rip_relative))
		set->leaves = true;
	else
		maybe(set);
}

static void through_register(struct walk *walk, size_t step, unsigned reg, unsigned copied,
			     struct table_set *set)
{
	struct origins origins;

	find_origins(walk, step, reg, &origins);
	set->leaves |= origins.call || (origins.entry && (!is_kept(reg) || !origins.count));
	if (origins.lost ||
	    (origins.elsewhere && !origins.count && !origins.call && !origins.entry))
		maybe(set);
	for (unsigned i = 0; i < origins.count; i++)
		through_writer(walk, origins.steps[i], reg, copied, set);
}

void table_find(struct walk *walk, size_t step, struct table_set *set)
{
	struct parse p;

	walk_parse(walk, step, &p);
	*set = (struct table_set){.count = 0};
	if (p.memory)
		absolute(walk, step, &p, set);
	else
		through_register(walk, step, p.rm, 0, set);
	/* Compilers write this prefix before the jumps of a switch only. */
	if (p.notrack && set->leaves) {
		set->leaves = false;
		set->unknown = true;
	}
}

bool table_entry(const struct walk *walk, const struct table *table, size_t i, uint64_t *target)
{
	size_t len;
	const unsigned char *bytes =
		object_data(walk->object, table->address + i * table->size, &len);
	int8_t i8;
	int16_t i16;
	int32_t i32;

	if (!bytes || len < table->size)
		return false;
	switch (table->size) {
	case 1:
		memcpy(&i8, bytes, sizeof(i8));
		*target = table->base + (uint64_t)(int64_t)i8;
		return true;
	case 2:
		memcpy(&i16, bytes, sizeof(i16));
		*target = table->base + (uint64_t)(int64_t)i16;
		return true;
	case 4:
		memcpy(&i32, bytes, sizeof(i32));
		*target = table->base + (uint64_t)(int64_t)i32;
		return true;
	default:
		memcpy(target, bytes, sizeof(*target));
		return true;
	}
}
