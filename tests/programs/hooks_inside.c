/* Functions that are recorded inside the program, where that is hard to keep from being noticed. usage: hooks_inside CASE
 * [N]; to be hooked by -x 'hooked_*'. Prints the same with and without hooks, but for `code`. */
#include "say.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <ucontext.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>

long hooked_leaf(long a, long b);

/* Without a stack of its own. */
__attribute__((noinline)) long hooked_leaf(long a, long b)
{
	__asm__ volatile("" : "+r"(a));
	return a * 13 + b * 7 + (a ^ b);
}

/* --- what lies there --------------------------------------------------------------------------- */

static void code(void)
{
	const volatile unsigned char *first = (const unsigned char *)(uintptr_t)hooked_leaf;
	long sum = 0;

	for (long i = 0; i < 20; i++)
		sum += hooked_leaf(i, 1);
	printf("first byte\t%02x\nsum\t%ld\n", *first, sum);
}

/* --- hooks that are taken out ------------------------------------------------------------------ */

/* A caller that goes on, where its callee has left by an indirect jump, with the instructions of its own end. */
#define CALLERS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#define CALLER(n)                                                                                  \
	long hooked_tail##n(long (*f)(long), long a);                                              \
	long hooked_caller##n(long (*f)(long), long a);                                            \
	__attribute__((noinline)) long hooked_tail##n(long (*f)(long), long a)                     \
	{                                                                                          \
		return f(a + (n));                                                                 \
	}                                                                                          \
	__attribute__((noinline)) long hooked_caller##n(long (*f)(long), long a)                   \
	{                                                                                          \
		long r = hooked_tail##n(f, a);                                                     \
		__asm__ volatile("" : "+r"(r));                                                    \
		return r;                                                                          \
	}
CALLERS(CALLER)

#define CALLER_NAME(n) hooked_caller##n,
static long (*const callers[])(long (*f)(long), long a) = {CALLERS(CALLER_NAME)};
#define NCALLERS ((long)(sizeof(callers) / sizeof(callers[0])))

static long plus_one(long a)
{
	return a + 1;
}

static long hide(long a)
{
	CHECK(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0);
	return a + 1;
}

/* Tries to move the code to where it is, which fails. */
static long move(long a)
{
	const size_t page = 4096;
	char *begin = (char *)((uintptr_t)hooked_leaf & ~(uintptr_t)(page - 1));

	CHECK(mremap(begin, 2 * page, 2 * page, MREMAP_MAYMOVE | MREMAP_FIXED, begin) ==
	      MAP_FAILED);
	return a + 1;
}

static atomic_bool stop;

static void *run_on(void *data)
{
	long *wrong = data;

	for (long i = 0; !stop; i++) {
		*wrong += hooked_leaf(i, 2) != i * 13 + 14 + (i ^ 2);
		*wrong += callers[i % NCALLERS](plus_one, i) != i + i % NCALLERS + 1;
	}
	return NULL;
}

/* In a process of its own hooks are taken out while a call of one of the callers goes on, among other threads. */
static void taken_out(long (*f)(long), long nthreads)
{
	pthread_t threads[8];
	long wrong[8] = {0};

	for (long k = 0; k < NCALLERS; k++) {
		fflush(stdout);
		pid_t pid = fork();
		CHECK(pid >= 0);
		if (pid == 0) {
			for (long i = 0; i < nthreads; i++)
				CHECK(pthread_create(&threads[i], NULL, run_on, &wrong[i]) == 0);
			for (long i = 0; i < 100; i++)
				CHECK(callers[k](plus_one, i) == i + k + 1);
			printf("taken out\t%ld\n", callers[k](f, 100));
			for (long i = 0; i < 100; i++)
				CHECK(callers[k](plus_one, i) == i + k + 1);
			stop = true;
			for (long i = 0; i < nthreads; i++)
				CHECK(pthread_join(threads[i], NULL) == 0 && wrong[i] == 0);
			exit(0);
		}
		int status;
		CHECK(waitpid(pid, &status, 0) == pid);
		printf("status\t%d\n", status);
	}
}

/* --- faults of ours ---------------------------------------------------------------------------- */

static void ignore(int sig)
{
	(void)sig;
}

static void show(const char *when)
{
	struct sigaction action;
	sigset_t blocked;
	sigset_t pending;

	CHECK(sigaction(SIGSEGV, NULL, &action) == 0 &&
	      sigprocmask(SIG_BLOCK, NULL, &blocked) == 0 && sigpending(&pending) == 0);
	printf("%s\t%s, blocked %d, pending %d\n", when,
	       action.sa_handler == SIG_DFL   ? "default"
	       : action.sa_handler == SIG_IGN ? "ignored"
					      : "handled",
	       sigismember(&blocked, SIGSEGV), sigismember(&pending, SIGSEGV));
}

