#include "tracer/decode.h"

#include "tracer/aio.h"
#include "tracer/arch/arch.h"
#include "tracer/effects.h"
#include "tracer/hooks/annotate.h"
#include "tracer/hooks/hooks.h"
#include "tracer/image.h"
#include "tracer/lost.h"
#include "tracer/resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>

#include <linux/close_range.h>
#include <sys/mman.h>
#include <sys/wait.h>

/* Upstream's numbers of open_how, clone_args and the like are not needed: the kernel's layout is read
 * with memcpy at these offsets (linux/openat2.h). */
#define OPEN_HOW_FLAGS 0
#define OPEN_HOW_MODE  8

struct subject {
	struct tracer *tracer;
	struct task *task;
	struct frame *frame;
	int dirfd;
	bool wanted; /* some path is held by the data directories */
	bool has_path;
	bool has_fd;
	bool hidden; /* /proc does not show the descriptor */
};

static bool is_anonymous_map(const struct call *call)
{
	return call->row->effect == EFFECT_MMAP && (call->args[3] & MAP_ANONYMOUS);
}

static struct file *take_fd(struct subject *s, unsigned arg)
{
	bool ambiguous;
	struct file *file = resolve_fd(s->tracer, s->task, (int)s->frame->call.args[arg],
				       s->frame->call.start, &ambiguous);

	s->has_fd = true;
	s->hidden |= !file && (errno == EACCES || errno == EPERM);
	if (ambiguous)
		s->task->process->lost[LOST_AMBIGUOUS]++;
	return file ? file_ref(file) : NULL;
}

/* @return whether an empty or null path makes the call one on its directory descriptor. */
static bool is_by_descriptor(const struct call *call, unsigned arg)
{
	const struct syscall_row *row = call->row;
	bool null = call->args[arg] == 0;
	bool empty = call->data[arg].state == DATA_COPIED && call->data[arg].len == 0;

	if (row->at_flags && (call->args[row->at_flags] & AT_EMPTY_PATH) && (null || empty))
		return true;
	return (null && row->null_is_fd) || (empty && row->empty_is_fd);
}

static struct name *take_path(struct subject *s, unsigned arg)
{
	const struct call *call = &s->frame->call;
	bool wanted = false;

	if (call->data[arg].state == DATA_UNREADABLE)
		s->frame->unreadable = true;
	if (call->data[arg].state != DATA_COPIED)
		return NULL;
	struct name *name = resolve_path(s->tracer, s->task, s->dirfd, call_bytes(call, arg),
					 call->data[arg].len, call, &wanted);
	s->wanted |= wanted;
	return name;
}

static void take_subject_path(struct subject *s, unsigned arg)
{
	struct frame *frame = s->frame;
	bool ambiguous;

	if (!is_by_descriptor(&frame->call, arg)) {
		s->has_path = true;
		frame->path = take_path(s, arg);
		frame->path_wanted = s->wanted;
		return;
	}
	frame->by_descriptor = true;
	if (frame->call.row->fd_name)
		frame->name = frame->call.row->fd_name;
	frame->dirfd = s->dirfd;
	if (s->dirfd == AT_FDCWD) {
		struct name *cwd = resolve_cwd(s->task, s->frame->call.source);
		s->has_path = true;
		frame->path = cwd ? name_ref(cwd) : NULL;
		s->wanted |= cwd && resolve_is_wanted(s->tracer, cwd->text, cwd->len);
		return;
	}
	struct file *file = resolve_fd(s->tracer, s->task, s->dirfd, frame->call.start, &ambiguous);
	s->has_fd = true;
	frame->file = file ? file_ref(file) : NULL;
}

/* A symbolic link's text; its NEW_PATH and DIRFD stand before it. */
static void take_target(struct subject *s, unsigned target)
{
	const struct call *call = &s->frame->call;
	unsigned link = call->row->nr == __NR_symlinkat ? 2 : 1;
	bool wanted = false;

	if (call->data[target].state == DATA_UNREADABLE)
		s->frame->unreadable = true;
	if (call->data[target].state != DATA_COPIED || call->data[link].state != DATA_COPIED)
		return;
	s->frame->path = resolve_target(s->tracer, s->task, s->dirfd, call_bytes(call, link),
					call->data[link].len, call_bytes(call, target),
					call->data[target].len, call, &wanted);
	s->wanted |= wanted;
}

