/* Hooked calls: which of them are under way in a thread, and what comes of them. A call is known by the
 * stack pointer at its entry and its return address. */
#include "tracer/decode.h"
#include "tracer/hooks/annotate.h"
#include "tracer/hooks/library.h"
#include "tracer/image.h"
#include "tracer/lost.h"
#include "tracer/memory.h"
#include "tracer/resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

/* Longer strings than this are not measured. */
#define TEXT_MOST (16UL << 20)

/* Where a stack may end that grows as long as it is used. */
#define OWN_STACK (8UL << 20)

/* Frames further apart than this lie on different stacks. */
#define STACK_REACH (16UL << 20)

/* Where the descriptor stands in a FILE. glibc's has been there since its first release for this machine
 * (struct _IO_FILE, _fileno); musl's is in its stdio_impl.h (fd). */
#define GLIBC_FILENO 112
#define MUSL_FILENO  120
#define MUSL_CLOSE   24

static bool is_stdio(const struct frame *frame)
{
	return frame->hook && frame->hook->layer == HOOK_STDIO;
}

/* exit and the like: what they do to streams is the streams', but they are no calls of a stream. */
static bool is_flush(const struct frame *frame)
{
	return is_stdio(frame) && frame->hook->row->fields[0].kind == HOOK_FLUSHES;
}

/* @return whether `sp` lies on the stack that the thread was started with. */
static bool is_own_stack(const struct task *task, uint64_t sp)
{
	return sp <= task->stack_top && task->stack_top - sp < OWN_STACK;
}

/* @return whether a frame that is deeper than `sp` has been left for good. On the thread's own stack it
 * has; of other stacks, of coroutines, several may be in use, and only what has been overwritten is gone. */
static bool is_left(struct tracer *tracer, struct task *task, const struct frame *frame,
		    uint64_t sp)
{
	uint64_t there;

	if (!frame->hook || frame->call.sp >= sp || sp - frame->call.sp >= STACK_REACH)
		return false;
	if (is_own_stack(task, sp) && is_own_stack(task, frame->call.sp))
		return true;
	/* What was recorded since tells more than the stack as it is now. */
	if (recorder_ends_call(task, frame->call.sp, frame->return_address))
		return false;
	return memory_read(tracer, task, frame->call.sp, &there, sizeof(there)) == sizeof(there) &&
	       there != frame->return_address;
}

/* @return whether a call at `sp` is made by the frame's function: from below it on its stack, and not by a
 * signal handler that came in between. */
static bool is_inside(const struct frame *frame, unsigned handlers, uint64_t sp)
{
	return frame->hook && frame->handlers == handlers && frame->call.sp >= sp &&
	       frame->call.sp - sp < STACK_REACH;
}

bool hook_is_around(const struct frame *frame, const struct frame *call)
{
	/* A handler's calls are inside what it has interrupted, whatever stack it has. */
	return is_inside(frame, call->handlers, call->call.sp) ||
	       (frame->hook && frame->handlers < call->handlers);
}

enum layer hooks_layer(const struct task *task, const struct frame *call)
{
	for (size_t i = 0; i < task->nframes; i++) {
		const struct frame *frame = &task->frames[i];
		if (!is_stdio(frame) || !is_inside(frame, call->handlers, call->call.sp))
			continue;
		/* What exit flushes is the streams'; what else it does is not. */
		if (is_flush(frame) ? call->file && call->file->streamed : frame->record)
			return LAYER_SYSCALL;
	}
	return LAYER_POSIX;
}

static void end_at(struct tracer *tracer, struct task *task, size_t i, enum call_state state,
		   int64_t result, uint64_t now)
{
	struct frame *frame = &task->frames[i];

	frame->call.state = state;
	frame->call.ret = result;
	/* One that begins and ends in the same stop takes no time. */
	frame->call.end = now > frame->call.start ? now : frame->call.start;
	hooks_end(tracer, task, frame);
	/* A handler that was left for good does not return. */
	if (state == CALL_CUT && task->handlers > frame->handlers)
		task->handlers = frame->handlers;
	task_remove(task, i);
}

