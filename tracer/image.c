#include "tracer/image.h"

#include "base/proc.h"
#include "tracer/aio.h"
#include "tracer/hooks/annotate.h"
#include "tracer/lost.h"
#include "tracer/resolve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* @return an argv in one allocation from NUL-separated words. */
static char **argv_new(const char *words, size_t len, size_t *argc)
{
	size_t count = 0;

	for (size_t i = 0; i < len; i++)
		count += words[i] == '\0';
	char **argv = malloc((count + 1) * sizeof(*argv) + len + 1);
	if (!argv)
		return NULL;
	char *text = (char *)(argv + count + 1);
	memcpy(text, words, len);
	text[len] = '\0';
	for (size_t i = 0; i < count; i++) {
		argv[i] = text;
		text += strlen(text) + 1;
	}
	argv[count] = NULL;
	*argc = count;
	return argv;
}

static int set_argv(struct tracer *tracer, struct process *process, const struct name *program)
{
	if (proc_read_all(process->pid, "cmdline", &tracer->text) < 0 || tracer->text.len == 0) {
		/* Not to be seen, or the program was given no words. */
		buf_clear(&tracer->text);
		if (program)
			buf_add(&tracer->text, program->text, program->len);
	}
	if (tracer->text.len == 0)
		return 0;
	if (tracer->text.data[tracer->text.len - 1] != '\0')
		buf_add_char(&tracer->text, '\0');
	process->argv = argv_new(tracer->text.data, tracer->text.len, &process->argc);
	return process->argv ? 0 : -1;
}

struct process *image_fork(struct tracer *tracer, const struct process *parent, pid_t pid)
{
	struct process *process = process_new(pid);

	if (!process)
		return NULL;
	tracer->images++;
	process->started = true;
	if (!parent) {
		const char *const key = "PPid:";
		uint64_t ppid = 0;
		proc_status(pid, 10, &key, &ppid, 1);
		process->ppid = (pid_t)ppid;
		set_argv(tracer, process, NULL);
		return process;
	}
	process->ppid = parent->pid;
	process->excluded = parent->excluded;
	process->of_launcher = parent->of_launcher;
	process->labels = labels_ref(parent->labels);
	process->library_known = parent->library_known;
	process->library_records = parent->library_records;
	memcpy(process->forced, parent->forced, sizeof(process->forced));
	process->started = parent->started;
	if (parent->argc) {
		const char *words = parent->argv[0];
		const char *last = parent->argv[parent->argc - 1];
		size_t len = (size_t)(last - words) + strlen(last) + 1;
		process->argv = argv_new(words, len, &process->argc);
	}
	return process;
}

const char *image_comm(struct tracer *tracer, pid_t tid)
{
	if (proc_read_all(tid, "comm", &tracer->text) < 0 || tracer->text.len == 0)
		return NULL;
	char *comm = tracer->text.data;
	comm[strcspn(comm, "\n")] = '\0';
	return comm;
}

int image_exec(struct tracer *tracer, struct task *task, const struct name *program)
{
	const struct process *old = task->process;
	struct process *process = process_new(task->tid);

	if (!process)
		return -1;
	tracer->images++;
	process->ppid = old->ppid;
	process->is_main = old->is_main;
	process->of_launcher = old->of_launcher;
	process->labels = labels_ref(old->labels);
	process->threads = 1;
	if (set_argv(tracer, process, program) < 0 ||
	    map_put(&tracer->processes, (uint64_t)process->pid, process) < 0) {
		process_unref(process);
		return -1;
	}
	const char *comm = image_comm(tracer, task->tid);
	if (comm && tracer->options->excludes)
		process->excluded = tracer->options->excludes(tracer->options->excludes_data, comm);
	process_unref(task->process);
	task->process = process;
	return 0;
}

/* @return whether the process's labels say otherwise. */
static bool is_news(const struct process *process, const char *key, const char *text,
		    const char **told)
{
	*told = labels_get(process->labels, key);
	return !*told || strcmp(*told, text) != 0;
}

static void confirm(struct tracer *tracer, struct process *process, const char *key,
		    const char *text)
{
	struct labels *labels = labels_copy(process->labels);
	if (!labels || labels_set(labels, key, text) < 0) {
		labels_unref(labels);
		tracer_end_recording(tracer, "out of memory");
		return;
	}
	labels_unref(process->labels);
	process->labels = labels;
	if (process->trace)
		trace_property(process->trace, key, text);
}

