#include "writer/summary.h"

#include "writer/bytes.h"
#include "writer/summary-parts.h"

#include <stdlib.h>
#include <string.h>

enum {
	CALLS_MOST = 8192,
	FILES_MOST = 16384,
	TEXT_MOST = 4 << 20, /* bytes of paths */
};

struct summary *summary_new(void)
{
	return calloc(1, sizeof(struct summary));
}

/* The category of an event as the trace spells it. */
static const char *category_of(const struct event *event)
{
	static const char *const names[] = {
		[LAYER_DFTRACER] = "dftracer", [LAYER_POSIX] = "POSIX", [LAYER_SYSCALL] = "SYSCALL",
		[LAYER_STDIO] = "STDIO",       [LAYER_MPI] = "MPI",     [LAYER_HDF5] = "HDF5",
		[LAYER_FUNC] = "FUNC",
	};
	return event->layer == LAYER_APP ? event->category : names[event->layer];
}

/* @return the call's sums, those of the category's others when there is no room, NULL without memory. */
static struct summary_call *find_call(struct summary *summary, enum layer layer,
				      const char *category, const char *name)
{
	uint64_t hash = map_hash(map_hash(MAP_HASH ^ layer, category), name);
	struct summary_call *call;

	/* Two names with one hash: the second goes on with the next number. */
	while ((call = map_get(&summary->calls, hash))) {
		if (call->layer == layer && strcmp(call->name, name) == 0 &&
		    strcmp(call->category, category) == 0)
			return call;
		hash++;
	}
	if (*name && summary->calls.count >= CALLS_MOST)
		return find_call(summary, layer, category, "");
	size_t len = strlen(name) + 1;
	call = calloc(1, sizeof(*call) + len + strlen(category) + 1);
	if (!call || map_put(&summary->calls, hash, call) < 0) {
		free(call);
		return NULL;
	}
	call->layer = layer;
	memcpy(call->name, name, len);
	call->category = memcpy(call->name + len, category, strlen(category) + 1);
	return call;
}

void summary_call_add(struct summary_call *to, const struct summary_call *from)
{
	to->calls += from->calls;
	to->errors += from->errors;
	to->cut += from->cut;
	to->us += from->us;
	to->bytes += from->bytes;
	if (from->longest > to->longest)
		to->longest = from->longest;
}

void summary_use_add(struct summary_use *to, const struct summary_use *from)
{
	to->calls += from->calls;
	to->us += from->us;
	to->read += from->read;
	to->written += from->written;
}

struct summary_use summary_file_use(const struct summary_file *file)
{
	struct summary_use use = file->uses[LAYER_POSIX];

	summary_use_add(&use, &file->uses[LAYER_SYSCALL]);
	for (unsigned layer = 0; use.calls == 0 && layer < SUMMARY_LAYERS; layer++) {
		const struct summary_use *other = &file->uses[layer];
		if (other->calls > 0 && (other->read + other->written >= use.read + use.written))
			return *other;
	}
	return use;
}

int summary_compare_files(const void *a, const void *b)
{
	const struct summary_file *one = *(const struct summary_file *const *)a;
	const struct summary_file *two = *(const struct summary_file *const *)b;
	struct summary_use x = summary_file_use(one);
	struct summary_use y = summary_file_use(two);
	uint64_t x_bytes = x.read + x.written;
	uint64_t y_bytes = y.read + y.written;

	if (x_bytes != y_bytes)
		return x_bytes > y_bytes ? -1 : 1;
	if (x.calls != y.calls)
		return x.calls > y.calls ? -1 : 1;
	return one->name && two->name ? strcmp(one->name->text, two->name->text) : 0;
}

static void add_uses(struct summary_file *to, const struct summary_file *from)
{
	for (unsigned i = 0; i < SUMMARY_LAYERS; i++)
		summary_use_add(&to->uses[i], &from->uses[i]);
}

/* Adds the half with the fewest bytes to the others. */
static void make_room(struct summary *summary)
{
	struct summary_file **files = calloc(summary->files.count, sizeof(struct summary_file *));
	struct map_slot *slot;
	size_t count = 0;
	size_t at = 0;

	if (!files)
		return;
	while ((slot = map_next(&summary->files, &at)))
		files[count++] = slot->value;
	qsort(files, count, sizeof(struct summary_file *), summary_compare_files);
	for (size_t i = count / 2; i < count; i++) {
		/* What counts of it is decided now: of others it may be something else. */
		struct summary_use use = summary_file_use(files[i]);
		summary_use_add(&summary->others.uses[LAYER_POSIX], &use);
		summary->other_files++;
		summary->text -= files[i]->name->len;
		map_remove(&summary->files, name_hash(files[i]->name));
		name_unref(files[i]->name);
		free(files[i]);
	}
	free(files);
}

static struct summary_file *find_file(struct summary *summary, struct name *name)
{
	struct summary_file *file = map_get(&summary->files, name_hash(name));