void hooks_stale(struct tracer *tracer, struct task *task, uint64_t sp, uint64_t now)
{
	for (size_t i = task->nframes; i-- > 0;) {
		if (is_left(tracer, task, &task->frames[i], sp))
			end_at(tracer, task, i, CALL_CUT, 0, now);
	}
}

struct frame *hook_call_at(struct task *task, uint64_t sp, uint64_t return_address)
{
	for (size_t i = task->nframes; i-- > 0;) {
		struct frame *frame = &task->frames[i];
		if (frame->hook && frame->call.sp == sp && frame->return_address == return_address)
			return frame;
	}
	return NULL;
}

/* @return argument `n` of a call that stands at its entry. */
static uint64_t argument(const struct frame *frame, unsigned n)
{
	return frame->call.args[n];
}

static struct file *file_of_fd(struct tracer *tracer, struct task *task, int fd, uint64_t time)
{
	bool ambiguous;
	struct file *file = resolve_fd(tracer, task, fd, time, &ambiguous);

	if (file)
		file->streamed = true;
	return file ? file_ref(file) : NULL;
}

static struct file *file_of_stream(struct tracer *tracer, struct task *task,
				   const struct frame *frame, uint64_t stream, uint64_t time)
{
	unsigned offset = frame->hook->libc == OBJECT_MUSL ? MUSL_FILENO : GLIBC_FILENO;
	int fd;

	if (!stream || memory_read(tracer, task, stream + offset, &fd, sizeof(fd)) != sizeof(fd))
		return NULL;
	struct file *file = file_of_fd(tracer, task, fd, time);
	recorder_note_descriptor(tracer, task, fd, time);
	return file;
}

static void copy_text(struct tracer *tracer, struct task *task, struct call *call, unsigned n)
{
	struct call_data *data = &call->data[n];

	data->offset = call->bytes.len;
	if (call->args[n] &&
	    memory_read_string(tracer, task, call->args[n], PATH_MAX, &call->bytes) == 0)
		data->state = DATA_COPIED;
	data->len = call->bytes.len - data->offset;
}

/* @return whether the call is about a file that is recorded; what is left out is counted. */
static bool take_fields(struct tracer *tracer, struct task *task, struct frame *frame,
			const struct hook_moment *at)
{
	struct call *call = &frame->call;
	bool wanted = true;
	bool about_file = false;

	for (const struct hook_field *f = frame->hook->row->fields; f->kind != HOOK_END; f++) {
		switch (f->kind) {
		case HOOK_STREAM:
			about_file = true;
			/* fflush(NULL) is about all of them. */
			if (argument(frame, f->arg) == 0)
				about_file = false;
			else if (!at->regs)
				frame->file = file_of_fd(tracer, task, at->fd, call->start);
			else
				frame->file = file_of_stream(tracer, task, frame,
							     argument(frame, f->arg), call->start);
			break;
		case HOOK_STDIN:
		case HOOK_STDOUT:
		case HOOK_STDERR:
			about_file = true;
			frame->file = file_of_fd(tracer, task, f->kind - HOOK_STDIN, call->start);
			if (at->regs)
				recorder_note_descriptor(tracer, task, f->kind - HOOK_STDIN,
							 call->start);
			break;
		case HOOK_ON_FD:
			about_file = true;
			frame->file =
				file_of_fd(tracer, task, (int)argument(frame, f->arg), call->start);
			break;
		case HOOK_OPENS:
			about_file = false;
			copy_text(tracer, task, call, f->arg);
			if (call->data[f->arg].state == DATA_COPIED)
				frame->path = resolve_path(tracer, task, AT_FDCWD,
							   call_bytes(call, f->arg),
							   call->data[f->arg].len, call, &wanted);
			break;
		case HOOK_TEXT:
			copy_text(tracer, task, call, f->arg);
			break;
		case HOOK_FLUSHES:
			return false;
		default:
			break;
		}
	}
	if (about_file)
		return decode_file_is_recorded(tracer, task, frame->file);
	if (frame->path && !wanted) {
		task->process->skipped[SKIPPED_DATADIR]++;
		return false;
	}
	return true;
}

