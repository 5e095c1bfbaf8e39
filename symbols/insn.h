/* Single instructions: what a breakpoint displaced is done in its place, by emulation or
 * elsewhere. */
#ifndef SYMBOLS_INSN_H
#define SYMBOLS_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INSN_MAX 15

/* The most that insn_relocate writes. */
#define INSN_RELOCATED_MAX 36

enum insn_kind {
	INSN_REFUSED,      /* cannot be displaced; see `reason` */
	INSN_NOP,          /* nop, endbr64 */
	INSN_PUSH,         /* push reg */
	INSN_PUSH_IMM,     /* push imm */
	INSN_POP,          /* pop reg */
	INSN_ADD_IMM,      /* add reg, imm; sets flags */
	INSN_SUB_IMM,      /* sub reg, imm: not the sum with -imm, the carry differs */
	INSN_MOV,          /* mov reg64, reg64 or reg32, reg32 */
	INSN_MOV_IMM,      /* mov reg, imm */
	INSN_LEA,          /* lea reg, [other + index*scale + imm], rip-relative too */
	INSN_XOR,          /* xor reg, same reg */
	INSN_TEST,         /* test reg, other */
	INSN_JMP,          /* jmp relative */
	INSN_JCC,          /* jump relative if `condition` */
	INSN_CALL,         /* call relative */
	INSN_RET,          /* ret, ret imm16, with prefixes (bnd, rep) */
	INSN_JMP_INDIRECT, /* jmp reg, or with INSN_NO_REG jmp [other + index*scale + imm] */
	INSN_COPY,         /* executed elsewhere as it is */
	INSN_COPY_RIP,     /* executed elsewhere with its rip-relative displacement changed */
};

/* Registers in the processor's numbering: rax rcx rdx rbx rsp rbp rsi rdi r8 … r15. */
#define INSN_NO_REG 0xff

struct insn {
	enum insn_kind kind;
	const char *reason; /* of INSN_REFUSED */
	unsigned char bytes[INSN_MAX];
	unsigned char len;
	unsigned char width; /* operand size in bytes: 4 or 8 */
	unsigned char reg;
	unsigned char other; /* second register; base of an address */
	unsigned char index;
	unsigned char scale;
	unsigned char condition; /* of JCC, as in the low four bits of the opcode */
	unsigned char disp_at;   /* where a rip-relative displacement stands in the bytes */
	bool rip_relative;       /* the address is imm plus that of the next instruction */
	int64_t imm;             /* immediate; displacement, of jumps too; bytes that RET pops */
	uint64_t target;         /* of JMP, JCC and CALL, when decoded at `address` */
};

/* A decoder; one per thread. @return NULL with errno ENOMEM. */
struct insn_decoder;
struct insn_decoder *insn_decoder_new(void);
void insn_decoder_free(struct insn_decoder *decoder);

/* Decodes the instruction that begins `code` and lies at `address`. @return 0, or -1 when the bytes
 * are no whole instruction. */
int insn_decode(struct insn_decoder *decoder, const unsigned char *code, size_t len,
		uint64_t address, struct insn *insn);

/* @return whether control goes on behind the instruction only, from nowhere but there: no jump, and no call, which
 * returns to behind it. */
bool insn_is_straight(const struct insn *insn);

/* @return the length of the instruction that begins `code`, 0 when the bytes are no whole one. */
size_t insn_length(struct insn_decoder *decoder, const unsigned char *code, size_t len);

/* Writes what does the same as the instruction at `from` when it is executed at `to`, and then goes
 * on behind it at its old place. All kinds but REFUSED, so that what cannot be emulated (a stack
 * that cannot be written) faults in the program itself; a call pushes its true return address.
 * @return bytes written to `out`, 0 when the displacement does not reach or `size` is too small. */
size_t insn_relocate(const struct insn *insn, uint64_t from, uint64_t to, unsigned char *out,
		     size_t size);

#endif
