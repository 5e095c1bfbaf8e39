/* Identifiers that the library hands to functions that it calls back. They are made without a call that could be seen,
 * and stand for what the iteration is about: the group or object that it began with. */
#include "tracer/hooks/hdf5.h"

#include <stdlib.h>
#include <string.h>

static bool is_iteration(const struct frame *frame)
{
	return frame->hook && frame->hook->layer == HOOK_HDF5 &&
	       (frame->hook->row->serves & HOOK_CALLS_BACK);
}

/* A program may have several copies of the library. */
static bool is_same_library(const struct frame *one, const struct frame *two)
{
	return one->hook->object == two->hook->object;
}

/* @return the innermost iteration that the call is made in, NULL: none. */
static struct frame *around(const struct library_call *call)
{
	struct task *task = call->task;

	for (size_t i = task->nframes; i-- > 0;) {
		struct frame *frame = &task->frames[i];
		if (frame != call->frame && is_iteration(frame) &&
		    is_same_library(frame, call->frame) && hook_is_around(frame, call->frame))
			return frame;
	}
	return NULL;
}

/* Those that iterate over what has a name have that as an argument. */
static int name_argument(const struct hook_row *row)
{
	return library_next(row, HOOK_A_TEXT, -1);
}

static void adopt(const struct library_call *call, struct h5_state *state, uint64_t id,
		  struct frame *frame)
{
	const struct library_call outer = {.tracer = call->tracer,
					   .task = call->task,
					   .frame = frame,
					   .row = frame->hook->row};
	int n = library_next(outer.row, HOOK_A_ID, -1);
	const struct h5_object *from = n < 0 ? NULL : h5_get(state, library_value(&outer, n));
	size_t len = 0;
	const char *name = library_text(&outer, name_argument(outer.row), &len);

	if (!from || !from->file)
		return;
	struct h5_file *file = h5_file_ref(from->file);
	char *path = h5_join(from->path, name ? name : ".", name ? len : 1);
	struct h5_object *object = h5_put(state, id, H5_OBJECT);
	if (!object) {
		h5_file_unref(file);
		free(path);
		return;
	}
	object->file = file;
	object->path = path;
	object->lent = frame->call.sp;
}

void h5_callbacks_begin(const struct library_call *call, struct h5_state *state)
{
	int n = -1;

	while ((n = library_next(call->row, HOOK_A_ID, n)) >= 0) {
		uint64_t id = library_value(call, n);
		unsigned type = H5_ID_TYPE(id);
		/* All other functions that make one of a group or a dataset are followed. */
		if ((type != H5_ID_GROUP && type != H5_ID_DATASET) || h5_get(state, id))
			continue;
		struct frame *frame = around(call);
		if (frame)
			adopt(call, state, id, frame);
	}
}

/* When the iteration is over the library has closed them. */
void h5_callbacks_end(const struct library_call *call, struct h5_state *state)
{
	const struct map_slot *slot;
	size_t at = 0;

	if (!is_iteration(call->frame))
		return;
	while ((slot = map_next(&state->objects, &at))) {
		const struct h5_object *object = slot->value;
		if (object->lent != call->frame->call.sp)
			continue;
		h5_forget(state, slot->key);
		at = 0;
	}
}
