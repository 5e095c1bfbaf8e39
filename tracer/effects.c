#include "tracer/effects.h"

#include "base/path.h"
#include "base/proc.h"
#include "tracer/aio.h"
#include "tracer/arch/arch.h"
#include "tracer/refused.h"
#include "tracer/resolve.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/io_uring.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

uint64_t effects_clone_flags(const struct call *call)
{
	uint64_t flags = 0;

	switch (call->row->nr) {
	case __NR_clone:
		return call->args[0];
	case __NR_vfork:
		return CLONE_VM | CLONE_VFORK | SIGCHLD;
	case __NR_clone3:
		if (call_has(call, 0, sizeof(flags)))
			memcpy(&flags, call_bytes(call, 0), sizeof(flags));
		return flags;
	default:
		return SIGCHLD;
	}
}

/* Descriptors that a close_range closes: those in the table, and those only /proc knows. */
static void collect_closing(struct tracer *tracer, struct task *task, struct frame *frame)
{
	const struct call *call = &frame->call;
	unsigned first = (unsigned)call->args[0];
	unsigned last = (unsigned)call->args[1];
	char path[64];
	struct dirent *entry;
	size_t cap = 0;
	bool ambiguous;

	snprintf(path, sizeof(path), "/proc/%d/fd", task->tid);
	DIR *dir = opendir(path);
	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		unsigned fd = (unsigned)strtoul(entry->d_name, NULL, 10);
		if (entry->d_name[0] == '.' || fd < first || fd > last)
			continue;
		struct file *file = resolve_fd(tracer, task, (int)fd, call->start, &ambiguous);
		if (!file)
			continue;
		if (frame->nclosing == cap) {
			cap = cap ? cap * 2 : 16;
			struct closing *more = realloc(frame->closing, cap * sizeof(*more));
			if (!more)
				break;
			frame->closing = more;
		}
		frame->closing[frame->nclosing++] = (struct closing){(int)fd, file_ref(file)};
	}
	closedir(dir);
}

static void begin_close_range(struct tracer *tracer, struct task *task, struct frame *frame)
{
	const struct call *call = &frame->call;

	collect_closing(tracer, task, frame);
	/* With UNSHARE it is the copy that loses them; with CLOEXEC nobody does yet. */
	if (call->args[2])
		return;
	for (size_t i = 0; i < frame->nclosing; i++)
		files_close(task->files, frame->closing[i].fd, call->start, false);
}

void effects_begin(struct tracer *tracer, struct task *task, struct frame *frame)
{
	const struct call *call = &frame->call;

	frame->closed_at = call->start;
	switch (call->row->effect) {
	case EFFECT_CLOSE:
		files_close(task->files, (int)call->args[0], call->start, false);
		break;
	case EFFECT_DUP2:
		if ((int)call->args[0] != (int)call->args[1])
			files_close(task->files, (int)call->args[1], call->start, true);
		break;
	case EFFECT_CLOSE_RANGE:
		begin_close_range(tracer, task, frame);
		break;
	case EFFECT_OWN_FILTER:
		/* From here on its memory is closed to us, and breakpoints could not be got over. */
		if (call->row->nr == __NR_prctl && (int)call->args[0] == PR_SET_DUMPABLE &&
		    call->args[1] == 0 && !proc_capable(CAP_SYS_PTRACE))
			hooks_withdraw(tracer, task);
		break;
	case EFFECT_MMAP:
		if (!(call->args[3] & MAP_ANONYMOUS))
			hooks_file_mapped(task);
		break;
	case EFFECT_MPROTECT:
		frame->brings_code = (call->args[2] & PROT_EXEC) &&
				     hooks_expect_code(tracer, task, call->args[0], call->args[1]);
		break;
	case EFFECT_MREMAP:
		frame->brings_code = (call->args[3] & MREMAP_FIXED) &&
				     hooks_begin_move(tracer, task, call->args[0], call->args[1],
						      call->args[4], call->args[2]);
		break;
	case EFFECT_SIGMASK:
		forced_sigmask(task, call);
		break;
	case EFFECT_SIGACTION:
		forced_sigaction(task->process, call);
		break;
	default:
		break;
	}
}

bool effects_own_filter(const struct tracer *tracer, uint64_t nr, const uint64_t args[6])
{
	if (nr == __NR_prctl && (int)args[0] == PR_SET_SYSCALL_USER_DISPATCH)
		return args[1] != PR_SYS_DISPATCH_OFF;
	if (!tracer->filter)
		return false;
	if (nr == __NR_prctl)
		return (int)args[0] == PR_SET_SECCOMP;
	return args[0] == SECCOMP_SET_MODE_STRICT || args[0] == SECCOMP_SET_MODE_FILTER;
}

