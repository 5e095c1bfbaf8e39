/* Signals are the program's: they are passed on as they come. What is followed is which calls they
 * interrupt, and whether a handler that runs meanwhile returns. */
#include "base/proc.h"
#include "tracer/arch/arch.h"
#include "tracer/decode.h"
#include "tracer/loop.h"
#include "tracer/memory.h"

#include <errno.h>
#include <signal.h>

#include <sys/ptrace.h>

/* A handler's calls are made from below its first stack pointer, within a stack's size. */
#define STACK_REACH (8UL << 20)

/* The step after the delivery has ended before the handler's first instruction: its frame is on the
 * stack and says whether the interrupted call will be restarted. */
static void handler_entered(struct tracer *tracer, struct task *task, struct frame *frame)
{
	unsigned char bytes[ARCH_SIGFRAME_SIZE];
	struct arch_sigframe saved;
	struct arch_regs regs;

	if (arch_regs_get(task->tid, &regs) < 0)
		return;
	uint64_t sp = arch_regs_sp(&regs);
	/* The return address of the handler lies before what sigreturn will find at its stack pointer. */
	if (memory_read(tracer, task, sp + 8, bytes, sizeof(bytes)) != sizeof(bytes))
		return;
	arch_sigframe_parse(bytes, &saved);
	/* Otherwise no handler was entered, and the step was one of the program's own instructions. */
	if (saved.ip != frame->call.ip && saved.ip + ARCH_SYSCALL_LEN != frame->call.ip)
		return;
	frame->in_handler = true;
	frame->handler_sp = sp;
	frame->will_restart = saved.ip + ARCH_SYSCALL_LEN == frame->call.ip;
}

static bool observed(struct tracer *tracer, struct task *task, const siginfo_t *info)
{
	struct observer *o;

	STAILQ_FOREACH (o, &tracer->observers, link) {
		if (o->before_signal && o->before_signal(o, tracer, task, info))
			return true;
	}
	return false;
}

/* @return whether it is one of those that terminals, launchers and batch systems end programs with. */
static bool asks_for_end(int sig)
{
	return sig == SIGHUP || sig == SIGINT || sig == SIGQUIT || sig == SIGTERM;
}

void signals_stop(struct tracer *tracer, struct task *task, const struct status *status)
{
	int sig = status->value & 0xff;
	struct frame *frame = task_top(task);
	siginfo_t info;

	if (task->stepping && sig == SIGTRAP) {
		task->stepping = false;
		if (frame && frame->interrupted && !frame->in_handler)
			handler_entered(tracer, task, frame);
		loop_restart(tracer, task, 0);
		return;
	}
	task->stepping = false;
	if (ptrace(PTRACE_GETSIGINFO, task->tid, NULL, &info) < 0) {
		/* Not a delivery (a group-stop without SEIZE), or it was killed meanwhile. */
		loop_restart(tracer, task, errno == ESRCH ? 0 : sig);
		return;
	}
	if (recorder_signal(tracer, task, &info) || observed(tracer, task, &info)) {
		loop_restart(tracer, task, 0);
		return;
	}
	ignored_before_delivery(tracer, task, sig);
	forced_delivered(task, sig);
	if (asks_for_end(sig))
		task->process->told_to_end = status->time;
	if (tracer->main_signal && task->process->pid == tracer->main_pid)
		tracer->main_signal(tracer, sig, &info, tracer->parent_data);
	frame = task_top(task);
	/* Where it cannot be read: the step that follows is harmless where there is no handler. */
	bool caught = (frame || task->mm->hooks) && proc_catches(task->tid, sig);
	if (caught)
		hooks_handler_enters(task, &info);
	caught = caught && frame;
	task->stepping = caught && frame->interrupted && !frame->in_handler;
	task->handlers += caught;
	loop_restart(tracer, task, sig);
}

void signals_group_stop(struct tracer *tracer, struct task *task, int sig)
{
	(void)sig;
	/* It stays stopped, and SIGCONT is still noticed. */
	task->state = TASK_LISTENING;
	ptrace(PTRACE_LISTEN, task->tid, NULL, NULL);
	if (tracer->main_stopped && task->tid == tracer->main_pid)
		tracer->main_stopped(tracer, tracer->parent_data);
}

/* @return whether a call at `sp` may come from the handler that interrupted the frame. */
static bool is_below_handler(const struct frame *frame, uint64_t sp)
{
	return sp < frame->handler_sp && frame->handler_sp - sp < STACK_REACH &&
	       sp != frame->call.sp;
}

bool signals_settle(struct tracer *tracer, struct task *task, uint64_t nr, uint64_t ip, uint64_t sp,
		    uint64_t now)
{
	struct frame *frame;

	while ((frame = task_top(task)) && frame->interrupted) {
		bool same_place = frame->call.ip == ip && frame->call.sp == sp;
		bool same_call = nr == (uint64_t)frame->call.row->nr || nr == __NR_restart_syscall;
		if (!frame->in_handler && same_place && same_call) {
			frame->interrupted = false;
			return true;
		}
		if (frame->in_handler && is_below_handler(frame, sp))
			return false;
		/* It went on elsewhere: a handler jumped out of the call. */
		decode_cut(tracer, task, task->nframes - 1, now);
	}
	return false;
}

void signals_handler_returns(struct tracer *tracer, struct task *task, uint64_t sp, uint64_t now)
{
	struct frame *frame = task_top(task);

	if (!frame || !frame->interrupted || !frame->in_handler || sp != frame->handler_sp + 8)
		return;
	frame->in_handler = false;
	if (frame->will_restart)
		return;
	frame->interrupted = false;
	frame->call.state = CALL_DONE;
	frame->call.ret = -EINTR;
	frame->call.end = now;
	decode_end(tracer, task, frame);
	task_pop(task);
}
