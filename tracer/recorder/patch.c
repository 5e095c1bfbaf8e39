/* Jumps at the program's system calls. */
#include "tracer/effects.h"
#include "tracer/memory.h"
#include "tracer/recorder/internal.h"
#include "tracer/remote.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <linux/membarrier.h>
#include <sys/mman.h>

/* A process that needs more stubs makes its code while it runs. */
#define AREAS_MAX 64

/* The jump is not there any more. The stub stays as it is, and what is known of it: a thread may stand there, or at a
 * breakpoint that is gone. */
static void forget(struct patch *patch)
{
	patch->state = PATCH_NEW;
	patch->hits = 0;
}

/* Where something else may lie now what was refused is looked at again. Of jumps only memory tells: a part of a module may
 * be where it was. */
static void forget_modules(const struct module *module, void *data)
{
	struct recorder_space *space = data;
	struct map_slot *slot;
	size_t at = 0;

	while ((slot = map_next(&space->patches, &at))) {
		struct patch *patch = slot->value;
		if (patch->state == PATCH_REFUSED && patch->ip >= module->begin &&
		    patch->ip < module->end)
			forget(patch);
	}
}

static const struct module *module_of(struct tracer *tracer, struct task *task, uint64_t ip)
{
	struct recorder_space *space = task->mm->recorder;

	/* Always anew: what is mapped there may have changed. */
	if (modules_read(&space->modules, tracer->recorder->objects, task->tid, forget_modules,
			 space) < 0)
		return NULL;
	return modules_find(&space->modules, ip);
}

/* Finds the window of a system call in its file, and sees to it that the same lies in memory. */
static void find_window(struct tracer *tracer, struct task *task, const struct module *module,
			uint64_t ip, struct window *window, unsigned char before[WINDOW_JUMP])
{
	unsigned char bytes[2 * INSN_MAX + ARCH_SYSCALL_LEN];
	uint64_t begin;
	uint64_t end;
	size_t len = 0;

	*window = (struct window){.form = WINDOW_REFUSED, .refusal = WINDOW_NO_BOUNDS, .ip = ip};
	if (module && module->shared) {
		window->refusal = WINDOW_SHARED;
		return;
	}
	if (!module || !module->object ||
	    !object_bounds(module->object, ip - ARCH_SYSCALL_LEN - module->bias, &begin, &end))
		return;
	const unsigned char *code = object_code(module->object, begin, &len);
	if (!code || end <= begin || len < end - begin)
		return;
	const struct window_code around = {
		.bytes = code,
		.len = len,
		.function_len = (size_t)(end - begin),
		.begin = begin + module->bias,
	};
	window_find(tracer->recorder->decoder, &around, ip, window);
	if (window->form == WINDOW_REFUSED)
		return;
	/* A hook's or a debugger's breakpoint, or code that the program has changed itself. */
	uint64_t last = window->form == WINDOW_BEFORE ? ip : ip + window->insn.len;
	if (last < window->begin + WINDOW_JUMP)
		last = window->begin + WINDOW_JUMP;
	size_t n = (size_t)(last - window->begin);
	size_t at = (size_t)(window->begin - module->bias - begin);
	if (at + n > len || n > sizeof(bytes) ||
	    memory_read(tracer, task, window->begin, bytes, n) != (ssize_t)n ||
	    memcmp(bytes, code + at, n) != 0) {
		window->form = WINDOW_REFUSED;
		window->refusal = WINDOW_CHANGED;
	}
	memcpy(before, bytes, WINDOW_JUMP);
}

/* @return a free place for the stub in an area, 0: none. */
static uint64_t place_in(const struct area *area, const struct window *window,
			 unsigned char jump[WINDOW_JUMP])
{
	for (size_t i = 0; i < AREA_STUBS; i++) {
		uint64_t address = area->address + i * STUB_SIZE;
		if (!area->stubs[i] && stub_jump(window, address, jump))
			return address;
	}
	return 0;
}

static uint64_t find_place(struct tracer *tracer, struct task *task, const struct module *module,
			   const struct window *window, unsigned char jump[WINDOW_JUMP])
{
	struct recorder_space *space = task->mm->recorder;
	uint64_t address = 0;

	for (size_t i = 0; i < space->nareas && !address; i++)
		address = place_in(&space->areas[i], window, jump);
	if (address || space->nareas == AREAS_MAX)
		return address;
	struct area *areas = reallocarray(space->areas, space->nareas + 1, sizeof(*areas));
	if (!areas)
		return 0;
	space->areas = areas;
	uint64_t begin =
		remote_map_near(tracer, task, module->begin, space->nareas * AREA_SIZE, AREA_SIZE);
	if (!begin)
		return 0;
	areas[space->nareas] = (struct area){.address = begin};
	return place_in(&areas[space->nareas++], window, jump);
}

