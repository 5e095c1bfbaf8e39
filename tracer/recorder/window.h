/* The bytes at a system call that a jump may take the place of. Nothing here knows a process: code in, a plan out. */
#ifndef TRACER_RECORDER_WINDOW_H
#define TRACER_RECORDER_WINDOW_H

#include "symbols/insn.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A near jump. */
#define WINDOW_JUMP 5

enum window_form {
	/* The one instruction before the system call, which stays where it is: no thread can stand inside, no
	 * branch lead into it, and every address that the program can see remains its own. */
	WINDOW_BEFORE,
	/* The system call and the one instruction behind it. The only place inside where a thread can stand is
	 * between the two: there the jump's third byte is a breakpoint (see stub.h). */
	WINDOW_AFTER,
	WINDOW_REFUSED,
};

enum window_refusal {
	WINDOW_FITS,
	WINDOW_NO_BOUNDS, /* it is not known where its function begins */
	WINDOW_NO_DECODE, /* the function's instructions do not lead to the call */
	WINDOW_NO_ROOM,   /* too few bytes before and behind */
	WINDOW_NO_COPY,   /* there are enough, but they cannot be executed elsewhere */
	/* Not found here, but by those who patch: */
	WINDOW_SHARED,  /* a jump would be written to its file */
	WINDOW_CHANGED, /* what lies in memory is not the file's */
	WINDOW_NO_STUB, /* no memory for a stub within reach */
	WINDOW_REFUSALS,
};

struct window {
	enum window_form form;
	enum window_refusal refusal;
	uint64_t begin;
	uint64_t ip;      /* behind the system call instruction */
	struct insn insn; /* what is displaced beside the system call */
};

/* A function, and as much as there is of what follows it. Addresses may be a file's or a process's. */
struct window_code {
	const unsigned char *bytes;
	size_t len;
	size_t function_len;
	uint64_t begin;
};

/* Looks at the system call instruction that ends at `ip`. */
void window_find(struct insn_decoder *decoder, const struct window_code *code, uint64_t ip,
		 struct window *window);

/* @return why, in a few words. */
const char *window_refusal(enum window_refusal refusal);

#endif
