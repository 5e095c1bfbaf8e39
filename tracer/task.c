#include "tracer/task.h"

#include "tracer/hooks/annotate.h"
#include "tracer/hooks/hooks.h"
#include "tracer/recorder/recorder.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct mm *mm_new(void)
{
	struct mm *mm = malloc(sizeof(*mm));
	if (mm)
		*mm = (struct mm){.refs = 1, .mem_fd = -1};
	return mm;
}

struct mm *mm_ref(struct mm *mm)
{
	mm->refs++;
	return mm;
}

void mm_unref(struct mm *mm)
{
	if (!mm || --mm->refs > 0)
		return;
	if (mm->mem_fd >= 0)
		close(mm->mem_fd);
	map_free_values(&mm->sites);
	aio_free(&mm->aio);
	hook_space_free(mm->hooks);
	recorder_space_free(mm->recorder);
	free(mm);
}

struct fs *fs_new(void)
{
	struct fs *fs = calloc(1, sizeof(*fs));
	if (fs)
		fs->refs = 1;
	return fs;
}

struct fs *fs_ref(struct fs *fs)
{
	fs->refs++;
	return fs;
}

struct fs *fs_copy(const struct fs *fs)
{
	struct fs *copy = fs_new();
	if (copy) {
		copy->cwd = fs->cwd ? name_ref(fs->cwd) : NULL;
		copy->root = fs->root ? name_ref(fs->root) : NULL;
		copy->root_known = fs->root_known;
	}
	return copy;
}

void fs_unref(struct fs *fs)
{
	if (!fs || --fs->refs > 0)
		return;
	name_unref(fs->cwd);
	name_unref(fs->cwd_shown);
	name_unref(fs->root);
	free(fs);
}

struct process *process_new(pid_t pid)
{
	struct process *process = calloc(1, sizeof(*process));
	if (process) {
		process->refs = 1;
		process->pid = pid;
	}
	return process;
}

struct process *process_ref(struct process *process)
{
	process->refs++;
	return process;
}

void process_unref(struct process *process)
{
	if (!process || --process->refs > 0)
		return;
	labels_unref(process->labels);
	annotations_free(process->annotations);
	free(process->argv);
	free(process);
}

struct task *task_new(pid_t tid)
{
	struct task *task = calloc(1, sizeof(*task));
	if (task)
		task->tid = tid;
	return task;
}

static void frame_clear(struct frame *frame)
{
	name_unref(frame->path);
	name_unref(frame->new_path);
	file_unref(frame->file);
	file_unref(frame->out_file);
	for (size_t i = 0; i < frame->nclosing; i++)
		file_unref(frame->closing[i].file);
	free(frame->closing);
	struct buf bytes = frame->call.bytes;
	buf_clear(&bytes);
	*frame = (struct frame){.call.bytes = bytes};
}

void task_free(struct task *task)
{
	if (!task)
		return;
	while (task->nframes)
		task_pop(task);
	annotations_thread_over(task);
	for (size_t i = 0; i < task->frames_cap; i++)
		buf_free(&task->frames[i].call.bytes);
	free(task->frames);
	process_unref(task->process);
	mm_unref(task->mm);
	files_unref(task->files);
	fs_unref(task->fs);
	free(task);
}

struct frame *task_push(struct task *task)
{
	if (task->nframes == task->frames_cap) {
		size_t cap = task->frames_cap ? task->frames_cap * 2 : 1;
		struct frame *frames = realloc(task->frames, cap * sizeof(*frames));
		if (!frames)
			return NULL;
		memset(frames + task->frames_cap, 0, (cap - task->frames_cap) * sizeof(*frames));
		task->frames = frames;
		task->frames_cap = cap;
	}
	return &task->frames[task->nframes++];
}

struct frame *task_top(struct task *task)
{
	return task->nframes ? &task->frames[task->nframes - 1] : NULL;
}

void task_pop(struct task *task)
{
	frame_clear(&task->frames[--task->nframes]);
}

void task_remove(struct task *task, size_t i)
{
	struct frame removed = task->frames[i];
	size_t above = --task->nframes - i;

	frame_clear(&removed);
	memmove(&task->frames[i], &task->frames[i + 1], above * sizeof(*task->frames));
	task->frames[task->nframes] = removed;
}
