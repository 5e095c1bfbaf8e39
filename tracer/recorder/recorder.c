/* The recorder as the loop sees it: what is patched, and when. */
#include "tracer/recorder/recorder.h"

#include "base/proc.h"
#include "tracer/effects.h"
#include "tracer/memory.h"
#include "tracer/recorder/internal.h"
#include "tracer/resolve.h"
#include "tracer/wanted.h"

#include <cpuid.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/fcntl.h>
#include <linux/membarrier.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/* Of AT_HWCAP2 (arch/x86/include/uapi/asm/hwcap2.h of the kernel). */
#define HAS_FSGSBASE 2

/* A program with more places makes code while it runs. */
#define PATCHES_MAX 65536

const char *recorder_obstacle(void)
{
	unsigned eax;
	unsigned ebx;
	unsigned ecx;
	unsigned edx;
	char source[32];

	if (!(getauxval(AT_HWCAP2) & HAS_FSGSBASE))
		return "programs may not read %gs here (FSGSBASE, Linux 5.9)";
	if (!__get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx) || !(ecx & bit_LAHF_LM))
		return "the processor has no lahf in 64-bit programs";
	if (!__get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) || !(edx & 1U << 8))
		return "the processor's time stamp counter is not invariant";
	if (!proc_read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource",
			    source, sizeof(source)) ||
	    strcmp(source, "tsc") != 0)
		return "the kernel's clock is not the time stamp counter";
	return NULL;
}

