/* Datatypes of HDF5: how many bytes an element has in memory. */
#include "tracer/hooks/hdf5.h"

#include <stdlib.h>
#include <string.h>

/* H5T_VARIABLE as a size, H5T_class_t. */
#define VARIABLE       UINT64_MAX
#define CLASS_STRING   3
#define CLASS_COMPOUND 6
#define CLASS_VLEN     9
#define CLASS_ARRAY    10

struct own_type {
	const char *variable;
	uint64_t size;
};

#define TYPE(variable, size) {#variable, size},
static const struct own_type own_types[] = {
#include "symbols/hooks/hdf5-types.def"
};
#undef TYPE

static int compare_own(const void *key, const void *element)
{
	const struct own_type *type = element;

	return strcmp(key, type->variable);
}

struct reading {
	const struct library_call *call;
	struct h5_state *state;
};

static void put_plain(struct h5_state *state, uint64_t id, const struct own_type *own)
{
	struct h5_object *object = h5_put(state, id, H5_TYPE);
	bool text = strcmp(own->variable, "H5T_C_S1_g") == 0 ||
		    strcmp(own->variable, "H5T_FORTRAN_S1_g") == 0;

	if (object)
		object->type = (struct h5_type){.known = true,
						.size = own->size,
						.packed = own->size,
						.text = text,
						.plain = !text};
}

static void read_own(const struct reading *reading, const char *name, uint64_t address)
{
	const struct own_type *type =
		bsearch(name, own_types, sizeof(own_types) / sizeof(*own_types), sizeof(*own_types),
			compare_own);
	int64_t id;

	/* Several names may be one type. A library that is loaded and not used has none yet. */
	if (type && library_read(reading->call, address, &id, sizeof(id)) && id > 0 &&
	    !h5_get(reading->state, (uint64_t)id)) {
		put_plain(reading->state, (uint64_t)id, type);
		reading->state->types_known = true;
	}
}

static void read_module(const struct reading *reading, const struct module *module)
{
	const struct hook_object *object =
		module->object ? hook_object_known(reading->call->tracer->hooks, module->object)
			       : NULL;

	for (size_t i = 0; object && i < object->nvariables; i++)
		read_own(reading, object->variables[i].name,
			 object->variables[i].address + module->bias);
}

/* The library keeps the identifiers of its own types in variables, and fills them when it is first used. A program
 * that refers to them has its own copy, which is then the one that is filled. Other copies of the library have
 * other identifiers. */
static void read_own_types(const struct library_call *call, struct h5_state *state)
{
	const struct mm *mm = call->task->mm;
	const struct modules *modules = &mm->hooks->modules;
	const struct module *program = modules_find(modules, mm->entry);
	struct reading reading = {call, state};

	if (program)
		read_module(&reading, program);
	for (size_t i = 0; i < modules->count; i++) {
		const struct module *module = &modules->items[i];
		if (module->object && module != program &&
		    hook_object_known(call->tracer->hooks, module->object) == state->library)
			read_module(&reading, module);
	}
}

struct h5_type h5_type_of(const struct library_call *call, struct h5_state *state, uint64_t id)
{
	const struct h5_object *object = h5_get(state, id);

	if (!object && !state->types_known) {
		read_own_types(call, state);
		object = h5_get(state, id);
	}
	if (!object)
		return (struct h5_type){0};
	/* Where a type is wanted a dataset stands for its own, in H5Tcopy. */
	return object->kind == H5_DATASET && object->shape ? object->shape->type : object->type;
}

/* What a call has made is of this type. */
static void put_type(const struct library_call *call, struct h5_state *state, struct h5_type type)
{
	struct h5_object *object = h5_put(state, (uint64_t)call->result, H5_TYPE);

	if (object)
		object->type = type;
}

/* @return the object of the type that the call is about, NULL: it is not known as one. */
static struct h5_object *subject(const struct library_call *call, const struct h5_state *state)
{
	struct h5_object *object = h5_get(state, library_value(call, 0));

