/* HDF5 from C: types, selections, names and lives of identifiers. usage: hdf5_calls PART. What the calls move is counted here
 * and not asked of the library. */
#include "h5say.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include <sys/wait.h>

static hid_t create(const char *name)
{
	return SAY(H5Fcreate, (name, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), name, "-", NONE);
}

/* Writes `count` elements of a type to a dataset of their own, and reads them. */
static void of_type(hid_t file, const char *name, hid_t type, hsize_t count, long long size)
{
	long long bytes = size == NONE ? NONE : size * (long long)count;
	hid_t space = DO(H5Screate_simple, (1, &count, NULL));
	static char data[65536];
	char path[64];

	snprintf(path, sizeof(path), "/%s", name);
	hid_t set =
		SAY(H5Dcreate2, (file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
		    "types.h5", path, NONE);
	SAY(H5Dwrite, (set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data), "types.h5", path, bytes);
	SAY(H5Dread, (set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data), "types.h5", path, bytes);
	SAY(H5Dclose, (set), "types.h5", path, NONE);
	DO(H5Sclose, (space));
}

static void types(void)
{
	struct gap {
		char a;
		double b;
		int c[3];
	};
	hid_t file = create("types.h5");
	hsize_t three = 3;
	hsize_t grid[2] = {4, 5};

	of_type(file, "int", H5T_NATIVE_INT, 10, sizeof(int));
	of_type(file, "ldouble", H5T_NATIVE_LDOUBLE, 3, sizeof(long double));
	of_type(file, "be16", H5T_STD_I16BE, 7, 2);
	of_type(file, "short", H5T_NATIVE_SHORT, 9, sizeof(short));

	hid_t copy = DO(H5Tcopy, (H5T_NATIVE_INT));
	of_type(file, "copy", copy, 11, sizeof(int));
	DO(H5Tset_precision, (copy, 40));
	of_type(file, "precise", copy, 11, 5);
	DO(H5Tclose, (copy));

	hid_t text = DO(H5Tcopy, (H5T_C_S1));
	DO(H5Tset_size, (text, 23));
	of_type(file, "text", text, 6, 23);
	hid_t again = DO(H5Tcopy, (text));
	DO(H5Tset_size, (again, H5T_VARIABLE));
	DO(H5Tclose, (text));

	hid_t array = DO(H5Tarray_create2, (H5T_NATIVE_INT, 1, &three));
	hid_t compound = DO(H5Tcreate, (H5T_COMPOUND, sizeof(struct gap)));
	DO(H5Tinsert, (compound, "a", HOFFSET(struct gap, a), H5T_NATIVE_CHAR));
	DO(H5Tinsert, (compound, "b", HOFFSET(struct gap, b), H5T_NATIVE_DOUBLE));
	DO(H5Tinsert, (compound, "c", HOFFSET(struct gap, c), array));
	of_type(file, "compound", compound, 5, sizeof(struct gap));
	hid_t packed = DO(H5Tcopy, (compound));
	DO(H5Tpack, (packed));
	of_type(file, "packed", packed, 5, 1 + 8 + 12);
	hid_t matrix = DO(H5Tarray_create2, (compound, 2, grid));
	of_type(file, "matrix", matrix, 2, 20 * (long long)sizeof(struct gap));

	hid_t colour = DO(H5Tenum_create, (H5T_NATIVE_SHORT));
	short red = 1;
	DO(H5Tenum_insert, (colour, "red", &red));
	of_type(file, "colour", colour, 8, 2);
	hid_t opaque = DO(H5Tcreate, (H5T_OPAQUE, 13));
	of_type(file, "opaque", opaque, 4, 13);
	of_type(file, "reference", H5T_STD_REF_OBJ, 4, 8);
	/* How much there is of variable length only the data know. */
	of_type(file, "variable", again, 2, NONE);
	hid_t native = DO(H5Tget_native_type, (H5T_STD_I32BE, H5T_DIR_DEFAULT));
	of_type(file, "native", native, 6, 4);

	SAY(H5Tcommit2, (file, "named", compound, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
	    "types.h5", "-", NONE);
	DO(H5Tclose, (compound));
	SAY(H5Fclose, (file), "types.h5", "-", NONE);
}

enum { ROWS = 40, COLS = 30 };

struct box {
	hsize_t start[2], stride[2], count[2], block[2];
};

static bool is_in(const struct box *b, hsize_t row, hsize_t col)
{
	hsize_t at[2] = {row, col};

	for (int d = 0; d < 2; d++) {
		if (at[d] < b->start[d])
			return false;
		hsize_t from = at[d] - b->start[d];
		/* With one block there is no stride. */
		hsize_t stride = b->count[d] == 1 ? b->block[d] : b->stride[d];
		if (from / stride >= b->count[d] || from % stride >= b->block[d])
			return false;
	}
	return true;
}

static bool combine(bool in, H5S_seloper_t op, bool here)
{
	switch (op) {
	case H5S_SELECT_SET:
		return here;
	case H5S_SELECT_OR:
		return in || here;
	case H5S_SELECT_AND:
		return in && here;
	case H5S_SELECT_XOR:
		return in != here;
	case H5S_SELECT_NOTB:
		return in && !here;
	default:
		return !in && here;
	}
}

static int data[ROWS * COLS];

static void write_selected(hid_t set, hid_t space, long long elements, const char *path)
{
	SAY(H5Dwrite, (set, H5T_NATIVE_INT, space, space, H5P_DEFAULT, data), "selections.h5", path,
	    elements * (long long)sizeof(int));
}

static void selections(void)
{
	static const struct box boxes[] = {
		{{2, 3}, {1, 1}, {10, 12}, {1, 1}},
		{{5, 5}, {7, 4}, {4, 5}, {3, 2}},
		{{0, 0}, {2, 3}, {20, 10}, {1, 2}},
		{{20, 1}, {1, 1}, {1, 1}, {15, 25}},
	};
	static const H5S_seloper_t ops[] = {H5S_SELECT_OR, H5S_SELECT_AND, H5S_SELECT_XOR,
					    H5S_SELECT_NOTB, H5S_SELECT_NOTA};
	hsize_t dims[2] = {ROWS, COLS};
	hsize_t points[5][2] = {{0, 0}, {3, 4}, {39, 29}, {7, 7}, {3, 4}};
	hid_t file = create("selections.h5");
	hid_t space = DO(H5Screate_simple, (2, dims, NULL));
	hid_t set =
		SAY(H5Dcreate2,
		    (file, "grid", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
		    "selections.h5", "/grid", NONE);

	write_selected(set, space, ROWS * COLS, "/grid");
	/* From all of it on, and from one box on: every operation, one after the other. */
	for (size_t first = 0; first < 2; first++) {
		static bool in[ROWS][COLS];
		for (size_t i = 0; i < ROWS * COLS; i++)
			in[i / COLS][i % COLS] = true;
		DO(H5Sselect_all, (space));
		for (size_t step = first; step < 12; step++) {
			const struct box *b = &boxes[(step * 3 + first) % LEN(boxes)];
			H5S_seloper_t op = step == 1 ? H5S_SELECT_SET : ops[(step + 1) % LEN(ops)];
			long long elements = 0;
			DO(H5Sselect_hyperslab,
			   (space, op, b->start, b->stride, b->count, b->block));
			for (hsize_t r = 0; r < ROWS; r++) {
				for (hsize_t c = 0; c < COLS; c++) {
					in[r][c] = combine(in[r][c], op, is_in(b, r, c));
					elements += in[r][c];
				}
			}
			write_selected(set, space, elements, "/grid");
		}
	}
	DO(H5Sselect_none, (space));
	write_selected(set, space, 0, "/grid");
	DO(H5Sselect_elements, (space, H5S_SELECT_SET, 3, points[0]));
	write_selected(set, space, 3, "/grid");
	DO(H5Sselect_elements, (space, H5S_SELECT_APPEND, 2, points[3]));
	write_selected(set, space, 5, "/grid");
	hid_t copy = DO(H5Scopy, (space));
	DO(H5Sclose, (space));
	write_selected(set, copy, 5, "/grid");

	/* The selection in the file is that in memory as well; one side is enough. */
	DO(H5Sselect_hyperslab,
	   (copy, H5S_SELECT_SET, boxes[1].start, boxes[1].stride, boxes[1].count, boxes[1].block));
	hsize_t flat = 4 * 5 * 3 * 2;
	hid_t memory = DO(H5Screate_simple, (1, &flat, NULL));
	SAY(H5Dread, (set, H5T_NATIVE_DOUBLE, memory, copy, H5P_DEFAULT, malloc(flat * 8)),
	    "selections.h5", "/grid", (long long)flat * 8);
	SAY(H5Dread, (set, H5T_NATIVE_INT, H5S_ALL, copy, H5P_DEFAULT, data), "selections.h5",
	    "/grid", (long long)flat * 4);
	hid_t of_set = DO(H5Dget_space, (set));
	SAY(H5Dread, (set, H5T_NATIVE_INT, of_set, of_set, H5P_DEFAULT, data), "selections.h5",
	    "/grid", ROWS * COLS * 4);

	hid_t scalar = DO(H5Screate, (H5S_SCALAR));
	hid_t null = DO(H5Screate, (H5S_NULL));
	hid_t one =
		SAY(H5Dcreate2,
		    (file, "one", H5T_NATIVE_DOUBLE, scalar, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
		    "selections.h5", "/one", NONE);
	SAY(H5Dwrite, (one, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, data),
	    "selections.h5", "/one", 8);
	hid_t nothing =
		SAY(H5Dcreate2,
		    (file, "nothing", H5T_NATIVE_INT, null, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
		    "selections.h5", "/nothing", NONE);
	SAY(H5Dwrite, (nothing, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, data),
	    "selections.h5", "/nothing", 0);
	SAY(H5Dclose, (nothing), "selections.h5", "/nothing", NONE);
	SAY(H5Dclose, (one), "selections.h5", "/one", NONE);
	SAY(H5Dclose, (set), "selections.h5", "/grid", NONE);
	SAY(H5Fclose, (file), "selections.h5", "-", NONE);
}

static void chunks(void)
{
	hsize_t dims[2] = {20, 30}, most[2] = {H5S_UNLIMITED, 30}, chunk[2] = {5, 10},
		at[2] = {5, 10};
	hsize_t more[2] = {25, 30};
	uint32_t filters;
	hid_t file = create("chunks.h5");
	hid_t space = DO(H5Screate_simple, (2, dims, most));
	hid_t list = DO(H5Pcreate, (H5P_DATASET_CREATE));

	DO(H5Pset_chunk, (list, 2, chunk));
	hid_t plain = SAY(H5Dcreate2,
			  (file, "plain", H5T_NATIVE_INT, space, H5P_DEFAULT, list, H5P_DEFAULT),
			  "chunks.h5", "/plain", NONE);
	DO(H5Pset_shuffle, (list));
	DO(H5Pset_deflate, (list, 4));
	DO(H5Pset_fletcher32, (list));
	hid_t small = SAY(H5Dcreate2,
			  (file, "small", H5T_NATIVE_INT, space, H5P_DEFAULT, list, H5P_DEFAULT),
			  "chunks.h5", "/small", NONE);
	SAY(H5Dwrite, (plain, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, data), "chunks.h5",
	    "/plain", 2400);
	SAY(H5Dwrite, (small, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, data), "chunks.h5",
	    "/small", 2400);
	SAY(H5Dwrite_chunk, (plain, H5P_DEFAULT, 0, at, 200, data), "chunks.h5", "/plain", 200);
	SAY(H5Dread_chunk, (plain, H5P_DEFAULT, at, &filters, data), "chunks.h5", "/plain", 200);
	SAY(H5Dset_extent, (plain, more), "chunks.h5", "/plain", NONE);
	SAY(H5Dread, (plain, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, data), "chunks.h5",
	    "/plain", 3000);
	SAY(H5Dflush, (plain), "chunks.h5", "/plain", NONE);
	SAY(H5Dclose, (plain), "chunks.h5", "/plain", NONE);
	SAY(H5Dclose, (small), "chunks.h5", "/small", NONE);
	SAY(H5Fflush, (file, H5F_SCOPE_LOCAL), "chunks.h5", "-", NONE);
	SAY(H5Fclose, (file), "chunks.h5", "-", NONE);
}

static herr_t visit(hid_t group, const char *name, const H5L_info_t *info, void *arg)
{
	(void)info;
	(void)arg;
	char path[64];

	snprintf(path, sizeof(path), "/a/%s", name);
	hid_t object = SAY(H5Oopen, (group, name, H5P_DEFAULT), "names.h5", path, NONE);
	SAY(H5Oclose, (object), "names.h5", path, NONE);
	return 0;
}

static void names(void)
{
	hsize_t ten = 10;
	double value = 1;
	hid_t file = create("names.h5");
	hid_t space = DO(H5Screate_simple, (1, &ten, NULL));
	hid_t scalar = DO(H5Screate, (H5S_SCALAR));
	hid_t a = SAY(H5Gcreate2, (file, "a", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), "names.h5",
		      "/a", NONE);
	hid_t b = SAY(H5Gcreate2, (a, "./b/", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), "names.h5",
		      "/a/b", NONE);
	hid_t x = SAY(H5Dcreate2,
		      (b, "x", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
		      "names.h5", "/a/b/x", NONE);
	hid_t y = SAY(H5Dcreate2,
		      (b, "/y", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
		      "names.h5", "/y", NONE);
	hid_t z = SAY(H5Dcreate2,
		      (a, "b/z", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
		      "names.h5", "/a/b/z", NONE);
	hid_t unnamed = SAY(H5Dcreate_anon, (file, H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT),
			    "names.h5", "-", NONE);
	SAY(H5Dwrite, (unnamed, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, data), "names.h5",
	    "-", 40);
	SAY(H5Dclose, (unnamed), "names.h5", "-", NONE);

	hid_t units =
		SAY(H5Acreate2, (x, "units", H5T_NATIVE_DOUBLE, scalar, H5P_DEFAULT, H5P_DEFAULT),
		    "names.h5", "/a/b/x", NONE);
	SAY(H5Awrite, (units, H5T_NATIVE_DOUBLE, &value), "names.h5", "/a/b/x", 8);
	SAY(H5Aclose, (units), "names.h5", "/a/b/x", NONE);
	hid_t many = SAY(H5Acreate_by_name,
			 (file, "a/b/z", "many", H5T_NATIVE_SHORT, space, H5P_DEFAULT, H5P_DEFAULT,
			  H5P_DEFAULT),
			 "names.h5", "/a/b/z", NONE);
	SAY(H5Awrite, (many, H5T_NATIVE_SHORT, data), "names.h5", "/a/b/z", 20);
	SAY(H5Aread, (many, H5T_NATIVE_INT, data), "names.h5", "/a/b/z", 40);
	SAY(H5Aclose, (many), "names.h5", "/a/b/z", NONE);
	SAY(H5Dclose, (x), "names.h5", "/a/b/x", NONE);
	SAY(H5Dclose, (y), "names.h5", "/y", NONE);
	SAY(H5Dclose, (z), "names.h5", "/a/b/z", NONE);

	/* The extent is that which it was made with. */
	x = SAY(H5Dopen2, (a, "b/x", H5P_DEFAULT), "names.h5", "/a/b/x", NONE);
	SAY(H5Dread, (x, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, data), "names.h5", "/a/b/x",
	    40);
	SAY(H5Dclose, (x), "names.h5", "/a/b/x", NONE);
	SAY(H5Gclose, (b), "names.h5", "/a/b", NONE);
	DO(H5Literate, (a, H5_INDEX_NAME, H5_ITER_INC, NULL, visit, NULL));
	SAY(H5Gclose, (a), "names.h5", "/a", NONE);
	SAY(H5Fclose, (file), "names.h5", "-", NONE);

	file = SAY(H5Fopen, ("names.h5", H5F_ACC_RDWR, H5P_DEFAULT), "names.h5", "-", NONE);
	y = SAY(H5Oopen, (file, "y", H5P_DEFAULT), "names.h5", "/y", NONE);
	SAY(H5Dread, (y, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, data), "names.h5", "/y",
	    40);
	SAY(H5Oclose, (y), "names.h5", "/y", NONE);
	units = SAY(H5Aopen_by_name, (file, "a/b/x", "units", H5P_DEFAULT, H5P_DEFAULT), "names.h5",
		    "/a/b/x", NONE);
	SAY(H5Aread, (units, H5T_NATIVE_DOUBLE, &value), "names.h5", "/a/b/x", 8);
	SAY(H5Aclose, (units), "names.h5", "/a/b/x", NONE);
	/* Another dataset may have the name now. */
	DO(H5Lmove, (file, "/a/b/z", file, "/w", H5P_DEFAULT, H5P_DEFAULT));
	z = SAY(H5Dopen2, (file, "w", H5P_DEFAULT), "names.h5", "/w", NONE);
	SAY(H5Dread, (z, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, data), "names.h5", "/w",
	    NONE);
	/* Until the program asks. */
	space = DO(H5Dget_space, (z));
	DO(H5Sget_simple_extent_npoints, (space));
	SAY(H5Dread, (z, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, data), "names.h5", "/w",
	    40);
	SAY(H5Dclose, (z), "names.h5", "/w", NONE);
	SAY(H5Fclose, (file), "names.h5", "-", NONE);
}

/* Writes a dataset that is never closed. */
static void leave_open(hid_t file, const char *name)
{
	hsize_t ten = 10;
	hid_t space = DO(H5Screate_simple, (1, &ten, NULL));
	hid_t set =
		SAY(H5Dcreate2,
		    (file, "left", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
		    name, "/left", NONE);

	SAY(H5Dwrite, (set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, data), name, "/left",
	    40);
}

static void lives(void)
{
	hid_t access = DO(H5Pcreate, (H5P_FILE_ACCESS));

	DO(H5Pset_fclose_degree, (access, H5F_CLOSE_STRONG));
	hid_t file = SAY(H5Fcreate, ("strong.h5", H5F_ACC_TRUNC, H5P_DEFAULT, access), "strong.h5",
			 "-", NONE);
	leave_open(file, "strong.h5");
	SAY(H5Fclose, (file), "strong.h5", "-", NONE);

	/* Weakly closed, a file lives on in its dataset. */
	hsize_t ten = 10;
	file = create("weak.h5");
	hid_t space = DO(H5Screate_simple, (1, &ten, NULL));
	hid_t set = SAY(H5Dcreate2,
			(file, "x", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
			"weak.h5", "/x", NONE);
	SAY(H5Fclose, (file), "weak.h5", "-", NONE);
	SAY(H5Dwrite, (set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, data), "weak.h5", "/x",
	    40);
	DO(H5Iinc_ref, (set));
	SAY(H5Dclose, (set), "weak.h5", "/x", NONE);
	SAY(H5Dread, (set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, data), "weak.h5", "/x",
	    40);
	file = DO(H5Iget_file_id, (set));
	SAY(H5Idec_ref, (set), "weak.h5", "/x", NONE);
	SAY(H5Fclose, (file), "weak.h5", "-", NONE);

	/* The library begins anew, and with it the identifiers. */
	file = create("before.h5");
	leave_open(file, "before.h5");
	SAY(H5close, (), "-", "-", NONE);
	file = create("after.h5");
	space = DO(H5Screate_simple, (1, &ten, NULL));
	set = SAY(H5Dcreate2,
		  (file, "x", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
		  "after.h5", "/x", NONE);
	SAY(H5Dwrite, (set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, data), "after.h5",
	    "/x", 80);
	SAY(H5Dclose, (set), "after.h5", "/x", NONE);
	SAY(H5Fclose, (file), "after.h5", "-", NONE);
}

/* A child has the identifiers of its parent, and those that it makes are its own. */
static void forks(void)
{
	hsize_t ten = 10, five = 5;
	hid_t file = create("forks.h5");
	hid_t space = DO(H5Screate_simple, (1, &ten, NULL));
	hid_t list = DO(H5Pcreate, (H5P_DATASET_CREATE));
	DO(H5Pset_chunk, (list, 1, &five));
	hid_t set =
		SAY(H5Dcreate2, (file, "x", H5T_NATIVE_INT, space, H5P_DEFAULT, list, H5P_DEFAULT),
		    "forks.h5", "/x", NONE);
	SAY(H5Dwrite, (set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, data), "forks.h5", "/x",
	    40);
	SAY(H5Fflush, (file, H5F_SCOPE_LOCAL), "forks.h5", "-", NONE);
	fflush(stdout);
	pid_t child = fork();
	hsize_t *count = child == 0 ? &five : &ten;
	hid_t own = DO(H5Screate_simple, (1, count, NULL));
	if (child != 0) {
		int status;
		waitpid(child, &status, 0);
	}
	hid_t part = DO(H5Dget_space, (set));
	if (child == 0)
		DO(H5Sselect_hyperslab, (part, H5S_SELECT_SET, &five, NULL, &five, NULL));
	SAY(H5Dread, (set, H5T_NATIVE_INT, own, part, H5P_DEFAULT, data), "forks.h5", "/x",
	    (long long)*count * 4);
	if (child == 0) {
		fflush(stdout);
		_exit(0);
	}
	SAY(H5Dclose, (set), "forks.h5", "/x", NONE);
	SAY(H5Fclose, (file), "forks.h5", "-", NONE);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} parts[] = {{"types", types}, {"selections", selections}, {"chunks", chunks},
		     {"names", names}, {"lives", lives},           {"forks", forks}};

	for (size_t i = 0; argc == 2 && i < LEN(parts); i++) {
		if (strcmp(argv[1], parts[i].name) == 0) {
			parts[i].run();
			return 0;
		}
	}
	fprintf(stderr, "usage: hdf5_calls PART\n");
	return 2;
}
