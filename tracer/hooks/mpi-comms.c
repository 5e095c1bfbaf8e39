/* Ranks and sizes of MPI communicators: what the program has asked for, and what follows from it. */
#include "tracer/hooks/mpi.h"
#include "tracer/image.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct mpi_comm *mpi_comm_find(const struct mpi_state *state, uint64_t key)
{
	return map_get(&state->comms, key);
}

struct mpi_comm *mpi_comm_put(struct mpi_state *state, uint64_t key)
{
	struct mpi_comm *comm = map_get(&state->comms, key);

	if (comm)
		return comm;
	comm = malloc(sizeof(*comm));
	if (!comm)
		return NULL;
	*comm = (struct mpi_comm){-1, -1, -1, -1};
	if (map_put(&state->comms, key, comm) < 0) {
		free(comm);
		return NULL;
	}
	return comm;
}

/* @return the number that a variable of the process's first environment holds, -1: none. */
static int environment_number(const char *text, size_t len, const char *name)
{
	size_t n = strlen(name);

	for (size_t at = 0; at < len; at += strnlen(text + at, len - at) + 1) {
		char *end;
		if (len - at <= n || strncmp(text + at, name, n) != 0 || text[at + n] != '=')
			continue;
		long value = strtol(text + at + n + 1, &end, 10);
		return *end == '\0' && end != text + at + n + 1 && value >= 0 && value < INT32_MAX
			       ? (int)value
			       : -1;
	}
	return -1;
}

static void read_environment(pid_t pid, struct buf *to)
{
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/environ", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	for (;;) {
		char *room = buf_reserve(to, 4096);
		n = room ? read(fd, room, 4096) : 0;
		if (n <= 0)
			break;
		to->len += (size_t)n;
	}
	close(fd);
}

void mpi_say_rank(const struct library_call *call, struct mpi_state *state)
{
	const struct mpi_comm *world =
		state->nworlds ? mpi_comm_find(state, state->worlds[0]) : NULL;
	char text[16];

	if (state->rank_said || !world || world->rank < 0 || !call->task->process->trace)
		return;
	state->rank_said = true;
	/* What the launcher has told is in the trace already. */
	if (labels_get(call->task->process->labels, "rank"))
		return;
	snprintf(text, sizeof(text), "%d", world->rank);
	trace_property(call->task->process->trace, "rank", text);
}

void mpi_comm_add_world(struct mpi_state *state, uint64_t key)
{
	if (state->nworlds < MPI_WORLDS && mpi_comm_put(state, key))
		state->worlds[state->nworlds++] = key;
}

static bool is_world(const struct mpi_state *state, const struct mpi_comm *comm)
{
	for (unsigned i = 0; i < state->nworlds; i++) {
		if (map_get(&state->comms, state->worlds[i]) == comm)
			return true;
	}
	return false;
}

/* What is known by one of its handles is known by all. */
static void share_world(struct mpi_state *state, const struct mpi_comm *known)
{
	for (unsigned i = 0; i < state->nworlds; i++) {
		struct mpi_comm *comm = map_get(&state->comms, state->worlds[i]);
		if (comm && comm != known)
			*comm = *known;
	}
}

void mpi_comm_start(const struct library_call *call, struct mpi_state *state)
{
	bool open = state->kind == MPI_OF_OPEN;
	struct mpi_comm world = {-1, -1, -1, -1};
	struct buf text = {0};

	/* Each library has a launcher of its own; what another one has left there means nothing to it. */
	read_environment(call->task->process->pid, &text);
	if (buf_str(&text)) {
		world.rank = environment_number(text.data, text.len,
						open ? "OMPI_COMM_WORLD_RANK" : "PMI_RANK");
		world.size = environment_number(text.data, text.len,
						open ? "OMPI_COMM_WORLD_SIZE" : "PMI_SIZE");
	}
	buf_free(&text);
	if (world.rank < 0 || world.size <= world.rank)
		return;
	share_world(state, &world);
}

/* The int that the argument with this name points to. */
static bool told(const struct library_call *call, const char *name, int *value)
{
	int n = library_argument(call->row, name);
	int32_t there;

	if (n < 0 || !library_read(call, library_value(call, n), &there, sizeof(there)))
		return false;
	*value = there;
	return true;
}

