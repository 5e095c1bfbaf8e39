/* hostile_watch CASE: programs that watch themselves or others, restrict themselves, or make system calls in
 * unusual ways. */
#include "hostile.h"

#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif

/* Asks to be traced, and to trace a child: somebody else does already. */
static void trace_me(long count)
{
	(void)count;
	long result = ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	tell("traceme\t%ld %d", result, result < 0 ? errno : 0);
	pid_t pid = fork_said();
	if (pid == 0) {
		pause_ms(10000);
		_exit(0);
	}
	result = ptrace(PTRACE_SEIZE, pid, NULL, NULL);
	tell("seize\t%ld %d", result, result < 0 ? errno : 0);
	kill(pid, SIGKILL);
	reap(pid, "child");
	put("goes-on", 11);
}

static long status_field(const char *key)
{
	FILE *file = fopen("/proc/self/status", "re");
	char line[256];
	long value = -1;

	CHECK(file);
	while (fgets(line, sizeof(line), file))
		if (strncmp(line, key, strlen(key)) == 0)
			value = atol(line + strlen(key));
	fclose(file);
	return value;
}

static void look(long count)
{
	(void)count;
	tell("tracer\t~%ld", status_field("TracerPid:"));
	tell("privileges\t%d %d", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0),
	     prctl(PR_GET_DUMPABLE, 0, 0, 0, 0));
}

static void install(const struct sock_filter *code, size_t len, int mode)
{
	struct sock_fprog filter = {(unsigned short)len, (struct sock_filter *)code};

	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	if (mode)
		CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
	else
		CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC,
			      &filter) == 0);
}

#define ALLOW(nr)                                                                                  \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (nr), 0, 1),                                           \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* Whatever the program does not make itself kills it. */
static void own_filter(long action)
{
	const uint32_t actions[] = {SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_ERRNO | 38,
				    SECCOMP_RET_TRAP, SECCOMP_RET_TRACE | 5};
	const struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(SYS_openat),
		ALLOW(SYS_write),
		ALLOW(SYS_close),
		ALLOW(SYS_clone),
		ALLOW(SYS_wait4),
		ALLOW(SYS_exit_group),
		ALLOW(SYS_rt_sigreturn),
		ALLOW(SYS_set_robust_list),
		ALLOW(SYS_gettid),
		ALLOW(SYS_getpid),
		BPF_STMT(BPF_RET | BPF_K, actions[action]),
	};

	put("before", 12);
	bool goes_on = action == 1 || action == 3;
	install(code, sizeof(code) / sizeof(*code), goes_on);
	put("under", 13);
	pid_t pid = fork_said();
	if (pid == 0) {
		put("child", 14);
		_exit(3);
	}
	reap(pid, "child");
	if (goes_on) {
		long result = syscall(SYS_mkdir, "dir", 0755);
		tell("mkdir\t%ld %d", result, errno);
		_exit(0);
	}
	/* Not allowed. */
	(void)syscall(SYS_mkdir, "dir", 0755);
	tell("never");
}

/* The mode in which a process may read, write and end. */
static void strict(long count)
{
	(void)count;
	int fd = open("before", O_WRONLY | O_CREAT, 0644);
	CHECK(fd >= 0);
	int result = prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	tell("strict\t%d %d", result, result < 0 ? errno : 0);
	CHECK(write(fd, "123456789", 9) == 9);
	tell("put\tbefore\t9");
	syscall(SYS_exit, 0);
}

/* Exec and work while nobody may look at the process. */
static void hidden(long count)
{
	(void)count;
	put("open", 15);
	CHECK(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0);
	put("hidden", 16);
	CHECK(mkdir("dir", 0755) == 0 && chdir("dir") == 0);
	put("../above", 17);
	pid_t pid = fork_said();
	if (pid == 0) {
		put("../child", 18);
		_exit(0);
	}
	reap(pid, "child");
	tell("dumpable\t%d", prctl(PR_GET_DUMPABLE, 0, 0, 0, 0));
}

/* One 32-bit call of a 64-bit program. */
static void old_call(long count)
{
	long result;

	(void)count;
	put("before", 21);
	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "a"(20L)
			 : "r8", "r9", "r10", "r11", "memory");
	tell("getpid\t%d", result == getpid());
	put("between", 22);
	/* open, by its number there: a name below 4 GB */
	char *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	CHECK(low != MAP_FAILED);
	strcpy(low, "by-32-bit");
	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "a"(5L), "b"((long)low), "c"((long)(O_CREAT | O_WRONLY)), "d"(0644L)
			 : "r8", "r9", "r10", "r11", "memory");
	tell("open\t%d", result >= 0);
	CHECK(write((int)result, "12345", 5) == 5);
	put("after", 23);
}

static sigjmp_buf back;

static void jump_back(int signal)
{
	siglongjmp(back, signal);
}

/* The legacy page of calls at a fixed address. */
static void vsyscall(long count)
{
	long (*const old_time)(long *) = (long (*)(long *))0xffffffffff600400;
	int number;

	(void)count;
	put("before", 24);
	CHECK(signal(SIGSEGV, jump_back) != SIG_ERR);
	number = sigsetjmp(back, 1);
	if (number)
		tell("vsyscall\tsignal %d", number);
	else
		tell("vsyscall\t%d", old_time(NULL) > 1000000);
	put("after", 25);
}

struct ring {
	int fd;
	unsigned *sq_flags, *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_tail;
	struct io_uring_sqe *sqes;
};

