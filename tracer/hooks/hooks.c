/* The observer: hooks are placed where code is mapped, and their hits are told from the program's own
 * breakpoints. */
#include "tracer/hooks/hooks.h"

#include "base/proc.h"
#include "tracer/hooks/library.h"
#include "tracer/memory.h"
#include "tracer/remote.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <sys/ptrace.h>

/* ns of a stop that the tracer does not see: the switches to it and back. A hooked call has two. */
#define STOP_COST 4000

/* ns: less than this is nobody's concern. */
#define HOT_LEAST 100000000

static struct hooks *hooks_of(struct observer *observer)
{
	return (struct hooks *)observer;
}

/* A static program that has lost its names: its streams, if it has any, cannot be found. */
static void say_unhooked(struct hooks *hooks, struct tracer *tracer, struct task *task)
{
	const struct hook_space *space = task->mm->hooks;

	if (!hooks->options.written[HOOK_STDIO] || !space || space->modules.count != 1 ||
	    !space->modules.items[0].object ||
	    object_names(space->modules.items[0].object) != OBJECT_NO_NAMES ||
	    !object_has_c_start(space->modules.items[0].object))
		return;
	task->process->lost[LOST_UNHOOKED_STDIO]++;
	if (hooks->no_symbols_said)
		return;
	hooks->no_symbols_said = true;
	tracer_warn(
		tracer,
		"%s has no symbols, so its stdio calls show as system calls only; keep its symbols "
		"(no strip) or name a directory with its debug file by --symbols",
		space->modules.items[0].path);
}

/* A program that holds a library whose names it has lost. */
static void say_nameless(struct hooks *hooks, struct tracer *tracer, struct task *task)
{
	static const enum lost lost[HOOK_LAYERS] = {
		[HOOK_MPI] = LOST_UNHOOKED_MPI,
		[HOOK_HDF5] = LOST_UNHOOKED_HDF5,
	};
	const struct module *program = modules_find(&task->mm->hooks->modules, task->mm->entry);
	const struct hook_object *object =
		program && program->object ? hook_object_known(hooks, program->object) : NULL;

	/* With all names a library that is there has been found. */
	if (!object || object_names(program->object) >= OBJECT_ALL_NAMES)
		return;
	for (unsigned layer = HOOK_MPI; layer <= HOOK_HDF5; layer++) {
		const char *const *marks = hook_library(layer)->marks;
		if (!hooks->names[layer] || (object->present & 1U << layer))
			continue;
		while (marks && *marks && !object_has_text(program->object, *marks))
			marks++;
		if (!marks || !*marks)
			continue;
		task->process->lost[lost[layer]]++;
		if (!(hooks->nameless_said & 1U << layer))
			tracer_warn(
				tracer,
				"%s holds %s without its symbols, so its calls are not seen; keep "
				"the symbols (no strip) or name a directory with its debug file by "
				"--symbols",
				program->path, layer == HOOK_MPI ? "MPI" : "HDF5");
		hooks->nameless_said |= 1U << layer;
	}
}

static void note_stack(struct task *task)
{
	struct arch_regs regs;

	if (arch_regs_get(task->tid, &regs) == 0)
		task->stack_top = arch_regs_sp(&regs);
}

static void thread_start(struct observer *observer, struct tracer *tracer, struct task *task)
{
	(void)observer;
	(void)tracer;
	note_stack(task);
}

static void exec_stop(struct observer *observer, struct tracer *tracer, struct task *task)
{
	struct hooks *hooks = hooks_of(observer);

	if (task->process->excluded)
		return;
	forced_begin(task);
	note_stack(task);
	hook_points_place(hooks, tracer, task, NULL);
	say_unhooked(hooks, tracer, task);
	if (task->mm->hooks)
		say_nameless(hooks, tracer, task);
}

static void mapped(struct observer *observer, struct tracer *tracer, struct task *task,
		   uint64_t address, uint64_t length)
{
	const struct stretch mapped = {address, address + length};

	if (!task->process->excluded)
		hook_points_place(hooks_of(observer), tracer, task, &mapped);
}

