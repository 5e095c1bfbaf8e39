/* What the parts of the writer share: not for others. */
#ifndef WRITER_STATE_H
#define WRITER_STATE_H

#include "base/buf.h"
#include "base/clock.h"
#include "base/map.h"
#include "writer/line.h"
#include "writer/member.h"
#include "writer/output.h"
#include "writer/summary.h"
#include "writer/writer.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

#include <sys/queue.h>

#define WRITER_MS 1000000UL

enum {
	CHUNK_FULL = 62 << 10,  /* bytes of lines that are handed over at once */
	CHUNK_LEAST = 4 << 10,  /* the same when very many traces are open */
	CHUNKS_OPEN = 4 << 20,  /* what the chunks of all open traces may hold together */
	HELD_MOST = 1 << 20,    /* kept in memory while no event made the file worth writing */
	QUEUED_MOST = 8 << 20,  /* handed over and not yet written, of all traces */
	FLUSH_BYTES = 48 << 10, /* compressed; a flush ends with the chunk that reaches it */
	MEMBER_BYTES = 8 << 20, /* uncompressed */
	STREAMS_MOST = 32,      /* deflate streams alive */
	SPARES_MOST = 8,        /* empty chunks kept for reuse */
	OPEN_FILES_MOST = 256,  /* beyond it a file is closed between flushes */
	AGE_MS = 250,           /* of lines before they are handed over */
	LATE_MS = 700,          /* of a chunk in the queue before trace_event waits for it */
	LATE_WAIT_MS = 50,      /* how long one call then waits */
	NAMES_MOST = 1 << 18,   /* remembered as written per trace; then they are written again */
	THREADS_MOST = 1 << 16, /* the same for threads */
	WORKERS_MOST = 64,
	WORKERS_DEFAULT_MOST = 4,
};

/* Whole lines on their way to the file. */
struct chunk {
	TAILQ_ENTRY(chunk) in_trace;
	TAILQ_ENTRY(chunk) in_writer;
	struct buf lines;
	uint64_t events;
	uint64_t handed_over; /* when */
	bool first;           /* of its file */
};

TAILQ_HEAD(chunk_list, chunk);
TAILQ_HEAD(trace_list, trace);

/* A deflate stream. It belongs to the trace that used it last until another needs it more: after
 * a flush any other, reset stream may go on with the member. */
struct stream {
	TAILQ_ENTRY(stream) in_writer; /* least recently used first */
	struct deflater *deflater;
	struct trace *trace; /* NULL: none's */
	bool busy;           /* a worker has it */
};

TAILQ_HEAD(stream_list, stream);

struct worker {
	struct writer *writer;
	pthread_t thread;
	struct buf out;      /* the flush being made */
	struct trace *trace; /* at work on it; NULL: idle */
	unsigned long steps; /* flushes and traces done: stands still while a write hangs */
};

/* A thread of a process. */
struct thread {
	char *comm; /* NULL: unknown */
	bool seen;  /* its thread_name line is out */
	pid_t pid;
	struct line_ids ids;
};

enum trace_state {
	TRACE_HELD,    /* no data event so far */
	TRACE_WRITTEN, /* chunks go to the workers */
	TRACE_SKIPPED, /* beyond max_files */
};

struct trace {
	struct writer *writer;

	/* The calling thread's. */
	TAILQ_ENTRY(trace) in_open;
	TAILQ_ENTRY(trace) in_pending;
	enum trace_state state;
	bool pending; /* in the list: its chunk waits for its age */
	char *rank;   /* NULL: unknown */
	uint64_t last_id;
	uint64_t events;
	struct map names;   /* hashes whose FH line is out */
	struct map threads; /* struct thread by tid */
	struct thread *last_thread;
	pid_t last_tid;
	uint64_t last_name;   /* the hash that was looked up last */
	struct chunk *chunk;  /* being filled; NULL: none */
	uint64_t began;       /* when its first line came */
	bool handed_over;     /* the first chunk has gone to the workers */
	struct summary *held; /* of the events while the trace is held; NULL: none */

	/* Constant. */
	pid_t pid;
	char *exec;
	char *prefix;        /* with its expansions made */
	struct line_ids ids; /* of the process's own lines */

	/* Under the writer's lock. */
	TAILQ_ENTRY(trace) in_ready;
	struct chunk_list queue;
	bool ready;            /* in the list, or at a worker */
	bool closing;          /* no chunk comes any more */
	bool *done;            /* set when the file is complete; NULL: nobody waits */
	struct stream *stream; /* NULL: none */
	atomic_bool refused;   /* the file ended early */

