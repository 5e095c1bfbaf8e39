/* A profiling library: stands in front of MPI_Send and calls what is behind. */
#include <mpi.h>

int MPI_Send(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm)
{
	return PMPI_Send(buf, count, type, dest, tag, comm);
}
