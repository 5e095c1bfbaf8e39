#include "tracer/capture.h"

#include "tracer/memory.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include <linux/aio_abi.h>
#include <sys/uio.h>

/* More control blocks than a context may hold are not looked at (fs.aio-max-nr is 65,536). */
#define MAX_BLOCKS 65536

static void copy_string(struct tracer *tracer, struct task *task, struct call *call, unsigned n)
{
	struct call_data *data = &call->data[n];

	if (!call->args[n])
		return;
	data->offset = call->bytes.len;
	if (memory_read_string(tracer, task, call->args[n], PATH_MAX, &call->bytes) == 0)
		data->state = DATA_COPIED;
	else
		data->state = errno == ENAMETOOLONG ? DATA_TOO_LONG : DATA_UNREADABLE;
	data->len = call->bytes.len - data->offset;
}

static void copy_bytes(struct tracer *tracer, struct task *task, struct call *call, unsigned n,
		       size_t len)
{
	struct call_data *data = &call->data[n];
	char *to;

	if (!call->args[n] || len == 0 || !(to = buf_reserve(&call->bytes, len)))
		return;
	ssize_t got = memory_read(tracer, task, call->args[n], to, len);
	if (got != (ssize_t)len) {
		data->state = DATA_UNREADABLE;
		return;
	}
	data->state = DATA_COPIED;
	data->offset = call->bytes.len;
	data->len = len;
	call->bytes.len += len;
}

/* The bytes that the buffers of a vector have in all. */
static uint64_t vector_length(struct tracer *tracer, struct task *task, uint64_t address,
			      uint64_t count)
{
	struct iovec vector[64];
	uint64_t sum = 0;

	if (count > IOV_MAX)
		return 0;
	while (count) {
		size_t n = count < 64 ? (size_t)count : 64;
		ssize_t len = (ssize_t)(n * sizeof(*vector));
		if (memory_read(tracer, task, address, vector, (size_t)len) != len)
			return 0;
		for (size_t i = 0; i < n; i++)
			sum += vector[i].iov_len;
		address += (uint64_t)len;
		count -= n;
	}
	return sum;
}

/* io_submit's argument is an array of pointers to control blocks. */
static void copy_blocks(struct tracer *tracer, struct task *task, struct call *call)
{
	struct call_data *data = &call->data[2];

	data->offset = call->bytes.len;
	for (uint64_t i = 0; i < call->args[1] && i < MAX_BLOCKS; i++) {
		struct aio_captured block = {0};
		struct iocb iocb;
		uint64_t address;
		if (memory_read(tracer, task, call->args[2] + i * sizeof(address), &address,
				sizeof(address)) != sizeof(address))
			break;
		if (memory_read(tracer, task, address, block.iocb, sizeof(block.iocb)) !=
		    sizeof(block.iocb))
			break;
		block.address = address;
		memcpy(&iocb, block.iocb, sizeof(iocb));
		block.count = iocb.aio_nbytes;
		if (iocb.aio_lio_opcode == IOCB_CMD_PREADV ||
		    iocb.aio_lio_opcode == IOCB_CMD_PWRITEV)
			block.count = vector_length(tracer, task, iocb.aio_buf, iocb.aio_nbytes);
		buf_add(&call->bytes, &block, sizeof(block));
	}
	data->len = call->bytes.len - data->offset;
	data->state = data->len ? DATA_COPIED : DATA_UNREADABLE;
}

static void copy_in(struct tracer *tracer, struct task *task, struct call *call,
		    const struct field *field)
{
	unsigned n = field->arg;

	switch (field->kind) {
	case FIELD_PATH:
	case FIELD_NEW_PATH:
	case FIELD_TARGET:
	case FIELD_TEXT:
		copy_string(tracer, task, call, n);
		break;
	case FIELD_IOVEC: {
		/* Only the sum is of interest; it goes where the array would. */
		uint64_t sum = vector_length(tracer, task, call->args[n], call->args[n + 1]);
		call->data[n] = (struct call_data){DATA_COPIED, call->bytes.len, sizeof(sum)};
		buf_add(&call->bytes, &sum, sizeof(sum));
		break;
	}
	case FIELD_OFFSET_AT:
		copy_bytes(tracer, task, call, n, 8);
		break;
	case FIELD_IN:
		if (call->row->effect == EFFECT_AIO_SUBMIT)
			copy_blocks(tracer, task, call);
		else
			copy_bytes(tracer, task, call, n, field->size);
		break;
	default:
		break;
	}
}

void capture_entry(struct tracer *tracer, struct task *task, struct frame *frame,
		   const struct syscall_row *row, const struct arch_stop *stop, uint64_t now)
{
	struct call *call = &frame->call;

	call->source = CALL_FROM_STOPS;
	call->state = CALL_OPEN;
	call->row = row;
	call->tid = task->tid;
	memcpy(call->args, stop->args, sizeof(call->args));
	call->ip = stop->ip;
	call->sp = stop->sp;
	call->start = now;
	for (const struct field *f = row->fields; f->kind != FIELD_END; f++)
		copy_in(tracer, task, call, f);
}

/* The kernel could not read something: a string that we could may have been it. */
static void recheck_strings(struct task *task, struct call *call)
{
	for (const struct field *f = call->row->fields; f->kind != FIELD_END; f++) {
		struct call_data *data = &call->data[f->arg];
		if ((f->kind == FIELD_PATH || f->kind == FIELD_NEW_PATH ||
		     f->kind == FIELD_TARGET || f->kind == FIELD_TEXT) &&
		    data->state == DATA_COPIED &&
		    !memory_is_accessible(task, call->args[f->arg], data->len + 1))
			data->state = DATA_UNREADABLE;
	}
}

void capture_exit(struct tracer *tracer, struct task *task, struct frame *frame, int64_t ret,
		  uint64_t now)
{
	struct call *call = &frame->call;

	call->state = CALL_DONE;
	call->ret = ret;
	call->end = now;
	if (ret == -EFAULT)
		recheck_strings(task, call);
	if (call_failed(call))
		return;
	for (const struct field *f = call->row->fields; f->kind != FIELD_END; f++) {
		if (f->kind != FIELD_OUT)
			continue;
		size_t len = f->size;
		if (call->row->effect == EFFECT_AIO_REAP)
			len = (size_t)ret * sizeof(struct io_event);
		copy_bytes(tracer, task, call, f->arg, len);
	}
}