	/* Of the worker that has it. */
	struct output output;
	struct member member;
	uint64_t written; /* events in the file */
	bool counted;     /* the file holds lines of the process */
};

struct writer {
	/* Constant. */
	struct writer_options options;
	char *prefix;
	char *stage; /* prefix of files until they are moved; NULL: they are not */
	char *version;
	char *host;
	struct clock clock;
	struct line_format format;
	const char *ending; /* the last line of a file */
	struct worker *workers;
	unsigned nworkers;

	/* The calling thread's. */
	struct trace_list open;
	struct trace_list pending; /* oldest first */
	unsigned long open_count;
	unsigned long begun_files;

	/* When the oldest chunk in the queue was handed over, 0: there is none. Written under
	 * the lock. */
	_Atomic uint64_t oldest;

	atomic_uint open_files;

	pthread_mutex_t lock;
	pthread_cond_t work;     /* for workers: something is ready, or stop */
	pthread_cond_t progress; /* for the caller: something was done */
	struct trace_list ready;
	struct chunk_list queued; /* of all traces, oldest first, until they are written */
	size_t queued_bytes;
	struct chunk_list spares;
	unsigned spare_count;
	struct stream_list streams;
	unsigned stream_count;
	unsigned long closing_count; /* traces that are finished and not yet freed */
	unsigned started;            /* workers that took their place and have not left it */
	bool stop;
	bool abandoned;      /* do not even finish what is queued */
	struct worker *hung; /* the worker that a deadline passed for, and its steps then */
	unsigned long hung_steps;
	struct writer_totals totals;
};

/* writer.c: frees a writer that no other thread uses any more, with all it has. */
void writer_destroy(struct writer *writer);

/* worker.c: the workers' side. */

void *worker_main(void *worker);

/* writer.c: chunks and waiting, on the calling thread. */

/* How long hand_over may wait for the workers to take what is queued. */
enum patience {
	WAIT_NOT,
	WAIT_SHORTLY,
	WAIT_FOR_ROOM,
};

/* @return how many bytes of lines a chunk may hold before it is handed over. */
size_t writer_chunk_limit(const struct writer *writer);

/* @return an empty chunk, NULL when out of memory. */
struct chunk *chunk_new(struct writer *writer);

/* @return the memory that a chunk takes. */
size_t chunk_size(const struct chunk *chunk);

/* Frees a chunk or keeps it as a spare. Under the lock. */
void chunk_release(struct writer *writer, struct chunk *chunk);

/* Gives the trace's chunk, if any, to the workers. */
void trace_hand_over(struct trace *trace, enum patience patience);

/* Puts the trace where a worker finds it. Under the lock. */
void trace_make_ready(struct trace *trace);

/* Waits a little when the workers are late. `now`: about the present time. */
void writer_wait_when_late(struct writer *writer, uint64_t now);

/* Waits for progress until `deadline` (0: no limit). Under the lock. @return 0 or ETIMEDOUT. */
int writer_wait(struct writer *writer, uint64_t deadline);

/* Notes that a file was refused. Under the lock. */
void writer_note_refusal(struct writer *writer, int error, const char *path);

/* trace.c: lines, on the calling thread. */

/* @return where the next line goes, NULL when the trace has ended, or ends here for want of
 * memory. */
struct buf *trace_lines(struct trace *trace);

/* Hands over what is large or old enough. `now`: about the present time. */
void trace_after_lines(struct trace *trace, uint64_t now);

/* Decides that the trace gets a file, if it may have one. */
void trace_begin_file(struct trace *trace);

/* Adds a metadata line with a plain value, or with the hash of a name. */
void trace_add_text(struct trace *trace, const struct line_ids *ids, const char *kind,
		    const char *name, const char *value);
void trace_add_hashed(struct trace *trace, const struct line_ids *ids, const char *kind,
		      struct name *name);

/* Writes the FH line of a name that the trace has not had yet. */
void trace_introduce(struct trace *trace, const struct line_ids *ids, struct name *name);

/* @return the ids of an event's line, after the thread_name line if it is due; NULL when out of
 * memory. */
const struct line_ids *trace_ids_of(struct trace *trace, pid_t pid, pid_t tid);

/* Frees the trace's memory, not its file. Chunks in its queue must be settled. */
void trace_free(struct trace *trace);

#endif
