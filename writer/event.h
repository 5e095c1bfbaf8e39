/* One finished event, ready to be written: what decoding makes and writing reads. */
#ifndef WRITER_EVENT_H
#define WRITER_EVENT_H

#include "writer/name.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/types.h>

enum layer {
	LAYER_DFTRACER,
	LAYER_POSIX,
	LAYER_SYSCALL, /* a system call made inside a recorded call of a library layer */
	LAYER_STDIO,
	LAYER_MPI,
	LAYER_HDF5,
	LAYER_FUNC,
	LAYER_APP, /* of the program's own annotations, which name their category */
};

enum event_arg_kind {
	EVENT_INT,    /* signed decimal */
	EVENT_UINT,   /* unsigned decimal */
	EVENT_STRING, /* bytes, escaped for JSON when written */
	EVENT_NAME,   /* the hash of a name; its FH line is written before the event if it is new */
	EVENT_JSON,   /* a string that is a JSON value as it is */
};

struct event_arg {
	const char *name; /* the key; not escaped, so a plain identifier or escaped already */
	enum event_arg_kind kind;
	union {
		int64_t i;
		uint64_t u;
		struct {
			const char *bytes;
			size_t len;
		} string;
		struct name *ref; /* borrowed until trace_event returns */
	} value;
};

#define EVENT_MAX_ARGS 24

struct event {
	enum layer layer;
	const char *category; /* of LAYER_APP, and its number in v2 */
	unsigned type;
	const char *name;
	pid_t pid;
	pid_t tid;
	uint64_t start;    /* ns since the epoch */
	uint64_t end;      /* ns since the epoch, >= start */
	uint64_t id;       /* from trace_next_id; a parent's is smaller than its children's */
	uint64_t parent;   /* id of the enclosing recorded call of the thread, 0: none */
	unsigned level;    /* 1: outermost */
	struct name *file; /* fhash: the file that the call is about; NULL: none. Borrowed. */
	unsigned nargs;
	struct event_arg args[EVENT_MAX_ARGS]; /* in the order in which they are written */
	unsigned nfirst;               /* of others that stand before them; none are names */
	const struct event_arg *first; /* borrowed */
};

#endif
