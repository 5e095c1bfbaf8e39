/* The calls that make dataspaces and select in them. */
#include "tracer/hooks/hdf5.h"

/* H5S_class_t, and an element count without limit. */
#define CLASS_SCALAR 0
#define CLASS_NULL   2
#define UNLIMITED    UINT64_MAX

static struct h5_object *get(const struct h5_state *state, uint64_t id)
{
	struct h5_object *object = h5_get(state, id);

	return object && object->kind == H5_SPACE ? object : NULL;
}

static struct h5_object *subject(const struct library_call *call, const struct h5_state *state)
{
	return get(state, library_value(call, 0));
}

static struct h5_object *put(const struct library_call *call, struct h5_state *state)
{
	return h5_put(state, (uint64_t)call->result, H5_SPACE);
}

static void set_extent(const struct library_call *call, struct h5_object *object, uint64_t rank,
		       uint64_t address)
{
	struct h5_extent *extent = &object->space->extent;

	*extent = (struct h5_extent){.rank = (unsigned)rank};
	extent->known =
		rank <= H5_MAX_RANK && h5_read_numbers(call, address, extent->dims, (unsigned)rank);
	if (!extent->known)
		extent->rank = 0;
	/* It is no longer the dataset's. */
	h5_shape_unref(object->shape);
	object->shape = NULL;
	h5_space_select_all(object->space);
}

static void create(const struct library_call *call, struct h5_state *state)
{
	struct h5_object *object = put(call, state);
	uint64_t class = h5_argument(call, "type");

	if (!object || (class != CLASS_SCALAR && class != CLASS_NULL))
		return;
	object->space->extent = (struct h5_extent){.known = true, .null = class == CLASS_NULL};
	h5_space_select_all(object->space);
}

static void create_simple(const struct library_call *call, struct h5_state *state)
{
	struct h5_object *object = put(call, state);

	if (object)
		set_extent(call, object, h5_argument(call, "rank"), h5_argument(call, "dims"));
}

static void set_extent_simple(const struct library_call *call, struct h5_state *state)
{
	struct h5_object *object = subject(call, state);

	if (object)
		set_extent(call, object, h5_argument(call, "rank"), library_value(call, 2));
}

static void set_extent_none(const struct library_call *call, struct h5_state *state)
{
	struct h5_object *object = subject(call, state);

	if (object)
		h5_space_clear(object->space);
}

static void extent_copy(const struct library_call *call, struct h5_state *state)
{
	struct h5_object *object = subject(call, state);
	const struct h5_object *from = get(state, library_value(call, 1));

	if (!object)
		return;
	h5_shape_unref(object->shape);
	object->shape = NULL;
	if (from)
		object->space->extent = from->space->extent;
	else
		object->space->extent.known = false;
	h5_space_select_all(object->space);
}

/* A new space like the first argument's. @return its object, NULL: none. */
static struct h5_object *put_copy(const struct library_call *call, struct h5_state *state)
{
	struct h5_object *object = put(call, state);
	const struct h5_object *from = h5_get(state, library_value(call, 0));

	if (!object || !from)
		return object;
	if (from->kind == H5_SPACE) {
		if (h5_space_copy(object->space, from->space) < 0)
			h5_space_clear(object->space);
	} else if (from->shape) {
		/* A dataset stands for its space. */
		object->space->extent = from->shape->extent;
		h5_space_select_all(object->space);
	}
	object->shape = h5_shape_ref(from->shape);
	return object;
}

static void copy(const struct library_call *call, struct h5_state *state)
{
	put_copy(call, state);
}

static void select_all(const struct library_call *call, struct h5_state *state)
{
	struct h5_object *object = subject(call, state);

	if (object)
		h5_space_select_all(object->space);
}

static void select_none(const struct library_call *call, struct h5_state *state)
{
	struct h5_object *object = subject(call, state);

	if (!object)
		return;
	h5_space_select_count(object->space, 0);
	object->space->selected = H5_SELECTED_NONE;
}

/* The arrays have as many numbers as the space has dimensions. @return whether they are known. */
static bool read_slab(const struct library_call *call, unsigned rank, struct h5_range *dims)
{
	static const char *const names[] = {"start", "stride", "count", "block"};
	uint64_t numbers[4][H5_MAX_RANK];

	for (unsigned i = 0; i < 4; i++) {
		int n = library_argument(call->row, names[i]);
		/* H5Scombine_hyperslab and others mark some of them. */
		uint64_t address = library_value(call, n);
		bool optional = i == 1 || i == 3;
		for (unsigned d = 0; optional && !address && d < rank; d++)
			numbers[i][d] = 1;
		if ((address || !optional) && !h5_read_numbers(call, address, numbers[i], rank))
			return false;
	}
	for (unsigned d = 0; d < rank; d++) {
		dims[d] = (struct h5_range){numbers[0][d], numbers[1][d], numbers[2][d],
					    numbers[3][d]};
		if (dims[d].count == UNLIMITED || dims[d].block == UNLIMITED)
			return false;
	}
	return rank > 0;
}

static void combine(const struct library_call *call, struct h5_object *object)
{
	struct h5_space *space = object->space;
	unsigned rank = space->extent.known ? space->extent.rank : 0;
	struct h5_range dims[H5_MAX_RANK];
	enum h5_select op = (enum h5_select)h5_argument(call, "op");

	if (!read_slab(call, rank, dims) || h5_space_select_slab(space, op, rank, dims) < 0)
		h5_space_select_unknown(space);
}

