/* The bytes of MPI datatypes. */
#include "tracer/hooks/mpi.h"

#include <string.h>

/* Longer arrays of blocks than this are not read. */
#define BLOCKS_MOST (1 << 20)

struct predefined {
	uint64_t number;
	const char *name;
	unsigned size;
};

#define TYPE(number, word, size) {number, "ompi_mpi_" #word, size},

static const struct predefined open_types[] = {
#include "symbols/hooks/openmpi-types.def"
};

static void put(struct mpi_state *state, uint64_t key, uint64_t size)
{
	/* Out of memory: it is not known, then. */
	if (size < UINTPTR_MAX)
		(void)map_put(&state->types, key, (void *)(uintptr_t)(size + 1));
}

void mpi_type_predefined(struct mpi_state *state, const char *name, uint64_t address)
{
	for (size_t i = 0; i < sizeof(open_types) / sizeof(*open_types); i++) {
		if (strcmp(open_types[i].name, name) == 0)
			put(state, address, open_types[i].size);
	}
}

/* Handles of MPICH hold the size of what is predefined; pairs of a number and an int are an exception. */
static bool mpich_size(uint64_t handle, uint64_t *size)
{
	static const unsigned char pairs[] = {8, 12, 12, 6,
					      20}; /* float double long short long double */

	if ((handle & 0xff000000) == 0x4c000000) {
		*size = handle >> 8 & 0xff;
		return true;
	}
	if (handle >= 0x8c000000 && handle < 0x8c000000 + sizeof(pairs)) {
		*size = pairs[handle - 0x8c000000];
		return true;
	}
	return false;
}

bool mpi_type_size(const struct mpi_state *state, uint64_t key, uint64_t *size)
{
	uintptr_t known = (uintptr_t)map_get(&state->types, key);

	if (known) {
		*size = known - 1;
		return true;
	}
	if (state->kind == MPI_OF_MPICH)
		return mpich_size(key, size);
	for (size_t i = 0; key >> 63 && i < sizeof(open_types) / sizeof(*open_types); i++) {
		if (open_types[i].number == (uint32_t)key) {
			*size = open_types[i].size;
			return true;
		}
	}
	return false;
}

/* @return the value of the scalar argument with this name, -1: there is none. */
static int64_t number(const struct library_call *call, const char *name)
{
	int n = library_argument(call->row, name);

	return n < 0 ? -1 : (int64_t)library_value(call, n);
}

static uint64_t address(const struct library_call *call, const char *name)
{
	return library_value(call, library_argument(call->row, name));
}

bool mpi_sum(const struct library_call *call, const struct mpi_state *state, int64_t count,
	     uint64_t lengths, uint64_t types, uint64_t *sum)
{
	struct mpi_array blocks = mpi_counts(call, lengths);
	struct mpi_array kinds = mpi_handles(call, state, types, HOOK_A_TYPE);
	uint64_t size = 1;
	int64_t length;
	int64_t type;

	*sum = 0;
	if (count < 0 || count > BLOCKS_MOST)
		return false;
	for (uint64_t i = 0; i < (uint64_t)count; i++) {
		if (!mpi_array_get(&blocks, i, &length) || length < 0)
			return false;
		/* Where nothing is moved the type need not be one. */
		if (types && length &&
		    (!mpi_array_get(&kinds, i, &type) ||
		     !mpi_type_size(state, mpi_key(call, state, HOOK_A_TYPE, (uint64_t)type),
				    &size)))
			return false;
		*sum += (uint64_t)length * size;
	}
	return true;
}

static bool subarray(const struct library_call *call, uint64_t *elements)
{
	struct mpi_array lengths = mpi_counts(call, address(call, "array_of_subsizes"));
	int64_t dims = number(call, "ndims");
	int64_t length;

	*elements = 1;
	if (dims < 0 || dims > BLOCKS_MOST)
		return false;
	for (uint64_t i = 0; i < (uint64_t)dims; i++) {
		if (!mpi_array_get(&lengths, i, &length))
			return false;
		*elements *= (uint64_t)length;
	}
	return true;
}

/* How many of `all` elements of one dimension process `me` of `processes` has. The
 * libraries number the ways of distributing differently. */
