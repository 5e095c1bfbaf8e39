#include "tracer/hooks/annotate.h"

#include "base/map.h"
#include "base/proc.h"
#include "tracer/decode.h"
#include "tracer/hooks/internal.h"
#include "tracer/image.h"
#include "tracer/memory.h"
#include "writer/put.h"

#include <stdlib.h>
#include <string.h>

/* Longer texts are cut. */
#define NAME_MOST  4096
#define VALUE_MOST (64U << 10)

/* A region has no more arguments, and a process says no more of itself. */
#define ARGS_MOST 1024

/* A set of keys and values, as the inside of a JSON object. */
struct said {
	struct event_arg *args;
	unsigned count;
	struct buf json; /* made from them at the end */
};

struct annotations {
	struct map regions; /* struct region by handle */
	struct region *newest;
	bool begun; /* what the program asks for is written */
	bool over;  /* the program has said that it is */
	struct said app;
	struct said used;
};

/* --- keys and values ------------------------------------------------------------------------- */

static void free_args(struct event_arg *args, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		free((char *)args[i].name);
		if (args[i].kind == EVENT_STRING)
			free((char *)args[i].value.string.bytes);
	}
	free(args);
}

/* @return a copy of the text as it stands in JSON. */
static char *escaped(const char *text)
{
	size_t len = strlen(text);
	char *copy = malloc(len * PUT_ESCAPED + 2);

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
	char *key = escaped(text);

	for (size_t i = 0; key && i < sizeof(ours) / sizeof(*ours); i++) {
		if (strcmp(key, ours[i]) == 0)
			return strcat(key, "_");
	}
	return key;
}

/* @return the place for the key's value, whose last one counts; NULL when there is no room. Takes the key. */
static struct event_arg *set_arg(struct event_arg **args, unsigned *count, char *key)
{
	struct event_arg *arg;

	for (unsigned i = 0; key && i < *count; i++) {
		arg = &(*args)[i];
		if (strcmp(arg->name, key) != 0)
			continue;
		free(key);
		if (arg->kind == EVENT_STRING)
			free((char *)arg->value.string.bytes);
		arg->kind = EVENT_INT;
		return arg;
	}
	struct event_arg *more =
		key && *count < ARGS_MOST ? reallocarray(*args, *count + 1, sizeof(*more)) : NULL;
	if (!more) {
		free(key);
		return NULL;
	}
	*args = more;
	arg = &more[(*count)++];
	*arg = (struct event_arg){.name = key, .kind = EVENT_INT};
	return arg;
}

static void set_text(struct event_arg *arg, char *text)
{
	arg->kind = EVENT_STRING;
	arg->value.string.bytes = text;
	arg->value.string.len = strlen(text);
}

/* @return 0, or -1 with errno ENOMEM. */
static int copy_args(struct event_arg **to, unsigned *to_count, const struct event_arg *from,
		     unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct event_arg *arg = set_arg(to, to_count, strdup(from[i].name));
		if (!arg)
			return -1;
		if (from[i].kind == EVENT_INT) {
			arg->value.i = from[i].value.i;
			continue;
		}
		char *text = strdup(from[i].value.string.bytes);
		if (!text)
			return -1;
		set_text(arg, text);
	}
	return 0;
}

/* @return the object, NULL when it would be empty. */
static const char *said_json(struct said *said)
{
	struct buf *out = &said->json;

	buf_clear(out);
	for (unsigned i = 0; i < said->count; i++) {
		const struct event_arg *arg = &said->args[i];
		buf_add_char(out, i ? ',' : '{');
		buf_addf(out, "\"%s\":", arg->name);
		if (arg->kind == EVENT_INT) {
			buf_add_i64(out, arg->value.i);
			continue;
		}
		char *text = escaped(arg->value.string.bytes);
		buf_addf(out, "\"%s\"", text ? text : "");
		free(text);
	}
	if (said->count)
		buf_add_char(out, '}');
	return said->count ? buf_str(out) : NULL;
}

/* --- the set of regions ---------------------------------------------------------------------- */

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
	struct annotations *of = region->of;

	leave_thread(region);
	if (region->newer)
		region->newer->older = region->older;
	else
		of->newest = region->older;
	if (region->older)
		region->older->newer = region->newer;
	map_remove(&of->regions, region->handle);
	free_args(region->args, region->nargs);
	free(region->name);
	free(region->category);
	free(region);
}

