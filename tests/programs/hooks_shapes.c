/* Functions that begin and end in every way that machine code has, called with all registers and flags set, and
 * compared after the call. To be hooked by -x 'shape_*'. usage: hooks_shapes ROUNDS; prints `func <TAB> name
 * <TAB> calls <TAB> 0 <TAB> sum` and `state <TAB> name <TAB> hash of all registers and flags`: the hash must be
 * that of the same run without hooks. */
#include "say.h"

#include <stdint.h>
#include <unistd.h>

#define LIST(X)                                                                                    \
	X(push)                                                                                    \
	X(push_high)                                                                               \
	X(push_imm)                                                                                \
	X(push_sp)                                                                                 \
	X(push_flags)                                                                              \
	X(push_memory)                                                                             \
	X(pop_entry)                                                                               \
	X(pop_sp)                                                                                  \
	X(sub_sp)                                                                                  \
	X(sub_long)                                                                                \
	X(add_imm)                                                                                 \
	X(add_carry)                                                                               \
	X(mov)                                                                                     \
	X(mov_32)                                                                                  \
	X(mov_imm)                                                                                 \
	X(mov_imm64)                                                                               \
	X(mov_negative)                                                                            \
	X(mov_rip)                                                                                 \
	X(mov_sp)                                                                                  \
	X(mov_store)                                                                               \
	X(lea_rip)                                                                                 \
	X(lea_index)                                                                               \
	X(lea_32)                                                                                  \
	X(xor)                                                                                     \
	X(xor_high)                                                                                \
	X(test)                                                                                    \
	X(test_32)                                                                                 \
	X(cmp_rip)                                                                                 \
	X(cmp_imm)                                                                                 \
	X(jmp)                                                                                     \
	X(jmp_short)                                                                               \
	X(jcc)                                                                                     \
	X(jcc_far)                                                                                 \
	X(call)                                                                                    \
	X(call_pointer)                                                                            \
	X(tail_pointer)                                                                            \
	X(tail_memory)                                                                             \
	X(ret)                                                                                     \
	X(rep_ret)                                                                                 \
	X(bnd_ret)                                                                                 \
	X(endbr)                                                                                   \
	X(endbr_ret)                                                                               \
	X(nop)                                                                                     \
	X(nop_long)                                                                                \
	X(sse)                                                                                     \
	X(sse_rip)                                                                                 \
	X(lock)                                                                                    \
	X(fs)                                                                                      \
	X(string)                                                                                  \
	X(syscall)                                                                                 \
	X(loop)                                                                                    \
	X(rcx_zero)                                                                                \
	X(back)                                                                                    \
	X(zone)                                                                                    \
	X(enter)                                                                                   \
	X(direction)                                                                               \
	X(two_ways)                                                                                \
	X(cold)

struct registers {
	uint64_t general[15]; /* rax rbx rcx rdx rsi rdi rbp r8 … r15 */
	uint64_t flags;
	uint64_t stack; /* difference of the stack pointer */
	uint64_t zone[16];
	unsigned char sse[16][16];
};

/* One thread only. */
struct registers shape_in, shape_out;
uint64_t shape_saved[8];
void *shape_function;
uint64_t shape_data = 0x1122334455667788;
uint64_t shape_other;
unsigned char shape_bytes[16];
extern char shape_target[];
void *shape_pointer = shape_target;

void probe(void);

#define SHAPE(name, ...)                                                                           \
	".globl shape_" name "\n.type shape_" name ", @function\n.p2align 4\nshape_" name          \
	":\n.cfi_startproc\n" __VA_ARGS__ "\n.cfi_endproc\n.size shape_" name ", . - shape_" name  \
	"\n"