const char *recorder_trial(bool *threads)
{
	void *const place = (void *)AGENT_BASE;
	const int needed = MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE;
	long known = syscall(__NR_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);

	*threads = known > 0 && (known & needed);
	void *got = mmap(place, AGENT_TEXT_SIZE, PROT_READ | PROT_EXEC,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (got == MAP_FAILED)
		return errno == EEXIST ? "the agent's address is taken"
				       : "no executable memory may be mapped";
	munmap(got, AGENT_TEXT_SIZE);
	int fd = memfd_create(RINGS_NAME, MFD_CLOEXEC);
	if (fd < 0)
		return "no memory can be shared with the program (memfd_create)";
	close(fd);
	return NULL;
}

uint64_t recorder_allowed_ip(void)
{
	return AGENT_BASE + AGENT_SYSCALL + ARCH_SYSCALL_LEN;
}

/* @return the bit of a field, 0: the agent cannot do it. */
static uint16_t shape_of_field(const struct field *field)
{
	switch (field->kind) {
	case FIELD_FD:
		return field->arg == 0 ? SHAPE_FD : 0;
	case FIELD_DIRFD:
		return field->arg == 0 ? SHAPE_DIR0 : field->arg == 2 ? SHAPE_DIR2 : 0;
	case FIELD_IOVEC:
		return field->arg == 1 ? SHAPE_VECTOR : 0;
	case FIELD_PATH:
	case FIELD_NEW_PATH:
		return field->arg == 0   ? SHAPE_PATH0
		       : field->arg == 1 ? SHAPE_PATH1
		       : field->arg == 3 ? SHAPE_PATH3
					 : 0;
	case FIELD_INT:
	case FIELD_LONG:
	case FIELD_U32:
	case FIELD_U64:
	case FIELD_NZ32:
	case FIELD_MODE:
		return SHAPE_RECORDED;
	default:
		return 0;
	}
}

uint16_t recorder_shape(const struct syscall_row *row)
{
	uint16_t shape = SHAPE_RECORDED;

	if (row->class != CLASS_DATA && row->class != CLASS_DESC && row->class != CLASS_META)
		return 0;
	switch (row->effect) {
	case EFFECT_NONE:
	case EFFECT_RENAME:
		break;
	case EFFECT_OPEN:
	case EFFECT_CREAT:
		shape |= SHAPE_OPENS;
		break;
	case EFFECT_CLOSE:
		shape |= SHAPE_CLOSES;
		break;
	default:
		return 0;
	}
	for (const struct field *f = row->fields; f->kind != FIELD_END; f++) {
		uint16_t bit = shape_of_field(f);
		if (!bit)
			return 0;
		shape |= bit;
	}
	return shape;
}

/* Only calls that would stop: whatever is selected, or followed for the state. */
static void fill_shapes(struct recorder *recorder, const struct selection *selection)
{
	for (size_t i = 0; i < syscall_row_count; i++) {
		const struct syscall_row *row = &syscall_rows[i];
		if (selection->rows[i] || syscall_row_is_state(row))
			recorder->shapes[row->nr] = recorder_shape(row);
	}
}

static bool is_ring(uint64_t gs)
{
	return gs >> 32 == (uint64_t)AGENT_BASE >> 32;
}

/* A new task begins with its maker's %gs; it has no ring. */
static void forget_ring(const struct task *task)
{
	struct arch_regs regs;

	if (arch_regs_get(task->tid, &regs) < 0 || !is_ring(arch_regs_gs(&regs)))
		return;
	arch_regs_set_gs(&regs, 0);
	arch_regs_set(task->tid, &regs);
}

/* Who shares descriptors with the task, but not the memory in which is written which of them are known; or the cwd,
 * which is known by the order of the calls in one memory. */
static void switch_off_sharers(struct tracer *tracer, const struct task *task)
{
	struct map_slot *slot;
	size_t at = 0;

	while ((slot = map_next(&tracer->tasks, &at))) {
		struct task *other = slot->value;
		if ((other->files != task->files && other->fs != task->fs) ||
		    other->mm == task->mm || !other->mm || !other->mm->recorder)
			continue;
		space_switch_off(other, OFF_FILES);
		recorder_stop(tracer, other);
	}
}

static void exec_stop(struct observer *observer, struct tracer *tracer, struct task *task)
{
	(void)observer;
	/* What hooks do as well, where there are any. */
	forced_begin(task);
	/* It may have shared the memory as well until now. */
	switch_off_sharers(tracer, task);
}

static void thread_start(struct observer *observer, struct tracer *tracer, struct task *task)
{
	(void)observer;
	(void)tracer;
	forget_ring(task);
}

static void child_first_stop(struct observer *observer, struct tracer *tracer, struct task *parent,
			     struct task *child)
{
	(void)observer;
	(void)parent;
	forget_ring(child);
	switch_off_sharers(tracer, child);
}

struct recorder *recorder_new(const struct recorder_options *options,
			      const struct selection *selection, const struct clock *clock,
			      struct objects *objects)
{
	struct recorder *recorder = calloc(1, sizeof(*recorder));

	if (!recorder)
		return NULL;
	recorder->options = *options;
	recorder->observer = (struct observer){.exec_stop = exec_stop,
					       .thread_start = thread_start,
					       .child_first_stop = child_first_stop};
	fill_shapes(recorder, selection);
	drain_begin_clock(recorder, clock);
	recorder->decoder = insn_decoder_new();
	recorder->objects = objects;
	if (!recorder->decoder) {
		recorder_free(recorder);
		return NULL;
	}
	return recorder;
}

void recorder_free(struct recorder *recorder)
{
	if (!recorder)
		return;
	insn_decoder_free(recorder->decoder);
	free(recorder);
}

struct observer *recorder_observer(struct recorder *recorder)
{
	return &recorder->observer;
}

void recorder_stop(struct tracer *tracer, const struct task *task)
{
	if (task->mm && task->mm->recorder && task->mm->recorder->nused)
		drain_space(tracer, task->mm->recorder);
}

void recorder_tick(struct tracer *tracer)
{
	struct map_slot *slot;
	size_t at = 0;

	if (!tracer->recorder)
		return;
	/* By its leader, or whoever is alone with its memory; of others the next stop will do. */
	while ((slot = map_next(&tracer->tasks, &at))) {
		struct task *task = slot->value;
		if (!task->process || (task->tid != task->process->pid && task->mm->refs > 1))
			continue;
		recorder_stop(tracer, task);
		if (task->mm->recorder && task->mm->recorder->files)
			resolve_cwd_tick(task);
	}
}

/* @return the place, made if need be; NULL: there are too many, or no memory. */
static struct patch *patch_at(struct recorder_space *space, uint64_t ip)
{
	struct patch *patch = map_get(&space->patches, ip);

	if (patch || space->patches.count >= PATCHES_MAX || !(patch = malloc(sizeof(*patch))))
		return patch;
	*patch = (struct patch){.ip = ip};
	if (map_put(&space->patches, ip, patch) < 0) {
		free(patch);
		return NULL;
	}
	return patch;
}

static struct recorder_space *space_of(struct tracer *tracer, struct task *task)
{
	struct mm *mm = task->mm;

	if (tracer->recorder && !mm->recorder && !task->process->excluded) {
		mm->recorder = calloc(1, sizeof(*mm->recorder));
		if (mm->recorder)
			mm->recorder->memfd = -1;
	}
	return mm->recorder;
}

void recorder_call_enters(struct tracer *tracer, const struct task *task, uint64_t *ip)
{
	const struct recorder_space *space = task->mm->recorder;
	const struct patch *patch = space ? patch_of_stub(space, *ip) : NULL;

	(void)tracer;
	if (patch)
		*ip = patch->ip;
}

static uint64_t clone_flags(struct tracer *tracer, struct task *task, const struct arch_stop *stop)
{
	uint64_t flags = stop->args[0];

	if (stop->nr == __NR_clone3 &&
	    memory_read(tracer, task, stop->args[0], &flags, sizeof(flags)) != sizeof(flags))
		return 0;
	return stop->nr == __NR_clone || stop->nr == __NR_clone3 ? flags : 0;
}

bool recorder_prepares(struct tracer *tracer, struct task *task, const struct syscall_row *row,
		       const struct arch_stop *stop)
{
	const uint64_t sharing = CLONE_VM | CLONE_FILES;
	const uint64_t *args = stop->args;
	struct arch_regs regs;
	bool over = false;

	if (!tracer->recorder || !tracer->filter || !space_of(tracer, task))
		return false;
	if (row->effect != EFFECT_MREMAP && row->effect != EFFECT_CLONE &&
	    row->effect != EFFECT_OWN_FILTER)
		return false;
	if (arch_regs_get(task->tid, &regs) < 0)
		return false;
	if (row->effect == EFFECT_MREMAP) {
		over = patch_withdraw(tracer, task, args[0], args[0] + args[1]);
	} else if (row->effect == EFFECT_CLONE) {
		uint64_t flags = clone_flags(tracer, task, stop);
		if ((flags & sharing) == sharing)
			over = space_prepare(tracer, task);
		/* What it does before the child's first stop is seen in its order, too. */
		else if (!(flags & CLONE_VM) && (flags & (CLONE_FILES | CLONE_FS)))
			space_switch_off(task, OFF_FILES);
	} else if (effects_own_filter(tracer, stop->nr, args)) {
		/* Such filters look at where calls come from, and may forbid what it takes to change code. */
		over = patch_withdraw(tracer, task, 0, UINT64_MAX);
	}
	if (!over)
		return false;
	arch_regs_before_call(&regs);
	arch_regs_set(task->tid, &regs);
	return true;
}

static void note_descriptor(struct task *task, const struct call *call, unsigned arg)
{
	bool ambiguous;
	int fd = (int)call->args[arg];

	if (fd >= 0 && files_at(task->files, fd, call->start, &ambiguous) && !ambiguous)
		space_set_known(task, fd, true);
}

/* From the table of what the agent may take for known. */
static void note_descriptors(struct task *task, const struct call *call, uint16_t shape)
{
	if (call->row->effect == EFFECT_CLOSE)
		space_set_known(task, (int)call->args[0], false);
	else if (call->row->effect == EFFECT_CLOSE_RANGE)
		space_forget_all(task);
	else if (shape & (SHAPE_FD | SHAPE_DIR0))
		note_descriptor(task, call, 0);
	if (shape & SHAPE_DIR2)
		note_descriptor(task, call, 2);
}

bool recorder_call_begins(struct tracer *tracer, struct task *task, const struct frame *frame)
{
	const struct call *call = &frame->call;
	struct recorder_space *space = space_of(tracer, task);

	if (!space || !tracer->filter)
		return false;
	uint16_t shape = tracer->recorder->shapes[call->row->nr];
	/* Until it is over no other thread patches anything. */
	if (call->row->effect == EFFECT_MREMAP)
		return task->mm->refs > 1;
	note_descriptors(task, call, shape);
	if (!shape || space->off)
		return false;
	struct patch *patch = patch_at(space, call->ip);
	return patch && ++patch->hits >= tracer->recorder->options.hits &&
	       patch->state != PATCH_REFUSED;
}

/* The task has descriptors of its own now. */
static void release_ring(struct task *task)
{
	struct recorder_space *space = task->mm->recorder;
	struct ring *ring = space_ring_of(task);

	if (!ring || space->files == task->files)
		return;
	task->process->recorded.off[OFF_FILES]++;
	forget_ring(task);
	space_free_ring(space, ring);
}

static void go_behind_breakpoint(struct tracer *tracer, struct task *task, struct patch *patch)
{
	struct arch_regs regs;

	if (patch->state != PATCH_DONE || patch->window.form != WINDOW_AFTER ||
	    arch_regs_get(task->tid, &regs) < 0 || arch_regs_ip(&regs) != patch->ip ||
	    !patch_is_there(tracer, task, patch))
		return;
	arch_regs_set_ip(&regs, patch->address + patch->after);
	arch_regs_set(task->tid, &regs);
}

void recorder_call_ended(struct tracer *tracer, struct task *task, const struct call *call)
{
	struct recorder_space *space = task->mm->recorder;

	if (!space)
		return;
	if (call->row->effect == EFFECT_OWN_FILTER && task->process->lost[LOST_OWN_FILTER])
		space_switch_off(task, OFF_FILTER);
	release_ring(task);
	struct ring *ring = space_ring_of(task);
	if (ring)
		ring->until = call->end;
	struct patch *patch = map_get(&space->patches, call->ip);
	if (!patch)
		return;
	if (!space->off && patch->state != PATCH_REFUSED &&
	    tracer->recorder->shapes[call->row->nr] &&
	    patch->hits >= tracer->recorder->options.hits) {
		patch->hits = 0;
		bool gone = patch->state == PATCH_DONE && !patch_is_there(tracer, task, patch);
		if (!gone && space_give(tracer, task) && patch->state == PATCH_NEW)
			patch_try(tracer, task, patch);
	}
	go_behind_breakpoint(tracer, task, patch);
}

void recorder_task_over(struct tracer *tracer, struct task *task)
{
	struct ring *ring = space_ring_of(task);

	if (!ring)
		return;
	drain_space(tracer, task->mm->recorder);
	drain_ring(tracer, ring);
	space_free_ring(task->mm->recorder, ring);
}

bool recorder_takes_hooks(struct tracer *tracer, struct task *task)
{
	return tracer->filter && space_of(tracer, task) && space_takes_hooks(tracer, task);
}

void recorder_hook_stopped(struct tracer *tracer, struct task *task)
{
	struct recorder_space *space = space_of(tracer, task);
	struct ring *ring = space ? space_ring_of(task) : NULL;

	if (ring)
		ring->until = clock_now(&tracer->clock);
	if (!space || space->off || ring || !tracer->filter ||
	    ++space->hook_stops < tracer->recorder->options.hits)
		return;
	space->hook_stops = 0;
	space_give(tracer, task);
}

void recorder_ended(struct tracer *tracer, struct process *process)
{
	const char *why = tracer->no_recorder;
	struct buf text = {0};

	if (tracer->recorder && !tracer->filter)
		why = "there is no filter to let its calls pass";
	if (why)
		buf_addf(&text, "off: %s", why);
	else if (tracer->recorder)
		census_describe(&process->recorded, &text);
	if (process->trace && text.len && buf_str(&text))
		trace_property(process->trace, "recorder", buf_str(&text));
	buf_free(&text);
	if (tracer->recorder)
		census_add(&tracer->recorder->ended, &process->recorded);
	process->recorded = (struct recorder_census){0};
}

void recorder_report(const struct tracer *tracer, struct buf *out)
{
	struct recorder_census sum = tracer->recorder->ended;
	struct map_slot *slot;
	size_t at = 0;

	while ((slot = map_next(&tracer->processes, &at)))
		census_add(&sum, &((const struct process *)slot->value)->recorded);
	buf_add_str(out, "recorder: ");
	census_describe(&sum, out);
	if (tracer->recorder->cost)
		buf_addf(out, ", filter %llu ns", (unsigned long long)drain_cost_ns(tracer));
}
