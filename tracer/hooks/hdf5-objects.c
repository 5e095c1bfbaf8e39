/* Files, groups, datasets and attributes: made, opened, closed. */
#include "tracer/hooks/hdf5.h"

#include <stdlib.h>
#include <string.h>

/* H5F_ACC_SWMR_READ: somebody else writes meanwhile. */
#define OPEN_WHILE_WRITTEN 0x40U

static const struct h5_object *location(const struct library_call *call,
					const struct h5_state *state)
{
	int n = library_next(call->row, HOOK_A_ID, -1);

	return n < 0 ? NULL : h5_get(state, library_value(call, n));
}

/* Makes the object of the call's result, below its location. @return NULL: out of memory. */
static struct h5_object *put_at(const struct library_call *call, struct h5_state *state,
				enum h5_kind kind)
{
	const struct h5_object *at = location(call, state);
	size_t len = 0;
	const char *name = library_text(call, h5_name_argument(call), &len);
	uint64_t id = (uint64_t)call->result;
	char *path = h5_join(at ? at->path : NULL, name, len);
	struct h5_file *file = h5_file_ref(at ? at->file : NULL);

	/* A named type is there already, with what it is. */
	struct h5_object *object = kind == H5_TYPE ? h5_get(state, id) : h5_put(state, id, kind);
	if (!object || object->path || object->file) {
		h5_file_unref(file);
		free(path);
		return NULL;
	}
	object->file = file;
	object->path = path;
	object->given = name ? strndup(name, len) : NULL;
	return object;
}

static struct h5_store *store_of(const struct h5_object *object)
{
	return object && object->file ? object->file->store : NULL;
}

/* A new shape, as the call's arguments describe it. */
static struct h5_shape *described(const struct library_call *call, struct h5_state *state)
{
	const struct h5_object *space = h5_get(state, h5_argument(call, "space_id"));
	struct h5_shape *shape = h5_shape_new();

	if (!shape)
		return NULL;
	shape->made = true;
	shape->type = h5_type_of(call, state, h5_argument(call, "type_id"));
	if (space && space->kind == H5_SPACE)
		shape->extent = space->space->extent;
	int n = library_argument(call->row, "dcpl_id");
	if (n >= 0)
		h5_shape_set_layout(shape, h5_list_of(state, library_value(call, n)));
	return shape;
}

static void create_dataset(const struct library_call *call, struct h5_state *state)
{
	struct h5_object *object = put_at(call, state, H5_DATASET);

	if (!object)
		return;
	object->shape = described(call, state);
	if (object->shape && object->path && store_of(object))
		h5_store_put(store_of(object), object->path, NULL, object->shape);
}

/* The shape that was last seen under its name; it is one of which nothing is known yet otherwise. */
static void recall(struct h5_object *object, const char *attribute)
{
	struct h5_store *store = store_of(object);
	bool named = store && object->path;

	if (named)
		object->shape = h5_shape_ref(h5_store_get(store, object->path, attribute));
	if (object->shape)
		return;
	object->shape = h5_shape_new();
	if (object->shape && named)
		h5_store_put(store, object->path, attribute, object->shape);
}

static void open_dataset(const struct library_call *call, struct h5_state *state)
{
	struct h5_object *object = put_at(call, state, H5_DATASET);

	if (object)
		recall(object, NULL);
}

static void open_group(const struct library_call *call, struct h5_state *state)
{
	put_at(call, state, H5_OBJECT);
}

static void name_type(const struct library_call *call, struct h5_state *state)
{
	put_at(call, state, H5_TYPE);
}

/* Whatever it is: the identifier tells. */
static void open_any(const struct library_call *call, struct h5_state *state)
{
	struct h5_object *object;

	switch (H5_ID_TYPE((uint64_t)call->result)) {
	case H5_ID_DATASET:
		open_dataset(call, state);
		break;
	case H5_ID_DATATYPE:
		object = put_at(call, state, H5_OBJECT);
		if (object)
			object->kind = H5_TYPE;
		break;
	default:
		open_group(call, state);
		break;
	}
}

/* An attribute's path is that of the object it is of. */
static struct h5_object *put_attribute(const struct library_call *call, struct h5_state *state)
{
	const struct h5_object *at = location(call, state);
	int n = library_argument(call->row, "obj_name");
	size_t len = 0;
	const char *of = library_text(call, n, &len);
	char *path = NULL;

	if (n >= 0)
		path = h5_join(at ? at->path : NULL, of, len);
	else if (at && at->path)
		path = strdup(at->path);
	struct h5_object *object = put_at(call, state, H5_ATTRIBUTE);
	if (!object) {
		free(path);
		return NULL;
	}
	free(object->path);
	object->path = path;
	return object;
}

