/* Plans: of functions assembled here, in this very program's file, and of all functions of real
 * libraries against what objdump says. DFTRACE_CENSUS=FILE,… has those files planned too. */

#include "base/map.h"
#include "base/proc.h"
#include "symbols/plan.h"
#include "tests/unit/test_decoder.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/auxv.h>
#include <sys/wait.h>

#include <cmocka.h>

/* A function with bounds of its own. PLACE says that the plan of `name` must have a place of this
 * kind here. */
#define BEGIN(name) ".globl " #name "\n.type " #name ",@function\n" #name ":\n.cfi_startproc\n"
#define END(name)   ".cfi_endproc\n.size " #name ",.-" #name "\n"
#define PLACE(name, kind)                                                                          \
	"77: .pushsection plan_places,\"aw\"\n.quad 77b, " #name ", " #kind "\n.popsection\n"
#define ENTRY(name) PLACE(name, 0)
#define RET(name)   PLACE(name, 1)
#define TAIL(name)  PLACE(name, 2)

/* clang-format off */
__asm__(".text\n.p2align 4\n"
	BEGIN(t_plain) ENTRY(t_plain) "push %rbx\n mov %edi,%ebx\n pop %rbx\n"
		RET(t_plain) RET(t_tail_if) "ret\n" END(t_plain)
	BEGIN(t_only_ret) ENTRY(t_only_ret) "ret\n" END(t_only_ret)
	BEGIN(t_endbr_ret) "endbr64\n" ENTRY(t_endbr_ret) "rep ret\n" END(t_endbr_ret)
	BEGIN(t_two) "endbr64\n" ENTRY(t_two) "test %edi,%edi\n je 1f\n" RET(t_two) RET(t_tail) "ret\n"
		"1: xor %eax,%eax\n" RET(t_two) RET(t_tail) "ret $8\n" END(t_two)
	BEGIN(t_tail) ENTRY(t_tail) "mov $1,%edx\n jmp t_two\n" END(t_tail)
	BEGIN(t_tail_if) ENTRY(t_tail_if) "test %edi,%edi\n jne t_plain\n" RET(t_tail_if) "ret\n" END(t_tail_if)
	BEGIN(t_tail_reg) ENTRY(t_tail_reg) "mov 8(%rdi),%rax\n" TAIL(t_tail_reg) "jmp *%rax\n" END(t_tail_reg)
	BEGIN(t_tail_mem) ENTRY(t_tail_mem) "test %edi,%edi\n je 1f\n" TAIL(t_tail_mem) "jmp *16(%rsi)\n"
		"1:" RET(t_tail_mem) "ret\n" END(t_tail_mem)
	BEGIN(t_tail_plt) ENTRY(t_tail_plt) "add $4,%rdi\n" TAIL(t_tail_plt) "jmp t_stub\n" END(t_tail_plt)
	BEGIN(t_tail_plt_if) ENTRY(t_tail_plt_if) "test %edi,%edi\n" TAIL(t_tail_plt_if) "jne t_stub\n"
		RET(t_tail_plt_if) "ret\n" END(t_tail_plt_if)
	BEGIN(t_only_jump) ENTRY(t_only_jump) "jmp t_stub\n" END(t_only_jump)
	BEGIN(t_stub) "endbr64\n" ENTRY(t_stub) "bnd jmp *t_slot(%rip)\n" END(t_stub)
	BEGIN(t_noreturn) ENTRY(t_noreturn) "push %rax\n call abort@PLT\n" END(t_noreturn)
	BEGIN(t_noreturn_padded) ENTRY(t_noreturn_padded) "push %rax\n call abort@PLT\n nopw 0(%rax,%rax)\n"
		END(t_noreturn_padded)
	BEGIN(t_runs_on) ENTRY(t_runs_on) "xor %eax,%eax\n" END(t_runs_on)
	BEGIN(t_run_into) ENTRY(t_run_into) "inc %eax\n" RET(t_run_into) RET(t_runs_on) "ret\n" END(t_run_into)
	BEGIN(t_loops) "endbr64\n" "1:" ENTRY(t_loops) "dec %edi\n jne 1b\n" RET(t_loops) "ret\n" END(t_loops)
	BEGIN(t_trap) ENTRY(t_trap) "test %edi,%edi\n je 1f\n ud2\n 1: hlt\n" END(t_trap)
	BEGIN(t_jcc_entry) ENTRY(t_jcc_entry) "jne 1f\n" RET(t_jcc_entry) "ret\n1: inc %eax\n" RET(t_jcc_entry)
		"ret\n" END(t_jcc_entry)
	BEGIN(t_lock) ENTRY(t_lock) "cmpl $0,%fs:24\n je 1f+1\n 1: lock xadd %eax,(%rdi)\n" RET(t_lock) "ret\n"
		END(t_lock)
	BEGIN(t_cold_parts) ENTRY(t_cold_parts) "test %edi,%edi\n js t_cold_part\n 3: inc %eax\n"
		RET(t_cold_parts) "ret\n 4: dec %eax\n" RET(t_cold_parts) "ret\n" END(t_cold_parts)
	".cfi_startproc\n t_cold_part: neg %eax\n je 4b\n jg 3b\n call abort@PLT\n.cfi_endproc\n"
	BEGIN(t_recurses) ENTRY(t_recurses) "dec %edi\n jmp t_recurses_too\n" END(t_recurses)
	BEGIN(t_recurses_too) ENTRY(t_recurses_too) "jne t_recurses\n" RET(t_recurses) RET(t_recurses_too) "ret\n"
		END(t_recurses_too)
	/* Exits that several have, who come by jumps to the beginning, and one to the middle as well. */
	BEGIN(t_shared) ENTRY(t_shared) "test %edi,%edi\n je t_shared_middle\n" RET(t_shared) RET(t_share_one)
		RET(t_share_two) RET(t_share_middle) RET(t_share_pushed) "ret\n t_shared_middle: inc %eax\n" RET(t_shared)
		RET(t_share_one) RET(t_share_two) RET(t_share_middle) RET(t_share_pushed) "ret\n" END(t_shared)
	BEGIN(t_share_one) ENTRY(t_share_one) "dec %edi\n jmp t_shared\n" END(t_share_one)
	BEGIN(t_share_two) ENTRY(t_share_two) "mov %esi,%edi\n jmp t_share_one\n" END(t_share_two)
	BEGIN(t_share_middle) ENTRY(t_share_middle) "test %esi,%esi\n jne 1f\n jmp t_shared\n"
		"1: jmp t_shared_middle\n" END(t_share_middle)
	BEGIN(t_share_pushed) ENTRY(t_share_pushed) "push %rbx\n test %esi,%esi\n jne 1f\n pop %rbx\n jmp t_shared\n"
		"1: pop %rbx\n jmp t_share_one\n" END(t_share_pushed)
	/* Switches as gcc and clang write them. The bound is on a way that begins with a jump. */
	BEGIN(t_switch) "endbr64\n" ENTRY(t_switch) "lea t_table(%rip),%rdx\n cmp $2,%edi\n jbe 1f\n" RET(t_switch)
		"ret\n1: mov %edi,%edi\n movslq (%rdx,%rdi,4),%rax\n add %rdx,%rax\n notrack jmp *%rax\n"
		"t_case0:" RET(t_switch) "ret\n t_case1: inc %eax\n" RET(t_switch) "ret\n"
		"dec %eax\n ret\n" END(t_switch) /* the last cannot be reached */
	".cfi_startproc\n t_case2: neg %eax\n" RET(t_switch) "ret\n.cfi_endproc\n"
	/* A byte, compared narrowly; a scaled table with another base. */
	BEGIN(t_byte) ENTRY(t_byte) "cmp $0x81,%dil\n ja 1f\n movzbl %dil,%edi\n lea t_bytes(%rip),%rax\n"
		"movsbq (%rax,%rdi),%rax\n lea t_byte_base(%rip),%rcx\n add %rcx,%rax\n jmp *%rax\n"
		"1:" RET(t_byte) "ret\n t_byte_base:" RET(t_byte) "ret\n inc %eax\n ret\n" END(t_byte)
	/* Extent by a mask. */
	BEGIN(t_mask) ENTRY(t_mask) "and $1,%edi\n lea t_masked(%rip),%rax\n movslq (%rax,%rdi,4),%rcx\n"
		"add %rax,%rcx\n jmp *%rcx\n t_mask0:" RET(t_mask) "ret\n t_mask1: inc %eax\n" RET(t_mask)
		"ret\n dec %eax\n ret\n" END(t_mask)
	/* Extent unknown: all the rest is looked at, and the padding behind it is no code. */
	BEGIN(t_far) ENTRY(t_far) "lea t_fars(%rip),%rdx\n movslq (%rdx,%rdi,4),%rax\n add %rdx,%rax\n jmp *%rax\n"
		"t_far0:" RET(t_far) "ret\n inc %eax\n" RET(t_far) "ret\n nopw 0(%rax,%rax)\n" END(t_far)
	/* One jump with a table for each way that leads to it: one behind the other, loaded before the ways meet, and with
	 * an extent of its own. */
	BEGIN(t_two_tables) ENTRY(t_two_tables) "and $1,%edi\n lea t_first(%rip),%rdx\n mov (%rdx,%rdi,8),%rax\n 1: jmp *%rax\n"
		"t_first0: and $1,%esi\n lea t_second(%rip),%rdx\n mov (%rdx,%rsi,8),%rax\n jmp 1b\n t_first1:"
		RET(t_two_tables) "ret\n t_second0: inc %eax\n" RET(t_two_tables) "ret\n t_second1: dec %eax\n"
		RET(t_two_tables) "ret\n dec %eax\n ret\n" END(t_two_tables)
	BEGIN(t_two_extents) ENTRY(t_two_extents) "lea t_narrow(%rip),%rdx\n and $1,%edi\n 1: movslq (%rdx,%rdi,4),%rax\n"
		"add %rdx,%rax\n jmp *%rax\n t_narrow0: and $3,%edi\n jmp 1b\n t_narrow1:" RET(t_two_extents) "ret\n"
		"t_narrow2: inc %eax\n" RET(t_two_extents) "ret\n t_narrow3: dec %eax\n" RET(t_two_extents) "ret\n"
		"dec %eax\n ret\n" END(t_two_extents)
	/* Which of two tables is not said: everything is looked at. */
	BEGIN(t_two_bases) ENTRY(t_two_bases) "and $1,%esi\n test %edi,%edi\n je 1f\n lea t_base1(%rip),%rdx\n jmp 2f\n"
		"1: lea t_base2(%rip),%rdx\n 2: movslq (%rdx,%rsi,4),%rax\n add %rdx,%rax\n jmp *%rax\n"
		"t_base10:" RET(t_two_bases) "ret\n t_base11: inc %eax\n" RET(t_two_bases) "ret\n"
		"t_base20: dec %eax\n" RET(t_two_bases) "ret\n" END(t_two_bases)
	/* A table of functions: the jump leaves. */
	BEGIN(t_functions) ENTRY(t_functions) "lea t_pointers(%rip),%rax\n cmp $1,%edi\n ja 1f\n mov %edi,%edi\n"
		TAIL(t_functions) "jmp *(%rax,%rdi,8)\n 1:" RET(t_functions) "ret\n" END(t_functions)
	/* Jumps of which nothing is known but that the stack is not the entry's: they stay inside. */
	BEGIN(t_goto) ENTRY(t_goto) "push %rbx\n sub $16,%rsp\n mov (%rdi),%rax\n jmp *%rax\n add $16,%rsp\n pop %rbx\n"
		RET(t_goto) "ret\n mov 8(%rdi),%rax\n jmp *%rax\n" END(t_goto)
	BEGIN(t_frame) ENTRY(t_frame) "push %rbp\n mov %rsp,%rbp\n and $-64,%rsp\n test %edi,%edi\n je 1f\n"
		"mov 8(%rdi),%rax\n leave\n" TAIL(t_frame) "jmp *%rax\n 1: leave\n" RET(t_frame) "ret\n" END(t_frame)
	/* What everyone calls is not followed. */
	BEGIN(t_frees) ENTRY(t_frees) "mov (%rdi),%rdi\n" TAIL(t_frees) "jmp cfree\n" END(t_frees)
	".type cfree,@function\n cfree: .cfi_startproc\n ret\n" END(cfree)
	/* Refused. */
	BEGIN(r_loop) "1: loop 1b\n ret\n" END(r_loop)
	BEGIN(r_bad) ".byte 6,6,6,6\n" END(r_bad)
	BEGIN(r_bad_inside) "test %edi,%edi\n je 1f\n ret\n 1: .byte 6,6,6\n" END(r_bad_inside)
	BEGIN(r_overlap) "test %edi,%edi\n je 1f+1\n 1: mov $0xc3,%al\n ret\n" END(r_overlap)
	BEGIN(r_far) "test %edi,%edi\n je 1f\n lretq\n 1: ret\n" END(r_far)
	BEGIN(r_data) "lea 6f(%rip),%rdx\n movslq (%rdx,%rdi,4),%rax\n add %rdx,%rax\n jmp *%rax\n"
		"2: ret\n 6: .long 2b-6b\n .byte 6,6,6\n" END(r_data)
	BEGIN(r_go) "cmp 0x10(%r14),%rsp\n jbe 1f\n ret\n 1: call abort@PLT\n jmp r_go\n" END(r_go)
	BEGIN(r_go_big) "lea -0x100(%rsp),%r12\n cmp 0x10(%r14),%r12\n jbe 1f\n ret\n 1: jmp r_go_big\n" END(r_go_big)
	BEGIN(r_split) "cmp %fs:0x70,%rsp\n ja 1f\n call abort@PLT\n 1: ret\n" END(r_split)
	BEGIN(r_syscall) "syscall\n ret\n" END(r_syscall)
	".cfi_startproc\n t_nameless: jmp *t_slot(%rip)\n.cfi_endproc\n"
	".section .rodata\n.p2align 2\n"
	"t_table: .long t_case0-., t_case1-.+4, t_case2-.+8\n"
	"t_bytes: .fill 130,1,0\n"
	"t_masked: .long t_mask0-t_masked, t_mask1-t_masked\n"
	"t_fars: .long t_far0-t_fars\n"
	"t_narrow: .long t_narrow0-t_narrow, t_narrow1-t_narrow, t_narrow2-t_narrow, t_narrow3-t_narrow\n"
	"t_base1: .long t_base10-t_base1, t_base11-t_base1\n t_base2: .long t_base20-t_base2, t_base11-t_base2\n"
	".section .data.rel.ro,\"aw\"\n.p2align 3\n"
	"t_pointers: .quad t_two, t_plain\n"
	"t_first: .quad t_first0, t_first1\n t_second: .quad t_second0, t_second1\n"
	".data\n.p2align 3\nt_slot: .quad 0\n"
	".section plan_nameless,\"aw\"\n .quad t_nameless\n"
	".previous\n.text\n");