/* musl formats into strings, and dprintf into a descriptor, through a stream that it makes up; the program has
 * none. Only those lack the function that closes them (its stdio_impl.h). */
static bool is_made_up(struct tracer *tracer, struct task *task,
		       const struct hook_function *function, const struct hook_moment *at)
{
	uint64_t closer;

	if (function->layer != HOOK_STDIO || function->libc != OBJECT_MUSL)
		return false;
	for (const struct hook_field *f = function->row->fields; f->kind != HOOK_END; f++) {
		uint64_t stream = at->args[f->arg];
		if (f->kind == HOOK_STREAM && stream &&
		    memory_read(tracer, task, stream + MUSL_CLOSE, &closer, 8) == 8 && !closer)
			return true;
	}
	return false;
}

/* @return whether a call at `sp` is made by another one of the same layer: the outermost is the program's. */
static bool is_inner(const struct task *task, enum hook_layer layer, uint64_t sp)
{
	for (size_t i = 0; layer != HOOK_FUNC && i < task->nframes; i++) {
		const struct frame *outer = &task->frames[i];
		if (!outer->hook || outer->hook->layer != layer ||
		    !is_inside(outer, task->handlers, sp) ||
		    (outer->hook->row->serves & HOOK_CALLS_BACK))
			continue;
		/* A stream's call that is not recorded hides nothing. */
		if (layer != HOOK_STDIO || outer->record)
			return true;
	}
	return false;
}

/* The length of a string, which the event wants at the end: that may have been recorded, and be long over. */
static void measure(struct tracer *tracer, struct task *task, struct frame *frame,
		    const struct hook_moment *at)
{
	const struct hook_row *row = frame->hook->row;

	if (!frame->hook->recorded || !row ||
	    (row->bytes != HOOK_B_STRING && row->bytes != HOOK_B_LINE))
		return;
	frame->size_sum = at->length;
	frame->has_size = true;
	if (!at->regs)
		return;
	buf_clear(&tracer->text);
	frame->has_size = memory_read_string(tracer, task, frame->call.args[row->bytes_arg],
					     TEXT_MOST, &tracer->text) == 0;
	frame->size_sum = tracer->text.len;
}

static void read_arguments(struct tracer *tracer, struct task *task, struct frame *frame,
			   const struct hook_moment *at, bool inner)
{
	const struct hook_function *function = frame->hook;

	memcpy(frame->call.args, at->args, sizeof(frame->call.args));
	frame->record =
		!task->process->excluded && !inner && !function->silent && !function->only_chooses;
	if (function->layer == HOOK_STDIO)
		frame->record = frame->record && take_fields(tracer, task, frame, at);
	else if (function->row)
		library_begin(tracer, task, frame, at->regs, inner);
	if (frame->record)
		measure(tracer, task, frame, at);
}

