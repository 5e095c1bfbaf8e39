/* Calls of libraries whose table lists arguments (MPI, HDF5): what is the same for all of them, and what each layer
 * adds. A layer is a table (symbols/hooks) and one struct hook_library. */
#ifndef TRACER_HOOKS_LIBRARY_H
#define TRACER_HOOKS_LIBRARY_H

#include "tracer/decode.h"
#include "tracer/hooks/internal.h"

/* A call as a layer sees it, at its entry and at its end. */
struct library_call {
	struct tracer *tracer;
	struct task *task;
	struct frame *frame; /* frame->values: the arguments; see library_value */
	const struct hook_row *row;
	enum hook_form form;
	void **state; /* what the layer knows of the address space; NULL at first, the layer's to fill */
	/* Made by another call of the layer: it is never written, but may teach something. */
	bool inner;
	/* End only: it has ended, and its result is known. Otherwise it was cut. */
	bool done;
	int64_t result; /* as the C function returns it: Fortran's from its last argument */
};

struct hook_library {
	enum layer category;
	/* What a row that is written makes use of: bits as in `serves`. NULL: nothing. */
	unsigned (*uses)(const struct hook_row *row);
	/* At the entry, before anything is written: settles frame->path, frame->size_sum and the like, which
	 * an event wants as they were before the call. */
	void (*begin)(const struct library_call *call);
	/* At the end. Keeps the state up to date and, if there is an event, adds what the arguments do not say by
	 * themselves; they stand in it already, size_sum and ret follow. `event` is NULL when none is written. */
	void (*end)(const struct library_call *call, struct event *event);
	/* Whether argument `n`, whose kind is not written by itself, is in this call; NULL: none is. */
	bool (*writes)(const struct library_call *call, int n);
	/* Whether all is known that functions are hooked briefly for; NULL: there are none. */
	bool (*settled)(const void *state);
	/* The state of a forked process; NULL with errno ENOMEM. */
	void *(*copy)(const void *state);
	void (*free)(void *state);
	/* Texts up to a NULL, one of which stands in every build of the library, to tell that it is there without
	 * its names. */
	const char *const *marks;
	/* What names of variables begin with that the layer wants to know the addresses of, up to a NULL;
	 * NULL: none. */
	const char *const *variables;
};

extern const struct hook_library hook_mpi;
extern const struct hook_library hook_hdf5;

/* @return the library of a layer, NULL: it has none (streams, the user's functions). */
const struct hook_library *hook_library(enum hook_layer layer);

/* Reads the arguments at the entry and lets the layer look at them. */
void library_begin(struct tracer *tracer, struct task *task, struct frame *frame,
		   const struct arch_regs *regs, bool inner);

/* The call is over. `event` is filled with all but what decode_write adds; NULL: none is written. */
void library_end(struct tracer *tracer, struct task *task, struct frame *frame,
		 struct event *event);

/* @return the position of the argument with this name, -1: the row has none. */
int library_argument(const struct hook_row *row, const char *name);

/* @return the position of the first argument of this kind, or of the next one behind `after` (-1: none before). */
int library_next(const struct hook_row *row, enum hook_arg_kind kind, int after);

/* @return the argument's value. A scalar has its C value in all forms, with the width and sign of its kind, but a
 * Fortran handle is the number; a pointer is an address of the program; a string's bytes are in call->data. */
static inline uint64_t library_value(const struct library_call *call, int n)
{
	return n < 0 ? 0 : call->frame->values[n];
}

/* @return whether scalars were passed by reference. */
static inline bool library_is_fortran(const struct library_call *call)
{
	return call->form != HOOK_FORM_C;
}

/* Reads `size` bytes of the program, as what a pointer argument points to. @return whether they could be read. */
bool library_read(const struct library_call *call, uint64_t address, void *to, size_t size);

/* @return the bytes of string argument `n`, NULL: null or unreadable. Without the blanks that Fortran pads with. */
const char *library_text(const struct library_call *call, int n, size_t *len);

/* Calls `each` for the library's variables wherever they are defined: names (without versions) and addresses in the
 * program. A program may have its own copy of a library's variable, and then both are told. */
void library_variables(const struct library_call *call, object_variable_fn *each, void *data);

/* Makes the path in string argument `n` the call's file. */
void library_set_path(const struct library_call *call, int n);

/* Makes `name` the call's file; NULL is allowed. */
void library_set_file(const struct library_call *call, struct name *name);

/* Gives the event its size_sum. */
void library_set_size(const struct library_call *call, uint64_t bytes);

#endif