static void take_subjects(struct subject *s)
{
	struct frame *frame = s->frame;
	const struct call *call = &frame->call;

	for (const struct field *f = call->row->fields; f->kind != FIELD_END; f++) {
		switch (f->kind) {
		case FIELD_FD:
			if (!is_anonymous_map(call))
				frame->file = take_fd(s, f->arg);
			break;
		case FIELD_OUT_FD:
			frame->out_file = take_fd(s, f->arg);
			break;
		case FIELD_DIRFD:
			s->dirfd = (int)call->args[f->arg];
			break;
		case FIELD_PATH:
			take_subject_path(s, f->arg);
			break;
		case FIELD_NEW_PATH:
			s->has_path = true;
			frame->new_path = take_path(s, f->arg);
			break;
		case FIELD_TARGET:
			take_target(s, f->arg);
			break;
		default:
			break;
		}
	}
}

static void choose_name(struct frame *frame)
{
	const struct syscall_row *row = frame->call.row;
	uint64_t flags = row->at_flags ? frame->call.args[row->at_flags] : 0;

	frame->name = row->written;
	if (row->nofollow_name && (flags & AT_SYMLINK_NOFOLLOW))
		frame->name = row->nofollow_name;
	if (row->rmdir_name && (flags & AT_REMOVEDIR))
		frame->name = row->rmdir_name;
}

static bool skip_is_recorded(const struct tracer *tracer, enum file_skip skip)
{
	switch (skip) {
	case FILE_RECORDED:
		return true;
	case FILE_SOCKET:
		return tracer->options->selection->network;
	default:
		return tracer->options->selection->ipc;
	}
}

static bool file_is_recorded(const struct tracer *tracer, const struct syscall_row *row,
			     const struct file *file)
{
	if (!file || file->outside)
		return false;
	/* These classes are on request and about the descriptor, whatever it is. */
	if (row->class == CLASS_NETWORK || row->class == CLASS_IOCTL)
		return true;
	return skip_is_recorded(tracer, file->skip);
}

bool decode_file_is_recorded(struct tracer *tracer, struct task *task, const struct file *file)
{
	uint64_t *skipped = task->process->skipped;

	if (!file) {
		skipped[SKIPPED_BADFD]++;
		return false;
	}
	if (!file->outside && skip_is_recorded(tracer, file->skip))
		return true;
	skipped[file->skip == FILE_RECORDED ? SKIPPED_DATADIR : skipped_for(file->skip)]++;
	return false;
}

static bool fd_is_recorded(const struct subject *s)
{
	const struct frame *frame = s->frame;
	const struct syscall_row *row = frame->call.row;
	const struct file *file = frame->file ? frame->file : frame->out_file;

	if (!file && s->hidden) {
		s->task->process->lost[LOST_UNREADABLE]++;
		return false;
	}
	if (file_is_recorded(s->tracer, row, frame->file) ||
	    file_is_recorded(s->tracer, row, frame->out_file))
		return true;
	/* It is not, and this counts why. */
	return decode_file_is_recorded(s->tracer, s->task, file);
}

/* Whether an event will be written; what is left out is counted. */
static bool is_recorded(const struct subject *s)
{
	const struct syscall_row *row = s->frame->call.row;
	const struct process *process = s->task->process;

	if (s->tracer->pass_through || process->excluded || !row->written)
		return false;
	if (!s->tracer->options->selection->rows[row - syscall_rows]) {
		s->task->process->skipped[SKIPPED_CLASS]++;
		return false;
	}
	if (is_anonymous_map(&s->frame->call))
		return s->tracer->options->selection->memory;
	if (row->always)
		return true;
	if (row->effect == EFFECT_CLONE)
		return !(effects_clone_flags(&s->frame->call) & CLONE_THREAD);
	if (s->has_fd)
		return fd_is_recorded(s);
	if (s->has_path && !s->wanted && s->tracer->options->ndata_dirs > 0 &&
	    row->effect != EFFECT_EXEC) {
		s->task->process->skipped[SKIPPED_DATADIR]++;
		return false;
	}
	return true;
}

