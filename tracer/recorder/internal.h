/* What the files of this folder share. */
#ifndef TRACER_RECORDER_INTERNAL_H
#define TRACER_RECORDER_INTERNAL_H

#include "symbols/insn.h"
#include "symbols/modules.h"
#include "symbols/object.h"
#include "tracer/arch/arch.h"
#include "tracer/observer.h"
#include "tracer/recorder/agent/layout.h"
#include "tracer/recorder/recorder.h"
#include "tracer/recorder/stub.h"
#include "tracer/tracer.h"

/* As /proc/PID/maps shows them. */
#define RINGS_NAME "dftrace"

/* In a ring; powers of two. Beyond so many users of rings the later ones have small ones, with room for the longest call
 * and what may wait. */
#define RECORDS       4096
#define RECORDS_SMALL 512
#define USERS_FEW     8

/* What is shared the program may overwrite by mistake: nothing in it is believed to lie within bounds. */
struct ring {
	struct agent_ring *shared; /* as it is mapped here */
	size_t number;             /* where it lies among the others */
	uint64_t mask;             /* records, less one */
	uint64_t tail;             /* as the tracer itself knows it */
	struct task *task;         /* NULL: free */
	bool begun;                /* the call being made has become a frame already */
	uint64_t until;            /* ns: all that was taken had ended then */
};

/* Room for stubs, near code. */
#define AREA_SIZE  0x20000
#define AREA_STUBS (AREA_SIZE / STUB_SIZE)
struct area {
	uint64_t address;
	uint64_t stubs[AREA_STUBS]; /* address behind the system call whose stub it is; 0: free */
};

enum patch_state { PATCH_NEW, PATCH_DONE, PATCH_REFUSED };

/* A place where the program makes system calls. */
struct patch {
	uint64_t ip; /* behind the system call instruction */
	enum patch_state state;
	/* The rest is known once it has been looked at. */
	unsigned hits; /* since its state or its obstacle was last looked at */
	struct window window;
	unsigned char jump[WINDOW_JUMP];
	unsigned char before[WINDOW_JUMP]; /* what the jump has displaced */
	uint64_t address;                  /* of the stub */
	unsigned char test;
	unsigned char after; /* WINDOW_AFTER only */
};

struct recorder_space {
	bool agent;    /* it is in the program's memory */
	bool off;      /* nobody gets a ring any more */
	bool asked;    /* whether it is a program that is to stop only */
	bool prepared; /* for threads, or that was tried */
	bool no_more;  /* no thread gets one beside those that have */
	bool no_sync;  /* memory barriers are not to be had */
	struct files
		*files; /* those that the table of descriptors is about; NULL: nobody has a ring */
	int memfd;      /* the rings; -1: none yet */
	struct ring **rings; /* those in use come first */
	size_t nrings;
	size_t nused;
	struct area *areas;
	size_t nareas;
	unsigned hook_stops; /* hooked calls that have stopped for lack of a ring */
	struct map patches;  /* struct patch by ip */
	struct modules modules;
};

/* A ring of which the first record is to be taken, and when that ended. */
struct ring_due {
	uint64_t end;
	struct ring *ring;
};

struct recorder {
	struct observer observer;
	struct recorder_options options;
	uint16_t shapes[AGENT_LIMIT];
	struct insn_decoder *decoder;
	struct objects *objects; /* the tracer's */
	/* The two clocks, at one moment. */
	uint64_t ticks;
	uint64_t ns;
	struct recorder_census ended; /* of processes that are over */
	/* Ticks that the filter adds to a recorded call. */
	bool cost_known;
	uint64_t cost;
	struct ring_due due[AGENT_RINGS_MAX]; /* while rings are drained */
};

extern const unsigned char agent_begin[];
extern const unsigned char agent_saving[];
extern const unsigned char agent_working[];
extern const unsigned char agent_reading[];
extern const unsigned char agent_read[];
extern const unsigned char agent_called[];
extern const unsigned char agent_entry[];
extern const unsigned char agent_shapes[];
extern const unsigned char agent_end[];

/* @return the bytes from one label to another of the same code. */
static inline uint64_t label_distance(const unsigned char *from, const unsigned char *to)
{
	return (uint64_t)(uintptr_t)to - (uint64_t)(uintptr_t)from;
}

/* @return where in the agent a label of its stands. */
static inline uint64_t agent_offset(const unsigned char *label)
{
	return label_distance(agent_begin, label);
}

