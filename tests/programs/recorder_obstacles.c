/* What keeps the recorder away, or has to: recorder_obstacles WHAT ROUNDS. Prints how many calls there were on the
 * file `data`, and what has come of what the program needs. */
#include "say.h"

#include <asm/prctl.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>
#include <unistd.h>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#ifndef PR_SET_MDWE
#define PR_SET_MDWE              65
#define PR_MDWE_REFUSE_EXEC_GAIN 1
#endif
#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH  59
#define PR_SYS_DISPATCH_ON            1
#define SYSCALL_DISPATCH_FILTER_ALLOW 0
#define SYSCALL_DISPATCH_FILTER_BLOCK 1
#endif

/* As the sources of dftrace have it: where the agent would lie. */
#define AGENT ((void *)0x7e8100000000)

static int data;
static long calls;

static void call(void)
{
	char bytes[4];

	CHECK(pread(data, bytes, 3, 1) == 3 && memcmp(bytes, "ell", 3) == 0);
	calls++;
}

static void *many(void *times)
{
	for (long i = 0; i < *(long *)times; i++)
		call();
	return NULL;
}

static uint64_t own[2] = {0x1122334455667788, 0};

static uint64_t own_word(void)
{
	uint64_t word;

	__asm__ volatile("mov %%gs:0,%0" : "=r"(word));
	return word;
}

static void many_with_gs(long times)
{
	for (long i = 0; i < times; i++) {
		own[0]++;
		call();
		CHECK(own_word() == own[0]);
	}
}

static void gs_before(long times)
{
	CHECK(syscall(SYS_arch_prctl, ARCH_SET_GS, own) == 0);
	many_with_gs(times);
}

/* By an instruction: nobody sees it. */
static void gs_later(long times)
{
	many(&times);
	__asm__ volatile("wrgsbase %0" : : "r"(own));
	many_with_gs(times);
}

static void no_new_code(long times)
{
	CHECK(prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0) == 0);
	many(&times);
	CHECK(mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		   0) == MAP_FAILED);
}

/* A page is all that it may still have. */
static void no_memory(long times)
{
	char line[64] = "";
	long pages = 0;
	int fd = open("/proc/self/statm", O_RDONLY);

	CHECK(fd >= 0 && read(fd, line, sizeof(line) - 1) > 0 && close(fd) == 0);
	pages = atol(line);
	const struct rlimit limit = {((rlim_t)pages + 1) * 4096, RLIM_INFINITY};
	CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
	many(&times);
	CHECK(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
}

static void locked(long times)
{
	CHECK(mlockall(MCL_CURRENT | MCL_FUTURE) == 0);
	many(&times);
	CHECK(munlockall() == 0);
}

static void taken(long times)
{
	unsigned char *page = mmap(AGENT, 4096, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	CHECK(page == AGENT);
	memset(page, 0x5a, 4096);
	many(&times);
	for (int i = 0; i < 4096; i++)
		CHECK(page[i] == 0x5a);
}

static void own_filter(long times)
{
	struct sock_filter all[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	const struct sock_fprog program = {1, all};

	many(&times);
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
	many(&times);
}

/* With the second thread %gs is taken in one of them only. */
static void gs_of_one(long times)
{
	pthread_t thread;

	many(&times);
	CHECK(pthread_create(&thread, NULL, many, &times) == 0);
	pthread_join(thread, NULL);
	gs_before(times);
}

static int pipes[2];

/* A thread that waits in the one place of the library that is patched meanwhile. */
static void *wait_there(void *ready)
{
	sigset_t blocked;
	char byte;

	*(_Atomic int *)ready = 1;
	CHECK(read(pipes[0], &byte, 1) == 1);
	CHECK(pthread_sigmask(SIG_SETMASK, NULL, &blocked) == 0);
	return sigismember(&blocked, SIGTRAP) ? ready : NULL;
}

/* A place of which the jump covers the call itself. */
asm(".text\n.balign 64\n.globl place\n.type place,@function\nplace:\n.cfi_startproc\n"
    "xor %eax,%eax\nmov $8,%al\nsyscall\nnopl 0(%rax,%rax)\nret\n"
    ".cfi_endproc\n.size place,.-place\n");
extern char place[];

static long seek(void)
{
	return ((long (*)(int, long, long))(void *)place)(data, 0, SEEK_CUR);
}

static void *seek_often(void *times)
{
	for (long i = 0; i < *(long *)times; i++)
		CHECK(seek() == 5);
	return NULL;
}

static volatile const char *said_call;
static volatile const char *said_ip;

static void on_sys(int sig, siginfo_t *info, void *context)
{
	greg_t *const registers = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)sig;
	said_call = info->si_call_addr;
	said_ip = (const char *)registers[REG_RIP];
	registers[REG_RAX] = 77;
}

static void handle_sys(void)
{
	const struct sigaction action = {.sa_sigaction = on_sys, .sa_flags = SA_SIGINFO};

	CHECK(sigaction(SIGSYS, &action, NULL) == 0);
}

/* A call that the program answers itself: its handler is told where it was made. A second thread has seen to it that
 * all is changed among others. */
static void answered(long times)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_lseek, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {4, filter};
	_Atomic int ready = 0;
	pthread_t thread;

	CHECK(pipe(pipes) == 0);
	CHECK(pthread_create(&thread, NULL, wait_there, &ready) == 0);
	seek_often(&times);
	handle_sys();
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	/* One that fails changes nothing for good. */
	CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) == -1);
	seek_often(&times);
	CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
	CHECK(seek() == 77 && said_ip == said_call && said_ip - place == 6);
	CHECK(write(pipes[1], "x", 1) == 1 && pthread_join(thread, NULL) == 0);
	printf("lseek\t%ld\n", 2 * times);
}