static void create_attribute(const struct library_call *call, struct h5_state *state)
{
	struct h5_object *object = put_attribute(call, state);

	if (!object)
		return;
	object->shape = described(call, state);
	if (object->shape && object->path && object->given && store_of(object))
		h5_store_put(store_of(object), object->path, object->given, object->shape);
}

static void open_attribute(const struct library_call *call, struct h5_state *state)
{
	struct h5_object *object = put_attribute(call, state);

	if (!object)
		return;
	if (object->given)
		recall(object, object->given);
	else
		object->shape = h5_shape_new();
}

static void put_file(const struct library_call *call, struct h5_state *state, struct h5_file *file)
{
	struct h5_object *object = file ? h5_put(state, (uint64_t)call->result, H5_FILE) : NULL;

	if (!object) {
		h5_file_unref(file);
		return;
	}
	object->file = file;
	object->path = strdup("/");
}

/* What is remembered of a file is looked at before the library touches it. */
void h5_objects_begin(const struct library_call *call, struct h5_state *state)
{
	const struct name *path = call->frame->path;
	struct h5_store *store = state->stores;

	if (strcmp(call->row->name, "H5Idec_ref") == 0) {
		const struct h5_object *object = location(call, state);
		call->frame->record &= object && object->file && object->refs == 1;
	}
	if (!path || strncmp(call->row->name, "H5Fopen", 7) != 0)
		return;
	while (store && strcmp(store->path->text, path->text) != 0)
		store = store->next;
	if (store)
		h5_store_check(call, store);
}

static void open_file(const struct library_call *call, struct h5_state *state)
{
	int n = library_argument(call->row, "fapl_id");
	uint64_t id = n < 0 ? h5_argument(call, "access_plist") : library_value(call, n);
	const struct h5_list *access = h5_list_of(state, id);
	struct h5_file *file = h5_file_new(state, call->frame->path);
	bool is_new = strncmp(call->row->name, "H5Fcreate", 9) == 0;

	if (file && access) {
		file->strong = access->strong;
		file->parallel = access->parallel;
	}
	if (file && file->store && (is_new || (h5_argument(call, "flags") & OPEN_WHILE_WRITTEN)))
		h5_store_clear(file->store);
	put_file(call, state, file);
}

static void reopen_file(const struct library_call *call, struct h5_state *state)
{
	const struct h5_object *from = location(call, state);

	if (!from || !from->file)
		return;
	struct h5_file *file =
		h5_file_new(state, from->file->store ? from->file->store->path : NULL);
	if (file) {
		file->strong = from->file->strong;
		file->parallel = from->file->parallel;
	}
	put_file(call, state, file);
}

static void get_file(const struct library_call *call, struct h5_state *state)
{
	const struct h5_object *of = location(call, state);
	struct h5_object *known = h5_get(state, (uint64_t)call->result);

	/* The library counts an identifier that is there already once more. */
	if (known && known->kind == H5_FILE)
		known->refs++;
	else if (of && of->file)
		put_file(call, state, h5_file_ref(of->file));
}

/* The library has nothing of the file open any more: how it is now is how it stays, or somebody else is at it. */
static void left(const struct library_call *call, struct h5_store *store)
{
	if (store && store->opened == 0)
		h5_store_stamp(call, store);
}

static void forget(const struct library_call *call, struct h5_state *state, uint64_t id)
{
	const struct h5_object *object = h5_get(state, id);
	struct h5_store *store = store_of(object);

	if (object && object->kind == H5_FILE && object->file && object->file->strong)
		h5_forget_file(state, object->file);
	else
		h5_forget(state, id);
	left(call, store);
}

static void close_one(const struct library_call *call, struct h5_state *state)
{
	int n = library_next(call->row, HOOK_A_ID, -1);
	struct h5_object *object = n < 0 ? NULL : h5_get(state, library_value(call, n));

	if (object && --object->refs == 0)
		forget(call, state, library_value(call, n));
}

/* H5Iinc_ref and H5Idec_ref return the new count. */
static void count_references(const struct library_call *call, struct h5_state *state)
{
	struct h5_object *object = h5_get(state, library_value(call, 0));

	if (!object)
		return;
	object->refs = (unsigned)call->result;
	if (object->refs == 0)
		forget(call, state, library_value(call, 0));
}

static void close_library(const struct library_call *call, struct h5_state *state)
{
	h5_forget_file(state, NULL);
	state->types_known = false;
	for (struct h5_store *store = state->stores; store; store = store->next)
		h5_store_stamp(call, store);
}

static void set_extent(const struct library_call *call, struct h5_state *state)
{
	const struct h5_object *object = location(call, state);
	bool only_grows = strcmp(call->row->name, "H5Dextend") == 0;
	uint64_t dims[H5_MAX_RANK];

	if (!object || !object->shape)
		return;
	struct h5_extent *extent = &object->shape->extent;
	extent->counted = false;
	if (store_of(object))
		h5_store_doubt_extents(store_of(object), object->shape);
	if (!extent->known ||
	    !h5_read_numbers(call, h5_argument(call, "size"), dims, extent->rank)) {
		extent->known = false;
		return;
	}
	for (unsigned d = 0; d < extent->rank; d++) {
		if (!only_grows || dims[d] > extent->dims[d])
			extent->dims[d] = dims[d];
	}
}

