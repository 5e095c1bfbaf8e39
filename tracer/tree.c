/* The tree of tasks: how they come, change their program, and go. Everything follows from the events
 * that the kernel reports, in whatever order they come. */
#include "base/proc.h"
#include "tracer/aio.h"
#include "tracer/arch/arch.h"
#include "tracer/decode.h"
#include "tracer/effects.h"
#include "tracer/hooks/annotate.h"
#include "tracer/image.h"
#include "tracer/loop.h"
#include "tracer/memory.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>

#include <sys/ptrace.h>
#include <sys/wait.h>

/* How long a new task waits for its parent's event before it is taken in without. */
#define HOLD_LIMIT 200000000

/* How long after a signal that asks for its end a rank's end is not to be seen. */
#define SIGNAL_GRACE 100000000

static void out_of_memory(struct tracer *tracer)
{
	tracer_end_recording(tracer, "out of memory");
}

/* @return a task in the table, NULL with errno ENOMEM. */
static struct task *add_task(struct tracer *tracer, pid_t tid)
{
	struct task *task = task_new(tid);

	if (task && map_put(&tracer->tasks, (uint64_t)tid, task) < 0) {
		task_free(task);
		return NULL;
	}
	return task;
}

static void remove_task(struct tracer *tracer, struct task *task)
{
	if (task->state == TASK_NEW)
		tracer->held--;
	if (task->leaves)
		tracer->leaving--;
	if (task->process && task->process->threads > 0)
		task->process->threads--;
	map_remove(&tracer->tasks, (uint64_t)task->tid);
	task_free(task);
}

/* Completes what could not be inherited. @return 0, or -1 with errno ENOMEM. */
static int fill_objects(struct tracer *tracer, struct task *task, const struct process *parent)
{
	if (!task->mm)
		task->mm = mm_new();
	if (!task->files)
		task->files = files_new();
	if (!task->fs)
		task->fs = fs_new();
	if (!task->process) {
		task->process = image_fork(tracer, parent, task->tid);
		if (task->process &&
		    map_put(&tracer->processes, (uint64_t)task->tid, task->process) < 0) {
			process_unref(task->process);
			task->process = NULL;
		}
	}
	if (!task->mm || !task->files || !task->fs || !task->process)
		return -1;
	task->process->threads++;
	return 0;
}

int tree_seized(struct tracer *tracer, pid_t pid)
{
	struct task *task = add_task(tracer, pid);

	if (!task)
		return -1;
	task->state = TASK_RUNNING;
	task->before_exec = true;
	task->first_syscall = true;
	tracer->main_pid = pid;
	if (fill_objects(tracer, task, NULL) < 0)
		return -1;
	task->process->is_main = true;
	tracer->images = 0; /* dftrace-run itself is none */
	return 0;
}

/* Both are in: the new task may run. */
static void start(struct tracer *tracer, struct task *task, struct task *parent)
{
	bool is_thread = task->process->pid != task->tid;
	struct observer *o;

	tracer->held--;
	task->state = TASK_STOPPED;
	task->first_syscall = true;
	memory_open(tracer, task);
	if (task->clone_args)
		memory_write(task, task->clone_args, &task->clone_flags, sizeof(task->clone_flags));
	STAILQ_FOREACH (o, &tracer->observers, link) {
		if (is_thread && o->thread_start)
			o->thread_start(o, tracer, task);
		if (!is_thread && o->child_first_stop)
			o->child_first_stop(o, tracer, parent, task);
	}
	if (task->held_sig)
		signals_group_stop(tracer, task, task->held_sig);
	else
		loop_restart(tracer, task, 0);
}

static struct mm *copy_mm(const struct mm *mm)
{
	struct mm *copy = mm_new();
	if (copy) {
		copy->hooks = hook_space_copy(mm->hooks);
		if (mm->hooks && !copy->hooks) {
			mm_unref(copy);
			return NULL;
		}
		copy->recorder = recorder_space_copy(mm->recorder);
		copy->entry = mm->entry;
		copy->entry_byte = mm->entry_byte;
		copy->entry_pending = mm->entry_pending;
		copy->entry_placed = mm->entry_placed;
		copy->vdso = mm->vdso;
		copy->syscall_ip = mm->syscall_ip;
	}
	return copy;
}

