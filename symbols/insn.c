#include "symbols/insn.h"

#include "symbols/parse.h"

#include <capstone/capstone.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct insn_decoder {
	csh lengths; /* knows no operands and is faster for it */
	csh details;
	cs_insn *length;
	cs_insn *detail;
};

struct insn_decoder *insn_decoder_new(void)
{
	struct insn_decoder *decoder = calloc(1, sizeof(*decoder));

	if (!decoder)
		return NULL;
	if (cs_open(CS_ARCH_X86, CS_MODE_64, &decoder->lengths) != CS_ERR_OK ||
	    cs_open(CS_ARCH_X86, CS_MODE_64, &decoder->details) != CS_ERR_OK ||
	    cs_option(decoder->details, CS_OPT_DETAIL, CS_OPT_ON) != CS_ERR_OK)
		goto fail;
	decoder->length = cs_malloc(decoder->lengths);
	decoder->detail = cs_malloc(decoder->details);
	if (!decoder->length || !decoder->detail)
		goto fail;
	return decoder;
fail:
	insn_decoder_free(decoder);
	errno = ENOMEM;
	return NULL;
}

void insn_decoder_free(struct insn_decoder *decoder)
{
	if (!decoder)
		return;
	if (decoder->length)
		cs_free(decoder->length, 1);
	if (decoder->detail)
		cs_free(decoder->detail, 1);
	if (decoder->lengths)
		cs_close(&decoder->lengths);
	if (decoder->details)
		cs_close(&decoder->details);
	free(decoder);
}

bool insn_is_straight(const struct insn *insn)
{
	switch (insn->kind) {
	case INSN_REFUSED:
	case INSN_JMP:
	case INSN_JCC:
	case INSN_CALL:
	case INSN_RET:
	case INSN_JMP_INDIRECT:
		return false;
	default:
		return true;
	}
}

size_t insn_length(struct insn_decoder *decoder, const unsigned char *code, size_t len)
{
	uint64_t address = 0;

	if (!cs_disasm_iter(decoder->lengths, &code, &len, &address, decoder->length))
		return 0;
	return decoder->length->size;
}

/* @return the register's number and the width of its name in bytes, INSN_NO_REG: none of 32 or 64
 * bits. */
static unsigned char reg_number(unsigned reg, unsigned char *width)
{
	static const uint16_t wide[] = {
		X86_REG_RAX, X86_REG_RCX, X86_REG_RDX, X86_REG_RBX, X86_REG_RSP, X86_REG_RBP,
		X86_REG_RSI, X86_REG_RDI, X86_REG_R8,  X86_REG_R9,  X86_REG_R10, X86_REG_R11,
		X86_REG_R12, X86_REG_R13, X86_REG_R14, X86_REG_R15,
	};
	static const uint16_t narrow[] = {
		X86_REG_EAX,  X86_REG_ECX,  X86_REG_EDX,  X86_REG_EBX,  X86_REG_ESP,  X86_REG_EBP,
		X86_REG_ESI,  X86_REG_EDI,  X86_REG_R8D,  X86_REG_R9D,  X86_REG_R10D, X86_REG_R11D,
		X86_REG_R12D, X86_REG_R13D, X86_REG_R14D, X86_REG_R15D,
	};

	for (unsigned char i = 0; i < 16; i++) {
		if (reg == wide[i] || reg == narrow[i]) {
			*width = reg == wide[i] ? 8 : 4;
			return i;
		}
	}
	return INSN_NO_REG;
}

