#include "tracer/aio.h"

#include "tracer/decode.h"
#include "tracer/resolve.h"

#include <stdlib.h>
#include <string.h>

#include <linux/aio_abi.h>

/* A submitted control block. */
struct aio_block {
	const char *name;
	struct file *file;
	pid_t tid;
	int fd;
	uint64_t count;
	int64_t offset;
	bool has_bytes; /* count and offset mean something */
	uint64_t start;
};

static void block_free(struct aio_block *block)
{
	if (block) {
		file_unref(block->file);
		free(block);
	}
}

static const char *block_name(unsigned opcode, bool *has_bytes)
{
	*has_bytes = true;
	switch (opcode) {
	case IOCB_CMD_PREAD:
		return "pread";
	case IOCB_CMD_PWRITE:
		return "pwrite";
	case IOCB_CMD_PREADV:
		return "preadv";
	case IOCB_CMD_PWRITEV:
		return "pwritev";
	case IOCB_CMD_FSYNC:
		*has_bytes = false;
		return "fsync";
	case IOCB_CMD_FDSYNC:
		*has_bytes = false;
		return "fdatasync";
	default:
		return NULL; /* polls and no-ops move nothing */
	}
}

static void submit_one(struct tracer *tracer, struct task *task, const struct call *call,
		       const struct aio_captured *captured)
{
	struct iocb iocb;
	bool has_bytes;
	bool ambiguous;

	memcpy(&iocb, captured->iocb, sizeof(iocb));
	const char *name = block_name(iocb.aio_lio_opcode, &has_bytes);
	if (!name)
		return;
	struct aio_block *block = calloc(1, sizeof(*block));
	if (!block) {
		tracer_end_recording(tracer, "out of memory");
		return;
	}
	struct file *file = resolve_fd(tracer, task, (int)iocb.aio_fildes, call->start, &ambiguous);
	block->name = name;
	block->file = file ? file_ref(file) : NULL;
	block->tid = call->tid;
	block->fd = (int)iocb.aio_fildes;
	block->count = captured->count;
	block->offset = iocb.aio_offset;
	block->has_bytes = has_bytes;
	block->start = call->start;
	/* An address that is used again without having been reported: the older one is over. */
	block_free(map_remove(&task->mm->aio, captured->address));
	if (map_put(&task->mm->aio, captured->address, block) < 0) {
		block_free(block);
		tracer_end_recording(tracer, "out of memory");
	}
}

void aio_submitted(struct tracer *tracer, struct task *task, const struct frame *frame)
{
	const struct call *call = &frame->call;
	struct aio_captured captured;

	if (!frame->record)
		return;
	for (int64_t i = 0; i < call->ret; i++) {
		if (!call_has(call, 2, (size_t)(i + 1) * sizeof(captured))) {
			task->process->lost[LOST_UNREADABLE]++;
			break;
		}
		memcpy(&captured, call_bytes(call, 2) + (size_t)i * sizeof(captured),
		       sizeof(captured));
		submit_one(tracer, task, call, &captured);
	}
}

static void write_block(struct tracer *tracer, struct task *task, const struct aio_block *block,
			uint64_t end, const struct io_event *result)
{
	struct trace *trace = task->process->trace;
	struct event event = {
		.layer = LAYER_POSIX,
		.name = block->name,
		.pid = task->process->pid,
		.tid = block->tid,
		.start = block->start,
		.end = end,
		.file = block->file ? block->file->name : NULL,
	};

	if (!trace || (block->file && block->file->outside))
		return;
	event.id = trace_next_id(trace);
	decode_int(&event, "fd", block->fd);
	if (block->has_bytes) {
		decode_uint(&event, "count", block->count);
		decode_int(&event, "offset", block->offset);
	}
	decode_int(&event, "aio", 1);
	if (result)
		decode_result(&event, result->res);
	else
		decode_int(&event, "cut", 1);
	decode_write(tracer, task, &event, NULL, true);
}

void aio_reaped(struct tracer *tracer, struct task *task, const struct frame *frame)
{
	const struct call *call = &frame->call;
	struct io_event result;

	for (int64_t i = 0; i < call->ret; i++) {
		if (!call_has(call, 3, (size_t)(i + 1) * sizeof(result))) {
			task->process->lost[LOST_UNREADABLE]++;
			break;
		}
		memcpy(&result, call_bytes(call, 3) + (size_t)i * sizeof(result), sizeof(result));
		struct aio_block *block = map_remove(&task->mm->aio, result.obj);
		if (block)
			write_block(tracer, task, block, call->end, &result);
		block_free(block);
	}
}

void aio_cut(struct tracer *tracer, struct task *task, uint64_t now)
{
	struct map_slot *slot;
	size_t at = 0;

	while ((slot = map_next(&task->mm->aio, &at)))
		write_block(tracer, task, slot->value, now, NULL);
	aio_free(&task->mm->aio);
}

void aio_free(struct map *blocks)
{
	struct map_slot *slot;
	size_t at = 0;

	while ((slot = map_next(blocks, &at)))
		block_free(slot->value);
	map_free(blocks);
}
