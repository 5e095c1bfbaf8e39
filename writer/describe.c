/* What a file says of its process: the first lines, the properties, the last line. */
#include "writer/prefix.h"
#include "writer/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void add_process_name(struct trace *trace)
{
	struct buf text = {0};

	if (trace->rank)
		buf_addf(&text, "Rank %s ", trace->rank);
	buf_add_str(&text, trace->exec);
	const char *name = buf_str(&text);
	/* Without memory the next line ends the trace anyway. */
	if (name)
		trace_add_text(trace, &trace->ids, "process_name", name, "process_name");
	buf_free(&text);
}

static void add_rank(struct trace *trace)
{
	if (!trace->rank)
		return;
	trace_add_text(trace, &trace->ids, "PR", "rank", trace->rank);
	trace_add_text(trace, &trace->ids, "rank", "rank", trace->rank);
}

static void event_add_name(struct event *event, const char *key, struct name *name)
{
	if (name)
		event->args[event->nargs++] = (struct event_arg){key, EVENT_NAME, {.ref = name}};
}

static void event_add_int(struct event *event, const char *key, int64_t value)
{
	event->args[event->nargs++] = (struct event_arg){key, EVENT_INT, {.i = value}};
}

static void event_add_text(struct event *event, const char *key, const char *text)
{
	event->args[event->nargs++] = (struct event_arg){
		key,
		EVENT_STRING,
		{.string = {text, strlen(text)}},
	};
}

/* Adds a line that says that the process began or ended. */
static void add_mark(struct trace *trace, struct event *mark, const char *name, uint64_t now)
{
	struct buf *out = trace_lines(trace);
	if (!out)
		return;
	mark->layer = LAYER_DFTRACER;
	mark->name = name;
	mark->pid = trace->pid;
	mark->tid = trace->pid;
	mark->start = now;
	mark->end = now;
	mark->id = trace_next_id(trace);
	line_event(out, &trace->writer->format, &trace->ids, mark);
}

static void add_start(struct trace *trace, const struct trace_info *info, struct name *command,
		      struct name *exec)
{
	uint64_t now = clock_now(&trace->writer->clock);
	time_t seconds = (time_t)(now / 1000000000);
	struct event start = {0};
	char date[64] = "";
	struct tm tm;

	trace->started = now;
	if (localtime_r(&seconds, &tm))
		strftime(date, sizeof(date), "%a %b %e %H:%M:%S %Y", &tm);
	event_add_name(&start, "cmd_hash", command);
	event_add_name(&start, "exec_hash", exec);
	event_add_name(&start, "cwd", info->cwd);
	event_add_text(&start, "version", trace->writer->version);
	event_add_text(&start, "date", date);
	event_add_int(&start, "ppid", info->ppid);
	add_mark(trace, &start, "start", now);
}

/* @return the arguments joined by `;`, NULL when out of memory. */
static struct name *join(const char *const *argv, size_t argc)
{
	struct buf text = {0};
	struct name *name = NULL;

	for (size_t i = 0; i < argc; i++) {
		if (i > 0)
			buf_add_char(&text, ';');
		buf_add_str(&text, argv[i]);
	}
	if (!text.failed)
		name = name_new(text.data, text.len);
	buf_free(&text);
	return name;
}

/* Adds the lines that a file begins with. @return 0, or -1 with errno ENOMEM. */
static int add_head(struct trace *trace, const struct trace_info *info)
{
	struct writer *writer = trace->writer;
	struct name *host = name_new(writer->host, strlen(writer->host));
	struct name *exec = name_new(trace->exec, strlen(trace->exec));
	struct name *command = join(info->argv, info->argc);
	int result = -1;

	if (host && exec && command) {
		trace_add_hashed(trace, &trace->ids, "HH", host);
		add_process_name(trace);
		add_rank(trace);
		if (info->comm)
			trace_thread(trace, info->pid, info->comm);
		trace_ids_of(trace, info->pid, info->pid);
		if (writer->format.v2)
			trace_add_text(trace, &trace->ids, "CM", "time_metric", "US");
		trace_add_hashed(trace, &trace->ids, "SH", command);
		trace_add_hashed(trace, &trace->ids, "SH", exec);
		if (info->cwd)
			trace_introduce(trace, &trace->ids, info->cwd);
		add_start(trace, info, command, exec);
		if (!atomic_load(&trace->refused) && !trace->chunk->lines.failed)
			result = 0;
	}
	name_unref(host);
	name_unref(exec);
	name_unref(command);
	errno = ENOMEM;
	return result;
}