/* clang-format off */
__asm__(
	".text\n"
	/* Loads everything, calls, stores everything. Below the stack pointer it leaves what no callee has
	 * to keep and no tracer has any business with. */
	".globl probe\n.type probe, @function\nprobe:\n.cfi_startproc\n"
	"mov %rbx, shape_saved(%rip)\nmov %rbp, shape_saved+8(%rip)\n"
	"mov %r12, shape_saved+16(%rip)\nmov %r13, shape_saved+24(%rip)\n"
	"mov %r14, shape_saved+32(%rip)\nmov %r15, shape_saved+40(%rip)\nsub $8, %rsp\n"
	"mov %rsp, shape_saved+48(%rip)\nmovdqu shape_in+264(%rip), %xmm0\n"
	"movdqu shape_in+280(%rip), %xmm1\nmovdqu shape_in+296(%rip), %xmm2\n"
	"movdqu shape_in+312(%rip), %xmm3\nmovdqu shape_in+328(%rip), %xmm4\n"
	"movdqu shape_in+344(%rip), %xmm5\nmovdqu shape_in+360(%rip), %xmm6\n"
	"movdqu shape_in+376(%rip), %xmm7\nmovdqu shape_in+392(%rip), %xmm8\n"
	"movdqu shape_in+408(%rip), %xmm9\nmovdqu shape_in+424(%rip), %xmm10\n"
	"movdqu shape_in+440(%rip), %xmm11\nmovdqu shape_in+456(%rip), %xmm12\n"
	"movdqu shape_in+472(%rip), %xmm13\nmovdqu shape_in+488(%rip), %xmm14\n"
	"movdqu shape_in+504(%rip), %xmm15\npushq shape_in+120(%rip)\npopfq\n"
	/* Below the return address that the call will push. */
	"mov shape_in+136(%rip), %rax\nmov %rax, -16(%rsp)\nmov shape_in+144(%rip), %rax\n"
	"mov %rax, -24(%rsp)\nmov shape_in+152(%rip), %rax\nmov %rax, -64(%rsp)\n"
	"mov shape_in+160(%rip), %rax\nmov %rax, -128(%rsp)\nmov shape_in(%rip), %rax\n"
	"mov shape_in+8(%rip), %rbx\nmov shape_in+16(%rip), %rcx\nmov shape_in+24(%rip), %rdx\n"
	"mov shape_in+32(%rip), %rsi\nmov shape_in+40(%rip), %rdi\nmov shape_in+48(%rip), %rbp\n"
	"mov shape_in+56(%rip), %r8\nmov shape_in+64(%rip), %r9\nmov shape_in+72(%rip), %r10\n"
	"mov shape_in+80(%rip), %r11\nmov shape_in+88(%rip), %r12\nmov shape_in+96(%rip), %r13\n"
	"mov shape_in+104(%rip), %r14\nmov shape_in+112(%rip), %r15\ncall *shape_function(%rip)\n"
	"mov %rax, shape_out(%rip)\nmov %rbx, shape_out+8(%rip)\nmov %rcx, shape_out+16(%rip)\n"
	"mov %rdx, shape_out+24(%rip)\nmov %rsi, shape_out+32(%rip)\n"
	"mov %rdi, shape_out+40(%rip)\nmov %rbp, shape_out+48(%rip)\n"
	"mov %r8, shape_out+56(%rip)\nmov %r9, shape_out+64(%rip)\nmov %r10, shape_out+72(%rip)\n"
	"mov %r11, shape_out+80(%rip)\nmov %r12, shape_out+88(%rip)\n"
	"mov %r13, shape_out+96(%rip)\nmov %r14, shape_out+104(%rip)\n"
	"mov %r15, shape_out+112(%rip)\npushfq\npopq shape_out+120(%rip)\ncld\nmov %rsp, %rax\n"
	"sub shape_saved+48(%rip), %rax\nmov %rax, shape_out+128(%rip)\n"
	"movdqu %xmm0, shape_out+264(%rip)\nmovdqu %xmm1, shape_out+280(%rip)\n"
	"movdqu %xmm2, shape_out+296(%rip)\nmovdqu %xmm3, shape_out+312(%rip)\n"
	"movdqu %xmm4, shape_out+328(%rip)\nmovdqu %xmm5, shape_out+344(%rip)\n"
	"movdqu %xmm6, shape_out+360(%rip)\nmovdqu %xmm7, shape_out+376(%rip)\n"
	"movdqu %xmm8, shape_out+392(%rip)\nmovdqu %xmm9, shape_out+408(%rip)\n"
	"movdqu %xmm10, shape_out+424(%rip)\nmovdqu %xmm11, shape_out+440(%rip)\n"
	"movdqu %xmm12, shape_out+456(%rip)\nmovdqu %xmm13, shape_out+472(%rip)\n"
	"movdqu %xmm14, shape_out+488(%rip)\nmovdqu %xmm15, shape_out+504(%rip)\n"
	"mov shape_saved+48(%rip), %rsp\nadd $8, %rsp\nmov shape_saved(%rip), %rbx\n"
	"mov shape_saved+8(%rip), %rbp\nmov shape_saved+16(%rip), %r12\n"
	"mov shape_saved+24(%rip), %r13\nmov shape_saved+32(%rip), %r14\n"
	"mov shape_saved+40(%rip), %r15\nret\n.cfi_endproc\n.size probe, . - probe\n"
	/* Where others go; not hooked. */
	".globl shape_target\n.hidden shape_target\n.set shape_target, elsewhere\n"
	".type elsewhere, @function\nelsewhere:\n.cfi_startproc\nlea 3(%rdi), %rax\nret\n"
	".cfi_endproc\n.size elsewhere, . - elsewhere\n"
	/* Says where it was called from, relative to what its caller gives in rdx. */
	".type asked, @function\nasked:\n.cfi_startproc\nmov (%rsp), %rax\nsub %rdx, %rax\nret\n"
	".cfi_endproc\n.size asked, . - asked\n"
	SHAPE("push", "push %rbx\nmov %rdi, %rax\npop %rbx\nret")
	SHAPE("push_high", "push %r15\nmov %rsi, %rax\npop %r15\nret")
	SHAPE("push_imm", "push $-5\npop %rax\nret")
	SHAPE("push_sp", "push %rsp\npop %rax\nsub %rsp, %rax\nret")
	/* A step flag, or one of ours, would be seen here. */
	SHAPE("push_flags", "pushfq\npop %rax\nret")
	SHAPE("push_memory", "push shape_data(%rip)\npop %rax\nret")
	SHAPE("pop_entry", "pop %r10\npush %r10\nxor %r10d, %r10d\nmov %rdi, %rax\nret")
	SHAPE("pop_sp", "push %rsp\npop %rsp\nmov %rdx, %rax\nret")
	SHAPE("sub_sp", "sub $24, %rsp\nmov %rdi, %rax\nmov %rax, 8(%rsp)\nlea 24(%rsp), %rsp\n"
		"add $0, %rdi\nret")
	SHAPE("sub_long", "sub $0x1238, %rsp\nmov %rdi, %rax\nlea 0x1238(%rsp), %rsp\nadd $0, %rdi\nret")
	SHAPE("add_imm", "add $-1, %rdi\nmov %rdi, %rax\nret")
	SHAPE("add_carry", "add $127, %rcx\nlea 0(%rcx), %rax\nret")
	SHAPE("mov", "mov %rdi, %rax\nret")
	SHAPE("mov_32", "mov %edi, %eax\nret")
	SHAPE("mov_imm", "mov $7, %eax\nret")
	SHAPE("mov_imm64", "movabs $0x123456789abcdef0, %rax\nret")
	SHAPE("mov_negative", "mov $-7, %rax\nret")
	SHAPE("mov_rip", "mov shape_data(%rip), %rax\nret")
	SHAPE("mov_sp", "mov %rsp, %rax\nsub %rsp, %rax\nret")
	SHAPE("mov_store", "mov %rdi, shape_other(%rip)\nmov shape_other(%rip), %rax\nret")
	SHAPE("lea_rip", "lea shape_data(%rip), %rax\nmov (%rax), %rax\nret")
	SHAPE("lea_index", "lea -7(%rdi,%rsi,4), %rax\nret")
	SHAPE("lea_32", "lea 5(%rdi,%rdx,2), %eax\nret")
	SHAPE("xor", "xor %eax, %eax\nret")
	SHAPE("xor_high", "xor %r11, %r11\nmov %rdi, %rax\nret")
	SHAPE("test", "test %rdi, %rdi\nsetns %al\nmovzbl %al, %eax\nret")
	SHAPE("test_32", "test %esi, %esi\nsete %al\nmovzbl %al, %eax\nret")
	SHAPE("cmp_rip", "cmpb $0x88, shape_data(%rip)\nsete %al\nmovzbl %al, %eax\nret")
	SHAPE("cmp_imm", "cmp $17, %rdi\nsetg %al\nmovzbl %al, %eax\nret")
	SHAPE("jmp", "jmp elsewhere")
	SHAPE("jmp_short", "jmp 1f\nud2\n1: mov $9, %eax\nret")
	SHAPE("jcc", "jc 1f\nmov $1, %eax\nret\n1: mov $2, %eax\nret")
	SHAPE("jcc_far", "jle elsewhere\nmov $1, %eax\nret")
	SHAPE("call", "call 1f\nret\n1: mov (%rsp), %rax\nlea shape_call(%rip), %rdx\nsub %rdx, %rax\n"
		"xor %edx, %edx\nret")
	SHAPE("call_pointer", "lea shape_call_pointer(%rip), %rdx\nlea asked(%rip), %rax\ncall *%rax\n"
		"xor %edx, %edx\nret")
	SHAPE("tail_pointer", "lea elsewhere(%rip), %rax\njmp *%rax")
	SHAPE("tail_memory", "jmp *shape_pointer(%rip)")
	SHAPE("ret", "ret")
	SHAPE("rep_ret", "mov %rdi, %rax\nrep ret")
	SHAPE("bnd_ret", "mov %rdi, %rax\n.byte 0xf2\nret")
	SHAPE("endbr", "endbr64\nmov %rsi, %rax\nret")
	SHAPE("endbr_ret", "endbr64\nret")
	SHAPE("nop", "nop\nmov %rdx, %rax\nret")
	SHAPE("nop_long", "nopw 0x0(%rax,%rax,1)\nmov %rdx, %rax\nret")
	SHAPE("sse", "movq %xmm0, %rax\npaddq %xmm1, %xmm0\nret")
	SHAPE("sse_rip", "movq shape_data(%rip), %xmm7\nmovq %xmm7, %rax\nret")
	SHAPE("lock", "lock incq shape_other(%rip)\nmov %rdi, %rax\nret")
	SHAPE("fs", "mov %fs:0, %rax\nsub %fs:0, %rax\nret")
	SHAPE("string", "rep stosb\nmov %rcx, %rax\nret")
	SHAPE("syscall", "syscall\nret")
	SHAPE("loop", "loop shape_loop\nmov %rdi, %rax\nret")
	SHAPE("rcx_zero", "jrcxz 1f\nmov $1, %eax\nret\n1: mov $2, %eax\nret")
	SHAPE("back", "dec %rcx\njg shape_back\nmov %rdi, %rax\nret")
	/* What its caller left below the stack pointer is as it was. */
	SHAPE("zone", "mov -8(%rsp), %rax\nxor -16(%rsp), %rax\nxor -56(%rsp), %rax\n"
		"xor -120(%rsp), %rax\nret")
	SHAPE("enter", "enter $16, $0\nmov %rdi, %rax\nleave\nret")
	SHAPE("direction", "std\nmov %rdi, %rax\nret")
	SHAPE("two_ways", "test %dil, %dil\njs 1f\nmov $5, %eax\nret\n1: mov $6, %eax\nret")
	SHAPE("cold", "test $1, %dil\njne shape_part\nmov %rsi, %rax\nret")
	".section .text.unlikely, \"ax\", @progbits\nshape_part:\nmov %rdx, %rax\nret\n.text\n"
	".section .note.GNU-stack, \"\", @progbits\n.text\n");
