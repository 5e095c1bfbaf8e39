/* Instructions: what the emulation does to registers, flags and stack against what the processor
 * does, in a process that is stepped; and relocated code, run there too. */

#include "symbols/insn.h"
#include "symbols/parse.h"
#include "tracer/arch/arch.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <cmocka.h>

#define PAGE 4096
/* Far from each other, so that a displacement may not reach, and from what sanitizers keep for themselves. */
#define CODE  ((unsigned char *)0x400000000000)
#define SPARE ((unsigned char *)0x400000800000)
#define AWAY  ((unsigned char *)0x500000000000)
#define STACK ((unsigned char *)0x300000000000)

#define FLAGS 0xcd5U /* CF PF AF ZF SF DF OF */

struct fixture {
	pid_t pid;
	struct insn_decoder *decoder;
	struct user_regs_struct start;
	uint64_t seed;
	unsigned char before[PAGE];
};

static uint64_t any(struct fixture *f)
{
	f->seed ^= f->seed << 13;
	f->seed ^= f->seed >> 7;
	f->seed ^= f->seed << 17;
	return f->seed;
}

static void *map(unsigned char *at, int prot)
{
	return mmap(at, PAGE, prot, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	int status;

	assert_non_null(f);
	f->seed = 88172645463325252U;
	f->decoder = insn_decoder_new();
	assert_non_null(f->decoder);
	assert_ptr_equal(map(CODE, PROT_READ | PROT_WRITE | PROT_EXEC), CODE);
	assert_ptr_equal(map(SPARE, PROT_READ | PROT_WRITE | PROT_EXEC), SPARE);
	assert_ptr_equal(map(AWAY, PROT_READ | PROT_WRITE | PROT_EXEC), AWAY);
	assert_ptr_equal(map(STACK, PROT_READ | PROT_WRITE), STACK);
	f->pid = fork();
	assert_true(f->pid >= 0);
	if (f->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		_exit(1);
	}
	assert_int_equal(waitpid(f->pid, &status, 0), f->pid);
	assert_true(WIFSTOPPED(status));
	struct arch_regs regs;
	assert_int_equal(arch_regs_get(f->pid, &regs), 0);
	f->start = regs.raw;
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	kill(f->pid, SIGKILL);
	waitpid(f->pid, NULL, 0);
	insn_decoder_free(f->decoder);
	munmap(CODE, PAGE);
	munmap(SPARE, PAGE);
	munmap(AWAY, PAGE);
	munmap(STACK, PAGE);
	free(f);
	return 0;
}

static int read_program(void *data, uint64_t address, void *to, size_t len)
{
	(void)data;
	memcpy(to, (void *)address, len);
	return 0;
}

static int write_program(void *data, uint64_t address, const void *from, size_t len)
{
	(void)data;
	memcpy((void *)address, from, len);
	return 0;
}

static int fail_to_read(void *data, uint64_t address, void *to, size_t len)
{
	(void)data, (void)address, (void)to, (void)len;
	return -1;
}

static int fail_to_write(void *data, uint64_t address, const void *from, size_t len)
{
	(void)data, (void)address, (void)from, (void)len;
	return -1;
}

/* Registers with a bias towards the values at which flags change; the stack pointer in the middle
 * of the stack. */
static uint64_t value_for(struct fixture *f)
{
	static const uint64_t edges[] = {0,          1,          0x7f,       0x80,
					 0x7fffffff, 0x80000000, 0xffffffff, INT64_MAX,
					 1ULL << 63, UINT64_MAX, 0xf,        0x10};

	return any(f) % 3 ? any(f) : edges[any(f) % (sizeof(edges) / sizeof(*edges))];
}

static struct arch_regs regs_for(struct fixture *f)
{
	struct arch_regs regs = {f->start};
	struct user_regs_struct *r = &regs.raw;
	unsigned long long *const all[] = {&r->rax, &r->rcx, &r->rdx, &r->rbx, &r->rbp,
					   &r->rsi, &r->rdi, &r->r8,  &r->r9,  &r->r10,
					   &r->r11, &r->r12, &r->r13, &r->r14, &r->r15};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		*all[i] = value_for(f);
	r->rsp = (uint64_t)STACK + 1024 + any(f) % 64 * 8;
	r->rip = (uint64_t)CODE + any(f) % 64;
	r->eflags = (r->eflags & ~(uint64_t)FLAGS) | (any(f) & FLAGS);
	r->orig_rax = (unsigned long long)-1;
	for (size_t i = 0; i < PAGE / 8; i++) {
		/* Addresses, for what returns. */
		uint64_t word = any(f) >> 18;
		memcpy(STACK + i * 8, &word, 8);
	}
	return regs;
}

/* Lets the process execute one instruction. @return whether it was one that did not fault. */
static bool step(struct fixture *f, struct arch_regs *regs)
{
	int status;

	assert_int_equal(arch_regs_set(f->pid, regs), 0);
	assert_int_equal(ptrace(PTRACE_SINGLESTEP, f->pid, NULL, NULL), 0);
	assert_int_equal(waitpid(f->pid, &status, 0), f->pid);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(arch_regs_get(f->pid, regs), 0);
	return WSTOPSIG(status) == SIGTRAP;
}

static void print_difference(const struct insn *insn, const struct arch_regs *a,
			     const struct arch_regs *b)
{
	const unsigned long long *x = (const unsigned long long *)&a->raw;
	const unsigned long long *y = (const unsigned long long *)&b->raw;

	for (unsigned i = 0; i < insn->len; i++)
		fprintf(stderr, "%02x ", insn->bytes[i]);
	fprintf(stderr, "kind %d\n", (int)insn->kind);
	for (size_t i = 0; i < sizeof(a->raw) / sizeof(*x); i++) {
		if (x[i] != y[i])
			fprintf(stderr, "register %zu: %llx, emulated %llx\n", i, x[i], y[i]);
	}
}

static void assert_same(const struct insn *insn, const struct arch_regs *real,
			const struct arch_regs *emulated)
{
	struct arch_regs a = *real;
	struct arch_regs b = *emulated;

	a.raw.eflags &= FLAGS;
	b.raw.eflags &= FLAGS;
	a.raw.orig_rax = b.raw.orig_rax;
	if (memcmp(&a.raw, &b.raw, sizeof(a.raw)) != 0) {
		print_difference(insn, &a, &b);
		fail();
	}
}

/* Does the instruction both ways, and once more where it is relocated to. */
static void compare(struct fixture *f, const unsigned char *bytes, size_t len, enum insn_kind kind)
{
	struct arch_regs regs = regs_for(f);
	struct arch_regs real = regs;
	unsigned char after[PAGE];
	struct insn insn;
	uint64_t at = regs.raw.rip;

	memset(CODE, 0x90, PAGE);
	memcpy(CODE + (at - (uint64_t)CODE), bytes, len);
	assert_int_equal(insn_decode(f->decoder, bytes, len, at, &insn), 0);
	if (insn.kind != kind || insn.len != len)
		print_difference(&insn, &regs, &regs);
	assert_int_equal(insn.kind, kind);
	assert_int_equal(insn.len, len);
	memcpy(f->before, STACK, PAGE);
	if (!step(f, &real))
		return; /* an operand in memory that is not there */
	memcpy(after, STACK, PAGE);
	memcpy(STACK, f->before, PAGE);
	assert_int_equal(arch_emulate(&regs, &insn, at, read_program, write_program, NULL), 0);
	assert_same(&insn, &real, &regs);
	assert_memory_equal(STACK, after, PAGE);
}

static void repeat(struct fixture *f, const unsigned char *bytes, size_t len, enum insn_kind kind)
{
	for (int i = 0; i < 8; i++)
		compare(f, bytes, len, kind);
}

static size_t with_rex(unsigned char *bytes, unsigned rex)
{
	if (!rex)
		return 0;
	bytes[0] = (unsigned char)(0x40 | rex);
	return 1;
}

static void put32(unsigned char *at, uint64_t value)
{
	uint32_t v = (uint32_t)value;
	memcpy(at, &v, 4);
}

static void test_push_pop(void **state)
{
	struct fixture *f = *state;
	unsigned char b[16];

	for (unsigned reg = 0; reg < 16; reg++) {
		size_t n = with_rex(b, reg >> 3);
		b[n] = (unsigned char)(0x50 | (reg & 7));
		repeat(f, b, n + 1, INSN_PUSH);
		b[n] = (unsigned char)(0x58 | (reg & 7));
		repeat(f, b, n + 1, INSN_POP);
	}
	for (int i = 0; i < 40; i++) {
		b[0] = 0x6a;
		b[1] = (unsigned char)any(f);
		compare(f, b, 2, INSN_PUSH_IMM);
		b[0] = 0x68;
		put32(b + 1, any(f));
		compare(f, b, 5, INSN_PUSH_IMM);
	}
}

/* add and sub, with short and long immediates. */
static void test_arithmetic(void **state)
{
	struct fixture *f = *state;
	unsigned char b[16];

	for (int i = 0; i < 4000; i++) {
		unsigned reg = (unsigned)any(f) & 15;
		bool wide = any(f) & 1;
		bool sub = any(f) & 1;
		bool is_short = any(f) & 1;
		size_t n = with_rex(b, (reg >> 3) | (wide ? 8 : 0));
		b[n++] = is_short ? 0x83 : 0x81;
		b[n++] = (unsigned char)(0xc0 | (sub ? 0x28 : 0) | (reg & 7));
		put32(b + n, value_for(f));
		n += is_short ? 1 : 4;
		compare(f, b, n, sub ? INSN_SUB_IMM : INSN_ADD_IMM);
	}
	for (int i = 0; i < 200; i++) {
		size_t n = with_rex(b, any(f) & 8);
		b[n] = any(f) & 1 ? 0x05 : 0x2d;
		put32(b + n + 1, value_for(f));
		compare(f, b, n + 5, b[n] == 0x05 ? INSN_ADD_IMM : INSN_SUB_IMM);
	}
}

static void test_two_registers(void **state)
{
	struct fixture *f = *state;
	unsigned char b[16];

	for (int i = 0; i < 3000; i++) {
		unsigned rex = (unsigned)any(f) & 0xd;
		unsigned char fields = (unsigned char)(any(f) & 0x3f);
		size_t n = with_rex(b, rex);
		b[n + 1] = 0xc0 | fields;
		b[n] = any(f) & 1 ? 0x89 : 0x8b;
		compare(f, b, n + 2, INSN_MOV);
		b[n] = 0x85;
		compare(f, b, n + 2, INSN_TEST);
		n = with_rex(b, (rex & 8) | (rex & 1 ? 5 : 0));
		b[n + 1] = (unsigned char)(0xc0 | (fields & 7) | ((fields & 7) << 3));
		b[n] = any(f) & 1 ? 0x31 : 0x33;
		compare(f, b, n + 2, INSN_XOR);
	}
}

static void test_mov_immediate(void **state)
{
	struct fixture *f = *state;
	unsigned char b[16];

	for (int i = 0; i < 500; i++) {
		unsigned reg = (unsigned)any(f) & 15;
		uint64_t value = value_for(f);
		size_t n = with_rex(b, reg >> 3);
		b[n] = (unsigned char)(0xb8 | (reg & 7));
		put32(b + n + 1, value);
		compare(f, b, n + 5, INSN_MOV_IMM);
		n = with_rex(b, 8 | reg >> 3);
		b[n] = (unsigned char)(0xb8 | (reg & 7));
		memcpy(b + n + 1, &value, 8);
		compare(f, b, n + 9, INSN_MOV_IMM);
		n = with_rex(b, (any(f) & 8) | reg >> 3);
		b[n] = 0xc7;
		b[n + 1] = (unsigned char)(0xc0 | (reg & 7));
		put32(b + n + 2, value);
		compare(f, b, n + 6, INSN_MOV_IMM);
	}
}

/* A random address, with a displacement of a random form. @return its length behind the opcode. */
static size_t put_address(struct fixture *f, unsigned char *at, unsigned digit)
{
	unsigned mod = (unsigned)any(f) % 3;
	unsigned rm = (unsigned)any(f) & 7;
	unsigned char sib = (unsigned char)any(f);
	size_t n = 0;

	at[n++] = (unsigned char)(mod << 6 | digit << 3 | rm);
	if (rm == 4)
		at[n++] = sib;
	if (mod == 0 && (rm == 5 || (rm == 4 && (sib & 7) == 5)))
		mod = 2;
	put32(at + n, any(f) & 1 ? any(f) : any(f) & 0x7f);
	return n + (mod == 1 ? 1 : mod == 2 ? 4 : 0);
}

static void test_lea(void **state)
{
	struct fixture *f = *state;
	unsigned char b[16];

	for (int i = 0; i < 8000; i++) {
		size_t n = with_rex(b, (unsigned)any(f) & 0xf);
		b[n++] = 0x8d;
		n += put_address(f, b + n, (unsigned)any(f) & 7);
		compare(f, b, n, INSN_LEA);
	}
}

static void test_jumps(void **state)
{
	struct fixture *f = *state;
	unsigned char b[16];

	for (int i = 0; i < 4000; i++) {
		unsigned char condition = (unsigned char)(any(f) & 15);
		b[0] = 0x70 | condition;
		b[1] = (unsigned char)any(f);
		compare(f, b, 2, INSN_JCC);
		b[0] = 0x0f;
		b[1] = 0x80 | condition;
		put32(b + 2, any(f) & 0x7fffff);
		compare(f, b, 6, INSN_JCC);
	}
	for (int i = 0; i < 100; i++) {
		b[0] = 0xeb;
		b[1] = (unsigned char)any(f);
		compare(f, b, 2, INSN_JMP);
		b[0] = i & 1 ? 0xe9 : 0xe8;
		put32(b + 1, any(f) & 0x7fffff);
		compare(f, b, 5, i & 1 ? INSN_JMP : INSN_CALL);
		b[0] = 0x3e; /* notrack jmp *reg; most registers hold no address, and it faults */
		size_t n = 1 + with_rex(b + 1, (unsigned)any(f) & 1);
		b[n] = 0xff;
		b[n + 1] = (unsigned char)(0xe0 | (any(f) & 7));
		compare(f, b, n + 2, INSN_JMP_INDIRECT);
	}
}

/* Through memory that is there: by the stack pointer, and by the instruction pointer. */
static void test_jumps_through_memory(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 100; i++) {
		unsigned char by_sp[] = {0xff, 0x64, 0x24, (unsigned char)(any(f) & 0x78)};
		unsigned char by_ip[] = {0xff, 0x25, (unsigned char)(any(f) & 0x7f), 1, 0, 0};
		compare(f, by_sp, sizeof(by_sp), INSN_JMP_INDIRECT);
		compare(f, by_ip, sizeof(by_ip), INSN_JMP_INDIRECT);
	}
}

