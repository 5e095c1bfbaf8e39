/* MPI: what its calls say beyond their arguments. What is known of each object stands in the address space's state,
 * by handle, and is learnt from the calls that make, ask and free objects. */
#include "tracer/hooks/mpi.h"

#include "tracer/memory.h"

#include <stdlib.h>
#include <string.h>

/* Fortran handles that are numbers of their own. No pointer looks like it. */
#define FORTRAN (1ULL << 63)

bool mpi_is(const struct hook_row *row, const char *name)
{
	size_t len = strlen(name);

	return strncmp(row->name, name, len) == 0 &&
	       (row->name[len] == '\0' || strcmp(row->name + len, "_c") == 0);
}

/* Where a variable of the library is, that means something as an argument. */
static void note_variable(void *data, const char *name, uint64_t address)
{
	struct mpi_state *state = data;
	struct mpi_comm *comm;
	/* MPI_BOTTOM stands in front of it. */
	bool in_common = strcmp(name, "mpipriv1_") == 0;

	if (in_common || strncmp(name, "mpi_fortran_in_place", 20) == 0 ||
	    strcmp(name, "MPIR_F08_MPI_IN_PLACE") == 0) {
		if (state->nin_place < MPI_IN_PLACES)
			state->in_place[state->nin_place++] = address + (in_common ? 4 : 0);
		return;
	}
	state->kind = MPI_OF_OPEN;
	if (strcmp(name, "ompi_mpi_comm_self") == 0) {
		comm = mpi_comm_put(state, address);
		if (comm)
			*comm = (struct mpi_comm){0, 1, -1, -1};
	} else if (strcmp(name, "ompi_mpi_file_null") == 0) {
		if (state->nnull_files < MPI_WORLDS)
			state->null_files[state->nnull_files++] = address;
	} else if (strcmp(name, "ompi_mpi_comm_world") == 0) {
		mpi_comm_add_world(state, address);
	} else {
		mpi_type_predefined(state, name, address);
	}
}

/* Objects that are there from the beginning. */
static void add_predefined(struct mpi_state *state)
{
	bool open = state->kind == MPI_OF_OPEN;
	uint64_t self = open ? FORTRAN | 1 : 0x44000001;
	struct mpi_comm *comm = mpi_comm_put(state, self);

	if (comm)
		*comm = (struct mpi_comm){0, 1, -1, -1};
	mpi_comm_add_world(state, open ? FORTRAN | 0 : 0x44000000);
	if (state->nin_place < MPI_IN_PLACES)
		state->in_place[state->nin_place++] = open ? 1 : UINT64_MAX;
}

struct mpi_state *mpi_state(const struct library_call *call)
{
	struct mpi_state *state = *call->state;

	if (state)
		return state;
	state = calloc(1, sizeof(*state));
	if (!state)
		return NULL;
	library_variables(call, note_variable, state);
	add_predefined(state);
	mpi_comm_start(call, state);
	*call->state = state;
	return state;
}

/* @return whether C's handles are integers, the same as Fortran's. */
static bool is_integer(const struct mpi_state *state, enum hook_arg_kind kind)
{
	return state->kind == MPI_OF_MPICH && kind != HOOK_A_FILE;
}

uint64_t mpi_key(const struct library_call *call, const struct mpi_state *state,
		 enum hook_arg_kind kind, uint64_t handle)
{
	if (is_integer(state, kind))
		return (uint32_t)handle;
	return library_is_fortran(call) ? FORTRAN | (uint32_t)handle : handle;
}

uint64_t mpi_fortran_key(const struct library_call *call, const struct mpi_state *state,
			 enum hook_arg_kind kind)
{
	struct library_call fortran = *call;

	fortran.form = HOOK_FORM_FORTRAN;
	return mpi_key(&fortran, state, kind, (uint32_t)call->result);
}

