#include "symbols/insn.h"
#include "tracer/arch/arch.h"

#include <errno.h>
#include <string.h>

#define CF 0x001U
#define PF 0x004U
#define AF 0x010U
#define ZF 0x040U
#define SF 0x080U
#define OF 0x800U

struct memory {
	int (*read)(void *data, uint64_t address, void *to, size_t len);
	int (*write)(void *data, uint64_t address, const void *from, size_t len);
	void *data;
};

/* @return the register of the processor's number. */
static unsigned long long *reg_at(struct user_regs_struct *r, unsigned number)
{
	unsigned long long *const regs[] = {
		&r->rax, &r->rcx, &r->rdx, &r->rbx, &r->rsp, &r->rbp, &r->rsi, &r->rdi,
		&r->r8,  &r->r9,  &r->r10, &r->r11, &r->r12, &r->r13, &r->r14, &r->r15,
	};
	return regs[number & 15];
}

/* A 32-bit result has zeros above it. */
static uint64_t cut(const struct insn *insn, uint64_t value)
{
	return insn->width == 4 ? (uint32_t)value : value;
}

static uint64_t address_of(struct user_regs_struct *r, const struct insn *insn, uint64_t next)
{
	uint64_t address = (uint64_t)insn->imm;

	if (insn->rip_relative)
		address += next;
	if (insn->other != INSN_NO_REG)
		address += *reg_at(r, insn->other);
	if (insn->index != INSN_NO_REG)
		address += *reg_at(r, insn->index) * insn->scale;
	return address;
}

static void set_flags(struct user_regs_struct *r, const struct insn *insn, uint64_t result,
		      uint64_t others)
{
	uint64_t sign = insn->width == 4 ? 1ULL << 31 : 1ULL << 63;
	uint64_t flags = others;

	if (result == 0)
		flags |= ZF;
	if (result & sign)
		flags |= SF;
	if (!__builtin_parity((unsigned)(result & 0xff)))
		flags |= PF;
	r->eflags = (r->eflags & ~(uint64_t)(CF | PF | AF | ZF | SF | OF)) | flags;
}

static void add_or_sub(struct user_regs_struct *r, const struct insn *insn)
{
	uint64_t sign = insn->width == 4 ? 1ULL << 31 : 1ULL << 63;
	uint64_t a = cut(insn, *reg_at(r, insn->reg));
	uint64_t b = cut(insn, (uint64_t)insn->imm);
	bool sub = insn->kind == INSN_SUB_IMM;
	uint64_t result = cut(insn, sub ? a - b : a + b);
	uint64_t flags = 0;

	if (sub ? a < b : result < a)
		flags |= CF;
	if ((a ^ b ^ result) & 0x10)
		flags |= AF;
	/* The result's sign is not what the operands' signs allow. */
	if ((sub ? (a ^ b) & (a ^ result) : ~(a ^ b) & (a ^ result)) & sign)
		flags |= OF;
	set_flags(r, insn, result, flags);
	*reg_at(r, insn->reg) = result;
}

static bool is_true(uint64_t flags, unsigned condition)
{
	bool less = !(flags & SF) != !(flags & OF);
	bool is;

	switch (condition >> 1) {
	case 0:
		is = flags & OF;
		break;
	case 1:
		is = flags & CF;
		break;
	case 2:
		is = flags & ZF;
		break;
	case 3:
		is = flags & (CF | ZF);
		break;
	case 4:
		is = flags & SF;
		break;
	case 5:
		is = flags & PF;
		break;
	case 6:
		is = less;
		break;
	default:
		is = less || (flags & ZF);
	}
	return is != (condition & 1);
}

/* @return 0, or -1 with EFAULT: a jump to what is no address faults where it stands. */
static int jump(struct user_regs_struct *r, uint64_t target)
{
	int64_t top = (int64_t)target >> 47;

	if (top != 0 && top != -1) {
		errno = EFAULT;
		return -1;
	}
	r->rip = target;
	return 0;
}

static int load(const struct memory *memory, uint64_t address, uint64_t *value)
{
	if (memory->read(memory->data, address, value, sizeof(*value)) == 0)
		return 0;
	errno = EFAULT;
	return -1;
}

