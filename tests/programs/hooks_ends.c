/* How calls of hooked functions end, and begin. The functions are to be hooked by -x 'hooked_*'.
 * usage: hooks_ends CASE; prints `func <TAB> name <TAB> calls that return <TAB> calls that do not <TAB> sum of
 * what was returned`. */
#include "say.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <ucontext.h>
#include <unistd.h>

#ifdef __GLIBC__
#include <execinfo.h>
#endif
#include <sched.h>

#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#define HOOKED    __attribute__((noinline, noclone, used, externally_visible))
#define opaque(x) __asm__ volatile("" : "+r"(x)::"memory")

/* clang knows neither. */
#ifdef __clang__
#undef HOOKED
#define HOOKED __attribute__((noinline, used))
#endif

long hooked_fact(long n);
long hooked_first(long n);
long hooked_second(long n);
long hooked_through(long (*to)(long), long n);
long hooked_jump(long n);
long hooked_plain(long n);
long hooked_callback(long (*to)(long), long n);
long hooked_switch(long n);
long hooked_exits(long n);
long hooked_gone(long n);
long hooked_return(void *expected);
long hooked_many(long a, long b, long c, long d, long e, long f, long g, long h);
long hooked_write(long fd);
long hooked_fork(long n);

struct count {
	_Atomic long done;
	_Atomic long cut;
	_Atomic long sum;
};

/* The compiler must not know what comes back. */
static long count(struct count *c, long ret)
{
	c->done++;
	c->sum += ret;
	return ret;
}

static void print(const char *name, const struct count *c)
{
	printf("func\t%s\t%ld\t%ld\t%ld\n", name, (long)c->done, (long)c->cut, (long)c->sum);
}

static struct count fact, first, second, through, jump, plain, callback, switched, returned;

HOOKED long hooked_fact(long n)
{
	long ret = n <= 1 ? 1 : hooked_fact(n - 1) + n;

	opaque(ret);
	return count(&fact, ret);
}

static void case_recursion(void)
{
	for (int i = 0; i < 20; i++)
		CHECK(hooked_fact(50) == 1275);
	print("hooked_fact", &fact);
}

HOOKED long hooked_second(long n)
{
	opaque(n);
	return count(&second, n + 1);
}

HOOKED long hooked_first(long n)
{
	opaque(n);
	count(&first, n * 2 + 1);
	return hooked_second(n * 2);
}

HOOKED long hooked_through(long (*to)(long), long n)
{
	opaque(to);
	return to(n + 5);
}

HOOKED long hooked_plain(long n)
{
	opaque(n);
	return count(&plain, n * 3);
}

static long unhooked(long n)
{
	opaque(n);
	return n - 1;
}

static void case_tail(void)
{
	long (*volatile to)(long);

	for (long i = 0; i < 200; i++) {
		CHECK(hooked_first(i) == i * 2 + 1);
		to = i % 2 ? hooked_plain : unhooked;
		CHECK(count(&through, hooked_through(to, i)) == (i % 2 ? (i + 5) * 3 : i + 4));
		/* The same place again, by a direct call. */
		CHECK(hooked_plain(i) == i * 3);
	}
	print("hooked_first", &first);
	print("hooked_second", &second);
	print("hooked_through", &through);
	print("hooked_plain", &plain);
}

static jmp_buf back;

HOOKED long hooked_jump(long n)
{
	opaque(n);
	if (n == 0)
		longjmp(back, 1);
	if (n < 0)
		return n;

	long ret = hooked_jump(n - 1) + 1;
	opaque(ret);
	return ret;
}

/* Each jump leaves its calls behind, and those that come after must be exact. */
static void case_longjmp(void)
{
	for (volatile long i = 0; i < 100; i++) {
		if (setjmp(back) == 0)
			hooked_jump(i % 10);
		jump.cut += i % 10 + 1;
		CHECK(hooked_fact(5) == 15);
	}
	print("hooked_jump", &jump);
	print("hooked_fact", &fact);
}

HOOKED long hooked_callback(long (*to)(long), long n)
{
	long ret = to(n);

	opaque(ret);
	return count(&callback, ret + 1);
}

static long fact_of(long n)
{
	return hooked_fact(n);
}

static void case_callback(void)
{
	for (long i = 1; i < 100; i++)
		CHECK(hooked_callback(fact_of, i % 7 + 1) > 0);
	print("hooked_callback", &callback);
	print("hooked_fact", &fact);
}

/* Several ways out, by a jump table. */
HOOKED long hooked_switch(long n)
{
	opaque(n);
	switch (n) {
	case 0:
		return count(&switched, 17);
	case 1:
		(void)getppid();
		return count(&switched, 1);
	case 2:
		return count(&switched, 99);
	case 3:
		(void)getpid();
		return count(&switched, -4);
	case 4:
		return count(&switched, n * n);
	case 5:
		return count(&switched, getpid() > 0);
	case 6:
		return count(&switched, 1L << 40);
	default:
		return count(&switched, -1);
	}
}

