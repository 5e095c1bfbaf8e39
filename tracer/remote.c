#include "tracer/remote.h"

#include "base/proc.h"
#include "tracer/arch/arch.h"
#include "tracer/loop.h"
#include "tracer/memory.h"

#include <errno.h>
#include <signal.h>

#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#define PAGE 4096

/* The vdso's functions fall back to system calls, so it has the instruction, whatever the program is. */
#define VDSO_MAX 16384

static int find_instruction(struct tracer *tracer, struct task *task)
{
	unsigned char code[VDSO_MAX];
	struct mm *mm = task->mm;

	if (mm->syscall_ip)
		return 0;
	ssize_t n = mm->vdso ? memory_read(tracer, task, mm->vdso, code, sizeof(code)) : -1;
	long at = n > 0 ? arch_find_syscall(code, (size_t)n) : -1;
	if (at < 0) {
		errno = ENOTSUP;
		return -1;
	}
	mm->syscall_ip = mm->vdso + (uint64_t)at;
	return 0;
}

/* Waits for the task's own next stop. @return 0, or -1 with errno ESRCH. */
static int wait_own(pid_t tid, int *value)
{
	siginfo_t info = {0};

	/* Its death is left to the loop. That of a leader is not told before those of all other threads, which wait for
	 * the tracer: its clock wakes this up. */
	while (waitid(P_PID, (id_t)tid, &info, WSTOPPED | WEXITED | WNOWAIT | __WALL) < 0) {
		if (errno != EINTR)
			return -1;
		char state = proc_state(tid);
		if (state == 'Z' || state == 'X' || !state) {
			errno = ESRCH;
			return -1;
		}
	}
	if (info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED) {
		errno = ESRCH;
		return -1;
	}
	*value = info.si_status;
	return waitid(P_PID, (id_t)tid, &info, WSTOPPED | WNOHANG | __WALL);
}

/* A call of ours, or code, that a task runs. */
struct run {
	pid_t tid;
	uint64_t mask;
	/* The process has been stopped meanwhile, which cannot be masked. */
	bool stopped;
};

/* Goes on by `request` to the next stop of this status. @return 0, or -1 with errno ESRCH. */
static int run_to(struct run *run, int request, int status)
{
	const pid_t tid = run->tid;
	uintptr_t signal = 0;
	int value = 0;

	do {
		if (ptrace((enum __ptrace_request)request, tid, NULL, (void *)signal) < 0 ||
		    wait_own(tid, &value) < 0)
			return -1;
		signal = value == SIGSTOP ? SIGSTOP : 0;
		if (value >> 8 == PTRACE_EVENT_STOP)
			run->stopped = true;
		if (value == (SIGTRAP | PTRACE_EVENT_EXIT << 8)) {
			/* Killed meanwhile: on to its death. */
			ptrace(PTRACE_CONT, tid, NULL, NULL);
			errno = ESRCH;
			return -1;
		}
	} while (value != status);
	return 0;
}

/* Goes on to the next entry or exit of a call. @return 0, or -1 with errno ESRCH. */
static int next_call_stop(struct tracer *tracer, struct run *run, struct arch_stop *stop)
{
	/* The filter's stop comes behind the entry stop. */
	if (run_to(run, PTRACE_SYSCALL, SIGTRAP | 0x80) < 0)
		return -1;
	return arch_stop_read(run->tid, tracer->options->use_syscall_info, ARCH_OP_NONE, stop);
}

/* Runs the call from wherever the task stands, and puts the registers back. */
static int run_call(struct tracer *tracer, struct run *run, uint64_t ip, uint64_t nr,
		    const uint64_t args[6], int64_t *result)
{
	const pid_t tid = run->tid;
	struct arch_regs saved;
	struct arch_regs regs;
	struct arch_stop stop = {0};

	if (arch_regs_get(tid, &saved) < 0)
		return -1;
	for (;;) {
		regs = saved;
		arch_regs_set_call(&regs, ip, nr, args);
		if (arch_regs_set(tid, &regs) < 0 || next_call_stop(tracer, run, &stop) < 0)
			return -1;
		if (stop.op == ARCH_OP_ENTRY)
			break;
		/* At an exec stop or a new task's first the kernel is still inside a call: this is that
		 * call's exit, where it has put the result. All starts anew. */
		arch_regs_set_result(&saved, stop.ret);
	}
	if (next_call_stop(tracer, run, &stop) < 0)
		return -1;
	*result = stop.ret;
	return arch_regs_set(tid, &saved);
}