static bool ring_open(struct ring *ring, unsigned flags)
{
	struct io_uring_params params = {.flags = flags, .sq_thread_idle = 50};
	char *sq, *cq;

	ring->fd = (int)syscall(SYS_io_uring_setup, 8, &params);
	if (ring->fd < 0)
		return false;
	sq = mmap(NULL, params.sq_off.array + params.sq_entries * sizeof(unsigned),
		  PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, IORING_OFF_SQ_RING);
	cq = mmap(NULL, params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe),
		  PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, IORING_OFF_CQ_RING);
	ring->sqes = mmap(NULL, params.sq_entries * sizeof(struct io_uring_sqe),
			  PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, IORING_OFF_SQES);
	CHECK(sq != MAP_FAILED && cq != MAP_FAILED && ring->sqes != MAP_FAILED);
	ring->sq_flags = (unsigned *)(sq + params.sq_off.flags);
	ring->sq_tail = (unsigned *)(sq + params.sq_off.tail);
	ring->sq_mask = (unsigned *)(sq + params.sq_off.ring_mask);
	ring->sq_array = (unsigned *)(sq + params.sq_off.array);
	ring->cq_head = (unsigned *)(cq + params.cq_off.head);
	ring->cq_tail = (unsigned *)(cq + params.cq_off.tail);
	return true;
}

static void ring_put(struct ring *ring, int fd, const void *data, unsigned len, unsigned long at)
{
	unsigned tail = *ring->sq_tail, index = tail & *ring->sq_mask;

	ring->sqes[index] = (struct io_uring_sqe){.opcode = IORING_OP_WRITE,
						  .fd = fd,
						  .addr = (uintptr_t)data,
						  .len = len,
						  .off = at};
	ring->sq_array[index] = index;
	__atomic_store_n(ring->sq_tail, tail + 1, __ATOMIC_RELEASE);
}

/* Writes that no system call shows. `polled`: a kernel thread takes them. */
static void uring(long polled)
{
	struct ring ring;
	int fd = open("ring", O_RDWR | O_CREAT, 0644);

	CHECK(fd >= 0);
	if (!ring_open(&ring, polled ? IORING_SETUP_SQPOLL : 0)) {
		tell("refused\t%d", errno);
		return;
	}
	for (unsigned i = 0; i < 5; i++)
		ring_put(&ring, fd, "01234567", 8, i * 8);
	if (!polled) {
		long took =
			syscall(SYS_io_uring_enter, ring.fd, 3, 3, IORING_ENTER_GETEVENTS, NULL, 0);
		long rest =
			syscall(SYS_io_uring_enter, ring.fd, 2, 2, IORING_ENTER_GETEVENTS, NULL, 0);
		tell("submitted\t%ld %ld", took, rest);
	}
	while (__atomic_load_n(ring.cq_tail, __ATOMIC_ACQUIRE) - *ring.cq_head < 5) {
		/* The thread has gone to sleep if we were slow. */
		if (polled &&
		    (__atomic_load_n(ring.sq_flags, __ATOMIC_ACQUIRE) & IORING_SQ_NEED_WAKEUP))
			CHECK(syscall(SYS_io_uring_enter, ring.fd, 0, 0, IORING_ENTER_SQ_WAKEUP,
				      NULL, 0) == 0);
		pause_ms(1);
	}
	struct stat st;
	CHECK(fstat(fd, &st) == 0);
	tell("size\t%ld", (long)st.st_size);
}

static volatile char selector;
static volatile int dispatched;

static void dispatch(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	selector = 0; /* SYSCALL_DISPATCH_FILTER_ALLOW: for the return from here */
	dispatched = info->si_syscall;
}

/* System calls become signals, as emulators do it. */
static void user_dispatch(long count)
{
	struct sigaction action = {.sa_sigaction = dispatch, .sa_flags = SA_SIGINFO};

	(void)count;
	put("before", 26);
	CHECK(sigaction(SIGSYS, &action, NULL) == 0);
	if (prctl(PR_SET_SYSCALL_USER_DISPATCH, 1, 0, 0, &selector) < 0) {
		tell("refused\t%d", errno);
		return;
	}
	for (int i = 0; i < 5; i++) {
		dispatched = -1;
		selector = 1;
		(void)syscall(SYS_rmdir, "never");
		tell("dispatched\t%d", dispatched == SYS_rmdir);
		selector = 1;
		(void)syscall(SYS_getppid);
		tell("dispatched\t%d", dispatched == SYS_getppid);
	}
	CHECK(prctl(PR_SET_SYSCALL_USER_DISPATCH, 0, 0, 0, 0) == 0);
	put("after", 27);
}

/* No such calls: -1, one beyond the table, and one of x32's. */
static void no_calls(long count)
{
	const long numbers[] = {-1, 9999, 0x40000000 + SYS_getpid, -2, 0x7fffffff};

	(void)count;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		long result = syscall(numbers[i], 1, 2, 3);
		tell("call %lx\t%ld %d", numbers[i], result, result < 0 ? errno : 0);
	}
	put("after", 28);
}

static const struct hostile_case cases[] = {
	{"trace-me", trace_me},     {"look", look},
	{"own-filter", own_filter}, {"strict", strict},
	{"hidden", hidden},         {"old-call", old_call},
	{"vsyscall", vsyscall},     {"uring", uring},
	{"no-calls", no_calls},     {"user-dispatch", user_dispatch},
};

int main(int argc, char **argv)
{
	return run_case(argc, argv, cases, sizeof(cases) / sizeof(*cases));
}