/* @return an empty region, NULL with errno ENOMEM. */
static struct region *add_region(struct annotations *of, uint64_t handle)
{
	struct region *region = calloc(1, sizeof(*region));

	if (!region || map_put(&of->regions, handle, region) < 0) {
		free(region);
		return NULL;
	}
	region->of = of;
	region->handle = handle;
	region->older = of->newest;
	if (of->newest)
		of->newest->newer = region;
	of->newest = region;
	return region;
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

void annotations_free(struct annotations *annotations)
{
	if (!annotations)
		return;
	while (annotations->newest)
		free_region(annotations->newest);
	map_free(&annotations->regions);
	free_args(annotations->app.args, annotations->app.count);
	free_args(annotations->used.args, annotations->used.count);
	buf_free(&annotations->app.json);
	buf_free(&annotations->used.json);
	free(annotations);
}

int annotations_fork(const struct process *parent, struct process *child, uint64_t now)
{
	const struct annotations *from = parent->annotations;

	if (!from)
		return 0;
	struct annotations *to = calloc(1, sizeof(*to));
	child->annotations = to;
	if (!to || copy_args(&to->app.args, &to->app.count, from->app.args, from->app.count) < 0 ||
	    copy_args(&to->used.args, &to->used.count, from->used.args, from->used.count) < 0)
		return -1;
	to->over = from->over;
	const struct region *old = from->newest;
	while (old && old->older)
		old = old->older;
	for (; old; old = old->newer) {
		struct region *region = add_region(to, old->handle);
		if (!region)
			return -1;
		region->inherited = true;
		region->start = now;
		region->metadata = old->metadata;
		region->type = old->type;
		region->name = strdup(old->name);
		region->category = strdup(old->category);
		if (!region->name || !region->category ||
		    copy_args(&region->args, &region->nargs, old->args, old->nargs) < 0)
			return -1;
	}
	return 0;
}

/* --- events ---------------------------------------------------------------------------------- */

/* @return whether what the region is inside has not ended before it. */
static bool is_within_parent(const struct region *region, const struct task *task)
{
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

static void write_region(struct trace *trace, const struct region *region, pid_t pid, uint64_t end,
			 bool cut)
{
	struct event event = {
		.layer = LAYER_APP,
		.category = region->category,
		.type = region->type,
		.name = region->name,
		.pid = pid,
		.tid = region->tid,
		.start = region->start,
		.end = end > region->start ? end : region->start,
		.id = region->id,
		.parent = region->parent,
		.level = region->level,
		.first = region->args,
		.nfirst = region->nargs,
	};

	if (region->inherited || !is_within_parent(region, region->task))
		decode_int(&event, "overlap", 1);
	if (cut)
		decode_int(&event, "cut", 1);
	trace_event(trace, &event, true);
}

/* The region is over: its event or line. */
static void end_region(struct trace *trace, struct region *region, pid_t pid, uint64_t end,
		       bool cut)
{
	if (region->metadata)
		trace_custom(trace, region->tid, region->name, region->category);
	else
		write_region(trace, region, pid, end, cut);
	free_region(region);
}

void annotations_finish(struct tracer *tracer, struct process *process, struct trace_end *end,
			uint64_t now)
{
	struct annotations *of = process->annotations;

	if (!of)
		return;
	while (of->newest) {
		/* What a child has inherited and never ended is its parent's. */
		if (of->newest->inherited || tracer->pass_through)
			free_region(of->newest);
		else
			end_region(process->trace, of->newest, process->pid, now, true);
	}
	end->app = said_json(&of->app);
	end->used = said_json(&of->used);
}

/* --- calls ----------------------------------------------------------------------------------- */

/* Appends no more than `most` bytes of the program's string. @return a copy, NULL when it cannot be read. */
static char *read_text(struct tracer *tracer, struct task *task, uint64_t address, size_t most)
{
	struct buf *text = &tracer->text;

	if (!address)
		return NULL;
	buf_clear(text);
	if (memory_read_string(tracer, task, address, most, text) < 0) {
		char *to = buf_reserve(text, most);
		if (!to || memory_read(tracer, task, address, to, most) != (ssize_t)most ||
		    memchr(to, '\0', most)) {
			task->process->lost[LOST_UNREADABLE]++;
			return NULL;
		}
		task->process->lost[LOST_TRUNCATED]++;
		text->len += most;
		/* Not in the middle of a character. */
		for (int i = 0; i < 3 && (text->data[text->len - 1] & 0xc0) == 0x80; i++)
			text->len--;
		if ((text->data[text->len - 1] & 0xc0) == 0xc0)
			text->len--;
	}
	const char *copy = buf_str(text);
	return copy ? strdup(copy) : NULL;
}

/* @return the process's, made when there are none. */
static struct annotations *annotations_of(struct tracer *tracer, struct process *process)
{
	if (!process->annotations)
		process->annotations = calloc(1, sizeof(*process->annotations));
	if (!process->annotations)
		tracer_end_recording(tracer, "out of memory");
	return process->annotations;
}

static void begin(struct tracer *tracer, struct task *task, struct annotations *of,
		  const struct arch_regs *regs)
{
	uint64_t handle = arch_regs_function_arg(regs, 0);
	int kind = (int)arch_regs_function_arg(regs, 3);
	struct trace *trace = image_trace(tracer, task);
	struct frame self = {.call.sp = arch_regs_sp(regs), .handlers = task->handlers};
	struct event event;

	/* An object that was left by longjmp: its memory is another's now. */
	struct region *left = map_get(&of->regions, handle);
	if (left && trace)
		end_region(trace, left, task->process->pid, tracer->now, true);
	/* 0 is an event, 1 a line of metadata; the library writes nothing for others. */
	if (!trace || (kind != 0 && kind != 1))
		return;
	struct region *region = add_region(of, handle);
	if (!region) {
		tracer_end_recording(tracer, "out of memory");
		return;
	}
	region->name = read_text(tracer, task, arch_regs_function_arg(regs, 1), NAME_MOST);
	region->category = read_text(tracer, task, arch_regs_function_arg(regs, 2),
				     kind == 1 ? VALUE_MOST : NAME_MOST);
	if (!region->name)
		region->name = strdup("unknown");
	if (!region->category)
		region->category = strdup("unknown");
	if (!region->name || !region->category) {
		free_region(region);
		tracer_end_recording(tracer, "out of memory");
		return;
	}
	region->metadata = kind == 1;
	region->type = (unsigned char)arch_regs_function_arg(regs, 4);
	region->tid = task->tid;
	decode_name_thread(tracer, trace, task->tid);
	if (region->metadata)
		return;
	event.id = region->id = trace_next_id(trace);
	decode_nest(task, &event, &self);
	region->parent = event.parent;
	region->level = event.level;
	region->task = task;
	region->outer = task->region;
	if (region->outer)
		region->outer->inner = region;
	task->region = region;
	region->start = clock_now(&tracer->clock);
}

static void end(struct tracer *tracer, struct task *task, struct annotations *of, uint64_t handle)
{
	struct region *region = map_get(&of->regions, handle);
	struct trace *trace = region ? image_trace(tracer, task) : NULL;

	if (!trace)
		return;
	if (region->inherited) {
		/* It is the process's since that has begun, beside what was called meanwhile. */
		region->id = trace_next_id(trace);
		region->tid = task->tid;
		region->level = 1;
		if (region->start < trace_started(trace))
			region->start = trace_started(trace);
		decode_name_thread(tracer, trace, task->tid);
	}
	end_region(trace, region, task->process->pid, tracer->now, false);
}

/* Sets a key to the number or, with `text`, to the string in `value`. */
static void set(struct tracer *tracer, struct task *task, struct event_arg **args, unsigned *count,
		uint64_t key, uint64_t value, bool text)
{
	char *name = read_text(tracer, task, key, NAME_MOST);
	char *bytes = name && text ? read_text(tracer, task, value, VALUE_MOST) : NULL;
	char *safe = name && (bytes || !text) ? make_key(name) : NULL;

	free(name);
	struct event_arg *arg = safe ? set_arg(args, count, safe) : NULL;
	if (!arg) {
		if (safe)
			task->process->lost[LOST_TRUNCATED]++;
		free(bytes);
	} else if (text) {
		set_text(arg, bytes);
	} else {
		arg->value.i = (int)value;
	}
}

static void update(struct tracer *tracer, struct task *task, struct annotations *of,
		   const struct arch_regs *regs, bool text)
{
	struct region *region = map_get(&of->regions, arch_regs_function_arg(regs, 0));

	if (region)
		set(tracer, task, &region->args, &region->nargs, arch_regs_function_arg(regs, 1),
		    arch_regs_function_arg(regs, 2), text);
}

/* What the program asks of DFTracer: others decide here, but it can be read. */
static void init(struct tracer *tracer, struct task *task, struct annotations *of,
		 const struct arch_regs *regs)
{
	static const char *const keys[] = {"app:log_file", "app:data_dirs"};
	struct trace *trace = image_trace(tracer, task);

	for (unsigned i = 0; trace && !of->begun && i < 2; i++) {
		char *text = read_text(tracer, task, arch_regs_function_arg(regs, i), NAME_MOST);
		if (text)
			trace_property(trace, keys[i], text);
		free(text);
	}
	of->begun = true;
}

/* DFTracer's own library writes no more from here on. */
static void finish(struct tracer *tracer, struct task *task, struct annotations *of)
{
	struct trace *trace = of->newest ? image_trace(tracer, task) : NULL;

	while (of->newest) {
		if (of->newest->inherited || !trace)
			free_region(of->newest);
		else
			end_region(trace, of->newest, task->process->pid, tracer->now, true);
	}
	of->over = true;
}

void annotate(struct tracer *tracer, struct task *task, const struct hook_row *row,
	      const struct arch_regs *regs)
{
	uint64_t first = arch_regs_function_arg(regs, 0);
	uint64_t second = arch_regs_function_arg(regs, 1);
	struct annotations *of = annotations_of(tracer, task->process);

	if (!of || of->over)
		return;
	switch (row->annotates) {
	case HOOK_ANNOTATES_BEGIN:
		begin(tracer, task, of, regs);
		break;
	case HOOK_ANNOTATES_END:
		end(tracer, task, of, first);
		break;
	case HOOK_ANNOTATES_UPDATE_INT:
		update(tracer, task, of, regs, false);
		break;
	case HOOK_ANNOTATES_UPDATE_TEXT:
		update(tracer, task, of, regs, true);
		break;
	case HOOK_ANNOTATES_INIT:
		init(tracer, task, of, regs);
		break;
	case HOOK_ANNOTATES_FINI:
		finish(tracer, task, of);
		break;
	case HOOK_ANNOTATES_APP_INT:
		set(tracer, task, &of->app.args, &of->app.count, first, second, false);
		break;
	case HOOK_ANNOTATES_APP_TEXT:
		set(tracer, task, &of->app.args, &of->app.count, first, second, true);
		break;
	case HOOK_ANNOTATES_USED:
		set(tracer, task, &of->used.args, &of->used.count, first, 1, false);
		break;
	default:
		break;
	}
}

/* @return whether a variable of the process's environment is set, to `value` unless that is NULL. */
static bool is_set(const struct buf *environment, const char *name, const char *value)
{
	size_t len = strlen(name);

	for (size_t at = 0; at < environment->len; at += strlen(environment->data + at) + 1) {
		const char *text = environment->data + at;
		if (strncmp(text, name, len) == 0 && text[len] == '=')
			return value ? strcmp(text + len + 1, value) == 0 : text[len + 1];
	}
	return false;
}

bool annotations_are_theirs(struct tracer *tracer, struct task *task)
{
	struct process *process = task->process;

	if (!process->library_known) {
		process->library_known = true;
		process->library_records =
			proc_read_all(task->tid, "environ", &tracer->text) == 0 &&
			(is_set(&tracer->text, "DFTRACER_ENABLE", "1") ||
			 is_set(&tracer->text, "DFTRACER_CONFIGURATION", NULL));
	}
	if (process->library_records && !tracer->hooks->library_said) {
		tracer->hooks->library_said = true;
		tracer_warn(
			tracer,
			"DFTracer's own library is part of the program and records it, so its "
			"annotations are left to that; without DFTRACER_ENABLE they are written "
			"here");
	}
	return process->library_records;
}
