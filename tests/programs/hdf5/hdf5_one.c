/* Writes one element of a dataset over and over. usage: hdf5_one COUNT FILE. Prints what a write takes, in us. */
#include "h5say.h"

#include <time.h>

enum { ELEMENTS = 1024 };

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

int main(int argc, char **argv)
{
	hsize_t many = ELEMENTS, one = 1, at = 5;
	long count = argc == 3 ? atol(argv[1]) : 0;
	double value = 1;

	if (count < 1) {
		fprintf(stderr, "usage: hdf5_one COUNT FILE\n");
		return 2;
	}
	hid_t file = DO(H5Fcreate, (argv[2], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
	hid_t space = DO(H5Screate_simple, (1, &many, NULL));
	hid_t memory = DO(H5Screate_simple, (1, &one, NULL));
	hid_t set = DO(H5Dcreate2, (file, "x", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT,
				    H5P_DEFAULT));
	DO(H5Sselect_hyperslab, (space, H5S_SELECT_SET, &at, NULL, &one, NULL));
	hid_t type = DO(H5Tcopy, (H5T_NATIVE_DOUBLE));
	double start = now();
	for (long i = 0; i < count; i++)
		DO(H5Dwrite, (set, type, memory, space, H5P_DEFAULT, &value));
	printf("%.4f us a write\n", (now() - start) / (double)count);
	DO(H5Dclose, (set));
	DO(H5Fclose, (file));
	return 0;
}
