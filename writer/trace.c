/* Traces on the calling thread's side: ids, names, threads, and the lines of a process. */
#include "writer/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void drop_chunk(struct trace *trace)
{
	if (trace->chunk) {
		buf_free(&trace->chunk->lines);
		free(trace->chunk);
	}
	trace->chunk = NULL;
}

static void free_threads(struct trace *trace)
{
	struct map_slot *slot;
	size_t at = 0;

	while ((slot = map_next(&trace->threads, &at))) {
		struct thread *thread = slot->value;
		free(thread->comm);
		free(thread);
	}
	map_free(&trace->threads);
	trace->last_thread = NULL;
}

void trace_free(struct trace *trace)
{
	drop_chunk(trace);
	summary_free(trace->held);
	free_threads(trace);
	map_free(&trace->names);
	free(trace->rank);
	free(trace->exec);
	free(trace->prefix);
	free(trace->output.path);
	free(trace);
}

/* Ends the trace where it is: there is no memory for what comes next. */
static void out_of_memory(struct trace *trace)
{
	struct writer *writer = trace->writer;

	if (atomic_load(&trace->refused))
		return;
	pthread_mutex_lock(&writer->lock);
	writer_note_refusal(writer, ENOMEM, NULL);
	atomic_store(&trace->refused, true);
	pthread_mutex_unlock(&writer->lock);
}

static void wait_for_age(struct trace *trace)
{
	trace->began = clock_now(&trace->writer->clock);
	trace->pending = true;
	TAILQ_INSERT_TAIL(&trace->writer->pending, trace, in_pending);
}

struct buf *trace_lines(struct trace *trace)
{
	if (trace->state == TRACE_SKIPPED ||
	    atomic_load_explicit(&trace->refused, memory_order_relaxed))
		return NULL;
	if (!trace->chunk) {
		trace->chunk = chunk_new(trace->writer);
		if (!trace->chunk) {
			out_of_memory(trace);
			return NULL;
		}
		if (trace->state == TRACE_WRITTEN)
			wait_for_age(trace);
	}
	return &trace->chunk->lines;
}

void trace_begin_file(struct trace *trace)
{
	struct writer *writer = trace->writer;
	unsigned long most = writer->options.max_files;

	if (writer->options.summary)
		summary_add_image(writer->options.summary, trace->held);
	summary_free(trace->held);
	trace->held = NULL;
	if (writer->options.discard) {
		trace->state = TRACE_SKIPPED;
		drop_chunk(trace);
		return;
	}
	if (most && writer->begun_files >= most) {
		trace->state = TRACE_SKIPPED;
		drop_chunk(trace);
		pthread_mutex_lock(&writer->lock);
		writer->totals.skipped_files++;
		pthread_mutex_unlock(&writer->lock);
		return;
	}
	writer->begun_files++;
	trace->state = TRACE_WRITTEN;
	if (trace->chunk)
		wait_for_age(trace);
}

void trace_after_lines(struct trace *trace, uint64_t now)
{
	struct chunk *chunk = trace->chunk;

	if (!chunk)
		return;
	if (chunk->lines.failed)
		out_of_memory(trace);
	if (trace->state == TRACE_HELD && chunk->lines.len > HELD_MOST)
		trace_begin_file(trace);
	if (trace->state == TRACE_WRITTEN &&
	    (chunk->lines.len >= writer_chunk_limit(trace->writer) ||
	     now > trace->began + AGE_MS * WRITER_MS))
		trace_hand_over(trace, WAIT_FOR_ROOM);
}

static void add_record(struct trace *trace, const struct line_ids *ids, struct line_record record)
{
	struct buf *out = trace_lines(trace);
	if (!out)
		return;
	if (!trace->writer->format.v2)
		record.id = trace_next_id(trace);
	line_record(out, &trace->writer->format, ids, &record);
}

void trace_add_text(struct trace *trace, const struct line_ids *ids, const char *kind,
		    const char *name, const char *value)
{
	add_record(trace, ids,
		   (struct line_record){
			   .kind = kind,
			   .name = name,
			   .name_len = strlen(name),
			   .value = value,
		   });
}

void trace_add_hashed(struct trace *trace, const struct line_ids *ids, const char *kind,
		      struct name *name)
{
	add_record(trace, ids,
		   (struct line_record){
			   .kind = kind,
			   .name = name->text,
			   .name_len = name->len,
			   .hash = name_hash(name),
		   });
}

void trace_introduce(struct trace *trace, const struct line_ids *ids, struct name *name)
{
	uint64_t hash = name_hash(name);

	if (hash == trace->last_name)
		return;
	if (!map_get(&trace->names, hash)) {
		/* Readers bear a line twice; memory does not bear a program that opens files
		 * without end. For the same reason it does not matter whether the map takes it. */
		if (trace->names.count >= NAMES_MOST)
			map_free(&trace->names);
		(void)map_put(&trace->names, hash, trace);
		trace_add_hashed(trace, ids, "FH", name);
	}
	trace->last_name = hash;
}

