/* What the files of the HDF5 layer share: the objects that a program's identifiers stand for, as the calls that
 * made them tell. */
#ifndef TRACER_HOOKS_HDF5_H
#define TRACER_HOOKS_HDF5_H

#include "tracer/hooks/hdf5-space.h"
#include "tracer/hooks/library.h"

#define H5_MAX_FILTERS 32

/* Datasets of one call that are looked at. */
#define H5_MOST_SETS 4096

/* H5P_DEFAULT and H5S_ALL. */
#define H5_DEFAULT 0

/* H5I_type_t, as it stands in an identifier; these are the same in all versions since 1.10. */
#define H5_ID_TYPE(id) ((unsigned)((id) >> 56) & 0x7f)
#define H5_ID_GROUP    2
#define H5_ID_DATATYPE 3
#define H5_ID_DATASET  5

struct h5_type {
	bool known;
	uint64_t size; /* of an element in memory */
	bool variable; /* some of it stands elsewhere: how much, only the data know */
	bool plain;    /* a number of the library's own, or a copy */
	bool text;
	bool compound;
	bool unpackable; /* some member's size without gaps is unknown */
	uint64_t packed; /* without the gaps between members; 0: unknown */
	/* Of one that is not known, what the program has asked. */
	uint64_t heard_size;
	int heard_class; /* H5T_class_t + 1 */
	bool heard_fixed;
};

/* A property list. What was never set is the default, unless the list came from elsewhere. */
struct h5_list {
	bool foreign;        /* holds what was not seen being set */
	unsigned chunk_rank; /* 0: not chunked, or not known */
	uint64_t chunk[H5_MAX_RANK];
	unsigned nfilters;
	int filters[H5_MAX_FILTERS];
	bool collective;
	bool parallel; /* opens files by MPI-IO */
	bool strong;   /* closing a file closes what is open in it */
};

/* The shape of a dataset or an attribute: shared by all identifiers of it and by its space in the file's memory. */
struct h5_shape {
	unsigned refs;
	bool made; /* by a call that was seen; else it was there */
	struct h5_extent extent;
	struct h5_type type; /* in the file */
	bool layout_known;
	struct h5_list layout;
	/* The layout as it is written. */
	char *chunk;   /* NULL: not chunked, or not known */
	char *filters; /* NULL: none, or not known */
};

/* What a file is remembered by while it is closed. */
struct h5_stamp {
	bool known;
	uint64_t device;
	uint64_t inode;
	uint64_t size;
	int64_t mtime_s;
	int64_t mtime_ns;
};

/* A file, by its path: the shapes of what has been seen in it. */
struct h5_store {
	struct h5_store *next;
	struct name *path;
	unsigned opened;   /* struct h5_file that hold it */
	struct map shapes; /* struct h5_known by hash of the name */
	struct h5_stamp stamp;
};

/* One opening of a file: H5Fcreate, H5Fopen, H5Freopen. Everything reached through it belongs to it. */
struct h5_file {
	unsigned refs;
	struct h5_store *store; /* NULL: a file without a path that is known */
	bool strong;
	bool parallel;
};

enum h5_kind { H5_FILE, H5_OBJECT, H5_DATASET, H5_ATTRIBUTE, H5_TYPE, H5_SPACE, H5_LIST };

struct h5_object {
	enum h5_kind kind;
	unsigned refs;        /* as the library counts the identifier */
	struct h5_file *file; /* NULL: not known */
	uint64_t lent;        /* by the iteration with this stack pointer; 0: made by a call */
	char *given;          /* the name as the program gave it; NULL: none */
	char *path; /* the absolute one, of an attribute that of its object; NULL: not known */
	/* By kind; of another kind NULL. */
	struct h5_shape
		*shape; /* of a dataset, an attribute; of a space, whose it is; NULL: none */
	struct h5_type type;
	struct h5_space *space;
	struct h5_list *list;
};

/* What is known of one copy of the library. A program may have several, as Python's packages bring their own, and
 * each counts its identifiers for itself. */
struct h5_state {
	struct h5_state *next;
	const struct hook_object *library;
	struct map objects; /* struct h5_object by identifier */
	struct h5_store *stores;
	bool types_known; /* the library's own have been read */
};

/* hdf5-state.c */

/* @return the state of the library that is called, made if needed; NULL: out of memory. */
struct h5_state *h5_state_of(const struct library_call *call);

/* Of all copies of the library. */
void *h5_states_copy(const void *states);
void h5_states_free(void *states);

struct h5_object *h5_get(const struct h5_state *state, uint64_t id);

