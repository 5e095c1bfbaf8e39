/* An MPI program that writes a file of its own and one together with the others, then ends as it is told:
 * well, or by abort, segv, exit, spin (writing on until it is killed), or fill (one takes memory as well, until the
 * kernel kills it). */
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void write_file(const char *name, int rank, int times)
{
	char line[100];

	int fd = open(name, O_WRONLY | O_CREAT | O_APPEND, 0666);
	if (fd < 0)
		exit(90);
	for (int i = 0; i < times; i++) {
		memset(line, 'a' + rank % 26, sizeof(line));
		if (write(fd, line, sizeof(line)) != sizeof(line))
			exit(91);
	}
	close(fd);
}

/* Writes until it is killed; takes so many bytes more each time. */
static void spin(const char *name, int rank, size_t more)
{
	for (;;) {
		write_file(name, rank, 10);
		char *taken = more ? malloc(more) : NULL;
		if (taken)
			memset(taken, 1, more);
		usleep(10000);
	}
}

int main(int argc, char **argv)
{
	const char *end = argc > 1 ? argv[1] : "well";
	char name[64];
	int rank = -1;
	int size = 0;
	int sum = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	snprintf(name, sizeof(name), "own.%d", rank);
	write_file(name, rank, 10 + rank);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	printf("rank %d of %d, sum %d\n", rank, size, sum);
	fflush(stdout);
	if (strcmp(end, "spin") == 0)
		spin(name, rank, 0);
	if (strcmp(end, "fill") == 0)
		spin(name, rank, rank == size - 1 ? 1 << 20 : 0);
	if (rank == size - 1 && strcmp(end, "abort") == 0)
		MPI_Abort(MPI_COMM_WORLD, 7);
	if (rank == size - 1 && strcmp(end, "segv") == 0)
		raise(SIGSEGV);
	if (rank == size - 1 && strcmp(end, "exit") == 0)
		exit(5);
	MPI_Finalize();
	return 0;
}
