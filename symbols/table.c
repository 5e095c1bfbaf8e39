#include "symbols/table.h"

#include "symbols/regs.h"

#include <string.h>

/* How far the search goes: a compiler may load a table's address before the loop that has the
 * switch. */
#define FAR_STEPS  3000
#define NEAR_STEPS 40
/* Copies from register to register on the way. */
#define MAX_COPIES 4
/* A compare with more is no switch. */
#define MAX_ENTRIES 65536

/* @return the last step before `step` that may have written `reg`, with its instruction;
 * WALK_NO_STEP: none. */
static size_t writer_of(const struct walk *walk, size_t step, unsigned reg, struct parse *p)
{
	for (unsigned n = 0; n < FAR_STEPS; n++) {
		step = walk->steps[step].previous;
		if (step == WALK_NO_STEP)
			return WALK_NO_STEP;
		walk_parse(walk, step, p);
		if (regs_may_write(p, reg))
			return step;
	}
	return WALK_NO_STEP;
}

/* @return whether the steps back lead to the entry: else what is there is found by looking at
 * everything. */
static bool comes_from_entry(const struct walk *walk, size_t step)
{
	while (walk->steps[step].previous != WALK_NO_STEP)
		step = walk->steps[step].previous;
	return step == 0;
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

/* @return whether `reg` is a constant address at `step`. */
static bool constant_of(const struct walk *walk, size_t step, unsigned reg, uint64_t *value)
{
	struct parse p;
	unsigned char source;

	for (int n = 0; n < MAX_COPIES; n++) {
		step = writer_of(walk, step, reg, &p);
		if (step == WALK_NO_STEP || p.map)
			return false;
		if (p.opcode == 0x8d && p.rip_relative) {
			*value = behind(walk, step, &p) + (uint64_t)(int64_t)p.disp;
			return true;
		}
		if ((p.opcode & 0xf8) == 0xb8 && !p.has_modrm) {
			*value = p.wide ? (uint64_t)p.imm : (uint32_t)p.imm;
			return true;
		}
		if (p.opcode == 0xc7 && !p.memory) {
			*value = p.wide ? (uint64_t)p.imm : (uint32_t)p.imm;
			return true;
		}
		if (!copies(&p, reg, &source))
			return false;
		reg = source;
	}
	return false;
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

/* @return how many values the index register can have at `step`, 0: unknown. */
static size_t extent_of(const struct walk *walk, size_t step, unsigned char reg)
{
	enum { NO_FLAGS, ABOVE, NOT_BELOW } pending = NO_FLAGS;
	uint64_t next = walk->steps[step].address;
	struct parse p;

	if (reg == INSN_NO_REG)
		return 0;
	for (unsigned n = 0; n < NEAR_STEPS; n++, next = walk->steps[step].address) {
		step = walk->steps[step].previous;
		if (step == WALK_NO_STEP)
			return 0;
		walk_parse(walk, step, &p);
		if (p.flow == PARSE_JCC) {
			unsigned condition = condition_of(walk, step, &p, next);
			if (condition == 0x6) /* below or equal */
				pending = ABOVE;
			else if (condition == 0x2) /* below */
				pending = NOT_BELOW;
			continue;
		}
		if (p.flow == PARSE_JMP)
			continue;
		if (p.flow != PARSE_NEXT || p.map == PARSE_OTHER_MAP)
			return 0;
		if (pending != NO_FLAGS && is_compare_with(&p, reg)) {
			/* A byte's immediate is not signed here. */
			bool byte = p.opcode == 0x80 || p.opcode == 0x3c;
			int64_t imm = byte ? (uint8_t)p.imm : p.imm;
			return extent(pending == ABOVE ? imm : imm - 1);
		}
		if (!leaves_flags(&p))
			pending = NO_FLAGS;
		if (regs_may_write(&p, reg)) {
			size_t count = extent_of_writer(&p, &reg);
			if (count || reg == INSN_NO_REG)
				return count;
		}
	}
	return 0;
}

/* A jump to what `load` (or the jump itself) reads from memory. */
static enum table_kind absolute(const struct walk *walk, size_t step, const struct parse *load,
				struct table *table)
{
	uint64_t base = 0;

	if (load->segment || load->index == INSN_NO_REG)
		return TABLE_NONE;
	if (load->scale != 8)
		return TABLE_MAYBE;
	if (load->base != INSN_NO_REG && !constant_of(walk, step, load->base, &base))
		return TABLE_MAYBE;
	table->address = base + (uint64_t)(int64_t)load->disp;
	table->size = 8;
	table->count = extent_of(walk, step, load->index);
	return TABLE_FOUND;
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

/* A jump to the sum of two registers: an address and what is loaded from a table. What is added up
 * is never a function's address. */
static enum table_kind relative(const struct walk *walk, size_t step, unsigned a, unsigned b,
				struct table *table)
{
	struct parse load;
	uint64_t address = 0;

	size_t at = writer_of(walk, step, a, &load);
	if (at == WALK_NO_STEP || !offset_size(&load)) {
		unsigned swap = a;
		a = b;
		b = swap;
		at = writer_of(walk, step, a, &load);
	}
	if (at == WALK_NO_STEP || !offset_size(&load) || load.segment)
		return TABLE_UNKNOWN;
	if (!constant_of(walk, step, b, &table->base))
		return TABLE_UNKNOWN;
	if (load.base != INSN_NO_REG && !constant_of(walk, at, load.base, &address))
		return TABLE_UNKNOWN;
	table->size = offset_size(&load);
	table->address = address + (uint64_t)(int64_t)load.disp;
	table->count = extent_of(walk, at, load.index);
	return TABLE_FOUND;
}

static enum table_kind through_register(const struct walk *walk, size_t step, unsigned char reg,
					struct table *table)
{
	struct parse p;

	for (int n = 0; n < MAX_COPIES; n++) {
		size_t before = step;
		step = writer_of(walk, step, reg, &p);
		if (step == WALK_NO_STEP)
			return comes_from_entry(walk, before) ? TABLE_NONE : TABLE_MAYBE;
		if (p.flow == PARSE_CALL)
			return TABLE_NONE;
		if (p.map)
			return TABLE_MAYBE;
		if (copies(&p, reg, &reg))
			continue;
		if (p.opcode == 0x03 && !p.memory)
			return relative(walk, step, p.reg, p.rm, table);
		if (p.opcode == 0x01 && !p.memory)
			return relative(walk, step, p.rm, p.reg, table);
		if (p.opcode == 0x8d && p.base != INSN_NO_REG && p.index != INSN_NO_REG)
			return relative(walk, step, p.base, p.index, table);
		if (p.opcode == 0x8b)
			return absolute(walk, step, &p, table);
		if (!p.has_modrm && (p.opcode & 0xf8) == 0x58)
			return TABLE_NONE;
		return p.opcode == 0x8d && p.rip_relative ? TABLE_NONE : TABLE_MAYBE;
	}
	return TABLE_MAYBE;
}

enum table_kind table_find(const struct walk *walk, size_t step, struct table *table)
{
	struct parse p;
	enum table_kind kind;

	walk_parse(walk, step, &p);
	*table = (struct table){0};
	if (p.memory)
		kind = absolute(walk, step, &p, table);
	else
		kind = through_register(walk, step, p.rm, table);
	/* Compilers write this prefix before the jumps of a switch only. */
	if (p.notrack && kind != TABLE_FOUND)
		kind = TABLE_UNKNOWN;
	return kind;
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