/* clang-format on */

#define DECLARE(name) void shape_##name(void);
LIST(DECLARE)

static const struct {
	const char *name;
	void (*function)(void);
} shapes[] = {
#define ROW(name) {"shape_" #name, shape_##name},
	LIST(ROW)};

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Values at the edges as often as others. */
static uint64_t value(uint64_t *state)
{
	static const uint64_t edges[] = {0,         1,         -1,         0x80000000,
					 INT64_MAX, INT64_MIN, 0xffffffff, 16};
	uint64_t random = next_random(state);

	return random % 3 == 0 ? edges[random / 3 % 8] : next_random(state);
}

static void prepare(const char *name, uint64_t *state)
{
	unsigned char *bytes = (unsigned char *)shape_in.sse;

	for (int i = 0; i < 15; i++)
		shape_in.general[i] = value(state);
	for (size_t i = 0; i < sizeof(shape_in.sse); i++)
		bytes[i] = (unsigned char)next_random(state);
	for (int i = 0; i < 16; i++)
		shape_in.zone[i] = next_random(state);
	/* Carry, parity, auxiliary, zero, sign and overflow; direction and interrupts are not free. */
	shape_in.flags = (next_random(state) & 0x8d5) | 0x202;
	if (strcmp(name, "shape_string") == 0) {
		shape_in.general[2] = next_random(state) % 16;
		shape_in.general[5] = (uint64_t)(uintptr_t)shape_bytes;
	}
	if (strcmp(name, "shape_syscall") == 0)
		shape_in.general[0] = 39; /* getpid */
	if (strcmp(name, "shape_loop") == 0 || strcmp(name, "shape_back") == 0)
		shape_in.general[2] = 1 + next_random(state) % 5;
}

