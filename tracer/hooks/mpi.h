/* What is known of an MPI program's objects, by their handles; for tracer/hooks/mpi*.c only. */
#ifndef TRACER_HOOKS_MPI_H
#define TRACER_HOOKS_MPI_H

#include "tracer/hooks/library.h"

enum mpi_kind {
	MPI_OF_MPICH, /* handles of most objects are integers, in C as in Fortran */
	MPI_OF_OPEN,  /* handles are pointers in C, and numbers in Fortran */
};

struct mpi_comm {
	int rank; /* -1: not known */
	int size;
	int remote_size; /* of the other side; -1: none, or not known */
	int neighbours;  /* to which neighbour collectives send; -1: not known */
};

struct mpi_file {
	struct name *path;
	int rank; /* in the communicator that it was opened with; -1: not known */
	int size;
};

/* A request that means something later: a persistent one, or one on a file. */
struct mpi_request {
	struct name *path; /* NULL: not on a file */
	uint64_t bytes;
	bool sized;
	bool persistent;
};

#define MPI_IN_PLACES 12
#define MPI_WORLDS    8

struct mpi_state {
	enum mpi_kind kind;
	struct map types;                 /* bytes + 1 */
	struct map comms;                 /* struct mpi_comm */
	struct map files;                 /* struct mpi_file */
	struct map requests;              /* struct mpi_request */
	uint64_t in_place[MPI_IN_PLACES]; /* what a buffer is that is not there */
	unsigned nin_place;
	uint64_t worlds[MPI_WORLDS]; /* keys of MPI_COMM_WORLD */
	unsigned nworlds;
	uint64_t null_files[MPI_WORLDS]; /* keys of MPI_FILE_NULL that are not 0 */
	unsigned nnull_files;
	bool rank_said;
	bool rank_told; /* by MPI itself, of MPI_COMM_WORLD */
	bool size_told;
};

/* @return what is known of the address space, made when first asked for; NULL: out of memory. */
struct mpi_state *mpi_state(const struct library_call *call);

/* @return the key of a handle in the maps: C and Fortran handles of one object differ, but for MPICH's integers. */
uint64_t mpi_key(const struct library_call *call, const struct mpi_state *state,
		 enum hook_arg_kind kind, uint64_t handle);

/* Fortran's key of the object for which MPI_X_c2f has returned the call's result. */
uint64_t mpi_fortran_key(const struct library_call *call, const struct mpi_state *state,
			 enum hook_arg_kind kind);

/* @return the key of handle argument `n`. */
uint64_t mpi_argument_key(const struct library_call *call, const struct mpi_state *state, int n);

/* Reads the handle that pointer argument `n` points to. `kind` says of what. @return whether it could be read. */
bool mpi_read_key(const struct library_call *call, const struct mpi_state *state, int n,
		  enum hook_arg_kind kind, uint64_t *key);

/* An array of the program, read window by window. */
struct mpi_array {
	const struct library_call *call;
	uint64_t address; /* 0: there is none */
	size_t size;      /* of an element */
	uint64_t first;   /* element that stands first in `bytes` */
	uint64_t count;   /* elements in `bytes` */
	unsigned char bytes[1024];
};

struct mpi_array mpi_counts(const struct library_call *call, uint64_t address);
struct mpi_array mpi_ints(const struct library_call *call, uint64_t address);
struct mpi_array mpi_handles(const struct library_call *call, const struct mpi_state *state,
			     uint64_t address, enum hook_arg_kind kind);

/* Reads element `i`. @return whether it could be read. */
bool mpi_array_get(struct mpi_array *array, uint64_t i, int64_t *value);

/* mpi-types.c. @return whether the bytes of a datatype are known. */
bool mpi_type_size(const struct mpi_state *state, uint64_t key, uint64_t *size);
/* Learns Open MPI's predefined ones: `name` is a variable's. */
void mpi_type_predefined(struct mpi_state *state, const char *name, uint64_t address);
/* Sums an array of counts at `lengths`; with `types`, each times the size of its type. @return false: not known. */
bool mpi_sum(const struct library_call *call, const struct mpi_state *state, int64_t count,
	     uint64_t lengths, uint64_t types, uint64_t *sum);
void mpi_types_learn(const struct library_call *call, struct mpi_state *state);

/* mpi-comms.c. @return what is known of a communicator, NULL: nothing. */
const struct mpi_comm *mpi_comm_find(const struct mpi_state *state, uint64_t key);
struct mpi_comm *mpi_comm_put(struct mpi_state *state, uint64_t key);
/* What the launcher has told the process about all ranks. */
void mpi_comm_start(const struct library_call *call, struct mpi_state *state);
/* The key is one of MPI_COMM_WORLD's: Fortran's, C's, and that of a program's own copy of the variable. */
void mpi_comm_add_world(struct mpi_state *state, uint64_t key);
/* Tells the rank to readers of the trace, once it is known. */
void mpi_say_rank(const struct library_call *call, struct mpi_state *state);
void mpi_comms_learn(const struct library_call *call, struct mpi_state *state);

/* mpi-sizes.c. Finds the bytes that a call moves. @return false: they are not known, or there are none to know
 * (see mpi_moves). */
bool mpi_call_size(const struct library_call *call, const struct mpi_state *state, uint64_t *bytes);
/* @return whether the function moves bytes whose number its arguments tell. */
bool mpi_moves(const struct hook_row *row);

/* mpi-files.c: files and requests. */
void mpi_files_begin(const struct library_call *call, struct mpi_state *state);
void mpi_files_end(const struct library_call *call, struct mpi_state *state);
const struct mpi_file *mpi_file_find(const struct library_call *call,
				     const struct mpi_state *state);
/* @return whether the function prepares what is started later. */
bool mpi_is_persistent(const struct hook_row *row);
/* A request has been made for `bytes`. */
void mpi_request_end(const struct library_call *call, struct mpi_state *state);
void mpi_request_begin(const struct library_call *call, struct mpi_state *state);
struct mpi_file *mpi_file_copy(const struct mpi_file *file);
void mpi_file_free(struct mpi_file *file);
struct mpi_request *mpi_request_copy(const struct mpi_request *request);
void mpi_request_free(struct mpi_request *request);

/* @return whether the row is of this function, with or without _c. */
bool mpi_is(const struct hook_row *row, const char *name);

#endif
