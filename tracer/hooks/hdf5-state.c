/* The objects behind identifiers: made, found, forgotten, and copied where a process forks. */
#include "tracer/hooks/hdf5.h"

#include <stdlib.h>
#include <string.h>

/* Of a program that closes nothing no more than this is known. */
#define MOST_OBJECTS (1UL << 18)

/* Files that are remembered when they are closed. */
#define MOST_STORES 256

struct h5_state *h5_state_of(const struct library_call *call)
{
	const struct hook_object *library = call->frame->hook->object;
	struct h5_state *state = *call->state;

	while (state && state->library != library)
		state = state->next;
	if (state)
		return state;
	state = calloc(1, sizeof(*state));
	if (!state)
		return NULL;
	state->library = library;
	state->next = *call->state;
	*call->state = state;
	return state;
}

static void object_free(struct h5_object *object)
{
	if (!object)
		return;
	h5_file_unref(object->file);
	h5_shape_unref(object->shape);
	if (object->space)
		h5_space_clear(object->space);
	free(object->space);
	free(object->list);
	free(object->given);
	free(object->path);
	free(object);
}

struct h5_object *h5_get(const struct h5_state *state, uint64_t id)
{
	return map_get(&state->objects, id);
}

void h5_forget(struct h5_state *state, uint64_t id)
{
	object_free(map_remove(&state->objects, id));
}

/* Makes room for what an object of the kind holds. */
static bool has_room(struct h5_object *object)
{
	if (object->kind == H5_SPACE) {
		object->space = calloc(1, sizeof(*object->space));
		if (object->space)
			object->space->selected = H5_SELECTED_UNKNOWN;
		return object->space != NULL;
	}
	if (object->kind == H5_LIST) {
		object->list = calloc(1, sizeof(*object->list));
		return object->list != NULL;
	}
	return true;
}

struct h5_object *h5_put(struct h5_state *state, uint64_t id, enum h5_kind kind)
{
	struct h5_object *object;

	h5_forget(state, id);
	if (state->objects.count >= MOST_OBJECTS)
		return NULL;
	object = calloc(1, sizeof(*object));
	if (!object)
		return NULL;
	object->kind = kind;
	object->refs = 1;
	if (!has_room(object) || map_put(&state->objects, id, object) < 0) {
		object_free(object);
		return NULL;
	}
	return object;
}

void h5_forget_file(struct h5_state *state, const struct h5_file *file)
{
	struct map kept = {0};
	struct map_slot *slot;
	size_t at = 0;

	while ((slot = map_next(&state->objects, &at))) {
		struct h5_object *object = slot->value;
		bool goes = !file || object->file == file;
		/* Without memory for the new map nothing of the old one is believed. */
		if (goes || map_put(&kept, slot->key, object) < 0)
			object_free(object);
	}
	map_free(&state->objects);
	state->objects = kept;
}

struct h5_shape *h5_shape_new(void)
{
	struct h5_shape *shape = calloc(1, sizeof(*shape));

	if (shape)
		shape->refs = 1;
	return shape;
}

struct h5_shape *h5_shape_ref(struct h5_shape *shape)
{
	if (shape)
		shape->refs++;
	return shape;
}

void h5_shape_unref(struct h5_shape *shape)
{
	if (!shape || --shape->refs > 0)
		return;
	free(shape->chunk);
	free(shape->filters);
	free(shape);
}

/* Forgets the closed files when there are many. */
static void drop_stores(struct h5_state *state)
{
	struct h5_store **at = &state->stores;
	unsigned count = 0;

	for (const struct h5_store *store = state->stores; store; store = store->next)
		count += store->opened == 0;
	while (*at && count >= MOST_STORES) {
		struct h5_store *store = *at;
		if (store->opened > 0) {
			at = &store->next;
			continue;
		}
		*at = store->next;
		h5_store_free(store);
	}
}

static struct h5_store *store_of(struct h5_state *state, struct name *path)
{
	struct h5_store *store = state->stores;

	while (store && strcmp(store->path->text, path->text) != 0)
		store = store->next;
	if (store)
		return store;
	drop_stores(state);
	store = calloc(1, sizeof(*store));
	if (!store)
		return NULL;
	store->path = name_ref(path);
	store->next = state->stores;
	state->stores = store;
	return store;
}

