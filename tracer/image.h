/* Process images: what is known of a program from its exec to its end, and its trace. */
#ifndef TRACER_IMAGE_H
#define TRACER_IMAGE_H

#include "tracer/tracer.h"

/* @return the trace of the task's process, made when it is first needed; NULL: out of memory (said). */
struct trace *image_trace(struct tracer *tracer, struct task *task);

/* @return the kernel's name of a thread, NULL: not to be had. Valid until the tracer's scratch text is used. */
const char *image_comm(struct tracer *tracer, pid_t tid);

/* MPI itself has told the process's rank in its world, or how many ranks that has. Where the launcher's environment
 * says otherwise, MPI's word counts, and the exit line says so. */
void image_confirm_rank(struct tracer *tracer, struct process *process, int rank);
void image_confirm_size(struct tracer *tracer, struct process *process, int size);

/* Makes the image that a task stands before after exec, and sets it as the task's. `program`: its path,
 * for a process whose command line is hidden; NULL: unknown. @return 0, or -1 with errno. */
int image_exec(struct tracer *tracer, struct task *task, const struct name *program);

/* Makes the image of a process that `parent`'s has forked; `parent` may be NULL. @return NULL with ENOMEM. */
struct process *image_fork(struct tracer *tracer, const struct process *parent, pid_t pid);

/* Ends an image: its counts, its end line. @return 0, or -1 with errno ETIMEDOUT (see trace_finish). */
int image_end(struct tracer *tracer, struct process *process, const struct trace_end *end,
	      bool wait, uint64_t now);

#endif