static void test_returns(void **state)
{
	struct fixture *f = *state;
	static const unsigned char plain[] = {0xc3};
	static const unsigned char rep[] = {0xf3, 0xc3};
	static const unsigned char bnd[] = {0xf2, 0xc3};
	static const unsigned char pops[] = {0xc2, 0x18, 0x00};
	static const unsigned char pops_much[] = {0xc2, 0x00, 0xff};

	repeat(f, plain, sizeof(plain), INSN_RET);
	repeat(f, rep, sizeof(rep), INSN_RET);
	repeat(f, bnd, sizeof(bnd), INSN_RET);
	repeat(f, pops, sizeof(pops), INSN_RET);
	repeat(f, pops_much, sizeof(pops_much), INSN_RET);
}

static void test_nops(void **state)
{
	struct fixture *f = *state;
	static const unsigned char one[] = {0x90};
	static const unsigned char endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	static const unsigned char nine[] = {0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0};
	static const unsigned char ten[] = {0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0};

	repeat(f, one, sizeof(one), INSN_NOP);
	repeat(f, endbr64, sizeof(endbr64), INSN_NOP);
	repeat(f, nine, sizeof(nine), INSN_NOP);
	repeat(f, ten, sizeof(ten), INSN_NOP);
}

/* What must not be taken for one of those that are emulated, and what cannot be displaced. */
static void test_kinds(void **state)
{
	struct fixture *f = *state;
	static const struct {
		unsigned char bytes[12];
		unsigned char len;
		enum insn_kind kind;
	} rows[] = {
		{{0x66, 0x89, 0xc3}, 3, INSN_COPY},       /* mov ax, bx */
		{{0x66, 0x83, 0xc0, 0x01}, 4, INSN_COPY}, /* add ax, 1 */
		{{0x66, 0x50}, 2, INSN_COPY},             /* push ax */
		{{0x67, 0x8d, 0x04, 0x08}, 4, INSN_COPY}, /* lea eax, [eax+ecx] */
		{{0x31, 0xc8}, 2, INSN_COPY},             /* xor eax, ecx */
		{{0xf0, 0x83, 0x00, 0x01}, 4, INSN_COPY}, /* lock add [rax], 1 */
		{{0x89, 0xf8}, 2, INSN_MOV},              /* mov eax, edi */
		{{0x48, 0x8b, 0x07}, 3, INSN_COPY},       /* mov rax, [rdi] */
		{{0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0},
		 9,
		 INSN_COPY},                                              /* mov rax, fs:[40] */
		{{0x80, 0x3d, 1, 2, 3, 0, 0}, 7, INSN_COPY_RIP},          /* cmp byte [rip], 0 */
		{{0x8b, 0x05, 1, 2, 3, 0}, 6, INSN_COPY_RIP},             /* mov eax, [rip] */
		{{0xff, 0x35, 1, 2, 3, 0}, 6, INSN_COPY_RIP},             /* push [rip] */
		{{0xc5, 0xfb, 0x10, 0x05, 1, 2, 3, 0}, 8, INSN_COPY_RIP}, /* vmovsd [rip] */
		{{0xff, 0xd0}, 2, INSN_REFUSED},                          /* call rax */
		{{0x0f, 0x05}, 2, INSN_REFUSED},                          /* syscall */
		{{0x0f, 0x0b}, 2, INSN_REFUSED},                          /* ud2 */
		{{0xcc}, 1, INSN_REFUSED},                                /* int3 */
		{{0xf4}, 1, INSN_REFUSED},                                /* hlt */
		{{0xcd, 0x80}, 2, INSN_REFUSED},                          /* int 0x80 */
		{{0xe3, 0x01}, 2, INSN_REFUSED},                          /* jrcxz */
		{{0xe2, 0x01}, 2, INSN_REFUSED},                          /* loop */
		{{0xcb}, 1, INSN_REFUSED},                                /* retf */
		{{0xc7, 0xf8, 1, 0, 0, 0}, 6, INSN_REFUSED},              /* xbegin */
		{{0x64, 0xff, 0x24, 0x25, 0, 0, 0, 0}, 8, INSN_REFUSED},  /* jmp fs:[0] */
	};
	struct insn insn;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		assert_int_equal(insn_decode(f->decoder, rows[i].bytes, rows[i].len, 0, &insn), 0);
		if (insn.kind != rows[i].kind || insn.len != rows[i].len)
			fprintf(stderr, "row %zu\n", i);
		assert_int_equal(insn.kind, rows[i].kind);
		assert_int_equal(insn.len, rows[i].len);
		assert_true((insn.kind == INSN_REFUSED) == (insn.reason != NULL));
		/* Cut short, it is none. */
		assert_int_equal(insn_decode(f->decoder, rows[i].bytes, rows[i].len - 1U, 0, &insn),
				 -1);
	}
	assert_int_equal(insn_decode(f->decoder, (const unsigned char *)"\x06", 1, 0, &insn), -1);
}

