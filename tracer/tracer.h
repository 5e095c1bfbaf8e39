/* The tracer: follows a program and everything it starts, and writes what they do. */
#ifndef TRACER_TRACER_H
#define TRACER_TRACER_H

#include "base/buf.h"
#include "base/clock.h"
#include "tracer/hooks/hooks.h"
#include "tracer/observer.h"
#include "tracer/recorder/recorder.h"
#include "tracer/select.h"
#include "tracer/task.h"
#include "writer/writer.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct place;

/* What the launcher asks for; everything pointed to must outlive the tracer. */
struct tracer_options {
	const char *prefix;       /* absolute; with expansions, see writer/prefix.h */
	const char *rank;         /* of the main program; NULL: none or unknown */
	bool rank_said;           /* it is by the user's word */
	const char *stage;        /* see struct writer_options */
	struct observer *first;   /* told of everything before the tracer's own; may be NULL */
	const char *settings;     /* where they come from, for -v; NULL: not told */
	const char *shown_prefix; /* as the user gave it, for the exit line */
	const struct selection *selection;
	char *const *data_dirs; /* absolute, normalised */
	size_t ndata_dirs;      /* 0: everything */
	bool (*excludes)(const void *data, const char *comm);
	const void *excludes_data;
	struct hook_options hooks;
	struct recorder_options recorder;
	bool v2;
	bool paths_given;
	bool names_kernel;
	bool compress;
	bool metadata; /* see struct writer_options, and of the next two */
	bool thread_ids;
	size_t buffer_bytes;
	bool core_affinity; /* write which CPUs a process may use */
	unsigned long max_files;
	bool summary;             /* say what the events add up to */
	bool summary_only;        /* and write no traces */
	bool json;                /* the summary as JSON */
	const char *summary_file; /* absolute; NULL: stderr */
	bool placement;
	bool quiet;
	unsigned verbose;
	bool debug;
	bool parent_form; /* the main program is our child: its end is ours to pass on */
	/* The fallback ladder. */
	bool use_syscall_info;
	bool use_proc_mem;
	bool use_vm_readv;
};

/* A wait status, as it came. */
struct status {
	STAILQ_ENTRY(status) link;
	pid_t tid;
	int code;  /* si_code: CLD_TRAPPED, CLD_STOPPED, CLD_EXITED, CLD_KILLED, CLD_DUMPED */
	int value; /* si_status */
	uint64_t time;
};

STAILQ_HEAD(statuses, status);

struct tracer {
	const struct tracer_options *options;
	struct clock clock;
	struct writer *writer;
	struct summary *summary; /* NULL: none is wanted */
	uint64_t summarized;     /* events in what was written to the summary's file */
	struct place *place;
	bool filter; /* the program runs under our seccomp filter: stops come only for wanted calls */
	bool pass_through; /* tracing has ended: stops are answered, nothing is recorded */

	struct map tasks;     /* struct task by tid */
	struct map processes; /* struct process by pid: the current image of each */
	size_t held;          /* tasks in TASK_NEW */
	size_t leaving;       /* tasks that `leaves` is set of */
	struct statuses queue;
	struct statuses spare; /* status structs to be used again */
	struct observers observers;
	struct observer entry_mark;
	struct observer privileges;
	struct objects *objects;
	struct hooks *hooks;       /* NULL: no function is hooked */
	struct recorder *recorder; /* NULL: all calls stop */
	const char *no_recorder;   /* why there is none although it is wanted; NULL: there is */

	pid_t main_pid;
	bool setuid_warned;
	bool contradicted;       /* the launcher's word on ranks is not MPI's */
	char confirmed_rank[16]; /* of the main program, by MPI itself; empty: as the options say */
	bool refused_ptrace;     /* said so */
	bool refused_strict;
	bool main_execed;
	bool main_started; /* the first image of the launched program has its trace */
	bool main_ended;
	int main_code; /* as si_code, si_status */
	int main_value;

	uint64_t now;     /* when the status being dealt with came */
	uint64_t started; /* when the main program was exec'ed */
	uint64_t next_tick;
	uint64_t next_watch;
	uint64_t lost[LOST_COUNT]; /* of processes that have ended */
	uint64_t skipped[SKIPPED_COUNT];
	uint64_t stops;
	uint64_t images;     /* programs and forks of them that were seen */
	struct buf warnings; /* sentences for the exit line, joined by "; " */
	bool reported;       /* the exit line's time has come */
	int report_fd;       /* stderr, until the exit line is out; -1 then */
	FILE *debug;         /* NULL: no --debug */

	/* Scratch memory. */
	struct buf path;
	struct buf text;

	/* Called at ticks until the main program has exec'ed; see tracer_run. */
	void (*before_exec)(struct tracer *, void *data);
	void *before_exec_data;
	/* Parent form: called after each signal-delivery or group-stop of the main process. */
	void (*main_signal)(struct tracer *, int sig, const siginfo_t *info, void *data);
	void (*main_stopped)(struct tracer *, void *data);
	/* Called at every tick; may be NULL. */
	void (*each_tick)(struct tracer *, uint64_t now, void *data);
	void *parent_data;
};

/* @return a tracer that follows nothing yet, NULL with one sentence in `error`. Heavy libraries are
 * initialised here and not before. */
struct tracer *tracer_new(const struct tracer_options *options, struct buf *error);

/* Seizes a process that is about to become the traced program by exec. With `filter` it will install the
 * seccomp filter itself before that; without, it is made to stop at each system call.
 * @return 0, or -1 with errno of PTRACE_SEIZE. */
int tracer_seize(struct tracer *tracer, pid_t pid, bool filter);

/* Says in the exit line that there is no filter, and why. */
void tracer_warn_no_filter(struct tracer *tracer, const char *why);

/* The seized process could not install the filter: stop at each call instead. Called between tracer_seize and its exec. */
int tracer_without_filter(struct tracer *tracer, const char *why);

/* Follows until nothing is left to follow. @return 0, or -1 with errno of a failed wait. */
int tracer_run(struct tracer *tracer);

/* Adds an observer, which must outlive the tracer. They are called in the order of being added. */
void tracer_observe(struct tracer *tracer, struct observer *observer);

/* Adds a sentence to the exit line. */
__attribute__((format(printf, 2, 3))) void tracer_warn(struct tracer *tracer, const char *format,
						       ...);

/* Ends recording for good (out of memory): the program runs on, the loss is counted and said. */
void tracer_end_recording(struct tracer *tracer, const char *why);

void tracer_free(struct tracer *tracer);

#endif
