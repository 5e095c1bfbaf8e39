#include "tracer/hooks/library.h"

#include "tracer/memory.h"
#include "tracer/resolve.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>

/* Arguments in registers; the others stand above the return address. */
#define IN_REGISTERS 6

_Static_assert(sizeof(((struct frame *)NULL)->values) / sizeof(uint64_t) == HOOK_MAX_ARGS,
	       "a frame has room for all arguments");

const struct hook_library *hook_library(enum hook_layer layer)
{
	static const struct hook_library *const libraries[HOOK_LAYERS] = {
		[HOOK_MPI] = &hook_mpi,
		[HOOK_HDF5] = &hook_hdf5,
	};

	return layer < HOOK_LAYERS ? libraries[layer] : NULL;
}

int library_argument(const struct hook_row *row, const char *name)
{
	for (int n = 0; row->args[n].kind != HOOK_A_END; n++) {
		if (strcmp(row->args[n].name, name) == 0)
			return n;
	}
	return -1;
}

int library_next(const struct hook_row *row, enum hook_arg_kind kind, int after)
{
	int n = 0;

	for (; row->args[n].kind != HOOK_A_END; n++) {
		if (n > after && row->args[n].kind == kind)
			return n;
	}
	return -1;
}

bool library_read(const struct library_call *call, uint64_t address, void *to, size_t size)
{
	return address && memory_read(call->tracer, call->task, address, to, size) == (ssize_t)size;
}

/* @return what stands in integer argument `n` of the machine's convention. */
static uint64_t raw(const struct library_call *call, const struct arch_regs *regs, unsigned n)
{
	uint64_t value = 0;

	if (n < IN_REGISTERS)
		return arch_regs_function_arg(regs, n);
	library_read(call, call->frame->call.sp + 8 + 8UL * (n - IN_REGISTERS), &value, 8);
	return value;
}

static size_t size_of(const struct library_call *call, enum hook_arg_kind kind)
{
	if (kind == HOOK_A_COUNT && call->row->large)
		return 8;
	bool handle = kind == HOOK_A_TYPE || kind == HOOK_A_COMM || kind == HOOK_A_FILE ||
		      kind == HOOK_A_HANDLE;
	if (handle && library_is_fortran(call))
		return 4;
	return hook_kinds[kind].size;
}

static uint64_t widen(uint64_t value, size_t size, bool is_signed)
{
	if (size == 8)
		return value;
	return is_signed ? (uint64_t)(int64_t)(int32_t)value : (uint32_t)value;
}

/* The string at `address`; of Fortran `len` bytes, where the blanks at the end are none of it. */
static void copy_string(const struct library_call *call, int n, uint64_t address, bool bounded,
			uint64_t len)
{
	struct call *c = &call->frame->call;
	struct call_data *data = &c->data[n];
	struct buf *bytes = &c->bytes;

	if (n >= IN_REGISTERS || !address)
		return;
	data->offset = bytes->len;
	if (!bounded) {
		if (memory_read_string(call->tracer, call->task, address, PATH_MAX, bytes) == 0)
			data->state = DATA_COPIED;
	} else if (len <= PATH_MAX) {
		char *to = buf_reserve(bytes, len);
		if (to && (len == 0 || library_read(call, address, to, len))) {
			while (len && to[len - 1] == ' ')
				len--;
			bytes->len += len;
			data->state = DATA_COPIED;
		}
	}
	data->len = bytes->len - data->offset;
}

static void read_arguments(const struct library_call *call, const struct arch_regs *regs)
{
	const struct hook_arg *args = call->row->args;
	uint64_t *values = call->frame->values;
	bool fortran = library_is_fortran(call);
	unsigned at = 0;
	int count = 0;

	for (; count < HOOK_MAX_ARGS - 1 && args[count].kind != HOOK_A_END; count++) {
		const struct hook_kind *kind = &hook_kinds[args[count].kind];
		size_t size = size_of(call, args[count].kind);
		values[count] = 0;
		if (!fortran && args[count].kind == HOOK_A_DOUBLE)
			continue;
		if (fortran && args[count].kind == HOOK_A_C_ONLY)
			continue;
		uint64_t value = raw(call, regs, at++);
		if (fortran && kind->by_value) {
			uint64_t there = 0;
			library_read(call, value, &there, size);
			value = there;
		}
		values[count] = kind->by_value ? widen(value, size, kind->is_signed) : value;
		/* The array's address stands first in its descriptor. */
		if (call->form == HOOK_FORM_DESCRIPTORS && args[count].kind == HOOK_A_BUFFER)
			library_read(call, value, &values[count], 8);
	}
	if (fortran && call->row->result == HOOK_R_CODE)
		values[count] = raw(call, regs, at++);
	for (int n = 0; n < count; n++) {
		if (hook_kinds[args[n].kind].is_string)
			copy_string(call, n, values[n], fortran,
				    fortran ? raw(call, regs, at++) : 0);
	}
}

