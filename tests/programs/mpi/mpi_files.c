/* MPI-IO in all its forms. usage: mpi_files [FILE] */
#include "mpi_say.h"

#include <mpi.h>

static int rank;
static int size;
static double data[1024];

#define ALL   MPI_COMM_WORLD
#define NOTED MPI_STATUS_IGNORE

/* A call on the file, which everybody has opened. */
#define ON(name, bytes, more, ...)                                                                 \
	do {                                                                                       \
		if (name(__VA_ARGS__) != MPI_SUCCESS)                                              \
			MPI_Abort(ALL, 9);                                                         \
		say("%s %s %s %d %d %s", #name, bytes, path, rank, size, more);                    \
	} while (0)

static void explicit_offsets(MPI_File file, const char *path)
{
	MPI_Offset at = rank * 80;
	MPI_Request request;

	ON(MPI_File_write_at, "80", "count=10", file, at, data, 10, MPI_DOUBLE, NOTED);
	ON(MPI_File_write_at_all, "80", "count=10", file, at, data, 10, MPI_DOUBLE, NOTED);
	ON(MPI_File_read_at, "40", "count=10", file, at, data, 10, MPI_INT, NOTED);
	ON(MPI_File_read_at_all, "40", "count=10", file, at, data, 10, MPI_INT, NOTED);
	ON(MPI_File_iwrite_at, "16", "count=2", file, at, data, 2, MPI_DOUBLE, &request);
	MPI_Wait(&request, NOTED);
	say("MPI_Wait - %s - -", path);
	ON(MPI_File_iread_at, "16", "count=2", file, at, data, 2, MPI_DOUBLE, &request);
	MPI_Wait(&request, NOTED);
	say("MPI_Wait - %s - -", path);
	ON(MPI_File_write_at_all_begin, "80", "count=10", file, at, data, 10, MPI_DOUBLE);
	ON(MPI_File_write_at_all_end, "-", "", file, data, NOTED);
	ON(MPI_File_read_at_all_begin, "80", "count=10", file, at, data, 10, MPI_DOUBLE);
	ON(MPI_File_read_at_all_end, "-", "", file, data, NOTED);
}

static void own_pointers(MPI_File file, const char *path)
{
	MPI_Request request;
	MPI_Datatype row;
	MPI_Offset place;

	/* Each rank has every so many rows of four. */
	MPI_Type_vector(8, 4, 4 * size, MPI_DOUBLE, &row);
	MPI_Type_commit(&row);
	ON(MPI_File_set_view, "-", "disp=64", file, 64, MPI_DOUBLE, row, "native", MPI_INFO_NULL);
	ON(MPI_File_write_all, "256", "count=32", file, data, 32, MPI_DOUBLE, NOTED);
	ON(MPI_File_seek, "-", "offset=0", file, 0, MPI_SEEK_SET);
	ON(MPI_File_read_all, "256", "count=32", file, data, 32, MPI_DOUBLE, NOTED);
	ON(MPI_File_get_position, "-", "", file, &place);
	ON(MPI_File_seek, "-", "offset=-32", file, -32, MPI_SEEK_CUR);
	ON(MPI_File_write, "32", "count=4", file, data, 4, MPI_DOUBLE, NOTED);
	ON(MPI_File_read, "256", "count=1", file, data, 1, row, NOTED);
	ON(MPI_File_iwrite, "8", "count=1", file, data, 1, MPI_DOUBLE, &request);
	MPI_Wait(&request, NOTED);
	say("MPI_Wait - %s - -", path);
	ON(MPI_File_write_all_begin, "32", "count=4", file, data, 4, MPI_DOUBLE);
	ON(MPI_File_write_all_end, "-", "", file, data, NOTED);
	MPI_Type_free(&row);
	ON(MPI_File_set_view, "-", "disp=0", file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
}

static void shared_pointers(MPI_File file, const char *path)
{
	ON(MPI_File_seek_shared, "-", "offset=0", file, 0, MPI_SEEK_SET);
	ON(MPI_File_write_shared, "8", "count=1", file, data, 1, MPI_DOUBLE, NOTED);
	ON(MPI_File_write_ordered, "16", "count=2", file, data, 2, MPI_DOUBLE, NOTED);
	ON(MPI_File_seek_shared, "-", "offset=0", file, 0, MPI_SEEK_SET);
	ON(MPI_File_read_shared, "8", "count=1", file, data, 1, MPI_DOUBLE, NOTED);
	ON(MPI_File_read_ordered, "16", "count=2", file, data, 2, MPI_DOUBLE, NOTED);
	ON(MPI_File_write_ordered_begin, "16", "count=2", file, data, 2, MPI_DOUBLE);
	ON(MPI_File_write_ordered_end, "-", "", file, data, NOTED);
}

int main(int argc, char **argv)
{
	const char *path = argc > 1 ? argv[1] : "grid.dat";
	MPI_File file;
	MPI_File own;
	MPI_Offset bytes;
	char name[32];

	MPI_Init(&argc, &argv);
	say("MPI_Init - - - -");
	MPI_Comm_rank(ALL, &rank);
	MPI_Comm_size(ALL, &size);
	ON(MPI_File_open, "-", "", ALL, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
	   &file);
	ON(MPI_File_preallocate, "-", "size=8192", file, 8192);
	explicit_offsets(file, path);
	own_pointers(file, path);
	ON(MPI_File_sync, "-", "", file);
	shared_pointers(file, path);
	ON(MPI_File_set_size, "-", "size=4096", file, 4096);
	ON(MPI_File_get_size, "-", "", file, &bytes);

	/* A second file at the same time, of one rank. */
	snprintf(name, sizeof(name), "own.%d", rank);
	MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &own);
	say("MPI_File_open - %s 0 1", name);
	MPI_File_write(own, data, 7, MPI_INT, NOTED);
	say("MPI_File_write 28 %s 0 1 count=7", name);
	ON(MPI_File_write_at, "8", "count=1", file, 0, data, 1, MPI_DOUBLE, NOTED);
	MPI_File_close(&own);
	say("MPI_File_close - %s - -", name);
	MPI_File_close(&file);
	say("MPI_File_close - %s - -", path);
	MPI_File_delete(name, MPI_INFO_NULL);
	say("MPI_File_delete - %s - -", name);
	MPI_Finalize();
	say("MPI_Finalize - - - -");
	say_out(rank);
	printf("rank %d of %d is done\n", rank, size);
	return 0;
}
