/* Traces on disk. A writer belongs to a tracer; a trace is one file, of one process image. Lines
 * are formatted by the caller's thread; worker threads compress and write, several traces at a
 * time.
 *
 * The file on disk is a complete gzip of whole lines after every flush, and at most a second
 * behind what was given to trace_event, as long as writer_tick is called. When the workers fall
 * behind, in bytes or in time, trace_event waits for them: nothing is dropped. When the disk
 * refuses (full, quota, EIO, directory gone), that trace ends there, what it lost is counted,
 * and calls on it stay harmless.
 *
 * All functions but the workers' own are called by one thread. */
#ifndef WRITER_WRITER_H
#define WRITER_WRITER_H

#include "base/buf.h"
#include "base/clock.h"
#include "writer/event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/types.h>

struct summary;
struct writer;
struct trace;

struct writer_options {
	const char *prefix;      /* absolute, expansions as in prefix.h; directories are created
				  * when the first file is */
	const char *stage;       /* directory where files stay until they are complete, then they
				  * are moved to the prefix; NULL: none */
	bool v2;                 /* line format of dftracer 2.2 instead of v1 */
	bool compress;           /* false: plain .pfw */
	bool metadata;           /* false: events, start and end without args */
	bool thread_ids;         /* false: tid 0 everywhere (DFTRACER_DISABLE_TIDS) */
	unsigned long max_files; /* 0: no limit; beyond it traces are counted and not written */
	size_t buffer_bytes; /* of lines, that are handed over at once at most; 0: as many as is good */
	bool discard;        /* no files are written; events go to the summary only */
	struct summary *summary; /* told of the events that files are written for; NULL: none */
	unsigned workers;        /* 0: chosen from the CPUs that the process may use */
	const char *version;     /* of this program, for the start line */
	/* Called first by each worker thread, to take its place among the CPUs; may be NULL. */
	void (*worker_started)(void *data);
	void *worker_data;
	const struct clock *clock;
};

/* Copies what it is given. @return NULL with errno (ENOMEM, EAGAIN from thread creation). */
struct writer *writer_new(const struct writer_options *options);

/* Hands over what is older than a quarter of a second and new since. Call it every 250 ms at
 * most while traces are open; cheap. */
void writer_tick(struct writer *writer);

/* @return ns since the epoch at which writer_tick has something to do, 0: nothing pending. */
uint64_t writer_next_tick(const struct writer *writer);

struct writer_totals {
	uint64_t events;        /* events in files, without start and end */
	uint64_t files;         /* files that exist */
	uint64_t late_events;   /* on their way to the disk, in neither of the others */
	uint64_t late_files;    /* that will be made for them */
	uint64_t lost_events;   /* formatted, but not on disk */
	uint64_t lost_files;    /* not written or ended early because the disk refused */
	uint64_t skipped_files; /* beyond max_files */
	uint64_t staged_files;  /* complete or not, not moved from the stage yet */
	uint64_t stayed_files;  /* of these, could not be moved */
	int stayed_errno;       /* why the first of them could not, 0: none */
	int first_errno;        /* why the first one was refused, 0: none */
	char *first_path;       /* which; NULL: none. The writer's. */
};

/* Waits until all that was given to the writer is on disk, `deadline` (ns since the epoch) at most, and not at
 * all while a worker still hangs that did so at an earlier deadline.
 * @return 0, or -1 with errno ETIMEDOUT. */
int writer_settle(struct writer *writer, uint64_t deadline);

/* What has come of everything so far. Takes the workers' lock. */
void writer_totals(struct writer *writer, struct writer_totals *totals);

/* Waits until everything is on disk, `deadline` (ns since the epoch; 0: no limit) at most, stops
 * the workers and frees the writer; traces still open are flushed without an end line and freed.
 * @return 0, or -1 with errno ETIMEDOUT: some worker still hung in a write and was left behind. */
int writer_free(struct writer *writer, uint64_t deadline);

/* What a file says of its process. Strings are copied, names referenced. */
struct trace_info {
	pid_t pid;
	pid_t ppid;
	const char *exec; /* trace_exec_name's word for the program */
	const char *const *argv;
	size_t argc;
	struct name *cwd; /* NULL: unknown */
	const char *comm; /* of the first thread */
	const char *rank; /* NULL: unknown */
	const char *job;  /* of the batch system or launcher; NULL: none */
	bool always;      /* write the file even if no data event comes: the launched program */
};

/* The program's name for file names and metadata, by the rules of the trace contract: the
 * basename of the first argument that is not an interpreter, an option or an assignment. */
void trace_exec_name(struct buf *out, const char *const *argv, size_t argc);

/* Opens a trace in memory; the file comes with the first data event (`trace_event` with `data`),
 * or at once when info->always. The start line carries the time of this call.
 * @return NULL with errno ENOMEM. */
struct trace *trace_new(struct writer *writer, const struct trace_info *info);

/* @return a number for an event or a metadata line, unique in the file, ascending. */
uint64_t trace_next_id(struct trace *trace);

/* Formats an event, its FH lines and the thread_name line of a thread's first event; may wait
 * for the workers. `data`: whether the event alone makes the file worth writing. */
void trace_event(struct trace *trace, const struct event *event, bool data);

/* Names the thread for the thread_name line that comes before its first event. Without it: its
 * number. */
void trace_thread(struct trace *trace, pid_t tid, const char *comm);

/* @return whether the next event of `tid` would be its first, so that naming it now is worth a
 * read. */
bool trace_thread_is_new(const struct trace *trace, pid_t tid);

/* The thread has ended: another may get its number. */
void trace_thread_over(struct trace *trace, pid_t tid);

/* Adds a PR line: `{"name":"PR", … "args":{"name":key,"value":value}}`. */
void trace_property(struct trace *trace, const char *key, const char *value);

/* Same with a count, for lost:… and skipped:… keys; 0 writes nothing. */
void trace_count(struct trace *trace, const char *key, uint64_t count);

/* Adds a CM line, of the program's own, on behalf of a thread. */
void trace_custom(struct trace *trace, pid_t tid, const char *key, const char *value);

/* @return ns since the epoch when the trace was opened, as its start line says. */
uint64_t trace_started(const struct trace *trace);

struct trace_end {
	enum { TRACE_END_EXIT, TRACE_END_SIGNAL, TRACE_END_EXEC } how;
	int value;         /* exit status or signal */
	struct name *exec; /* path of the next program */
	const char
		*app; /* JSON objects, what the program says of itself and has used; NULL: none */
	const char *used;
};

/* Writes the end line and hands everything over; the trace is the writer's from here on. With
 * `wait`, until the file is complete, `deadline` (ns since the epoch) at most. Once a deadline
 * has passed, later calls do not wait while the same worker still hangs.
 * @return 0, or -1 with errno ETIMEDOUT: it is finished in the background. */
int trace_finish(struct trace *trace, const struct trace_end *end, bool wait, uint64_t deadline);

/* Forgets a trace without an end line: what it holds is flushed, as if the process were still
 * running. */
void trace_drop(struct trace *trace);

/* @return events formatted so far, without start and end. */
uint64_t trace_events(const struct trace *trace);

#endif