void hook_call_begin(struct tracer *tracer, struct task *task, struct hook_function *function,
		     const struct hook_moment *at)
{
	uint64_t sp = at->sp;
	uint64_t return_address = at->return_address;

	if (tracer->pass_through)
		return;
	if (function->layer == HOOK_APP) {
		function->calls++;
		annotate(tracer, task, function->row, at->regs);
		return;
	}
	const struct frame *open = hook_call_at(task, sp, return_address);
	if (function->loops && open && open->hook == function)
		return;
	function->calls++;
	/* A call from where a frame stands deeper: that one has been left. At the same height it is a
	 * tail call if it returns to the same place, and otherwise the next call. */
	for (size_t i = task->nframes; i-- > 0;) {
		const struct frame *frame = &task->frames[i];
		bool next = frame->hook && frame->call.sp == sp &&
			    (frame->hook == function || frame->return_address != return_address);
		if (next || is_left(tracer, task, frame, sp))
			end_at(tracer, task, i, CALL_CUT, 0, at->time);
	}
	bool inner = is_inner(task, function->layer, sp);
	/* What streams do inside a call teaches nothing; other layers go on looking. */
	if ((inner && function->layer == HOOK_STDIO) || is_made_up(tracer, task, function, at))
		return;
	struct frame *frame = task_push(task);
	if (!frame) {
		tracer_end_recording(tracer, "out of memory");
		return;
	}
	frame->hook = function;
	frame->handlers = task->handlers;
	frame->return_address = return_address;
	frame->call.tid = task->tid;
	frame->call.sp = sp;
	frame->call.start = at->time;
	read_arguments(tracer, task, frame, at, inner);
	if (frame->record) {
		struct trace *trace = image_trace(tracer, task);
		frame->id = trace ? trace_next_id(trace) : 0;
		frame->record = trace != NULL;
	}
	if (at->regs)
		frame->call.start = clock_now(&tracer->clock);
}

static bool is_filled(const struct frame *frame)
{
	return frame->hook->row && frame->hook->row->bytes == HOOK_B_FILLED;
}

bool hook_call_end(struct tracer *tracer, struct task *task, const struct hook_moment *at)
{
	bool ended = false;

	/* A function and those that it has tail-called end together, the called ones first. */
	for (size_t i = task->nframes; i-- > 0;) {
		struct frame *frame = &task->frames[i];
		if (!frame->hook)
			continue;
		if (frame->call.sp == at->sp && frame->return_address == at->return_address) {
			if (!at->regs && is_filled(frame)) {
				frame->size_sum = at->length;
				frame->has_size = true;
			}
			end_at(tracer, task, i, CALL_DONE, at->result, at->time);
			ended = true;
		} else if (is_left(tracer, task, frame, at->sp)) {
			end_at(tracer, task, i, CALL_CUT, 0, at->time);
		}
	}
	return ended;
}

/* Bytes that the call has moved. @return false: none are to be told. */
static bool bytes_moved(struct tracer *tracer, struct task *task, struct frame *frame,
			uint64_t *sum)
{
	const struct hook_row *row = frame->hook->row;
	struct call *call = &frame->call;
	bool failed = row->result == HOOK_R_INT ? (int)call->ret < 0 : call->ret < 0;
	unsigned n = row->bytes_arg;

	if (row->result == HOOK_R_POINTER)
		failed = call->ret == 0;
	switch (row->bytes) {
	case HOOK_B_ITEMS:
		*sum = (uint64_t)call->ret * call->args[n];
		return true;
	case HOOK_B_RESULT:
		*sum = row->result == HOOK_R_INT ? (uint64_t)(int)call->ret : (uint64_t)call->ret;
		return !failed;
	case HOOK_B_ONE:
		*sum = 1;
		return !failed;
	case HOOK_B_STRING:
	case HOOK_B_LINE:
	case HOOK_B_FILLED:
		if (failed)
			return false;
		if (frame->has_size) {
			*sum = frame->size_sum + (row->bytes == HOOK_B_LINE);
			return true;
		}
		/* Read now: the program's string is as it was, and what the call filled in is there. */
		buf_clear(&tracer->text);
		if (memory_read_string(tracer, task, call->args[n], TEXT_MOST, &tracer->text) < 0)
			return false;
		*sum = tracer->text.len + (row->bytes == HOOK_B_LINE);
		return true;
	default:
		return false;
	}
}

