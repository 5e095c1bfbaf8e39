/* Property lists: how a dataset is stored, how a file is closed, whether a transfer is collective. */
#include "tracer/hooks/hdf5.h"

#include <string.h>

/* H5Z_filter_t of the library's own filters. */
enum {
	FILTER_ALL = 0,
	FILTER_DEFLATE = 1,
	FILTER_SHUFFLE = 2,
	FILTER_FLETCHER32 = 3,
	FILTER_SZIP = 4,
	FILTER_NBIT = 5,
	FILTER_SCALEOFFSET = 6,
};

#define CLOSE_STRONG   3 /* H5F_CLOSE_STRONG */
#define LAYOUT_CHUNKED 2 /* H5D_CHUNKED */
#define COLLECTIVE     1 /* H5FD_MPIO_COLLECTIVE */

static struct h5_list *subject(const struct library_call *call, const struct h5_state *state)
{
	struct h5_object *object = h5_get(state, library_value(call, 0));

	return object && object->kind == H5_LIST ? object->list : NULL;
}

const struct h5_list *h5_list_of(const struct h5_state *state, uint64_t id)
{
	static const struct h5_list standard = {0};
	const struct h5_object *object = h5_get(state, id);

	if (id == H5_DEFAULT)
		return &standard;
	return object && object->kind == H5_LIST && !object->list->foreign ? object->list : NULL;
}

static void create(const struct library_call *call, struct h5_state *state)
{
	h5_put(state, (uint64_t)call->result, H5_LIST);
}

static void copy(const struct library_call *call, struct h5_state *state)
{
	const struct h5_list *from = h5_list_of(state, library_value(call, 0));
	struct h5_object *object = h5_put(state, (uint64_t)call->result, H5_LIST);

	if (!object)
		return;
	if (from)
		*object->list = *from;
	else
		object->list->foreign = true;
}

static void get_foreign(const struct library_call *call, struct h5_state *state)
{
	struct h5_object *object = h5_put(state, (uint64_t)call->result, H5_LIST);

	if (object)
		object->list->foreign = true;
}

/* The list of a dataset. */
static void get_creation(const struct library_call *call, struct h5_state *state)
{
	const struct h5_object *dataset = h5_get(state, library_value(call, 0));
	struct h5_object *object = h5_put(state, (uint64_t)call->result, H5_LIST);

	if (!object)
		return;
	if (dataset && dataset->shape && dataset->shape->layout_known)
		*object->list = dataset->shape->layout;
	else
		object->list->foreign = true;
}

static void copy_property(const struct library_call *call, struct h5_state *state)
{
	struct h5_list *list = subject(call, state);

	if (list)
		list->foreign = true;
}

static void set_chunk(const struct library_call *call, struct h5_state *state)
{
	struct h5_list *list = subject(call, state);
	uint64_t rank = h5_argument(call, "ndims");

	if (!list)
		return;
	list->chunk_rank = 0;
	if (rank <= H5_MAX_RANK &&
	    h5_read_numbers(call, h5_argument(call, "dim"), list->chunk, (unsigned)rank))
		list->chunk_rank = (unsigned)rank;
	else
		list->foreign = true;
}

static void set_layout(const struct library_call *call, struct h5_state *state)
{
	struct h5_list *list = subject(call, state);

	if (list && h5_argument(call, "layout") != LAYOUT_CHUNKED)
		list->chunk_rank = 0;
}

static void drop_filter(struct h5_list *list, int filter)
{
	unsigned n = 0;

	for (unsigned i = 0; i < list->nfilters; i++) {
		if (filter != FILTER_ALL && list->filters[i] != filter)
			list->filters[n++] = list->filters[i];
	}
	list->nfilters = n;
}

static void add_filter(const struct library_call *call, struct h5_state *state, int filter)
{
	struct h5_list *list = subject(call, state);

	if (!list)
		return;
	/* Setting one again changes its parameters, not its place. */
	for (unsigned i = 0; i < list->nfilters; i++) {
		if (list->filters[i] == filter)
			return;
	}
	if (list->nfilters < H5_MAX_FILTERS)
		list->filters[list->nfilters++] = filter;
	else
		list->foreign = true;
}

static void set_deflate(const struct library_call *call, struct h5_state *state)
{
	add_filter(call, state, FILTER_DEFLATE);
}

static void set_shuffle(const struct library_call *call, struct h5_state *state)
{
	add_filter(call, state, FILTER_SHUFFLE);
}

static void set_fletcher32(const struct library_call *call, struct h5_state *state)
{
	add_filter(call, state, FILTER_FLETCHER32);
}

