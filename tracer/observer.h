/* What happens to address spaces and threads, for whoever builds on the core: breakpoints at the
 * entry point, later function hooks and a recorder. All callbacks may be NULL; the task is stopped in
 * all of them but thread_exit and process_exit after a SIGKILL. Every ptrace call in them may fail with ESRCH: the task was
 * killed meanwhile, and its end will be reported like any other. */
#ifndef TRACER_OBSERVER_H
#define TRACER_OBSERVER_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include <sys/queue.h>

struct task;
struct tracer;

struct observer {
	STAILQ_ENTRY(observer) link;

	/* A new image stands before its first instruction; its mm is new. */
	void (*exec_stop)(struct observer *, struct tracer *, struct task *);
	/* A new process stands before its first instruction; `parent` may have died (NULL). */
	void (*child_first_stop)(struct observer *, struct tracer *, struct task *parent,
				 struct task *child);
	/* A new thread stands before its first instruction; its registers may be written. */
	void (*thread_start)(struct observer *, struct tracer *, struct task *);
	/* A signal is about to be delivered. @return true to swallow it: it was the observer's own. */
	bool (*before_signal)(struct observer *, struct tracer *, struct task *, const siginfo_t *);
	/* A file was mapped executable. */
	void (*mapped)(struct observer *, struct tracer *, struct task *, uint64_t address,
		       uint64_t length);
	void (*thread_exit)(struct observer *, struct tracer *, struct task *);
	/* The last thread of a process is at its end. */
	void (*process_exit)(struct observer *, struct tracer *, struct task *);
};

STAILQ_HEAD(observers, observer);

#endif