static void add_field(struct event *event, const struct call *call, const struct hook_field *f)
{
	uint64_t value = call->args[f->arg];

	switch (f->kind) {
	case HOOK_ON_FD:
	case HOOK_INT:
		decode_int(event, f->key, (int)value);
		break;
	case HOOK_LONG:
		decode_int(event, f->key, (int64_t)value);
		break;
	case HOOK_SIZE:
		decode_uint(event, f->key, value);
		break;
	case HOOK_TEXT:
		if (call->data[f->arg].state == DATA_COPIED)
			decode_text(event, f->key, call_bytes(call, f->arg),
				    call->data[f->arg].len);
		break;
	default:
		break;
	}
}

static void add_result(struct event *event, const struct hook_row *row, int64_t result)
{
	switch (row->result) {
	case HOOK_R_INT:
		decode_int(event, "ret", (int)result);
		break;
	case HOOK_R_LONG:
		decode_int(event, "ret", result);
		break;
	case HOOK_R_POINTER:
		/* An address says nothing. */
		if (result == 0)
			decode_int(event, "ret", -1);
		break;
	default:
		break;
	}
}

static void add_user(struct event *event, const struct call *call, bool no_result)
{
	static const char *const keys[] = {"a0", "a1", "a2", "a3", "a4", "a5"};

	for (unsigned n = 0; n < 6; n++)
		decode_int(event, keys[n], (int64_t)call->args[n]);
	if (call->state == CALL_DONE && !no_result)
		decode_int(event, "ret", call->ret);
}

/* The stream that a call has made: what is done with its descriptor inside is known to be a stream's. */
static void note_stream(struct tracer *tracer, struct task *task, struct frame *frame)
{
	const struct hook_field *f = frame->hook->row->fields;

	if (frame->hook->row->result != HOOK_R_POINTER || frame->call.ret == 0 ||
	    (f->kind != HOOK_OPENS && f->kind != HOOK_END))
		return;
	struct file *file =
		file_of_stream(tracer, task, frame, (uint64_t)frame->call.ret, frame->call.end);
	if (!frame->path && file && file->name)
		frame->path = name_ref(file->name);
	file_unref(file);
}

static void stream_end(struct tracer *tracer, struct task *task, struct frame *frame,
		       struct event *event)
{
	const struct hook_row *row = frame->hook->row;
	bool done = frame->call.state == CALL_DONE && !frame->no_result;
	uint64_t sum;

	/* A call that only opens says no more at its end. */
	if (done)
		note_stream(tracer, task, frame);
	if (!event)
		return;
	for (const struct hook_field *f = row->fields; f->kind != HOOK_END; f++)
		add_field(event, &frame->call, f);
	if (!done)
		return;
	if (bytes_moved(tracer, task, frame, &sum))
		decode_uint(event, "size_sum", sum);
	add_result(event, row, frame->call.ret);
}

void hooks_end(struct tracer *tracer, struct task *task, struct frame *frame)
{
	bool written = frame->record && task->process->trace;
	const struct hook_library *library = hook_library(frame->hook->layer);
	struct event event;

	if (frame->hook->chooses && frame->call.state == CALL_DONE && !frame->no_result)
		hook_points_choose(tracer, task, frame->hook, (uint64_t)frame->call.ret);
	if (written) {
		decode_init(&event, task, frame);
		event.name = frame->hook->name;
		event.layer = library                            ? library->category
			      : frame->hook->layer == HOOK_STDIO ? LAYER_STDIO
								 : LAYER_FUNC;
	}
	if (library)
		library_end(tracer, task, frame, written ? &event : NULL);
	else if (frame->hook->layer == HOOK_STDIO)
		stream_end(tracer, task, frame, written ? &event : NULL);
	else if (written)
		add_user(&event, &frame->call, frame->no_result);
	if (!written)
		return;
	/* It may have been named only by its end. */
	event.file = frame->path ? frame->path : frame->file ? frame->file->name : NULL;
	if (frame->call.state == CALL_CUT)
		decode_int(&event, "cut", 1);
	decode_write(tracer, task, &event, frame, true);
}