void image_confirm_rank(struct tracer *tracer, struct process *process, int rank)
{
	const char *told;
	char text[16];

	snprintf(text, sizeof(text), "%d", rank);
	if (!is_news(process, "rank", text, &told))
		return;
	if (told) {
		tracer->contradicted = true;
		tracer_warn(
			tracer, "MPI says that it is rank %s, %s rank %s: MPI's word counts", text,
			tracer->options->rank_said ? "--rank" : "the launcher's environment", told);
	}
	if (process->is_main)
		memcpy(tracer->confirmed_rank, text, sizeof(text));
	confirm(tracer, process, "rank", text);
}

void image_confirm_size(struct tracer *tracer, struct process *process, int size)
{
	const char *told;
	char text[16];

	snprintf(text, sizeof(text), "%d", size);
	if (!is_news(process, "world_size", text, &told))
		return;
	if (told) {
		tracer->contradicted = true;
		tracer_warn(tracer,
			    "MPI says that its world's size is %s, the launcher's environment "
			    "%s: MPI's word counts",
			    text, told);
	}
	confirm(tracer, process, "world_size", text);
}

/* Writes which CPUs the process may use, as the kernel lists them: "0-3,8". */
static void note_affinity(struct tracer *tracer, const struct process *process)
{
	static const char key[] = "\nCpus_allowed_list:\t";

	if (proc_read_all(process->pid, "status", &tracer->text) < 0)
		return;
	const char *text = buf_str(&tracer->text);
	char *list = text ? strstr(text, key) : NULL;
	if (!list)
		return;
	list += sizeof(key) - 1;
	list[strcspn(list, "\n")] = '\0';
	trace_property(process->trace, "core_affinity", list);
}

struct trace *image_trace(struct tracer *tracer, struct task *task)
{
	struct process *process = task->process;
	struct buf exec = {0};

	if (process->trace || process->excluded || tracer->pass_through)
		return process->trace;
	trace_exec_name(&exec, (const char *const *)process->argv, process->argc);
	struct trace_info info = {
		.pid = process->pid,
		.ppid = process->ppid,
		.exec = buf_str(&exec),
		.argv = (const char *const *)process->argv,
		.argc = process->argc,
		.cwd = resolve_cwd(task, CALL_FROM_STOPS),
		.comm = image_comm(tracer, process->pid),
		.rank = labels_get(process->labels, "rank"),
		.job = labels_get(process->labels, "jobid"),
		.always = process->always,
	};
	if (info.exec)
		process->trace = trace_new(tracer->writer, &info);
	buf_free(&exec);
	if (!process->trace) {
		tracer_end_recording(tracer, "out of memory");
		return NULL;
	}
	for (size_t i = 0; process->labels && i < process->labels->count; i++)
		trace_property(process->trace, process->labels->items[i].key,
			       process->labels->items[i].value);
	char form[32];
	snprintf(form, sizeof(form), "dftrace %s%s", tracer->filter ? "seccomp" : "ptrace",
		 tracer->options->parent_form ? " parent" : "");
	trace_property(process->trace, "tracer", form);
	if (tracer->options->core_affinity)
		note_affinity(tracer, process);
	return process->trace;
}

int image_end(struct tracer *tracer, struct process *process, const struct trace_end *end,
	      bool wait, uint64_t now)
{
	struct trace_end whole = *end;
	int result = 0;

	for (int i = 0; i < LOST_COUNT; i++)
		tracer->lost[i] += process->lost[i];
	for (int i = 0; i < SKIPPED_COUNT; i++)
		tracer->skipped[i] += process->skipped[i];
	recorder_ended(tracer, process);
	if (process->trace) {
		annotations_finish(tracer, process, &whole, now);
		lost_write(process->trace, process);
		if (tracer->hooks)
			hooks_describe(tracer->hooks, process->trace);
		if (process->library_records)
			trace_property(process->trace, "annotations", "left to DFTracer's library");
		/* A disk that hangs must not keep a dead process for longer than this. */
		result = trace_finish(process->trace, &whole, wait, now + 2000000000);
		process->trace = NULL;
	}
	memset(process->lost, 0, sizeof(process->lost));
	memset(process->skipped, 0, sizeof(process->skipped));
	return result;
}
