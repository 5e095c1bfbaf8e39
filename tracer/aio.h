/* Linux asynchronous I/O: blocks submitted with io_submit, until io_getevents reports them. */
#ifndef TRACER_AIO_H
#define TRACER_AIO_H

#include "base/map.h"

struct frame;
struct task;
struct tracer;

/* What capture copies for each block of an io_submit, one after the other. */
struct aio_captured {
	unsigned char iocb[64]; /* struct iocb of linux/aio_abi.h */
	unsigned long address;
	unsigned long count; /* bytes, of the vectored forms too */
};

/* Remembers the blocks that the call has submitted. */
void aio_submitted(struct tracer *tracer, struct task *task, const struct frame *frame);

/* Writes an event for each block that the call has reported. */
void aio_reaped(struct tracer *tracer, struct task *task, const struct frame *frame);

/* Writes what is still outstanding as cut: the process ends. */
void aio_cut(struct tracer *tracer, struct task *task, uint64_t now);

void aio_free(struct map *blocks);

#endif