/* Addresses and process ids are not the same in every run. */
static void level(const char *name)
{
	if (strcmp(name, "shape_string") == 0)
		shape_out.general[5] -= (uint64_t)(uintptr_t)shape_bytes;
	if (strcmp(name, "shape_syscall") == 0) {
		shape_out.general[0] -= (uint64_t)getpid();
		shape_out.general[2] = 0; /* where it returned to */
	}
}

static uint64_t hash(uint64_t sum)
{
	const unsigned char *bytes = (const unsigned char *)&shape_out;

	for (size_t i = 0; i < sizeof(shape_out); i++)
		sum = (sum ^ bytes[i]) * 0x100000001b3;
	return sum;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 4;

	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
		uint64_t state = 88172645463325252 + i, sum = 0xcbf29ce484222325;
		uint64_t results = 0, entries = 0;

		for (int n = 0; n < rounds; n++) {
			prepare(shapes[i].name, &state);
			shape_function = (void *)shapes[i].function;
			uint64_t times = shape_in.general[2];
			memset(&shape_out, 0, sizeof(shape_out));
			probe();
			level(shapes[i].name);
			results += shape_out.general[0];
			sum = hash(sum);
			entries += strcmp(shapes[i].name, "shape_loop") == 0 ||
						   strcmp(shapes[i].name, "shape_back") == 0
					   ? times
					   : 1;
		}
		printf("func\t%s\t%d\t0\t%ld\n", shapes[i].name, rounds, (long)results);
		printf("state\t%s\t%016lx %lu\n", shapes[i].name, (unsigned long)sum,
		       (unsigned long)entries);
	}
	return 0;
}