/* Gives a new task what the kernel made it share or copy. */
static int inherit(struct tracer *tracer, struct task *parent, struct task *child, uint64_t flags,
		   uint64_t now)
{
	struct process *process = parent->process;
	const struct process *forker = process;

	child->mm = flags & CLONE_VM ? mm_ref(parent->mm) : copy_mm(parent->mm);
	child->files =
		flags & CLONE_FILES ? files_ref(parent->files) : files_copy(parent->files, now);
	child->fs = flags & CLONE_FS ? fs_ref(parent->fs) : fs_copy(parent->fs);
	child->before_exec = parent->before_exec;
	child->forced_blocked = parent->forced_blocked;
	child->stack_top = parent->stack_top;
	if (flags & CLONE_THREAD)
		child->process = process_ref(process);
	if (fill_objects(tracer, child, forker) < 0)
		return -1;
	/* One that shares the memory is about to execute something else. */
	if (!(flags & CLONE_VM) && annotations_fork(process, child->process, now) < 0)
		return -1;
	if ((flags & CLONE_PARENT) && !(flags & CLONE_THREAD))
		child->process->ppid = process->ppid;
	return 0;
}

/* A task that is killed in an event's stop may be on in that of its exit, whose message is another: an exit
 * code, which can look like the number of a task. @return the event's message, 0: not to be had any more. */
static pid_t event_message(pid_t tid, int event)
{
	unsigned long message = 0;
	siginfo_t info;

	if (ptrace(PTRACE_GETEVENTMSG, tid, NULL, &message) < 0 ||
	    ptrace(PTRACE_GETSIGINFO, tid, NULL, &info) < 0 ||
	    info.si_code != (event << 8 | SIGTRAP))
		return 0;
	return (pid_t)message;
}

void tree_new_child(struct tracer *tracer, struct task *parent, const struct status *status)
{
	int event = status->value >> 8;
	uint64_t flags = event == PTRACE_EVENT_VFORK ? CLONE_VM | CLONE_VFORK : 0;
	struct frame *frame = task_top(parent);
	pid_t tid = event_message(parent->tid, event);

	if (tid == 0) {
		loop_restart(tracer, parent, 0);
		return;
	}
	if (parent->want_exit && frame && frame->call.row->effect == EFFECT_CLONE) {
		frame->call.child = tid;
		flags = effects_clone_flags(&frame->call);
	} else if (event == PTRACE_EVENT_CLONE) {
		/* Not seen from its entry (a call of another architecture, or recording has ended). */
		flags = CLONE_VM | CLONE_FILES | CLONE_FS | CLONE_THREAD;
	}
	struct task *child = map_get(&tracer->tasks, (uint64_t)tid);
	if (!child) {
		child = add_task(tracer, tid);
		if (child) {
			tracer->held++;
			child->held_since = status->time;
		}
	}
	if (!child) {
		out_of_memory(tracer);
	} else if (child->state == TASK_NEW && !child->parent_event_in) {
		child->parent_event_in = true;
		if (frame && frame->untraced_cleared && frame->call.row->nr == __NR_clone3) {
			child->clone_args = frame->call.args[0];
			child->clone_flags = flags;
		}
		if (inherit(tracer, parent, child, flags, status->time) < 0)
			out_of_memory(tracer);
		else if (child->first_stop_in)
			start(tracer, child, parent);
	}
	loop_restart(tracer, parent, 0);
}

bool tree_first_stop(struct tracer *tracer, pid_t tid, const struct status *status)
{
	struct task *task = map_get(&tracer->tasks, (uint64_t)tid);
	int sig = status->value & 0xff;

	if (!task) {
		task = add_task(tracer, tid);
		if (!task) {
			out_of_memory(tracer);
			ptrace(PTRACE_CONT, tid, NULL, NULL);
			return true;
		}
		tracer->held++;
		task->held_since = status->time;
	}
	task->first_stop_in = true;
	task->held_sig = loop_classify(status) == STOP_GROUP ? sig : 0;
	if (task->parent_event_in && task->process) {
		start(tracer, task, NULL);
	}
	return true;
}