static uint64_t share(const struct mpi_state *state, int64_t all, int64_t processes, int64_t me,
		      int64_t how, int64_t block)
{
	bool open = state->kind == MPI_OF_OPEN;
	int64_t blocked = open ? 0 : 121;
	int64_t cyclic = open ? 1 : 122;
	int64_t given = open ? -1 : -49767;

	if (processes <= 0 || (how != blocked && how != cyclic))
		return (uint64_t)all;
	if (block == given)
		block = how == blocked ? (all + processes - 1) / processes : 1;
	if (block <= 0)
		return 0;
	int64_t whole = all / (block * processes);
	int64_t left = all - whole * block * processes - me * block;
	if (left < 0)
		left = 0;
	return (uint64_t)(whole * block + (left < block ? left : block));
}

static bool darray(const struct library_call *call, const struct mpi_state *state,
		   uint64_t *elements)
{
	struct mpi_array all = mpi_counts(call, address(call, "array_of_gsizes"));
	struct mpi_array how = mpi_ints(call, address(call, "array_of_distribs"));
	struct mpi_array blocks = mpi_ints(call, address(call, "array_of_dargs"));
	struct mpi_array grid = mpi_ints(call, address(call, "array_of_psizes"));
	int64_t me = number(call, "rank");
	int64_t length;
	int64_t kind;
	int64_t block;
	int64_t processes;

	*elements = 1;
	/* The ranks of the grid go by rows. */
	for (int64_t i = number(call, "ndims"); i-- > 0;) {
		uint64_t n = (uint64_t)i;
		if (n > BLOCKS_MOST || !mpi_array_get(&all, n, &length) ||
		    !mpi_array_get(&how, n, &kind) || !mpi_array_get(&blocks, n, &block) ||
		    !mpi_array_get(&grid, n, &processes) || processes <= 0)
			return false;
		*elements *= share(state, length, processes, me % processes, kind, block);
		me /= processes;
	}
	return true;
}

/* How many elements of its old type a new one has. @return false: not known, or no constructor of this kind. */
static bool elements(const struct library_call *call, const struct mpi_state *state,
		     uint64_t *count)
{
	const struct hook_row *row = call->row;
	int64_t n = number(call, "count");
	int64_t length = number(call, "blocklength");
	int lengths = library_next(row, HOOK_A_COUNTS, -1);

	if (mpi_is(row, "MPI_Type_create_darray"))
		return darray(call, state, count);
	if (mpi_is(row, "MPI_Type_create_subarray"))
		return subarray(call, count);
	*count = 1;
	if (mpi_is(row, "MPI_Type_dup") || mpi_is(row, "MPI_Type_create_resized"))
		return true;
	if (n < 0)
		return false;
	if (lengths >= 0)
		return mpi_sum(call, state, n, library_value(call, lengths), 0, count);
	*count = (uint64_t)n * (length < 0 ? 1 : (uint64_t)length);
	return true;
}

static bool new_size(const struct library_call *call, const struct mpi_state *state, uint64_t *size)
{
	const struct hook_row *row = call->row;
	int types = library_next(row, HOOK_A_TYPES, -1);
	int old = library_next(row, HOOK_A_TYPE, -1);
	uint64_t count;

	if (mpi_is(row, "MPI_Type_match_size")) {
		*size = (uint64_t)number(call, "size");
		return true;
	}
	if (types >= 0)
		return mpi_sum(call, state, number(call, "count"),
			       library_value(call, library_next(row, HOOK_A_COUNTS, -1)),
			       library_value(call, types), size);
	if (old < 0 || !mpi_type_size(state, mpi_argument_key(call, state, old), size) ||
	    !elements(call, state, &count))
		return false;
	*size *= count;
	return true;
}

void mpi_types_learn(const struct library_call *call, struct mpi_state *state)
{
	const struct hook_row *row = call->row;
	uint64_t key;
	uint64_t size;
	int made;

	if (mpi_is(row, "MPI_Type_free")) {
		/* The program has no handle any more; the one that it had was read at the entry. A library
		 * gives back what it has borrowed, and the type lives on. */
		if (!call->inner)
			map_remove(&state->types, call->frame->notes[1]);
		return;
	}
	if (!(row->serves & HOOK_FOR_TYPES))
		return;
	if (mpi_is(row, "MPI_Type_c2f")) {
		if (mpi_type_size(state, mpi_argument_key(call, state, 0), &size))
			put(state, mpi_fortran_key(call, state, HOOK_A_TYPE), size);
		return;
	}
	for (made = 0; row->args[made].kind != HOOK_A_END; made++) {
	}
	if (made-- == 0 || !mpi_read_key(call, state, made, HOOK_A_TYPE, &key))
		return;
	if (new_size(call, state, &size))
		put(state, key, size);
	else
		map_remove(&state->types, key);
}