/* @return a new object for the identifier, in place of what it stood for; NULL: out of memory. */
struct h5_object *h5_put(struct h5_state *state, uint64_t id, enum h5_kind kind);
void h5_forget(struct h5_state *state, uint64_t id);

/* Forgets all objects of a file, or of any if it is NULL. */
void h5_forget_file(struct h5_state *state, const struct h5_file *file);

struct h5_file *h5_file_new(struct h5_state *state, struct name *path);
struct h5_file *h5_file_ref(struct h5_file *file);
void h5_file_unref(struct h5_file *file);

struct h5_shape *h5_shape_new(void);
struct h5_shape *h5_shape_ref(struct h5_shape *shape);
void h5_shape_unref(struct h5_shape *shape);

/* hdf5-store.c: what a file is known to hold, by name. */

/* @return the shape that was last seen under the name, NULL: not known. `attribute` may be NULL. */
struct h5_shape *h5_store_get(const struct h5_store *store, const char *path,
			      const char *attribute);
void h5_store_put(struct h5_store *store, const char *path, const char *attribute,
		  struct h5_shape *shape);
void h5_store_clear(struct h5_store *store);

/* An attribute has been deleted or renamed; `path` or `attribute` NULL: it is not known which. */
void h5_store_drop_attribute(struct h5_store *store, const char *path, const char *attribute);

/* The extent of a dataset has changed. */
void h5_store_doubt_extents(struct h5_store *store, const struct h5_shape *changed);
void h5_store_free(struct h5_store *store);

/* Notes how the file is, or forgets what is known of it if it has changed since then. */
void h5_store_stamp(const struct library_call *call, struct h5_store *store);
void h5_store_check(const struct library_call *call, struct h5_store *store);

/* What a function that has returned without failure does to the state. */
struct h5_handler {
	const char *name; /* without _async */
	void (*end)(const struct library_call *call, struct h5_state *state);
};

/* hdf5-objects.c: at the entry of a call that opens a file. */
void h5_objects_begin(const struct library_call *call, struct h5_state *state);

/* Calls the handler of the call, if there is one. `handlers` stand in the order of their names. */
void h5_dispatch(const struct library_call *call, struct h5_state *state,
		 const struct h5_handler *handlers, size_t count);

/* hdf5-types.c, hdf5-spaces.c, hdf5-lists.c, hdf5-objects.c: each follows its calls. */
void h5_types_end(const struct library_call *call, struct h5_state *state);
void h5_spaces_end(const struct library_call *call, struct h5_state *state);
void h5_lists_end(const struct library_call *call, struct h5_state *state);
void h5_objects_end(const struct library_call *call, struct h5_state *state);

/* @return what is known of a datatype; not `known`: nothing. */
struct h5_type h5_type_of(const struct library_call *call, struct h5_state *state, uint64_t id);

/* Takes over how a new dataset is stored. */
void h5_shape_set_layout(struct h5_shape *shape, const struct h5_list *list);

/* @return what a list says; of the default one, the default; NULL: not known. */
const struct h5_list *h5_list_of(const struct h5_state *state, uint64_t id);

/* hdf5-names.c */

/* At the entry: settles which file the call is about. */
void h5_names_begin(const struct library_call *call, struct h5_state *state);

/* @return whether identifier `n` is written as a number. */
bool h5_names_writes(const struct library_call *call, int n);

/* Adds to the call's event the names of its object, and how that is stored. */
void h5_names_add(const struct library_call *call, const struct h5_state *state,
		  struct event *event);

/* @return `name` seen from the group `base` (NULL: not known), without what is doubled; NULL: it cannot be known, or out
 * of memory. */
char *h5_join(const char *base, const char *name, size_t len);

/* @return the position of the name of what the call makes or opens, -1: it does neither by name. */
int h5_name_argument(const struct library_call *call);

/* hdf5-callbacks.c */
void h5_callbacks_begin(const struct library_call *call, struct h5_state *state);
void h5_callbacks_end(const struct library_call *call, struct h5_state *state);

/* hdf5-data.c */
bool h5_moves_data(const struct hook_row *row);

/* At the entry: the bytes that will be moved, since the selections are what they are then. */
void h5_data_begin(const struct library_call *call, struct h5_state *state);
void h5_data_end(const struct library_call *call, bool written);

/* The value of the argument with this name; 0: the row has none. */
static inline uint64_t h5_argument(const struct library_call *call, const char *name)
{
	return library_value(call, library_argument(call->row, name));
}

/* Reads `count` numbers of 8 bytes. */
static inline bool h5_read_numbers(const struct library_call *call, uint64_t address, uint64_t *to,
				   unsigned count)
{
	return count == 0 ||
	       (count <= H5_MAX_RANK && library_read(call, address, to, count * sizeof(*to)));
}

#endif
