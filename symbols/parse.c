#include "symbols/parse.h"

#include <string.h>

/* What follows an opcode. */
enum {
	NONE = 0,
	MODRM = 1,
	IMM8 = 2,
	IMM16 = 4,
	IMM32 = 8, /* 16 bits with an operand size prefix */
	KNOWN = 16,
};

struct cursor {
	const unsigned char *begin;
	const unsigned char *at;
	const unsigned char *end;
};

static bool read_imm(struct cursor *c, size_t size, int64_t *value)
{
	int16_t i16;
	int32_t i32;

	if ((size_t)(c->end - c->at) < size)
		return false;
	switch (size) {
	case 1:
		*value = (*c->at ^ 0x80) - 0x80;
		break;
	case 2:
		memcpy(&i16, c->at, size);
		*value = i16;
		break;
	case 4:
		memcpy(&i32, c->at, size);
		*value = i32;
		break;
	default:
		memcpy(value, c->at, size);
	}
	c->at += size;
	return true;
}

/* Legacy prefixes, then REX. @return its bits, -1 when that is not the order or the bytes end. */
static int read_prefixes(struct cursor *c, struct parse *p)
{
	for (; c->at < c->end; c->at++) {
		switch (*c->at) {
		case 0x66:
			p->operand16 = true;
			continue;
		case 0x67:
			p->address32 = true;
			continue;
		case 0xf2:
		case 0xf3:
			p->rep = *c->at;
			continue;
		case 0x3e:
			p->notrack = true;
			continue;
		case 0x64:
		case 0x65:
			p->segment = true;
			continue;
		case 0x26:
		case 0x2e:
		case 0x36:
			continue;
		case 0xf0: /* which instructions may be locked is the full decoder's knowledge */
			return -1;
		default:
			break;
		}
		if ((*c->at & 0xf0) != 0x40)
			return 0;
		int rex = *c->at++;
		p->wide = rex & 8;
		if (p->wide)
			p->operand16 = false;
		return rex;
	}
	return -1;
}

static bool read_modrm(struct cursor *c, struct parse *p, int rex)
{
	if (c->at == c->end)
		return false;
	unsigned char modrm = *c->at++;
	unsigned mod = modrm >> 6;
	int64_t disp = 0;

	p->has_modrm = true;
	p->digit = (modrm >> 3) & 7;
	p->reg = p->digit | (rex & 4 ? 8 : 0);
	p->rm = (modrm & 7) | (rex & 1 ? 8 : 0);
	if (mod == 3)
		return true;
	p->memory = true;
	p->base = p->rm;
	if ((modrm & 7) == 4) {
		if (c->at == c->end)
			return false;
		unsigned char sib = *c->at++;
		p->base = (sib & 7) | (rex & 1 ? 8 : 0);
		p->index = ((sib >> 3) & 7) | (rex & 2 ? 8 : 0);
		p->scale = (unsigned char)(1 << (sib >> 6));
		if (p->index == 4)
			p->index = INSN_NO_REG;
		if ((sib & 7) == 5 && mod == 0) {
			p->base = INSN_NO_REG;
			mod = 2;
		}
	} else if ((modrm & 7) == 5 && mod == 0) {
		p->base = INSN_NO_REG;
		p->rip_relative = true;
		mod = 2;
	}
	p->disp_at = (unsigned char)(c->at - c->begin);
	if (mod && !read_imm(c, mod == 1 ? 1 : 4, &disp))
		return false;
	p->disp = (int32_t)disp;
	return true;
}

