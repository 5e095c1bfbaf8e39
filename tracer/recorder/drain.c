/* Records become calls, as if each had stopped twice. */
#include "tracer/decode.h"
#include "tracer/loop.h"
#include "tracer/recorder/internal.h"

#include <errno.h>
#include <string.h>
#include <x86intrin.h>

/* ns: a call that takes longer becomes a frame while it lasts, so that nobody has to keep for it what
 * descriptors were when it began. */
#define LONG_CALL 100000000

/* About a microsecond: reading a clock takes a tenth of it. */
#define CLOCK_TICKS 4000
#define CLOCK_TRIES 10

/* The two clocks at one moment, and how they go against each other. */
struct moment {
	uint64_t ticks;
	uint64_t ns;
	double ns_per_tick;
};

uint64_t drain_ticks(void)
{
	return __rdtsc();
}

/* Reads both clocks. Who is interrupted between them does it again, a few times. */
static void read_clocks(const struct clock *clock, uint64_t *ticks, uint64_t *ns)
{
	uint64_t least = UINT64_MAX;

	for (int tries = 0; tries < CLOCK_TRIES && least > CLOCK_TICKS; tries++) {
		uint64_t before = __rdtsc();
		uint64_t now = clock_now(clock);
		uint64_t taken = __rdtsc() - before;
		if (taken >= least)
			continue;
		least = taken;
		*ticks = before + taken / 2;
		*ns = now;
	}
}

void drain_begin_clock(struct recorder *recorder, const struct clock *clock)
{
	read_clocks(clock, &recorder->ticks, &recorder->ns);
}

static struct moment take_moment(const struct tracer *tracer)
{
	const struct recorder *recorder = tracer->recorder;
	struct moment moment = {0};

	read_clocks(&tracer->clock, &moment.ticks, &moment.ns);
	moment.ns_per_tick =
		(double)(moment.ns - recorder->ns) / (double)(moment.ticks - recorder->ticks);
	return moment;
}

uint64_t drain_cost_ns(const struct tracer *tracer)
{
	struct moment moment = take_moment(tracer);

	return (uint64_t)((double)tracer->recorder->cost * moment.ns_per_tick);
}

/* Never later than the moment itself. */
static uint64_t to_ns(const struct moment *moment, uint64_t ticks)
{
	if (ticks >= moment->ticks)
		return moment->ns;
	return moment->ns - (uint64_t)((double)(moment->ticks - ticks) * moment->ns_per_tick);
}

static size_t more_of(const struct agent_record *record)
{
	return record->more < RECORD_MORE_MAX ? record->more : RECORD_MORE_MAX;
}

/* The filter has run before the call: its time is not the call's. */
static uint64_t start_of(const struct recorder *recorder, const struct agent_record *record,
			 uint64_t end)
{
	uint64_t start = record->start + recorder->cost;

	return start < end ? start : end;
}

static void add_data(struct call *call, unsigned arg, const void *bytes, size_t len)
{
	call->data[arg] = (struct call_data){DATA_COPIED, call->bytes.len, len};
	buf_add(&call->bytes, bytes, len);
}

/* What the agent has copied, in its order. */
static void fill_data(struct call *call, const struct agent_record *record)
{
	static const struct {
		uint16_t shape;
		unsigned char arg;
	} paths[] = {{SHAPE_PATH0, 0}, {SHAPE_PATH1, 1}, {SHAPE_PATH3, 3}};
	const char *at = (const char *)(record + 1);
	const char *const end = (const char *)(record + 1 + more_of(record));

	if (record->shape & SHAPE_VECTOR)
		add_data(call, 1, &record->sum, sizeof(record->sum));
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		if (!(record->shape & paths[i].shape))
			continue;
		size_t len = strnlen(at, (size_t)(end - at));
		add_data(call, paths[i].arg, at, len);
		at += len < (size_t)(end - at) ? len + 1 : len;
	}
}

/* The address behind the program's own system call instruction. */
static uint64_t own_ip(const struct task *task, uint64_t ip)
{
	const struct patch *patch = patch_of_stub(task->mm->recorder, ip);

	return patch ? patch->ip : ip;
}

/* @return the call's frame, NULL: out of memory, or nobody wants it. */
static struct frame *begin(struct tracer *tracer, struct task *task,
			   const struct agent_record *record, uint64_t start)
{
	const struct syscall_row *row = syscall_row(record->nr);
	uint64_t ip = own_ip(task, record->ip);

	if (!row || !tracer->recorder->shapes[row->nr] || tracer->pass_through || task->given_up)
		return NULL;
	hooks_stale(tracer, task, record->sp, start);
	if (signals_settle(tracer, task, record->nr, ip, record->sp, start))
		return task_top(task); /* made again after a signal */
	struct frame *frame = task_push(task);
	if (!frame) {
		tracer_end_recording(tracer, "out of memory");
		return NULL;
	}
	struct call *call = &frame->call;
	frame->handlers = task->handlers;
	call->source = CALL_FROM_RECORDER;
	call->state = CALL_OPEN;
	call->row = row;
	call->tid = task->tid;
	call->start = start;
	call->ip = ip;
	call->sp = record->sp;
	memcpy(call->args, record->args, sizeof(call->args));
	fill_data(call, record);
	decode_begin(tracer, task, frame);
	return frame;
}

