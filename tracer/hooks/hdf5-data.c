/* Bytes that a call moves between a file and the program's memory: elements selected times their size there. */
#include "tracer/hooks/hdf5.h"

#include <string.h>

bool h5_moves_data(const struct hook_row *row)
{
	static const char *const names[] = {"H5Aread", "H5Awrite", "H5Dread", "H5Dwrite",
					    "H5Fget_file_image"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		size_t len = strlen(names[i]);
		/* Also of several, of chunks, and of the forms that do not wait. */
		if (strncmp(row->name, names[i], len) == 0 &&
		    (row->name[len] == '\0' || row->name[len] == '_'))
			return true;
	}
	return false;
}

static bool is_data(const struct hook_row *row, const char *what)
{
	size_t len = strlen(what);

	/* H5Dread…, H5Dwrite… */
	const char *rest = strncmp(row->name, "H5Dread", 7) == 0    ? row->name + 7
			   : strncmp(row->name, "H5Dwrite", 8) == 0 ? row->name + 8
								    : NULL;
	return rest && strncmp(rest, what, len) == 0;
}

/* How many elements are moved: as many as are selected in memory, which is as many as in the file. */
static bool count_elements(const struct h5_state *state, uint64_t memory, uint64_t file,
			   const struct h5_object *dataset, uint64_t *count)
{
	const struct h5_object *space = h5_get(state, memory);

	if (space && space->kind == H5_SPACE && h5_space_count(space->space, count))
		return true;
	if (file != H5_DEFAULT) {
		space = h5_get(state, file);
		return space && space->kind == H5_SPACE && h5_space_count(space->space, count);
	}
	return dataset && dataset->shape && h5_extent_count(&dataset->shape->extent, count);
}

struct transfer {
	uint64_t dataset;
	uint64_t type;
	uint64_t memory;
	uint64_t file;
};

static bool size_of(const struct library_call *call, struct h5_state *state,
		    const struct transfer *t, uint64_t *bytes)
{
	struct h5_type type = h5_type_of(call, state, t->type);
	uint64_t count;

	return type.known && !type.variable &&
	       count_elements(state, t->memory, t->file, h5_get(state, t->dataset), &count) &&
	       !__builtin_mul_overflow(count, type.size, bytes);
}

static bool size_of_several(const struct library_call *call, struct h5_state *state,
			    uint64_t *bytes)
{
	static const char *const names[] = {"dset_id", "mem_type_id", "mem_space_id",
					    "file_space_id"};
	uint64_t count = h5_argument(call, "count");
	uint64_t ids[4];
	uint64_t more;

	*bytes = 0;
	if (count > H5_MOST_SETS)
		return false;
	for (uint64_t i = 0; i < count; i++) {
		for (unsigned k = 0; k < 4; k++) {
			if (!library_read(call, h5_argument(call, names[k]) + i * 8, &ids[k], 8))
				return false;
		}
		const struct transfer t = {ids[0], ids[1], ids[2], ids[3]};
		if (!size_of(call, state, &t, &more))
			return false;
		*bytes += more;
	}
	return true;
}

/* A chunk as it is stored: with filters only the library knows how large it is. */
static bool size_of_chunk(const struct library_call *call, const struct h5_state *state,
			  uint64_t *bytes)
{
	const struct h5_object *dataset = h5_get(state, h5_argument(call, "dset_id"));
	int n = library_argument(call->row, "data_size");

	if (n >= 0) {
		*bytes = library_value(call, n);
		return true;
	}
	if (!dataset || !dataset->shape || !dataset->shape->layout_known)
		return false;
	const struct h5_shape *shape = dataset->shape;
	if (shape->layout.nfilters || !shape->layout.chunk_rank || !shape->type.known)
		return false;
	*bytes = shape->type.size;
	for (unsigned d = 0; d < shape->layout.chunk_rank; d++) {
		if (__builtin_mul_overflow(*bytes, shape->layout.chunk[d], bytes))
			return false;
	}
	return true;
}

static bool size_of_attribute(const struct library_call *call, struct h5_state *state,
			      uint64_t *bytes)
{
	const struct h5_object *attribute = h5_get(state, h5_argument(call, "attr_id"));
	int n = library_argument(call->row, "type_id");
	struct h5_type type = h5_type_of(
		call, state, n < 0 ? h5_argument(call, "dtype_id") : library_value(call, n));
	uint64_t count;

	return attribute && attribute->shape && type.known && !type.variable &&
	       h5_extent_count(&attribute->shape->extent, &count) &&
	       !__builtin_mul_overflow(count, type.size, bytes);
}

void h5_data_begin(const struct library_call *call, struct h5_state *state)
{
	uint64_t bytes = 0;
	bool known = false;

	if (is_data(call->row, "_chunk")) {
		known = size_of_chunk(call, state, &bytes);
	} else if (is_data(call->row, "_multi")) {
		known = size_of_several(call, state, &bytes);
	} else if (is_data(call->row, "")) {
		const struct transfer t = {
			h5_argument(call, "dset_id"), h5_argument(call, "mem_type_id"),
			h5_argument(call, "mem_space_id"), h5_argument(call, "file_space_id")};
		known = size_of(call, state, &t, &bytes);
	} else if (strcmp(call->row->group, "H5A") == 0 && h5_moves_data(call->row)) {
		known = size_of_attribute(call, state, &bytes);
	}
	if (known)
		library_set_size(call, bytes);
}

/* Nothing is moved by a call that fails. */
void h5_data_end(const struct library_call *call, bool written)
{
	if (!h5_moves_data(call->row))
		return;
	if (!call->done || call->result < 0) {
		call->frame->has_size = false;
		return;
	}
	/* Without a buffer it only tells the size. */
	if (strcmp(call->row->name, "H5Fget_file_image") == 0 && h5_argument(call, "buf_ptr"))
		library_set_size(call, (uint64_t)call->result);
	if (written && !call->frame->has_size && strcmp(call->row->group, "H5F") != 0)
		call->task->process->lost[LOST_UNSIZED_HDF5]++;
}
