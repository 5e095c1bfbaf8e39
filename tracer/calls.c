#include "seccomp/filter.h"
#include "tracer/arch/arch.h"
#include "tracer/capture.h"
#include "tracer/decode.h"
#include "tracer/effects.h"
#include "tracer/loop.h"
#include "tracer/memory.h"
#include "tracer/sites.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include <sys/ptrace.h>

/* The kernel's own codes for calls that a signal interrupted (include/linux/errno.h). */
#define ERESTARTSYS_CODE           512
#define ERESTART_RESTARTBLOCK_CODE 516

/* A child made with CLONE_UNTRACED would run under the filter without a tracer: every traced call of
 * its would fail. The flag is taken away for the time of the call. */
static void forbid_untraced(struct tracer *tracer, struct task *task, struct frame *frame)
{
	struct call *call = &frame->call;
	uint64_t flags = effects_clone_flags(call);

	if (!(flags & CLONE_UNTRACED))
		return;
	flags &= ~(uint64_t)CLONE_UNTRACED;
	int done = call->row->nr == __NR_clone3
			   ? memory_write(task, call->args[0], &flags, sizeof(flags))
			   : arch_set_arg(task->tid, 0, flags);
	if (done < 0 && errno != ESRCH)
		task->process->lost[LOST_UNTRACED]++;
	frame->untraced_cleared = done == 0;
	(void)tracer;
}

/* Gives clone3's caller its flags back. */
static void restore_untraced(struct task *task, const struct frame *frame)
{
	const struct call *call = &frame->call;
	uint64_t flags = effects_clone_flags(call);

	if (frame->untraced_cleared && call->row->nr == __NR_clone3)
		memory_write(task, call->args[0], &flags, sizeof(flags));
}

static void enter(struct tracer *tracer, struct task *task, struct arch_stop *stop, uint64_t now)
{
	if (task->before_exec || tracer->pass_through || task->given_up)
		return;
	if (stop->foreign) {
		task->process->lost[LOST_COMPAT]++;
		return;
	}
	const struct syscall_row *row = syscall_row(stop->nr);
	if (row && row->effect == EFFECT_SIGRETURN) {
		hooks_stale(tracer, task, stop->sp, now);
		if (task->handlers)
			task->handlers--;
		forced_sigreturn(tracer, task, stop->sp);
		recorder_sigreturn(tracer, task, stop->sp);
		hooks_sigreturn(tracer, task, stop->sp);
		signals_handler_returns(tracer, task, stop->sp, now);
		return;
	}
	hooks_stale(tracer, task, stop->sp, now);
	if (row && recorder_prepares(tracer, task, row, stop))
		return;
	recorder_call_enters(tracer, task, &stop->ip);
	bool restarted = signals_settle(tracer, task, stop->nr, stop->ip, stop->sp, now);
	if (row)
		site_hit(&task->mm->sites, stop->ip);
	if (restarted) {
		task->want_exit = true;
		return;
	}
	if (!row || row->nr == __NR_restart_syscall)
		return;
	struct frame *frame = task_push(task);
	if (!frame) {
		tracer_end_recording(tracer, "out of memory");
		return;
	}
	frame->handlers = task->handlers;
	capture_entry(tracer, task, frame, row, stop, now);
	decode_begin(tracer, task, frame);
	if (row->effect == EFFECT_CLONE)
		forbid_untraced(tracer, task, frame);
	frame->needs_exit |= recorder_call_begins(tracer, task, frame);
	if (!frame->needs_exit) {
		task_pop(task);
		return;
	}
	task->want_exit = true;
	/* What was done until here is ours; the program's time begins now. */
	frame->call.start = clock_now(&tracer->clock);
}

static void leave(struct tracer *tracer, struct task *task, int64_t ret, uint64_t now)
{
	struct frame *frame = task_top(task);

	if (!task->want_exit || !frame)
		return;
	task->want_exit = false;
	if (ret <= -ERESTARTSYS_CODE && ret >= -ERESTART_RESTARTBLOCK_CODE) {
		frame->interrupted = true;
		frame->in_handler = false;
		return;
	}
	capture_exit(tracer, task, frame, ret, now);
	restore_untraced(task, frame);
	decode_end(tracer, task, frame);
	recorder_call_ended(tracer, task, &frame->call);
	task_pop(task);
}

/* @return whether a filter of the program's own has asked for a tracer, which it would not find without us: the
 * call fails with ENOSYS then. */
static bool is_for_nobody(const struct tracer *tracer, const struct task *task,
			  const struct arch_stop *stop)
{
	unsigned long data = stop->filter_data;

	if (data == ARCH_NO_FILTER_DATA && ptrace(PTRACE_GETEVENTMSG, task->tid, NULL, &data) < 0)
		return false;
	return !tracer->filter || data != FILTER_TRACE_DATA;
}

void calls_stop(struct tracer *tracer, struct task *task, const struct status *status,
		enum stop_kind kind)
{
	struct arch_stop stop;
	enum arch_op expect = ARCH_OP_ENTRY;

	if (kind == STOP_SYSCALL) {
		expect = tracer->filter || task->in_syscall ? ARCH_OP_EXIT : ARCH_OP_ENTRY;
		/* A new task's first may be the end of the clone that made it. */
		if (!tracer->filter && task->first_syscall)
			expect = ARCH_OP_NONE;
	}
	task->first_syscall = false;
	if (arch_stop_read(task->tid, tracer->options->use_syscall_info, expect, &stop) == 0) {
		bool filtered = kind == STOP_SECCOMP;
		if (filtered && is_for_nobody(tracer, task, &stop))
			arch_refuse_call(task->tid);
		if (stop.op == ARCH_OP_ENTRY) {
			/* Without a filter of ours the entry has stopped before. */
			if (!filtered || tracer->filter)
				enter(tracer, task, &stop, status->time);
			task->in_syscall = true;
		} else if (stop.op == ARCH_OP_EXIT) {
			task->in_syscall = false;
			leave(tracer, task, stop.ret, status->time);
		}
	}
	loop_restart(tracer, task, 0);
}
