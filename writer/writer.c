/* The writer, its threads, and the chunks' way to them. */
#include "writer/writer.h"

#include "writer/state.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static unsigned choose_workers(unsigned wanted)
{
	cpu_set_t cpus;

	if (wanted)
		return wanted < WORKERS_MOST ? wanted : WORKERS_MOST;
	/* More CPUs than a cpu_set_t can name make this fail, and are enough. */
	int count = sched_getaffinity(0, sizeof(cpus), &cpus) < 0 ? WORKERS_DEFAULT_MOST
								  : CPU_COUNT(&cpus);
	return count < WORKERS_DEFAULT_MOST ? (unsigned)count : WORKERS_DEFAULT_MOST;
}

static char *host_name(void)
{
	char host[HOST_NAME_MAX + 1];
	if (gethostname(host, sizeof(host)) < 0)
		return NULL;
	host[sizeof(host) - 1] = '\0';
	return strdup(host);
}

/* @return 0, or an error number. */
static int init_locks(struct writer *writer)
{
	pthread_condattr_t monotonic;
	int error = pthread_condattr_init(&monotonic);
	if (error)
		return error;
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_mutex_init(&writer->lock, NULL);
	pthread_cond_init(&writer->work, NULL);
	error = pthread_cond_init(&writer->progress, &monotonic);
	pthread_condattr_destroy(&monotonic);
	return error;
}

/* Starts the threads, fewer than wanted if the system refuses some, and waits until they have their
 * places: what they are told to call then may go away later. @return 0, or an error number. */
