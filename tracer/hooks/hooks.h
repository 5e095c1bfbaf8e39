/* Function hooks: breakpoints on functions by their symbols. A hooked call stops where it begins and on the
 * function's own way out; in between the program runs at full speed. A breakpoint is never lifted to get
 * over it: what it displaces is emulated, or executed elsewhere. */
#ifndef TRACER_HOOKS_HOOKS_H
#define TRACER_HOOKS_HOOKS_H

#include "symbols/hooks.h"
#include "tracer/observer.h"
#include "tracer/task.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hooks;
struct objects;
struct hook_space;
struct arch_regs;

/* A pattern of -x. */
struct hook_pattern {
	const char *function; /* glob, or /regular expression/ */
	const char *module;   /* glob of the file's name; NULL: any */
};

struct hook_options {
	const bool *written[HOOK_LAYERS]; /* by row of the layer's table; NULL: none */
	unsigned long limit; /* hits of one function in a second before it is lifted; 0: none */
	const struct hook_pattern *patterns;
	size_t npatterns;
	unsigned long max_hooks; /* of -x, in one address space */
	bool no_emulation;       /* all that breakpoints displace is executed elsewhere */
	const char *const *symbol_dirs;
	size_t nsymbol_dirs;
};

/* What has come of the functions looked for, over all files seen. */
struct hook_census {
	unsigned long found;
	unsigned long hooked;
	unsigned long refused;
};

/* @return whether there is anything to hook. */
bool hooks_are_wanted(const struct hook_options *options);

/* What is hooked of a layer where the rows `written` are: these, and those that they need. Both by row. */
void hooks_choose(enum hook_layer layer, const bool *written, bool *wanted);

/* @param objects  borrowed. @return NULL with errno ENOMEM. */
struct hooks *hooks_new(const struct hook_options *options, struct objects *objects);
void hooks_free(struct hooks *hooks);

/* What is known of a function's beginning, or of its end. */
struct hook_moment {
	const struct arch_regs
		*regs; /* the thread stands there; NULL: it was recorded, and may be long gone */
	uint64_t time; /* ns */
	uint64_t sp;   /* where the return address lies */
	uint64_t return_address;
	uint64_t args[6];
	int64_t result;
	/* Recorded only: */
	uint64_t stub;
	bool exit;
	int fd;          /* of its stream */
	uint64_t length; /* of its string */
};

/* Where the tracer has a recorder, calls of functions whose arguments allow it are recorded inside the program. */
void hooks_use_recorder(struct hooks *hooks);

/* A recorded moment. */
void hooks_recorded(struct tracer *tracer, struct task *task, const struct hook_moment *at);

/* A signal has come while the thread stands in the stub, at the instruction pointer; or, with `left`, had gone on from it
 * to record, has its own registers again, and `recorded` or not has done so. Makes it go on from where it would be
 * without us.
 * @return false: no stub of a hook lies there. */
bool hooks_leave_stub(struct tracer *tracer, struct task *task, struct arch_regs *regs,
		      uint64_t stub, bool left, bool recorded);

/* A handler of the program is about to be entered for the signal: where the thread stands at a copy of what was displaced
 * it shall see that in its own place. */
void hooks_handler_enters(struct task *task, const siginfo_t *info);

/* … and returns, with this stack pointer at rt_sigreturn: the copy is where the thread goes on. */
void hooks_sigreturn(struct tracer *tracer, struct task *task, uint64_t sp);

/* @return whether the address lies in a hook's stub. */
bool hooks_is_in_stub(const struct task *task, uint64_t ip);

/* … and whether rcx is not the program's there, but lies below the stack pointer. */
bool hooks_stub_has_rcx(const struct task *task, uint64_t ip);

/* … and nothing has been done yet but what was displaced. */
bool hooks_is_at_test(const struct task *task, uint64_t ip);

/* @return whether a stub's breakpoint lies at the address. */
bool hooks_is_stub_breakpoint(const struct task *task, uint64_t address);

/* Puts bytes into memory of ours where a system call of the program can read them; good for one call, where the address
 * space has hooks. @return their address, 0: no room. */
uint64_t hooks_put_data(struct tracer *tracer, struct task *task, const void *bytes, size_t len);

/* The observer that places hooks and takes their hits. Owned by `hooks`. */
struct observer *hooks_observer(struct hooks *hooks);

/* Appends to the exit line what was hooked, what was hot in `run` ns, and with `verbose` what was refused and
 * why; nothing when nothing was looked for. */
void hooks_report(const struct hooks *hooks, uint64_t run, bool verbose, struct buf *out);

/* Writes what was hooked so far as metadata: for each layer `hooks:<layer>` = "N of M". */
void hooks_describe(const struct hooks *hooks, struct trace *trace);

/* Something has stopped: what was lifted for a while goes back when its time has come. */
void hooks_tick(struct tracer *tracer, struct task *task);

/* @return whether code that is not known may be where memory becomes executable. */
bool hooks_expect_code(struct tracer *tracer, struct task *task, uint64_t address, uint64_t length);

/* A file is being mapped, executable or not. */
void hooks_file_mapped(struct task *task);

/* Memory of the program is about to go from one place to another; breakpoints in both leave it until that is done.
 * @return whether there may be code to hook afterwards. */
bool hooks_begin_move(struct tracer *tracer, struct task *task, uint64_t from, uint64_t from_length,
		      uint64_t to, uint64_t to_length);

/* It is done, or has failed. */
void hooks_end_move(struct tracer *tracer, struct task *task);

/* Ends calls of hooked functions that a system call made at `sp` cannot come from. */
void hooks_stale(struct tracer *tracer, struct task *task, uint64_t sp, uint64_t now);

/* Ends the frame of a hooked call whose state is DONE or CUT: its event. */
void hooks_end(struct tracer *tracer, struct task *task, struct frame *frame);

/* @return LAYER_SYSCALL for a system call that a recorded stream's call makes, else LAYER_POSIX. */
enum layer hooks_layer(const struct task *task, const struct frame *call);

/* @return whether a call is made inside the frame's hooked function, by itself or by a signal handler. */
bool hook_is_around(const struct frame *frame, const struct frame *call);

/* Takes all breakpoints out of the task's address space, for good. */
void hooks_withdraw(struct tracer *tracer, struct task *task);

/* @return whether a breakpoint of ours is at the address; `space` may be NULL. */
bool hook_space_has(const struct hook_space *space, uint64_t address);

/* The address space's hooks, for a forked one. @return NULL when there are none or with errno ENOMEM. */
struct hook_space *hook_space_copy(const struct hook_space *space);
void hook_space_free(struct hook_space *space);

#endif