/* The memory operand. @return whether emulation can find its address. */
static bool take_address(const cs_x86_op *op, struct insn *insn)
{
	unsigned char width = 8;
	const x86_op_mem *mem = &op->mem;

	insn->other = insn->index = INSN_NO_REG;
	insn->scale = (unsigned char)mem->scale;
	insn->imm = mem->disp;
	insn->rip_relative = mem->base == X86_REG_RIP;
	if (mem->base != X86_REG_INVALID && !insn->rip_relative) {
		insn->other = reg_number(mem->base, &width);
		if (insn->other == INSN_NO_REG || width != 8)
			return false;
	}
	if (mem->index != X86_REG_INVALID && mem->index != X86_REG_RIZ) {
		insn->index = reg_number(mem->index, &width);
		if (insn->index == INSN_NO_REG || width != 8)
			return false;
	}
	return mem->segment == X86_REG_INVALID;
}

static bool take_reg(const cs_x86_op *op, struct insn *insn, unsigned char *number)
{
	unsigned char width = 0;

	if (op->type != X86_OP_REG)
		return false;
	*number = reg_number(op->reg, &width);
	if (*number == INSN_NO_REG || (insn->width && insn->width != width))
		return false;
	insn->width = width;
	return true;
}

/* The commonest first instructions, which take no second stop when they are emulated. @return its
 * kind, INSN_COPY for what is none of them. */
static enum insn_kind emulated_kind(const cs_insn *cs, struct insn *insn)
{
	const cs_x86 *x86 = &cs->detail->x86;
	const cs_x86_op *op = x86->operands;

	/* 67, 66 and lock change what the operands seem to be. */
	if (x86->addr_size != 8 || x86->prefix[2] == X86_PREFIX_OPSIZE ||
	    x86->prefix[0] == X86_PREFIX_LOCK)
		return INSN_COPY;
	switch (cs->id) {
	case X86_INS_PUSH:
		if (op[0].type == X86_OP_IMM) {
			insn->imm = op[0].imm;
			return INSN_PUSH_IMM;
		}
		return take_reg(&op[0], insn, &insn->reg) ? INSN_PUSH : INSN_COPY;
	case X86_INS_POP:
		return take_reg(&op[0], insn, &insn->reg) ? INSN_POP : INSN_COPY;
	case X86_INS_ADD:
	case X86_INS_SUB:
		if (!take_reg(&op[0], insn, &insn->reg) || op[1].type != X86_OP_IMM)
			return INSN_COPY;
		insn->imm = op[1].imm;
		return cs->id == X86_INS_ADD ? INSN_ADD_IMM : INSN_SUB_IMM;
	case X86_INS_MOV:
	case X86_INS_MOVABS:
		if (!take_reg(&op[0], insn, &insn->reg))
			return INSN_COPY;
		if (op[1].type == X86_OP_IMM) {
			insn->imm = op[1].imm;
			return INSN_MOV_IMM;
		}
		return take_reg(&op[1], insn, &insn->other) ? INSN_MOV : INSN_COPY;
	case X86_INS_LEA:
		if (!take_reg(&op[0], insn, &insn->reg))
			return INSN_COPY;
		return take_address(&op[1], insn) ? INSN_LEA : INSN_COPY;
	case X86_INS_XOR:
	case X86_INS_TEST:
		if (!take_reg(&op[0], insn, &insn->reg) || !take_reg(&op[1], insn, &insn->other))
			return INSN_COPY;
		if (cs->id == X86_INS_TEST)
			return INSN_TEST;
		return insn->reg == insn->other ? INSN_XOR : INSN_COPY;
	default:
		return INSN_COPY;
	}
}

static int refuse(struct insn *insn, const char *reason)
{
	insn->kind = INSN_REFUSED;
	insn->reason = reason;
	return 0;
}

static int decode_jcc(const struct parse *p, struct insn *insn)
{
	if (p->map == 0 && (p->opcode & 0xf0) != 0x70)
		return refuse(insn, "a loop or transaction instruction");
	insn->kind = INSN_JCC;
	insn->condition = p->opcode & 0xf;
	insn->imm = p->imm;
	insn->target = p->target;
	return 0;
}

