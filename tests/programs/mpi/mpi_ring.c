/* Passes a byte around. usage: mpi_ring ROUNDS [abort] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1;
	int rank;
	int size;
	char byte = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	double begin = MPI_Wtime();
	for (int i = 0; i < rounds; i++) {
		if (rank > 0)
			MPI_Recv(&byte, 1, MPI_CHAR, rank - 1, 0, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
		byte++;
		MPI_Send(&byte, 1, MPI_CHAR, (rank + 1) % size, 0, MPI_COMM_WORLD);
		if (rank == 0)
			MPI_Recv(&byte, 1, MPI_CHAR, size - 1, 0, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
	}
	if (argc > 2 && strcmp(argv[2], "time") == 0 && rank == 0)
		printf("%.3f us a message\n", (MPI_Wtime() - begin) * 1e6 / rounds / size);
	if (argc > 2 && strcmp(argv[2], "abort") == 0 && rank == size - 1)
		MPI_Abort(MPI_COMM_WORLD, 7);
	MPI_Finalize();
	printf("rank %d of %d: %d\n", rank, size, byte);
	return 0;
}