static int start_workers(struct writer *writer, unsigned wanted)
{
	sigset_t all;
	sigset_t before;
	char name[16];
	int error = 0;

	writer->workers = calloc(wanted, sizeof(*writer->workers));
	if (!writer->workers)
		return ENOMEM;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (writer->nworkers < wanted) {
		struct worker *worker = &writer->workers[writer->nworkers];
		worker->writer = writer;
		error = pthread_create(&worker->thread, NULL, worker_main, worker);
		if (error)
			break;
		snprintf(name, sizeof(name), "dftrace-write%u", writer->nworkers % 100);
		pthread_setname_np(worker->thread, name);
		writer->nworkers++;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_mutex_lock(&writer->lock);
	while (writer->started < writer->nworkers)
		pthread_cond_wait(&writer->progress, &writer->lock);
	pthread_mutex_unlock(&writer->lock);
	return writer->nworkers ? 0 : error;
}

static void free_chunk(struct chunk *chunk)
{
	buf_free(&chunk->lines);
	free(chunk);
}

/* Frees a trace that was not finished when the writer was abandoned. */
static void free_unfinished(struct trace *trace)
{
	struct chunk *chunk;

	while ((chunk = TAILQ_FIRST(&trace->queue))) {
		TAILQ_REMOVE(&trace->queue, chunk, in_trace);
		free_chunk(chunk);
	}
	output_close(&trace->output);
	trace_free(trace);
}

void writer_destroy(struct writer *writer)
{
	struct trace *trace;
	struct chunk *chunk;
	struct stream *stream;

	while ((trace = TAILQ_FIRST(&writer->ready))) {
		TAILQ_REMOVE(&writer->ready, trace, in_ready);
		free_unfinished(trace);
	}

	while ((chunk = TAILQ_FIRST(&writer->spares))) {
		TAILQ_REMOVE(&writer->spares, chunk, in_writer);
		free_chunk(chunk);
	}
	while ((stream = TAILQ_FIRST(&writer->streams))) {
		TAILQ_REMOVE(&writer->streams, stream, in_writer);
		deflater_free(stream->deflater);
		free(stream);
	}
	for (unsigned i = 0; i < writer->nworkers; i++)
		buf_free(&writer->workers[i].out);
	pthread_cond_destroy(&writer->progress);
	pthread_cond_destroy(&writer->work);
	pthread_mutex_destroy(&writer->lock);
	free(writer->workers);
	free(writer->totals.first_path);
	free(writer->prefix);
	free(writer->stage);
	free(writer->version);
	free(writer->host);
	free(writer);
}

struct writer *writer_new(const struct writer_options *options)
{
	struct writer *writer = calloc(1, sizeof(*writer));
	if (!writer)
		return NULL;
	TAILQ_INIT(&writer->open);
	TAILQ_INIT(&writer->pending);
	TAILQ_INIT(&writer->ready);
	TAILQ_INIT(&writer->queued);
	TAILQ_INIT(&writer->spares);
	TAILQ_INIT(&writer->streams);
	int error = init_locks(writer);
	if (error) {
		free(writer);
		errno = error;
		return NULL;
	}

	writer->prefix = strdup(options->prefix);
	writer->version = strdup(options->version);
	writer->host = host_name();
	if (options->stage && asprintf(&writer->stage, "%s/%s", options->stage, "dftrace") < 0)
		writer->stage = NULL;
	if (!writer->prefix || (options->stage && !writer->stage) || !writer->version ||
	    !writer->host) {
		error = ENOMEM;
		goto failed;
	}
	writer->options = *options;
	writer->options.prefix = writer->prefix;
	writer->options.version = writer->version;
	writer->clock = *options->clock;
	writer->options.clock = &writer->clock;
	writer->ending = options->v2 ? "" : "]\n";
	writer->format = (struct line_format){
		.v2 = options->v2,
		.metadata = options->metadata,
		.host_hash = name_hash_text(writer->host, strlen(writer->host)),
	};
	error = start_workers(writer, choose_workers(options->workers));
	if (error)
		goto failed;
	return writer;

failed:
	writer_destroy(writer);
	errno = error;
	return NULL;
}

size_t writer_chunk_limit(const struct writer *writer)
{
	size_t share = CHUNKS_OPEN / (writer->open_count + 1);
	size_t wanted = writer->options.buffer_bytes;

	if (share > CHUNK_FULL)
		share = CHUNK_FULL;
	else if (share < CHUNK_LEAST)
		share = CHUNK_LEAST;
	return wanted && wanted < share ? wanted : share;
}

struct chunk *chunk_new(struct writer *writer)
{
	struct chunk *chunk = NULL;

	/* Spares are large: worth it where the chunk will be filled, too much where there are
	 * many. */
	if (writer_chunk_limit(writer) == CHUNK_FULL) {
		pthread_mutex_lock(&writer->lock);
		chunk = TAILQ_FIRST(&writer->spares);
		if (chunk) {
			TAILQ_REMOVE(&writer->spares, chunk, in_writer);
			writer->spare_count--;
		}
		pthread_mutex_unlock(&writer->lock);
	}
	return chunk ? chunk : calloc(1, sizeof(*chunk));
}

void chunk_release(struct writer *writer, struct chunk *chunk)
{
	if (writer->spare_count < SPARES_MOST && chunk->lines.cap > CHUNK_FULL &&
	    chunk->lines.cap <= 4UL * CHUNK_FULL) {
		buf_clear(&chunk->lines);
		chunk->events = 0;
		TAILQ_INSERT_HEAD(&writer->spares, chunk, in_writer);
		writer->spare_count++;
		return;
	}
	free_chunk(chunk);
}

size_t chunk_size(const struct chunk *chunk)
{
	return sizeof(*chunk) + chunk->lines.cap;
}

void trace_make_ready(struct trace *trace)
{
	struct writer *writer = trace->writer;
	if (trace->ready)
		return;
	trace->ready = true;
	TAILQ_INSERT_TAIL(&writer->ready, trace, in_ready);
	pthread_cond_signal(&writer->work);
}

int writer_wait(struct writer *writer, uint64_t deadline)
{
	if (!deadline)
		return pthread_cond_wait(&writer->progress, &writer->lock);
	int64_t monotonic = (int64_t)deadline - writer->clock.offset;
	if (monotonic < 0)
		monotonic = 0;
	struct timespec until = {
		.tv_sec = monotonic / 1000000000,
		.tv_nsec = monotonic % 1000000000,
	};
	return pthread_cond_timedwait(&writer->progress, &writer->lock, &until);
}

void trace_hand_over(struct trace *trace, enum patience patience)
{
	struct writer *writer = trace->writer;
	struct chunk *chunk = trace->chunk;

	if (!chunk)
		return;
	trace->chunk = NULL;
	chunk->first = !trace->handed_over;
	trace->handed_over = true;
	if (trace->pending) {
		TAILQ_REMOVE(&writer->pending, trace, in_pending);
		trace->pending = false;
	}

	uint64_t now = clock_now(&writer->clock);
	pthread_mutex_lock(&writer->lock);
	chunk->handed_over = now;
	if (TAILQ_EMPTY(&writer->queued))
		atomic_store(&writer->oldest, now);
	TAILQ_INSERT_TAIL(&trace->queue, chunk, in_trace);
	TAILQ_INSERT_TAIL(&writer->queued, chunk, in_writer);
	writer->queued_bytes += chunk_size(chunk);
	trace_make_ready(trace);
	uint64_t until = patience == WAIT_SHORTLY ? now + LATE_WAIT_MS * WRITER_MS : 0;
	while (patience != WAIT_NOT && writer->queued_bytes > QUEUED_MOST) {
		if (writer_wait(writer, until) == ETIMEDOUT)
			break;
	}
	pthread_mutex_unlock(&writer->lock);
}

void writer_wait_when_late(struct writer *writer, uint64_t now)
{
	uint64_t oldest = atomic_load_explicit(&writer->oldest, memory_order_relaxed);
	if (!oldest || now < oldest + LATE_MS * WRITER_MS)
		return;
	/* `now` was the end of an event; what counts is the clock. */
	now = clock_now(&writer->clock);
	uint64_t until = now + LATE_WAIT_MS * WRITER_MS;
	pthread_mutex_lock(&writer->lock);
	for (;;) {
		oldest = atomic_load(&writer->oldest);
		if (!oldest || now < oldest + LATE_MS * WRITER_MS)
			break;
		if (writer_wait(writer, until) == ETIMEDOUT)
			break;
	}
	pthread_mutex_unlock(&writer->lock);
}

void writer_note_refusal(struct writer *writer, int error, const char *path)
{
	struct writer_totals *totals = &writer->totals;

	totals->lost_files++;
	if (!totals->first_errno) {
		totals->first_errno = error;
		totals->first_path = path ? strdup(path) : NULL;
	}
}

void writer_tick(struct writer *writer)
{
	uint64_t now = clock_now(&writer->clock);
	struct trace *trace;

	while ((trace = TAILQ_FIRST(&writer->pending)) && trace->began + AGE_MS * WRITER_MS <= now)
		trace_hand_over(trace, WAIT_FOR_ROOM);
}

uint64_t writer_next_tick(const struct writer *writer)
{
	const struct trace *trace = TAILQ_FIRST(&writer->pending);
	return trace ? trace->began + AGE_MS * WRITER_MS : 0;
}

void writer_totals(struct writer *writer, struct writer_totals *totals)
{
	struct chunk *chunk;

	pthread_mutex_lock(&writer->lock);
	*totals = writer->totals;
	TAILQ_FOREACH (chunk, &writer->queued, in_writer) {
		totals->late_events += chunk->events;
		totals->late_files += chunk->first;
	}
	pthread_mutex_unlock(&writer->lock);
}

int writer_free(struct writer *writer, uint64_t deadline)
{
	struct trace *trace;

	while ((trace = TAILQ_FIRST(&writer->open)))
		trace_drop(trace);
	pthread_mutex_lock(&writer->lock);
	while (writer->closing_count > 0 && !writer->abandoned)
		writer->abandoned = writer_wait(writer, deadline) == ETIMEDOUT;
	/* At the deadline the last may just have been finished. */
	if (writer->closing_count == 0)
		writer->abandoned = false;
	bool abandoned = writer->abandoned;
	writer->stop = true;
	pthread_cond_broadcast(&writer->work);
	/* The thread that hangs will want its memory when it comes back, and the last to leave
	 * frees it. */
	for (unsigned i = 0; abandoned && i < writer->nworkers; i++)
		pthread_detach(writer->workers[i].thread);
	pthread_mutex_unlock(&writer->lock);
	if (abandoned) {
		errno = ETIMEDOUT;
		return -1;
	}
	for (unsigned i = 0; i < writer->nworkers; i++)
		pthread_join(writer->workers[i].thread, NULL);
	writer_destroy(writer);
	return 0;
}