	return object && object->kind == H5_TYPE ? object : NULL;
}

static struct h5_type subject_type(const struct library_call *call, struct h5_state *state)
{
	return h5_type_of(call, state, library_value(call, 0));
}

static void create(const struct library_call *call, struct h5_state *state)
{
	uint64_t size = h5_argument(call, "size");
	struct h5_type type = {.known = true, .size = size, .packed = size};

	type.variable = size == VARIABLE;
	type.text = h5_argument(call, "type") == CLASS_STRING;
	type.compound = h5_argument(call, "type") == CLASS_COMPOUND;
	/* Its members add to it. */
	if (type.compound)
		type.packed = 0;
	put_type(call, state, type);
}

static void copy(const struct library_call *call, struct h5_state *state)
{
	put_type(call, state, subject_type(call, state));
}

static void array_create(const struct library_call *call, struct h5_state *state)
{
	struct h5_type type = subject_type(call, state);
	unsigned rank = (unsigned)h5_argument(call, "ndims");
	uint64_t dims[H5_MAX_RANK];

	type.plain = type.text = type.compound = false;
	if (!h5_read_numbers(call, h5_argument(call, "dim"), dims, rank))
		type = (struct h5_type){0};
	for (unsigned d = 0; type.known && d < rank; d++) {
		if (__builtin_mul_overflow(type.size, dims[d], &type.size) ||
		    __builtin_mul_overflow(type.packed, dims[d], &type.packed))
			type.known = false;
	}
	put_type(call, state, type);
}

static void vlen_create(const struct library_call *call, struct h5_state *state)
{
	put_type(call, state, (struct h5_type){.known = true, .size = 16, .variable = true});
}

static void enum_create(const struct library_call *call, struct h5_state *state)
{
	struct h5_type type = subject_type(call, state);

	type.plain = false;
	put_type(call, state, type);
}

static void complex_create(const struct library_call *call, struct h5_state *state)
{
	struct h5_type type = subject_type(call, state);

	type.plain = false;
	type.size *= 2;
	type.packed *= 2;
	put_type(call, state, type);
}

/* The native form of a number of usual size and of a string is as large; that of another need not be. */
static void get_native(const struct library_call *call, struct h5_state *state)
{
	struct h5_type type = subject_type(call, state);

	bool same = type.known && (type.text || (type.plain && (type.size == 4 || type.size == 8)));
	if (!same)
		type = (struct h5_type){0};
	put_type(call, state, type);
}

/* One that comes out of a file or of another type. */
static void get_foreign(const struct library_call *call, struct h5_state *state)
{
	put_type(call, state, (struct h5_type){0});
}

/* The type of a dataset or an attribute, as it is in the file. */
static void get_of_object(const struct library_call *call, struct h5_state *state)
{
	const struct h5_object *object = h5_get(state, library_value(call, 0));

	put_type(call, state, object && object->shape ? object->shape->type : (struct h5_type){0});
}

static void set_size(const struct library_call *call, struct h5_state *state)
{
	struct h5_object *object = subject(call, state);
	uint64_t size = h5_argument(call, "size");

	if (!object)
		return;
	struct h5_type *type = &object->type;
	type->plain = false;
	if (size == VARIABLE) {
		type->known = type->variable = true;
	} else if (type->compound) {
		type->size = size;
	} else {
		*type = (struct h5_type){
			.known = true, .size = size, .packed = size, .text = type->text};
	}
}

/* More bits than there is room for make room. */
static void set_precision(const struct library_call *call, struct h5_state *state)
{
	struct h5_object *object = subject(call, state);
	uint64_t size = (h5_argument(call, "prec") + 7) / 8;

	if (!object)
		return;
	object->type.plain = false;
	if (object->type.known && size > object->type.size)
		object->type.size = object->type.packed = size;
}

