/* Dataspaces of HDF5: their extent, and how many of their elements are selected. What is not known for certain is
 * unknown. */
#ifndef TRACER_HOOKS_HDF5_SPACE_H
#define TRACER_HOOKS_HDF5_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define H5_MAX_RANK 32

struct h5_extent {
	bool known;
	unsigned rank; /* 0: a scalar */
	bool null;     /* holds no element */
	uint64_t dims[H5_MAX_RANK];
	bool counted; /* the dimensions need not be known for `count` */
	uint64_t count;
};

/* How a hyperslab is combined with what is selected: H5S_seloper_t. */
enum h5_select {
	H5_SELECT_SET,
	H5_SELECT_OR,
	H5_SELECT_AND,
	H5_SELECT_XOR,
	H5_SELECT_NOTB,
	H5_SELECT_NOTA,
	H5_SELECT_APPEND,
	H5_SELECT_PREPEND,
};

struct h5_range {
	uint64_t start;
	uint64_t stride;
	uint64_t count;
	uint64_t block;
};

struct h5_slab {
	enum h5_select op;
	struct h5_range *dims; /* `rank` of them */
};

enum h5_selected {
	H5_SELECTED_ALL,
	H5_SELECTED_NONE,
	H5_SELECTED_COUNT, /* points, or what the library was heard to say */
	H5_SELECTED_SLABS,
	H5_SELECTED_UNKNOWN,
};

struct h5_space {
	struct h5_extent extent;
	enum h5_selected selected;
	uint64_t count;
	unsigned rank; /* of the slabs */
	struct h5_slab *slabs;
	size_t nslabs;
};

/* Frees what the space holds, and makes it one of which nothing is known. */
void h5_space_clear(struct h5_space *space);

/* @return 0, or -1 with errno ENOMEM. */
int h5_space_copy(struct h5_space *to, const struct h5_space *from);

/* Selects all, as a new extent does. */
void h5_space_select_all(struct h5_space *space);
void h5_space_select_count(struct h5_space *space, uint64_t count);
void h5_space_select_unknown(struct h5_space *space);

/* Combines the selection with a hyperslab. @return 0, or -1 with errno ENOMEM. */
int h5_space_select_slab(struct h5_space *space, enum h5_select op, unsigned rank,
			 const struct h5_range *dims);

/* Combines the selection with that of another space. @return same. */
int h5_space_select_space(struct h5_space *space, enum h5_select op, const struct h5_space *other);

/* @return whether the number of elements is known, and in `*count`. */
bool h5_extent_count(const struct h5_extent *extent, uint64_t *count);
bool h5_space_count(const struct h5_space *space, uint64_t *count);

#endif
