/* HDF5: what its calls say beyond their arguments. */
#include "tracer/hooks/hdf5.h"

#include "tracer/resolve.h"

#include <stdlib.h>
#include <string.h>

/* Compares a function's name, less _async, with a handler's. */
static int compare(const void *key, const void *element)
{
	const struct h5_handler *handler = element;
	const char *name = key;
	size_t len = strlen(name);

	if (len > 6 && strcmp(name + len - 6, "_async") == 0)
		len -= 6;
	int order = strncmp(name, handler->name, len);
	return order ? order : -(handler->name[len] != '\0');
}

void h5_dispatch(const struct library_call *call, struct h5_state *state,
		 const struct h5_handler *handlers, size_t count)
{
	const struct h5_handler *handler =
		bsearch(call->row->name, handlers, count, sizeof(*handlers), compare);

	if (handler)
		handler->end(call, state);
}

/* Files outside the data directories: their objects are followed all the same. */
static void leave_out(const struct library_call *call)
{
	struct frame *frame = call->frame;

	if (!frame->record || !frame->path ||
	    resolve_is_wanted(call->tracer, frame->path->text, frame->path->len))
		return;
	frame->record = false;
	call->task->process->skipped[SKIPPED_DATADIR]++;
}

static void begin(const struct library_call *call)
{
	struct h5_state *state = h5_state_of(call);

	if (!state)
		return;
	h5_callbacks_begin(call, state);
	h5_names_begin(call, state);
	h5_objects_begin(call, state);
	h5_data_begin(call, state);
	leave_out(call);
}

static bool is_in_file(const struct hook_row *row)
{
	static const char *const modules[] = {"H5A", "H5D", "H5F", "H5G", "H5L", "H5O"};

	for (size_t i = 0; i < sizeof(modules) / sizeof(*modules); i++) {
		if (strcmp(row->group, modules[i]) == 0)
			return row->mode == HOOK_DEFAULT;
	}
	return false;
}

/* A call that makes an object is named after it, so its event waits for that. */
static void end(const struct library_call *call, struct event *event)
{
	struct h5_state *state = h5_state_of(call);
	bool failed = call->row->result != HOOK_R_POINTER && call->result < 0;

	if (!state)
		return;
	if (call->done && !failed) {
		h5_types_end(call, state);
		h5_spaces_end(call, state);
		h5_lists_end(call, state);
		h5_objects_end(call, state);
	}
	h5_callbacks_end(call, state);
	h5_data_end(call, event != NULL);
	if (!event)
		return;
	h5_names_add(call, state, event);
	if (is_in_file(call->row) && call->done && !failed && !call->frame->path)
		call->task->process->lost[LOST_UNNAMED_HDF5]++;
}

static unsigned uses(const struct hook_row *row)
{
	unsigned files = HOOK_FOR_FILES | HOOK_FOR_LISTS;

	return h5_moves_data(row) ? files | HOOK_FOR_TYPES | HOOK_FOR_SPACES : files;
}

const struct hook_library hook_hdf5 = {
	.category = LAYER_HDF5,
	.uses = uses,
	.begin = begin,
	.end = end,
	.writes = h5_names_writes,
	.copy = h5_states_copy,
	.free = h5_states_free,
	.variables = (const char *const[]){"H5T_", NULL},
	.marks = (const char *const[]){"HDF5: infinite loop closing library", NULL},
};
