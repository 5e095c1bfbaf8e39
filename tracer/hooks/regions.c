#include "tracer/hooks/regions.h"

#include "tracer/hooks/annotate.h"
#include "writer/put.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A region has no more arguments, and a process says no more of itself. */
#define ARGS_MOST 1024

/* @return a copy of the text as it stands in JSON. */
static char *escaped(const char *text)
{
	size_t len = strlen(text);
	char *copy = malloc(len * PUT_ESCAPED + 1);

	if (copy)
		*put_escaped(copy, text, len) = '\0';
	return copy;
}

/* Keys that readers know: the program's gets a mark then. */
static char *make_key(const char *text)
{
	static const char *const ours[] = {
		"hhash",         "p_idx",    "level",     "fhash",     "errno",
		"cut",           "overlap",  "aio",       "out_fhash", "newpath_hash",
		"pathname_hash", "cmd_hash", "exec_hash", "exec",      "cwd",
	};
	char *key;

	for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++) {
		if (strcmp(text, ours[i]) == 0)
			return asprintf(&key, "%s_", text) < 0 ? NULL : key;
	}
	return escaped(text);
}

static void free_text(const struct event_arg *arg)
{
	if (arg->kind == EVENT_STRING)
		free((char *)arg->value.string.bytes);
}

static void args_free(struct args *args)
{
	for (unsigned i = 0; i < args->count; i++) {
		free((char *)args->items[i].name);
		free_text(&args->items[i]);
	}
	free(args->items);
	*args = (struct args){0};
}

/* @return the place for the key's value, NULL when there is none. Takes the key. */
static struct event_arg *find_place(struct args *args, char *key)
{
	for (unsigned i = 0; i < args->count; i++) {
		if (strcmp(args->items[i].name, key) == 0) {
			free(key);
			free_text(&args->items[i]);
			return &args->items[i];
		}
	}
	struct event_arg *more = args->count < ARGS_MOST
					 ? reallocarray(args->items, args->count + 1, sizeof(*more))
					 : NULL;
	if (!more) {
		free(key);
		return NULL;
	}
	args->items = more;
	more += args->count++;
	more->name = key;
	return more;
}

static int set(struct args *args, char *key, int64_t number, char *text)
{
	struct event_arg *arg = key ? find_place(args, key) : NULL;

	if (!arg) {
		free(text);
		return -1;
	}
	arg->kind = text ? EVENT_STRING : EVENT_INT;
	if (text) {
		arg->value.string.bytes = text;
		arg->value.string.len = strlen(text);
	} else {
		arg->value.i = number;
	}
	return 0;
}

int args_set(struct args *args, const char *key, int64_t number, char *text)
{
	return set(args, make_key(key), number, text);
}

static int copy_args(struct args *to, const struct args *from)
{
	for (unsigned i = 0; i < from->count; i++) {
		const struct event_arg *arg = &from->items[i];
		bool is_text = arg->kind == EVENT_STRING;
		char *text = is_text ? strdup(arg->value.string.bytes) : NULL;
		if ((is_text && !text) ||
		    set(to, strdup(arg->name), is_text ? 0 : arg->value.i, text) < 0)
			return -1;
	}
	return 0;
}

const char *args_json(const struct args *args, struct buf *out)
{
	buf_clear(out);
	for (unsigned i = 0; i < args->count; i++) {
		const struct event_arg *arg = &args->items[i];
		buf_addf(out, "%c\"%s\":", i ? ',' : '{', arg->name);
		if (arg->kind == EVENT_INT) {
			buf_add_i64(out, arg->value.i);
			continue;
		}
		char *text = escaped(arg->value.string.bytes);
		buf_addf(out, "\"%s\"", text ? text : "");
		free(text);
	}
	if (!args->count)
		return NULL;
	buf_add_char(out, '}');
	return buf_str(out);
}

/* --- regions --------------------------------------------------------------------------------- */

struct region *region_add(struct annotations *of, uint64_t handle)
{
	struct region *region = calloc(1, sizeof(*region));

	if (!region || map_put(&of->regions, handle, region) < 0) {
		free(region);
		return NULL;
	}
	region->handle = handle;
	region->older = of->newest;
	if (of->newest)
		of->newest->newer = region;
	of->newest = region;
	return region;
}

void region_enter(struct region *region, struct task *task)
{
	region->task = task;
	region->outer = task->region;
	if (region->outer)
		region->outer->inner = region;
	task->region = region;
}

static void leave_thread(struct region *region)
{
	if (!region->task)
		return;
	if (region->inner)
		region->inner->outer = region->outer;
	else
		region->task->region = region->outer;
	if (region->outer)
		region->outer->inner = region->inner;
	region->task = NULL;
	region->outer = NULL;
	region->inner = NULL;
}

static void free_region(struct region *region)
{
	args_free(&region->args);
	free(region->name);
	free(region->category);
	free(region);
}

void region_remove(struct annotations *of, uint64_t handle)
{
	struct region *region = map_remove(&of->regions, handle);

	if (!region)
		return;
	leave_thread(region);
	if (region->newer)
		region->newer->older = region->older;
	else
		of->newest = region->older;
	if (region->older)
		region->older->newer = region->newer;
	free_region(region);
}

bool region_is_within_parent(const struct region *region)
{
	const struct task *task = region->task;

	if (!region->parent)
		return true;
	for (const struct region *r = region->older; r; r = r->older) {
		if (r->id == region->parent)
			return true;
	}
	for (size_t i = 0; task && i < task->nframes; i++) {
		if (task->frames[i].record && task->frames[i].id == region->parent)
			return true;
	}
	return false;
}

const struct region *annotations_around(const struct task *task, uint64_t id)
{
	const struct region *region = task->region;

	while (region && region->id >= id)
		region = region->outer;
	return region;
}

void annotations_thread_over(struct task *task)
{
	while (task->region)
		leave_thread(task->region);
}

/* @return 0, or -1 with errno ENOMEM. */
static int inherit(struct annotations *to, const struct region *old, uint64_t now)
{
	struct region *region = region_add(to, old->handle);

	if (!region)
		return -1;
	region->inherited = true;
	region->start = now;
	region->metadata = old->metadata;
	region->type = old->type;
	region->name = strdup(old->name);
	region->category = strdup(old->category);
	return region->name && region->category ? copy_args(&region->args, &old->args) : -1;
}

int annotations_fork(const struct process *parent, struct process *child, uint64_t now)
{
	const struct annotations *from = parent->annotations;

	if (!from)
		return 0;
	struct annotations *to = calloc(1, sizeof(*to));
	child->annotations = to;
	if (!to || copy_args(&to->app, &from->app) < 0 || copy_args(&to->used, &from->used) < 0)
		return -1;
	to->begun = from->begun;
	to->over = from->over;
	const struct region *old = from->newest;
	while (old && old->older)
		old = old->older;
	for (; old; old = old->newer) {
		if (inherit(to, old, now) < 0)
			return -1;
	}
	return 0;
}

void annotations_free(struct annotations *annotations)
{
	struct map_slot *slot;
	size_t at = 0;

	if (!annotations)
		return;
	while ((slot = map_next(&annotations->regions, &at))) {
		leave_thread(slot->value);
		free_region(slot->value);
	}
	map_free(&annotations->regions);
	args_free(&annotations->app);
	args_free(&annotations->used);
	buf_free(&annotations->app_json);
	buf_free(&annotations->used_json);
	free(annotations);
}
