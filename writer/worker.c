/* What worker threads do: take a trace at a time, compress its chunks, write them. */
#include "writer/state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Finds the trace a deflate stream: its own, a new one, or the one that was not used for longest.
 * `*own`: whether it knows the trace's last lines. Under the lock. */
static struct stream *take_stream(struct writer *writer, struct trace *trace, bool *own)
{
	struct stream *stream = trace->stream;

	*own = stream != NULL;
	if (!stream && writer->stream_count < STREAMS_MOST) {
		stream = calloc(1, sizeof(*stream));
		if (stream && !(stream->deflater = deflater_new())) {
			free(stream);
			stream = NULL;
		}
		if (stream) {
			TAILQ_INSERT_TAIL(&writer->streams, stream, in_writer);
			writer->stream_count++;
		}
	}
	if (!stream) {
		TAILQ_FOREACH (stream, &writer->streams, in_writer) {
			if (!stream->busy)
				break;
		}
	}
	if (!stream)
		return NULL;
	if (stream->trace)
		stream->trace->stream = NULL;
	stream->trace = trace;
	stream->busy = true;
	trace->stream = stream;
	TAILQ_REMOVE(&writer->streams, stream, in_writer);
	TAILQ_INSERT_TAIL(&writer->streams, stream, in_writer);
	return stream;
}

/* Makes the stream the next one to be given away. Under the lock. */
static void drop_stream(struct writer *writer, struct trace *trace)
{
	struct stream *stream = trace->stream;
	if (!stream)
		return;
	trace->stream = NULL;
	stream->trace = NULL;
	stream->busy = false;
	TAILQ_REMOVE(&writer->streams, stream, in_writer);
	TAILQ_INSERT_HEAD(&writer->streams, stream, in_writer);
}

/* Appends the ending to the flush. @return its length. */
static size_t add_ending(struct worker *worker, const struct trace *trace)
{
	const struct writer *writer = worker->writer;
	struct buf *out = &worker->out;
	size_t text_len = strlen(writer->ending);
	size_t len = text_len + (writer->options.compress ? MEMBER_CLOSE : 0);
	struct member unchanged = trace->member;

	/* The call that will replace this ending must lie in one page. Lines leave no room for
	 * padding but a blank, which JSON allows. */
	while (!out->failed && len > 0 &&
	       (trace->output.ending_at + out->len) % OUTPUT_PAGE + len > OUTPUT_PAGE) {
		if (writer->options.compress) {
			member_store(&unchanged, out, "", 0);
		} else {
			out->data[out->len - 1] = ' ';
			buf_add_char(out, '\n');
		}
	}
	if (writer->options.compress)
		member_close(&trace->member, out, writer->ending, text_len);
	else
		buf_add_str(out, writer->ending);
	return len;
}

/* Writes the flush. @return 0, or -1 with errno. */
static int write_flush(struct worker *worker, struct trace *trace)
{
	size_t ending_len = add_ending(worker, trace);
	int result = -1;

	if (worker->out.failed)
		errno = ENOMEM;
	else
		result = output_append(&trace->output, &worker->out, ending_len);
	buf_clear(&worker->out);
	return result;
}

/* What the trace's file is named after: below the stage when there is one, else below its prefix. */
static struct output_name name_of(const struct trace *trace, const char *stage)
{
	const struct writer *writer = trace->writer;

	return (struct output_name){
		.prefix = stage ? stage : trace->prefix,
		.exec = trace->exec,
		.host = writer->host,
		.pid = trace->pid,
		.suffix = writer->options.compress ? ".pfw.gz" : ".pfw",
	};
}

static void count_staged(struct writer *writer, int more)
{
	pthread_mutex_lock(&writer->lock);
	writer->totals.staged_files += (uint64_t)more;
	pthread_mutex_unlock(&writer->lock);
}

/* Moves a complete file from the stage to its prefix. */
static void leave_stage(struct writer *writer, struct trace *trace)
{
	const struct output_name name = name_of(trace, NULL);

	if (output_move(&trace->output, &name) == 0) {
		count_staged(writer, -1);
		return;
	}
	int error = errno;
	pthread_mutex_lock(&writer->lock);
	writer->totals.stayed_files++;
	if (!writer->totals.stayed_errno)
		writer->totals.stayed_errno = error;
	pthread_mutex_unlock(&writer->lock);
}

