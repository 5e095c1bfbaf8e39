/* System calls of all shapes, made often enough to be patched: registers, flags, red zone and results are as the
 * kernel leaves them. Prints what was wrong and the number of calls by the kernel's name. */
#include "say.h"

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define FLAGS 0x8d5 /* carry, parity, adjust, zero, sign, overflow */

/* In the processor's numbering: rax rcx rdx rbx rsp rbp rsi rdi r8 … r15. */
struct state {
	uint64_t r[16];
	uint64_t flags;
	uint64_t red[16]; /* the red zone, from its end */
};

/* A function (in, out) that loads all registers, makes the call between `before` and `behind`, and stores them. */
#define SITE(name, before, behind)                                                                 \
	asm(".text\n.p2align 4\n.type " #name ",@function\n" #name ":\n.cfi_startproc\n"           \
	    "push %rbx\npush %rbp\npush %r12\npush %r13\npush %r14\npush %r15\npush %rsi\n"        \
	    "mov %rdi,%rax\n"                                                                      \
	    "movq 136(%rax),%xmm0\nmovq %xmm0,-128(%rsp)\n"                                        \
	    "movq 256(%rax),%xmm0\nmovq %xmm0,-24(%rsp)\n"                                         \
	    "mov 16(%rax),%rdx\nmov 24(%rax),%rbx\nmov 40(%rax),%rbp\nmov 48(%rax),%rsi\n"         \
	    "mov 64(%rax),%r8\nmov 72(%rax),%r9\nmov 80(%rax),%r10\nmov 96(%rax),%r12\n"           \
	    "mov 104(%rax),%r13\nmov 112(%rax),%r14\nmov 120(%rax),%r15\nmov 56(%rax),%rdi\n"      \
	    "push 128(%rax)\npopf\nmov 0(%rax),%rax\n" before "syscall\n" behind                   \
	    "mov (%rsp),%rcx\npushf\npop 128(%rcx)\n"                                              \
	    "mov %rax,0(%rcx)\nmov %rdx,16(%rcx)\nmov %rbx,24(%rcx)\nmov %rbp,40(%rcx)\n"          \
	    "mov %rsi,48(%rcx)\nmov %rdi,56(%rcx)\nmov %r8,64(%rcx)\nmov %r9,72(%rcx)\n"           \
	    "mov %r10,80(%rcx)\nmov %r12,96(%rcx)\nmov %r13,104(%rcx)\nmov %r14,112(%rcx)\n"       \
	    "mov %r15,120(%rcx)\n"                                                                 \
	    "movq -128(%rsp),%xmm0\nmovq %xmm0,136(%rcx)\n"                                        \
	    "movq -24(%rsp),%xmm0\nmovq %xmm0,256(%rcx)\n"                                         \
	    "pop %rsi\npop %r15\npop %r14\npop %r13\npop %r12\npop %rbp\npop %rbx\nret\n"          \
	    ".cfi_endproc\n.size " #name ",.-" #name "\n.p2align 4\n");                            \
	void name(const struct state *in, struct state *out)

/* The one instruction before: five bytes, longer, relative to itself, of memory. */
SITE(site_number, "mov $17,%eax\n", "");
SITE(site_long, "movabs $0x0000000000000011,%rax\n", "");
SITE(site_relative, "mov number(%rip),%rax\n", "");
SITE(site_memory, "mov %r11,-0x100(%rsp)\n", "");
/* The one behind: compare, move, jump. */
SITE(site_compare, "nop\n", "cmp $-4095,%rax\nmov $0,%ecx\n");
SITE(site_move, "nop\n", "mov %rax,%rcx\n");
SITE(site_jump, "nop\n", ".byte 0x0f,0x84,0,0,0,0\n");
SITE(site_branch, "nop\n", "jmp 1f\n.p2align 4\nnop\n1:\n");
/* None fits. */
SITE(site_narrow, "nop\n", "nop\nnop\n");
asm(".data\n.globl number\nnumber: .quad 17\n.text\n");

static const struct shape {
	const char *name;
	void (*call)(const struct state *in, struct state *out);
	bool keeps_flags; /* what is behind does not change them */
} shapes[] = {
	{"number", site_number, true},     {"long", site_long, true},
	{"relative", site_relative, true}, {"memory", site_memory, true},
	{"compare", site_compare, false},  {"move", site_move, true},
	{"jump", site_jump, true},         {"branch", site_branch, true},
	{"narrow", site_narrow, true},
};

static uint64_t next(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

/* @return what is wrong, NULL: nothing. */
static const char *check(const struct shape *shape, const struct state *in, const struct state *out,
			 uint64_t result, const char *bytes)
{
	/* rcx, r11 and the result are the kernel's; the stack pointer is not in it. */
	static const int kept[] = {2, 3, 5, 6, 7, 8, 9, 10, 12, 13, 14, 15};

	if (out->r[0] != result)
		return "result";
	if (result == 3 && memcmp(bytes, "ell", 3) != 0)
		return "bytes";
	for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++) {
		if (in->r[kept[i]] != out->r[kept[i]])
			return "registers";
	}
	if (shape->keeps_flags && ((in->flags ^ out->flags) & FLAGS))
		return "flags";
	if (in->red[0] != out->red[0] || in->red[15] != out->red[15])
		return "red zone";
	return NULL;
}

static int registers(long rounds)
{
	int fd = open("hello", O_RDWR | O_CREAT | O_TRUNC, 0600);
	uint64_t x = 0x9e3779b97f4a7c15;
	long calls = 0;

	CHECK(fd >= 0 && write(fd, "hello", 5) == 5);
	for (size_t k = 0; k < sizeof(shapes) / sizeof(*shapes); k++) {
		const char *wrong = NULL;
		for (long i = 0; i < rounds && !wrong; i++) {
			char bytes[8] = "";
			struct state in;
			struct state out;
			for (size_t j = 0; j < sizeof(in) / 8; j++)
				((uint64_t *)&in)[j] = next(&x);
			/* Every third fails. */
			bool fails = i % 3 == 2;
			in.r[0] = SYS_pread64;
			in.r[7] = (uint64_t)fd;
			in.r[6] = fails ? 8 : (uintptr_t)bytes;
			in.r[2] = 3;
			in.r[10] = 1;
			in.flags = (in.flags & FLAGS) | 0x202;
			out = in;
			shapes[k].call(&in, &out);
			calls++;
			wrong = check(&shapes[k], &in, &out, fails ? (uint64_t)-EFAULT : 3, bytes);
		}
		printf("%s\t%s\n", shapes[k].name, wrong ? wrong : "kept");
	}
	printf("pread\t%ld\n", calls);
	close(fd);
	return 0;
}

/* pread with this stack pointer. */
static long at_stack(char *sp, int fd, char *to)
{
	register long r10 asm("r10") = 0;
	long result;

	asm volatile("mov %%rsp,%%rbx\nmov %5,%%rsp\nmov $17,%%eax\nsyscall\nmov %%rbx,%%rsp\n"
		     : "=a"(result)
		     : "D"(fd), "S"(to), "d"(1L), "r"(r10), "r"(sp)
		     : "rbx", "rcx", "r11", "memory", "cc");
	return result;
}

/* Stacks with next to nothing left. */
static int stacks(void)
{
	char *map = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = open("/etc/passwd", O_RDONLY);
	long good = 0;
	char byte;

	CHECK(map != MAP_FAILED && munmap(map, 4096) == 0 && fd >= 0);
	for (int round = 0; round < 20; round++) {
		for (int left = 0; left <= 504; left += 8)
			good += at_stack(map + 4096 + left, fd, &byte) == 1;
	}
	printf("pread\t%ld\n", good);
	return 0;
}

/* What cannot be read is the kernel's to say; and paths and vectors of all lengths. */
static int pointers(void)
{
	char *map = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *const edge = map + 4096;
	static char longest[6000];
	long opens = 0;
	long failures = 0;
	long vectors = 0;
	char *volatile none = NULL;
	volatile int negative = -1;
	int fd;

	CHECK(map != MAP_FAILED && munmap(edge, 4096) == 0);
	for (int i = 0; i < 60; i++) {
		failures += open((char *)8, O_RDONLY) == -1 && errno == EFAULT;
		failures += open(none, O_RDONLY) == -1 && errno == EFAULT;
		memset(map, 'a', 4096);
		failures += open(map, O_RDONLY) == -1 && errno == EFAULT;
		memset(longest, 'b', sizeof(longest) - 1);
		failures += open(longest, O_RDONLY) == -1 && errno == ENAMETOOLONG;
		/* To the last byte of a page, and to the last of the kernel's limit. */
		memcpy(edge - 12, "/etc/passwd", 12);
		opens += (fd = open(edge - 12, O_RDONLY)) >= 0;
		close(fd);
		memset(longest, '/', 4095);
		memcpy(longest + 4095 - 10, "etc/passwd", 11);
		opens += (fd = open(longest, O_RDONLY)) >= 0;
		struct iovec *iov = (struct iovec *)(edge - 32);
		iov[0] = (struct iovec){longest, 3};
		iov[1] = (struct iovec){longest + 10, 4};
		vectors += readv(fd, iov, 2) == 7;
		failures += readv(fd, iov, 3) == -1 && errno == EFAULT;
		failures += readv(fd, iov, negative) == -1 && errno == EINVAL;
		close(fd);
	}
	printf("failures\t%ld\nopen\t%ld\nreadv\t%ld\n", failures, opens, vectors);
	return 0;
}

static volatile int in_handler;
static const char *bad_path;
static long bad_calls;

/* Of a path, of two, of a vector. */
static void call_badly(int fd)
{
	struct stat st;
	const struct iovec *vector = (const struct iovec *)bad_path;

	for (int i = 0; i < 20; i++) {
		CHECK(stat("/etc/passwd", &st) == 0);
		CHECK(open(bad_path, O_RDONLY) == -1 && errno == EFAULT);
		CHECK(stat(bad_path, &st) == -1 && errno == EFAULT);
		CHECK(rename(bad_path, "/nowhere/at/all") == -1 && errno == EFAULT);
		CHECK(readv(fd, vector, 2) == -1 && errno == EFAULT);
		bad_calls += 4;
	}
}

static void handler(int sig)
{
	in_handler++;
	call_badly(open("/etc/passwd", O_RDONLY));
	(void)sig;
}

/* What the kernel does not tell a program but by a fault: mask, action and what is pending are as they were. */
static void fault(int sig, void (*action)(int), bool blocked, bool pending, int fd)
{
	struct sigaction set = {.sa_handler = action, .sa_flags = SA_RESTART | SA_NODEFER};
	struct sigaction got;
	sigset_t mask, old, now, waiting;

	sigemptyset(&mask);
	sigaddset(&mask, sig);
	sigaddset(&set.sa_mask, SIGUSR1);
	CHECK(sigaction(sig, &set, NULL) == 0);
	CHECK(sigprocmask(blocked ? SIG_BLOCK : SIG_UNBLOCK, &mask, NULL) == 0);
	CHECK(sigprocmask(SIG_BLOCK, NULL, &old) == 0);
	if (pending)
		raise(sig);
	call_badly(fd);
	CHECK(sigprocmask(SIG_BLOCK, NULL, &now) == 0 && memcmp(&now, &old, 8) == 0);
	CHECK(sigaction(sig, NULL, &got) == 0 && got.sa_handler == action &&
	      (got.sa_flags & ~0x04000000) == set.sa_flags &&
	      sigismember(&got.sa_mask, SIGUSR1) == 1);
	CHECK(sigpending(&waiting) == 0 && sigismember(&waiting, sig) == pending);
	CHECK(in_handler == 0);
	signal(sig, SIG_IGN);
	CHECK(sigprocmask(SIG_UNBLOCK, &mask, NULL) == 0);
}

static int faults(void)
{
	static void (*const actions[])(int) = {SIG_DFL, SIG_IGN, handler};
	static const int signals[] = {SIGSEGV, SIGBUS};
	int empty = open("empty", O_RDWR | O_CREAT | O_TRUNC, 0600);
	int fd = open("/etc/passwd", O_RDONLY);
	/* One that is not mapped, and one behind the end of its file. */
	const char *pages[] = {(const char *)8, mmap(NULL, 4096, PROT_READ, MAP_SHARED, empty, 0)};
	struct sigaction own = {.sa_handler = handler}, got;

	CHECK(fd >= 0 && pages[1] != MAP_FAILED);
	for (int page = 0; page < 2; page++) {
		bad_path = pages[page];
		for (int s = 0; s < 2; s++) {
			for (int action = 0; action < 3; action++) {
				fault(signals[s], actions[action], false, false, fd);
				fault(signals[s], actions[action], true, false, fd);
				fault(signals[s], actions[action], true, true, fd);
			}
			/* Inside its own handler it is blocked. */
			CHECK(sigaction(signals[s], &own, NULL) == 0);
			raise(signals[s]);
			CHECK(in_handler == 1);
			in_handler = 0;
			CHECK(sigaction(signals[s], NULL, &got) == 0 && got.sa_handler == handler);
		}
	}
	printf("failures\t%ld\n", bad_calls);
	return 0;
}

static void blocks(int sig)
{
	sigset_t set;

	(void)sig;
	sigemptyset(&set);
	sigaddset(&set, SIGSEGV);
	sigaddset(&set, SIGBUS);
	CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
}

/* A mask that is a handler's ends with it, and a handler that is for once is gone; neither is to be had back. */
static int handlers(void)
{
	struct sigaction action = {.sa_handler = blocks};
	int fd = open("/etc/passwd", O_RDONLY);
	sigset_t old, now;

	bad_path = (const char *)8;
	for (int round = 0; round < 2; round++) {
		CHECK(sigprocmask(SIG_BLOCK, NULL, &old) == 0);
		CHECK(sigaction(SIGUSR1, &action, NULL) == 0 && raise(SIGUSR1) == 0);
		call_badly(fd);
		CHECK(sigprocmask(SIG_BLOCK, NULL, &now) == 0 && memcmp(&now, &old, 8) == 0);
		action.sa_handler = handler;
		action.sa_flags = SA_RESETHAND | (round ? SA_NODEFER : 0);
		CHECK(sigaction(SIGSEGV, &action, NULL) == 0 && raise(SIGSEGV) == 0);
		CHECK(in_handler == round + 1);
		call_badly(fd);
		CHECK(sigprocmask(SIG_BLOCK, NULL, &now) == 0 && memcmp(&now, &old, 8) == 0);
		CHECK(sigaction(SIGSEGV, NULL, &action) == 0 && action.sa_handler == SIG_DFL);
		action = (struct sigaction){.sa_handler = blocks};
	}
	printf("failures\t%ld\n", bad_calls);
	return 0;
}

int main(int argc, char **argv)
{
	CHECK(argc >= 2);
	if (strcmp(argv[1], "registers") == 0)
		return registers(argc > 2 ? atol(argv[2]) : 300);
	if (strcmp(argv[1], "stacks") == 0)
		return stacks();
	if (strcmp(argv[1], "faults") == 0)
		return faults();
	if (strcmp(argv[1], "handlers") == 0)
		return handlers();
	CHECK(strcmp(argv[1], "pointers") == 0);
	return pointers();
}
