/* Threads that a signal finds where something has been displaced: in a stub, or at a copy. They go on from where they would
 * be without us, and a handler sees the program's own addresses. */
#include "tracer/hooks/internal.h"
#include "tracer/memory.h"

/* @return where in its stub the address lies, HOOK_STUB_SIZE: in none. */
static size_t offset_in_stub(const struct task *task, uint64_t address)
{
	const struct hook_space *space = task->mm->hooks;
	size_t offset;

	if (!space || !hook_point_of_stub(space, address, &offset))
		return HOOK_STUB_SIZE;
	return offset;
}

bool hooks_is_in_stub(const struct task *task, uint64_t ip)
{
	return offset_in_stub(task, ip) < HOOK_STUB_SIZE;
}

bool hooks_is_at_test(const struct task *task, uint64_t ip)
{
	return offset_in_stub(task, ip) == HOOK_STUB_TEST;
}

bool hooks_is_stub_breakpoint(const struct task *task, uint64_t address)
{
	return offset_in_stub(task, address) == HOOK_STUB_BREAKPOINT;
}

bool hooks_stub_has_rcx(const struct task *task, uint64_t ip)
{
	size_t offset = offset_in_stub(task, ip);

	return offset > HOOK_STUB_TEST && offset < HOOK_STUB_END;
}

/* Does instructions `n` to `end` of the jump, the first of which stands at `at` of the process. @return how many. */
static unsigned do_insns(struct tracer *tracer, struct task *task, struct arch_regs *regs,
			 const struct hook_jump *jump, unsigned n, unsigned end, uint64_t at)
{
	struct hook_access access = {tracer, task};

	for (; n < end; n++) {
		if (arch_emulate(regs, &jump->insns[n], at, hook_access_read, hook_access_write,
				 &access) < 0)
			break;
		at += jump->insns[n].len;
	}
	return n;
}

/* @return which instruction stands at `offset` of their copies that begin at `first`. */
static unsigned insn_at(const struct hook_jump *jump, size_t first, size_t offset)
{
	unsigned n = 0;

	while (n < jump->ninsns && first + hook_jump_length(jump, n) < offset)
		n++;
	return n;
}

/* What was displaced, from instruction `n` on: in the program's own place, as far as that can be done from here. */
static void do_end(struct tracer *tracer, struct task *task, struct arch_regs *regs,
		   const struct hook_point *point, uint64_t stub, unsigned n)
{
	const struct hook_jump *jump = point->place->jump;
	uint64_t begin = hook_jump_address(point);

	unsigned done = do_insns(tracer, task, regs, jump, n, jump->ninsns,
				 begin + hook_jump_length(jump, n));
	if (done < jump->ninsns)
		arch_regs_set_ip(regs, stub + HOOK_STUB_END +
					       (jump->exit ? 0 : hook_jump_length(jump, done)));
	else if (done == n)
		arch_regs_set_ip(regs, begin + hook_jump_length(jump, n));
}

/* What leads to the `ret`. @return whether the thread has come there. */
static bool do_head(struct tracer *tracer, struct task *task, struct arch_regs *regs,
		    const struct hook_point *point, uint64_t stub, size_t offset)
{
	const struct hook_jump *jump = point->place->jump;
	uint64_t begin = hook_jump_address(point);
	size_t first = HOOK_STUB_TEST - hook_jump_head(jump);
	unsigned last = jump->ninsns - 1U;
	unsigned n = insn_at(jump, first, offset);

	if (n == 0) {
		arch_regs_set_ip(regs, begin);
		return false;
	}
	unsigned done =
		do_insns(tracer, task, regs, jump, n, last, begin + hook_jump_length(jump, n));
	if (done < last)
		arch_regs_set_ip(regs, stub + first + hook_jump_length(jump, done));
	return done == last;
}

bool hooks_leave_stub(struct tracer *tracer, struct task *task, struct arch_regs *regs,
		      uint64_t stub, bool left, bool recorded)
{
	struct hook_space *space = task->mm->hooks;
	struct hook_moment at;
	size_t offset = 0;
	const struct hook_point *point = space ? hook_point_of_stub(space, stub, &offset) : NULL;

	if (!point)
		return false;
	const struct hook_jump *jump = point->place->jump;
	stub -= offset;
	if (!left && offset >= HOOK_STUB_END) {
		do_end(tracer, task, regs, point, stub,
		       jump->exit ? jump->ninsns - 1U : insn_at(jump, HOOK_STUB_END, offset));
		return true;
	}
	if (!left && offset < HOOK_STUB_TEST && !do_head(tracer, task, regs, point, stub, offset))
		return true;
	if (!recorded && hook_moment_now(tracer, task, regs, &at))
		hook_point_reached(tracer, task, point, &at);
	do_end(tracer, task, regs, point, stub, jump->exit ? jump->ninsns - 1U : 0);
	return true;
}

/* --- what handlers see ------------------------------------------------------------------------- */

