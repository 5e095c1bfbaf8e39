/* Calls of MPI that move bytes between processes, with predefined and derived types. usage: mpi_messages */
#include "mpi_say.h"

#include <mpi.h>

static int rank;
static int size;
static char sent[1 << 16];
static char got[1 << 16];

#define ALL MPI_COMM_WORLD

static void point_to_point(void)
{
	int to = (rank + 1) % size;
	int from = (rank + size - 1) % size;
	MPI_Request requests[2];
	MPI_Status statuses[2];

	MPI_Sendrecv(sent, 5, MPI_DOUBLE, to, 1, got, 7, MPI_DOUBLE, from, 1, ALL, statuses);
	say("MPI_Sendrecv 40 - %d %d dest=%d source=%d sendtag=1", rank, size, to, from);
	MPI_Irecv(got, 100, MPI_INT, from, 2, ALL, &requests[0]);
	say("MPI_Irecv 400 - %d %d source=%d tag=2 count=100", rank, size, from);
	MPI_Isend(sent, 10, MPI_LONG, to, 2, ALL, &requests[1]);
	say("MPI_Isend 80 - %d %d dest=%d tag=2 count=10", rank, size, to);
	MPI_Waitall(2, requests, statuses);
	say("MPI_Waitall - - - - count=2");
	if (rank == 0) {
		MPI_Send(sent, 3, MPI_FLOAT_INT, 1, 3, ALL);
		say("MPI_Send 24 - 0 %d dest=1 tag=3", size);
		MPI_Ssend(sent, 2, MPI_SHORT, 1, 4, ALL);
		say("MPI_Ssend 4 - 0 %d dest=1 tag=4", size);
	} else if (rank == 1) {
		MPI_Recv(got, 3, MPI_FLOAT_INT, 0, 3, ALL, MPI_STATUS_IGNORE);
		say("MPI_Recv 24 - 1 %d source=0 tag=3", size);
		MPI_Recv(got, 9, MPI_SHORT, MPI_ANY_SOURCE, MPI_ANY_TAG, ALL, statuses);
		say("MPI_Recv 18 - 1 %d source=%d tag=%d", size, MPI_ANY_SOURCE, MPI_ANY_TAG);
	}
}

static void persistent(void)
{
	MPI_Request requests[2];
	MPI_Status statuses[2];

	MPI_Send_init(sent, 6, MPI_INT, (rank + 1) % size, 5, ALL, &requests[0]);
	say("MPI_Send_init - - %d %d count=6", rank, size);
	MPI_Recv_init(got, 6, MPI_INT, MPI_ANY_SOURCE, 5, ALL, &requests[1]);
	say("MPI_Recv_init - - %d %d count=6", rank, size);
	for (int i = 0; i < 2; i++) {
		MPI_Startall(2, requests);
		say("MPI_Startall 48 - - - count=2");
		MPI_Waitall(2, requests, statuses);
		say("MPI_Waitall - - - - count=2");
	}
	MPI_Start(&requests[1]);
	say("MPI_Start 24 - - -");
	MPI_Start(&requests[0]);
	say("MPI_Start 24 - - -");
	MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
	say("MPI_Wait - - - -");
	MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
	say("MPI_Wait - - - -");
	for (int i = 0; i < 2; i++) {
		MPI_Request_free(&requests[i]);
		say("MPI_Request_free - - - -");
	}
}

/* Sends to itself, which any type can. */
static void one_type(MPI_Datatype type, long bytes)
{
	MPI_Request request;

	MPI_Type_commit(&type);
	MPI_Irecv(got, 1, type, rank, 9, ALL, &request);
	say("MPI_Irecv %ld - %d %d count=1", bytes, rank, size);
	MPI_Send(sent, 1, type, rank, 9, ALL);
	say("MPI_Send %ld - %d %d count=1", bytes, rank, size);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	say("MPI_Wait - - - -");
	MPI_Type_free(&type);
}