static struct library_call call_of(struct tracer *tracer, struct task *task, struct frame *frame)
{
	return (struct library_call){
		.tracer = tracer,
		.task = task,
		.frame = frame,
		.row = frame->hook->row,
		.form = frame->hook->form,
		.state = &task->mm->hooks->states[frame->hook->row->layer],
		.inner = frame->inner,
	};
}

void library_begin(struct tracer *tracer, struct task *task, struct frame *frame,
		   const struct arch_regs *regs, bool inner)
{
	frame->inner = inner;
	struct library_call call = call_of(tracer, task, frame);

	read_arguments(&call, regs);
	hook_library(call.row->layer)->begin(&call);
}

void library_variables(const struct library_call *call, object_variable_fn *each, void *data)
{
	const struct modules *modules = &call->task->mm->hooks->modules;

	for (size_t i = 0; i < modules->count; i++) {
		const struct module *module = &modules->items[i];
		const struct hook_object *object =
			module->object ? hook_object_known(call->tracer->hooks, module->object)
				       : NULL;
		for (size_t v = 0; object && v < object->nvariables; v++) {
			if (object->variables[v].layer == call->row->layer)
				each(data, object->variables[v].name,
				     object->variables[v].address + module->bias);
		}
	}
}

const char *library_text(const struct library_call *call, int n, size_t *len)
{
	if (n < 0 || n >= IN_REGISTERS || call->frame->call.data[n].state != DATA_COPIED)
		return NULL;
	*len = call->frame->call.data[n].len;
	return call_bytes(&call->frame->call, (unsigned)n);
}

void library_set_path(const struct library_call *call, int n)
{
	size_t len = 0;
	const char *text = library_text(call, n, &len);
	bool wanted;

	if (!text || call->frame->path)
		return;
	call->frame->path = resolve_path(call->tracer, call->task, AT_FDCWD, text, len,
					 &call->frame->call, &wanted);
}

void library_set_file(const struct library_call *call, struct name *name)
{
	if (!call->frame->path && name)
		call->frame->path = name_ref(name);
}

void library_set_size(const struct library_call *call, uint64_t bytes)
{
	call->frame->size_sum = bytes;
	call->frame->has_size = true;
}

static void add_arguments(const struct library_call *call, struct event *event)
{
	const struct hook_library *library = hook_library(call->row->layer);
	const struct hook_arg *args = call->row->args;
	size_t len = 0;

	for (int n = 0; args[n].kind != HOOK_A_END; n++) {
		const struct hook_kind *kind = &hook_kinds[args[n].kind];
		if (!kind->written && !(library->writes && library->writes(call, n)))
			continue;
		const char *text = library_text(call, n, &len);
		if (kind->is_string && text)
			decode_text(event, args[n].name, text, len);
		else if (!kind->is_string && kind->is_signed)
			decode_int(event, args[n].name, (int64_t)library_value(call, n));
		else if (!kind->is_string)
			decode_uint(event, args[n].name, library_value(call, n));
	}
}

/* Fortran functions return their code in the last argument, which its newer module makes optional. */
static bool read_result(const struct library_call *call, int64_t *result)
{
	int count = 0;
	int32_t code;

	*result = call->frame->call.ret;
	if (call->row->result == HOOK_R_INT || call->row->result == HOOK_R_CODE)
		*result = (int32_t)*result;
	if (!library_is_fortran(call) || call->row->result != HOOK_R_CODE)
		return true;
	while (call->row->args[count].kind != HOOK_A_END)
		count++;
	if (!library_read(call, call->frame->values[count], &code, sizeof(code)))
		return false;
	*result = code;
	return true;
}

static void add_result(const struct library_call *call, struct event *event)
{
	switch (call->row->result) {
	case HOOK_R_INT:
	case HOOK_R_CODE:
	case HOOK_R_LONG:
		decode_int(event, "ret", call->result);
		break;
	case HOOK_R_POINTER:
		if (call->result == 0)
			decode_int(event, "ret", -1);
		break;
	default:
		break;
	}
}

void library_end(struct tracer *tracer, struct task *task, struct frame *frame, struct event *event)
{
	struct library_call call = call_of(tracer, task, frame);
	bool over = frame->call.state == CALL_DONE && !frame->no_result;
	/* Without ierr the program says that it does not want to know; it goes on only if all went well. */
	bool told = over && read_result(&call, &call.result);

	if (over && !told)
		call.result = 0;
	call.done = over;
	if (event)
		add_arguments(&call, event);
	hook_library(call.row->layer)->end(&call, event);
	if (!event)
		return;
	if (frame->has_size)
		decode_uint(event, "size_sum", frame->size_sum);
	if (told)
		add_result(&call, event);
}
