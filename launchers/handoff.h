/* What program and tracer tell each other until the program has exec'ed: a page that both map, and a pair
 * of sockets. Nothing of it outlives the exec. */
#ifndef LAUNCHERS_HANDOFF_H
#define LAUNCHERS_HANDOFF_H

#include "launchers/options.h"

#include <stdbool.h>
#include <stddef.h>

#include <linux/filter.h>
#include <sys/types.h>

struct tracer;

struct handoff {
	pid_t tracer_pid; /* 0: could not be made, see `error_number` */
	int error_number; /* why seizing was refused, 0: it was not */
	char error[512];  /* why the tracer could not start; empty: it could */
	bool filter;      /* the program is to install `insns` */
	int filter_error; /* and could not */
	size_t ninsns;
	struct sock_filter insns[4096];
};

struct channel {
	struct handoff *shared;
	int program; /* the program's end of the sockets */
	int tracer;
};

/* @return 0, or -1 with errno. */
int handoff_open(struct channel *channel);

enum handoff_result {
	HANDOFF_FAILED,  /* said in shared->error or error_number, or the tracer died */
	HANDOFF_REFUSED, /* seizing was not permitted */
};

/* The program's side, once the tracer exists: waits until it is seized, installs the filter and execs. @return only on
 * failure; *status is what to exit with when the program itself could not be executed, else 0. */
enum handoff_result handoff_program(struct channel *channel, const char *path, char **argv,
				    int *status);

/* The tracer's side: seizes `pid` and traces it to the end. @return whether the program has been
 * followed; false: it was told why not. `*status`: the main program's end as a wait status' si_code and value. */
struct handoff_end {
	int code;
	int value;
};
bool handoff_trace(struct channel *channel, const struct options *options, pid_t pid,
		   bool parent_form, int report_fd, const char *note, struct handoff_end *end);

#endif
