/* Each rank writes every so many blocks of 8 bytes of one file. usage: mpi_hints all|own [HINT VALUE]... */
#include <mpi.h>
#include <string.h>

#define BLOCKS 256

int main(int argc, char **argv)
{
	static double data[BLOCKS];
	MPI_Datatype every;
	MPI_File file;
	MPI_Info hints;
	int rank;
	int size;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (int i = 0; i < BLOCKS; i++)
		data[i] = rank * 1000 + i;
	MPI_Info_create(&hints);
	for (int i = 2; i + 1 < argc; i += 2)
		MPI_Info_set(hints, argv[i], argv[i + 1]);
	MPI_File_open(MPI_COMM_WORLD, "grid.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, hints, &file);
	MPI_Type_vector(BLOCKS, 1, size, MPI_DOUBLE, &every);
	MPI_Type_commit(&every);
	MPI_File_set_view(file, rank * 8, MPI_DOUBLE, every, "native", hints);
	if (strcmp(argv[1], "all") == 0)
		MPI_File_write_all(file, data, BLOCKS, MPI_DOUBLE, MPI_STATUS_IGNORE);
	else
		MPI_File_write(file, data, BLOCKS, MPI_DOUBLE, MPI_STATUS_IGNORE);
	MPI_File_close(&file);
	MPI_Type_free(&every);
	MPI_Info_free(&hints);
	MPI_Finalize();
	return 0;
}