static void case_switch(void)
{
	for (long i = 0; i < 100; i++)
		hooked_switch(i % 9);
	print("hooked_switch", &switched);
}

static _Atomic int cancel_now;

HOOKED long hooked_exits(long n)
{
	opaque(n);
	if (n == 1) {
		printf("func\thooked_exits\t0\t1\t0\n");
		exit(5);
	}
	if (n == 2)
		pthread_exit(NULL);
	if (n == 3)
		syscall(SYS_exit, 0);
	if (n == 4)
		raise(SIGKILL);
	if (n == 6) {
		cancel_now = 1;
		for (;;)
			pause();
	}
	if (n == 5)
		execl("/bin/true", "true", NULL);
	return n;
}

static void *leave(void *n)
{
	hooked_exits((long)(intptr_t)n);
	return NULL;
}

static void case_thread_ends(long how)
{
	pthread_t thread;

	for (int i = 0; i < 10; i++) {
		CHECK(pthread_create(&thread, NULL, leave, (void *)(intptr_t)how) == 0);
		CHECK(pthread_join(thread, NULL) == 0);
	}
	printf("func\thooked_exits\t0\t10\t0\n");
}

static void case_dies(long how)
{
	printf("func\thooked_exits\t0\t1\t0\n");
	fflush(stdout);
	hooked_exits(how);
}

static _Atomic long in_handler;
static FILE *handlers_file;

static void handler(int number)
{
	(void)number;
	in_handler++;
	hooked_fact(3);
	fputc('h', handlers_file);
}

/* A handler on a stack of its own that does the same as what it interrupts. */
static void case_signals(void)
{
	stack_t stack = {.ss_size = 64 * 1024};
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK | SA_RESTART};
	struct itimerval timer = {{0, 2000}, {0, 2000}};
	sigset_t alarms;

	CHECK((stack.ss_sp = malloc(stack.ss_size)) && sigaltstack(&stack, NULL) == 0);
	handlers_file = fopen("handlers", "w");
	CHECK(handlers_file && sigaction(SIGALRM, &action, NULL) == 0);
	CHECK(setitimer(ITIMER_REAL, &timer, NULL) == 0);
	for (long i = 0; in_handler < 50 && i < 1000000; i++)
		CHECK(hooked_first(i) == i * 2 + 1);
	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	sigprocmask(SIG_BLOCK, &alarms, NULL);
	print("hooked_first", &first);
	print("hooked_second", &second);
	print("hooked_fact", &fact);
	printf("handlers\t%ld\n", (long)in_handler);
	CHECK(fclose(handlers_file) == 0);
	free(stack.ss_sp);
}

static sigjmp_buf out_of_handler;

static void jumping_handler(int number)
{
	(void)number;
	siglongjmp(out_of_handler, 1);
}

static _Atomic long entered;

HOOKED long hooked_gone(long n)
{
	entered++;
	raise(SIGUSR1);
	return n;
}

static void case_siglongjmp(void)
{
	struct sigaction action = {.sa_handler = jumping_handler};

	CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
	for (volatile int i = 0; i < 30; i++) {
		if (sigsetjmp(out_of_handler, 1) == 0)
			hooked_gone(i);
		hooked_fact(2);
	}
	printf("func\thooked_gone\t0\t%ld\t0\n", (long)entered);
	print("hooked_fact", &fact);
}

#ifdef __GLIBC__
static ucontext_t main_context, contexts[3];
static int next;
static struct count yield;

long hooked_yield(long n);
HOOKED long hooked_yield(long n)
{
	int self = next;

	next = (self + 1) % 3;
	/* cppcheck-suppress swapcontextCalled */
	CHECK(swapcontext(&contexts[self], &contexts[next]) == 0);
	return count(&yield, n + self);
}

static _Atomic int finished;

static void coroutine(int self)
{
	for (long i = 0; i < 50; i++)
		hooked_yield(i);
	hooked_fact(4);
	if (++finished == 3)
		setcontext(&main_context);
	for (;;) {
		next = (self + 1) % 3;
		/* cppcheck-suppress swapcontextCalled */
		CHECK(swapcontext(&contexts[self], &contexts[next]) == 0);
	}
}

static void case_coroutines(void)
{
	/* cppcheck-suppress getcontextCalled */
	CHECK(getcontext(&main_context) == 0);
	if (finished == 0) {
		for (int i = 0; i < 3; i++) {
			/* cppcheck-suppress getcontextCalled */
			CHECK(getcontext(&contexts[i]) == 0);
			contexts[i].uc_stack.ss_size = 256 * 1024;
			CHECK((contexts[i].uc_stack.ss_sp = malloc(256 * 1024)));
			makecontext(&contexts[i], (void (*)(void))coroutine, 1, i);
		}
		setcontext(&contexts[0]);
	}
	print("hooked_yield", &yield);
	print("hooked_fact", &fact);
}
#endif

