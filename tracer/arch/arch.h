/* What depends on the CPU: registers, numbers and instructions. One folder per architecture. */
#ifndef TRACER_ARCH_ARCH_H
#define TRACER_ARCH_ARCH_H

#include "tracer/arch/x86_64/numbers.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/audit.h>
#include <sys/types.h>
#include <sys/user.h>

/* All system call numbers that the table may name are below. */
#define ARCH_SYSCALL_LIMIT 512

/* The AUDIT_ARCH_* of the calls that are decoded. */
#define ARCH_AUDIT AUDIT_ARCH_X86_64

/* The breakpoint instruction, and how far behind its address the program stands when it hit. */
#define ARCH_BREAKPOINT     0xcc
#define ARCH_BREAKPOINT_LEN 1

/* Length of the system call instruction. */
#define ARCH_SYSCALL_LEN 2

enum arch_op { ARCH_OP_NONE, ARCH_OP_ENTRY, ARCH_OP_EXIT };

/* A system call stop, as the kernel tells it. */
struct arch_stop {
	enum arch_op op;
	bool foreign; /* a call of another architecture (i386, x32): nr and args mean nothing here */
	uint64_t ip;  /* behind the system call instruction */
	uint64_t sp;
	uint64_t nr; /* entry only */
	uint64_t args[6];
	int64_t ret; /* exit only; -errno on failure */
	/* What the filter said that made it stop; ARCH_NO_FILTER_DATA: not known. */
	uint32_t filter_data;
};

#define ARCH_NO_FILTER_DATA UINT32_MAX

/* Reads a stopped task's system call stop. With `use_info` by PTRACE_GET_SYSCALL_INFO (Linux 5.3),
 * else from the registers, where `expect` says which of the two stops it is (NONE: to be guessed).
 * @return 0, or -1 with errno (ESRCH: the task has died). */
int arch_stop_read(pid_t tid, bool use_info, enum arch_op expect, struct arch_stop *stop);

struct insn;

struct arch_regs {
	struct user_regs_struct raw;
};

int arch_regs_get(pid_t tid, struct arch_regs *regs);
int arch_regs_set(pid_t tid, const struct arch_regs *regs);

uint64_t arch_regs_ip(const struct arch_regs *regs);
uint64_t arch_regs_sp(const struct arch_regs *regs);
void arch_regs_set_ip(struct arch_regs *regs, uint64_t ip);

/* The base of %gs, which programs rarely use. */
uint64_t arch_regs_gs(const struct arch_regs *regs);
void arch_regs_set_gs(struct arch_regs *regs, uint64_t base);

/* Makes the registers those of a task about to execute the system call instruction at `ip`. */
void arch_regs_set_call(struct arch_regs *regs, uint64_t ip, uint64_t nr, const uint64_t args[6]);

/* @return whether the task stands behind a system call that has just ended, seen from the registers at a
 * signal's delivery; its number and result. */
bool arch_regs_ended_call(const struct arch_regs *regs, uint64_t *nr, int64_t *result);

/* @return argument `n` of that call. */
uint64_t arch_regs_arg(const struct arch_regs *regs, unsigned n);

/* Changes the registers so that the ended call is made again, and back to its having ended with `result`. */
void arch_regs_call_again(struct arch_regs *regs);
void arch_regs_call_ended(struct arch_regs *regs, int64_t result);

/* Changes the registers, as they are at a call's entry, to those in front of the call, which is not made from that
 * entry. */
void arch_regs_before_call(struct arch_regs *regs);

/* @return integer argument `n` (0 to 5) of a function that the task is about to begin. */
uint64_t arch_regs_function_arg(const struct arch_regs *regs, unsigned n);

/* @return the register in which a function returns an integer. */
int64_t arch_regs_function_result(const struct arch_regs *regs);

/* Changes the result register. */
void arch_regs_set_result(struct arch_regs *regs, int64_t result);

/* Makes the call at whose entry the task stands fail with ENOSYS instead of being made.
 * @return 0, or -1 with errno. */
int arch_refuse_call(pid_t tid);

/* Changes one argument of the call at whose entry the task stands. @return 0, or -1 with errno. */
int arch_set_arg(pid_t tid, unsigned n, uint64_t value);

/* @return where a system call instruction lies in `code`, -1: nowhere. */
long arch_find_syscall(const unsigned char *code, size_t len);

/* What a signal frame says of the point that the handler interrupted; `sp` is the stack pointer at
 * the entry of rt_sigreturn, and the frame begins there. */
struct arch_sigframe {
	uint64_t ip;
	uint64_t sp;
	int64_t result;
};
#define ARCH_SIGFRAME_SIZE 176 /* bytes to read at sp */
#define ARCH_SIGFRAME_IP   168 /* where the ip stands in them */
#define ARCH_SIGFRAME_MASK 296 /* where the mask stands behind sp that comes back */
void arch_sigframe_parse(const unsigned char *bytes, struct arch_sigframe *frame);

/* @return whether a conditional jump (INSN_JCC) is taken with these flags. */
bool arch_takes_jump(const struct arch_regs *regs, const struct insn *insn);

/* Does in the registers and, by the callbacks, on the stack what the processor would have done at
 * the instruction that a breakpoint displaced; `address` is where it stands in the program.
 * @param read, write  copy program memory; 0, or -1.
 * @return 0, or -1 with errno: ENOTSUP for what is not emulated; EFAULT when the real instruction
 * would fault, which it then must do in the program. The registers are unchanged then. */
int arch_emulate(struct arch_regs *regs, const struct insn *insn, uint64_t address,
		 int (*read)(void *data, uint64_t address, void *to, size_t len),
		 int (*write)(void *data, uint64_t address, const void *from, size_t len),
		 void *data);

#endif
