/* What the tracer and the agent, which it puts into programs, both know: addresses and the layout of a thread's
 * ring. For C and for the assembler. */
#ifndef TRACER_RECORDER_AGENT_LAYOUT_H
#define TRACER_RECORDER_AGENT_LAYOUT_H

/* Where the agent lies in every program that has one; the filter lets calls from its one system call instruction
 * pass, so this can never change during a run. Below every mmap_base, and inside what ASan, MSan and TSan take
 * for the application's memory. */
#define AGENT_BASE      0x7e8100000000
#define AGENT_SYSCALL   0x10 /* offset of that instruction */
#define AGENT_TEXT_SIZE 0x1000
#define AGENT_LIMIT     512 /* system call numbers that it knows of are below */

/* A byte for each descriptor, not 0: the tracer knows what it is. */
#define AGENT_FDS       0x1000 /* offset of the first */
#define AGENT_FDS_COUNT 0x4000

/* Rings: their addresses have the agent's upper half, by which a stub knows its own %gs. */
#define AGENT_RINGS     0x1000000
#define AGENT_RINGS_MAX 1024
/* What makes the upper half, its bytes reversed, zero. */
#define AGENT_GS_TEST 0x7e820000

/* struct agent_ring: what %gs points to. */
#define RING_HEAD   0
#define RING_LIMIT  8
#define RING_MASK   16
#define RING_FULL   24
#define RING_NR     32
#define RING_RET    40
#define RING_RDX    48
#define RING_RDI    56
#define RING_RSI    64
#define RING_RESULT 72
#define RING_RECORD 80
#define RING_NEXT   88
#define RING_FLAGS  96
#define RING_TAIL   128
/* Of function hooks, whose code uses nothing of the above: where it begins, the first record's address, and the
 * program's registers meanwhile. */
#define RING_HOOK_ENTRY 192
#define RING_HOOK_EXIT  200
#define RING_FIRST      208
#define RING_HOOK_RAX   216
#define RING_HOOK_RDX   224
#define RING_HOOK_FLAGS 232
#define RING_HOOK_BACK  240
#define RING_RECORDS    4096

/* struct agent_record */
#define RECORD_SHIFT  7
#define RECORD_SIZE   128
#define RECORD_STATE  2
#define RECORD_SHAPE  4
#define RECORD_START  8
#define RECORD_END    16
#define RECORD_RESULT 24
#define RECORD_ARGS   32
#define RECORD_IP     80
#define RECORD_SP     88
#define RECORD_SUM    96
#define RECORD_STUB   104
#define RECORD_FD     112
#define RECORD_LENGTH 120

#define RECORD_OPEN 1
#define RECORD_DONE 2

/* What the agent does with a call: bits of a table by its number; 0: it is left to the tracer. */
#define SHAPE_RECORDED 1
#define SHAPE_FD       2   /* argument 0 is a descriptor that has to be known */
#define SHAPE_CLOSES   4   /* … and is not any more */
#define SHAPE_OPENS    8   /* the result is one that is known */
#define SHAPE_DIR0     16  /* argument 0 is AT_FDCWD or a known descriptor */
#define SHAPE_DIR2     32  /* argument 2 is */
#define SHAPE_VECTOR   64  /* arguments 1 and 2 are buffers, whose sum of lengths is wanted */
#define SHAPE_PATH0    128 /* argument 0 is a path, which is copied */
#define SHAPE_PATH1    256
#define SHAPE_PATH3    512

/* No call of the kernel: a hooked function begins, or ends. `ip` is the return address, `sp` where it lies. */
#define SHAPE_HOOK_ENTRY 1024
#define SHAPE_HOOK_EXIT  2048

/* Where the hooks' code lies in the agent's text. */
#define AGENT_HOOKS 0xa00

/* The end part of a hook's stub, which goes on in the function, and what lies before it: a breakpoint, the first word of
 * a record, and what is to be recorded beside the registers. */
#define HOOK_TRAP   40
#define HOOK_WORD   16
#define HOOK_RECIPE 8
/* Where the program's rcx lies meanwhile: below the stack pointer, and below what functions may use there without
 * moving it. */
#define HOOK_SAVED 136
/* Bytes of the recipe; 0: nothing, else one more than */
#define RECIPE_STREAM 0 /* the argument that is a FILE *, whose descriptor is wanted */
#define RECIPE_STRING 1 /* … a string, whose length is */
#define RECIPE_FIXED  2 /* the descriptor that it is about */
#define RECIPE_FILLED 3 /* not 0: the result is a string */

/* The descriptor in a FILE of glibc: there since its first release for this machine (struct _IO_FILE, _fileno). */
#define HOOK_FILENO 112

/* The longest path with its NUL, and how many records behind its own a call may take for two of them. */
#define AGENT_PATH_MAX  4096
#define RECORD_MORE_MAX 66
/* Buffers that a vector may have: beyond, the tracer does not look either. */
#define AGENT_VECTOR_MAX 1024

#ifndef __ASSEMBLER__
#include <stdint.h>

struct agent_record {
	uint16_t nr;
	uint8_t state; /* 0, RECORD_OPEN, RECORD_DONE; written last */
	uint8_t more; /* records behind it hold its paths, one after the other, each with its NUL */
	uint16_t shape;
	uint16_t unused;
	uint64_t start; /* time stamp counter */
	uint64_t end;
	int64_t result;
	uint64_t args[6];
	uint64_t ip; /* where the agent was to return to */
	uint64_t sp;
	uint64_t sum; /* of a vector's lengths */
	/* SHAPE_HOOK_…: */
	uint64_t stub; /* its end part */
	int32_t fd;
	int32_t unused_too;
	uint64_t length; /* of the string */
};

/* One thread writes, the tracer reads. The record at the head has state 0 while no call is being made. */
struct agent_ring {
	uint64_t head;  /* records ever */
	uint64_t limit; /* records that may wait; 0: switched off */
	uint64_t mask;
	uint64_t full; /* calls that were left to the tracer because too many waited */
	/* The program's registers during a call, and what the agent needs itself. */
	uint64_t nr;
	uint64_t ret;
	uint64_t rdx;
	uint64_t rdi;
	uint64_t rsi;
	uint64_t result;
	uint64_t record;
	uint64_t next;
	uint64_t flags;
	uint64_t padding[3];
	uint64_t tail; /* records ever taken; the tracer's */
	uint64_t padding_too[7];
	uint64_t hook_entry;
	uint64_t hook_exit;
	uint64_t first;
	uint64_t hook_rax;
	uint64_t hook_rdx;
	uint64_t hook_flags;
	uint64_t hook_back; /* the end part of the stub it came from, or its breakpoint */
	unsigned char unused[RING_RECORDS - RING_HOOK_BACK - 8];
	struct agent_record records[];
};
#endif

#endif
