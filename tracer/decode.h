/* From calls to events. Decoding looks at the call, its row and the task's state, and updates that state; it never asks
 * the traced program. A call is decoded in two steps: what it is about is settled when it begins (descriptors
 * mean what they mean then), what came of it when it has ended. */
#ifndef TRACER_DECODE_H
#define TRACER_DECODE_H

#include "tracer/tracer.h"

/* Settles the frame's names and files, whether it is recorded and whether its end matters. */
void decode_begin(struct tracer *tracer, struct task *task, struct frame *frame);

/* Updates the state and writes the event. The call is DONE or CUT. */
void decode_end(struct tracer *tracer, struct task *task, struct frame *frame);

/* Ends the task's calls in flight from the innermost on, down to `keep` of them: it left them for good. */
void decode_cut(struct tracer *tracer, struct task *task, size_t keep, uint64_t now);

/* Writes the event of a frame, with the frames around it as its parents; `self` NULL: it has none. For calls that are more
 * than one event, too. */
void decode_write(struct tracer *tracer, struct task *task, struct event *event,
		  const struct frame *self, bool data);

/* Settles the event's level and parent: the calls and regions around it, that is around a call that begins or has
 * begun as `self`. */
void decode_nest(const struct task *task, struct event *event, const struct frame *self);

/* Tells the trace the thread's name before its first event. */
void decode_name_thread(struct tracer *tracer, struct trace *trace, pid_t tid);

/* Fills an event from a frame, but for its arguments. */
void decode_init(struct event *event, struct task *task, const struct frame *frame);

/* @return whether calls on this file are recorded; NULL: not open. What is left out is counted. */
bool decode_file_is_recorded(struct tracer *tracer, struct task *task, const struct file *file);

/* Appends an argument; bytes of a text are borrowed until decode_write. */
void decode_text(struct event *event, const char *key, const char *bytes, size_t len);
void decode_int(struct event *event, const char *key, int64_t value);
void decode_uint(struct event *event, const char *key, uint64_t value);

/* Appends `ret`, and `errno` when it is a failure, from a kernel's result. */
void decode_result(struct event *event, int64_t ret);

#endif
