/* What the files of this folder share. */
#ifndef TRACER_HOOKS_INTERNAL_H
#define TRACER_HOOKS_INTERNAL_H

#include "base/map.h"
#include "symbols/hooks.h"
#include "symbols/modules.h"
#include "symbols/plan.h"
#include "tracer/arch/arch.h"
#include "tracer/hooks/hooks.h"
#include "tracer/hooks/stub.h"
#include "tracer/tracer.h"

#include <regex.h>

/* A hooked function of a file. */
struct hook_function {
	const char *name;                 /* in the trace */
	const struct hook_row *row;       /* NULL: the user's, by -x */
	const struct hook_object *object; /* the file that it is in */
	enum hook_layer layer;
	enum hook_form form;
	bool silent;           /* hooked only for what others need of it */
	bool brief;            /* hooked only until its layer is settled */
	enum object_libc libc; /* whose streams it is about */
	bool loops;            /* its beginning is jumped back to */
	const char *chooses;   /* it is an IFUNC's resolver: what it chooses is called so */
	bool only_chooses;     /* its own calls are nobody's concern */
	bool chosen;           /* it has returned a function */
	bool recorded;         /* inside the program, where there is a recorder */
	uint64_t address;      /* the file's */
	uint64_t calls;
	uint64_t cost;    /* ns that its stops took, as far as the tracer can tell */
	uint64_t dropped; /* calls that were not seen, estimated */
};

/* A place of a file where a breakpoint goes; several functions may share a way out. */
struct hook_place {
	uint64_t address;
	struct insn insn;
	struct hook_function *function; /* begins here; NULL: none */
	bool ret;                       /* a way out */
	bool tail;                      /* an indirect jump out */
	bool brief;                     /* of brief functions only */
	bool exits;                     /* a function is left here */
	bool stops;                     /* … whose end has to stop */
	bool filled;                    /* … whose result is a string that it has filled in */
	bool mixed;                     /* … and others, whose is not */
	struct hook_jump *jump; /* what is there where the recorder is; NULL: a breakpoint */
};

/* A variable of a library that its layer asked for. */
struct hook_variable {
	enum hook_layer layer;
	uint64_t address; /* the file's */
	char *name;
};

/* What is hooked in a file: made once. */
struct hook_object {
	struct hook_function *functions;
	size_t nfunctions;
	struct hook_place *places;
	size_t nplaces;
	struct hook_variable *variables;
	size_t nvariables;
	unsigned present;         /* bits of layers that it has functions of */
	unsigned refused;         /* functions that were found and are not hooked */
	struct hook_object *next; /* what became known later, as what resolvers have chosen */
};

/* A breakpoint in an address space. */
struct hook_point {
	uint64_t address;
	const struct hook_place *place; /* NULL: at a return address, for `waiting` calls */
	struct insn insn;
	unsigned waiting;
	/* Of an entry, under --hook-limit: */
	uint64_t second; /* when the count began, ns */
	unsigned long hits;
	bool lifted;
	uint64_t stub;  /* a jump leads there, and no breakpoint lies here; 0: one does */
	bool slot_used; /* some thread was sent there */
	uint64_t slot;  /* where the displaced instruction has been copied to; 0: nowhere */
};

/* A page of the program for copies of displaced instructions, near their code. */
struct hook_page {
	uint64_t address;
	unsigned used;
};

/* Stubs of a module. */
struct hook_block {
	uint64_t address;
	size_t room;      /* stubs that it has room for */
	size_t count;     /* 0: none is in use any more */
	uint64_t *points; /* their addresses, by stub */
};

#define HOOK_FREED 64
#define HOOK_KNOWN 8

struct hook_space {
	struct modules modules;
	bool withdrawn;  /* nothing is hooked here any more */
	bool brief_over; /* … of what is brief */
	unsigned brief_hits;
	struct map points;       /* struct hook_point by address */
	struct hook_page *pages; /* where copies go */
	size_t npages;
	struct hook_block *blocks;
	size_t nblocks;
	uint64_t freed[HOOK_FREED]; /* room for copies that is not needed any more */
	unsigned nfreed;
	uint64_t data; /* for bytes that a call of ours hands over; 0: no place yet */
	/* Where no code can come from but what is known, as long as no file is mapped. */
	struct stretch known[HOOK_KNOWN];
	unsigned nknown; /* ever: the oldest go first */
	unsigned long user_hooks;
	void *states[HOOK_LAYERS]; /* what layers know of the program's objects */
	unsigned lifted;           /* points that are lifted */
	unsigned moves;            /* of memory with such points, that have begun */
	uint64_t lifted_until;     /* when the first of them goes back, ns */
};

