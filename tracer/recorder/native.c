/* Before a signal is delivered its thread is made to look as without a recorder: a call that has not reached the
 * kernel is taken back, one that has returned is completed. So no handler ever runs above the agent, and what a
 * handler or an unwinder sees are the program's own addresses. */
#include "base/proc.h"
#include "tracer/hooks/hooks.h"
#include "tracer/loop.h"
#include "tracer/memory.h"
#include "tracer/recorder/internal.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#define ERESTARTSYS_CODE           512
#define ERESTART_RESTARTBLOCK_CODE 516

/* The flags that the agent saves as lahf and seto do. */
#define LAHF_FLAGS 0xd5UL
#define OF         0x800UL

static bool is_in_agent(uint64_t ip)
{
	return ip >= AGENT_BASE && ip < AGENT_BASE + AGENT_TEXT_SIZE;
}

static bool is_restart(int64_t result)
{
	return result <= -ERESTARTSYS_CODE && result >= -ERESTART_RESTARTBLOCK_CODE;
}

void native_restore_flags(struct user_regs_struct *r, uint64_t saved)
{
	uint64_t flags = r->eflags & ~(LAHF_FLAGS | OF);

	flags |= saved >> 8 & LAHF_FLAGS;
	if (saved & 1)
		flags |= OF;
	r->eflags = flags;
}

static void restore_flags(struct user_regs_struct *r, const struct agent_ring *ring)
{
	native_restore_flags(r, ring->flags);
}

static void restore_registers(struct user_regs_struct *r, const struct agent_ring *ring)
{
	r->rdx = ring->rdx;
	r->rdi = ring->rdi;
	r->rsi = ring->rsi;
}

/* Where a thread stands that has just made the system call of a stub or of the agent: behind the program's own. There
 * a breakpoint may lie, which nobody may hit but who comes from elsewhere: who is not about to enter a handler
 * goes on in the stub. */
static uint64_t behind_call(const struct task *task, const struct patch *patch, uint64_t ret,
			    int sig)
{
	if (!patch)
		return ret;
	return proc_catches(task->tid, sig) ? patch->ip : ret;
}

/* Not in the kernel yet: as if it had not come here. With `stops` the call is made from where it stops. */
static void take_back(struct task *task, struct user_regs_struct *r, struct ring *ring, bool stops)
{
	const struct agent_ring *shared = ring->shared;
	uint64_t at = r->rip - AGENT_BASE;
	/* At first the registers are still the program's. */
	bool untouched = at < AGENT_SYSCALL ||
			 (at >= agent_offset(agent_entry) && at < agent_offset(agent_saving));
	uint64_t ret = r->rcx;

	if (!untouched) {
		ret = shared->ret;
		r->rax = shared->nr;
		if (at >= agent_offset(agent_working) || at == AGENT_SYSCALL) {
			restore_flags(r, shared);
			restore_registers(r, shared);
		}
	}
	ring_record(ring, shared->head)->state = 0;
	if (ring->begun) {
		/* It was seen already, and will be seen again. */
		task_top(task)->interrupted = true;
		task_top(task)->needs_exit = true;
		ring->begun = false;
	}
	const struct patch *patch = stops ? NULL : patch_of_stub(task->mm->recorder, ret);
	r->rip = (patch ? patch->ip : ret) - ARCH_SYSCALL_LEN;
}

static void complete_record(struct ring *ring, int64_t result, uint64_t end)
{
	struct agent_ring *shared = ring->shared;
	struct agent_record *record = ring_record(ring, shared->head);
	uint64_t next = shared->next;

	record->result = result;
	record->end = end;
	record->state = RECORD_DONE;
	*ring_record(ring, next) = (struct agent_record){0};
	__atomic_store_n(&shared->head, next, __ATOMIC_RELEASE);
}

/* The registers are the program's, as the kernel leaves them behind the call. */
static void go_behind(struct task *task, struct user_regs_struct *r, struct agent_ring *shared,
		      int sig)
{
	restore_flags(r, shared);
	restore_registers(r, shared);
	const struct patch *patch = patch_of_stub(task->mm->recorder, shared->ret);
	r->rip = behind_call(task, patch, shared->ret, sig);
	r->rcx = patch ? patch->ip : shared->ret;
	r->r11 = r->eflags;
}