/* What an instruction has done itself. It is not done again without a handler: there the process ends. */
static bool is_fault(const siginfo_t *info)
{
	switch (info->si_signo) {
	case SIGSEGV:
	case SIGBUS:
	case SIGFPE:
	case SIGILL:
		return info->si_code > 0;
	default:
		return false;
	}
}

/* @return the address of the instruction whose copy stands at `ip` of a stub; 0: none that may be shown. Amid a jump
 * only what has faulted: who has come there by a handler that does not return would execute half of it. */
static uint64_t shown_in_stub(const struct hook_space *space, uint64_t ip, bool fault)
{
	size_t offset;
	const struct hook_point *point = hook_point_of_stub(space, ip, &offset);

	if (!point || !point->stub || point->lifted)
		return 0;
	const struct hook_jump *jump = point->place->jump;
	size_t first = HOOK_STUB_END;
	if (jump->exit)
		first = HOOK_STUB_TEST - hook_jump_head(jump);
	unsigned n = jump->exit && offset == HOOK_STUB_END ? jump->ninsns - 1U
							   : insn_at(jump, first, offset);
	bool begins = offset == first + hook_jump_length(jump, n) ||
		      (jump->exit && offset == HOOK_STUB_END);
	if (!begins || n == jump->ninsns || (!fault && (n > 0 || jump->exit)))
		return 0;
	return hook_jump_address(point) + hook_jump_length(jump, n);
}

/* @return the address of the entry whose copy stands at `ip`, or of what follows it; 0: neither. */
static uint64_t shown_in_slot(const struct hook_space *space, uint64_t ip)
{
	struct map_slot *slot;
	bool ours = false;
	size_t at = 0;

	for (size_t i = 0; i < space->npages && !ours; i++)
		ours = ip >= space->pages[i].address &&
		       ip < space->pages[i].address + space->pages[i].used;
	while (ours && (slot = map_next(&space->points, &at))) {
		const struct hook_point *point = slot->value;
		if (!point->slot || !point->place || !point->place->function || point->lifted)
			continue;
		if (point->slot == ip)
			return point->address;
		if (point->slot + point->insn.len == ip && insn_is_straight(&point->insn))
			return point->address + point->insn.len;
	}
	return 0;
}

void hooks_handler_enters(struct task *task, const siginfo_t *info)
{
	const struct hook_space *space = task->mm->hooks;
	struct arch_regs regs;

	if (!space || arch_regs_get(task->tid, &regs) < 0)
		return;
	uint64_t ip = arch_regs_ip(&regs);
	uint64_t shown = shown_in_slot(space, ip);
	if (!shown)
		shown = shown_in_stub(space, ip, is_fault(info));
	if (!shown)
		return;
	arch_regs_set_ip(&regs, shown);
	arch_regs_set(task->tid, &regs);
}

/* @return where the copy is of what stood at `ip` amid a jump, 0: no jump lies there. */
static uint64_t copy_amid_jump(const struct hook_space *space, uint64_t ip)
{
	for (unsigned distance = 0; distance < ROOM_JUMP; distance++) {
		const struct hook_point *point = map_get(&space->points, ip - distance);
		if (distance && point && point->stub && !point->lifted &&
		    !point->place->jump->exit && distance < point->place->jump->len)
			return point->stub + HOOK_STUB_END + distance;
		point = map_get(&space->points, ip + distance);
		if (point && point->stub && !point->lifted && point->place->jump->exit &&
		    ip > hook_jump_address(point))
			return point->stub + (distance ? HOOK_STUB_TEST - distance : HOOK_STUB_END);
	}
	return 0;
}

/* @return whether the entry has been seen already by a thread that goes on there with this stack pointer. */
static bool is_begun(struct tracer *tracer, struct task *task, const struct hook_point *entry,
		     uint64_t sp)
{
	uint64_t back;

	if (memory_read(tracer, task, sp, &back, sizeof(back)) != sizeof(back))
		return false;
	const struct frame *frame = hook_call_at(task, sp, back);
	return frame && frame->hook == entry->place->function;
}

void hooks_sigreturn(struct tracer *tracer, struct task *task, uint64_t sp)
{
	const struct hook_space *space = task->mm->hooks;
	unsigned char bytes[ARCH_SIGFRAME_SIZE];
	struct arch_sigframe frame;

	if (!space || memory_read(tracer, task, sp, bytes, sizeof(bytes)) != sizeof(bytes))
		return;
	arch_sigframe_parse(bytes, &frame);
	uint64_t ip = copy_amid_jump(space, frame.ip);
	const struct hook_point *point = map_get(&space->points, frame.ip);
	if (point && point->place && point->place->function && !point->lifted &&
	    is_begun(tracer, task, point, frame.sp))
		ip = point->stub ? point->stub + HOOK_STUB_END : point->slot;
	if (ip)
		memory_write(task, sp + ARCH_SIGFRAME_IP, &ip, sizeof(ip));
}