static void set_offset(const struct library_call *call, struct h5_state *state)
{
	struct h5_object *object = subject(call, state);

	if (object && h5_argument(call, "offset") > 0)
		object->type.known = false;
}

static void insert(const struct library_call *call, struct h5_state *state)
{
	struct h5_object *object = subject(call, state);
	struct h5_type member = h5_type_of(call, state, h5_argument(call, "member_id"));

	if (!object)
		return;
	/* A member of which nothing is known may have parts elsewhere. */
	object->type.known &= member.known;
	object->type.variable |= member.variable;
	object->type.unpackable |= member.packed == 0;
	object->type.packed += member.packed;
}

static void pack(const struct library_call *call, struct h5_state *state)
{
	struct h5_object *object = subject(call, state);

	if (!object || !object->type.compound)
		return;
	object->type.known &= !object->type.unpackable;
	object->type.size = object->type.packed;
}

/* A type that came out of a file tells what it is when the program asks. */
static void settle(struct h5_type *type)
{
	int class = type->heard_class - 1;

	if (type->known || !type->heard_size || class < 0 || class == CLASS_COMPOUND ||
	    class == CLASS_VLEN || class == CLASS_ARRAY ||
	    (class == CLASS_STRING && !type->heard_fixed))
		return;
	type->known = true;
	type->size = type->packed = type->heard_size;
}

static void hear_size(const struct library_call *call, struct h5_state *state)
{
	struct h5_object *object = subject(call, state);

	if (!object || call->result <= 0)
		return;
	object->type.heard_size = (uint64_t)call->result;
	settle(&object->type);
}

static void hear_class(const struct library_call *call, struct h5_state *state)
{
	struct h5_object *object = subject(call, state);

	if (!object)
		return;
	object->type.heard_class = (int)call->result + 1;
	settle(&object->type);
}

static void hear_string(const struct library_call *call, struct h5_state *state)
{
	struct h5_object *object = subject(call, state);

	if (!object)
		return;
	object->type.variable |= call->result > 0;
	object->type.heard_fixed = call->result == 0;
	settle(&object->type);
}

/* What is equal to a known type is as large. */
static void hear_equal(const struct library_call *call, struct h5_state *state)
{
	struct h5_object *one = h5_get(state, library_value(call, 0));
	struct h5_object *two = h5_get(state, library_value(call, 1));

	if (call->result <= 0)
		return;
	struct h5_type first = h5_type_of(call, state, library_value(call, 0));
	struct h5_type second = h5_type_of(call, state, library_value(call, 1));
	if (one && one->kind == H5_TYPE && !first.known && second.known)
		one->type = second;
	else if (two && two->kind == H5_TYPE && !second.known && first.known)
		two->type = first;
}

static const struct h5_handler handlers[] = {
	{"H5Aget_type", get_of_object},
	{"H5Dget_type", get_of_object},
	{"H5Tarray_create1", array_create},
	{"H5Tarray_create2", array_create},
	{"H5Tcomplex_create", complex_create},
	{"H5Tcopy", copy},
	{"H5Tcreate", create},
	{"H5Tenum_create", enum_create},
	{"H5Tequal", hear_equal},
	{"H5Tget_class", hear_class},
	{"H5Tget_member_type", get_foreign},
	{"H5Tget_native_type", get_native},
	{"H5Tget_size", hear_size},
	{"H5Tget_super", get_foreign},
	{"H5Tinsert", insert},
	{"H5Tis_variable_str", hear_string},
	{"H5Topen", get_foreign},
	{"H5Topen1", get_foreign},
	{"H5Topen2", get_foreign},
	{"H5Tpack", pack},
	{"H5Tset_offset", set_offset},
	{"H5Tset_precision", set_precision},
	{"H5Tset_size", set_size},
	{"H5Tvlen_create", vlen_create},
};

void h5_types_end(const struct library_call *call, struct h5_state *state)
{
	h5_dispatch(call, state, handlers, sizeof(handlers) / sizeof(*handlers));
}