/* Back from the kernel, with a result: what the agent has not done yet is done here. */
static void complete(struct task *task, struct user_regs_struct *r, struct ring *ring, int sig)
{
	struct agent_ring *shared = ring->shared;
	int64_t result = r->rip == AGENT_BASE + agent_offset(agent_called)
				 ? (int64_t)r->rax
				 : (int64_t)shared->result;

	/* Committed is what the head has gone over. */
	if (shared->head != shared->next) {
		const struct agent_record *record = ring_record(ring, shared->head);
		if ((record->shape & SHAPE_OPENS) && result >= 0 && result < AGENT_FDS_COUNT)
			space_set_known(task, (int)result, true);
		complete_record(ring, result, drain_ticks());
	}
	r->rax = (uint64_t)result;
	go_behind(task, r, shared, sig);
}

/* The signal has interrupted it: from here on it is a call that stops, in the program's own place. */
static void hand_over(struct tracer *tracer, struct task *task, struct user_regs_struct *r,
		      struct ring *ring, int sig)
{
	struct agent_ring *shared = ring->shared;
	struct agent_record *record = ring_record(ring, shared->head);

	/* The frame is made of it, unless it was before. */
	drain_ring(tracer, ring);
	struct frame *frame = ring->begun ? task_top(task) : NULL;
	record->state = 0;
	ring->begun = false;
	if (frame) {
		frame->interrupted = true;
		frame->in_handler = false;
		frame->needs_exit = true;
	}
	/* Whether it is made again the kernel decides by what it finds there, two bytes before. */
	go_behind(task, r, shared, sig);
}

static void leave_agent(struct tracer *tracer, struct task *task, struct user_regs_struct *r,
			struct ring *ring, int sig, bool own_fault)
{
	uint64_t at = r->rip - AGENT_BASE;
	int64_t result = (int64_t)r->rax;

	if (at < agent_offset(agent_called) || at >= agent_offset(agent_entry))
		take_back(task, r, ring, own_fault);
	else if (at == agent_offset(agent_called) && (int64_t)r->orig_rax >= 0 &&
		 is_restart(result))
		hand_over(tracer, task, r, ring, sig);
	else
		complete(task, r, ring, sig);
	task->process->recorded.native++;
}

/* In a stub all registers but rcx and r11 are the program's. */
static void leave_stub(struct task *task, struct user_regs_struct *r, const struct patch *patch,
		       int sig)
{
	uint64_t at = r->rip - patch->address;
	const struct window *window = &patch->window;

	/* Of other code that lay there before: it goes on as it is. */
	if (at >= STUB_SIZE)
		return;
	task->process->recorded.native++;
	if (window->form == WINDOW_BEFORE) {
		/* The displaced instruction is done, or not. */
		r->rip = at < patch->test ? window->begin : patch->ip - ARCH_SYSCALL_LEN;
		return;
	}
	if (at < patch->after) {
		r->rip = window->begin;
		return;
	}
	if (at == patch->after) {
		r->rip = behind_call(task, patch, r->rip, sig);
		return;
	}
	if (at == (uint64_t)patch->after + window->insn.len)
		r->rip = patch->ip + window->insn.len;
}

/* Behind a system call of the program's own, where a breakpoint lies by now. */
static void leave_window(struct tracer *tracer, struct task *task, struct user_regs_struct *r,
			 int sig)
{
	struct patch *patch = map_get(&task->mm->recorder->patches, r->rip);
	int64_t result = (int64_t)r->rax;
	bool restarts = (int64_t)r->orig_rax >= 0 && is_restart(result);

	if (patch && patch->state == PATCH_DONE && patch->window.form == WINDOW_AFTER &&
	    !restarts && patch_is_there(tracer, task, patch))
		r->rip = behind_call(task, patch, patch->address + patch->after, sig);
}

/* A breakpoint of a place that is, or was, being patched; or the one that stays in a WINDOW_AFTER. The hit may have
 * waited while the jump came or went: only memory tells. @return whether it is one. */
static bool leave_trap(struct tracer *tracer, struct task *task, struct user_regs_struct *r)
{
	const uint64_t address = r->rip - ARCH_BREAKPOINT_LEN;
	struct map_slot *slot;
	unsigned char byte;
	size_t at = 0;

	if (memory_read(tracer, task, address, &byte, 1) != 1)
		return false;
	while ((slot = map_next(&task->mm->recorder->patches, &at))) {
		const struct patch *patch = slot->value;
		bool behind = patch->window.form == WINDOW_AFTER && patch->ip == address;
		if (!behind && patch->window.begin != address)
			continue;
		if (byte != ARCH_BREAKPOINT) {
			r->rip = address;
			return true;
		}
		/* Else it is somebody else's. */
		if (behind && patch_has_jump(tracer, task, patch)) {
			r->rip = patch->address + patch->after;
			return true;
		}
	}
	return false;
}

