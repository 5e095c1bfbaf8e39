/* The state of what is traced. Each object is owned by what the kernel shares it among: a task is a
 * thread; process, mm, files and fs are reference-counted. */
#ifndef TRACER_TASK_H
#define TRACER_TASK_H

#include "base/map.h"
#include "tracer/aio.h"
#include "tracer/call.h"
#include "tracer/files.h"
#include "tracer/forced.h"
#include "tracer/labels.h"
#include "tracer/recorder/census.h"
#include "writer/writer.h"

#include <stdbool.h>
#include <stdint.h>

#include <sys/queue.h>
#include <sys/types.h>

/* Counts of what could not be seen; the names stand in lost.c. */
enum lost {
	LOST_UNREADABLE,
	LOST_UNTRACED,
	LOST_COMPAT,
	LOST_IO_URING,
	LOST_AMBIGUOUS,
	LOST_DROPPED,
	LOST_SETUID,
	LOST_UNVERIFIED,
	LOST_UNHOOKED_STDIO,
	LOST_UNHOOKED_MPI,
	LOST_UNHOOKED_HDF5,
	LOST_UNSIZED_MPI, /* calls whose bytes are not known: a datatype or a communicator is not */
	LOST_UNSIZED_HDF5, /* … a type or a selection */
	LOST_UNNAMED_MPI,  /* calls on a file that was not seen being opened */
	LOST_UNNAMED_HDF5,
	LOST_OWN_FILTER,
	LOST_TRUNCATED, /* texts of annotations that were too long, arguments that were too many */
	LOST_COUNT,
};

/* Counts of what was left out on purpose. */
enum skipped {
	SKIPPED_TTY,
	SKIPPED_PIPE,
	SKIPPED_SOCKET,
	SKIPPED_ANON,
	SKIPPED_NULL,
	SKIPPED_BADFD,
	SKIPPED_DATADIR,
	SKIPPED_CLASS,
	SKIPPED_COUNT,
};

struct recorder_space;
struct ring;

/* An address space: shared by CLONE_VM (threads, vfork). */
struct mm {
	unsigned refs;
	int mem_fd;     /* /proc/TID/mem, kept open from the exec stop; -1: not to be had */
	uint64_t entry; /* the executable's entry point; 0: unknown */
	unsigned char entry_byte; /* what the breakpoint at `entry` replaced */
	bool entry_pending;       /* the breakpoint is in place */
	bool entry_placed;        /* … or was */
	uint64_t syscall_ip; /* a system call instruction for remote calls; 0: not looked for yet */
	uint64_t vdso;       /* 0: none */
	struct map sites;    /* struct site by address */
	struct hook_space *hooks;        /* breakpoints on functions; NULL: none */
	struct recorder_space *recorder; /* what is recorded inside the program; NULL: nothing */
	struct map aio;                  /* see aio.h */
};

/* Working directory and root: shared by CLONE_FS. */
struct fs {
	unsigned refs;
	struct name *cwd; /* NULL: not known */
	struct name
		*cwd_shown; /* what /proc said instead when it was asked last; NULL: nothing else */
	struct name *root;  /* NULL: the tracer's own */
	bool root_known;
};

struct annotations;
struct region;

/* A thread group's image: exec makes a new one. */
struct process {
	unsigned refs;
	pid_t pid;
	pid_t ppid;
	bool is_main;          /* the program that dftrace-run was given */
	bool excluded;         /* not recorded */
	bool always;           /* its file is written even if no data event comes */
	bool of_launcher;      /* of a launcher of ranks, not of one of its ranks */
	struct labels *labels; /* what its trace says of it beside its own; NULL: nothing */
	bool started;          /* the executable's entry point has been reached */
	uint64_t told_to_end;  /* when it was last given a signal that asks for its end; 0: never */
	char **argv;           /* NULL-terminated, in one allocation */
	size_t argc;
	struct trace *trace; /* NULL: none yet, or over */
	uint64_t lost[LOST_COUNT];
	uint64_t skipped[SKIPPED_COUNT];
	unsigned threads;                /* tasks alive */
	struct annotations *annotations; /* what it has said of itself; NULL: nothing */
	bool library_known;              /* whether DFTracer's library records it as well: */
	bool library_records;
	struct forced_action forced[FORCED_SIGNALS];
	struct recorder_census recorded;
};

/* One descriptor of a close_range. */
struct closing {
	int fd;
	struct file *file;
};

struct hook_function;
struct hook_space;

