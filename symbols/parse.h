/* The form of an instruction: where it ends, where it leads, which registers it names. Finding the
 * exits of a function looks at all its instructions and needs no more than that; the full decoder,
 * which prints every instruction as text, takes ten times as long. Of rare forms only the full
 * decoder knows the length. */
#ifndef SYMBOLS_PARSE_H
#define SYMBOLS_PARSE_H

#include "symbols/insn.h"

/* The map of opcodes of which only the length, and what ModRM says of memory, is known. */
#define PARSE_OTHER_MAP 0xff

enum parse_flow {
	PARSE_NEXT,     /* goes on behind itself */
	PARSE_CALL,     /* that too, if the callee returns */
	PARSE_JMP,      /* to `target` */
	PARSE_JCC,      /* to `target` or on */
	PARSE_INDIRECT, /* to where a register or the memory says */
	PARSE_RET,
	PARSE_TRAP, /* does not go on: int3, hlt, ud2 */
	PARSE_FAR,  /* far jumps and returns */
};

struct parse {
	enum parse_flow flow;
	unsigned char len;
	unsigned char map;    /* of the opcode: 0, 0x0f, PARSE_OTHER_MAP */
	unsigned char opcode; /* its last byte */
	unsigned char rep;    /* 0xf2, 0xf3 or 0 */
	bool operand16;
	bool wide; /* REX.W */
	bool segment;
	bool address32;
	bool notrack;
	bool has_modrm;
	bool memory;         /* the r/m operand is one */
	bool rip_relative;   /* and lies at disp plus the next instruction's address */
	unsigned char digit; /* the reg field without REX.R */
	unsigned char reg;   /* with it; of opcodes with a register in themselves, that one */
	unsigned char rm;    /* register, unless memory */
	unsigned char base;
	unsigned char index;
	unsigned char scale;
	unsigned char disp_at; /* where the displacement stands, if there is one */
	int32_t disp;
	int64_t imm;
	uint64_t target;
};

/* @return 0, or -1 when the bytes are no whole instruction. */
int parse_insn(struct insn_decoder *decoder, const unsigned char *code, size_t len,
	       uint64_t address, struct parse *parse);

#endif