static void set_szip(const struct library_call *call, struct h5_state *state)
{
	add_filter(call, state, FILTER_SZIP);
}

static void set_nbit(const struct library_call *call, struct h5_state *state)
{
	add_filter(call, state, FILTER_NBIT);
}

static void set_scaleoffset(const struct library_call *call, struct h5_state *state)
{
	add_filter(call, state, FILTER_SCALEOFFSET);
}

static void set_filter(const struct library_call *call, struct h5_state *state)
{
	add_filter(call, state, (int)h5_argument(call, "filter"));
}

static void remove_filter(const struct library_call *call, struct h5_state *state)
{
	struct h5_list *list = subject(call, state);

	if (list)
		drop_filter(list, (int)h5_argument(call, "filter"));
}

static void set_transfer(const struct library_call *call, struct h5_state *state)
{
	struct h5_list *list = subject(call, state);

	if (list)
		list->collective = h5_argument(call, "xfer_mode") == COLLECTIVE;
}

static void set_degree(const struct library_call *call, struct h5_state *state)
{
	struct h5_list *list = subject(call, state);

	if (list)
		list->strong = h5_argument(call, "degree") == CLOSE_STRONG;
}

static void set_parallel(const struct library_call *call, struct h5_state *state)
{
	struct h5_list *list = subject(call, state);

	if (list)
		list->parallel = true;
}

static void set_driver(const struct library_call *call, struct h5_state *state)
{
	struct h5_list *list = subject(call, state);

	if (list)
		list->parallel = false;
}

static const char *filter_name(int filter)
{
	static const char *const names[] = {
		[FILTER_DEFLATE] = "deflate",
		[FILTER_SHUFFLE] = "shuffle",
		[FILTER_FLETCHER32] = "fletcher32",
		[FILTER_SZIP] = "szip",
		[FILTER_NBIT] = "nbit",
		[FILTER_SCALEOFFSET] = "scaleoffset",
	};

	return filter > 0 && filter <= FILTER_SCALEOFFSET ? names[filter] : NULL;
}

/* @return the buffer's text as one of its own, NULL: empty, or out of memory. */
static char *take(struct buf *b)
{
	const char *text = b->len ? buf_str(b) : NULL;
	char *copy = text ? strdup(text) : NULL;

	buf_free(b);
	return copy;
}

void h5_shape_set_layout(struct h5_shape *shape, const struct h5_list *list)
{
	struct buf chunk = {0};
	struct buf filters = {0};

	if (!list)
		return;
	shape->layout_known = true;
	shape->layout = *list;
	for (unsigned d = 0; d < list->chunk_rank; d++) {
		if (d)
			buf_add_char(&chunk, 'x');
		buf_add_u64(&chunk, list->chunk[d]);
	}
	for (unsigned i = 0; i < list->nfilters; i++) {
		const char *name = filter_name(list->filters[i]);
		if (i)
			buf_add_char(&filters, ',');
		if (name)
			buf_add_str(&filters, name);
		else
			buf_add_i64(&filters, list->filters[i]);
	}
	shape->chunk = take(&chunk);
	shape->filters = take(&filters);
}

static const struct h5_handler handlers[] = {
	{"H5Dget_create_plist", get_creation},
	{"H5Fget_access_plist", get_foreign},
	{"H5Pcopy", copy},
	{"H5Pcopy_prop", copy_property},
	{"H5Pcreate", create},
	{"H5Pdecode", get_foreign},
	{"H5Premove_filter", remove_filter},
	{"H5Pset_chunk", set_chunk},
	{"H5Pset_deflate", set_deflate},
	{"H5Pset_driver", set_driver},
	{"H5Pset_dxpl_mpio", set_transfer},
	{"H5Pset_fapl_core", set_driver},
	{"H5Pset_fapl_family", set_driver},
	{"H5Pset_fapl_mpio", set_parallel},
	{"H5Pset_fapl_multi", set_driver},
	{"H5Pset_fapl_sec2", set_driver},
	{"H5Pset_fapl_split", set_driver},
	{"H5Pset_fapl_stdio", set_driver},
	{"H5Pset_fclose_degree", set_degree},
	{"H5Pset_filter", set_filter},
	{"H5Pset_fletcher32", set_fletcher32},
	{"H5Pset_layout", set_layout},
	{"H5Pset_nbit", set_nbit},
	{"H5Pset_scaleoffset", set_scaleoffset},
	{"H5Pset_shuffle", set_shuffle},
	{"H5Pset_szip", set_szip},
};

void h5_lists_end(const struct library_call *call, struct h5_state *state)
{
	h5_dispatch(call, state, handlers, sizeof(handlers) / sizeof(*handlers));
}