/* clang-format on */

struct expected {
	uint64_t address;
	uint64_t function;
	uint64_t kind;
};

extern const struct expected __start_plan_places[], __stop_plan_places[];
extern const uint64_t __start_plan_nameless[];

static const struct plan *plan_of(struct fixture *f, const char *name, uint64_t *bias)
{
	struct object *self = objects_get(f->objects, "/proc/self/exe");
	const struct object_symbol *main_symbol = NULL;

	assert_non_null(self);
	main_symbol = object_named(self, "t_plain", NULL);
	const struct object_symbol *symbol = object_named(self, name, NULL);
	assert_non_null(main_symbol);
	assert_non_null(symbol);
	/* The first expected place is this function's entry. */
	*bias = __start_plan_places[0].address - main_symbol->address;
	const struct plan *plan = plan_function(self, f->decoder, symbol->address);
	assert_non_null(plan);
	assert_ptr_equal(plan_function(self, f->decoder, symbol->address), plan);
	return plan;
}

static void print_plan(const char *name, const struct plan *plan)
{
	fprintf(stderr, "%s: %s\n", name, plan->refused ? plan->refused : "");
	for (size_t i = 0; i < plan->nplaces; i++)
		fprintf(stderr, "  +%lx kind %d insn %d\n",
			plan->places[i].address - plan->function, (int)plan->places[i].kind,
			(int)plan->places[i].insn.kind);
}