void decode_begin(struct tracer *tracer, struct task *task, struct frame *frame)
{
	struct subject s = {.tracer = tracer, .task = task, .frame = frame, .dirfd = AT_FDCWD};

	choose_name(frame);
	take_subjects(&s);
	frame->record = is_recorded(&s);
	effects_begin(tracer, task, frame);
	if (frame->record) {
		struct trace *trace = image_trace(tracer, task);
		frame->id = trace ? trace_next_id(trace) : 0;
		frame->record = trace != NULL;
	}
	frame->needs_exit = frame->record || effects_need_exit(frame);
	if (tracer->options->names_kernel)
		frame->name = frame->call.row->kernel;
}

static struct event_arg *add_arg(struct event *event, const char *key, enum event_arg_kind kind)
{
	struct event_arg *arg = &event->args[event->nargs];

	if (event->nargs < EVENT_MAX_ARGS - 1)
		event->nargs++;
	arg->name = key;
	arg->kind = kind;
	return arg;
}

void decode_int(struct event *event, const char *key, int64_t value)
{
	add_arg(event, key, EVENT_INT)->value.i = value;
}

void decode_uint(struct event *event, const char *key, uint64_t value)
{
	add_arg(event, key, EVENT_UINT)->value.u = value;
}

void decode_text(struct event *event, const char *key, const char *bytes, size_t len)
{
	struct event_arg *arg = add_arg(event, key, EVENT_STRING);

	arg->value.string.bytes = bytes;
	arg->value.string.len = len;
}

static void add_name(struct event *event, const char *key, struct name *name)
{
	if (name)
		add_arg(event, key, EVENT_NAME)->value.ref = name;
}

void decode_result(struct event *event, int64_t ret)
{
	if (ret < 0 && ret >= -4095) {
		decode_int(event, "ret", -1);
		decode_int(event, "errno", -ret);
	} else {
		decode_int(event, "ret", ret);
	}
}

static bool creates(uint64_t flags)
{
	return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
}

static void add_field(struct event *event, const struct frame *frame, const struct field *f)
{
	const struct call *call = &frame->call;
	uint64_t value = call->args[f->arg];
	int64_t offset;
	uint64_t sum;

	switch (f->kind) {
	case FIELD_FD:
	case FIELD_OUT_FD:
		if (is_anonymous_map(call))
			return;
		decode_int(event, f->key, (int)value);
		return;
	case FIELD_PATH:
		if (frame->by_descriptor && call->row->fd_name && frame->dirfd != AT_FDCWD)
			decode_int(event, "fd", frame->dirfd);
		return;
	case FIELD_NEW_PATH:
		add_name(event, "newpath_hash", frame->new_path);
		return;
	case FIELD_IOVEC:
		decode_int(event, "iovcnt", (int)call->args[f->arg + 1]);
		if (call_has(call, f->arg, sizeof(sum))) {
			memcpy(&sum, call_bytes(call, f->arg), sizeof(sum));
			decode_uint(event, "count", sum);
		}
		return;
	case FIELD_OFFSET_AT:
		if (call_has(call, f->arg, sizeof(offset))) {
			memcpy(&offset, call_bytes(call, f->arg), sizeof(offset));
			decode_int(event, f->key, offset);
		}
		return;
	case FIELD_TEXT:
		if (call->data[f->arg].state == DATA_COPIED)
			decode_text(event, f->key, call_bytes(call, f->arg),
				    call->data[f->arg].len);
		return;
	case FIELD_MODE:
		if (!creates(call->args[call->row->flags]))
			return;
		decode_uint(event, f->key, (uint32_t)value);
		return;
	case FIELD_NZ32:
		/* The flag that makes it the descriptor's call says nothing more. */
		if ((uint32_t)value == 0 || (frame->by_descriptor && call->row->fd_name))
			return;
		decode_uint(event, f->key, (uint32_t)value);
		return;
	default:
		break;
	}
	if (!f->key)
		return;
	if (f->kind == FIELD_INT)
		decode_int(event, f->key, (int)value);
	else if (f->kind == FIELD_LONG)
		decode_int(event, f->key, (int64_t)value);
	else if (f->kind == FIELD_U32)
		decode_uint(event, f->key, (uint32_t)value);
	else
		decode_uint(event, f->key, value);
}