static void select_hyperslab(const struct library_call *call, struct h5_state *state)
{
	struct h5_object *object = subject(call, state);

	if (object)
		combine(call, object);
}

static void combine_hyperslab(const struct library_call *call, struct h5_state *state)
{
	struct h5_object *object = put_copy(call, state);

	if (object)
		combine(call, object);
}

static void with_space(const struct library_call *call, const struct h5_state *state,
		       struct h5_object *object)
{
	const struct h5_object *other = get(state, library_value(call, 2));
	enum h5_select op = (enum h5_select)h5_argument(call, "op");

	if (!other || h5_space_select_space(object->space, op, other->space) < 0)
		h5_space_select_unknown(object->space);
}

static void combine_select(const struct library_call *call, struct h5_state *state)
{
	struct h5_object *object = put_copy(call, state);

	if (object)
		with_space(call, state, object);
}

static void modify_select(const struct library_call *call, struct h5_state *state)
{
	struct h5_object *object = subject(call, state);

	if (object)
		with_space(call, state, object);
}

static void select_elements(const struct library_call *call, struct h5_state *state)
{
	struct h5_object *object = subject(call, state);
	uint64_t count = h5_argument(call, "num_elem");
	enum h5_select op = (enum h5_select)h5_argument(call, "op");

	if (!object)
		return;
	if (op == H5_SELECT_SET)
		h5_space_select_count(object->space, count);
	else if ((op == H5_SELECT_APPEND || op == H5_SELECT_PREPEND) &&
		 object->space->selected == H5_SELECTED_COUNT)
		h5_space_select_count(object->space, object->space->count + count);
	else
		h5_space_select_unknown(object->space);
}

static void select_copy(const struct library_call *call, struct h5_state *state)
{
	struct h5_object *object = subject(call, state);
	const struct h5_object *from = get(state, library_value(call, 1));
	struct h5_extent extent;

	if (!object)
		return;
	extent = object->space->extent;
	if (!from || h5_space_copy(object->space, from->space) < 0)
		h5_space_select_unknown(object->space);
	object->space->extent = extent;
}

/* What the program asks the library says to us as well. */
static void hear_selected(const struct library_call *call, struct h5_state *state)
{
	struct h5_object *object = subject(call, state);
	uint64_t count;

	if (object && call->result >= 0 && !h5_space_count(object->space, &count))
		h5_space_select_count(object->space, (uint64_t)call->result);
}

static void hear_dims(const struct library_call *call, struct h5_state *state)
{
	struct h5_object *object = subject(call, state);
	struct h5_extent extent = {.known = true, .rank = (unsigned)call->result};
	bool was_new;

	/* A rank of 0 is a scalar's, or that of a space without elements. */
	if (!object || object->space->extent.known || call->result <= 0 ||
	    call->result > H5_MAX_RANK ||
	    !h5_read_numbers(call, h5_argument(call, "dims"), extent.dims, extent.rank))
		return;
	was_new = object->shape && !object->shape->extent.known;
	object->space->extent = extent;
	if (was_new)
		object->shape->extent = extent;
}

static void hear_class(const struct library_call *call, struct h5_state *state)
{
	struct h5_object *object = subject(call, state);
	bool is_null = call->result == CLASS_NULL;

	if (!object || object->space->extent.known || (!is_null && call->result != CLASS_SCALAR))
		return;
	object->space->extent = (struct h5_extent){.known = true, .null = is_null};
	if (object->shape && !object->shape->extent.known)
		object->shape->extent = object->space->extent;
}

static void hear_count(const struct library_call *call, struct h5_state *state)
{
	struct h5_object *object = subject(call, state);

	if (!object || call->result < 0)
		return;
	object->space->extent.counted = true;
	object->space->extent.count = (uint64_t)call->result;
	if (object->shape && !object->shape->extent.known) {
		object->shape->extent.counted = true;
		object->shape->extent.count = (uint64_t)call->result;
	}
}

static const struct h5_handler handlers[] = {
	{"H5Aget_space", copy},
	{"H5Dget_space", copy},
	{"H5Scombine_hyperslab", combine_hyperslab},
	{"H5Scombine_select", combine_select},
	{"H5Scopy", copy},
	{"H5Screate", create},
	{"H5Screate_simple", create_simple},
	{"H5Sextent_copy", extent_copy},
	{"H5Sget_select_npoints", hear_selected},
	{"H5Sget_simple_extent_dims", hear_dims},
	{"H5Sget_simple_extent_npoints", hear_count},
	{"H5Sget_simple_extent_type", hear_class},
	{"H5Smodify_select", modify_select},
	{"H5Sselect_all", select_all},
	{"H5Sselect_copy", select_copy},
	{"H5Sselect_elements", select_elements},
	{"H5Sselect_hyperslab", select_hyperslab},
	{"H5Sselect_none", select_none},
	{"H5Sset_extent_none", set_extent_none},
	{"H5Sset_extent_simple", set_extent_simple},
};

void h5_spaces_end(const struct library_call *call, struct h5_state *state)
{
	h5_dispatch(call, state, handlers, sizeof(handlers) / sizeof(*handlers));
}