static uint64_t *stub_slot(const struct recorder_space *space, uint64_t address)
{
	for (size_t i = 0; i < space->nareas; i++) {
		struct area *area = &space->areas[i];
		if (address >= area->address && address < area->address + AREA_SIZE)
			return &area->stubs[(address - area->address) / STUB_SIZE];
	}
	return NULL;
}

struct patch *patch_of_stub(const struct recorder_space *space, uint64_t address)
{
	const uint64_t *ip = stub_slot(space, address);

	return ip && *ip ? map_get(&space->patches, *ip) : NULL;
}

/* Every thread of the process sees what was written before it executes another instruction. */
static int sync_code(struct tracer *tracer, struct task *task)
{
	const uint64_t args[6] = {MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE};
	int64_t result;

	if (remote_syscall(tracer, task, __NR_membarrier, args, &result) < 0 || result < 0)
		return -1;
	return 0;
}

/* @return whether the task is in a call that makes a process with a copy of its memory, made when the kernel likes. Its
 * table is copied when the call tells of the child. */
static bool is_copying(const struct task *task, const struct frame *frame)
{
	return task->want_exit && frame->call.row->effect == EFFECT_CLONE && !frame->call.child &&
	       !(effects_clone_flags(&frame->call) & CLONE_VM);
}

/* Looks at what the others with the task's memory are in the middle of. */
static bool others_are(struct tracer *tracer, const struct task *task,
		       bool (*at_it)(const struct task *other, const struct frame *frame))
{
	struct map_slot *slot;
	size_t at = 0;

	while (task->mm->refs > 1 && (slot = map_next(&tracer->tasks, &at))) {
		struct task *other = slot->value;
		if (other->mm != task->mm || other == task)
			continue;
		const struct frame *frame = task_top(other);
		if (frame && frame->call.row && at_it(other, frame))
			return true;
	}
	return false;
}

bool patch_is_copied(struct tracer *tracer, const struct task *task)
{
	return others_are(tracer, task, is_copying);
}

/* … or about to move code, or to set a filter before which all was taken back. */
static bool is_changing(const struct task *task, const struct frame *frame)
{
	const enum effect effect = frame->call.row->effect;

	return effect == EFFECT_MREMAP || effect == EFFECT_OWN_FILTER || is_copying(task, frame);
}

/* Others run: none of them may find half a jump. A breakpoint keeps them from the window until the rest is
 * there. Whoever hits it goes to the window's beginning once this is done. */
static int write_among_others(struct tracer *tracer, struct task *task, const struct patch *patch)
{
	static const unsigned char breakpoint = ARCH_BREAKPOINT;
	const struct window *window = &patch->window;
	uint64_t begin = window->begin;

	if (memory_write(task, begin, &breakpoint, 1) < 0)
		return -1;
	if (sync_code(tracer, task) < 0)
		goto undo;
	/* Some may stand behind the system call: for them there is one, too, and it stays. */
	if (window->form == WINDOW_AFTER) {
		if (memory_write(task, window->ip, &breakpoint, 1) < 0)
			goto undo;
		if (sync_code(tracer, task) < 0)
			goto undo;
	}
	if (memory_write(task, begin + 1, patch->jump + 1, WINDOW_JUMP - 1) < 0)
		goto undo;
	/* Killed meanwhile: then nobody is left to see it. */
	sync_code(tracer, task);
	if (memory_write(task, begin, patch->jump, 1) < 0)
		return -1;
	sync_code(tracer, task);
	return 0;
undo:
	if (window->form == WINDOW_AFTER)
		memory_write(task, window->ip, patch->before + ARCH_SYSCALL_LEN, 1);
	memory_write(task, begin, patch->before, 1);
	return -1;
}

static int write_jump(struct tracer *tracer, struct task *task, const struct patch *patch)
{
	if (task->mm->refs == 1)
		return memory_write(task, patch->window.begin, patch->jump, WINDOW_JUMP);
	return write_among_others(tracer, task, patch);
}

static void refuse(struct task *task, struct patch *patch, enum window_refusal why)
{
	patch->state = PATCH_REFUSED;
	task->process->recorded.refused[why]++;
}

/* @return whether the stub of an earlier time, in which threads may stand, is what is wanted now. */
static bool has_stub(struct tracer *tracer, struct task *task, struct patch *patch,
		     struct stub *stub)
{
	const uint64_t *slot = stub_slot(task->mm->recorder, patch->address);
	unsigned char bytes[STUB_SIZE];

