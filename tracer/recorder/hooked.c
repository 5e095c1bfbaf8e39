/* Function hooks, as far as the recorder is concerned: their records, and threads that were recording when a signal
 * came. */
#include "tracer/hooks/hooks.h"
#include "tracer/memory.h"
#include "tracer/recorder/internal.h"

#include <string.h>

extern const unsigned char agent_hooks_begin[];
extern const unsigned char agent_hook_entry[];
extern const unsigned char agent_hook_entry_kept[];
extern const unsigned char agent_hook_entry_working[];
extern const unsigned char agent_hook_exit[];
extern const unsigned char agent_hook_exit_kept[];
extern const unsigned char agent_hook_exit_working[];
extern const unsigned char agent_hook_reading[];
extern const unsigned char agent_hook_read[];
extern const unsigned char agent_hook_aside[];
extern const unsigned char agent_hook_committed[];
extern const unsigned char agent_hook_left[];
extern const unsigned char agent_hooks_end[];

static uint64_t address_of(const unsigned char *label)
{
	return AGENT_BASE + AGENT_HOOKS + label_distance(agent_hooks_begin, label);
}

void hooked_put_agent(unsigned char text[AGENT_TEXT_SIZE])
{
	memcpy(text + AGENT_HOOKS, agent_hooks_begin,
	       label_distance(agent_hooks_begin, agent_hooks_end));
}

void hooked_prepare(struct agent_ring *shared, uint64_t address)
{
	shared->hook_entry = address_of(agent_hook_entry);
	shared->hook_exit = address_of(agent_hook_exit);
	shared->first = address + RING_RECORDS;
}

void hooked_take(struct tracer *tracer, struct task *task, const struct agent_record *record,
		 uint64_t time)
{
	struct hook_moment at = {
		.time = time,
		.sp = record->sp,
		.return_address = record->ip,
		.result = record->result,
		.stub = record->stub,
		.exit = record->shape & SHAPE_HOOK_EXIT,
		.fd = record->fd,
		.length = record->length,
	};

	memcpy(at.args, record->args, sizeof(at.args));
	if (!task->given_up && tracer->hooks)
		hooks_recorded(tracer, task, &at);
}

bool recorder_ends_call(const struct task *task, uint64_t sp, uint64_t return_address)
{
	const struct ring *ring = space_ring_of(task);

	if (!ring)
		return false;
	uint64_t head = __atomic_load_n(&ring->shared->head, __ATOMIC_ACQUIRE);
	for (uint64_t n = ring->tail; head - n > 0 && head - n <= ring->mask + 1; n++) {
		const struct agent_record *record = ring_record(ring, n);
		if ((record->shape & SHAPE_HOOK_EXIT) && record->sp == sp &&
		    record->ip == return_address)
			return true;
		if ((record->shape & SHAPE_HOOK_ENTRY) && record->sp == sp)
			return false;
		n += record->more < RECORD_MORE_MAX ? record->more : RECORD_MORE_MAX;
	}
	return false;
}

void recorder_note_descriptor(struct tracer *tracer, struct task *task, int fd, uint64_t time)
{
	bool ambiguous;

	if (tracer->recorder && fd >= 0 && files_at(task->files, fd, time, &ambiguous) &&
	    !ambiguous)
		space_set_known(task, fd, true);
}

/* --- signals ----------------------------------------------------------------------------------- */

static bool is_within(uint64_t ip, const unsigned char *begin, const unsigned char *end)
{
	return ip >= address_of(begin) && ip < address_of(end);
}

/* Gives a thread that has left a stub its registers back. @return the stub. */
static uint64_t restore(struct tracer *tracer, struct task *task, struct user_regs_struct *r,
			const struct agent_ring *shared)
{
	bool first =
		r->rip == address_of(agent_hook_entry) || r->rip == address_of(agent_hook_exit);
	uint64_t stub = first ? r->rcx : shared->hook_back;
	bool kept = is_within(r->rip, agent_hook_entry, agent_hook_entry_kept) ||
		    is_within(r->rip, agent_hook_exit, agent_hook_exit_kept) ||
		    r->rip == address_of(agent_hook_entry_kept) ||
		    r->rip == address_of(agent_hook_exit_kept);
	bool has_flags = kept || is_within(r->rip, agent_hook_entry, agent_hook_entry_working) ||
			 is_within(r->rip, agent_hook_exit, agent_hook_exit_working);

	if (!kept)
		r->rax = shared->hook_rax;
	if (!has_flags) {
		native_restore_flags(r, shared->hook_flags);
		r->rdx = shared->hook_rdx;
	}
	uint64_t rcx;
	if (memory_read(tracer, task, r->rsp - HOOK_SAVED, &rcx, sizeof(rcx)) == sizeof(rcx))
		r->rcx = rcx;
	return stub;
}

/* In the agent's code for hooks. */
static bool leave_agent(struct tracer *tracer, struct task *task, struct arch_regs *regs,
			const siginfo_t *info)
{
	struct user_regs_struct *r = &regs->raw;
	struct ring *ring = space_ring_of(task);

	if (!ring)
		return false;
	bool fault = native_is_own_fault(task, info);
	/* What it was given cannot be read: the tracer shall look itself, and then the program. */
	if (fault && is_within(r->rip, agent_hook_reading, agent_hook_read)) {
		r->rip = address_of(agent_hook_aside);
		return true;
	}
	bool recorded = is_within(r->rip, agent_hook_committed, agent_hook_left) &&
			!hooks_is_stub_breakpoint(task, ring->shared->hook_back);
	uint64_t stub = restore(tracer, task, r, ring->shared);
	task->process->recorded.native++;
	hooks_leave_stub(tracer, task, regs, stub, true, recorded);
	if (fault)
		native_give_up(tracer, task, regs, ring);
	return fault;
}

static bool is_synchronous(const struct task *task, const siginfo_t *info)
{
	switch (info->si_signo) {
	case SIGSEGV:
	case SIGBUS:
	case SIGFPE:
	case SIGILL:
	case SIGTRAP:
		return native_is_forced(task, info);
	default:
		return false;
	}
}

bool hooked_signal(struct tracer *tracer, struct task *task, struct arch_regs *regs,
		   const siginfo_t *info, bool *swallow)
{
	struct user_regs_struct *r = &regs->raw;

	*swallow = false;
	if (is_within(r->rip, agent_hooks_begin, agent_hooks_end)) {
		*swallow = leave_agent(tracer, task, regs, info);
		return true;
	}
	if (!hooks_is_in_stub(task, r->rip))
		return false;
	/* Hit just now, or taken for a signal that was waiting. */
	if (info->si_signo == SIGTRAP && hooks_is_stub_breakpoint(task, r->rip - 1))
		return true;
	if (is_synchronous(task, info)) {
		/* There may be no stack below. What was displaced faults as it would. */
		*swallow = info->si_signo == SIGSEGV && hooks_is_at_test(task, r->rip);
		if (!*swallow)
			return true;
	}
	if (hooks_stub_has_rcx(task, r->rip)) {
		uint64_t rcx;
		if (memory_read(tracer, task, r->rsp - HOOK_SAVED, &rcx, sizeof(rcx)) ==
		    sizeof(rcx))
			r->rcx = rcx;
	}
	task->process->recorded.native++;
	hooks_leave_stub(tracer, task, regs, r->rip, false, false);
	return true;
}