int hook_access_read(void *data, uint64_t address, void *to, size_t len)
{
	struct hook_access *a = data;
	return memory_read(a->tracer, a->task, address, to, len) == (ssize_t)len ? 0 : -1;
}

int hook_access_write(void *data, uint64_t address, const void *from, size_t len)
{
	struct hook_access *a = data;
	return memory_write(a->task, address, from, len);
}

/* Does what the breakpoint has displaced, or sends the thread to where its copy is. */
static void do_displaced(struct tracer *tracer, struct task *task, struct hook_point *point,
			 struct arch_regs *regs)
{
	struct hook_access access = {tracer, task};

	if (point->stub) {
		arch_regs_set_ip(regs, point->stub + HOOK_STUB_END);
		return;
	}
	if (point->slot) {
		point->slot_used = true;
		arch_regs_set_ip(regs, point->slot);
		return;
	}
	if (arch_emulate(regs, &point->insn, point->address, hook_access_read, hook_access_write,
			 &access) == 0)
		return;
	/* Its stack may have to grow first, or it has to fault: both the processor's own work. */
	uint64_t slot = hook_points_slot(tracer, task, point);
	if (slot) {
		point->slot_used = true;
		arch_regs_set_ip(regs, slot);
	}
}

bool hook_moment_now(struct tracer *tracer, struct task *task, const struct arch_regs *regs,
		     struct hook_moment *at)
{
	*at = (struct hook_moment){
		.regs = regs,
		.time = tracer->now,
		.sp = arch_regs_sp(regs),
		.result = arch_regs_function_result(regs),
	};
	for (unsigned n = 0; n < 6; n++)
		at->args[n] = arch_regs_function_arg(regs, n);
	return memory_read(tracer, task, at->sp, &at->return_address, 8) == 8;
}

void hook_point_reached(struct tracer *tracer, struct task *task, const struct hook_point *point,
			const struct hook_moment *at)
{
	const struct hook_place *place = point->place;

	if (place && place->function)
		hook_call_begin(tracer, task, place->function, at);
	if (place && place->ret)
		hook_call_end(tracer, task, at);
}

/* At an indirect jump out of a function: it ends where that returns to. */
static void leave_by_jump(struct hooks *hooks, struct tracer *tracer, struct task *task,
			  const struct arch_regs *regs)
{
	struct hook_moment at;

	if (!hook_moment_now(tracer, task, regs, &at))
		return;
	struct frame *frame = hook_call_at(task, at.sp, at.return_address);
	if (frame && !hook_points_plant_return(hooks, tracer, task, at.return_address)) {
		frame->no_result = true;
		at.result = 0;
		hook_call_end(tracer, task, &at);
	}
}

uint64_t hooks_put_data(struct tracer *tracer, struct task *task, const void *bytes, size_t len)
{
	return hook_points_data(tracer, task, task->mm->hooks, bytes, len);
}

static void hit(struct hooks *hooks, struct tracer *tracer, struct task *task,
		struct hook_point *point, struct arch_regs *regs)
{
	const struct hook_place *place = point->place;
	struct hook_moment at;
	bool has_return = hook_moment_now(tracer, task, regs, &at);

	if (point->waiting) {
		/* The return address has been popped here. */
		struct hook_moment popped = at;
		popped.sp -= 8;
		if (memory_read(tracer, task, popped.sp, &popped.return_address, 8) == 8 &&
		    hook_call_end(tracer, task, &popped))
			point->waiting--;
	}
	if (place && place->function)
		hook_points_limit(hooks, tracer, task, point);
	if (has_return)
		hook_point_reached(tracer, task, point, &at);
	if (place && place->brief)
		hook_points_end_brief(tracer, task);
	bool leaves = place && place->tail;
	/* A conditional jump leaves only if it is taken. */
	if (leaves && point->insn.kind == INSN_JCC)
		leaves = arch_takes_jump(regs, &point->insn);
	if (leaves)
		leave_by_jump(hooks, tracer, task, regs);
	do_displaced(tracer, task, point, regs);
	if (!place && point->waiting == 0)
		hook_points_drop_return(tracer, task, point);
}

/* The function of an entry. A point may have gone with its hit. */
static struct hook_function *point_function(const struct task *task, uint64_t address)
{
	const struct hook_point *point = map_get(&task->mm->hooks->points, address);
	size_t offset;