/* Creates the file, empty but valid. @return 0, or -1 with errno. */
static int create_file(struct worker *worker, struct trace *trace)
{
	struct writer *writer = worker->writer;
	bool compress = writer->options.compress;
	struct output_name name = name_of(trace, writer->stage);
	const char *opening = writer->options.v2 ? "" : "[\n";

	if (output_create(&trace->output, &name) < 0)
		return -1;
	if (writer->stage)
		count_staged(writer, 1);
	atomic_fetch_add(&writer->open_files, 1);
	if (compress) {
		member_open(&trace->member, &worker->out);
		member_store(&trace->member, &worker->out, opening, strlen(opening));
	} else {
		buf_add_str(&worker->out, opening);
	}
	return worker->out.len > 0 ? write_flush(worker, trace) : 0;
}

/* Makes the file ready to be written. @return 0, or -1 with errno. */
static int open_file(struct worker *worker, struct trace *trace)
{
	if (!trace->output.path)
		return create_file(worker, trace);
	if (trace->output.fd >= 0)
		return 0;
	if (output_open(&trace->output) < 0)
		return -1;
	atomic_fetch_add(&worker->writer->open_files, 1);
	return 0;
}

static int close_file(struct writer *writer, struct trace *trace)
{
	if (trace->output.fd < 0)
		return 0;
	atomic_fetch_sub(&writer->open_files, 1);
	return output_close(&trace->output);
}

/* Takes `count` chunks off the list and out of the account, as written or as lost. */
static void settle(struct worker *worker, struct trace *trace, struct chunk_list *chunks,
		   size_t count, bool written)
{
	struct writer *writer = worker->writer;

	pthread_mutex_lock(&writer->lock);
	for (; count > 0; count--) {
		struct chunk *chunk = TAILQ_FIRST(chunks);
		TAILQ_REMOVE(chunks, chunk, in_trace);
		TAILQ_REMOVE(&writer->queued, chunk, in_writer);
		writer->queued_bytes -= chunk_size(chunk);
		if (written) {
			writer->totals.files += !trace->counted;
			trace->counted = true;
			writer->totals.events += chunk->events;
			trace->written += chunk->events;
		} else {
			writer->totals.lost_events += chunk->events;
		}
		chunk_release(writer, chunk);
	}
	struct chunk *oldest = TAILQ_FIRST(&writer->queued);
	atomic_store(&writer->oldest, oldest ? oldest->handed_over : 0);
	worker->steps++;
	pthread_cond_broadcast(&writer->progress);
	pthread_mutex_unlock(&writer->lock);
}

/* Takes what the file held out of the account: it is no more. Under the lock. */
static void count_as_gone(struct writer *writer, struct trace *trace)
{
	writer->totals.files -= trace->counted;
	writer->totals.events -= trace->written;
	writer->totals.lost_events += trace->written;
	trace->counted = false;
	trace->written = 0;
}

/* Ends the trace where its file ends now. `gone`: there is no file any more. */
static void refuse(struct worker *worker, struct trace *trace, int error, bool gone)
{
	struct writer *writer = worker->writer;

	pthread_mutex_lock(&writer->lock);
	writer_note_refusal(writer, error, trace->output.path);
	atomic_store(&trace->refused, true);
	drop_stream(writer, trace);
	if (gone)
		count_as_gone(writer, trace);
	pthread_mutex_unlock(&writer->lock);
	/* A file without a single line of the process says nothing. */
	bool remains = !gone && trace->counted;
	if (!gone && !trace->counted)
		output_remove(&trace->output);
	if (writer->stage && trace->output.ino && !remains)
		count_staged(writer, -1);
}

/* Adds one chunk to the flush. @return 0, or -1 with errno ENOMEM. */
static int add_chunk(struct worker *worker, struct trace *trace, const struct chunk *chunk,
		     bool flush)
{
	struct member *member = &trace->member;
	struct buf *out = &worker->out;

	if (!worker->writer->options.compress) {
		buf_add(out, chunk->lines.data, chunk->lines.len);
		return 0;
	}
	if (out->len == 0 && member->size >= MEMBER_BYTES) {
		member_close(member, out, "", 0);
		member_open(member, out);
		deflater_reset(trace->stream->deflater);
	}
	return member_add(member, trace->stream->deflater, out, chunk->lines.data, chunk->lines.len,
			  flush);
}

/* Puts as many chunks as fit into one flush and writes it.
 * @return how many, 0: none could be written, with errno. */
static size_t flush_some(struct worker *worker, struct trace *trace, struct chunk_list *chunks)
{
	struct chunk *chunk;
	size_t count = 0;

	buf_clear(&worker->out);
	TAILQ_FOREACH (chunk, chunks, in_trace) {
		/* One that fills the flush, or the last, ends at a byte. What a chunk adds is
		 * known only afterwards, so the next is assumed to add as much. */
		size_t mean = count ? worker->out.len / count : 0;
		bool flush = !TAILQ_NEXT(chunk, in_trace) ||
			     worker->out.len + mean >= FLUSH_BYTES ||
			     trace->member.size + chunk->lines.len >= MEMBER_BYTES;
		if (add_chunk(worker, trace, chunk, flush) < 0)
			return 0;
		count++;
		if (flush)
			break;
	}
	return write_flush(worker, trace) < 0 ? 0 : count;
}