static void forget(struct mpi_state *state, uint64_t key)
{
	const struct mpi_comm *comm = map_get(&state->comms, key);

	if (comm && !is_world(state, comm))
		free(map_remove(&state->comms, key));
}

/* A communicator with a topology: whom neighbour collectives send to. */
static void shape(const struct library_call *call, const struct mpi_comm *old,
		  struct mpi_comm *made)
{
	const struct hook_row *row = call->row;
	int dims = library_argument(row, "ndims");
	int reorder = library_argument(row, "reorder");
	int to = library_argument(row, "outdegree");
	int64_t length;

	if (dims >= 0) {
		struct mpi_array lengths =
			mpi_ints(call, library_value(call, library_argument(row, "dims")));
		int64_t size = 1;
		for (uint64_t i = 0; i < library_value(call, dims) && i < 64; i++)
			size *= mpi_array_get(&lengths, i, &length) ? length : -1;
		made->size = size > 0 && size < INT32_MAX ? (int)size : -1;
		made->neighbours = 2 * (int)library_value(call, dims);
	} else if (mpi_is(row, "MPI_Dist_graph_create") ||
		   mpi_is(row, "MPI_Dist_graph_create_adjacent")) {
		made->size = old ? old->size : -1;
	}
	if (to >= 0)
		made->neighbours = (int)library_value(call, to);
	/* Who comes first in the old one does so in the new one. */
	if (old && reorder >= 0 && library_value(call, reorder) == 0)
		made->rank = old->rank;
}

static void made_from(const struct library_call *call, struct mpi_state *state, int result)
{
	int from = library_next(call->row, HOOK_A_COMM, -1);
	const struct mpi_comm *old =
		from < 0 ? NULL : mpi_comm_find(state, mpi_argument_key(call, state, from));
	struct mpi_comm made = {-1, -1, -1, -1};
	uint64_t key;

	if (!mpi_read_key(call, state, result, HOOK_A_COMM, &key))
		return;
	if (strncmp(call->row->name, "MPI_Comm_dup", 12) == 0 && old)
		made = *old;
	else
		shape(call, old, &made);
	struct mpi_comm *comm = mpi_comm_put(state, key);
	if (comm)
		*comm = made;
}

void mpi_comms_learn(const struct library_call *call, struct mpi_state *state)
{
	const struct hook_row *row = call->row;
	int value;

	if (!(row->serves & HOOK_FOR_COMMS))
		return;
	if (mpi_is(row, "MPI_Comm_free") || mpi_is(row, "MPI_Comm_disconnect")) {
		forget(state, call->frame->notes[1]);
		return;
	}
	if (mpi_is(row, "MPI_Comm_c2f")) {
		const struct mpi_comm *known =
			mpi_comm_find(state, mpi_argument_key(call, state, 0));
		struct mpi_comm *same =
			known ? mpi_comm_put(state, mpi_fortran_key(call, state, HOOK_A_COMM))
			      : NULL;
		if (same)
			*same = *known;
		return;
	}
	for (const char *const *name = (const char *const[]){"newcomm", "comm_cart", "comm_graph",
							     "comm_dist_graph", NULL};
	     *name; name++) {
		int result = library_argument(row, *name);
		if (result >= 0) {
			made_from(call, state, result);
			return;
		}
	}
	struct mpi_comm *comm = mpi_comm_put(state, mpi_argument_key(call, state, 0));
	if (!comm)
		return;
	if (mpi_is(row, "MPI_Comm_rank") && told(call, "rank", &value))
		comm->rank = value;
	if (mpi_is(row, "MPI_Comm_size") && told(call, "size", &value))
		comm->size = value;
	if (mpi_is(row, "MPI_Comm_remote_size") && told(call, "size", &value))
		comm->remote_size = value;
	if (!is_world(state, comm))
		return;
	share_world(state, comm);
	if (mpi_is(row, "MPI_Comm_rank") && comm->rank >= 0) {
		state->rank_told = true;
		image_confirm_rank(call->tracer, call->task->process, comm->rank);
	}
	if (mpi_is(row, "MPI_Comm_size") && comm->size >= 0) {
		state->size_told = true;
		image_confirm_size(call->tracer, call->task->process, comm->size);
	}
}