	if (!point)
		point = hook_point_of_stub(task->mm->hooks, address, &offset);
	return point && point->place ? point->place->function : NULL;
}

void hooks_tick(struct tracer *tracer, struct task *task)
{
	if (tracer->hooks && task->mm->hooks)
		hook_points_restore(tracer, task);
}

/* @return the point whose breakpoint lies at the address, NULL: none. */
static struct hook_point *point_at(const struct hook_space *space, uint64_t address)
{
	struct hook_point *point = map_get(&space->points, address);
	size_t offset;

	/* Where a jump lies it is not ours. */
	if (point)
		return point->stub ? NULL : point;
	point = hook_point_of_stub(space, address, &offset);
	return point && offset == HOOK_STUB_BREAKPOINT ? point : NULL;
}

static bool before_signal(struct observer *observer, struct tracer *tracer, struct task *task,
			  const siginfo_t *info)
{
	struct hook_space *space = task->mm->hooks;
	struct arch_regs regs;
	unsigned char byte;

	bool pending = info->si_code != SI_KERNEL && forced_is_blocked(task, SIGTRAP);
	if (info->si_signo != SIGTRAP || (info->si_code != SI_KERNEL && !pending) || !space ||
	    arch_regs_get(task->tid, &regs) < 0)
		return false;
	uint64_t address = arch_regs_ip(&regs) - ARCH_BREAKPOINT_LEN;
	struct hook_point *point = point_at(space, address);
	if (!point && pending)
		return false;
	if (!point) {
		/* One that was taken away between this thread's hit and now has left other bytes. */
		if (memory_read(tracer, task, address, &byte, 1) != 1 || byte == ARCH_BREAKPOINT)
			return false;
		arch_regs_set_ip(&regs, address);
		arch_regs_set(task->tid, &regs);
		forced_restore(tracer, task, info, hooks_put_data);
		return true;
	}
	arch_regs_set_ip(&regs, address);
	bool in_stub = address != point->address;
	/* A hit that came in before the breakpoint was lifted: the instruction is there again. */
	if (!point->lifted || in_stub)
		hit(hooks_of(observer), tracer, task, point, &regs);
	/* ESRCH: it was killed in this stop. */
	arch_regs_set(task->tid, &regs);
	forced_restore(tracer, task, info, hooks_put_data);
	if (in_stub)
		recorder_hook_stopped(tracer, task);
	struct hook_function *function = point_function(task, address);
	if (function)
		function->cost += clock_now(&tracer->clock) - tracer->now + STOP_COST;
	return true;
}

/* @return 0, or -1 with errno ENOMEM, or EINVAL for an expression that the launcher should have refused. */
static int compile_patterns(struct hooks *hooks)
{
	hooks->regexes = calloc(hooks->options.npatterns + 1, sizeof(*hooks->regexes));
	for (size_t i = 0; hooks->regexes && i < hooks->options.npatterns; i++) {
		const char *pattern = hooks->options.patterns[i].function;
		size_t len = strlen(pattern);
		if (len < 2 || pattern[0] != '/' || pattern[len - 1] != '/')
			continue;
		char *text = strndup(pattern + 1, len - 2);
		int failed =
			text ? regcomp(&hooks->regexes[i].regex, text, REG_EXTENDED | REG_NOSUB)
			     : REG_ESPACE;
		free(text);
		if (failed) {
			errno = failed == REG_ESPACE ? ENOMEM : EINVAL;
			return -1;
		}
		hooks->regexes[i].used = true;
	}
	return hooks->regexes ? 0 : -1;
}

bool hooks_are_wanted(const struct hook_options *options)
{
	for (unsigned i = 0; i < HOOK_LAYERS; i++) {
		if (options->written[i])
			return true;
	}
	return options->npatterns > 0;
}

/* @return what the rows that are written make use of. */
static unsigned used_by(enum hook_layer layer, const bool *written, bool *any)
{
	const struct hook_table *table = &hook_tables[layer];
	const struct hook_library *library = hook_library(layer);
	unsigned used = 0;

	*any = false;
	for (size_t i = 0; i < table->count; i++) {
		*any |= written[i];
		if (written[i] && library && library->uses)
			used |= library->uses(&table->rows[i]);
	}
	return used;
}

