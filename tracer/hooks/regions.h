/* What a process has said of itself by annotations: the regions that it has begun, and keys with values. A region need
 * not end in the thread that began it, nor before those that began earlier. */
#ifndef TRACER_HOOKS_REGIONS_H
#define TRACER_HOOKS_REGIONS_H

#include "base/map.h"
#include "tracer/task.h"
#include "writer/event.h"

#include <stdbool.h>
#include <stdint.h>

/* Keys with numbers (EVENT_INT) or texts (EVENT_STRING), all their own. */
struct args {
	struct event_arg *items;
	unsigned count;
};

struct region {
	struct region *older; /* of the process, in the order of their beginnings */
	struct region *newer;
	struct region *outer; /* of the thread */
	struct region *inner;
	struct task *task; /* whose calls are inside; NULL: it is over, or was another process's */
	uint64_t handle;   /* the program's word for it */
	uint64_t id;       /* of the event; 0: none yet */
	uint64_t parent;
	unsigned level;
	bool inherited; /* it was begun before a fork */
	bool metadata;  /* a line of a name and a value, which is the category here */
	pid_t tid;
	uint64_t start;
	unsigned type;
	char *name;
	char *category;
	struct args args;
};

struct annotations {
	struct map regions; /* struct region by handle */
	struct region *newest;
	bool begun; /* what the program asks for is written */
	bool over;  /* the program has said that it is */
	struct args app;
	struct args used;
	struct buf app_json; /* made from them at the end */
	struct buf used_json;
};

/* Sets a key, whose last value counts, to a number, or to the text if that is not NULL. Takes the text, copies the
 * key. @return 0, or -1 when there are too many keys or there is no memory. */
int args_set(struct args *args, const char *key, int64_t number, char *text);

/* Makes the JSON object. @return it, NULL when it would be empty. */
const char *args_json(const struct args *args, struct buf *out);

/* @return an empty region, in the set; NULL with errno ENOMEM. */
struct region *region_add(struct annotations *of, uint64_t handle);

/* Makes it the innermost of a thread. */
void region_enter(struct region *region, struct task *task);

/* Takes a region out of the set and frees it. */
void region_remove(struct annotations *of, uint64_t handle);

/* @return whether what the region began in has not ended before it. */
bool region_is_within_parent(const struct region *region);

#endif
