#include "tracer/tracer.h"

#include "symbols/object.h"
#include "tracer/entry.h"
#include "tracer/loop.h"
#include "tracer/place.h"
#include "tracer/privileges.h"
#include "version.h"
#include "writer/summary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <sys/ptrace.h>

/* @return 0, or -1 with errno ENOMEM. Where the machine cannot, it is said, and all calls stop. */
static int start_recorder(struct tracer *tracer, const struct recorder_options *options)
{
	const char *obstacle = recorder_obstacle();

	if (obstacle) {
		tracer->no_recorder = obstacle;
		tracer_warn(tracer, "no recorder: %s; all calls stop", obstacle);
		return 0;
	}
	tracer->recorder =
		recorder_new(options, tracer->options->selection, &tracer->clock, tracer->objects);
	if (!tracer->recorder)
		return -1;
	tracer_observe(tracer, recorder_observer(tracer->recorder));
	if (tracer->hooks)
		hooks_use_recorder(tracer->hooks);
	return 0;
}

struct tracer *tracer_new(const struct tracer_options *options, struct buf *error)
{
	struct tracer *tracer = calloc(1, sizeof(*tracer));

	if (!tracer)
		goto fail;
	tracer->options = options;
	tracer->clock = clock_new();
	tracer->report_fd = -1;
	STAILQ_INIT(&tracer->queue);
	STAILQ_INIT(&tracer->spare);
	STAILQ_INIT(&tracer->observers);
	if (options->first)
		tracer_observe(tracer, options->first);
	entry_init(&tracer->entry_mark);
	tracer_observe(tracer, &tracer->entry_mark);
	privileges_init(&tracer->privileges);
	tracer_observe(tracer, &tracer->privileges);
	tracer->objects = objects_new(options->hooks.symbol_dirs, options->hooks.nsymbol_dirs);
	if (!tracer->objects)
		goto fail;
	if (hooks_are_wanted(&options->hooks)) {
		tracer->hooks = hooks_new(&options->hooks, tracer->objects);
		if (!tracer->hooks)
			goto fail;
		tracer_observe(tracer, hooks_observer(tracer->hooks));
	}
	if (options->recorder.wanted && start_recorder(tracer, &options->recorder) < 0)
		goto fail;
	tracer->place = place_new(options->placement);
	if (!tracer->place)
		goto fail;
	if (options->summary && !(tracer->summary = summary_new()))
		goto fail;
	struct writer_options writer = {
		.prefix = options->prefix,
		.stage = options->stage,
		.v2 = options->v2,
		.compress = options->compress,
		.metadata = options->metadata,
		.thread_ids = options->thread_ids,
		.buffer_bytes = options->buffer_bytes,
		.discard = options->summary_only,
		.summary = tracer->summary,
		.max_files = options->max_files,
		.version = DFTRACE_VERSION,
		.worker_started = place_worker,
		.worker_data = tracer->place,
		.clock = &tracer->clock,
	};
	tracer->writer = writer_new(&writer);
	if (!tracer->writer)
		goto fail;
	return tracer;
fail:
	buf_addf(error, "cannot start the tracer: %s%s", strerror(errno),
		 errno == EAGAIN || errno == ENOMEM
			 ? "; raise the limits of processes and memory (ulimit -u, -v, -d)"
			 : "");
	tracer_free(tracer);
	return NULL;
}

void tracer_observe(struct tracer *tracer, struct observer *observer)
{
	STAILQ_INSERT_TAIL(&tracer->observers, observer, link);
}

int tracer_seize(struct tracer *tracer, pid_t pid, bool filter)
{
	unsigned long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
				PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_TRACEEXIT |
				PTRACE_O_EXITKILL;

	if (filter)
		options |= PTRACE_O_TRACESECCOMP;
	if (ptrace(PTRACE_SEIZE, pid, NULL, options) < 0)
		return -1;
	if (tree_seized(tracer, pid) < 0)
		return -1;
	tracer->filter = filter;
	/* Without the filter only a restart by PTRACE_SYSCALL makes calls stop, so it has to be stopped
	 * once. */
	return filter ? 0 : (int)ptrace(PTRACE_INTERRUPT, pid, NULL, NULL);
}

void tracer_warn_no_filter(struct tracer *tracer, const char *why)
{
	tracer_warn(tracer, "no seccomp filter (%s): every system call stops, which is slow", why);
}

int tracer_without_filter(struct tracer *tracer, const char *why)
{
	tracer->filter = false;
	tracer_warn_no_filter(tracer, why);
	return (int)ptrace(PTRACE_INTERRUPT, tracer->main_pid, NULL, NULL);
}

void tracer_end_recording(struct tracer *tracer, const char *why)
{
	if (tracer->pass_through)
		return;
	/* Tasks under the filter can never be let go: their calls would fail. */
	tracer->pass_through = true;
	tracer->lost[LOST_DROPPED]++;
	tracer_warn(tracer, "recording ended early: %s", why);
}

void tracer_free(struct tracer *tracer)
{
	struct map_slot *slot;
	struct status *status;
	size_t at = 0;

	if (!tracer)
		return;
	while ((slot = map_next(&tracer->tasks, &at)))
		task_free(slot->value);
	map_free(&tracer->tasks);
	map_free(&tracer->processes);
	struct statuses *lists[] = {&tracer->queue, &tracer->spare};
	for (int i = 0; i < 2; i++) {
		while ((status = STAILQ_FIRST(lists[i]))) {
			STAILQ_REMOVE_HEAD(lists[i], link);
			free(status);
		}
	}
	/* Moving whole files takes as long as it takes, short of a file system that hangs. */
	const uint64_t patience = (tracer->options->stage ? 3600 : 10) * 1000000000ULL;
	if (tracer->writer)
		writer_free(tracer->writer, clock_now(&tracer->clock) + patience);
	summary_free(tracer->summary);
	hooks_free(tracer->hooks);
	recorder_free(tracer->recorder);
	objects_free(tracer->objects);
	place_free(tracer->place);
	buf_free(&tracer->warnings);
	buf_free(&tracer->path);
	buf_free(&tracer->text);
	free(tracer);
}