static int one_byte_form(unsigned char op)
{
	if (op < 0x40)
		return (op & 7) < 4    ? KNOWN | MODRM
		       : (op & 7) == 4 ? KNOWN | IMM8
		       : (op & 7) == 5 ? KNOWN | IMM32
				       : 0;
	if (op >= 0x50 && op <= 0x5f)
		return KNOWN;
	if (op >= 0x70 && op <= 0x7f)
		return KNOWN | IMM8;
	if ((op >= 0x84 && op <= 0x8b) || (op >= 0xd0 && op <= 0xd3))
		return KNOWN | MODRM;
	if (op >= 0xb0 && op <= 0xb7)
		return KNOWN | IMM8;
	switch (op) {
	case 0x63:
	case 0x8d:
	case 0xf6: /* and an immediate, in two of its forms */
	case 0xf7:
	case 0xfe:
	case 0xff:
		return KNOWN | MODRM;
	case 0x68:
	case 0xa9:
		return KNOWN | IMM32;
	case 0x69:
	case 0x81:
	case 0xc7:
		return KNOWN | MODRM | IMM32;
	case 0x6a:
	case 0xa8:
	case 0xe0:
	case 0xe1:
	case 0xe2:
	case 0xe3:
	case 0xeb:
		return KNOWN | IMM8;
	case 0x6b:
	case 0x80:
	case 0x83:
	case 0xc0:
	case 0xc1:
	case 0xc6:
		return KNOWN | MODRM | IMM8;
	case 0xc2:
	case 0xca:
		return KNOWN | IMM16;
	case 0x90:
	case 0x98:
	case 0x99:
	case 0xc3:
	case 0xc9:
	case 0xcb:
	case 0xcc:
	case 0xcf:
	case 0xf1:
	case 0xf4:
		return KNOWN;
	case 0xe8: /* a prefix does not change what these take: they are in near jumps for padding
		      only */
	case 0xe9:
		return KNOWN | IMM32;
	default:
		return op >= 0xb8 && op <= 0xbf ? KNOWN | IMM32 : 0;
	}
}

static int two_byte_form(unsigned char op)
{
	if (op >= 0x80 && op <= 0x8f)
		return KNOWN | IMM32;
	if ((op >= 0x40 && op <= 0x4f) || (op >= 0x90 && op <= 0x9f) ||
	    (op >= 0x10 && op <= 0x17) || (op >= 0x28 && op <= 0x2f) || (op >= 0x50 && op <= 0x6f))
		return KNOWN | MODRM;
	switch (op) {
	case 0x05:
	case 0x0b:
	case 0xa2:
		return KNOWN;
	case 0x01: /* not all of its forms go on, but those are the kernel's */
	case 0x1e:
	case 0x1f:
	case 0x7e:
	case 0x7f:
	case 0xa3:
	case 0xab:
	case 0xae:
	case 0xaf:
	case 0xb3:
	case 0xb6:
	case 0xb7:
	case 0xbb:
	case 0xbc:
	case 0xbd:
	case 0xbe:
	case 0xbf:
	case 0xd4:
	case 0xd6:
	case 0xd7:
	case 0xef:
	case 0xfa:
	case 0xfb:
	case 0xfe:
		return KNOWN | MODRM;
	case 0x70:
	case 0xa4:
	case 0xac:
	case 0xba:
	case 0xc6:
		return KNOWN | MODRM | IMM8;
	default:
		return 0;
	}
}

static enum parse_flow flow_of_group(const struct parse *p)
{
	switch (p->digit) {
	case 2:
		return PARSE_CALL;
	case 4:
		return PARSE_INDIRECT;
	case 3:
	case 5:
		return PARSE_FAR;
	default:
		return PARSE_NEXT;
	}
}

static enum parse_flow flow_of(const struct parse *p)
{
	if (p->map == PARSE_OTHER_MAP)
		return PARSE_NEXT;
	if (p->map == 0x0f) {
		if (p->opcode == 0x0b)
			return PARSE_TRAP;
		return (p->opcode & 0xf0) == 0x80 ? PARSE_JCC : PARSE_NEXT;
	}
	switch (p->opcode) {
	case 0xe8:
		return PARSE_CALL;
	case 0xe9:
	case 0xeb:
		return PARSE_JMP;
	case 0xc2:
	case 0xc3:
		return PARSE_RET;
	case 0xca:
	case 0xcb:
	case 0xcf:
		return PARSE_FAR;
	case 0xcc:
	case 0xf1:
	case 0xf4:
		return PARSE_TRAP;
	case 0xff:
		return flow_of_group(p);
	case 0xc7: /* xbegin: an abort goes to the target */
		return p->has_modrm && p->digit == 7 ? PARSE_JCC : PARSE_NEXT;
	case 0xe0:
	case 0xe1:
	case 0xe2:
	case 0xe3:
		return PARSE_JCC;
	default:
		return (p->opcode & 0xf0) == 0x70 ? PARSE_JCC : PARSE_NEXT;
	}
}