/* Where the stack cannot be used nothing changes. */
static void test_faults(void **state)
{
	struct fixture *f = *state;
	static const unsigned char rows[][5] = {
		{0x55}, {0x5d}, {0x6a, 1}, {0xc3}, {0xe8, 1, 0, 0, 0}, {0xff, 0x20}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct arch_regs regs = regs_for(f);
		struct arch_regs before = regs;
		struct insn insn;
		assert_int_equal(insn_decode(f->decoder, rows[i], 5, 0, &insn), 0);
		errno = 0;
		assert_int_equal(
			arch_emulate(&regs, &insn, 0x1000, fail_to_read, fail_to_write, NULL), -1);
		assert_int_equal(errno, EFAULT);
		assert_memory_equal(&regs, &before, sizeof(regs));
	}
	struct arch_regs regs = regs_for(f);
	struct insn insn = {.kind = INSN_COPY};
	assert_int_equal(arch_emulate(&regs, &insn, 0, read_program, write_program, NULL), -1);
	assert_int_equal(errno, ENOTSUP);
	/* A return to what is no address faults at the return. */
	uint64_t none = 1ULL << 50;
	memcpy(STACK + (regs.raw.rsp - (uint64_t)STACK), &none, sizeof(none));
	insn.kind = INSN_RET;
	assert_int_equal(arch_emulate(&regs, &insn, 0, read_program, write_program, NULL), -1);
	assert_int_equal(errno, EFAULT);
}