static void add_fcntl(struct event *event, const struct call *call)
{
	switch ((int)call->args[1]) {
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
	case F_SETFD:
	case F_SETFL:
	case F_SETOWN:
	case F_SETSIG:
	case F_SETLEASE:
	case F_NOTIFY:
	case F_SETPIPE_SZ:
	case F_ADD_SEALS:
		decode_int(event, "arg", (int)call->args[2]);
		break;
	default:
		break; /* no argument, or a pointer, which says nothing */
	}
}

static void add_wait(struct event *event, const struct call *call)
{
	int pid = (int)call->args[1];
	int status;
	int waited;

	if (call->row->effect == EFFECT_WAIT4) {
		if (call->ret > 0 && call_has(call, 1, sizeof(status))) {
			memcpy(&status, call_bytes(call, 1), sizeof(status));
			decode_int(event, "status", status);
		}
		return;
	}
	/* siginfo_t as the kernel fills it: si_pid at 16, si_status at 24 (asm-generic/siginfo.h) */
	if (call->args[0] == P_PID)
		decode_int(event, "pid", pid);
	if (call->ret == 0 && call_has(call, 2, 28)) {
		memcpy(&waited, call_bytes(call, 2) + 16, sizeof(waited));
		memcpy(&status, call_bytes(call, 2) + 24, sizeof(status));
		if (waited)
			decode_int(event, "status", status);
	}
}

/* Arguments that no field of the row can say. */
static void add_special(struct event *event, const struct call *call)
{
	uint64_t how[2];
	int fds[2];

	switch (call->row->effect) {
	case EFFECT_OPENAT2:
		if (!call_has(call, 2, sizeof(how)))
			break;
		memcpy(how, call_bytes(call, 2), sizeof(how));
		decode_uint(event, "flags", how[OPEN_HOW_FLAGS / 8]);
		if (creates(how[OPEN_HOW_FLAGS / 8]))
			decode_uint(event, "mode", how[OPEN_HOW_MODE / 8]);
		break;
	case EFFECT_CREAT:
		decode_uint(event, "flags", O_CREAT | O_WRONLY | O_TRUNC);
		decode_uint(event, "mode", (uint32_t)call->args[1]);
		break;
	case EFFECT_FCNTL:
		add_fcntl(event, call);
		break;
	case EFFECT_CLONE:
		decode_uint(event, "flags", effects_clone_flags(call));
		if (call->child)
			decode_int(event, "child", call->child);
		break;
	case EFFECT_PIPE:
		if (call_has(call, 0, sizeof(fds))) {
			memcpy(fds, call_bytes(call, 0), sizeof(fds));
			decode_int(event, "read_fd", fds[0]);
			decode_int(event, "write_fd", fds[1]);
		}
		break;
	case EFFECT_WAIT4:
	case EFFECT_WAITID:
		add_wait(event, call);
		break;
	default:
		break;
	}
}

static void add_ret(struct event *event, const struct call *call)
{
	if (call->state == CALL_CUT) {
		decode_int(event, "cut", 1);
	} else if (call_failed(call) || call->row->ret == RET_ALWAYS) {
		decode_result(event, call->ret);
	} else if (call->row->ret == RET_LENGTH) {
		decode_int(event, "len", call->ret);
	}
}

/* A position of -1 means the file's own; that is no offset to report. */
static bool is_current_position(const struct call *call, const struct field *f)
{
	return (call->row->nr == __NR_preadv2 || call->row->nr == __NR_pwritev2) &&
	       f->kind == FIELD_LONG && (int64_t)call->args[f->arg] == -1;
}

void decode_init(struct event *event, struct task *task, const struct frame *frame)
{
	event->layer = hooks_layer(task, frame);
	event->name = frame->name;
	event->pid = task->process->pid;
	event->tid = frame->call.tid;
	event->start = frame->call.start;
	event->end = frame->call.end;
	event->id = frame->id;
	event->file = frame->path;
	if (!event->file && frame->file)
		event->file = frame->file->name;
	event->nargs = 0;
	event->nfirst = 0;
}