/* Writes the chunks, or counts them lost. */
static void write_chunks(struct worker *worker, struct trace *trace, struct chunk_list *chunks)
{
	struct writer *writer = worker->writer;
	struct chunk *chunk;
	size_t lost = 0;

	if (!atomic_load(&trace->refused) && open_file(worker, trace) < 0) {
		bool gone = trace->counted && (errno == ENOENT || errno == ESTALE);
		refuse(worker, trace, errno, gone);
	}
	while (!TAILQ_EMPTY(chunks) && !atomic_load(&trace->refused)) {
		size_t count = flush_some(worker, trace, chunks);
		if (count > 0)
			settle(worker, trace, chunks, count, true);
		else
			refuse(worker, trace, errno, false);
	}
	TAILQ_FOREACH (chunk, chunks, in_trace)
		lost++;
	if (lost > 0)
		settle(worker, trace, chunks, lost, false);
	if (atomic_load(&trace->refused) || atomic_load(&writer->open_files) > OPEN_FILES_MOST)
		close_file(writer, trace);
}

/* Closes a finished trace's file and frees the trace. The lock is held, except while closing. */
static void end_trace(struct worker *worker, struct trace *trace)
{
	struct writer *writer = worker->writer;
	bool refused = atomic_load(&trace->refused);

	pthread_mutex_unlock(&writer->lock);
	/* A file that somebody removed, or that the file system gives up only now, is not there. */
	bool removed = trace->counted && trace->output.fd >= 0 && output_is_removed(&trace->output);
	int error = close_file(writer, trace) < 0 ? errno : 0;
	if (writer->stage && trace->counted && removed)
		count_staged(writer, -1);
	else if (writer->stage && trace->counted)
		leave_stage(writer, trace);
	pthread_mutex_lock(&writer->lock);

	if (removed) {
		count_as_gone(writer, trace);
		error = ENOENT;
	}
	if (error && !refused)
		writer_note_refusal(writer, error, trace->output.path);
	drop_stream(writer, trace);
	if (trace->done)
		*trace->done = true;
	writer->closing_count--;
	trace_free(trace);
}

/* Does what is to be done for a trace. The lock is held, except while writing. */
static void serve(struct worker *worker, struct trace *trace)
{
	struct writer *writer = worker->writer;
	struct chunk_list chunks = TAILQ_HEAD_INITIALIZER(chunks);
	bool own = true;

	worker->trace = trace;
	TAILQ_CONCAT(&chunks, &trace->queue, in_trace);
	if (!TAILQ_EMPTY(&chunks) && !atomic_load(&trace->refused)) {
		if (writer->options.compress && !take_stream(writer, trace, &own)) {
			writer_note_refusal(writer, ENOMEM, trace->output.path);
			atomic_store(&trace->refused, true);
		}
	}
	pthread_mutex_unlock(&writer->lock);
	if (!own)
		deflater_reset(trace->stream->deflater);
	if (!TAILQ_EMPTY(&chunks))
		write_chunks(worker, trace, &chunks);
	pthread_mutex_lock(&writer->lock);

	if (trace->stream)
		trace->stream->busy = false;
	trace->ready = false;
	if (!TAILQ_EMPTY(&trace->queue))
		trace_make_ready(trace);
	else if (trace->closing)
		end_trace(worker, trace);
	worker->trace = NULL;
	worker->steps++;
	pthread_cond_broadcast(&writer->progress);
}

void *worker_main(void *data)
{
	struct worker *worker = data;
	struct writer *writer = worker->writer;

	if (writer->options.worker_started)
		writer->options.worker_started(writer->options.worker_data);
	pthread_mutex_lock(&writer->lock);
	writer->started++;
	pthread_cond_broadcast(&writer->progress);
	while (!writer->abandoned) {
		struct trace *trace = TAILQ_FIRST(&writer->ready);
		if (trace) {
			TAILQ_REMOVE(&writer->ready, trace, in_ready);
			serve(worker, trace);
		} else if (writer->stop) {
			break;
		} else {
			pthread_cond_wait(&writer->work, &writer->lock);
		}
	}
	bool last = --writer->started == 0;
	bool abandoned = writer->abandoned;
	pthread_mutex_unlock(&writer->lock);
	if (abandoned && last)
		writer_destroy(writer);
	return NULL;
}