void hooks_choose(enum hook_layer layer, const bool *written, bool *wanted)
{
	const struct hook_table *table = &hook_tables[layer];
	bool any;
	unsigned used = used_by(layer, written, &any) | HOOK_BRIEFLY;

	for (size_t i = 0; i < table->count; i++) {
		const struct hook_row *row = &table->rows[i];
		/* Without exit what streams write at the end would look like the program's. */
		wanted[i] = any && (written[i] || (row->serves & used) ||
				    row->fields[0].kind == HOOK_FLUSHES);
	}
}

/* @return 0, or -1 with errno ENOMEM. */
static int choose_rows(struct hooks *hooks, enum hook_layer layer)
{
	const bool *written = hooks->options.written[layer];
	bool has_names = hook_library(layer) != NULL;

	if (!written)
		return 0;
	hooks->wanted[layer] = calloc(hook_tables[layer].count, sizeof(bool));
	hooks->names[layer] = has_names ? hook_names_new(layer) : NULL;
	if (!hooks->wanted[layer] || (has_names && !hooks->names[layer]))
		return -1;
	bool any;
	hooks_choose(layer, written, hooks->wanted[layer]);
	hooks->used[layer] = used_by(layer, written, &any);
	return 0;
}

struct hooks *hooks_new(const struct hook_options *options, struct objects *objects)
{
	struct hooks *hooks = calloc(1, sizeof(*hooks));

	if (!hooks)
		return NULL;
	hooks->options = *options;
	hooks->observer = (struct observer){
		.exec_stop = exec_stop,
		.thread_start = thread_start,
		.mapped = mapped,
		.before_signal = before_signal,
	};
	hooks->objects = objects;
	hooks->decoder = insn_decoder_new();
	bool chosen = true;
	for (unsigned i = 0; i < HOOK_LAYERS; i++)
		chosen &= choose_rows(hooks, i) == 0;
	if (!chosen || !hooks->decoder || compile_patterns(hooks) < 0) {
		hooks_free(hooks);
		return NULL;
	}
	return hooks;
}

void hooks_use_recorder(struct hooks *hooks)
{
	hooks->records = true;
}

struct observer *hooks_observer(struct hooks *hooks)
{
	return &hooks->observer;
}

/* Names what costs more than a tenth of the run, and what was not seen. */
static void report_hot(const struct hook_object *object, uint64_t run, struct buf *out)
{
	for (size_t i = 0; i < object->nfunctions; i++) {
		const struct hook_function *f = &object->functions[i];
		if (f->dropped)
			buf_addf(out, "; dropped:%s about %llu calls (--hook-limit)", f->name,
				 (unsigned long long)f->dropped);
		if (2 * f->cost > run / 10 && 2 * f->cost > HOT_LEAST)
			buf_addf(out,
				 "; hot: %s, %llu calls, %llu %% of the run (%s%s%s leaves it out)",
				 f->name, (unsigned long long)f->calls,
				 (unsigned long long)(2 * f->cost * 100 / run),
				 f->row ? "-e '!" : "a narrower -x", f->row ? f->name : "",
				 f->row ? "'" : "");
	}
}

/* How many of what is hooked each layer has. */
static void report_layers(const struct hooks *hooks, struct buf *out)
{
	const char *before = " (";

	for (unsigned i = 0; i <= HOOK_LAYERS; i++) {
		const struct hook_census *census = &hooks->census[i];
		if (!census->found)
			continue;
		buf_addf(out, "%s%s %lu of %lu", before,
			 i < HOOK_LAYERS ? hook_tables[i].name : "func", census->hooked,
			 census->found);
		before = ", ";
	}
	buf_add_char(out, ')');
}