static inline struct agent_record *ring_record(const struct ring *ring, uint64_t number)
{
	return &ring->shared->records[number & ring->mask];
}

/* What the agent does with calls of a row. */
uint16_t recorder_shape(const struct syscall_row *row);

/* hooked.c: function hooks. Adds their code to the agent's. */
void hooked_put_agent(unsigned char text[AGENT_TEXT_SIZE]);
/* A ring that will lie at `address` in the program. */
void hooked_prepare(struct agent_ring *shared, uint64_t address);
void hooked_take(struct tracer *tracer, struct task *task, const struct agent_record *record,
		 uint64_t time);
/* A signal is about to be delivered. @return whether the thread stood in a hook's stub, or was recording one; its
 * registers are changed then. `*swallow`: the signal was ours. */
bool hooked_signal(struct tracer *tracer, struct task *task, struct arch_regs *regs,
		   const siginfo_t *info, bool *swallow);

/* native.c. Flags as the agent saves them. */
void native_restore_flags(struct user_regs_struct *r, uint64_t saved);
/* @return whether a signal that is about to be delivered comes of what the thread's own instruction has done. */
bool native_is_forced(const struct task *task, const siginfo_t *info);
/* … which, in the agent's code, is our doing: a path, a vector or a stream that cannot be read, of which the kernel, or
 * the tracer, shall say so. Elsewhere the agent has been deprived of something. */
bool native_is_own_fault(const struct task *task, const siginfo_t *info);
/* The agent has been deprived of something: nothing is recorded in the process any more, the thread has no ring. */
void native_give_up(struct tracer *tracer, struct task *task, struct arch_regs *regs,
		    struct ring *ring);

/* space.c. @return the thread's ring, made if there can be one; NULL: it has none. */
struct ring *space_give(struct tracer *tracer, struct task *task);
/* Before a process gets its second thread: what cannot be done unnoticed when it has more is done now, by calls of its
 * own. @return whether there was something to do; the call at whose entry the task stands is not made then. */
bool space_prepare(struct tracer *tracer, struct task *task);
struct ring *space_ring_of(const struct task *task);
/* @return whether the program may have jumps at hooked functions, as far as is known when code is mapped. */
bool space_takes_hooks(const struct tracer *tracer, struct task *task);
/* Nobody has it any more. */
void space_free_ring(struct recorder_space *space, struct ring *ring);
/* Nobody's calls are recorded there any more. */
void space_switch_off(struct task *task, enum off why);
/* Says whether the tracer knows a descriptor. */
void space_set_known(struct task *task, int fd, bool known);
void space_forget_all(struct task *task);

/* patch.c */
void patch_try(struct tracer *tracer, struct task *task, struct patch *patch);
/* @return the place that a stub at `address` belongs to, NULL: no stub. */
struct patch *patch_of_stub(const struct recorder_space *space, uint64_t address);
/* @return whether another thread makes a copy of the memory: what is written to code meanwhile may be there or not. */
bool patch_is_copied(struct tracer *tracer, const struct task *task);
/* Takes back the jumps in [begin, end): code that moves would take them to where they lead nowhere.
 * @return whether that took calls of the task's own: the call at whose entry it stands is not made then. */
bool patch_withdraw(struct tracer *tracer, struct task *task, uint64_t begin, uint64_t end);
/* @return whether the jump lies there, whatever is believed of it. */
bool patch_has_jump(struct tracer *tracer, struct task *task, const struct patch *patch);
/* @return whether the jump is still there; else it is forgotten. */
bool patch_is_there(struct tracer *tracer, struct task *task, struct patch *patch);

/* cost.c. Finds out what the filter adds to a recorded call, once in a run: by a loop that runs in the task, where the
 * agent will lie, and one in the tracer. */
void cost_measure(struct tracer *tracer, struct task *task);

/* drain.c. Takes what has ended by now, in the order of its ends. */
void drain_space(struct tracer *tracer, struct recorder_space *space);
/* Takes all that a ring has, and makes a call that is being made a frame. */
void drain_ring(struct tracer *tracer, struct ring *ring);
uint64_t drain_ticks(void);
/* @return what the filter adds to a recorded call, in ns. */
uint64_t drain_cost_ns(const struct tracer *tracer);
/* The first of the two moments by which ticks are known in nanoseconds. */
void drain_begin_clock(struct recorder *recorder, const struct clock *clock);

#endif