static pid_t written_tid(const struct trace *trace, pid_t tid)
{
	return trace->writer->options.thread_ids ? tid : 0;
}

/* @return the thread, NULL when there is no memory for it. */
static struct thread *find_thread(struct trace *trace, pid_t tid)
{
	if (trace->last_thread && trace->last_tid == tid)
		return trace->last_thread;
	struct thread *thread = map_get(&trace->threads, (uint64_t)tid);
	if (!thread) {
		if (trace->threads.count >= THREADS_MOST)
			free_threads(trace);
		thread = calloc(1, sizeof(*thread));
		if (!thread || map_put(&trace->threads, (uint64_t)tid, thread) < 0) {
			free(thread);
			return NULL;
		}
	}
	trace->last_thread = thread;
	trace->last_tid = tid;
	return thread;
}

/* Writes the thread_name line of a thread that the trace has not had yet. */
static void introduce_thread(struct trace *trace, struct thread *thread, pid_t tid)
{
	char number[16];

	thread->seen = true;
	snprintf(number, sizeof(number), "%d", (int)tid);
	trace_add_text(trace, &thread->ids, "thread_name", thread->comm ? thread->comm : number,
		       "thread_name");
	free(thread->comm);
	thread->comm = NULL;
}

const struct line_ids *trace_ids_of(struct trace *trace, pid_t pid, pid_t tid)
{
	struct thread *thread = find_thread(trace, written_tid(trace, tid));

	if (!thread) {
		out_of_memory(trace);
		return NULL;
	}
	if (thread->pid != pid) {
		thread->pid = pid;
		line_ids(&thread->ids, pid, written_tid(trace, tid));
	}
	if (!thread->seen)
		introduce_thread(trace, thread, tid);
	return &thread->ids;
}

/* Adds an event's line with all that must stand before it. @return whether it was added. */
static bool add_event(struct trace *trace, const struct event *event)
{
	struct buf *out = trace_lines(trace);
	if (!out)
		return false;
	const struct line_ids *ids = trace_ids_of(trace, event->pid, event->tid);
	if (!ids)
		return false;
	if (event->file)
		trace_introduce(trace, ids, event->file);
	for (unsigned i = 0; i < event->nargs; i++) {
		if (event->args[i].kind == EVENT_NAME && event->args[i].value.ref)
			trace_introduce(trace, ids, event->args[i].value.ref);
	}
	line_event(out, &trace->writer->format, ids, event);
	return !out->failed;
}

/* Events of a trace that may never be written wait with it. */
static void summarize(struct trace *trace, const struct event *event)
{
	struct summary *summary = trace->writer->options.summary;

	if (summary && trace->state == TRACE_HELD) {
		if (!trace->held)
			trace->held = summary_new();
		summary = trace->held;
	}
	if (summary)
		summary_add(summary, event);
}

void trace_event(struct trace *trace, const struct event *event, bool data)
{
	struct writer *writer = trace->writer;

	if (data && trace->state == TRACE_HELD)
		trace_begin_file(trace);
	summarize(trace, event);
	if (trace->state == TRACE_SKIPPED)
		return;
	trace->events++;
	if (add_event(trace, event)) {
		trace->chunk->events++;
	} else {
		pthread_mutex_lock(&writer->lock);
		writer->totals.lost_events++;
		pthread_mutex_unlock(&writer->lock);
	}
	trace_after_lines(trace, event->end);
	writer_wait_when_late(writer, event->end);
}

uint64_t trace_next_id(struct trace *trace)
{
	return ++trace->last_id;
}

uint64_t trace_started(const struct trace *trace)
{
	return trace->started;
}

uint64_t trace_events(const struct trace *trace)
{
	return trace->events;
}

void trace_thread(struct trace *trace, pid_t tid, const char *comm)
{
	struct thread *thread = find_thread(trace, written_tid(trace, tid));
	/* Without memory it goes by its number. */
	if (!thread || thread->seen)
		return;
	free(thread->comm);
	thread->comm = strdup(comm);
}

bool trace_thread_is_new(const struct trace *trace, pid_t tid)
{
	if (trace->state == TRACE_SKIPPED || atomic_load(&trace->refused))
		return false;
	tid = written_tid(trace, tid);
	if (trace->last_thread && trace->last_tid == tid)
		return !trace->last_thread->seen;
	const struct thread *thread = map_get(&trace->threads, (uint64_t)tid);
	return !thread || !thread->seen;
}

void trace_thread_over(struct trace *trace, pid_t tid)
{
	/* Where all go by the number 0 they are one. */
	if (!trace->writer->options.thread_ids)
		return;
	struct thread *thread = map_remove(&trace->threads, (uint64_t)tid);
	if (!thread)
		return;
	if (trace->last_thread == thread)
		trace->last_thread = NULL;
	free(thread->comm);
	free(thread);
}