/* What is known of a pattern of -x: a regular expression is compiled. */
struct hook_regex {
	bool matched;   /* some function */
	char *nameless; /* a file that it is about, and that has lost its symbols; NULL: none */
	bool exports;   /* but for what that file exports */
	unsigned more_nameless;
	bool used;
	regex_t regex;
};

/* Why functions are not recorded inside the program. */
enum hook_outside {
	HOOK_OUT_LAYER,  /* MPI, HDF5, annotations: their arguments have to be read */
	HOOK_OUT_TEXT,   /* its strings have to be read */
	HOOK_OUT_STREAM, /* the stream that it returns has to be looked at */
	HOOK_OUT_LIBC,   /* not glibc's streams */
	HOOK_OUT_CHOICE, /* IFUNCs */
	HOOK_OUT_BRIEF,
	HOOK_OUT_COUNT,
};

/* What has come of recording calls inside the program, over all files seen. */
struct hook_inside {
	unsigned long functions; /* that begin by a jump */
	unsigned long entries;   /* that had to stay breakpoints */
	unsigned long jumps;     /* exits */
	unsigned long exits;     /* that had to stay breakpoints */
	unsigned long outside[HOOK_OUT_COUNT];
	uint64_t records;
};

struct hooks {
	struct observer observer;
	struct hook_options options;
	struct hook_regex *regexes; /* by pattern */
	struct objects *objects;
	struct insn_decoder *decoder;
	bool records; /* there is a recorder */
	struct hook_inside inside;
	struct map hook_objects;               /* struct hook_object by struct object */
	struct hook_names *names[HOOK_LAYERS]; /* NULL: nothing of the layer is hooked */
	bool *wanted[HOOK_LAYERS];             /* rows that are hooked, written or not */
	unsigned used[HOOK_LAYERS];            /* what the rows that are written make use of */
	struct hook_census census[HOOK_LAYERS + 1];
	bool no_symbols_said;
	bool library_said;      /* that DFTracer's own writes the annotations */
	unsigned nameless_said; /* bits of layers */
	unsigned long
		beyond;     /* functions that --max-hooks left out, in the process with the most */
	struct buf reasons; /* what was refused, a line each */
};

/* hook-objects.c: what is hooked in a file, which may be the program's own. @return NULL: nothing. */
struct hook_object *hook_object_get(struct hooks *hooks, struct object *object, const char *path,
				    bool is_program);
/* @return what hook_object_get has made, NULL: nothing yet. */
struct hook_object *hook_object_known(struct hooks *hooks, const struct object *object);
void hook_object_free(struct hook_object *object);

/* The function at `address` of the file is what a resolver has chosen. @return what is to be hooked for it; NULL:
 * nothing more than the file's. */
struct hook_object *hook_object_choose(struct hooks *hooks, struct object *object,
				       struct hook_function *resolver, uint64_t address);

/* A resolver has chosen what cannot be hooked. */
void hook_object_refuse_choice(struct hooks *hooks, struct hook_function *resolver,
			       const char *reason);

/* hook-points.c: breakpoints in an address space. `mapped`: what has just been mapped, NULL: all. */
void hook_points_place(struct hooks *hooks, struct tracer *tracer, struct task *task,
		       const struct stretch *mapped);

/* A resolver has returned: what it has chosen is hooked before anyone can call it. */
void hook_points_choose(struct tracer *tracer, struct task *task, struct hook_function *resolver,
			uint64_t target);

/* Plants a breakpoint at a return address for one call more. @return whether it is there. */
bool hook_points_plant_return(struct hooks *hooks, struct tracer *tracer, struct task *task,
			      uint64_t address);
void hook_points_drop_return(struct tracer *tracer, struct task *task, struct hook_point *point);