extern char __executable_start, etext;

/* … and one that only code outside of the program's own would have it answer. */
static void dispatched(long times)
{
	static volatile char answer = SYSCALL_DISPATCH_FILTER_BLOCK;
	const unsigned long begin = (unsigned long)&__executable_start;

	seek_often(&times);
	handle_sys();
	CHECK(prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, begin,
		    (unsigned long)&etext - begin, &answer) == 0);
	for (int i = 0; i < 10; i++) {
		if (seek() != 5)
			said_call = place;
	}
	answer = SYSCALL_DISPATCH_FILTER_ALLOW;
	CHECK(!said_call);
	printf("lseek\t%ld\n", times + 10);
}

/* SIGTRAP as `action` has it, blocked or not. */
static void trap(long times, void (*action)(int), bool block)
{
	struct sigaction now = {.sa_handler = action};
	_Atomic int ready = 0;
	pthread_t thread;
	sigset_t set;
	void *is_blocked;
	char byte;

	sigemptyset(&set);
	sigaddset(&set, SIGTRAP);
	CHECK(sigaction(SIGTRAP, &now, NULL) == 0 && pipe(pipes) == 0);
	CHECK(!block || sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	CHECK(pthread_create(&thread, NULL, wait_there, &ready) == 0);
	while (!ready)
		;
	usleep(50000);
	for (long i = 0; i < times; i++) {
		CHECK(lseek(data, 0, SEEK_SET) == 0 && read(data, &byte, 1) == 1 && byte == 'h');
		call();
	}
	CHECK(write(pipes[1], "x", 1) == 1 && pthread_join(thread, &is_blocked) == 0);
	CHECK(!!is_blocked == block);
	CHECK(sigaction(SIGTRAP, NULL, &now) == 0 && now.sa_handler == action);
	printf("read\t%ld\n", times);
}

static void never(int sig)
{
	(void)sig;
	_exit(98);
}

static void trap_blocked(long times)
{
	trap(times, never, true);
}

static void trap_ignored(long times)
{
	trap(times, SIG_IGN, false);
}

static void trap_handled(long times)
{
	trap(times, never, false);
}

/* The agent's clock, of which there is none any more in the second half. */
static void no_clock(long times)
{
	FILE *stream = fopen("data", "r");

	CHECK(stream);
	for (int half = 0; half < 2; half++) {
		CHECK(prctl(PR_SET_TSC, half ? PR_TSC_SIGSEGV : PR_TSC_ENABLE, 0, 0, 0) == 0);
		for (long i = 0; i < times; i++) {
			CHECK(ftell(stream) == 0);
			call();
		}
	}
	printf("ftell\t%ld\n", 2 * times);
}

static void never_a_clock(long times)
{
	CHECK(prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0) == 0);
	many(&times);
}

/* The agent's code, its table and the first of its rings, as programs that look at their own memory may take them away. */
static void take_away(long times, bool code, bool table, bool rings)
{
	char *const at = AGENT;

	many(&times);
	if (code)
		munmap(at, 0x1000);
	if (table)
		mprotect(at + 0x1000, 0x4000, PROT_NONE);
	if (rings)
		munmap(at + 0x1000000, 1 << 21);
	many(&times);
}

static void no_code(long times)
{
	take_away(times, true, false, false);
}

static void no_table(long times)
{
	take_away(times, false, true, false);
}

static void no_rings(long times)
{
	take_away(times, false, false, true);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(long times);
	} all[] = {
		{"gs-before", gs_before},
		{"gs-later", gs_later},
		{"gs-of-one", gs_of_one},
		{"mdwe", no_new_code},
		{"memory", no_memory},
		{"locked", locked},
		{"taken", taken},
		{"filter", own_filter},
		{"answered", answered},
		{"dispatched", dispatched},
		{"clock", no_clock},
		{"clock-before", never_a_clock},
		{"code-gone", no_code},
		{"table-gone", no_table},
		{"rings-gone", no_rings},
		{"trap-blocked", trap_blocked},
		{"trap-ignored", trap_ignored},
		{"trap-handled", trap_handled},
	};

	CHECK(argc == 3);
	data = open("data", O_RDWR | O_CREAT | O_TRUNC, 0644);
	CHECK(data >= 0 && write(data, "hello", 5) == 5);
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		if (strcmp(argv[1], all[i].name) == 0)
			all[i].run(atol(argv[2]));
	}
	printf("pread\t%ld\n", calls);
	return 0;
}