/* Somebody else may have changed it. */
static void refresh(const struct library_call *call, struct h5_state *state)
{
	const struct h5_object *object = location(call, state);

	if (object && object->shape)
		object->shape->extent = (struct h5_extent){0};
}

/* Names are not what they were. */
static void rename_objects(const struct library_call *call, struct h5_state *state)
{
	int n = -1;

	while ((n = library_next(call->row, HOOK_A_ID, n)) >= 0) {
		struct h5_store *store = store_of(h5_get(state, library_value(call, n)));
		if (store)
			h5_store_clear(store);
	}
}

static void drop_attribute(struct h5_store *store, const char *path, const char *text, size_t len)
{
	char *name = text ? strndup(text, len) : NULL;

	h5_store_drop_attribute(store, path, name);
	free(name);
}

static void rename_attribute(const struct library_call *call, struct h5_state *state)
{
	const struct h5_object *at = location(call, state);
	int of = library_argument(call->row, "obj_name");
	int n = of < 0 ? 0 : of;
	size_t len = 0;

	if (!store_of(at))
		return;
	const char *text = library_text(call, of, &len);
	char *path = h5_join(at->path, text ? text : ".", text ? len : 1);
	if (library_next(call->row, HOOK_A_TEXT, n) < 0)
		h5_store_drop_attribute(store_of(at), NULL, NULL);
	while ((n = library_next(call->row, HOOK_A_TEXT, n)) >= 0) {
		text = library_text(call, n, &len);
		drop_attribute(store_of(at), path, text, len);
	}
	free(path);
}

static const struct h5_handler handlers[] = {
	{"H5Aclose", close_one},
	{"H5Acreate", create_attribute},
	{"H5Acreate1", create_attribute},
	{"H5Acreate2", create_attribute},
	{"H5Acreate_by_name", create_attribute},
	{"H5Adelete", rename_attribute},
	{"H5Adelete_by_idx", rename_attribute},
	{"H5Adelete_by_name", rename_attribute},
	{"H5Aopen", open_attribute},
	{"H5Aopen_by_idx", open_attribute},
	{"H5Aopen_by_name", open_attribute},
	{"H5Aopen_idx", open_attribute},
	{"H5Aopen_name", open_attribute},
	{"H5Arename", rename_attribute},
	{"H5Arename_by_name", rename_attribute},
	{"H5Dclose", close_one},
	{"H5Dcreate", create_dataset},
	{"H5Dcreate1", create_dataset},
	{"H5Dcreate2", create_dataset},
	{"H5Dcreate_anon", create_dataset},
	{"H5Dextend", set_extent},
	{"H5Dopen", open_dataset},
	{"H5Dopen1", open_dataset},
	{"H5Dopen2", open_dataset},
	{"H5Drefresh", refresh},
	{"H5Dset_extent", set_extent},
	{"H5Fclose", close_one},
	{"H5Fcreate", open_file},
	{"H5Fmount", rename_objects},
	{"H5Fopen", open_file},
	{"H5Freopen", reopen_file},
	{"H5Funmount", rename_objects},
	{"H5Gclose", close_one},
	{"H5Gcreate", open_group},
	{"H5Gcreate1", open_group},
	{"H5Gcreate2", open_group},
	{"H5Gcreate_anon", open_group},
	{"H5Gmove", rename_objects},
	{"H5Gmove2", rename_objects},
	{"H5Gopen", open_group},
	{"H5Gopen1", open_group},
	{"H5Gopen2", open_group},
	{"H5Gunlink", rename_objects},
	{"H5Idec_ref", count_references},
	{"H5Iget_file_id", get_file},
	{"H5Iinc_ref", count_references},
	{"H5Ldelete", rename_objects},
	{"H5Ldelete_by_idx", rename_objects},
	{"H5Lmove", rename_objects},
	{"H5Oclose", close_one},
	{"H5Oopen", open_any},
	{"H5Oopen_by_addr", open_any},
	{"H5Oopen_by_idx", open_any},
	{"H5Oopen_by_token", open_any},
	{"H5Orefresh", refresh},
	{"H5Pclose", close_one},
	{"H5Rdereference1", open_any},
	{"H5Rdereference2", open_any},
	{"H5Sclose", close_one},
	{"H5Tclose", close_one},
	{"H5Topen", name_type},
	{"H5Topen1", name_type},
	{"H5Topen2", name_type},
	{"H5close", close_library},
};

void h5_objects_end(const struct library_call *call, struct h5_state *state)
{
	h5_dispatch(call, state, handlers, sizeof(handlers) / sizeof(*handlers));
}