	if (file)
		return file;
	if (summary->files.count >= FILES_MOST || summary->text + name->len > TEXT_MOST)
		make_room(summary);
	file = calloc(1, sizeof(*file));
	if (!file || map_put(&summary->files, name_hash(name), file) < 0) {
		free(file);
		summary->other_files++;
		return &summary->others;
	}
	file->name = name_ref(name);
	summary->text += name->len;
	return file;
}

/* What of an event's arguments counts. */
struct result {
	bool has_ret;
	bool has_sum;
	bool cut;
	int64_t ret;
	uint64_t sum;
	struct name *out; /* the file that a call from one to another wrote to; NULL: none */
};

static void read_arguments(const struct event *event, struct result *result)
{
	*result = (struct result){0};
	for (unsigned i = 0; i < event->nargs; i++) {
		const struct event_arg *arg = &event->args[i];
		if (arg->kind == EVENT_INT && strcmp(arg->name, "ret") == 0) {
			result->has_ret = true;
			result->ret = arg->value.i;
		} else if (arg->kind == EVENT_UINT && strcmp(arg->name, "size_sum") == 0) {
			result->has_sum = true;
			result->sum = arg->value.u;
		} else if (arg->kind == EVENT_INT && strcmp(arg->name, "cut") == 0) {
			result->cut = true;
		} else if (arg->kind == EVENT_NAME && strcmp(arg->name, "out_fhash") == 0) {
			result->out = arg->value.ref;
		}
	}
}

/* What results and names of a program's own functions mean is not known. */
static bool is_programs_own(const struct event *event)
{
	return event->layer == LAYER_FUNC || event->layer == LAYER_APP;
}

static bool is_error(const struct event *event, const struct result *result)
{
	if (!result->has_ret || is_programs_own(event))
		return false;
	/* MPI returns the class of an error. */
	return event->layer == LAYER_MPI ? result->ret != 0 : result->ret == -1;
}

static uint64_t bytes_of(const struct result *result, const struct bytes_row *row)
{
	if (result->has_sum)
		return result->sum;
	if (!row || row->ret == BYTES_NOTHING || !result->has_ret || result->ret < 0)
		return 0;
	return (uint64_t)result->ret;
}

static void add_to_files(struct summary *summary, const struct event *event,
			 const struct result *result, const struct bytes_row *row, uint64_t us,
			 uint64_t bytes)
{
	unsigned direction = row ? row->direction : 0;

	if (event->file) {
		struct summary_use *use = &find_file(summary, event->file)->uses[event->layer];
		use->calls++;
		use->us += us;
		use->read += direction & BYTES_READ ? bytes : 0;
		use->written += direction == BYTES_WRITTEN ? bytes : 0;
	}
	if (result->out && direction == BYTES_BOTH) {
		struct summary_use *use = &find_file(summary, result->out)->uses[event->layer];
		use->calls++;
		use->us += us;
		use->written += bytes;
	}
}

void summary_add(struct summary *summary, const struct event *event)
{
	const struct bytes_row *row =
		is_programs_own(event) ? NULL : bytes_row(event->name, strlen(event->name));
	uint64_t us = event->end / 1000 - event->start / 1000;
	struct result result;

	read_arguments(event, &result);
	uint64_t bytes = bytes_of(&result, row);
	summary->events++;
	if (event->level <= 1)
		summary->outermost += us;
	struct summary_call *call =
		find_call(summary, event->layer, category_of(event), event->name);
	if (call) {
		call->calls++;
		call->errors += is_error(event, &result);
		call->cut += result.cut;
		call->us += us;
		call->bytes += bytes;
		if (us > call->longest)
			call->longest = us;
	}
	add_to_files(summary, event, &result, row, us, bytes);
}

void summary_add_image(struct summary *summary, const struct summary *image)
{
	struct map_slot *slot;
	size_t at = 0;

	summary->images++;
	if (!image)
		return;
	summary->events += image->events;
	summary->outermost += image->outermost;
	while ((slot = map_next(&image->calls, &at))) {
		const struct summary_call *from = slot->value;
		struct summary_call *to =
			find_call(summary, from->layer, from->category, from->name);
		if (to)
			summary_call_add(to, from);
	}
	at = 0;
	while ((slot = map_next(&image->files, &at))) {
		const struct summary_file *from = slot->value;
		add_uses(find_file(summary, from->name), from);
	}
	add_uses(&summary->others, &image->others);
	summary->other_files += image->other_files;
}

uint64_t summary_events(const struct summary *summary)
{
	return summary->events;
}

void summary_free(struct summary *summary)
{
	struct map_slot *slot;
	size_t at = 0;

	if (!summary)
		return;
	while ((slot = map_next(&summary->files, &at)))
		name_unref(((struct summary_file *)slot->value)->name);
	map_free_values(&summary->files);
	map_free_values(&summary->calls);
	free(summary);
}
