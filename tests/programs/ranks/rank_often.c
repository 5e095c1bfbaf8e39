/* An MPI program that asks for its rank very often, from two threads: of "world", "rank" (and never for the size) or
 * "dup" (a duplicate only). Then it writes a file by MPI-IO from further down the stack. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static MPI_Comm comm;
static int times;
static int with_size;

static void *ask(void *data)
{
	int rank;
	int size;

	for (int i = 0; i < times; i++) {
		MPI_Comm_rank(comm, &rank);
		if (with_size)
			MPI_Comm_size(comm, &size);
	}
	return data;
}

static __attribute__((noinline)) void write_file(int depth)
{
	volatile char room[256];
	MPI_Status status;
	MPI_File file;

	room[0] = (char)depth;
	if (depth > 0) {
		write_file(depth - 1);
		room[1] = room[0];
		return;
	}
	MPI_File_open(MPI_COMM_SELF, "often", MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL,
		      &file);
	MPI_File_write(file, "0123456789", 10, MPI_CHAR, &status);
	MPI_File_close(&file);
}

int main(int argc, char **argv)
{
	pthread_t other;
	int provided;

	if (argc < 3)
		return 90;
	times = atoi(argv[2]);
	with_size = strcmp(argv[1], "rank") != 0;
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	comm = MPI_COMM_WORLD;
	if (strcmp(argv[1], "dup") == 0)
		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	if (pthread_create(&other, NULL, ask, NULL) != 0)
		return 91;
	ask(NULL);
	pthread_join(other, NULL);
	write_file(3);
	MPI_Finalize();
	return 0;
}