/* Signals wait from here on. @return 0, or -1. */
static int begin(struct run *run, const struct task *task)
{
	const uint64_t all = ~0ULL;

	*run = (struct run){.tid = task->tid};
	return ptrace(PTRACE_GETSIGMASK, run->tid, sizeof(run->mask), &run->mask) < 0 ||
			       ptrace(PTRACE_SETSIGMASK, run->tid, sizeof(all), &all) < 0
		       ? -1
		       : 0;
}

/* @return `done` with errno kept, or -1. */
static int end(const struct run *run, int done)
{
	int error = errno;

	if (ptrace(PTRACE_SETSIGMASK, run->tid, sizeof(run->mask), &run->mask) < 0)
		return -1;
	/* The kernel tells once more, if the process still is stopped. */
	if (run->stopped)
		ptrace(PTRACE_INTERRUPT, run->tid, NULL, NULL);
	errno = error;
	return done;
}

int remote_syscall(struct tracer *tracer, struct task *task, uint64_t nr, const uint64_t args[6],
		   int64_t *result)
{
	struct run run;

	if (find_instruction(tracer, task) < 0 || begin(&run, task) < 0)
		return -1;
	int done = run_call(tracer, &run, task->mm->syscall_ip, nr, args, result);
	/* It stands at the exit of a call now. */
	task->in_syscall = false;
	return end(&run, done);
}

int remote_run(struct tracer *tracer, struct task *task, uint64_t ip, uint64_t first,
	       uint64_t second, struct arch_regs *regs)
{
	const pid_t tid = task->tid;
	struct arch_stop stop;
	struct arch_regs saved;
	struct run run;

	if (arch_regs_get(tid, &saved) < 0 || begin(&run, task) < 0)
		return -1;
	*regs = saved;
	arch_regs_set_call(regs, ip, first, (uint64_t[6]){0, 0, 0, 0, second, 0});
	int done = arch_regs_set(tid, regs) < 0 ||
				   run_to(&run, PTRACE_CONT, SIGTRAP | PTRACE_EVENT_SECCOMP << 8) <
					   0 ||
				   arch_regs_get(tid, regs) < 0 || arch_refuse_call(tid) < 0 ||
				   next_call_stop(tracer, &run, &stop) < 0 ||
				   arch_regs_set(tid, &saved) < 0
			   ? -1
			   : 0;
	return end(&run, done);
}

bool remote_reaches(uint64_t a, uint64_t b)
{
	return (a > b ? a - b : b - a) < REMOTE_REACH;
}

uint64_t remote_map_near(struct tracer *tracer, struct task *task, uint64_t begin, uint64_t others,
			 uint64_t size)
{
	int64_t result;

	/* Below the code: above it heap and bss grow. The kernel takes the hint where it can; what lies there may be
	 * ours, for another purpose. A program at a low address has little room. */
	for (uint64_t below = 1UL << 20, tries = 0; below < REMOTE_REACH; tries++) {
		if (begin < below + others + (1UL << 16))
			break;
		const uint64_t args[6] = {(begin - below - others) & ~(uint64_t)(PAGE - 1),
					  size,
					  PROT_READ | PROT_EXEC,
					  MAP_PRIVATE | MAP_ANONYMOUS,
					  (uint64_t)-1,
					  0};
		if (remote_syscall(tracer, task, __NR_mmap, args, &result) < 0)
			return 0;
		uint64_t at = (uint64_t)result;
		below = tries < 16 ? below + (1UL << 17) : below * 4;
		if (result < 0 && result > -4096)
			continue;
		if (remote_reaches(at, begin))
			return at;
		remote_syscall(tracer, task, __NR_munmap, (uint64_t[6]){at, size}, &result);
	}
	return 0;
}