/* @return where a copy of the instruction is, made if needed; 0: it cannot be made. */
uint64_t hook_points_slot(struct tracer *tracer, struct task *task, struct hook_point *point);

/* Puts a breakpoint at the address. @return whether it could be written. */
bool hook_point_write(struct task *task, uint64_t address);

/* Puts a breakpoint to where the point was. @return whether it is there: not where the code is another's. */
bool hook_point_put_back(struct tracer *tracer, struct task *task, struct hook_point *point);

/* hook-lifting.c. @return whether a point that is lifted stays so. */
bool hook_point_is_lifted_for_good(const struct hook_space *space, const struct hook_point *point);

/* Counts a hit of an entry; beyond the limit the breakpoint is lifted until the second is over. */
void hook_points_limit(struct hooks *hooks, struct tracer *tracer, struct task *task,
		       struct hook_point *point);

/* A brief function was hit: takes out all that are, once their layer is settled, or has not been for long. */
void hook_points_end_brief(struct tracer *tracer, struct task *task);

/* Puts back what was lifted, when it is time. */
void hook_points_restore(struct tracer *tracer, struct task *task);

/* Puts bytes where a system call of the program can read them. @return their address, 0: no room. */
uint64_t hook_points_data(struct tracer *tracer, struct task *task, struct hook_space *space,
			  const void *bytes, size_t len);

/* hook-calls.c: from hits to events. */
void hook_call_begin(struct tracer *tracer, struct task *task, struct hook_function *function,
		     const struct hook_moment *at);
/* A way out was reached. @return whether a call ended there. */
bool hook_call_end(struct tracer *tracer, struct task *task, const struct hook_moment *at);

/* hooks.c: a thread stands at a point, or has been there. */
void hook_point_reached(struct tracer *tracer, struct task *task, const struct hook_point *point,
			const struct hook_moment *at);

/* Fills in what a thread's registers say that stands at a function's entry or `ret`.
 * @return false: there is no return address. */
bool hook_moment_now(struct tracer *tracer, struct task *task, const struct arch_regs *regs,
		     struct hook_moment *at);

/* For arch_emulate. */
struct hook_access {
	struct tracer *tracer;
	struct task *task;
};
int hook_access_read(void *data, uint64_t address, void *to, size_t len);
int hook_access_write(void *data, uint64_t address, const void *from, size_t len);

/* inside.c: jumps and stubs.
 * @return whether the function's calls can be recorded inside the program; counts why not. */
bool hook_is_recorded(struct hooks *hooks, const struct hook_function *function);

/* Finds which places of a file can have jumps. @return 0, or -1 with errno ENOMEM. */
int hook_jumps_find(struct hooks *hooks, const struct object *object, struct hook_object *result);

/* Places the jumps of a module. What cannot be had is left for breakpoints. */
void hook_jumps_place(struct tracer *tracer, struct task *task, const struct module *module,
		      const struct hook_object *object);

/* @return the point whose stub `address` lies in, and where in it; NULL: none. */
struct hook_point *hook_point_of_stub(const struct hook_space *space, uint64_t address,
				      size_t *offset);

/* Stubs that no jump leads to any more are free again. */
void hook_jumps_forget(struct hook_space *space);
size_t hook_blocks_size(const struct hook_space *space);
int hook_blocks_copy(struct hook_space *to, const struct hook_space *from);
void hook_blocks_free(struct hook_space *space);

/* @return where the jump of the point begins in the process. */
uint64_t hook_jump_address(const struct hook_point *point);

/* @return whether a point's jump or breakpoint lies where it was put: what is mapped there may be another's. */
bool hook_point_is_there(struct tracer *tracer, struct task *task, const struct hook_point *point);

/* Takes a point's jump or breakpoint out of the program. @return 0, or -1: it is not there. */
int hook_point_take_out(struct tracer *tracer, struct task *task, const struct hook_point *point);

/* hook-points.c. @return the point, NULL: out of memory. */
struct hook_point *hook_points_add(struct hook_space *space, uint64_t address,
				   const struct hook_place *place, const struct insn *insn);

/* @return the frame of the call that began with this stack pointer, and returns to this address; NULL: none. */
struct frame *hook_call_at(struct task *task, uint64_t sp, uint64_t return_address);

#endif
