#include "launchers/labels.h"

#include "base/path.h"
#include "base/proc.h"
#include "tracer/tracer.h"

#include <stdlib.h>
#include <string.h>

static bool same(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

/* @return whether the environment makes a rank of a process that was not this one before. */
static bool is_new_rank(const struct labels *before, const struct rank_info *info)
{
	return info->values[RANK_RANK] &&
	       !(same(labels_get(before, "rank"), info->values[RANK_RANK]) &&
		 same(labels_get(before, "launcher"), info->launcher));
}

/* @return labels with one reference, NULL when out of memory. */
static struct labels *make_labels(const struct labeler *labeler, const struct rank_info *info)
{
	struct labels *labels = labels_new();

	if (!labels)
		return NULL;
	int failed =
		labels_set(labels, "filesystem",
			   labeler->options->file_system[0] ? labeler->options->file_system : NULL);
	for (int i = 0; i < RANK_VALUE_COUNT; i++)
		failed |= labels_set(labels, ranks_value_name((enum rank_value)i), info->values[i]);
	failed |= labels_set(labels, "launcher", info->launcher);
	if (failed) {
		labels_unref(labels);
		return NULL;
	}
	return labels;
}

/* @return whether dftrace-run stands in the command line, and so in front of each rank. */
static bool starts_us(const struct process *process)
{
	for (size_t i = 1; i < process->argc; i++) {
		if (strcmp(path_basename(process->argv[i]), "dftrace-run") == 0)
			return true;
	}
	return false;
}

static void note_starter(struct labeler *labeler, struct tracer *tracer, struct process *process,
			 const struct rank_starter *starter)
{
	process->of_launcher = true;
	if (labeler->starter.len || starts_us(process))
		return;
	buf_add_str(&labeler->starter, starter->program);
	labeler->starter_is_above = starter->is_above;
	/* What dftrace-run was given it has said already. */
	if (!starter->is_above && !process->is_main)
		tracer_warn(tracer,
			    "%s starts its ranks where they cannot be seen; put dftrace-run behind "
			    "it: %s ... %sdftrace-run ... -- ./app",
			    starter->program, starter->program, starter->options);
}

static long number(const char *text)
{
	return text ? strtol(text, NULL, 10) : -1;
}

static bool is_listed(const struct labeler *labeler, const struct labels *labels)
{
	const char *rank = labels_get(labels, "rank");

	return !rank || rank_list_has(&labeler->options->ranks, number(rank),
				      number(labels_get(labels, "local_rank")));
}

static void exec_stop(struct observer *observer, struct tracer *tracer, struct task *task)
{
	struct labeler *labeler = (struct labeler *)observer;
	const struct options *options = labeler->options;
	struct process *process = task->process;
	struct rank_info info;

	/* Not to be read: it stays what it was. */
	if (proc_read_all(task->tid, "environ", &labeler->environment) < 0)
		buf_clear(&labeler->environment);
	const struct environment environment = {labeler->environment.data,
						labeler->environment.len};
	ranks_read(&info, &environment);
	if (options->rank)
		info.values[RANK_RANK] = options->rank;
	const char *enable = environment_get(&environment, "DFTRACER_ENABLE");

	bool is_new = is_new_rank(process->labels, &info);
	if (is_new || !process->labels) {
		struct labels *labels = make_labels(labeler, &info);
		if (!labels) {
			tracer_end_recording(tracer, "out of memory");
			return;
		}
		labels_unref(process->labels);
		process->labels = labels;
	}
	/* Every rank has a file. */
	process->always |= is_new;
	if (is_new && process->of_launcher) {
		process->of_launcher = false;
		labeler->ranks++;
	}
	const struct rank_starter *starter =
		ranks_starter((const char *const *)process->argv, process->argc);
	if (starter)
		note_starter(labeler, tracer, process, starter);
	bool listed = process->of_launcher || is_listed(labeler, process->labels);
	labeler->left_out += is_new && !listed;
	process->excluded |= !listed || (process->of_launcher && !options->trace_launcher) ||
			     (enable && *enable && options_yes_or_no(enable) == 0);
}

/* What the exit line says of launchers, before it is made. */
static void process_exit(struct observer *observer, struct tracer *tracer, struct task *task)
{
	struct labeler *labeler = (struct labeler *)observer;
	const char *starter = buf_str(&labeler->starter);

	if (!task->process->is_main || !labeler->starter.len || !starter)
		return;
	if (!labeler->options->trace_launcher)
		tracer_warn(tracer,
			    "%s's own processes are left out (--trace-launcher records "
			    "them)",
			    starter);
	if (labeler->ranks == 0 && labeler->starter_is_above)
		tracer_warn(tracer,
			    "no rank was seen below %s; put dftrace-run behind it: %s ... "
			    "dftrace-run ... -- ./app",
			    starter, starter);
	if (labeler->left_out)
		tracer_warn(tracer,
			    "%lu of %lu ranks are left out by --ranks, though their calls stop; "
			    "they run freely where dftrace-run stands behind %s",
			    labeler->left_out, labeler->ranks, starter);
}

void labeler_init(struct labeler *labeler, const struct options *options)
{
	*labeler = (struct labeler){
		.observer = {.exec_stop = exec_stop, .process_exit = process_exit},
		.options = options,
	};
}

void labeler_free(struct labeler *labeler)
{
	buf_free(&labeler->environment);
	buf_free(&labeler->starter);
}
