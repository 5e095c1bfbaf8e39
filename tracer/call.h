/* A system call as captured: what decoding gets, whoever captured it. Nothing in it needs the traced
 * program any more; calls come in each thread's order, between threads in any. */
#ifndef TRACER_CALL_H
#define TRACER_CALL_H

#include "base/buf.h"
#include "tracer/syscalls.h"

#include <stdbool.h>
#include <stdint.h>

#include <sys/types.h>

enum call_source {
	CALL_FROM_STOPS,    /* ptrace stops */
	CALL_FROM_RECORDER, /* inside the program; it may be long over */
};

enum call_state {
	CALL_OPEN, /* has begun */
	CALL_DONE, /* ret is its result */
	CALL_CUT,  /* its thread died in it, or left it for good */
};

/* What an argument pointed to. */
struct call_data {
	enum {
		DATA_ABSENT,     /* nothing to copy, or a null pointer */
		DATA_COPIED,     /* `len` bytes at `offset` of the call's bytes */
		DATA_TOO_LONG,   /* a string without an end within the kernel's limit */
		DATA_UNREADABLE, /* the address is not the program's */
	} state;
	size_t offset;
	size_t len;
};

struct call {
	enum call_source source;
	enum call_state state;
	const struct syscall_row *row;
	pid_t tid;
	uint64_t args[6];
	int64_t ret;    /* the kernel's: -errno on failure */
	uint64_t start; /* ns since the epoch */
	uint64_t end;
	uint64_t ip; /* behind the system call instruction; 0: unknown */
	uint64_t sp;
	pid_t child; /* made by it, as the tracer numbers it; 0: none */
	struct call_data data[6];
	struct buf bytes;
};

/* @return the bytes copied for argument `n`; valid until the call is changed. */
static inline const char *call_bytes(const struct call *call, unsigned n)
{
	return call->bytes.data + call->data[n].offset;
}

static inline bool call_has(const struct call *call, unsigned n, size_t len)
{
	return call->data[n].state == DATA_COPIED && call->data[n].len >= len;
}

static inline bool call_failed(const struct call *call)
{
	return call->ret < 0 && call->ret >= -4095;
}

#endif
