/* What a call says of its object: the file, the name as the program gave it, the absolute name, how it is stored. */
#include "tracer/hooks/hdf5.h"

#include <stdlib.h>
#include <string.h>

char *h5_join(const char *base, const char *name, size_t len)
{
	struct buf out = {0};
	char *path = NULL;

	if (!name || (!base && (len == 0 || name[0] != '/')))
		return NULL;
	if (len == 0 || name[0] != '/')
		buf_add_str(&out, strcmp(base, "/") == 0 ? "" : base);
	for (size_t at = 0; at < len;) {
		const char *slash = memchr(name + at, '/', len - at);
		size_t n = slash ? (size_t)(slash - name) - at : len - at;
		if (n && !(n == 1 && name[at] == '.')) {
			buf_add_char(&out, '/');
			buf_add(&out, name + at, n);
		}
		at += n + 1;
	}
	if (out.len == 0)
		buf_add_char(&out, '/');
	const char *text = buf_str(&out);
	if (text)
		path = strdup(text);
	buf_free(&out);
	return path;
}

/* @return the first object in a file that the call's identifiers name, NULL: none; `*named`: the positions of all. */
static const struct h5_object *located(const struct library_call *call,
				       const struct h5_state *state, uint64_t *named)
{
	const struct h5_object *first = NULL;
	int n = -1;

	*named = 0;
	while ((n = library_next(call->row, HOOK_A_ID, n)) >= 0) {
		const struct h5_object *object = h5_get(state, library_value(call, n));
		if (!object || !object->file)
			continue;
		*named |= 1ULL << n;
		first = first ? first : object;
	}
	return first;
}

/* Notes of the call from its entry on: where its bytes hold a text. */
enum { NOTE_GIVEN, NOTE_PATH, NOTE_NAMED };

static void note(const struct library_call *call, unsigned which, const char *text)
{
	struct buf *bytes = &call->frame->call.bytes;
	size_t len = text ? strlen(text) : 0;

	if (!len)
		return;
	call->frame->notes[which] = (uint64_t)bytes->len << 32 | len;
	buf_add(bytes, text, len);
	if (bytes->failed)
		call->frame->notes[which] = 0;
}

static void add_note(const struct library_call *call, unsigned which, const char *key,
		     struct event *event)
{
	uint64_t where = call->frame->notes[which];

	if (where)
		decode_text(event, key, call->frame->call.bytes.data + (where >> 32),
			    where & UINT32_MAX);
}

static struct name *path_of(const struct h5_object *object)
{
	return object->file && object->file->store ? object->file->store->path : NULL;
}

int h5_name_argument(const struct library_call *call)
{
	return strcmp(call->row->group, "H5F") == 0 ? -1 : library_next(call->row, HOOK_A_PATH, -1);
}

/* Several datasets in one call: the file, if it is the same for all. */
static void begin_multi(const struct library_call *call, const struct h5_state *state)
{
	uint64_t count = h5_argument(call, "count");
	struct name *path = NULL;
	uint64_t id;

	for (uint64_t i = 0; i < count && i < H5_MOST_SETS; i++) {
		if (!library_read(call, h5_argument(call, "dset_id") + i * 8, &id, 8))
			return;
		const struct h5_object *object = h5_get(state, id);
		struct name *this = object ? path_of(object) : NULL;
		if (!this || (path && this != path))
			return;
		path = this;
	}
	library_set_file(call, path);
}

/* A call that closes frees what it is about, so its names are kept with the call. */
void h5_names_begin(const struct library_call *call, struct h5_state *state)
{
	if (strcmp(call->row->group, "H5F") == 0)
		library_set_path(call, library_next(call->row, HOOK_A_PATH, -1));
	if (strstr(call->row->name, "_multi"))
		begin_multi(call, state);
	const struct h5_object *object = located(call, state, &call->frame->notes[NOTE_NAMED]);
	if (!object)
		return;
	library_set_file(call, path_of(object));
	if (h5_name_argument(call) >= 0 || object->kind == H5_FILE)
		return;
	/* What is said of an object by its name says which one by its own arguments. */
	if (library_next(call->row, HOOK_A_TEXT, -1) >= 0)
		return;
	note(call, NOTE_GIVEN, object->given);
	note(call, NOTE_PATH, object->path);
}

static void add_names(const struct h5_object *object, struct event *event)
{
	if (object->given)
		decode_text(event, "object", object->given, strlen(object->given));
	if (object->path)
		decode_text(event, "object_path", object->path, strlen(object->path));
}

static void add_layout(const struct h5_object *object, struct event *event)
{
	if (!object || object->kind != H5_DATASET || !object->shape)
		return;
	if (object->shape->chunk)
		decode_text(event, "chunk", object->shape->chunk, strlen(object->shape->chunk));
	if (object->shape->filters)
		decode_text(event, "filters", object->shape->filters,
			    strlen(object->shape->filters));
}

/* Independent is what the library does unless it is told otherwise. */
static void add_transfer(const struct library_call *call, const struct h5_state *state,
			 const struct h5_object *object, struct event *event)
{
	int n = library_argument(call->row, "dxpl_id");
	const struct h5_list *list = n < 0 ? NULL : h5_list_of(state, library_value(call, n));

	if (list && object && object->file && object->file->parallel)
		decode_int(event, "collective", list->collective);
}

/* Identifiers without a name are written as they are: those of types, spaces and lists, and what is not known. */
bool h5_names_writes(const struct library_call *call, int n)
{
	return call->row->args[n].kind == HOOK_A_ID && !((call->frame->notes[NOTE_NAMED] >> n) & 1);
}

void h5_names_add(const struct library_call *call, const struct h5_state *state,
		  struct event *event)
{
	int n = h5_name_argument(call);
	size_t len = 0;
	const char *text = library_text(call, n, &len);
	const struct h5_object *object = NULL;
	uint64_t named;

	if (call->done && call->row->result == HOOK_R_LONG && call->result > 0)
		object = h5_get(state, (uint64_t)call->result);
	if (object && object->file && object->kind != H5_FILE) {
		add_names(object, event);
		add_layout(object, event);
	} else if (text) {
		decode_text(event, "object", text, len);
	} else {
		add_note(call, NOTE_GIVEN, "object", event);
		add_note(call, NOTE_PATH, "object_path", event);
		if (h5_moves_data(call->row)) {
			object = located(call, state, &named);
			add_layout(object, event);
			add_transfer(call, state, object, event);
		}
	}
}