/* A signal that is blocked comes only if it is forced. Its details are those of one that was pending, if there was
 * one: the kernel keeps one of a kind. */
bool native_is_forced(const struct task *task, const siginfo_t *info)
{
	return info->si_code > 0 || forced_is_blocked(task, info->si_signo);
}

bool native_is_own_fault(const struct task *task, const siginfo_t *info)
{
	return (info->si_signo == SIGSEGV || info->si_signo == SIGBUS) &&
	       native_is_forced(task, info);
}

static bool is_reading(uint64_t ip)
{
	return ip >= AGENT_BASE + agent_offset(agent_reading) &&
	       ip < AGENT_BASE + agent_offset(agent_read);
}

void native_give_up(struct tracer *tracer, struct task *task, struct arch_regs *regs,
		    struct ring *ring)
{
	drain_ring(tracer, ring);
	space_free_ring(task->mm->recorder, ring);
	arch_regs_set_gs(regs, 0);
	space_switch_off(task, OFF_FAULT);
}

/* Behind the agent's text; used for one call only. */
static uint64_t put_data(struct tracer *tracer, struct task *task, const void *bytes, size_t len)
{
	const uint64_t at = AGENT_BASE + AGENT_TEXT_SIZE - FORCED_ACTION_SIZE;

	(void)tracer;
	return memory_write(task, at, bytes, len) < 0 ? 0 : at;
}

bool recorder_signal(struct tracer *tracer, struct task *task, const siginfo_t *info)
{
	struct recorder_space *space = task->mm->recorder;
	struct arch_regs regs;
	bool swallow = false;

	if (!tracer->recorder || (!(space && space->agent) && !task->mm->hooks) ||
	    arch_regs_get(task->tid, &regs) < 0)
		return false;
	struct user_regs_struct *r = &regs.raw;
	uint64_t ip = r->rip;
	if (hooked_signal(tracer, task, &regs, info, &swallow)) {
		if (r->rip != ip)
			arch_regs_set(task->tid, &regs);
		if (swallow)
			forced_restore(tracer, task, info, hooks_put_data);
		return swallow;
	}
	if (!space || !space->agent)
		return false;
	if (is_in_agent(ip)) {
		struct ring *ring = space_ring_of(task);
		if (!ring)
			return false;
		swallow = native_is_own_fault(task, info);
		leave_agent(tracer, task, r, ring, info->si_signo, swallow);
		if (swallow && !is_reading(ip))
			native_give_up(tracer, task, &regs, ring);
	} else {
		const struct patch *patch = patch_of_stub(space, ip);
		if (patch)
			leave_stub(task, r, patch, info->si_signo);
		else if (info->si_signo == SIGTRAP &&
			 (info->si_code == SI_KERNEL || forced_is_blocked(task, SIGTRAP)))
			swallow = leave_trap(tracer, task, r);
		else
			leave_window(tracer, task, r, info->si_signo);
	}
	if (r->rip != ip)
		arch_regs_set(task->tid, &regs);
	if (swallow)
		forced_restore(tracer, task, info, put_data);
	return swallow;
}

void recorder_sigreturn(struct tracer *tracer, struct task *task, uint64_t sp)
{
	const struct recorder_space *space = task->mm->recorder;
	unsigned char bytes[ARCH_SIGFRAME_SIZE];
	struct arch_sigframe frame;

	if (!space || !space->agent ||
	    memory_read(tracer, task, sp, bytes, sizeof(bytes)) != sizeof(bytes))
		return;
	arch_sigframe_parse(bytes, &frame);
	struct patch *patch = map_get(&space->patches, frame.ip);
	if (!patch || patch->state != PATCH_DONE || patch->window.form != WINDOW_AFTER ||
	    !patch_is_there(tracer, task, patch))
		return;
	/* It goes on behind the breakpoint that lies there. */
	uint64_t ip = patch->address + patch->after;
	memory_write(task, sp + ARCH_SIGFRAME_IP, &ip, sizeof(ip));
}