/* @return the prefix of the process's file, NULL when out of memory. */
static char *expand_prefix(const struct writer *writer, const struct trace_info *info)
{
	struct buf prefix = {0};
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", (int)info->pid);
	prefix_expand(&prefix, writer->prefix,
		      &(struct prefix_values){
			      .rank = info->rank,
			      .host = writer->host,
			      .pid = pid,
			      .job = info->job,
		      });
	if (buf_str(&prefix))
		return prefix.data;
	buf_free(&prefix);
	return NULL;
}

struct trace *trace_new(struct writer *writer, const struct trace_info *info)
{
	struct trace *trace = calloc(1, sizeof(*trace));
	if (!trace)
		return NULL;
	trace->writer = writer;
	trace->pid = info->pid;
	trace->output.fd = -1;
	TAILQ_INIT(&trace->queue);
	line_ids(&trace->ids, info->pid, writer->options.thread_ids ? info->pid : 0);
	trace->exec = strdup(info->exec);
	if (info->rank)
		trace->rank = strdup(info->rank);
	trace->prefix = expand_prefix(writer, info);
	if (!trace->exec || !trace->prefix || (info->rank && !trace->rank) ||
	    add_head(trace, info) < 0) {
		trace_free(trace);
		errno = ENOMEM;
		return NULL;
	}
	TAILQ_INSERT_TAIL(&writer->open, trace, in_open);
	writer->open_count++;
	if (info->always) {
		trace_begin_file(trace);
		if (trace->state == TRACE_WRITTEN)
			trace_hand_over(trace, WAIT_NOT);
	}
	return trace;
}

static void note_rank(struct trace *trace, const char *rank)
{
	if (trace->rank && strcmp(trace->rank, rank) == 0)
		return;
	free(trace->rank);
	trace->rank = strdup(rank);
	add_process_name(trace);
	add_rank(trace);
}

void trace_property(struct trace *trace, const char *key, const char *value)
{
	if (!trace_lines(trace))
		return;
	if (strcmp(key, "rank") == 0)
		note_rank(trace, value);
	else
		trace_add_text(trace, &trace->ids, "PR", key, value);
	trace_after_lines(trace, 0);
}

void trace_count(struct trace *trace, const char *key, uint64_t count)
{
	char number[24];

	if (!count)
		return;
	snprintf(number, sizeof(number), "%llu", (unsigned long long)count);
	trace_property(trace, key, number);
}

void trace_custom(struct trace *trace, pid_t tid, const char *key, const char *value)
{
	const struct line_ids *ids =
		trace_lines(trace) ? trace_ids_of(trace, trace->pid, tid) : NULL;

	if (!ids)
		return;
	trace_add_text(trace, ids, "CM", key, value);
	trace_after_lines(trace, 0);
}

static void event_add_json(struct event *event, const char *key, const char *json)
{
	if (!json)
		return;
	event_add_text(event, key, json);
	event->args[event->nargs - 1].kind = EVENT_JSON;
}