static size_t imm_size(const struct parse *p, int form)
{
	if (form & IMM8)
		return 1;
	if (form & IMM16)
		return 2;
	if (!(form & IMM32))
		return 0;
	if (flow_of(p) == PARSE_CALL || flow_of(p) == PARSE_JMP || flow_of(p) == PARSE_JCC)
		return 4;
	if (p->map == 0 && (p->opcode & 0xf8) == 0xb8 && p->wide)
		return 8;
	return p->operand16 ? 2 : 4;
}

/* VEX and EVEX: full decoders know some of them only, but they are all of one form. */
static bool parse_vector(struct cursor *c, struct parse *p)
{
	size_t payload = *c->at == 0xc5 ? 1 : *c->at == 0xc4 ? 2 : 3;
	const unsigned char *prefix = c->at;
	int64_t imm;

	if ((size_t)(c->end - c->at) < payload + 2)
		return false;
	unsigned map = payload == 1 ? 1 : prefix[1] & (payload == 2 ? 0x1f : 7);
	if (map < 1 || map > 3)
		return false;
	unsigned char op = prefix[payload + 1];
	c->at += payload + 2;
	p->opcode = op;
	if (map == 1 && op == 0x77) /* vzeroupper */
		return true;
	/* Which registers these name is nobody's question. */
	if (!read_modrm(c, p, 0))
		return false;
	bool imm8 = map == 3 || (map == 1 && ((op >= 0x70 && op <= 0x73) || op == 0xc2 ||
					      (op >= 0xc4 && op <= 0xc6)));
	return !imm8 || read_imm(c, 1, &imm);
}

/* What has three opcode bytes. */
static bool parse_long(struct cursor *c, struct parse *p, int rex)
{
	int64_t imm;
	bool imm8 = p->opcode == 0x3a;

	if (c->at == c->end)
		return false;
	p->map = PARSE_OTHER_MAP;
	p->opcode = *c->at++;
	return read_modrm(c, p, rex) && (!imm8 || read_imm(c, 1, &imm));
}

/* @return whether the form is one that is known here and the bytes suffice. */
static bool parse_form(struct cursor *c, struct parse *p)
{
	int rex = read_prefixes(c, p);
	if (rex < 0 || c->at == c->end)
		return false;
	if (rex == 0 && (*c->at == 0xc4 || *c->at == 0xc5 || *c->at == 0x62)) {
		p->map = PARSE_OTHER_MAP;
		return parse_vector(c, p);
	}
	p->opcode = *c->at++;
	if (p->opcode == 0x0f) {
		if (c->at == c->end)
			return false;
		p->map = 0x0f;
		p->opcode = *c->at++;
	}
	if (p->map && (p->opcode == 0x38 || p->opcode == 0x3a))
		return parse_long(c, p, rex);
	int form = p->map ? two_byte_form(p->opcode) : one_byte_form(p->opcode);
	if (!form)
		return false;
	p->reg = (p->opcode & 7) | (rex & 1 ? 8 : 0);
	if ((form & MODRM) && !read_modrm(c, p, rex))
		return false;
	if (p->map == 0 && (p->opcode & 0xfe) == 0xf6 && p->digit < 2)
		form |= p->opcode == 0xf6 ? IMM8 : IMM32;
	size_t size = imm_size(p, form);
	return size == 0 || read_imm(c, size, &p->imm);
}

int parse_insn(struct insn_decoder *decoder, const unsigned char *code, size_t len,
	       uint64_t address, struct parse *p)
{
	size_t cap = len < INSN_MAX ? len : INSN_MAX;
	struct cursor c = {code, code, code + cap};

	*p = (struct parse){.base = INSN_NO_REG, .index = INSN_NO_REG};
	if (parse_form(&c, p)) {
		p->len = (unsigned char)(c.at - code);
		p->flow = flow_of(p);
		if (p->flow == PARSE_JMP || p->flow == PARSE_JCC ||
		    (p->flow == PARSE_CALL && p->opcode == 0xe8))
			p->target = address + p->len + (uint64_t)p->imm;
		return 0;
	}
	/* No instruction that is missing above changes the flow, but for those that trap. */
	*p = (struct parse){.map = PARSE_OTHER_MAP, .base = INSN_NO_REG, .index = INSN_NO_REG};
	p->len = (unsigned char)insn_length(decoder, code, len);
	return p->len ? 0 : -1;
}