bool effects_need_exit(const struct frame *frame)
{
	const struct call *call = &frame->call;
	int cmd;

	switch (call->row->effect) {
	case EFFECT_OPEN:
	case EFFECT_OPENAT2:
	case EFFECT_CREAT:
	case EFFECT_OPEN_HANDLE:
	case EFFECT_CLOSE_RANGE:
	case EFFECT_DUP:
	case EFFECT_DUP2:
	case EFFECT_CHDIR:
	case EFFECT_RENAME:
	case EFFECT_CHROOT:
	case EFFECT_CLONE:
	case EFFECT_EXEC:
	case EFFECT_UNSHARE:
	case EFFECT_URING_SETUP:
	case EFFECT_URING_ENTER:
	case EFFECT_OWN_FILTER:
	case EFFECT_PTRACE:
		return true;
	case EFFECT_FCNTL:
		cmd = (int)call->args[1];
		return cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC || cmd == F_SETFD;
	case EFFECT_IOCTL:
		return call->args[1] == FIOCLEX || call->args[1] == FIONCLEX;
	case EFFECT_MMAP:
		return (call->args[2] & PROT_EXEC) && !(call->args[3] & MAP_ANONYMOUS);
	case EFFECT_MPROTECT:
	case EFFECT_MREMAP:
		return frame->brings_code;
	default:
		return false;
	}
}

/* What was recorded inside the program may be closed again, its descriptor another file's; but only in few places
 * there is more than files. */
static enum file_skip opened_kind(const struct task *task, const struct frame *frame)
{
	const struct name *path = frame->path;

	if (frame->call.source == CALL_FROM_RECORDER && !path_is_below(path->text, "/dev") &&
	    !path_is_below(path->text, "/proc"))
		return FILE_RECORDED;
	return resolve_opened(task, (int)frame->call.ret);
}

static void opened(struct tracer *tracer, struct task *task, struct frame *frame, bool cloexec)
{
	const struct call *call = &frame->call;
	int fd = (int)call->ret;
	struct file *file;

	if (frame->path) {
		file = file_new(frame->path, opened_kind(task, frame));
		if (file)
			file->outside = !frame->path_wanted;
	} else {
		/* A path that could not be read, or a handle: only /proc can tell. It was opened
		 * by the program all the same. */
		file = resolve_proc_fd(tracer, task, fd);
		if (!file) {
			file = file_new(NULL, FILE_RECORDED);
			if (file)
				file->outside = tracer->options->ndata_dirs > 0;
		} else {
			file->skip = resolve_opened(task, fd);
			frame->path = name_ref(file->name);
		}
	}
	if (!file || files_open(task->files, fd, file, cloexec, call->end) < 0)
		tracer_end_recording(tracer, "out of memory");
	file_unref(file);
}

static void end_open(struct tracer *tracer, struct task *task, struct frame *frame)
{
	const struct call *call = &frame->call;
	uint64_t flags = 0;

	switch (call->row->effect) {
	case EFFECT_OPENAT2:
		if (call_has(call, 2, sizeof(flags)))
			memcpy(&flags, call_bytes(call, 2), sizeof(flags));
		break;
	case EFFECT_CREAT:
		break;
	default:
		flags = call->args[call->row->flags];
	}
	opened(tracer, task, frame, flags & O_CLOEXEC);
}

/* A descriptor that is a copy of the frame's file. */
static void end_dup(struct tracer *tracer, struct task *task, struct frame *frame, bool cloexec)
{
	if (frame->file && files_open(task->files, (int)frame->call.ret, frame->file, cloexec,
				      frame->call.end) < 0)
		tracer_end_recording(tracer, "out of memory");
}

static void end_fcntl(struct tracer *tracer, struct task *task, struct frame *frame)
{
	const struct call *call = &frame->call;

	switch ((int)call->args[1]) {
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
		end_dup(tracer, task, frame, (int)call->args[1] == F_DUPFD_CLOEXEC);
		break;
	case F_SETFD:
		files_set_cloexec(task->files, (int)call->args[0], call->args[2] & FD_CLOEXEC);
		break;
	default:
		break;
	}
}

static int own_files(struct task *task, uint64_t time)
{
	struct files *copy = files_copy(task->files, time);
	if (!copy)
		return -1;
	files_unref(task->files);
	task->files = copy;
	return 0;
}

static void end_close_range(struct tracer *tracer, struct task *task, struct frame *frame)
{
	const struct call *call = &frame->call;
	uint64_t flags = call->args[2];

	if ((flags & CLOSE_RANGE_UNSHARE) && own_files(task, call->end) < 0)
		tracer_end_recording(tracer, "out of memory");
	for (size_t i = 0; i < frame->nclosing; i++) {
		if (flags & CLOSE_RANGE_CLOEXEC)
			files_set_cloexec(task->files, frame->closing[i].fd, true);
		else if (flags & CLOSE_RANGE_UNSHARE)
			files_close(task->files, frame->closing[i].fd, call->end, false);
	}
}

static void end_unshare(struct tracer *tracer, struct task *task, const struct call *call)
{
	if ((call->args[0] & CLONE_FILES) && own_files(task, call->end) < 0)
		tracer_end_recording(tracer, "out of memory");
	/* New namespaces come with a root and cwd of their own. */
	if (call->args[0] & (CLONE_FS | CLONE_NEWNS | CLONE_NEWUSER)) {
		struct fs *copy = fs_copy(task->fs);
		if (copy) {
			fs_unref(task->fs);
			task->fs = copy;
			copy->root_known = false;
		}
	}
}

