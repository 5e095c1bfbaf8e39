#include "tracer/hooks/annotate.h"

#include "base/proc.h"
#include "tracer/decode.h"
#include "tracer/hooks/internal.h"
#include "tracer/image.h"
#include "tracer/memory.h"

#include <stdlib.h>
#include <string.h>

/* Longer texts are cut. */
#define NAME_MOST  4096
#define VALUE_MOST (64U << 10)

/* What the program calls an event. */
enum {
	KIND_EVENT = 0,
	KIND_METADATA = 1,
};

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
		.first = region->args.items,
		.nfirst = region->args.count,
	};

	if (region->inherited || !region_is_within_parent(region))
		decode_int(&event, "overlap", 1);
	if (cut)
		decode_int(&event, "cut", 1);
	trace_event(trace, &event, true);
}

/* The region is over: its event or line. */
static void end_region(struct process *process, const struct region *region, uint64_t end, bool cut)
{
	if (region->metadata)
		trace_custom(process->trace, region->tid, region->name, region->category);
	else
		write_region(process->trace, region, process->pid, end, cut);
	region_remove(process->annotations, region->handle);
}

/* Ends all that is open. What a child has inherited and never ended is its parent's. */
static void end_all(struct process *process, uint64_t end)
{
	const struct region *region;

	while ((region = process->annotations->newest)) {
		if (region->inherited)
			region_remove(process->annotations, region->handle);
		else
			end_region(process, region, end, true);
	}
}

void annotations_finish(struct tracer *tracer, struct process *process, struct trace_end *end,
			uint64_t now)
{
	struct annotations *of = process->annotations;

	if (!of)
		return;
	if (!tracer->pass_through)
		end_all(process, now);
	end->app = args_json(&of->app, &of->app_json);
	end->used = args_json(&of->used, &of->used_json);
}

/* Cuts a text that went on, and not in the middle of a character. */
static void cut_text(struct buf *text, size_t len)
{
	for (int i = 0; i < 3 && len && (text->data[len - 1] & 0xc0) == 0x80; i++)
		len--;
	if (len && (text->data[len - 1] & 0xc0) == 0xc0)
		len--;
	text->len = len;
}

/* @return a copy of the program's string, of no more than `most` bytes; NULL when it cannot be read. */
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
		cut_text(text, most);
	}
	const char *copy = buf_str(text);
	return copy ? strdup(copy) : NULL;
}

/* Same for what an event must have. @return NULL when out of memory. */
static char *read_name(struct tracer *tracer, struct task *task, uint64_t address, size_t most)
{
	char *name = read_text(tracer, task, address, most);

	return name ? name : strdup("unknown");
}

/* Fills a region that has just been added. @return 0, or -1 with errno ENOMEM. */
static int describe(struct tracer *tracer, struct task *task, struct region *region,
		    const struct arch_regs *regs)
{
	region->metadata = (int)arch_regs_function_arg(regs, 3) == KIND_METADATA;
	region->type = (unsigned char)arch_regs_function_arg(regs, 4);
	region->tid = task->tid;
	region->name = read_name(tracer, task, arch_regs_function_arg(regs, 1), NAME_MOST);
	region->category = read_name(tracer, task, arch_regs_function_arg(regs, 2),
				     region->metadata ? VALUE_MOST : NAME_MOST);
	return region->name && region->category ? 0 : -1;
}

static void begin(struct tracer *tracer, struct task *task, struct annotations *of,
		  const struct arch_regs *regs)
{
	uint64_t handle = arch_regs_function_arg(regs, 0);
	int kind = (int)arch_regs_function_arg(regs, 3);
	struct frame self = {.call.sp = arch_regs_sp(regs), .handlers = task->handlers};
	struct trace *trace = image_trace(tracer, task);
	struct event event;

	if (!trace)
		return;
	/* An object that was left by longjmp: its memory is another's now. */
	const struct region *left = map_get(&of->regions, handle);
	if (left)
		end_region(task->process, left, tracer->now, true);
	/* The library writes nothing for others. */
	if (kind != KIND_EVENT && kind != KIND_METADATA)
		return;
	struct region *region = region_add(of, handle);
	if (!region || describe(tracer, task, region, regs) < 0) {
		region_remove(of, handle);
		tracer_end_recording(tracer, "out of memory");
		return;
	}
	decode_name_thread(tracer, trace, task->tid);
	if (region->metadata)
		return;
	region->id = event.id = trace_next_id(trace);
	decode_nest(task, &event, &self);
	region->parent = event.parent;
	region->level = event.level;
	region_enter(region, task);
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
	end_region(task->process, region, tracer->now, false);
}

/* Sets a key to the number or, with `is_text`, to the string in `value`. */
static void set(struct tracer *tracer, struct task *task, struct args *args, uint64_t key,
		uint64_t value, bool is_text)
{
	char *name = read_text(tracer, task, key, NAME_MOST);
	char *text = name && is_text ? read_text(tracer, task, value, VALUE_MOST) : NULL;

	if (name && (text || !is_text) && args_set(args, name, (int)value, text) < 0)
		task->process->lost[LOST_TRUNCATED]++;
	free(name);
}

static void update(struct tracer *tracer, struct task *task, struct annotations *of,
		   const struct arch_regs *regs, bool is_text)
{
	struct region *region = map_get(&of->regions, arch_regs_function_arg(regs, 0));

	if (region)
		set(tracer, task, &region->args, arch_regs_function_arg(regs, 1),
		    arch_regs_function_arg(regs, 2), is_text);
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
	if (image_trace(tracer, task))
		end_all(task->process, tracer->now);
	of->over = true;
}

void annotate(struct tracer *tracer, struct task *task, const struct hook_row *row,
	      const struct arch_regs *regs)
{
	uint64_t first = arch_regs_function_arg(regs, 0);
	uint64_t second = arch_regs_function_arg(regs, 1);
	struct process *process = task->process;

	if (!process->annotations)
		process->annotations = calloc(1, sizeof(*process->annotations));
	struct annotations *of = process->annotations;
	if (!of)
		tracer_end_recording(tracer, "out of memory");
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
		set(tracer, task, &of->app, first, second, false);
		break;
	case HOOK_ANNOTATES_APP_TEXT:
		set(tracer, task, &of->app, first, second, true);
		break;
	case HOOK_ANNOTATES_USED:
		set(tracer, task, &of->used, first, 1, false);
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
