/* Tries in child processes what tracing needs, as a run would do it. Nothing is changed in the caller. */
#ifndef LAUNCHERS_PROBE_H
#define LAUNCHERS_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include <sys/types.h>

struct probe_plan {
	bool parent_form; /* the tracer is the program's parent, else a detached grandchild */
	bool filter;      /* calls stop by a seccomp filter, else all of them do */
	bool features;    /* try what the result lists, else only count and measure */
	unsigned calls;   /* that the program makes; each stops twice */
	int tracer_cpu;   /* where to bind them, -1: nowhere */
	int program_cpu;
};

/* An errno for each thing that was tried: 0 it works, -1 it was not tried, because something before did not
 * work or the process that tried was killed for it. */
struct probe_result {
	pid_t tracer;
	int started; /* making the processes */
	int seize;
	int filter;
	bool no_new_privs; /* the program had to give up gaining privileges */
	int syscall_info;
	int proc_status; /* /proc/PID of the program, as far as tracing reads it */
	int proc_mem;
	int vm_readv;
	int peek;
	int bind;
	uint64_t stops; /* of the program's calls */
	uint64_t ns;    /* from the first to the last of them */
};

/* @return 0, or -1 with errno when nothing could be tried. Takes seconds at most. */
int probe_run(const struct probe_plan *plan, struct probe_result *result);

/* Asks the kernel which of its newer seccomp actions and filter flags it knows, in a child.
 * @return a bit for each of probe_seccomp_names, -1: whoever asked was killed for it. */
int probe_seccomp(void);

#define PROBE_SECCOMP_NAMES 8
extern const char *const probe_seccomp_names[PROBE_SECCOMP_NAMES];

#endif