static void write_frame(struct tracer *tracer, struct task *task, const struct frame *frame)
{
	const struct call *call = &frame->call;
	const struct syscall_row *row = call->row;
	struct event event;

	decode_init(&event, task, frame);
	for (const struct field *f = row->fields; f->kind != FIELD_END; f++) {
		if (!is_current_position(call, f))
			add_field(&event, frame, f);
	}
	if (frame->out_file)
		add_name(&event, "out_fhash", frame->out_file->name);
	add_special(&event, call);
	add_ret(&event, call);
	bool execed = row->effect == EFFECT_EXEC && call->state == CALL_DONE && !call_failed(call);
	decode_write(tracer, task, &event, frame, !row->minor && !execed);
}

/* A close_range is a close of each descriptor whose calls are recorded. */
static void write_close_range(struct tracer *tracer, struct task *task, const struct frame *frame)
{
	const struct call *call = &frame->call;
	struct event event;
	bool first = true;

	for (size_t i = 0; i < frame->nclosing; i++) {
		const struct closing *closing = &frame->closing[i];
		if (!file_is_recorded(tracer, call->row, closing->file))
			continue;
		decode_init(&event, task, frame);
		if (!first)
			event.id = trace_next_id(task->process->trace);
		first = false;
		event.file = closing->file->name;
		decode_int(&event, "fd", closing->fd);
		add_ret(&event, call);
		decode_write(tracer, task, &event, frame, true);
	}
}

void decode_nest(const struct task *task, struct event *event, const struct frame *self)
{
	const struct region *region = self ? annotations_around(task, event->id) : NULL;

	event->parent = region ? region->id : 0;
	event->level = region ? region->level + 1 : 1;
	for (size_t i = 0; self && i < task->nframes; i++) {
		const struct frame *below = &task->frames[i];
		/* What is around a region counts in its level. */
		if (!below->record || below->id >= event->id || (region && below->id < region->id))
			continue;
		if (below->hook ? hook_is_around(below, self) : below->interrupted) {
			event->parent = below->id;
			event->level++;
		}
	}
}

void decode_name_thread(struct tracer *tracer, struct trace *trace, pid_t tid)
{
	const char *comm = trace_thread_is_new(trace, tid) ? image_comm(tracer, tid) : NULL;

	if (comm)
		trace_thread(trace, tid, comm);
}

void decode_write(struct tracer *tracer, struct task *task, struct event *event,
		  const struct frame *self, bool data)
{
	struct trace *trace = task->process->trace;

	decode_nest(task, event, self);
	decode_name_thread(tracer, trace, event->tid);
	trace_event(trace, event, data && task->process->started);
}

/* Paths that turned out not to be the program's own memory. */
static void forget_unreadable(struct frame *frame)
{
	const struct call *call = &frame->call;

	for (const struct field *f = call->row->fields; f->kind != FIELD_END; f++) {
		if (call->data[f->arg].state != DATA_UNREADABLE)
			continue;
		struct name **path = f->kind == FIELD_NEW_PATH ? &frame->new_path : &frame->path;
		if (f->kind == FIELD_PATH || f->kind == FIELD_NEW_PATH || f->kind == FIELD_TARGET) {
			name_unref(*path);
			*path = NULL;
		}
	}
}

void decode_end(struct tracer *tracer, struct task *task, struct frame *frame)
{
	const struct call *call = &frame->call;

	if (call->state == CALL_DONE && call->ret == -EFAULT)
		forget_unreadable(frame);
	effects_end(tracer, task, frame);
	if (frame->unreadable && !(call->state == CALL_DONE && call->ret == -EFAULT))
		task->process->lost[LOST_UNREADABLE]++;
	if (!frame->record || !task->process->trace)
		return;
	if (call->row->effect != EFFECT_CLOSE_RANGE)
		write_frame(tracer, task, frame);
	else if (call->state == CALL_DONE && !(call->args[2] & CLOSE_RANGE_CLOEXEC))
		write_close_range(tracer, task, frame);
	if (call->row->effect == EFFECT_AIO_REAP && call->state == CALL_DONE)
		aio_reaped(tracer, task, frame);
}

void decode_cut(struct tracer *tracer, struct task *task, size_t keep, uint64_t now)
{
	while (task->nframes > keep) {
		struct frame *frame = task_top(task);
		frame->call.state = CALL_CUT;
		frame->call.end = now;
		if (frame->hook)
			hooks_end(tracer, task, frame);
		else
			decode_end(tracer, task, frame);
		task_pop(task);
	}
}
