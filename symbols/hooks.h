/* Functions of libraries that can be hooked, layer by layer: what they are called, where their arguments are,
 * what they say. One table per layer, symbols/hooks/LAYER.def, one row per function. */
#ifndef SYMBOLS_HOOKS_H
#define SYMBOLS_HOOKS_H

#include <stdbool.h>
#include <stddef.h>

enum hook_layer {
	HOOK_STDIO,
	HOOK_MPI,
	HOOK_HDF5,
	HOOK_APP, /* DFTracer's annotations */
	HOOK_LAYERS,
	HOOK_FUNC = HOOK_LAYERS, /* the user's, by -x: no table */
};

/* When a function is written. What is not written is not hooked, unless something that is needs it. */
enum hook_mode {
	HOOK_DEFAULT, /* with its layer */
	HOOK_ASKED,   /* with its group */
	HOOK_ALL,     /* with all of its layer, or by name: polls and local queries */
	HOOK_NEVER,   /* only hooked for others */
};

/* How a function is called. */
enum hook_form {
	HOOK_FORM_C,
	HOOK_FORM_FORTRAN, /* all by reference, the result in a last argument, then lengths of strings */
	HOOK_FORM_DESCRIPTORS, /* same; buffers are array descriptors, which begin with the address */
};

/* An argument of a library's function: its size, and what it is. The order is that of hook_kinds. */
enum hook_arg_kind {
	HOOK_A_END,
	/* Written as they are. */
	HOOK_A_INT,
	HOOK_A_UINT,
	HOOK_A_LONG,
	HOOK_A_ULONG,
	HOOK_A_TEXT,
	/* Not written by themselves. */
	HOOK_A_PATH,    /* a string */
	HOOK_A_POINTER, /* arrays, results */
	HOOK_A_BUFFER,  /* what is moved; of any type, so it may be a descriptor */
	HOOK_A_DOUBLE,  /* in C it has no place among the others */
	HOOK_A_C_ONLY,  /* a pointer that Fortran's form lacks */
	/* HDF5 */
	HOOK_A_ID,
	/* MPI: written */
	HOOK_A_COUNT, /* int, MPI_Count in the forms for large counts */
	HOOK_A_RANK,
	HOOK_A_OFFSET,
	/* MPI: not written by themselves */
	HOOK_A_TYPE,
	HOOK_A_COMM,
	HOOK_A_FILE,
	HOOK_A_HANDLE, /* any other */
	HOOK_A_COUNTS, /* array of counts */
	HOOK_A_TYPES,  /* array of datatypes */
	HOOK_A_KINDS,
};

struct hook_arg {
	enum hook_arg_kind kind;
	const char *name;
};

#define HOOK_MAX_ARGS 16

/* What an argument is without its meaning. */
struct hook_kind {
	unsigned char size; /* bytes in C */
	bool is_signed;
	bool is_string;
	bool by_value; /* in C; in Fortran a scalar behind a pointer */
	bool written;
};

extern const struct hook_kind hook_kinds[HOOK_A_KINDS];

enum hook_field_kind {
	HOOK_END,
	HOOK_STREAM, /* FILE *, the call's file */
	HOOK_STDIN,  /* the call is about the standard stream */
	HOOK_STDOUT,
	HOOK_STDERR,
	HOOK_OPENS, /* path */
	HOOK_ON_FD, /* descriptor, the call's file */
	HOOK_INT,
	HOOK_LONG,
	HOOK_SIZE,
	HOOK_TEXT,
	HOOK_FLUSHES, /* no event: what streams write inside is theirs */
};

struct hook_field {
	enum hook_field_kind kind;
	unsigned char arg;
	const char *key;
};

enum hook_result {
	HOOK_R_NONE,
	HOOK_R_INT,
	HOOK_R_LONG,
	HOOK_R_POINTER,
	HOOK_R_CODE, /* an error code; Fortran's last argument */
};

enum hook_bytes {
	HOOK_B_NONE,
	HOOK_B_ITEMS,
	HOOK_B_RESULT,
	HOOK_B_STRING,
	HOOK_B_LINE,
	HOOK_B_FILLED,
	HOOK_B_ONE,
};

/* What a call of an annotation says; its arguments are those that annotate.def lists. */
enum hook_annotation {
	HOOK_ANNOTATES_NOTHING,
	HOOK_ANNOTATES_BEGIN,
	HOOK_ANNOTATES_END,
	HOOK_ANNOTATES_UPDATE_INT,
	HOOK_ANNOTATES_UPDATE_TEXT,
	HOOK_ANNOTATES_INIT,
	HOOK_ANNOTATES_FINI,
	HOOK_ANNOTATES_APP_INT,
	HOOK_ANNOTATES_APP_TEXT,
	HOOK_ANNOTATES_USED,
};

#define HOOK_MAX_FIELDS 5
#define HOOK_MAX_NAMES  6

struct hook_row {
	const char *name; /* in the trace */
	enum hook_layer layer;
	enum hook_mode mode;
	const char *group;

	/* STDIO; the result of all layers. */
	struct hook_field fields[HOOK_MAX_FIELDS];
	enum hook_result result;
	enum hook_bytes bytes;
	unsigned char bytes_arg;
	const char *symbols[HOOK_MAX_NAMES]; /* up to the first NULL */

	/* MPI, HDF5 */
	const struct hook_arg *args; /* up to HOOK_A_END */
	unsigned serves; /* bits of the layer: it is hooked, too, while what uses them is written */
	bool large;      /* MPI's form for large counts */

	/* Annotations: all is said at the entry. */
	enum hook_annotation annotates;
	bool of_library; /* a function of DFTracer's own library */
};

/* What a row may serve. */
enum {
	HOOK_FOR_NOTHING = 0,
	HOOK_FOR_TYPES = 1,     /* sizes of datatypes */
	HOOK_FOR_SPACES = 2,    /* selections of dataspaces */
	HOOK_FOR_LISTS = 4,     /* property lists */
	HOOK_FOR_FILES = 8,     /* which file a handle is */
	HOOK_FOR_COMMS = 16,    /* rank and size of communicators */
	HOOK_FOR_REQUESTS = 32, /* what a persistent request moves */
	HOOK_FOR_FILES_TYPES = HOOK_FOR_FILES | HOOK_FOR_TYPES,
	/* It calls functions of the program: what these call is not the library's doing. */
	HOOK_CALLS_BACK = 64,
	HOOK_FOR_CALLBACKS = HOOK_FOR_FILES | HOOK_CALLS_BACK,
	/* It tells rank or size of all processes: whatever else is written, it is hooked until they are known. */
	HOOK_BRIEFLY = 128,
	HOOK_FOR_WORLD = HOOK_FOR_COMMS | HOOK_BRIEFLY,
};

struct hook_table {
	const char *name; /* of the layer, in -e */
	const struct hook_row *rows;
	size_t count;
};

#define HOOK_MOST_ROWS 1200 /* of one table */

extern const struct hook_table hook_tables[HOOK_LAYERS];

/* What is found by name: the functions of a layer by their symbols. */
struct hook_names;

/* @return NULL with errno ENOMEM. */
struct hook_names *hook_names_new(enum hook_layer layer);
void hook_names_free(struct hook_names *names);

/* @return the row of the function with this symbol and in `*form` how it is called, NULL: none. Of MPI all
 * spellings are known: P forms, Fortran's with and without underscores, those of its modules. */
const struct hook_row *hook_names_find(struct hook_names *names, const char *symbol,
				       enum hook_form *form);

#endif