static int push(struct user_regs_struct *r, const struct memory *memory, uint64_t value)
{
	if (memory->write(memory->data, r->rsp - sizeof(value), &value, sizeof(value)) < 0) {
		errno = EFAULT;
		return -1;
	}
	r->rsp -= sizeof(value);
	return 0;
}

static int pop(struct user_regs_struct *r, const struct memory *memory, unsigned number)
{
	uint64_t value;

	if (load(memory, r->rsp, &value) < 0)
		return -1;
	r->rsp += sizeof(value);
	/* Last: `pop rsp` keeps what it read. */
	*reg_at(r, number) = value;
	return 0;
}

static int ret(struct user_regs_struct *r, const struct insn *insn, const struct memory *memory)
{
	uint64_t target;

	if (load(memory, r->rsp, &target) < 0 || jump(r, target) < 0)
		return -1;
	r->rsp += sizeof(target) + (uint64_t)insn->imm;
	return 0;
}

static int call(struct user_regs_struct *r, const struct insn *insn, uint64_t next,
		const struct memory *memory)
{
	return push(r, memory, next) < 0 ? -1 : jump(r, next + (uint64_t)insn->imm);
}

static int jump_indirect(struct user_regs_struct *r, const struct insn *insn, uint64_t next,
			 const struct memory *memory)
{
	uint64_t target;

	if (insn->reg != INSN_NO_REG)
		target = *reg_at(r, insn->reg);
	else if (load(memory, address_of(r, insn, next), &target) < 0)
		return -1;
	return jump(r, target);
}

static int emulate(struct user_regs_struct *r, const struct insn *insn, uint64_t next,
		   const struct memory *memory)
{
	r->rip = next;
	switch (insn->kind) {
	case INSN_NOP:
		return 0;
	case INSN_PUSH:
		return push(r, memory, *reg_at(r, insn->reg));
	case INSN_PUSH_IMM:
		return push(r, memory, (uint64_t)insn->imm);
	case INSN_POP:
		return pop(r, memory, insn->reg);
	case INSN_ADD_IMM:
	case INSN_SUB_IMM:
		add_or_sub(r, insn);
		return 0;
	case INSN_MOV:
		*reg_at(r, insn->reg) = cut(insn, *reg_at(r, insn->other));
		return 0;
	case INSN_MOV_IMM:
		*reg_at(r, insn->reg) = cut(insn, (uint64_t)insn->imm);
		return 0;
	case INSN_LEA:
		*reg_at(r, insn->reg) = cut(insn, address_of(r, insn, next));
		return 0;
	case INSN_XOR:
		*reg_at(r, insn->reg) = 0;
		set_flags(r, insn, 0, 0);
		return 0;
	case INSN_TEST:
		set_flags(r, insn, cut(insn, *reg_at(r, insn->reg) & *reg_at(r, insn->other)), 0);
		return 0;
	case INSN_JMP:
		return jump(r, next + (uint64_t)insn->imm);
	case INSN_JCC:
		return is_true(r->eflags, insn->condition) ? jump(r, next + (uint64_t)insn->imm)
							   : 0;
	case INSN_CALL:
		return call(r, insn, next, memory);
	case INSN_RET:
		return ret(r, insn, memory);
	case INSN_JMP_INDIRECT:
		return jump_indirect(r, insn, next, memory);
	default:
		errno = ENOTSUP;
		return -1;
	}
}

bool arch_takes_jump(const struct arch_regs *regs, const struct insn *insn)
{
	return is_true(regs->raw.eflags, insn->condition);
}

int arch_emulate(struct arch_regs *regs, const struct insn *insn, uint64_t address,
		 int (*read)(void *data, uint64_t address, void *to, size_t len),
		 int (*write)(void *data, uint64_t address, const void *from, size_t len),
		 void *data)
{
	struct memory memory = {read, write, data};
	struct arch_regs after = *regs;

	if (emulate(&after.raw, insn, address + insn->len, &memory) < 0)
		return -1;
	*regs = after;
	return 0;
}