HOOKED long hooked_return(void *expected)
{
	void *address = __builtin_return_address(0);

	opaque(address);
	CHECK(address >= expected && (char *)address < (char *)expected + 200);
#ifdef __GLIBC__
	void *addresses[16];
	int n = backtrace(addresses, 16);

	CHECK(n >= 3 && addresses[1] == address);
#endif
	return count(&returned, 1);
}

/* What the program finds on its own stack is its own. */
__attribute__((noinline)) static void case_return_address(void)
{
	for (int i = 0; i < 20; i++) {
		void *here = NULL;

		__asm__ volatile("lea 0(%%rip), %0" : "=r"(here));
		CHECK(hooked_return(here) == 1);
	}
	print("hooked_return", &returned);
}

HOOKED long hooked_many(long a, long b, long c, long d, long e, long f, long g, long h)
{
	opaque(a);
	return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h;
}

static void case_arguments(void)
{
	struct count many = {0};

	count(&many, hooked_many(1, -2, 3, 1L << 40, 5, -6, 7, 8));
	count(&many, hooked_many(-1, 0, INT64_MAX, INT64_MIN, 0xffffffff, 11, 0, 0));
	print("hooked_many", &many);
}

HOOKED long hooked_write(long fd)
{
	FILE *f = fopen("stream", "w");

	CHECK(f && fputs("by a stream\n", f) >= 0 && fclose(f) == 0);
	return write((int)fd, "by a call\n", 10);
}

/* System calls and streams inside. */
static void case_inside(void)
{
	FILE *f = fopen("other", "w");
	struct count writes = {0};

	CHECK(f);
	count(&writes, hooked_write(fileno(f)));
	CHECK(fclose(f) == 0);
	print("hooked_write", &writes);
}

HOOKED long hooked_fork(long n)
{
	opaque(n);
	pid_t child = fork();
	CHECK(child >= 0);
	hooked_fact(n);
	if (child == 0)
		return 0;
	int status;
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	return 1;
}

/* Both return from the call that one of them made. */
static void case_fork(void)
{
	long sum = 0;

	for (int i = 0; i < 5; i++) {
		if (hooked_fork(3) == 0) {
			hooked_fact(2);
			_exit(0);
		}
		sum++;
	}
	printf("func\thooked_fork\t5\t0\t%ld\n", sum);
	print("hooked_fact", &fact);
}

/* Memory is shared with the child, its calls are its own. */
static void case_vfork(void)
{
	for (int i = 0; i < 5; i++) {
		pid_t child = vfork();

		CHECK(child >= 0);
		if (child == 0) {
			hooked_second(i);
			_exit(0);
		}
		int status;
		CHECK(waitpid(child, &status, 0) == child && status == 0);
		hooked_first(i);
	}
	print("hooked_first", &first);
	print("hooked_second", &second);
}

static void *wait_for_cancel(void *data)
{
	(void)data;
	hooked_exits(6);
	return NULL;
}

/* Cancelled in a system call inside. */
static void case_cancel(void)
{
	pthread_t thread;

	for (int i = 0; i < 10; i++) {
		cancel_now = 0;
		CHECK(pthread_create(&thread, NULL, wait_for_cancel, NULL) == 0);
		while (!cancel_now)
			sched_yield();
		CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, NULL) == 0);
	}
	printf("func\thooked_exits\t0\t10\t0\n");
}

static int cloned(void *n)
{
	hooked_second((long)(intptr_t)n);
	return 0;
}

/* Processes that share memory and nothing else. */
static void case_clone(void)
{
	char *stack = malloc(256 * 1024);

	CHECK(stack);
	for (int i = 0; i < 5; i++) {
		int pid =
			clone(cloned, stack + 256 * 1024, CLONE_VM | SIGCHLD, (void *)(intptr_t)i);
		int status;

		CHECK(pid > 0);
		hooked_first(i);
		CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	}
	free(stack);
	print("hooked_first", &first);
	print("hooked_second", &second);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{"recursion", case_recursion},
	{"tail", case_tail},
	{"longjmp", case_longjmp},
	{"callback", case_callback},
	{"switch", case_switch},
	{"signals", case_signals},
	{"siglongjmp", case_siglongjmp},
	{"return", case_return_address},
	{"arguments", case_arguments},
	{"inside", case_inside},
	{"fork", case_fork},
	{"vfork", case_vfork},
	{"clone", case_clone},
	{"cancel", case_cancel},
#ifdef __GLIBC__
	{"coroutines", case_coroutines},
#endif
};

int main(int argc, char **argv)
{
	const char *which = argc > 1 ? argv[1] : "";

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (strcmp(which, cases[i].name) == 0) {
			cases[i].run();
			return 0;
		}
	}
	if (strcmp(which, "exit") == 0)
		hooked_exits(1);
	else if (strcmp(which, "pthread_exit") == 0)
		case_thread_ends(2);
	else if (strcmp(which, "thread_dies") == 0)
		case_thread_ends(3);
	else if (strcmp(which, "killed") == 0)
		case_dies(4);
	else if (strcmp(which, "exec") == 0)
		case_dies(5);
	else
		return 2;
	return 0;
}