uint64_t mpi_argument_key(const struct library_call *call, const struct mpi_state *state, int n)
{
	return mpi_key(call, state, n < 0 ? HOOK_A_HANDLE : call->row->args[n].kind,
		       library_value(call, n));
}

struct mpi_array mpi_handles(const struct library_call *call, const struct mpi_state *state,
			     uint64_t address, enum hook_arg_kind kind)
{
	bool small = library_is_fortran(call) || is_integer(state, kind);

	return (struct mpi_array){.call = call, .address = address, .size = small ? 4 : 8};
}

struct mpi_array mpi_counts(const struct library_call *call, uint64_t address)
{
	return (struct mpi_array){
		.call = call, .address = address, .size = call->row->large ? 8 : 4};
}

struct mpi_array mpi_ints(const struct library_call *call, uint64_t address)
{
	return (struct mpi_array){.call = call, .address = address, .size = 4};
}

/* @return whether the window begins at element `i` now. */
static bool refill(struct mpi_array *array, uint64_t i)
{
	ssize_t n = array->address ? memory_read(array->call->tracer, array->call->task,
						 array->address + i * array->size, array->bytes,
						 sizeof(array->bytes))
				   : 0;

	array->first = i;
	array->count = n > 0 ? (size_t)n / array->size : 0;
	return array->count > 0;
}

bool mpi_array_get(struct mpi_array *array, uint64_t i, int64_t *value)
{
	int32_t small;

	if ((i < array->first || i - array->first >= array->count) && !refill(array, i))
		return false;
	const unsigned char *at = array->bytes + (i - array->first) * array->size;
	if (array->size == 8) {
		memcpy(value, at, 8);
	} else {
		memcpy(&small, at, 4);
		*value = small;
	}
	return true;
}

bool mpi_read_key(const struct library_call *call, const struct mpi_state *state, int n,
		  enum hook_arg_kind kind, uint64_t *key)
{
	struct mpi_array one = mpi_handles(call, state, library_value(call, n), kind);
	int64_t handle;

	if (n < 0 || !library_read(call, one.address, one.bytes, one.size))
		return false;
	one.count = 1;
	if (!mpi_array_get(&one, 0, &handle))
		return false;
	*key = mpi_key(call, state, kind, (uint64_t)handle);
	return true;
}

static bool has(const struct hook_row *row, enum hook_arg_kind kind)
{
	return library_next(row, kind, -1) >= 0;
}

static unsigned uses(const struct hook_row *row)
{
	unsigned used = 0;

	if (mpi_moves(row))
		used |= HOOK_FOR_TYPES;
	if (has(row, HOOK_A_FILE))
		used |= HOOK_FOR_FILES;
	/* Of the communicators of files what is known without asking must do. */
	if (has(row, HOOK_A_COMM) && mpi_moves(row))
		used |= HOOK_FOR_COMMS;
	if (mpi_is(row, "MPI_Start") || mpi_is(row, "MPI_Startall"))
		used |= HOOK_FOR_REQUESTS;
	return used;
}

static void begin(const struct library_call *call)
{
	struct mpi_state *state = mpi_state(call);
	uint64_t bytes;

	if (!state)
		return;
	if (mpi_is(call->row, "MPI_Type_free"))
		mpi_read_key(call, state, 0, HOOK_A_TYPE, &call->frame->notes[1]);
	if (mpi_is(call->row, "MPI_Comm_free") || mpi_is(call->row, "MPI_Comm_disconnect"))
		mpi_read_key(call, state, 0, HOOK_A_COMM, &call->frame->notes[1]);
	mpi_files_begin(call, state);
	mpi_request_begin(call, state);
	bool asked = call->frame->record || mpi_is_persistent(call->row);
	if (!asked || !mpi_moves(call->row))
		return;
	if (mpi_call_size(call, state, &bytes))
		library_set_size(call, bytes);
	else if (!mpi_is_persistent(call->row))
		call->frame->notes[0] = 1;
}

static void add_comm(struct event *event, int rank, int size)
{
	if (rank >= 0)
		decode_int(event, "comm_rank", rank);
	if (size >= 0)
		decode_int(event, "comm_size", size);
}