static int decode_indirect(const struct parse *p, struct insn *insn)
{
	if (p->segment || p->address32)
		return refuse(insn, "a jump through a segment");
	insn->kind = INSN_JMP_INDIRECT;
	insn->width = 8;
	insn->reg = p->memory ? INSN_NO_REG : p->rm;
	insn->other = p->base;
	insn->index = p->index;
	insn->scale = p->scale;
	insn->imm = p->disp;
	insn->rip_relative = p->rip_relative;
	insn->disp_at = p->disp_at;
	return 0;
}

static int decode_flow(const struct parse *p, struct insn *insn)
{
	switch (p->flow) {
	case PARSE_RET:
		insn->kind = INSN_RET;
		insn->imm = p->imm & 0xffff;
		return 0;
	case PARSE_CALL:
		if (p->opcode != 0xe8)
			return refuse(insn, "an indirect call");
		/* fall through */
	case PARSE_JMP:
		insn->kind = p->flow == PARSE_JMP ? INSN_JMP : INSN_CALL;
		insn->imm = p->imm;
		insn->target = p->target;
		return 0;
	case PARSE_JCC:
		return decode_jcc(p, insn);
	case PARSE_INDIRECT:
		return decode_indirect(p, insn);
	case PARSE_TRAP:
		return refuse(insn, "a trap");
	default:
		return refuse(insn, "a far jump or return");
	}
}

/* What enters the kernel has its address looked at there, and what traps is expected where it
 * stands. */
static const char *must_stay(const cs_insn *cs)
{
	switch (cs->id) {
	case X86_INS_SYSCALL:
	case X86_INS_SYSENTER:
	case X86_INS_INT:
	case X86_INS_INT1:
		return "a system call instruction";
	case X86_INS_UD2B:
	case X86_INS_HLT:
		return "a trap";
	case X86_INS_CALL:
	case X86_INS_LCALL:
	case X86_INS_JMP:
	case X86_INS_LJMP:
	case X86_INS_XABORT:
		return "a jump of a rare form";
	default:
		return NULL;
	}
}

int insn_decode(struct insn_decoder *decoder, const unsigned char *code, size_t len,
		uint64_t address, struct insn *insn)
{
	struct parse p;
	const unsigned char *at = code;
	size_t left = len;
	uint64_t here = address;
	cs_insn *cs = decoder->detail;

	*insn = (struct insn){
		.reg = INSN_NO_REG, .other = INSN_NO_REG, .index = INSN_NO_REG, .scale = 1};
	if (parse_insn(decoder, code, len, address, &p) < 0)
		return -1;
	insn->len = p.len;
	memcpy(insn->bytes, code, p.len);
	if (p.flow != PARSE_NEXT)
		return decode_flow(&p, insn);
	if ((p.map == 0x0f && (p.opcode == 0x1e || p.opcode == 0x1f) && !p.rep) ||
	    (p.map == 0x0f && p.opcode == 0x1e && !p.memory && p.rep == 0xf3 && p.digit == 7) ||
	    (p.map == 0 && p.opcode == 0x90 && p.reg == 0)) {
		insn->kind = INSN_NOP;
		return 0;
	}
	if (!cs_disasm_iter(decoder->details, &at, &left, &here, cs) || cs->size != p.len) {
		/* Newer than the decoder. */
		if (p.map != PARSE_OTHER_MAP || !p.has_modrm)
			return refuse(insn, "an instruction that is not understood");
		insn->kind = p.rip_relative ? INSN_COPY_RIP : INSN_COPY;
		insn->disp_at = p.disp_at;
		return 0;
	}
	const char *stays = must_stay(cs);
	if (stays)
		return refuse(insn, stays);
	insn->kind = emulated_kind(cs, insn);
	insn->disp_at = cs->detail->x86.encoding.disp_offset;
	for (int i = 0; insn->kind == INSN_COPY && i < cs->detail->x86.op_count; i++) {
		const cs_x86_op *op = &cs->detail->x86.operands[i];
		if (op->type == X86_OP_MEM && op->mem.base == X86_REG_EIP)
			return refuse(insn, "an address relative to a 32-bit instruction pointer");
		if (op->type == X86_OP_MEM && op->mem.base == X86_REG_RIP)
			insn->kind = INSN_COPY_RIP;
	}
	return 0;
}