struct h5_file *h5_file_new(struct h5_state *state, struct name *path)
{
	struct h5_file *file = calloc(1, sizeof(*file));

	if (!file)
		return NULL;
	file->refs = 1;
	file->store = path ? store_of(state, path) : NULL;
	if (file->store)
		file->store->opened++;
	return file;
}

struct h5_file *h5_file_ref(struct h5_file *file)
{
	if (file)
		file->refs++;
	return file;
}

void h5_file_unref(struct h5_file *file)
{
	if (!file || --file->refs > 0)
		return;
	if (file->store)
		file->store->opened--;
	free(file);
}

static void state_free(struct h5_state *state)
{
	h5_forget_file(state, NULL);
	map_free(&state->objects);
	while (state->stores) {
		struct h5_store *next = state->stores->next;
		h5_store_free(state->stores);
		state->stores = next;
	}
	free(state);
}

void h5_states_free(void *states)
{
	struct h5_state *state = states;

	while (state) {
		struct h5_state *next = state->next;
		state_free(state);
		state = next;
	}
}

/* What objects share is copied once: the copies, by address of the original. */
struct copying {
	struct h5_state *to;
	struct map files;
	struct map shapes;
	bool failed;
};

static struct h5_file *copy_file(struct copying *c, const struct h5_file *file)
{
	struct h5_file *copy = file ? map_get(&c->files, (uintptr_t)file) : NULL;

	if (!file || copy)
		return h5_file_ref(copy);
	copy = h5_file_new(c->to, file->store ? file->store->path : NULL);
	if (!copy || map_put(&c->files, (uintptr_t)file, copy) < 0) {
		c->failed = true;
		return copy;
	}
	copy->strong = file->strong;
	copy->parallel = file->parallel;
	return copy;
}

static char *copy_text(struct copying *c, const char *text)
{
	char *copy = text ? strdup(text) : NULL;

	c->failed |= text && !copy;
	return copy;
}

static struct h5_shape *copy_shape(struct copying *c, const struct h5_shape *shape)
{
	struct h5_shape *copy = shape ? map_get(&c->shapes, (uintptr_t)shape) : NULL;

	if (!shape || copy)
		return h5_shape_ref(copy);
	copy = h5_shape_new();
	if (!copy || map_put(&c->shapes, (uintptr_t)shape, copy) < 0) {
		c->failed = true;
		return copy;
	}
	*copy = *shape;
	copy->refs = 1;
	copy->chunk = copy_text(c, shape->chunk);
	copy->filters = copy_text(c, shape->filters);
	return copy;
}

static void copy_object(struct copying *c, uint64_t id, const struct h5_object *object)
{
	struct h5_object *copy = h5_put(c->to, id, object->kind);

	if (!copy) {
		c->failed = true;
		return;
	}
	copy->refs = object->refs;
	copy->file = copy_file(c, object->file);
	copy->given = copy_text(c, object->given);
	copy->path = copy_text(c, object->path);
	copy->shape = copy_shape(c, object->shape);
	copy->type = object->type;
	if (object->list)
		*copy->list = *object->list;
	if (object->space)
		c->failed |= h5_space_copy(copy->space, object->space) < 0;
}

/* What names in files were seen to be is not copied: parent and child may change them now without each other. */
static struct h5_state *state_copy(const struct h5_state *state)
{
	struct copying c = {.to = calloc(1, sizeof(*c.to))};
	const struct map_slot *slot;
	size_t at = 0;

	if (!c.to)
		return NULL;
	while (!c.failed && (slot = map_next(&state->objects, &at)))
		copy_object(&c, slot->key, slot->value);
	map_free(&c.files);
	map_free(&c.shapes);
	c.to->library = state->library;
	c.to->types_known = state->types_known;
	if (!c.failed)
		return c.to;
	state_free(c.to);
	return NULL;
}

void *h5_states_copy(const void *states)
{
	struct h5_state *copies = NULL;

	for (const struct h5_state *state = states; state; state = state->next) {
		struct h5_state *copy = state_copy(state);
		if (!copy) {
			h5_states_free(copies);
			return NULL;
		}
		copy->next = copies;
		copies = copy;
	}
	return copies;
}
