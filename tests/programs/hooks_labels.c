/* Functions with labels that only values lead to: dispatch tables and threaded code, as interpreters have them, and a
 * function that begins inside another. To be hooked by -x 'hooked_*'. usage: hooks_labels ROUNDS; prints `func <TAB>
 * name <TAB> calls <TAB> 0 <TAB> sum of what was returned`. */
#include "say.h"

#define HOOKED __attribute__((noinline, used))

struct count {
	long calls;
	long sum;
};

long hooked_first(const unsigned char *at, long x, long sum);
long hooked_tables(const unsigned char *at, long x, long sum);
long hooked_threads(void *const *at, long x, long sum);
long hooked_outer(long a, long b);
long inner(long a, long b);
long hooked_short(const long *p);

static void count(struct count *c, long ret)
{
	c->calls++;
	c->sum += ret;
}

static void print(const char *name, const struct count *c)
{
	printf("func\t%s\t%ld\t0\t%ld\n", name, c->calls, c->sum);
}

/* The first label is come to without a jump, just behind the entry. */
HOOKED long hooked_first(const unsigned char *at, long x, long sum)
{
	static const void *const labels[] = {&&plus, &&times, &&minus, &&ends};

plus:
	sum += x;
	goto *labels[*at++ & 3];
times:
	sum *= 3;
	goto *labels[*at++ & 3];
minus:
	sum -= 7;
	goto *labels[*at++ & 3];
ends:
	return sum;
}

/* With two tables. Compilers that optimise little make one jump of all. */
HOOKED long hooked_tables(const unsigned char *at, long x, long sum)
{
	static const void *const labels[] = {&&plus, &&mixes, &&times, &&escapes};
	static const void *const others[] = {&&minus, &&ends_later, &&ends, &&doubles};

	x |= 1;
	goto *labels[*at++ & 3];
plus:
	sum += x;
	goto *labels[*at++ & 3];
mixes:
	sum ^= 0x55;
	goto *labels[*at++ & 3];
times:
	sum *= 3;
	goto *labels[*at++ & 3];
escapes:
	sum ^= 1;
	goto *others[*at++ & 3];
minus:
	sum -= 7;
	goto *labels[*at++ & 3];
doubles:
	sum *= 2;
	goto *labels[*at++ & 3];
ends_later:
	sum += 1;
ends:
	return sum;
}

static void *const *labels_of;

/* The code is the labels themselves. */
HOOKED long hooked_threads(void *const *at, long x, long sum)
{
	static void *const labels[] = {&&plus, &&times, &&minus, &&ends_later, &&ends};

	if (!at) {
		labels_of = labels;
		return 0;
	}
	goto **at++;
plus:
	sum += x;
	goto **at++;
times:
	sum *= 3;
	goto **at++;
minus:
	sum -= 7;
	goto **at++;
ends_later:
	sum += 1;
ends:
	return sum;
}

/* clang-format off */
__asm__(".text\n.p2align 4\n"
	".globl hooked_outer, inner\n.type hooked_outer, @function\n.type inner, @function\n"
	"hooked_outer:\n.cfi_startproc\nxor %esi, %esi\n"
	"inner:\nmov %edi, %eax\nadd %esi, %eax\nadd $1, %eax\nimul $3, %rax, %rax\nret\n.cfi_endproc\n"
	".size hooked_outer, . - hooked_outer\n.size inner, . - inner\n"
	/* Its jumps meet, if not for the padding. */
	".p2align 4\n.globl hooked_short\n.type hooked_short, @function\nhooked_short:\n.cfi_startproc\n"
	"mov 8(%rdi), %rax\nimul 16(%rdi), %rax\nadd (%rdi), %rax\nret\n.cfi_endproc\n"
	".size hooked_short, . - hooked_short\n.p2align 4\n");
/* clang-format on */

static long (*volatile to_inner)(long, long) = inner;

int main(int argc, char **argv)
{
	static const unsigned char first[] = {0, 1, 0, 2, 0, 2, 1, 0, 1, 3};
	static const unsigned char tables[][12] = {{0, 1, 0, 2, 3, 0, 0, 3, 3, 3, 2}, {0, 1, 3, 1}};
	static const long numbers[] = {3, 4, 5};
	int rounds = argc > 1 ? atoi(argv[1]) : 20;
	struct count one = {0}, two = {0}, three = {0}, four = {0}, five = {0};

	count(&three, hooked_threads(NULL, 0, 0));
	void *const *l = labels_of;
	void *const threads[][5] = {{l[0], l[1], l[2], l[0], l[4]}, {l[0], l[1], l[3]}};

	for (int i = 0; i < rounds; i++) {
		count(&one, hooked_first(first, i, 0));
		count(&two, hooked_tables(tables[i & 1], i, 0));
		count(&three, hooked_threads(threads[i & 1], i, 0));
		count(&four, hooked_outer(i, 5));
		CHECK(to_inner(i, 7) == (i + 8) * 3);
		count(&five, hooked_short(numbers));
	}
	print("hooked_first", &one);
	print("hooked_tables", &two);
	print("hooked_threads", &three);
	print("hooked_outer", &four);
	print("hooked_short", &five);
	return 0;
}
