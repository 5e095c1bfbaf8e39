/* HDF5 files that are not one file of the same name: in memory, split, a family. usage: hdf5_drivers core|split|family|sec2|stdio */
#include "h5say.h"

#include <string.h>

enum { COUNT = 20000 };

int main(int argc, char **argv)
{
	static int data[COUNT], back[COUNT];
	const char *driver = argc == 2 ? argv[1] : "";
	const char *name = strcmp(driver, "family") == 0 ? "member%d.h5" : "file.h5";
	hsize_t count = COUNT;
	hid_t access = DO(H5Pcreate, (H5P_FILE_ACCESS));

	if (strcmp(driver, "core") == 0)
		DO(H5Pset_fapl_core, (access, 1 << 16, 1));
	else if (strcmp(driver, "split") == 0)
		DO(H5Pset_fapl_split, (access, "-m", H5P_DEFAULT, "-r", H5P_DEFAULT));
	else if (strcmp(driver, "family") == 0)
		DO(H5Pset_fapl_family, (access, 1 << 15, H5P_DEFAULT));
	else if (strcmp(driver, "stdio") == 0)
		DO(H5Pset_fapl_stdio, (access));
	else if (strcmp(driver, "sec2") != 0)
		return 2;
	for (int i = 0; i < COUNT; i++)
		data[i] = i;
	hid_t file = SAY(H5Fcreate, (name, H5F_ACC_TRUNC, H5P_DEFAULT, access), name, "-", NONE);
	hid_t space = DO(H5Screate_simple, (1, &count, NULL));
	hid_t set = SAY(H5Dcreate2,
			(file, "x", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
			name, "/x", NONE);
	SAY(H5Dwrite, (set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, data), name, "/x",
	    COUNT * 4);
	SAY(H5Dclose, (set), name, "/x", NONE);
	SAY(H5Fclose, (file), name, "-", NONE);
	file = SAY(H5Fopen, (name, H5F_ACC_RDONLY, access), name, "-", NONE);
	set = SAY(H5Dopen2, (file, "x", H5P_DEFAULT), name, "/x", NONE);
	SAY(H5Dread, (set, H5T_NATIVE_INT, space, H5S_ALL, H5P_DEFAULT, back), name, "/x",
	    COUNT * 4);
	SAY(H5Dclose, (set), name, "/x", NONE);
	SAY(H5Fclose, (file), name, "-", NONE);
	return memcmp(data, back, sizeof(data)) != 0;
}