static void add_end(struct trace *trace, const struct trace_end *end)
{
	struct event mark = {0};

	event_add_int(&mark, "num_events", (int64_t)trace->events);
	switch (end->how) {
	case TRACE_END_EXIT:
		event_add_int(&mark, "exit_status", end->value);
		break;
	case TRACE_END_SIGNAL:
		event_add_int(&mark, "signal", end->value);
		break;
	case TRACE_END_EXEC:
		if (end->exec)
			trace_introduce(trace, &trace->ids, end->exec);
		event_add_name(&mark, "exec", end->exec);
		break;
	}
	event_add_json(&mark, "app", end->app);
	event_add_json(&mark, "used", end->used);
	add_mark(trace, &mark, "end", clock_now(&trace->writer->clock));
}

/* Takes the trace from the caller. @return false: it never had a file and is freed. */
static bool leave(struct trace *trace)
{
	struct writer *writer = trace->writer;

	TAILQ_REMOVE(&writer->open, trace, in_open);
	writer->open_count--;
	if (trace->state != TRACE_WRITTEN) {
		trace_free(trace);
		return false;
	}
	return true;
}

/* Lets the workers close the trace. Under the lock. */
static void close_trace(struct trace *trace, bool *done)
{
	trace->closing = true;
	trace->done = done;
	trace->writer->closing_count++;
	trace_make_ready(trace);
}

/* @return whether the worker that made a deadline pass still hangs in the same place. */
static bool still_hangs(const struct writer *writer)
{
	return writer->hung && writer->hung->trace && writer->hung->steps == writer->hung_steps;
}

/* Remembers the worker that a deadline passed for: the one that has the trace, or else any that is
 * busy, since an idle one would have taken it. */
static void note_hang(struct writer *writer, const struct trace *trace)
{
	writer->hung = NULL;
	for (unsigned i = 0; i < writer->nworkers; i++) {
		struct worker *worker = &writer->workers[i];
		if (worker->trace == trace || (worker->trace && !writer->hung))
			writer->hung = worker;
	}
	if (writer->hung)
		writer->hung_steps = writer->hung->steps;
}

/* Waits until the trace's file is complete. Under the lock. @return 0, or -1 with errno
 * ETIMEDOUT. */
static int wait_for_file(struct writer *writer, struct trace *trace, const bool *done,
			 uint64_t deadline)
{
	bool late = still_hangs(writer);

	while (!*done && !late)
		late = writer_wait(writer, deadline) == ETIMEDOUT;
	if (*done)
		return 0;
	/* Not done, so the trace is still there. */
	trace->done = NULL;
	if (!still_hangs(writer))
		note_hang(writer, trace);
	errno = ETIMEDOUT;
	return -1;
}

int writer_settle(struct writer *writer, uint64_t deadline)
{
	struct trace *trace;

	while ((trace = TAILQ_FIRST(&writer->pending)))
		trace_hand_over(trace, WAIT_NOT);
	pthread_mutex_lock(&writer->lock);
	bool late = still_hangs(writer);
	while ((writer->closing_count > 0 || !TAILQ_EMPTY(&writer->queued)) && !late)
		late = writer_wait(writer, deadline) == ETIMEDOUT;
	pthread_mutex_unlock(&writer->lock);
	if (!late)
		return 0;
	errno = ETIMEDOUT;
	return -1;
}

int trace_finish(struct trace *trace, const struct trace_end *end, bool wait, uint64_t deadline)
{
	struct writer *writer = trace->writer;
	bool done = false;
	int result = 0;

	if (trace->state == TRACE_WRITTEN)
		add_end(trace, end);
	if (!leave(trace))
		return 0;
	trace_hand_over(trace, wait ? WAIT_NOT : WAIT_SHORTLY);
	pthread_mutex_lock(&writer->lock);
	close_trace(trace, wait ? &done : NULL);
	if (wait)
		result = wait_for_file(writer, trace, &done, deadline);
	pthread_mutex_unlock(&writer->lock);
	return result;
}

void trace_drop(struct trace *trace)
{
	struct writer *writer = trace->writer;

	if (!leave(trace))
		return;
	trace_hand_over(trace, WAIT_NOT);
	pthread_mutex_lock(&writer->lock);
	close_trace(trace, NULL);
	pthread_mutex_unlock(&writer->lock);
}
