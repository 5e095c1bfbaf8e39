#include "tracer/arch/arch.h"

#include <elf.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include <sys/ptrace.h>
#include <sys/uio.h>

/* x32 calls come with the arch of x86-64 and this bit in the number. */
#define X32_BIT   0x40000000U
#define CS_USER64 0x33

static int read_info(pid_t tid, struct arch_stop *stop)
{
	struct __ptrace_syscall_info info;

	/* The request returns the size of what it knows; reading fewer bytes than it has is fine. */
	long len = ptrace(PTRACE_GET_SYSCALL_INFO, tid, sizeof(info), &info);
	if (len < 0)
		return -1;
	stop->ip = info.instruction_pointer;
	stop->sp = info.stack_pointer;
	stop->foreign = info.arch != ARCH_AUDIT;
	switch (info.op) {
	case PTRACE_SYSCALL_INFO_SECCOMP:
		stop->filter_data = info.seccomp.ret_data;
		/* fall through */
	case PTRACE_SYSCALL_INFO_ENTRY:
		stop->op = ARCH_OP_ENTRY;
		/* Both forms begin with the number and the arguments. */
		stop->nr = info.entry.nr;
		memcpy(stop->args, info.entry.args, sizeof(stop->args));
		break;
	case PTRACE_SYSCALL_INFO_EXIT:
		stop->op = ARCH_OP_EXIT;
		stop->ret = info.exit.rval;
		break;
	default:
		stop->op = ARCH_OP_NONE;
	}
	return 0;
}

/* Registers do not tell a 32-bit call that 64-bit code makes (int 0x80) from one of its own. */
static bool is_old_call(pid_t tid, uint64_t ip)
{
	errno = 0;
	long word = ptrace(PTRACE_PEEKTEXT, tid, ip - 2, NULL);
	return errno == 0 && (word & 0xffff) == 0x80cd;
}

int arch_stop_read(pid_t tid, bool use_info, enum arch_op expect, struct arch_stop *stop)
{
	*stop = (struct arch_stop){.filter_data = ARCH_NO_FILTER_DATA};
	if (use_info) {
		if (read_info(tid, stop) < 0)
			return -1;
	} else {
		struct arch_regs regs;
		if (arch_regs_get(tid, &regs) < 0)
			return -1;
		const struct user_regs_struct *r = &regs.raw;
		stop->op = expect;
		/* The kernel sets this before it looks at the number. */
		if (expect == ARCH_OP_NONE)
			stop->op = (int64_t)r->rax == -ENOSYS ? ARCH_OP_ENTRY : ARCH_OP_EXIT;
		stop->foreign = r->cs != CS_USER64 ||
				(stop->op == ARCH_OP_ENTRY && is_old_call(tid, r->rip));
		stop->ip = r->rip;
		stop->sp = r->rsp;
		stop->nr = r->orig_rax;
		stop->args[0] = r->rdi;
		stop->args[1] = r->rsi;
		stop->args[2] = r->rdx;
		stop->args[3] = r->r10;
		stop->args[4] = r->r8;
		stop->args[5] = r->r9;
		stop->ret = (int64_t)r->rax;
	}
	if (stop->op == ARCH_OP_ENTRY && (stop->nr & X32_BIT) && stop->nr != (uint64_t)-1)
		stop->foreign = true;
	return 0;
}

int arch_regs_get(pid_t tid, struct arch_regs *regs)
{
	struct iovec iov = {&regs->raw, sizeof(regs->raw)};
	return ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &iov) < 0 ? -1 : 0;
}

int arch_regs_set(pid_t tid, const struct arch_regs *regs)
{
	struct iovec iov = {(void *)&regs->raw, sizeof(regs->raw)};
	return ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &iov) < 0 ? -1 : 0;
}

uint64_t arch_regs_ip(const struct arch_regs *regs)
{
	return regs->raw.rip;
}

uint64_t arch_regs_sp(const struct arch_regs *regs)
{
	return regs->raw.rsp;
}

void arch_regs_set_ip(struct arch_regs *regs, uint64_t ip)
{
	regs->raw.rip = ip;
}

