/* The bytes that an MPI call moves: what this rank gives, or where it only gets, what it gets. Receiving calls tell
 * what there is room for. */
#include "tracer/hooks/mpi.h"

#include <string.h>

/* A buffer as the arguments describe it. */
struct part {
	int buffer;
	int count; /* -1: one element */
	int type;
};

static bool is_group(const struct hook_row *row, const char *group)
{
	return strcmp(row->group, group) == 0;
}

bool mpi_moves(const struct hook_row *row)
{
	bool typed =
		library_next(row, HOOK_A_TYPE, -1) >= 0 || library_next(row, HOOK_A_TYPES, -1) >= 0;

	return typed && library_next(row, HOOK_A_BUFFER, -1) >= 0;
}

static bool is_count(const struct hook_arg *arg)
{
	return arg->kind == HOOK_A_COUNT || arg->kind == HOOK_A_COUNTS ||
	       (arg->kind == HOOK_A_LONG && strcmp(arg->name, "count") == 0);
}

/* Finds the parts of a row: each datatype with the buffer and the count in front of it. @return how many. */
static int parts(const struct hook_row *row, struct part found[2])
{
	struct part next = {-1, -1, -1};
	int count = 0;

	for (int n = 0; row->args[n].kind != HOOK_A_END && count < 2; n++) {
		const struct hook_arg *arg = &row->args[n];
		if (arg->kind == HOOK_A_BUFFER && next.buffer < 0)
			next.buffer = n;
		if (is_count(arg))
			next.count = n;
		if (arg->kind != HOOK_A_TYPE && arg->kind != HOOK_A_TYPES)
			continue;
		next.type = n;
		found[count++] = next;
		next = (struct part){-1, -1, -1};
	}
	return count;
}

static bool is_in_place(const struct library_call *call, const struct mpi_state *state, int n)
{
	for (unsigned i = 0; n >= 0 && i < state->nin_place; i++) {
		if (library_value(call, n) == state->in_place[i])
			return true;
	}
	return false;
}

/* A name without what stands for its form: I, v, w, _init. */
static bool is_kind(const struct hook_row *row, const char *name)
{
	const char *at = row->name + 4;
	size_t len = strlen(name);

	if (strncasecmp(at, name, len) != 0 && at++[0] != 'I')
		return false;
	if (strncasecmp(at, name, len) != 0)
		return false;
	at += len;
	at += *at == 'v' || *at == 'w';
	return *at == '\0' || *at == '_';
}

static const struct mpi_comm *comm_of(const struct library_call *call,
				      const struct mpi_state *state)
{
	int n = library_next(call->row, HOOK_A_COMM, -1);

	return n < 0 ? NULL : mpi_comm_find(state, mpi_argument_key(call, state, n));
}

/* @return with how many processes a collective call deals, -1: not known. */
static int64_t others(const struct library_call *call, const struct mpi_state *state)
{
	const struct mpi_comm *comm = comm_of(call, state);

	if (!comm)
		return -1;
	if (is_group(call->row, "neighbour"))
		return comm->neighbours;
	return comm->remote_size >= 0 ? comm->remote_size : comm->size;
}

/* The bytes of one part; of an array of counts all of them, or with `own` this rank's. */
static bool part_size(const struct library_call *call, const struct mpi_state *state,
		      const struct part *part, bool own, uint64_t *bytes)
{
	const struct hook_arg *args = call->row->args;
	bool typed = args[part->type].kind == HOOK_A_TYPE;
	int64_t count = part->count < 0 ? 1 : (int64_t)library_value(call, part->count);
	bool array = part->count >= 0 && args[part->count].kind == HOOK_A_COUNTS;
	const struct mpi_comm *comm = comm_of(call, state);
	uint64_t size = 1;

	/* Of nothing the type does not matter, and need not be one. */
	if (!array && count == 0) {
		*bytes = 0;
		return true;
	}
	if (typed && !mpi_type_size(state, mpi_argument_key(call, state, part->type), &size))
		return false;
	if (!array) {
		*bytes = (uint64_t)count * size;
		return count >= 0;
	}
	if (own) {
		struct mpi_array counts = mpi_counts(call, library_value(call, part->count));
		if (!comm || comm->rank < 0 ||
		    !mpi_array_get(&counts, (uint64_t)comm->rank, &count))
			return false;
		*bytes = (uint64_t)count * size;
		return typed && count >= 0;
	}
	if (!mpi_sum(call, state, others(call, state), library_value(call, part->count),
		     typed ? 0 : library_value(call, part->type), bytes))
		return false;
	*bytes *= size;
	return true;
}

/* Calls that give each process a block of this size. */
static bool gives_each(const struct hook_row *row)
{
	int counts = library_next(row, HOOK_A_COUNTS, -1);

	return counts < 0 && (is_kind(row, "Alltoall") || is_kind(row, "Neighbor_alltoall") ||
			      is_kind(row, "Reduce_scatter_block"));
}

bool mpi_call_size(const struct library_call *call, const struct mpi_state *state, uint64_t *bytes)
{
	const struct hook_row *row = call->row;
	struct part found[2] = {{-1, -1, -1}, {-1, -1, -1}};
	int count = parts(row, found);
	const struct part *part = &found[0];
	int partitions = library_argument(row, "partitions");
	bool own = false;

	/* Of a scatter each process gets its part; who gives them out says so by all of them, which others need
	 * not know. */
	bool gets = is_kind(row, "Scatter");
	if (gets && count == 2)
		part = &found[1];
	if (count == 2 && is_in_place(call, state, part->buffer)) {
		part = part == &found[0] ? &found[1] : &found[0];
		own = gets || is_kind(row, "Gather") || is_kind(row, "Allgather");
	}
	if (count == 0 || !part_size(call, state, part, own, bytes))
		return false;
	if (partitions >= 0)
		*bytes *= library_value(call, partitions);
	if (gives_each(row)) {
		int64_t n = others(call, state);
		if (n < 0)
			return false;
		*bytes *= (uint64_t)n;
	}
	return true;
}
