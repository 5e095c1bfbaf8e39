/* The kernel drops a signal that a process ignores before anybody is woken, but not when the process is
 * traced: its tracer is to see it. Then calls that are never restarted return EINTR, which they would
 * not have done without us. Those that wait without a time-out are made again here; of the others it cannot
 * be known how long they still had to wait. */
#include "base/proc.h"
#include "tracer/arch/arch.h"
#include "tracer/loop.h"

#include <errno.h>
#include <signal.h>

/* signal(7) lists what is never restarted. */
static bool waits_forever(uint64_t nr, const struct arch_regs *regs)
{
	switch (nr) {
	case __NR_epoll_wait:
	case __NR_epoll_pwait:
		return (int)arch_regs_arg(regs, 3) < 0;
	case __NR_epoll_pwait2:
	case __NR_semtimedop:
		return arch_regs_arg(regs, 3) == 0;
	case __NR_rt_sigtimedwait:
		return arch_regs_arg(regs, 2) == 0;
	case __NR_io_getevents:
	case __NR_io_pgetevents:
		return arch_regs_arg(regs, 4) == 0;
	case __NR_semop:
		return true;
	default:
		return false;
	}
}

static bool is_ignored(pid_t tid, int sig)
{
	static const char *const keys[] = {"SigIgn:", "SigCgt:"};
	uint64_t sets[2] = {0, ~0ULL};
	const uint64_t bit = 1ULL << (sig - 1);

	proc_status(tid, 16, keys, sets, 2);
	if (sets[0] & bit)
		return true;
	bool by_default = sig == SIGCHLD || sig == SIGURG || sig == SIGWINCH || sig == SIGCONT;
	return by_default && !(sets[1] & bit);
}

void ignored_before_delivery(struct tracer *tracer, struct task *task, int sig)
{
	struct arch_regs regs;
	int64_t result;
	uint64_t nr;

	(void)tracer;
	if (arch_regs_get(task->tid, &regs) < 0 || !arch_regs_ended_call(&regs, &nr, &result))
		return;
	uint64_t ip = arch_regs_ip(&regs);
	bool pending = task->again && task->again == ip && result == (int64_t)nr;
	task->again = 0;
	if (pending) {
		/* The call has not been made again yet. A handler that runs first interrupts it for good. */
		if (is_ignored(task->tid, sig)) {
			task->again = ip;
			return;
		}
		arch_regs_call_ended(&regs, -EINTR);
		arch_regs_set(task->tid, &regs);
		return;
	}
	if (result != -EINTR || !waits_forever(nr, &regs) || !is_ignored(task->tid, sig))
		return;
	arch_regs_call_again(&regs);
	if (arch_regs_set(task->tid, &regs) == 0)
		task->again = arch_regs_ip(&regs);
}