void arch_regs_set_call(struct arch_regs *regs, uint64_t ip, uint64_t nr, const uint64_t args[6])
{
	struct user_regs_struct *r = &regs->raw;

	r->rip = ip;
	r->rax = nr;
	/* Not inside a system call: the kernel must not restart anything on the way out. */
	r->orig_rax = (unsigned long long)-1;
	r->rdi = args[0];
	r->rsi = args[1];
	r->rdx = args[2];
	r->r10 = args[3];
	r->r8 = args[4];
	r->r9 = args[5];
}

void arch_regs_set_result(struct arch_regs *regs, int64_t result)
{
	regs->raw.rax = (unsigned long long)result;
}

bool arch_regs_ended_call(const struct arch_regs *regs, uint64_t *nr, int64_t *result)
{
	*nr = regs->raw.orig_rax;
	*result = (int64_t)regs->raw.rax;
	return regs->raw.cs == CS_USER64 && *nr < ARCH_SYSCALL_LIMIT;
}

uint64_t arch_regs_arg(const struct arch_regs *regs, unsigned n)
{
	const struct user_regs_struct *r = &regs->raw;
	const uint64_t args[] = {r->rdi, r->rsi, r->rdx, r->r10, r->r8, r->r9};
	return args[n];
}

uint64_t arch_regs_function_arg(const struct arch_regs *regs, unsigned n)
{
	const struct user_regs_struct *r = &regs->raw;
	const uint64_t args[] = {r->rdi, r->rsi, r->rdx, r->rcx, r->r8, r->r9};
	return args[n];
}

int64_t arch_regs_function_result(const struct arch_regs *regs)
{
	return (int64_t)regs->raw.rax;
}

void arch_regs_call_again(struct arch_regs *regs)
{
	regs->raw.rip -= ARCH_SYSCALL_LEN;
	regs->raw.rax = regs->raw.orig_rax;
}

void arch_regs_call_ended(struct arch_regs *regs, int64_t result)
{
	regs->raw.rip += ARCH_SYSCALL_LEN;
	regs->raw.rax = (unsigned long long)result;
}

void arch_regs_before_call(struct arch_regs *regs)
{
	regs->raw.rip -= ARCH_SYSCALL_LEN;
	regs->raw.rax = regs->raw.orig_rax;
	regs->raw.orig_rax = (unsigned long long)-1;
}

int arch_refuse_call(pid_t tid)
{
	/* At the entry the result is -ENOSYS already. */
	return ptrace(PTRACE_POKEUSER, tid, offsetof(struct user_regs_struct, orig_rax), -1L) < 0
		       ? -1
		       : 0;
}

int arch_set_arg(pid_t tid, unsigned n, uint64_t value)
{
	static const size_t offsets[] = {
		offsetof(struct user_regs_struct, rdi), offsetof(struct user_regs_struct, rsi),
		offsetof(struct user_regs_struct, rdx), offsetof(struct user_regs_struct, r10),
		offsetof(struct user_regs_struct, r8),  offsetof(struct user_regs_struct, r9),
	};
	return ptrace(PTRACE_POKEUSER, tid, offsets[n], value) < 0 ? -1 : 0;
}

long arch_find_syscall(const unsigned char *code, size_t len)
{
	for (size_t i = 0; i + 1 < len; i++) {
		if (code[i] == 0x0f && code[i + 1] == 0x05)
			return (long)i;
	}
	return -1;
}

uint64_t arch_regs_gs(const struct arch_regs *regs)
{
	return regs->raw.gs_base;
}

void arch_regs_set_gs(struct arch_regs *regs, uint64_t base)
{
	regs->raw.gs_base = base;
}

/* struct ucontext of the kernel: uc_flags, uc_link, uc_stack (40 bytes), then sigcontext: r8 … r15,
 * rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip (arch/x86/include/uapi/asm/sigcontext.h). */
void arch_sigframe_parse(const unsigned char *bytes, struct arch_sigframe *frame)
{
	const size_t context = 40;
	_Static_assert(ARCH_SIGFRAME_IP == 40 + 16 * 8, "the ip is what is read below");
	memcpy(&frame->result, bytes + context + 13 * 8, 8);
	memcpy(&frame->sp, bytes + context + 15 * 8, 8);
	memcpy(&frame->ip, bytes + context + 16 * 8, 8);
}