/* Runs what was relocated until it has left, and compares with the instruction in its place. */
static void compare_relocated(struct fixture *f, const unsigned char *bytes, size_t len,
			      unsigned char *to)
{
	struct arch_regs regs = regs_for(f);
	struct arch_regs real = regs;
	unsigned char after[PAGE];
	struct insn insn;
	uint64_t at = regs.raw.rip;

	memset(CODE, 0x90, PAGE);
	memcpy(CODE + (at - (uint64_t)CODE), bytes, len);
	assert_int_equal(insn_decode(f->decoder, bytes, len, at, &insn), 0);
	size_t n = insn_relocate(&insn, at, (uint64_t)to, to, INSN_RELOCATED_MAX);
	assert_int_equal(insn_relocate(&insn, at, (uint64_t)to, (unsigned char[1]){0}, 1),
			 insn.kind == INSN_RET && len == 1);
	assert_true(n != 0 && n <= INSN_RELOCATED_MAX);
	memcpy(f->before, STACK, PAGE);
	assert_true(step(f, &real));
	memcpy(after, STACK, PAGE);
	memcpy(STACK, f->before, PAGE);
	regs.raw.rip = (uint64_t)to;
	for (int i = 0; i < 5; i++) {
		assert_true(step(f, &regs));
		if (regs.raw.rip < (uint64_t)to || regs.raw.rip >= (uint64_t)to + n)
			break;
	}
	assert_same(&insn, &real, &regs);
	assert_memory_equal(STACK, after, PAGE);
}