static void derived(void)
{
	int lengths[3] = {2, 0, 3};
	int places[3] = {0, 5, 9};
	MPI_Aint bytes[3] = {0, 64, 128};
	MPI_Datatype kinds[3] = {MPI_INT, MPI_CHAR, MPI_DOUBLE};
	int whole[2] = {6, 8};
	int part[2] = {2, 3};
	int start[2] = {1, 1};
	int how[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC};
	int args[2] = {MPI_DISTRIBUTE_DFLT_DARG, 3};
	int grid[2] = {2, 2};
	MPI_Datatype type;
	MPI_Datatype other;
	int told;

	MPI_Type_contiguous(7, MPI_SHORT, &type);
	one_type(type, 14);
	MPI_Type_vector(3, 2, 4, MPI_DOUBLE, &type);
	one_type(type, 48);
	MPI_Type_create_hvector(3, 2, 64, MPI_INT, &type);
	one_type(type, 24);
	MPI_Type_indexed(3, lengths, places, MPI_INT, &type);
	one_type(type, 20);
	MPI_Type_create_hindexed(3, lengths, bytes, MPI_LONG, &type);
	one_type(type, 40);
	MPI_Type_create_indexed_block(3, 4, places, MPI_CHAR, &type);
	one_type(type, 12);
	MPI_Type_create_hindexed_block(3, 4, bytes, MPI_INT, &type);
	one_type(type, 48);
	MPI_Type_create_struct(3, lengths, bytes, kinds, &type);
	one_type(type, 32);
	MPI_Type_create_subarray(2, whole, part, start, MPI_ORDER_C, MPI_DOUBLE, &type);
	one_type(type, 48);
	/* The library says how much each of the four has. */
	for (int who = 0; who < 4; who++) {
		MPI_Type_create_darray(4, who, 2, whole, how, args, grid, MPI_ORDER_C, MPI_DOUBLE,
				       &type);
		MPI_Type_size(type, &told);
		one_type(type, told);
	}
	MPI_Type_create_resized(MPI_INT, 0, 32, &other);
	MPI_Type_contiguous(5, other, &type);
	MPI_Type_free(&other);
	one_type(type, 20);
	MPI_Type_vector(3, 2, 4, MPI_DOUBLE, &other);
	MPI_Type_dup(other, &type);
	one_type(type, 48);
	one_type(other, 48);
}

static void collectives(void)
{
	int counts[64];
	int places[64];
	MPI_Datatype kinds[64];
	int sum = 0;
	MPI_Request request;

	for (int i = 0; i < size; i++) {
		counts[i] = i + 1;
		places[i] = 16 * i;
		kinds[i] = MPI_INT;
		sum += i + 1;
	}
	MPI_Barrier(ALL);
	say("MPI_Barrier - - %d %d", rank, size);
	MPI_Bcast(sent, 11, MPI_DOUBLE, 0, ALL);
	say("MPI_Bcast 88 - %d %d root=0 count=11", rank, size);
	MPI_Reduce(sent, got, 4, MPI_INT, MPI_SUM, 1, ALL);
	say("MPI_Reduce 16 - %d %d root=1 count=4", rank, size);
	MPI_Allreduce(MPI_IN_PLACE, got, 4, MPI_DOUBLE, MPI_MAX, ALL);
	say("MPI_Allreduce 32 - %d %d count=4", rank, size);
	MPI_Gather(sent, 2, MPI_INT, got, 2, MPI_INT, 0, ALL);
	say("MPI_Gather 8 - %d %d root=0", rank, size);
	MPI_Scatter(sent, 2, MPI_INT, got, 2, MPI_INT, 0, ALL);
	say("MPI_Scatter 8 - %d %d root=0", rank, size);
	MPI_Gatherv(sent, counts[rank], MPI_INT, got, counts, places, MPI_INT, 0, ALL);
	say("MPI_Gatherv %d - %d %d root=0", 4 * counts[rank], rank, size);
	MPI_Scatterv(sent, counts, places, MPI_INT, got, counts[rank], MPI_INT, 0, ALL);
	say("MPI_Scatterv %d - %d %d root=0", 4 * counts[rank], rank, size);
	MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, got, 3, MPI_INT, ALL);
	say("MPI_Allgather 12 - %d %d", rank, size);
	MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, got, counts, places, MPI_INT, ALL);
	say("MPI_Allgatherv %d - %d %d", 4 * counts[rank], rank, size);
	MPI_Alltoall(sent, 2, MPI_DOUBLE, got, 2, MPI_DOUBLE, ALL);
	say("MPI_Alltoall %d - %d %d", 16 * size, rank, size);
	for (int i = 0; i < size; i++)
		counts[i] = 1 + (rank + i) % 2;
	sum = 0;
	for (int i = 0; i < size; i++)
		sum += counts[i];
	MPI_Alltoallv(sent, counts, places, MPI_INT, got, counts, places, MPI_INT, ALL);
	say("MPI_Alltoallv %d - %d %d", 4 * sum, rank, size);
	for (int i = 0; i < size; i++)
		places[i] *= 4;
	MPI_Alltoallw(sent, counts, places, kinds, got, counts, places, kinds, ALL);
	say("MPI_Alltoallw %d - %d %d", 4 * sum, rank, size);
	for (int i = 0; i < size; i++)
		counts[i] = i + 1;
	MPI_Reduce_scatter(sent, got, counts, MPI_INT, MPI_SUM, ALL);
	say("MPI_Reduce_scatter %d - %d %d", 2 * size * (size + 1), rank, size);
	MPI_Iallreduce(sent, got, 6, MPI_INT, MPI_SUM, ALL, &request);
	say("MPI_Iallreduce 24 - %d %d count=6", rank, size);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	say("MPI_Wait - - - -");
	MPI_Ialltoall(sent, 1, MPI_INT, got, 1, MPI_INT, ALL, &request);
	say("MPI_Ialltoall %d - %d %d", 4 * size, rank, size);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	say("MPI_Wait - - - -");
}