/* The parent was killed before it could tell of its child; /proc knows whose thread or child it is. */
static void adopt(struct tracer *tracer, struct task *task)
{
	static const char *const keys[] = {"Tgid:", "PPid:"};
	uint64_t ids[] = {(uint64_t)task->tid, 0};

	proc_status(task->tid, 10, keys, ids, 2);
	const struct process *parent = map_get(&tracer->processes, ids[1]);
	struct task *leader = map_get(&tracer->tasks, ids[0]);
	int result;
	if (ids[0] != (uint64_t)task->tid && leader && leader->process)
		result =
			inherit(tracer, leader, task,
				CLONE_VM | CLONE_FILES | CLONE_FS | CLONE_THREAD, task->held_since);
	else
		result = fill_objects(tracer, task, parent);
	if (result < 0) {
		out_of_memory(tracer);
		return;
	}
	task->parent_event_in = true;
	start(tracer, task, NULL);
}

void tree_adopt(struct tracer *tracer, uint64_t now)
{
	struct map_slot *slot;
	size_t at = 0;

	while ((slot = map_next(&tracer->tasks, &at))) {
		struct task *task = slot->value;
		if (task->state == TASK_NEW && task->first_stop_in && !task->parent_event_in &&
		    now - task->held_since > HOLD_LIMIT)
			adopt(tracer, task);
	}
}

/* The exec call's event, in the old image's trace, and that trace's end.
 * @return the path of the new program, a reference; NULL: not known. */
static struct name *end_old_image(struct tracer *tracer, struct task *task, uint64_t now)
{
	struct frame *frame = task_top(task);
	struct trace_end end = {.how = TRACE_END_EXEC};
	struct name *program = NULL;

	if (task->want_exit && frame && frame->call.row->effect == EFFECT_EXEC) {
		frame->call.state = CALL_DONE;
		frame->call.ret = 0;
		frame->call.end = now;
		decode_end(tracer, task, frame);
		program = frame->path   ? name_ref(frame->path)
			  : frame->file ? name_ref(frame->file->name)
					: NULL;
		task_pop(task);
	}
	decode_cut(tracer, task, 0, now);
	end.exec = program;
	if (task->mm->refs == 1)
		aio_cut(tracer, task, now);
	image_end(tracer, task->process, &end, false, now);
	task->want_exit = false;
	return program;
}

/* exec from a thread other than the leader: it takes the leader's number, and all others are gone. */
static struct task *merge_threads(struct tracer *tracer, pid_t pid, pid_t former, uint64_t now)
{
	struct task *task = map_get(&tracer->tasks, (uint64_t)former);
	struct task *leader = map_get(&tracer->tasks, (uint64_t)pid);

	if (former == pid || !task)
		return leader;
	if (leader) {
		recorder_task_over(tracer, leader);
		decode_cut(tracer, leader, 0, now);
		remove_task(tracer, leader);
	}
	map_remove(&tracer->tasks, (uint64_t)former);
	task->tid = pid;
	if (map_put(&tracer->tasks, (uint64_t)pid, task) < 0)
		out_of_memory(tracer);
	return task;
}

static void thread_is_over(struct tracer *tracer, struct task *task, uint64_t now)
{
	struct observer *o;

	recorder_task_over(tracer, task);
	decode_cut(tracer, task, 0, now);
	if (task->over)
		return;
	task->over = true;
	STAILQ_FOREACH (o, &tracer->observers, link) {
		if (o->thread_exit)
			o->thread_exit(o, tracer, task);
		if (task->process->threads == 1 && o->process_exit)
			o->process_exit(o, tracer, task);
	}
	/* Annotations that a thread has left open are written with the process's end. */
	if (task->process->trace && task->tid != task->process->pid && !task->process->annotations)
		trace_thread_over(task->process->trace, task->tid);
}

/* When a process execs or is dead, its other threads are gone, told or not: one that took the leader's number
 * by exec and was killed in that is not reported under its own. */
static void drop_others(struct tracer *tracer, struct task *last, uint64_t now)
{
	struct process *process = last->process;
	struct map_slot *slot;
	size_t at = 0;

	while (process->threads > 1 && (slot = map_next(&tracer->tasks, &at))) {
		struct task *task = slot->value;
		if (task == last || task->process != process)
			continue;
		thread_is_over(tracer, task, now);
		remove_task(tracer, task);
		at = 0; /* the table has changed */
	}
}

