/* Parallel HDF5: each rank writes and reads its own rows of three datasets, collectively, independently and in chunks.
 * usage: mpirun -n N rows DIRECTORY. Rank 0 tells for all what moved: rank R hdf5 FUNCTION FILE OBJECT BYTES, separated by
 * tabs. */
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLS = 64, MOST = 128, WORDS = 8192 };

struct words {
	int rank;
	size_t len;
	char text[WORDS];
};

static void tell(struct words *w, const char *function, const char *object, long long bytes)
{
	char number[24] = "-";

	if (bytes >= 0)
		snprintf(number, sizeof(number), "%lld", bytes);
	w->len += (size_t)snprintf(w->text + w->len, WORDS - w->len,
				   "rank %d\thdf5\t%s\trows.h5\t%s\t%s\n", w->rank, function,
				   object, number);
}

static hid_t good(hid_t result, const char *what)
{
	if (result < 0) {
		fprintf(stderr, "%s failed\n", what);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	return result;
}

/* A call, and the words for it. */
static hid_t say(struct words *w, hid_t result, const char *function, const char *object,
		 long long bytes)
{
	tell(w, function, object, bytes);
	return good(result, function);
}

/* Rank r has 8 + r rows; those of the ranks before it stand first. */
static hsize_t rows_of(int rank)
{
	return 8 + (hsize_t)rank;
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"/collective", "/independent", "/chunked"};
	static double out[MOST][COLS], in[MOST][COLS];
	struct words w = {0};
	char path[4096];
	int ranks;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &w.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc != 2 || ranks > MOST - 8)
		MPI_Abort(MPI_COMM_WORLD, 2);
	snprintf(path, sizeof(path), "%s/rows.h5", argv[1]);
	hsize_t mine[2] = {rows_of(w.rank), COLS}, all[2] = {0, COLS}, start[2] = {0, 0};
	hsize_t chunk[2] = {4, COLS};
	for (int r = 0; r < ranks; r++) {
		all[0] += rows_of(r);
		start[0] += r < w.rank ? rows_of(r) : 0;
	}
	long long bytes = (long long)(mine[0] * COLS * sizeof(double));
	for (hsize_t i = 0; i < mine[0] * COLS; i++)
		out[i / COLS][i % COLS] = (double)w.rank * 1000 + (double)i;

	hid_t access = good(H5Pcreate(H5P_FILE_ACCESS), "H5Pcreate");
	good(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL), "H5Pset_fapl_mpio");
	hid_t file =
		say(&w, H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access), "H5Fcreate", "-", -1);
	hid_t in_file = good(H5Screate_simple(2, all, NULL), "H5Screate_simple");
	hid_t in_memory = good(H5Screate_simple(2, mine, NULL), "H5Screate_simple");
	good(H5Sselect_hyperslab(in_file, H5S_SELECT_SET, start, NULL, mine, NULL),
	     "H5Sselect_hyperslab");
	hid_t transfer = good(H5Pcreate(H5P_DATASET_XFER), "H5Pcreate");
	hid_t creation = good(H5Pcreate(H5P_DATASET_CREATE), "H5Pcreate");
	for (int i = 0; i < 3; i++) {
		if (i == 2)
			good(H5Pset_chunk(creation, 2, chunk), "H5Pset_chunk");
		good(H5Pset_dxpl_mpio(transfer,
				      i == 1 ? H5FD_MPIO_INDEPENDENT : H5FD_MPIO_COLLECTIVE),
		     "H5Pset_dxpl_mpio");
		hid_t set = say(&w,
				H5Dcreate2(file, names[i] + 1, H5T_NATIVE_DOUBLE, in_file,
					   H5P_DEFAULT, creation, H5P_DEFAULT),
				"H5Dcreate2", names[i], -1);
		say(&w, H5Dwrite(set, H5T_NATIVE_DOUBLE, in_memory, in_file, transfer, out),
		    "H5Dwrite", names[i], bytes);
		say(&w, H5Dread(set, H5T_NATIVE_DOUBLE, in_memory, in_file, transfer, in),
		    "H5Dread", names[i], bytes);
		if (memcmp(out, in, sizeof(out)) != 0)
			good(-1, "reading what was written");
		say(&w, H5Dclose(set), "H5Dclose", names[i], -1);
	}
	say(&w, H5Fclose(file), "H5Fclose", "-", -1);
	file = say(&w, H5Fopen(path, H5F_ACC_RDONLY, access), "H5Fopen", "-", -1);
	hid_t set = say(&w, H5Dopen2(file, "collective", H5P_DEFAULT), "H5Dopen2", names[0], -1);
	say(&w, H5Dread(set, H5T_NATIVE_DOUBLE, in_memory, in_file, H5P_DEFAULT, in), "H5Dread",
	    names[0], bytes);
	say(&w, H5Dclose(set), "H5Dclose", names[0], -1);
	say(&w, H5Fclose(file), "H5Fclose", "-", -1);
	H5Pclose(creation);
	H5Pclose(transfer);
	H5Pclose(access);
	H5Sclose(in_memory);
	H5Sclose(in_file);

	char *everyone = malloc((size_t)ranks * WORDS);
	MPI_Gather(w.text, WORDS, MPI_CHAR, everyone, WORDS, MPI_CHAR, 0, MPI_COMM_WORLD);
	for (int r = 0; w.rank == 0 && r < ranks; r++)
		fputs(everyone + (size_t)r * WORDS, stdout);
	free(everyone);
	MPI_Finalize();
	return 0;
}