static const struct plan_place *place_at(const struct plan *plan, uint64_t address)
{
	for (size_t i = 0; i < plan->nplaces; i++) {
		if (plan->places[i].address == address)
			return &plan->places[i];
	}
	return NULL;
}

/* The plan has the places that were marked, and no others. */
static void check(struct fixture *f, const char *name)
{
	uint64_t bias;
	const struct plan *plan = plan_of(f, name, &bias);
	size_t n = 0;

	if (plan->refused)
		print_plan(name, plan);
	assert_null(plan->refused);
	/* The linker makes one array of them. */
	/* cppcheck-suppress comparePointers */
	for (const struct expected *e = __start_plan_places; e < __stop_plan_places; e++) {
		if (e->function != plan->function + bias)
			continue;
		const struct plan_place *place = place_at(plan, e->address - bias);
		if (!place || place->kind != e->kind)
			print_plan(name, plan);
		assert_true(place && place->kind == e->kind);
		assert_true(place && place->insn.kind != INSN_REFUSED);
		n++;
	}
	if (n != plan->nplaces)
		print_plan(name, plan);
	assert_int_equal(n, plan->nplaces);
}

static void test_places(void **state)
{
	static const char *const names[] = {
		"t_plain",        "t_only_ret",
		"t_endbr_ret",    "t_two",
		"t_tail",         "t_tail_if",
		"t_tail_reg",     "t_tail_mem",
		"t_tail_plt",     "t_tail_plt_if",
		"t_only_jump",    "t_stub",
		"t_noreturn",     "t_noreturn_padded",
		"t_runs_on",      "t_run_into",
		"t_loops",        "t_trap",
		"t_jcc_entry",    "t_lock",
		"t_cold_parts",   "t_recurses",
		"t_recurses_too", "t_shared",
		"t_share_one",    "t_share_two",
		"t_share_middle", "t_share_pushed",
		"t_switch",       "t_byte",
		"t_mask",         "t_far",
		"t_functions",    "t_goto",
		"t_frame",        "t_frees",
		"t_two_tables",   "t_two_extents",
		"t_two_bases",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		check(*state, names[i]);
}

/* What the engine is told besides. */
static void test_details(void **state)
{
	uint64_t bias;
	const struct plan *plan = plan_of(*state, "t_only_ret", &bias);

	assert_int_equal(plan->places[0].insn.kind, INSN_RET);
	assert_false(plan->places[0].tail);
	plan = plan_of(*state, "t_only_jump", &bias);
	assert_true(plan->places[0].tail);
	assert_int_equal(plan->places[0].insn.kind, INSN_JMP);
	plan = plan_of(*state, "t_stub", &bias);
	assert_true(plan->places[0].tail);
	assert_int_equal(plan->places[0].insn.kind, INSN_JMP_INDIRECT);
	plan = plan_of(*state, "t_tail_plt_if", &bias);
	assert_int_equal(plan->places[1].insn.kind, INSN_JCC);
	assert_true(plan->places[1].tail);
	assert_false(plan->loops);
	assert_true(plan_of(*state, "t_loops", &bias)->loops);
	assert_true(plan_of(*state, "t_recurses", &bias)->loops);
}

static void test_refusals(void **state)
{
	static const struct {
		const char *name;
		const char *reason;
	} rows[] = {
		{"r_loop", "a loop or transaction instruction"},
		{"r_bad", "an instruction in it is not understood"},
		{"r_bad_inside", "an instruction in it is not understood"},
		{"r_overlap", "its instructions overlap"},
		{"r_far", "it has a far jump or return"},
		{"r_data", "it has a jump that cannot be followed"},
		{"r_go", "its stack moves (Go, split stacks)"},
		{"r_go_big", "its stack moves (Go, split stacks)"},
		{"r_split", "its stack moves (Go, split stacks)"},
		{"r_syscall", "a system call instruction"},
	};
	uint64_t bias;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct plan *plan = plan_of(*state, rows[i].name, &bias);
		if (!plan->refused)
			print_plan(rows[i].name, plan);
		assert_non_null(plan->refused);
		assert_string_equal(plan->refused, rows[i].reason);
		assert_int_equal(plan->nplaces, 0);
	}
	struct fixture *f = *state;
	struct object *self = objects_get(f->objects, "/proc/self/exe");
	const struct plan *plan = plan_function(self, f->decoder, __start_plan_nameless[0] - bias);
	assert_non_null(plan);
	assert_string_equal(plan->refused, "it is a stub of the PLT");
	plan = plan_function(self, f->decoder, 1ULL << 40);
	assert_non_null(plan);
	assert_non_null(plan->refused);
}

