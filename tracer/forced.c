#include "tracer/forced.h"

#include "base/proc.h"
#include "tracer/arch/arch.h"
#include "tracer/loop.h"
#include "tracer/memory.h"
#include "tracer/remote.h"

#include <string.h>

#include <sys/ptrace.h>

static const int signals[FORCED_SIGNALS] = {SIGTRAP, SIGSEGV, SIGBUS};

#define ALL      (BIT(SIGTRAP) | BIT(SIGSEGV) | BIT(SIGBUS))
#define BIT(sig) (1ULL << ((sig)-1))

/* @return NULL for other signals. */
static struct forced_action *action_of(struct process *process, int sig)
{
	for (int i = 0; i < FORCED_SIGNALS; i++) {
		if (signals[i] == sig)
			return &process->forced[i];
	}
	return NULL;
}

static uint64_t handler_of(const struct forced_action *action)
{
	uint64_t handler;

	memcpy(&handler, action->bytes, sizeof(handler));
	return handler;
}

void forced_begin(struct task *task)
{
	static const char *const keys[] = {"SigBlk:", "SigIgn:"};
	const uint64_t ignore = (uintptr_t)SIG_IGN;
	uint64_t sets[2] = {0};

	proc_status(task->tid, 16, keys, sets, 2);
	task->forced_blocked = sets[0] & ALL;
	memset(task->process->forced, 0, sizeof(task->process->forced));
	for (int i = 0; i < FORCED_SIGNALS; i++) {
		struct forced_action *action = &task->process->forced[i];
		action->set = sets[1] & BIT(signals[i]);
		if (action->set)
			memcpy(action->bytes, &ignore, sizeof(ignore));
	}
}

void forced_sigmask(struct task *task, const struct call *call)
{
	uint64_t set;

	if (!call_has(call, 1, sizeof(set)))
		return;
	memcpy(&set, call_bytes(call, 1), sizeof(set));
	set &= ALL;
	switch ((int)call->args[0]) {
	case SIG_BLOCK:
		task->forced_blocked |= set;
		break;
	case SIG_UNBLOCK:
		task->forced_blocked &= ~set;
		break;
	case SIG_SETMASK:
		task->forced_blocked = set;
		break;
	default:
		break;
	}
}

/* The filter lets through what is about these signals; without one all come here. */
void forced_sigaction(struct process *process, const struct call *call)
{
	struct forced_action *action = action_of(process, (int)call->args[0]);

	if (!action || !call_has(call, 1, FORCED_ACTION_SIZE))
		return;
	memcpy(action->bytes, call_bytes(call, 1), FORCED_ACTION_SIZE);
	action->set = handler_of(action) != (uintptr_t)SIG_DFL;
}

void forced_sigreturn(struct tracer *tracer, struct task *task, uint64_t sp)
{
	uint64_t mask;

	if (memory_read(tracer, task, sp + ARCH_SIGFRAME_MASK, &mask, sizeof(mask)) == sizeof(mask))
		task->forced_blocked = mask & ALL;
}

bool forced_is_blocked(const struct task *task, int sig)
{
	return task->forced_blocked & BIT(sig);
}

static bool has_handler(const struct forced_action *action)
{
	return action->set && handler_of(action) != (uintptr_t)SIG_IGN;
}

void forced_delivered(struct task *task, int sig)
{
	struct forced_action *action = action_of(task->process, sig);
	uint64_t words[FORCED_ACTION_SIZE / sizeof(uint64_t)];

	if (!action || !has_handler(action))
		return;
	/* The handler, its flags, what restores, its mask. */
	memcpy(words, action->bytes, sizeof(words));
	task->forced_blocked |= words[3] & ALL;
	if (!(words[1] & SA_NODEFER))
		task->forced_blocked |= BIT(sig);
	if (words[1] & (unsigned)SA_RESETHAND)
		action->set = false;
}

/* @return whether the kernel has taken the program's handler away: it does so where the signal was blocked, as it is
 * in that handler itself. */
static bool has_lost_handler(const struct task *task, const struct forced_action *action, int sig)
{
	return has_handler(action) && !proc_catches(task->tid, sig);
}

void forced_restore(struct tracer *tracer, struct task *task, const siginfo_t *info,
		    uint64_t (*scratch)(struct tracer *tracer, struct task *task, const void *bytes,
					size_t len))
{
	const int sig = info->si_signo;
	const struct forced_action *action = action_of(task->process, sig);
	bool lost = has_lost_handler(task, action, sig);
	uint64_t mask;
	int64_t result;

	if (lost || (action->set && !has_handler(action))) {
		uint64_t at = scratch(tracer, task, action->bytes, FORCED_ACTION_SIZE);
		const uint64_t args[6] = {(uint64_t)sig, at, 0, 8};
		if (at)
			remote_syscall(tracer, task, __NR_rt_sigaction, args, &result);
	}
	if ((lost || forced_is_blocked(task, sig)) &&
	    ptrace(PTRACE_GETSIGMASK, task->tid, sizeof(mask), &mask) == 0) {
		mask |= BIT(sig);
		ptrace(PTRACE_SETSIGMASK, task->tid, sizeof(mask), &mask);
	}
	/* Its sender can only be the process itself now. */
	if (info->si_code <= 0 && forced_is_blocked(task, sig)) {
		const uint64_t args[6] = {(uint64_t)task->process->pid, (uint64_t)task->tid,
					  (uint64_t)sig};
		remote_syscall(tracer, task, __NR_tgkill, args, &result);
	}
}