	return slot && *slot == patch->ip &&
	       stub_jump(&patch->window, patch->address, patch->jump) &&
	       stub_make(stub, &patch->window, patch->address) == 0 &&
	       memory_read(tracer, task, patch->address, bytes, stub->len) == stub->len &&
	       memcmp(bytes, stub->bytes, stub->len) == 0;
}

/* @return whether there is a stub, and a jump that leads to it. */
static bool make_stub(struct tracer *tracer, struct task *task, const struct module *module,
		      struct patch *patch)
{
	struct stub stub;

	if (!has_stub(tracer, task, patch, &stub)) {
		patch->address = find_place(tracer, task, module, &patch->window, patch->jump);
		if (!patch->address || stub_make(&stub, &patch->window, patch->address) < 0 ||
		    memory_write(task, patch->address, stub.bytes, stub.len) < 0)
			return false;
		*stub_slot(task->mm->recorder, patch->address) = patch->ip;
	}
	patch->test = stub.test;
	patch->after = stub.after;
	return true;
}

void patch_try(struct tracer *tracer, struct task *task, struct patch *patch)
{
	const struct recorder_space *space = task->mm->recorder;

	patch->hits = 0;
	/* Both may be otherwise later. */
	if (task->mm->refs > 1 && space->no_sync) {
		task->process->recorded.off[OFF_NO_SYNC]++;
		return;
	}
	if (others_are(tracer, task, is_changing))
		return;
	const struct module *module = module_of(tracer, task, patch->ip);
	find_window(tracer, task, module, patch->ip, &patch->window, patch->before);
	if (patch->window.form == WINDOW_REFUSED) {
		refuse(task, patch, patch->window.refusal);
		return;
	}
	if (!make_stub(tracer, task, module, patch)) {
		refuse(task, patch, WINDOW_NO_STUB);
		return;
	}
	/* A thread that was let into the stub while others are still being kept out finds it complete. */
	patch->state = PATCH_DONE;
	if (write_jump(tracer, task, patch) < 0 || !patch_is_there(tracer, task, patch)) {
		refuse(task, patch, WINDOW_NO_STUB);
		return;
	}
	task->process->recorded.forms[patch->window.form]++;
}

/* Others may run there, or be about to return to behind the system call. */
static void take_back(struct tracer *tracer, struct task *task, const struct patch *patch)
{
	static const unsigned char breakpoint = ARCH_BREAKPOINT;
	const uint64_t begin = patch->window.begin;
	const unsigned char *before = patch->before;
	const size_t call = ARCH_SYSCALL_LEN;

	if (task->mm->refs == 1) {
		memory_write(task, begin, before, WINDOW_JUMP);
		return;
	}
	if (memory_write(task, begin, &breakpoint, 1) < 0)
		return;
	sync_code(tracer, task);
	memory_write(task, begin + 1, before + 1, call - 1);
	memory_write(task, begin + call + 1, before + call + 1, WINDOW_JUMP - call - 1);
	sync_code(tracer, task);
	memory_write(task, begin + call, before + call, 1);
	sync_code(tracer, task);
	memory_write(task, begin, before, 1);
	sync_code(tracer, task);
}

bool patch_withdraw(struct tracer *tracer, struct task *task, uint64_t begin, uint64_t end)
{
	const struct recorder_space *space = task->mm->recorder;
	bool copied = patch_is_copied(tracer, task);
	struct map_slot *slot;
	bool any = false;
	size_t at = 0;
	int64_t result;

	while ((slot = map_next(&space->patches, &at))) {
		struct patch *patch = slot->value;
		if (patch->state != PATCH_DONE || patch->ip < begin || patch->window.begin >= end)
			continue;
		if (!patch_is_there(tracer, task, patch))
			continue;
		any = true;
		/* Again, and later: at that entry it will stand once more. */
		if (copied)
			break;
		take_back(tracer, task, patch);
		forget(patch);
	}
	if (any && copied)
		return remote_syscall(tracer, task, __NR_sched_yield, (uint64_t[6]){0}, &result) ==
		       0;
	return any && task->mm->refs > 1;
}

bool patch_has_jump(struct tracer *tracer, struct task *task, const struct patch *patch)
{
	unsigned char bytes[WINDOW_JUMP];

	return memory_read(tracer, task, patch->window.begin, bytes, sizeof(bytes)) ==
		       sizeof(bytes) &&
	       memcmp(bytes, patch->jump, sizeof(bytes)) == 0;
}

bool patch_is_there(struct tracer *tracer, struct task *task, struct patch *patch)
{
	if (patch_has_jump(tracer, task, patch))
		return true;
	task->process->recorded.stale++;
	forget(patch);
	return false;
}