/* What came of the functions of a file. */
struct census {
	const char *path;
	size_t functions, planned, rets, tails, entry_is_exit, loops;
	size_t missed; /* in the bounds of a planned function, but not in its plan: cannot be reached */
	size_t wrong; /* in a plan, but no `ret` */
	size_t nrefused;
	struct {
		const char *reason;
		size_t count;
	} refused[16];
	double seconds;
};

static void count_refusal(struct census *c, const char *reason)
{
	size_t i = 0;

	while (i < c->nrefused && strcmp(c->refused[i].reason, reason) != 0)
		i++;
	assert_true(i < 16);
	if (i == c->nrefused)
		c->refused[c->nrefused++].reason = reason;
	c->refused[i].count++;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The addresses of all returns, as objdump sees them. */
static void read_rets(const char *path, struct map *rets)
{
	char command[512];
	char *line = NULL;
	size_t size = 0;

	snprintf(command, sizeof(command), "LC_ALL=C objdump -d -w --no-show-raw-insn '%s'", path);
	FILE *f = popen(command, "re");
	assert_non_null(f);
	while (getline(&line, &size, f) > 0) {
		char *colon = strchr(line, ':');
		if (line[0] != ' ' || !colon)
			continue;
		char *ret = strstr(colon, "ret");
		/* `ret`, `repz ret`, `bnd ret`; iret and lret are none. */
		if (ret && ret[-1] <= ' ' && (ret[3] <= ' ' || ret[3] == 'q'))
			assert_int_equal(map_put(rets, strtoull(line, NULL, 16), rets), 0);
	}
	free(line);
	assert_int_equal(pclose(f), 0);
}

static void compare_rets(struct census *c, const struct object *object, const struct plan *plan,
			 const struct map *rets)
{
	uint64_t begin, end;

	assert_true(object_bounds(object, plan->function, &begin, &end));
	for (uint64_t at = begin; at < end; at++) {
		const struct plan_place *place = place_at(plan, at);
		bool planned = place && place->insn.kind == INSN_RET;
		bool is = map_get(rets, at);
		if (is && !planned) {
			c->missed++;
			if (getenv("DFTRACE_CENSUS_MISSED"))
				printf("missed %lx in %lx\n", at, plan->function);
		}
		if (planned && !is) {
			c->wrong++;
			printf("wrong %lx in %lx\n", at, plan->function);
		}
	}
}

static void count(struct census *c, const struct plan *plan)
{
	c->functions++;
	if (plan->refused) {
		count_refusal(c, plan->refused);
		if (getenv("DFTRACE_CENSUS_REFUSED"))
			printf("refused %lx %s\n", plan->function, plan->refused);
		return;
	}
	c->planned++;
	c->loops += plan->loops;
	for (size_t i = 0; i < plan->nplaces; i++) {
		const struct plan_place *place = &plan->places[i];
		c->rets += place->kind == PLAN_RET;
		c->tails += place->kind == PLAN_TAIL;
		c->entry_is_exit +=
			place->kind == PLAN_ENTRY && (place->tail || place->insn.kind == INSN_RET);
		if (i)
			assert_true(place->address > place[-1].address);
	}
}

static void print_census(const struct census *c)
{
	printf("%s: %zu functions, %zu planned: %zu ret, %zu tail, %zu of one place, %zu loop; "
	       "%zu ret not reached, %zu wrong; %.3f s, %.3f s per 1000\n",
	       c->path, c->functions, c->planned, c->rets, c->tails, c->entry_is_exit, c->loops,
	       c->missed, c->wrong, c->seconds, c->seconds * 1000 / (double)c->functions);
	for (size_t i = 0; i < c->nrefused; i++)
		printf("  refused %zu: %s\n", c->refused[i].count, c->refused[i].reason);
}

/* Plans all functions of a file. */
static struct census take_census(struct fixture *f, const char *path)
{
	struct census c = {.path = path};
	struct map rets = {0};
	size_t n;
	struct object *object = objects_get(f->objects, path);

	assert_non_null(object);
	const struct object_symbol *symbols = object_symbols(object, &n);
	double start = now();
	for (size_t i = 0; i < n; i++)
		assert_non_null(plan_function(object, f->decoder, symbols[i].address));
	c.seconds = now() - start;
	read_rets(path, &rets);
	for (size_t i = 0; i < n; i++) {
		if (i && symbols[i].address == symbols[i - 1].address)
			continue;
		const struct plan *plan = plan_function(object, f->decoder, symbols[i].address);
		count(&c, plan);
		if (!plan->refused)
			compare_rets(&c, object, plan, &rets);
	}
	map_free(&rets);
	print_census(&c);
	return c;
}

/* Where a library that this program could load is. @return false: nowhere. */
static bool find_library(const char *name, char *path, size_t size)
{
	char command[256];

	snprintf(command, sizeof(command), "gcc -print-file-name=%s | xargs readlink -f", name);
	FILE *f = popen(command, "re");
	if (!f)
		return false;
	bool found = fgets(path, (int)size, f) && path[0] == '/';
	path[strcspn(path, "\n")] = '\0';
	return pclose(f) == 0 && found && access(path, R_OK) == 0;
}

static void check_census(struct fixture *f, const char *path)
{
	struct census c = take_census(f, path);

	assert_int_equal(c.wrong, 0);
	assert_true(c.functions > 400);
	/* Nearly everything can be hooked, and what is not reached is dead code. */
	assert_true(c.planned * 100 > c.functions * 97);
	assert_true(c.missed * 100 < c.rets);
}

static void test_libraries(void **state)
{
	static const char *const names[] = {"libc.so.6", "libgfortran.so.5"};
	char path[256];

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (find_library(names[i], path, sizeof(path)))
			check_census(*state, path);
	}
}

static void test_static_program(void **state)
{
	char path[] = "/tmp/dftrace-plan-XXXXXX";
	char command[256];
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	snprintf(command, sizeof(command),
		 "echo '#include <stdio.h>\nint main(void) { return puts(\"a\"); }' | "
		 "gcc -static -O2 -x c -o %s -",
		 path);
	int built = system(command); /* NOLINT(cert-env33-c) */
	if (built == 0)
		check_census(*state, path);
	unlink(path);
	if (built != 0)
		skip();
}

static void test_more(void **state)
{
	const char *list = getenv("DFTRACE_CENSUS");
	char *paths = strdup(list ? list : "");
	char *rest = paths;
	char *path;

	assert_non_null(paths);
	while ((path = strsep(&rest, ",")) && *path)
		take_census(*state, path);
	free(paths);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places),         cmocka_unit_test(test_details),
		cmocka_unit_test(test_refusals),       cmocka_unit_test(test_libraries),
		cmocka_unit_test(test_static_program), cmocka_unit_test(test_more),
	};
	return cmocka_run_group_tests_name("plan", tests, set_up, tear_down);
}