static void end_chdir(struct task *task, const struct frame *frame)
{
	struct name *told = frame->path;

	if (frame->file)
		told = frame->file->name;
	/* What the call said, in case /proc does not tell. */
	if (told && told->text[0] == '/') {
		name_unref(task->fs->cwd);
		task->fs->cwd = name_ref(told);
	}
	resolve_cwd(task, CALL_FROM_STOPS);
}

/* The call has failed: what effects_begin closed is open as before. */
static void undo(struct task *task, const struct frame *frame)
{
	const struct call *call = &frame->call;

	switch (call->row->effect) {
	case EFFECT_DUP2:
		files_restore(task->files, (int)call->args[1], frame->closed_at);
		break;
	case EFFECT_CLOSE:
		if (call->ret == -EBADF)
			files_restore(task->files, (int)call->args[0], frame->closed_at);
		break;
	case EFFECT_CLOSE_RANGE:
		for (size_t i = 0; i < frame->nclosing; i++)
			files_restore(task->files, frame->closing[i].fd, frame->closed_at);
		break;
	default:
		break;
	}
}

static void notify_mapped(struct tracer *tracer, struct task *task, uint64_t address,
			  uint64_t length)
{
	struct observer *o;

	STAILQ_FOREACH (o, &tracer->observers, link) {
		if (o->mapped)
			o->mapped(o, tracer, task, address, length);
	}
}

/* The breakpoints of what has moved go before the rest come back. */
static void end_move(struct tracer *tracer, struct task *task, const struct call *call)
{
	if (call->state == CALL_DONE && !call_failed(call))
		notify_mapped(tracer, task, (uint64_t)call->ret, call->args[2]);
	hooks_end_move(tracer, task);
}

static void end_uring_setup(struct task *task, const struct call *call)
{
	uint32_t flags;

	/* struct io_uring_params: flags are its third word. A kernel thread takes what is submitted
	 * there, and no call shows how much. */
	if (!call_has(call, 1, 12))
		return;
	memcpy(&flags, call_bytes(call, 1) + 8, sizeof(flags));
	if (flags & IORING_SETUP_SQPOLL)
		task->process->lost[LOST_IO_URING]++;
}

void effects_end(struct tracer *tracer, struct task *task, struct frame *frame)
{
	const struct call *call = &frame->call;

	if (call->row->effect == EFFECT_MREMAP && frame->brings_code)
		end_move(tracer, task, call);
	if (call->state != CALL_DONE)
		return;
	if (call_failed(call)) {
		undo(task, frame);
		refused_note(tracer, task, call);
		return;
	}
	switch (call->row->effect) {
	case EFFECT_OPEN:
	case EFFECT_OPENAT2:
	case EFFECT_CREAT:
	case EFFECT_OPEN_HANDLE:
		end_open(tracer, task, frame);
		break;
	case EFFECT_DUP:
		end_dup(tracer, task, frame, false);
		break;
	case EFFECT_DUP2:
		files_replaced(task->files, (int)call->args[1]);
		if ((int)call->args[0] != (int)call->args[1])
			end_dup(tracer, task, frame,
				call->row->flags && (call->args[2] & O_CLOEXEC));
		break;
	case EFFECT_FCNTL:
		end_fcntl(tracer, task, frame);
		break;
	case EFFECT_IOCTL:
		if (call->args[1] == FIOCLEX || call->args[1] == FIONCLEX)
			files_set_cloexec(task->files, (int)call->args[0],
					  call->args[1] == FIOCLEX);
		break;
	case EFFECT_CLOSE_RANGE:
		end_close_range(tracer, task, frame);
		break;
	case EFFECT_CHDIR:
		end_chdir(task, frame);
		break;
	case EFFECT_RENAME:
		resolve_renamed(tracer, task, call);
		break;
	case EFFECT_CHROOT:
		task->fs->root_known = false;
		break;
	case EFFECT_UNSHARE:
		end_unshare(tracer, task, call);
		break;
	case EFFECT_MMAP:
		if (call->args[3] & MAP_ANONYMOUS)
			break;
		/* Others may have looked since it began. */
		hooks_file_mapped(task);
		if (call->args[2] & PROT_EXEC)
			notify_mapped(tracer, task, (uint64_t)call->ret, call->args[1]);
		break;
	case EFFECT_MPROTECT:
		if (frame->brings_code)
			notify_mapped(tracer, task, call->args[0], call->args[1]);
		break;
	case EFFECT_AIO_SUBMIT:
		aio_submitted(tracer, task, frame);
		break;
	case EFFECT_OWN_FILTER:
		if (effects_own_filter(tracer, (uint64_t)call->row->nr, call->args))
			task->process->lost[LOST_OWN_FILTER]++;
		break;
	case EFFECT_URING_SETUP:
		end_uring_setup(task, call);
		break;
	case EFFECT_URING_ENTER:
		task->process->lost[LOST_IO_URING] += (uint64_t)call->ret;
		break;
	default:
		break;
	}
}