static void communicators(void)
{
	MPI_Comm half;
	MPI_Comm ring;
	MPI_Comm same;
	int my;
	int all;
	int round = 1;

	/* Nobody asks for the size of this one: what it moves is not known. */
	MPI_Comm_split(ALL, rank % 2, rank, &half);
	MPI_Alltoall(sent, 1, MPI_INT, got, 1, MPI_INT, half);
	say("MPI_Alltoall - - - -");
	MPI_Comm_rank(half, &my);
	MPI_Comm_size(half, &all);
	MPI_Alltoall(sent, 1, MPI_INT, got, 1, MPI_INT, half);
	say("MPI_Alltoall %d - %d %d", 4 * all, my, all);
	MPI_Comm_free(&half);
	MPI_Comm_dup(ALL, &same);
	MPI_Bcast(sent, 1, MPI_INT, 0, same);
	say("MPI_Bcast 4 - %d %d root=0", rank, size);
	MPI_Comm_free(&same);
	MPI_Cart_create(ALL, 1, &size, &round, 0, &ring);
	MPI_Neighbor_alltoall(sent, 3, MPI_INT, got, 3, MPI_INT, ring);
	say("MPI_Neighbor_alltoall 24 - %d %d", rank, size);
	MPI_Comm_free(&ring);
	MPI_Bcast(sent, 1, MPI_INT, 0, MPI_COMM_SELF);
	say("MPI_Bcast 4 - 0 1 root=0");
}

static void one_sided(void)
{
	static int memory[64];
	MPI_Win window;

	MPI_Win_create(memory, sizeof(memory), sizeof(int), MPI_INFO_NULL, ALL, &window);
	say("MPI_Win_create - - %d %d size=256 disp_unit=4", rank, size);
	MPI_Win_fence(0, window);
	say("MPI_Win_fence - - - -");
	MPI_Put(sent, 4, MPI_INT, (rank + 1) % size, 8, 4, MPI_INT, window);
	say("MPI_Put 16 - - - target_rank=%d target_disp=8", (rank + 1) % size);
	MPI_Win_fence(0, window);
	say("MPI_Win_fence - - - -");
	MPI_Get(got, 2, MPI_INT, (rank + 1) % size, 0, 2, MPI_INT, window);
	say("MPI_Get 8 - - - target_rank=%d", (rank + 1) % size);
	MPI_Win_fence(0, window);
	say("MPI_Win_fence - - - -");
	MPI_Win_free(&window);
	say("MPI_Win_free - - - -");
}

/* Forms for large counts, which MPI has from version 4 on. */
static void large(void)
{
#if MPI_VERSION >= 4
	MPI_Count counts[64];
	MPI_Aint places[64];
	MPI_Datatype type;
	MPI_Count lengths[2] = {3, 4};
	MPI_Count starts[2] = {0, 8};

	for (int i = 0; i < size; i++) {
		counts[i] = 2;
		places[i] = 4 * i;
	}
	MPI_Type_indexed_c(2, lengths, starts, MPI_SHORT, &type);
	MPI_Type_commit(&type);
	MPI_Bcast_c(sent, 5, type, 0, ALL);
	say("MPI_Bcast_c 70 - %d %d count=5 root=0", rank, size);
	MPI_Type_free(&type);
	MPI_Alltoallv_c(sent, counts, places, MPI_INT, got, counts, places, MPI_INT, ALL);
	say("MPI_Alltoallv_c %d - %d %d", 8 * size, rank, size);
	MPI_Sendrecv_c(sent, 1000, MPI_CHAR, rank, 0, got, 1000, MPI_CHAR, rank, 0, ALL,
		       MPI_STATUS_IGNORE);
	say("MPI_Sendrecv_c 1000 - %d %d sendcount=1000", rank, size);
#endif
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	say("MPI_Init - - - -");
	MPI_Comm_rank(ALL, &rank);
	MPI_Comm_size(ALL, &size);
	point_to_point();
	persistent();
	derived();
	collectives();
	communicators();
	one_sided();
	large();
	MPI_Finalize();
	say("MPI_Finalize - - - -");
	say_out(rank);
	printf("rank %d of %d is done\n", rank, size);
	return 0;
}