/* A call in flight, from its entry to its event: of the kernel, or of a hooked function. */
struct frame {
	struct call call; /* of a hooked function: without a row; sp is that of its entry */
	struct hook_function *hook; /* NULL: a system call */
	uint64_t return_address;
	bool no_result;    /* of a hooked function: it has ended where that cannot be seen */
	unsigned handlers; /* the task's, when it began */
	const char *name;  /* as written */
	/* Of a library's function: */
	bool inner;          /* made by another call of the library */
	bool has_size;       /* size_sum is known */
	uint64_t size_sum;   /* bytes that it moves */
	uint64_t values[16]; /* its arguments; behind them, in Fortran, where its result goes */
	uint64_t notes[4];   /* the layer's, from the entry to the end */
	struct name *path;   /* what fhash says, when it is a path's */
	struct name *new_path;
	struct file *file; /* of the descriptor */
	struct file *out_file;
	bool path_wanted;   /* by the data directories: the path, or the new one */
	bool unreadable;    /* some of its memory could not be read */
	bool by_descriptor; /* an at-call whose path is empty: it is about `dirfd` */
	int dirfd;
	bool record;           /* an event will be written */
	bool needs_exit;       /* its result matters: for the event or for the state */
	bool brings_code;      /* that may have to be hooked */
	bool untraced_cleared; /* CLONE_UNTRACED was taken away */
	bool interrupted;      /* ended with one of the kernel's restart codes */
	bool in_handler;   /* and a handler runs since; `handler_sp` is its first stack pointer */
	bool will_restart; /* the kernel restarts it when the handler returns */
	uint64_t handler_sp;
	uint64_t id;             /* of the event; 0: none */
	uint64_t closed_at;      /* when effects_begin ended intervals, for their restoring */
	struct closing *closing; /* what close_range closes */
	size_t nclosing;
};

enum task_state {
	TASK_NEW, /* waits for its first stop, its parent's event, or both */
	TASK_RUNNING,
	TASK_STOPPED,   /* in a stop that is being handled */
	TASK_LISTENING, /* in a group-stop, by PTRACE_LISTEN */
};

struct task {
	pid_t tid;
	enum task_state state;
	struct process *process;
	struct mm *mm;
	struct files *files;
	struct fs *fs;

	/* TASK_NEW: a new task is held until both are in. */
	bool first_stop_in;
	bool parent_event_in;
	uint64_t held_since;
	uint64_t clone_args; /* where its copy of clone3's flags lacks CLONE_UNTRACED; 0: nowhere */
	uint64_t clone_flags; /* what the program put there */

	bool before_exec;   /* still dftrace-run itself */
	bool want_exit;     /* the innermost frame is in the kernel, and its end is asked for */
	bool in_syscall;    /* without a filter: the next system call stop is an exit */
	bool first_syscall; /* without a filter: that of a new task may be the exit of its clone */
	uint64_t again;     /* where a call woken by an ignored signal is made again; 0: nowhere */
	uint64_t stack_top; /* its stack pointer at its start; 0: unknown */
	struct ring *ring;  /* where its calls are recorded; NULL: nowhere */
	uint64_t forced_blocked; /* those signals of forced.h that are in its mask */
	unsigned handlers;       /* signal handlers running inside hooked calls */
	bool stepping;           /* one step, into the handler of the signal just delivered */
	uint64_t restarted;      /* when it was last let go on */
	uint64_t watched;        /* when the watchdog last looked at it */
	bool given_up;           /* by the watchdog: its stops are answered, nothing is recorded */

	struct frame *frames; /* calls in flight: the innermost is the last */
	size_t nframes;
	size_t frames_cap;
	struct region *region; /* the innermost that it has begun by an annotation; NULL: none */
	int held_sig;          /* TASK_NEW: its first stop was a group-stop by this signal */
	bool over;             /* its end has been told to the observers */
	uint64_t
		leaves; /* when it is let go from the stop before its end; 0: it is not held there */
};

/* A call site: where system calls were made, and how often. */
struct site {
	uint64_t ip;
	uint64_t hits;
};

struct mm *mm_new(void);
struct mm *mm_ref(struct mm *mm);
void mm_unref(struct mm *mm);

struct fs *fs_new(void);
struct fs *fs_ref(struct fs *fs);
struct fs *fs_copy(const struct fs *fs);
void fs_unref(struct fs *fs);

struct process *process_new(pid_t pid);
struct process *process_ref(struct process *process);
void process_unref(struct process *process);

struct task *task_new(pid_t tid);

/* Frees the task and gives back its references. */
void task_free(struct task *task);

/* @return a cleared frame on top of the task's others, NULL with errno ENOMEM. Frames keep the memory of
 * their call's bytes between uses. */
struct frame *task_push(struct task *task);
struct frame *task_top(struct task *task);
void task_pop(struct task *task);

/* Removes the frame at `i`, wherever it stands. */
void task_remove(struct task *task, size_t i);

#endif