/* Calls it with little more than its return address left of the stack. */
static long call_at(uintptr_t sp, long a, long b)
{
	long r;

	__asm__ volatile("mov %%rsp, %%rbx\n\tmov %1, %%rsp\n\tcall hooked_leaf\n\tmov %%rbx, %%rsp"
			 : "=a"(r), "+r"(sp), "+D"(a), "+S"(b)
			 :
			 : "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "memory", "cc");
	return r;
}

/* Where the recorder cannot write below the stack pointer, and SIGSEGV is not to come. */
static void guard(long calls_before)
{
	const size_t page = 4096;
	char *stack =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long sum = 0;
	sigset_t set;

	CHECK(stack != MAP_FAILED && mprotect(stack, page, PROT_NONE) == 0);
	uintptr_t sp = (uintptr_t)stack + page + 64;
	for (long i = 0; i < calls_before; i++)
		sum += hooked_leaf(i, 2);
	show("at first");
	sum += call_at(sp, 3, 4);
	show("default");
	sigemptyset(&set);
	sigaddset(&set, SIGSEGV);
	CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	CHECK(signal(SIGSEGV, SIG_IGN) != SIG_ERR);
	sum += call_at(sp, 5, 6);
	show("ignored");
	CHECK(signal(SIGSEGV, ignore) != SIG_ERR);
	sum += call_at(sp, 7, 8);
	show("handled");
	CHECK(raise(SIGSEGV) == 0);
	sum += call_at(sp, 9, 10);
	show("pending");
	printf("sum\t%ld\n", sum);
}

/* --- what handlers see ------------------------------------------------------------------------- */

/* Instructions that are displaced and cannot be done by anyone else: at the beginning, behind another one there, and
 * before the end. */
__asm__(".macro FUNCTION name\n.globl \\name\n.type \\name, "
	"@function\n\\name:\n.cfi_startproc\n.endm\n"
	".macro END name\nret\n.cfi_endproc\n.size \\name, .-\\name\n.balign 32\n.endm\n"
	".text\n.balign 32\n"
	"FUNCTION hooked_first\nmov 0x100(%rdi), %rax\nadd 0x104(%rdi), %rax\nEND hooked_first\n"
	"FUNCTION hooked_second\nmov %rsi, %rax\nadd (%rdi), %rax\nadd $0x12345, %rax\n"
	"add $0x54321, %rax\nEND hooked_second\n"
	"FUNCTION hooked_last\nlea 0x12345(%rsi), %rcx\nadd $0x54321, %rcx\nmov %rcx, %rax\n"
	"add (%rdi), %rax\nEND hooked_last\n");
long hooked_first(const long *p, long n);
long hooked_second(const long *p, long n);
long hooked_last(const long *p, long n);

static long (*const readers[])(const long *p, long n) = {hooked_first, hooked_second, hooked_last};
static const long words[64] = {[0] = 7, [32] = 8};
static long at = -1;
static volatile sig_atomic_t signals, calling, elsewhere;
extern const char __executable_start[], etext[];

/* Says where it was, and makes the instruction succeed. */
static void mend(int sig, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)info;
	at = (long)(regs[REG_RIP] - (greg_t)(uintptr_t)readers[regs[REG_RSI]]);
	regs[REG_RDI] = (greg_t)(uintptr_t)words;
	signals = signals + (sig == SIGSEGV);
}

static void look(int sig, siginfo_t *info, void *context)
{
	const uintptr_t ip = (uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];

	(void)sig;
	(void)info;
	signals = signals + 1;
	if (calling && (ip < (uintptr_t)__executable_start || ip >= (uintptr_t)etext))
		elsewhere = elsewhere + 1;
}

static void handle(int sig, void (*handler)(int, siginfo_t *, void *))
{
	struct sigaction action = {.sa_flags = SA_SIGINFO};

	action.sa_sigaction = handler;
	CHECK(sigaction(sig, &action, NULL) == 0);
}

static void faults(void)
{
	const long *volatile bad = (const long *)8;

	handle(SIGSEGV, mend);
	for (long i = 0; i < 30; i++) {
		long n = i % 3;
		long sum = readers[n](i % 2 ? bad : words, n);
		printf("reader %ld\t%ld at %ld\n", n, sum, at);
		at = -1;
	}
	printf("signals\t%d\n", (int)signals);
}

/* So many signals, each only asked for when the one before has come: handling them may take longer than the program. */
static void interrupted(long count)
{
	const struct itimerval soon = {{0, 0}, {0, 60}};
	long calls = 0;
	long wrong = 0;

	handle(SIGALRM, look);
	while (signals < count) {
		long before = signals;
		CHECK(setitimer(ITIMER_REAL, &soon, NULL) == 0);
		for (calling = 1; signals == before; calls++)
			wrong += hooked_first(words, 0) != 8;
		calling = 0;
	}
	printf("calls\t%ld\nwrong\t%ld\nelsewhere\t%d\n", calls, wrong, (int)elsewhere);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	long n = argc > 2 ? atol(argv[2]) : 0;

	if (strcmp(name, "code") == 0)
		code();
	else if (strcmp(name, "withdrawn") == 0)
		taken_out(hide, n);
	else if (strcmp(name, "moved") == 0)
		taken_out(move, n);
	else if (strcmp(name, "guard") == 0)
		guard(n);
	else if (strcmp(name, "faults") == 0)
		faults();
	else if (strcmp(name, "interrupted") == 0)
		interrupted(n);
	else
		return 2;
	return 0;
}