struct out {
	unsigned char *bytes;
	size_t len;
	size_t size;
	bool failed;
};

static void put(struct out *out, const void *bytes, size_t len)
{
	if (out->failed || out->size - out->len < len) {
		out->failed = true;
		return;
	}
	memcpy(out->bytes + out->len, bytes, len);
	out->len += len;
}

static bool reaches(int64_t distance)
{
	return distance == (int32_t)distance;
}

/* A jump to `target`, out of code that will lie at `to`. */
static void put_jump(struct out *out, uint64_t to, uint64_t target)
{
	static const unsigned char through_memory[] = {0xff, 0x25, 0, 0, 0, 0};
	static const unsigned char relative = 0xe9;
	int64_t distance = (int64_t)(target - (to + out->len + 5));
	int32_t disp = (int32_t)distance;

	if (reaches(distance)) {
		put(out, &relative, 1);
		put(out, &disp, 4);
	} else {
		put(out, through_memory, sizeof(through_memory));
		put(out, &target, 8);
	}
}

/* The instruction's own bytes, its displacement changed. */
static void put_copy(struct out *out, const struct insn *insn, uint64_t from, uint64_t to)
{
	size_t at = out->len;
	int32_t disp;

	put(out, insn->bytes, insn->len);
	if (out->failed || (!insn->rip_relative && insn->kind != INSN_COPY_RIP))
		return;
	if (insn->disp_at == 0 || insn->disp_at + sizeof(disp) > insn->len) {
		out->failed = true;
		return;
	}
	memcpy(&disp, insn->bytes + insn->disp_at, sizeof(disp));
	int64_t distance = (int64_t)(from + (uint64_t)(int64_t)disp - (to + at));
	if (!reaches(distance)) {
		out->failed = true;
		return;
	}
	disp = (int32_t)distance;
	memcpy(out->bytes + at + insn->disp_at, &disp, sizeof(disp));
}

/* Pushes an address without touching a register. */
static void put_push(struct out *out, uint64_t address)
{
	static const unsigned char push = 0x68;
	static const unsigned char store_high[] = {0xc7, 0x44, 0x24, 0x04};
	uint32_t low = (uint32_t)address;
	uint32_t high = (uint32_t)(address >> 32);

	put(out, &push, 1);
	put(out, &low, 4);
	put(out, store_high, sizeof(store_high));
	put(out, &high, 4);
}

size_t insn_relocate(const struct insn *insn, uint64_t from, uint64_t to, unsigned char *bytes,
		     size_t size)
{
	struct out out = {.bytes = bytes, .size = size};
	uint64_t next = from + insn->len;
	uint64_t target = next + (uint64_t)insn->imm;

	switch (insn->kind) {
	case INSN_REFUSED:
		return 0;
	case INSN_RET:
	case INSN_JMP_INDIRECT:
		put_copy(&out, insn, from, to);
		break;
	case INSN_CALL:
		put_push(&out, next);
		put_jump(&out, to, target);
		break;
	case INSN_JMP:
		put_jump(&out, to, target);
		break;
	case INSN_JCC: {
		/* Over the jump back, whose length is known once it is there. */
		unsigned char jump[2] = {(unsigned char)(0x70 | insn->condition), 0};
		put(&out, jump, sizeof(jump));
		put_jump(&out, to, next);
		if (!out.failed)
			bytes[1] = (unsigned char)(out.len - sizeof(jump));
		put_jump(&out, to, target);
		break;
	}
	default:
		put_copy(&out, insn, from, to);
		put_jump(&out, to, next);
	}
	return out.failed ? 0 : out.len;
}