static void test_relocated(void **state)
{
	struct fixture *f = *state;
	static const struct {
		unsigned char bytes[10];
		unsigned char len;
		bool near_only;
	} rows[] = {
		{{0x55}, 1, false},
		{{0x5d}, 1, false},
		{{0x48, 0x83, 0xec, 0x18}, 4, false},
		{{0x48, 0x01, 0xd8}, 3, false},            /* add rax, rbx */
		{{0x80, 0x3d, 1, 1, 0, 0, 0x90}, 7, true}, /* cmp byte [rip], imm */
		{{0x48, 0x8d, 0x05, 1, 1, 0, 0}, 7, true}, /* lea rax, [rip] */
		{{0x48, 0x8b, 0x05, 1, 1, 0, 0}, 7, true}, /* mov rax, [rip] */
		{{0xff, 0x35, 1, 1, 0, 0}, 6, true},       /* push [rip] */
		{{0xeb, 0x20}, 2, false},
		{{0xe9, 0x20, 1, 0, 0}, 5, false},
		{{0xe8, 0x20, 1, 0, 0}, 5, false},
		{{0x75, 0x20}, 2, false},
		{{0x0f, 0x8c, 0x20, 1, 0, 0}, 6, false},
		{{0xc3}, 1, false},
		{{0xc2, 8, 0}, 3, false},
		{{0xff, 0x64, 0x24, 8}, 4, false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		for (int n = 0; n < 8; n++) {
			compare_relocated(f, rows[i].bytes, rows[i].len, SPARE);
			if (!rows[i].near_only)
				compare_relocated(f, rows[i].bytes, rows[i].len, AWAY);
		}
		struct insn insn;
		unsigned char out[INSN_RELOCATED_MAX];
		assert_int_equal(
			insn_decode(f->decoder, rows[i].bytes, rows[i].len, 0x400000, &insn), 0);
		if (rows[i].near_only)
			assert_int_equal(
				insn_relocate(&insn, 0x400000, (uint64_t)AWAY, out, sizeof(out)),
				0);
	}
}

/* The two ways to know a length agree on bytes of any kind that both understand. */
static void test_parse(void **state)
{
	struct fixture *f = *state;
	unsigned char b[16];
	struct parse p;

	for (int i = 0; i < 300000; i++) {
		for (size_t at = 0; at < sizeof(b); at += 8) {
			uint64_t word = any(f);
			memcpy(b + at, &word, 8);
		}
		if (parse_insn(f->decoder, b, sizeof(b), 0, &p) < 0 || p.map == 0xff)
			continue;
		assert_in_range(p.len, 1, INSN_MAX);
		size_t len = insn_length(f->decoder, b, sizeof(b));
		/* Jumps with prefixes that change nothing mislead the full decoder. */
		if (len != p.len && len != 0 && p.flow == PARSE_NEXT) {
			for (int k = 0; k < 15; k++)
				fprintf(stderr, "%02x ", b[k]);
			fprintf(stderr, "length %d, decoder %zu\n", p.len, len);
			fail();
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_push_pop),
		cmocka_unit_test(test_arithmetic),
		cmocka_unit_test(test_two_registers),
		cmocka_unit_test(test_mov_immediate),
		cmocka_unit_test(test_lea),
		cmocka_unit_test(test_jumps),
		cmocka_unit_test(test_jumps_through_memory),
		cmocka_unit_test(test_returns),
		cmocka_unit_test(test_nops),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_relocated),
		cmocka_unit_test(test_parse),
	};
	return cmocka_run_group_tests_name("insn", tests, set_up, tear_down);
}
