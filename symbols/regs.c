#include "symbols/regs.h"

#define RAX 0
#define RDX 2
#define RSP 4
#define RBP 5
#define R10 10

static bool is_caller_saved(unsigned reg)
{
	return reg <= 2 || reg == 6 || reg == 7 || (reg >= 8 && reg <= 11);
}

static bool only_looks(const struct parse *p)
{
	if (p->map)
		return p->opcode == 0x1f || p->opcode == 0x1e;
	return (p->opcode >= 0x38 && p->opcode <= 0x3d) || p->opcode == 0x84 || p->opcode == 0x85 ||
	       p->opcode == 0xa8 || p->opcode == 0xa9 || p->opcode == 0x68 || p->opcode == 0x6a ||
	       ((p->opcode == 0x80 || p->opcode == 0x81 || p->opcode == 0x83) && p->digit == 7) ||
	       ((p->opcode == 0xf6 || p->opcode == 0xf7) && p->digit < 2);
}

/* @return whether a write to the byte register `byte` changes `reg`: it may be the second byte of another,
 * and never is one of the stack pointer. */
static bool is_byte_of(unsigned byte, unsigned reg)
{
	return reg != RSP && (byte & 3) == (reg & 3);
}

static bool may_write_without_modrm(const struct parse *p, unsigned reg)
{
	switch (p->opcode & 0xf8) {
	case 0x50: /* push */
		return reg == RSP;
	case 0x58: /* pop */
		return p->reg == reg || reg == RSP;
	case 0xb0: /* mov */
		return is_byte_of(p->reg, reg);
	case 0xb8:
		return p->reg == reg;
	case 0xc8: /* leave */
		return reg == RSP || reg == RBP;
	default: /* of the accumulator; cpuid */
		return p->map ? reg <= 3 : reg == RAX || reg == RDX;
	}
}

static bool may_write_0f(const struct parse *p, unsigned reg)
{
	/* Vector instructions that move nothing to general registers. */
	bool vector = (p->opcode >= 0x10 && p->opcode < 0x18) || p->opcode == 0x28 ||
		      p->opcode == 0x29 || p->opcode == 0x2e || p->opcode == 0x2f ||
		      (p->opcode >= 0x51 && p->opcode <= 0x70) || p->opcode == 0xd6 ||
		      p->opcode == 0xef || p->opcode == 0xd4 || p->opcode == 0xfa ||
		      p->opcode == 0xfb || p->opcode == 0xfe || p->opcode == 0x7f;

	if (vector)
		return false;
	return p->reg == reg || (!p->memory && p->rm == reg);
}

static bool may_write_modrm(const struct parse *p, unsigned reg)
{
	bool to_rm = !p->memory && p->rm == reg;

	switch (p->opcode) {
	case 0x03: /* op reg, r/m */
	case 0x0b:
	case 0x13:
	case 0x1b:
	case 0x23:
	case 0x2b:
	case 0x33:
	case 0x63:
	case 0x69:
	case 0x6b:
	case 0x8b:
	case 0x8d:
		return p->reg == reg;
	case 0x8a:
		return is_byte_of(p->reg, reg);
	case 0x80: /* op r/m, reg or imm; of bytes */
	case 0x88:
	case 0xc0:
	case 0xc6:
	case 0xd0:
	case 0xd2:
	case 0xfe:
		return !p->memory && is_byte_of(p->rm, reg);
	case 0x01:
	case 0x09:
	case 0x11:
	case 0x19:
	case 0x21:
	case 0x29:
	case 0x31:
	case 0x81:
	case 0x83:
	case 0x89:
	case 0xc1:
	case 0xc7:
	case 0xd1:
	case 0xd3:
		return to_rm;
	case 0xff:
		return p->digit == 6 ? reg == RSP : to_rm;
	case 0xf7: /* mul, div too */
		return to_rm || reg == RAX || reg == RDX;
	default:
		return p->reg == reg || to_rm || is_byte_of(p->reg, reg) ||
		       (!p->memory && is_byte_of(p->rm, reg));
	}
}

bool regs_may_write(const struct parse *p, unsigned reg)
{
	if (p->flow == PARSE_CALL)
		return is_caller_saved(reg);
	if (p->flow != PARSE_NEXT)
		return false;
	if (p->map == PARSE_OTHER_MAP)
		return true;
	if (only_looks(p))
		return false;
	if (!p->has_modrm)
		return may_write_without_modrm(p, reg);
	return p->map ? may_write_0f(p, reg) : may_write_modrm(p, reg);
}

/* What the frame pointer is where compilers keep one: it points to its caller's. */
#define FRAME_DEPTH 8

static int32_t deeper(int32_t depth, int64_t by)
{
	int64_t sum = depth + by;

	if (depth == REGS_DEPTH_UNKNOWN || sum < INT32_MIN / 2 || sum > INT32_MAX / 2)
		return REGS_DEPTH_UNKNOWN;
	return (int32_t)sum;
}

static int32_t depth_by_lea(const struct parse *p, int32_t depth)
{
	if (p->index != INSN_NO_REG)
		return REGS_DEPTH_UNKNOWN;
	switch (p->base) {
	case RSP:
		return deeper(depth, -(int64_t)p->disp);
	case RBP:
		return deeper(FRAME_DEPTH, -(int64_t)p->disp);
	case R10: /* holds where the arguments are, where the stack had to be aligned */
		return deeper(-8, -(int64_t)p->disp);
	default:
		return REGS_DEPTH_UNKNOWN;
	}
}

int32_t regs_depth_behind(const struct parse *p, int32_t depth)
{
	if (p->flow != PARSE_NEXT)
		return depth;
	if (p->map == 0 && !p->operand16) {
		if ((p->opcode & 0xf8) == 0x50 || p->opcode == 0x68 || p->opcode == 0x6a ||
		    (p->opcode == 0xff && p->digit == 6))
			return deeper(depth, 8);
		if ((p->opcode & 0xf8) == 0x58 && p->reg != RSP)
			return deeper(depth, -8);
		if ((p->opcode == 0x81 || p->opcode == 0x83) && !p->memory && p->rm == RSP &&
		    (p->digit == 0 || p->digit == 5))
			return deeper(depth, p->digit == 0 ? -p->imm : p->imm);
		if (p->opcode == 0x8d && p->reg == RSP)
			return depth_by_lea(p, depth);
		if (p->opcode == 0xc9)
			return FRAME_DEPTH - 8;
		if ((p->opcode == 0x89 && !p->memory && p->rm == RSP && p->reg == RBP) ||
		    (p->opcode == 0x8b && !p->memory && p->reg == RSP && p->rm == RBP))
			return FRAME_DEPTH;
	}
	/* Of these forms none has the stack pointer for a result. */
	if (p->map == PARSE_OTHER_MAP)
		return depth;
	return regs_may_write(p, RSP) ? REGS_DEPTH_UNKNOWN : depth;
}