static void end(struct tracer *tracer, struct task *task, struct frame *frame, int64_t result,
		uint64_t end_ns)
{
	frame->call.state = CALL_DONE;
	frame->call.ret = result;
	frame->call.end = end_ns;
	if (frame->needs_exit)
		decode_end(tracer, task, frame);
	task_pop(task);
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Takes the first record. */
static void take(struct tracer *tracer, struct ring *ring, const struct moment *moment)
{
	struct agent_ring *shared = ring->shared;
	struct agent_record *record = ring_record(ring, ring->tail);
	struct task *task = ring->task;
	struct frame *frame;

	/* The rounding of one moment must not make a thread's calls overlap with those of another. */
	uint64_t began = start_of(tracer->recorder, record, record->end);
	uint64_t start = later(to_ns(moment, began), ring->until);
	uint64_t end_ns = later(to_ns(moment, record->end), start);
	if (record->shape & (SHAPE_HOOK_ENTRY | SHAPE_HOOK_EXIT)) {
		hooked_take(tracer, task, record, end_ns);
	} else {
		if (ring->begun)
			frame = task_top(task);
		else
			frame = begin(tracer, task, record, start);
		if (frame)
			end(tracer, task, frame, record->result, end_ns);
		ring->begun = false;
		task->process->recorded.calls++;
	}
	ring->until = end_ns;
	ring->tail += 1 + more_of(record);
	__atomic_store_n(&shared->tail, ring->tail, __ATOMIC_RELEASE);
}

static bool has_records(const struct ring *ring)
{
	uint64_t waiting = __atomic_load_n(&ring->shared->head, __ATOMIC_ACQUIRE) - ring->tail;

	return waiting > 0 && waiting <= ring->mask + 1;
}

/* @return the record of a call that is being made, NULL: there is none. */
static struct agent_record *open_record(const struct ring *ring)
{
	uint64_t head = __atomic_load_n(&ring->shared->head, __ATOMIC_ACQUIRE);
	struct agent_record *record = ring_record(ring, head);

	return __atomic_load_n(&record->state, __ATOMIC_ACQUIRE) == RECORD_OPEN ? record : NULL;
}

/* @return whether a ring's first record had ended at the moment; `*due`: when. */
static bool is_due(struct ring *ring, const struct moment *moment, struct ring_due *due)
{
	if (!has_records(ring))
		return false;
	*due = (struct ring_due){ring_record(ring, ring->tail)->end, ring};
	return due->end <= moment->ticks;
}

/* Puts what stands at `at` of a heap, where none of what is below ends before what is above, to its place. */
static void sift_down(struct ring_due *heap, size_t count, size_t at)
{
	struct ring_due moved = heap[at];

	for (size_t below; (below = 2 * at + 1) < count; at = below) {
		if (below + 1 < count && heap[below + 1].end < heap[below].end)
			below++;
		if (moved.end <= heap[below].end)
			break;
		heap[at] = heap[below];
	}
	heap[at] = moved;
}

/* Takes what had ended at the moment. What ends later waits for the next one: what it follows from, in another
 * thread's ring, may not have been seen. */
static void take_all(struct tracer *tracer, struct recorder_space *space,
		     const struct moment *moment)
{
	struct ring_due *heap = tracer->recorder->due;
	size_t count = 0;

	for (size_t i = 0; i < space->nused; i++)
		count += is_due(space->rings[i], moment, &heap[count]);
	for (size_t i = count / 2; i > 0; i--)
		sift_down(heap, count, i - 1);
	while (count) {
		struct ring *ring = heap[0].ring;
		take(tracer, ring, moment);
		if (!is_due(ring, moment, &heap[0]))
			heap[0] = heap[--count];
		sift_down(heap, count, 0);
	}
}

/* A call that is being made becomes a frame. */
static void begin_open(struct tracer *tracer, struct ring *ring, const struct moment *moment,
		       uint64_t least)
{
	const struct agent_record *record = open_record(ring);

	if (!record || ring->begun)
		return;
	struct agent_record copy[RECORD_MORE_MAX + 1];
	memcpy(copy, record, (1UL + more_of(record)) * RECORD_SIZE);
	/* It may have ended meanwhile. */
	if (has_records(ring))
		return;
	uint64_t began = start_of(tracer->recorder, copy, moment->ticks);
	uint64_t start = later(to_ns(moment, began), ring->until);
	if (moment->ns - start < least)
		return;
	ring->begun = begin(tracer, ring->task, copy, start) != NULL;
}

/* No call that is still to come began before. */
static void set_horizon(struct recorder_space *space, const struct moment *moment)
{
	uint64_t first = moment->ticks;

	for (size_t i = 0; i < space->nused; i++) {
		struct ring *ring = space->rings[i];
		if (ring->begun)
			continue;
		if (has_records(ring) && ring_record(ring, ring->tail)->start < first)
			first = ring_record(ring, ring->tail)->start;
		const struct agent_record *record = open_record(ring);
		if (record && record->start < first)
			first = record->start;
	}
	space->files->horizon = to_ns(moment, first);
}

/* Where it is switched off it is by rings that have no room. */
static void note_full(const struct recorder_space *space, struct ring *ring)
{
	if (!__atomic_load_n(&ring->shared->full, __ATOMIC_RELAXED))
		return;
	uint64_t full = __atomic_exchange_n(&ring->shared->full, 0, __ATOMIC_RELAXED);
	if (!space->off && ring->task->process)
		ring->task->process->recorded.full += full;
}

void drain_space(struct tracer *tracer, struct recorder_space *space)
{
	if (!space->files)
		return;
	struct moment moment = take_moment(tracer);
	take_all(tracer, space, &moment);
	for (size_t i = 0; i < space->nused; i++) {
		begin_open(tracer, space->rings[i], &moment, LONG_CALL);
		note_full(space, space->rings[i]);
	}
	set_horizon(space, &moment);
}

void drain_ring(struct tracer *tracer, struct ring *ring)
{
	struct moment moment = take_moment(tracer);

	while (has_records(ring))
		take(tracer, ring, &moment);
	begin_open(tracer, ring, &moment, 0);
}
