/* The other half of mpi_mixed.f90. */
#include <mpi.h>

void write_in_c(int number);
void open_in_c(int *number, int *type);

void write_in_c(int number)
{
	static int data[5];

	MPI_File_write_at(MPI_File_f2c(number), 0, data, 5, MPI_INT, MPI_STATUS_IGNORE);
}

void open_in_c(int *number, int *type)
{
	MPI_Datatype made;
	MPI_File file;

	MPI_File_open(MPI_COMM_WORLD, "c.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
		      &file);
	MPI_Type_vector(2, 3, 4, MPI_DOUBLE, &made);
	MPI_Type_commit(&made);
	*number = MPI_File_c2f(file);
	*type = MPI_Type_c2f(made);
}