static void describe(const struct library_call *call, const struct mpi_state *state,
		     struct event *event)
{
	int n = library_next(call->row, HOOK_A_COMM, -1);
	const struct mpi_comm *comm =
		n < 0 ? NULL : mpi_comm_find(state, mpi_argument_key(call, state, n));
	const struct mpi_file *file = mpi_file_find(call, state);

	if (comm)
		add_comm(event, comm->rank, comm->size);
	else if (file)
		add_comm(event, file->rank, file->size);
	if (call->frame->notes[0] && !call->frame->has_size)
		call->task->process->lost[LOST_UNSIZED_MPI]++;
}

static void end(const struct library_call *call, struct event *event)
{
	struct mpi_state *state = mpi_state(call);

	if (!state)
		return;
	if (event) {
		mpi_say_rank(call, state);
		describe(call, state, event);
	}
	mpi_files_end(call, state);
	mpi_request_end(call, state);
	/* What converts a handle returns it; other calls have a code. */
	bool converts = call->row->result == HOOK_R_NONE;
	if (!call->done || (!converts && call->result != 0))
		return;
	mpi_types_learn(call, state);
	mpi_comms_learn(call, state);
}

static void release(void *data)
{
	struct mpi_state *state = data;
	struct map_slot *slot;
	size_t at = 0;

	map_free(&state->types);
	map_free_values(&state->comms);
	while ((slot = map_next(&state->files, &at)))
		mpi_file_free(slot->value);
	map_free(&state->files);
	at = 0;
	while ((slot = map_next(&state->requests, &at)))
		mpi_request_free(slot->value);
	map_free(&state->requests);
	free(state);
}

static void *copy_comm(const void *from)
{
	struct mpi_comm *to = malloc(sizeof(*to));

	if (to)
		memcpy(to, from, sizeof(*to));
	return to;
}

static void *copy_file(const void *from)
{
	return mpi_file_copy(from);
}

static void *copy_request(const void *from)
{
	return mpi_request_copy(from);
}

static void *copy_value(const void *from)
{
	return (void *)(uintptr_t)from;
}

/* @return 0, or -1 with errno ENOMEM and what has been copied in `to`. */
static int copy_map(struct map *to, const struct map *from, void *(*copy)(const void *))
{
	struct map_slot *slot;
	size_t at = 0;

	while ((slot = map_next(from, &at))) {
		void *value = copy(slot->value);
		if (!value)
			return -1;
		if (map_put(to, slot->key, value) < 0) {
			if (copy != copy_value)
				free(value);
			return -1;
		}
	}
	return 0;
}

static void *duplicate(const void *data)
{
	const struct mpi_state *from = data;
	struct mpi_state *to = malloc(sizeof(*to));

	if (!to)
		return NULL;
	*to = *from;
	to->types = to->comms = to->files = to->requests = (struct map){0};
	if (copy_map(&to->types, &from->types, copy_value) < 0 ||
	    copy_map(&to->comms, &from->comms, copy_comm) < 0 ||
	    copy_map(&to->files, &from->files, copy_file) < 0 ||
	    copy_map(&to->requests, &from->requests, copy_request) < 0) {
		release(to);
		return NULL;
	}
	return to;
}

static bool settled(const void *data)
{
	const struct mpi_state *state = data;

	return state->rank_told && state->size_told;
}

const struct hook_library hook_mpi = {
	.settled = settled,
	.category = LAYER_MPI,
	.uses = uses,
	.begin = begin,
	.end = end,
	.copy = duplicate,
	.free = release,
	.marks =
		(const char *const[]){"MPIR_CVAR_", "was called before MPI_INIT was invoked", NULL},
	.variables = (const char *const[]){"ompi_mpi_", "mpi_fortran_in_place", "mpipriv1_",
					   "MPIR_F08_MPI_IN_PLACE", NULL},
};