void tree_exec(struct tracer *tracer, struct task *task, const struct status *status)
{
	pid_t former = event_message(status->tid, PTRACE_EVENT_EXEC);
	struct observer *o;

	task = merge_threads(tracer, status->tid, former ? former : status->tid, status->time);
	if (!task)
		return;
	recorder_stop(tracer, task);
	drop_others(tracer, task, status->time);
	recorder_task_over(tracer, task);
	struct name *program = end_old_image(tracer, task, status->time);

	struct mm *mm = mm_new();
	struct files *files = task->files->refs > 1 ? files_copy(task->files, status->time)
						    : files_ref(task->files);
	int made = mm && files ? image_exec(tracer, task, program) : -1;
	name_unref(program);
	if (made < 0) {
		mm_unref(mm);
		files_unref(files);
		out_of_memory(tracer);
		loop_restart(tracer, task, 0);
		return;
	}
	mm_unref(task->mm);
	task->mm = mm;
	files_unref(task->files);
	task->files = files;
	files_exec(files, status->time);
	memory_open(tracer, task);
	if (task->before_exec) {
		tracer->main_execed = true;
		tracer->started = status->time;
	}
	task->before_exec = false;
	STAILQ_FOREACH (o, &tracer->observers, link) {
		if (o->exec_stop)
			o->exec_stop(o, tracer, task);
	}
	if (task->process->is_main && !tracer->main_started) {
		task->process->always = true;
		tracer->main_started = true;
	}
	if (task->process->always)
		image_trace(tracer, task);
	loop_restart(tracer, task, 0);
}

/* Launchers send a signal to all ranks, and SIGKILL to the others once they see the first one's end: its sockets
 * are closed. Untraced ranks have all had the signal by then. Traced ones get it only when their tracers have been
 * on a CPU, so each waits before its end for the others, of which it knows nothing. */
static bool would_leave_too_soon(const struct task *task, uint64_t now)
{
	const struct process *process = task->process;

	return task->tid == process->pid && process->told_to_end &&
	       now < process->told_to_end + SIGNAL_GRACE && labels_get(process->labels, "rank");
}

void tree_exit_stop(struct tracer *tracer, struct task *task, const struct status *status)
{
	thread_is_over(tracer, task, status->time);
	task->want_exit = false;
	if (!would_leave_too_soon(task, status->time)) {
		loop_restart(tracer, task, 0);
		return;
	}
	task->leaves = task->process->told_to_end + SIGNAL_GRACE;
	tracer->leaving++;
	if (task->leaves < tracer->next_tick)
		tracer->next_tick = task->leaves;
}

void tree_leave(struct tracer *tracer, uint64_t now)
{
	struct map_slot *slot;
	size_t at = 0;

	while ((slot = map_next(&tracer->tasks, &at))) {
		struct task *task = slot->value;
		if (!task->leaves || now < task->leaves)
			continue;
		task->leaves = 0;
		tracer->leaving--;
		loop_restart(tracer, task, 0);
	}
}

static void reap(pid_t tid)
{
	siginfo_t info;
	waitid(P_PID, (id_t)tid, &info, WEXITED | WNOHANG | __WALL);
}

/* All of a process is at its end: its file is completed before its parent can know. */
static void process_is_over(struct tracer *tracer, struct task *task, const struct status *status)
{
	struct process *process = task->process;
	struct trace_end end = {
		.how = status->code == CLD_EXITED ? TRACE_END_EXIT : TRACE_END_SIGNAL,
		.value = status->value,
	};

	if (task->mm->refs == 1)
		aio_cut(tracer, task, status->time);
	image_end(tracer, process, &end, true, status->time);
	map_remove(&tracer->processes, (uint64_t)process->pid);
	if (process->is_main) {
		tracer->main_ended = true;
		tracer->main_code = status->code;
		tracer->main_value = status->value;
		report_exit(tracer, status->time);
	}
}

void tree_dead(struct tracer *tracer, const struct status *status)
{
	struct task *task = map_get(&tracer->tasks, (uint64_t)status->tid);

	if (task) {
		if (task->process) {
			if (task->tid == task->process->pid)
				drop_others(tracer, task, status->time);
			thread_is_over(tracer, task, status->time);
			if (task->tid == task->process->pid)
				process_is_over(tracer, task, status);
		}
		remove_task(tracer, task);
	}
	reap(status->tid);
}