static void report_inside(const struct hook_inside *inside, struct buf *out)
{
	static const char *const whys[HOOK_OUT_COUNT] = {
		[HOOK_OUT_LAYER] = "arguments that have to be read",
		[HOOK_OUT_TEXT] = "strings that have to be read",
		[HOOK_OUT_STREAM] = "a stream that it makes",
		[HOOK_OUT_LIBC] = "streams of another C library",
		[HOOK_OUT_CHOICE] = "a choice of functions",
		[HOOK_OUT_BRIEF] = "hooked for a while only",
	};

	buf_addf(out, "; recorded inside the program: %lu of %lu functions, %lu of %lu exits",
		 inside->functions, inside->functions + inside->entries, inside->jumps,
		 inside->jumps + inside->exits);
	if (inside->records)
		buf_addf(out, ", %llu records", (unsigned long long)inside->records);
	for (int i = 0; i < HOOK_OUT_COUNT; i++) {
		if (inside->outside[i])
			buf_addf(out, ", outside %lu: %s", inside->outside[i], whys[i]);
	}
}

/* A pattern without a function: a mistake in it, or a file that does not tell its functions. */
static void report_unmatched(const char *pattern, const struct hook_regex *regex, struct buf *out)
{
	buf_addf(out, " (-x %s matched no function", pattern);
	if (regex->nameless)
		buf_addf(out, "; %s %s", regex->nameless,
			 regex->exports ? "shows only what it exports" : "has no symbols");
	if (regex->more_nameless)
		buf_addf(out, ", nor have %u more files", regex->more_nameless);
	buf_add_char(out, ')');
}

void hooks_report(const struct hooks *hooks, uint64_t run, bool verbose, struct buf *out)
{
	unsigned long found = 0;
	unsigned long hooked = 0;
	struct map_slot *slot;
	size_t at = 0;

	for (unsigned i = 0; i <= HOOK_LAYERS; i++) {
		found += hooks->census[i].found;
		hooked += hooks->census[i].hooked;
	}
	if (found || hooks->options.npatterns)
		buf_addf(out, "hooks %lu of %lu", hooked, found);
	if (found && verbose)
		report_layers(hooks, out);
	for (size_t i = 0; i < hooks->options.npatterns; i++) {
		if (!hooks->regexes[i].matched)
			report_unmatched(hooks->options.patterns[i].function, &hooks->regexes[i],
					 out);
	}
	if (hooks->beyond)
		buf_addf(out, " (%lu more beyond --max-hooks left out)", hooks->beyond);
	while (run && (slot = map_next(&hooks->hook_objects, &at))) {
		for (const struct hook_object *o = slot->value; o; o = o->next)
			report_hot(o, run, out);
	}
	if (verbose && hooks->records && found)
		report_inside(&hooks->inside, out);
	if (verbose && hooks->reasons.len) {
		buf_add_str(out, "; refused: ");
		buf_add(out, hooks->reasons.data, hooks->reasons.len);
	}
}

static void describe(const char *key, const struct hook_census *census, struct trace *trace)
{
	char text[64];

	if (!census->found)
		return;
	snprintf(text, sizeof(text), "%lu of %lu", census->hooked, census->found);
	trace_property(trace, key, text);
}

void hooks_describe(const struct hooks *hooks, struct trace *trace)
{
	char key[32];

	for (unsigned i = 0; i < HOOK_LAYERS; i++) {
		snprintf(key, sizeof(key), "hooks:%s", hook_tables[i].name);
		describe(key, &hooks->census[i], trace);
	}
	describe("hooks:func", &hooks->census[HOOK_FUNC], trace);
}

void hooks_free(struct hooks *hooks)
{
	struct map_slot *slot;
	size_t at = 0;

	if (!hooks)
		return;
	while ((slot = map_next(&hooks->hook_objects, &at)))
		hook_object_free(slot->value);
	map_free(&hooks->hook_objects);
	for (size_t i = 0; hooks->regexes && i < hooks->options.npatterns; i++) {
		if (hooks->regexes[i].used)
			regfree(&hooks->regexes[i].regex);
		free(hooks->regexes[i].nameless);
	}
	free(hooks->regexes);
	for (unsigned i = 0; i < HOOK_LAYERS; i++) {
		hook_names_free(hooks->names[i]);
		free(hooks->wanted[i]);
	}
	insn_decoder_free(hooks->decoder);
	buf_free(&hooks->reasons);
	free(hooks);
}
