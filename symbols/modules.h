/* What code a process has mapped, from the text of /proc/PID/maps. */
#ifndef SYMBOLS_MODULES_H
#define SYMBOLS_MODULES_H

#include "symbols/object.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Executable mappings of a file that lie side by side and go on in it. */
struct module {
	struct object *object; /* NULL: no ELF file, or it cannot be opened */
	char *path;            /* as the kernel names it */
	uint64_t begin;
	uint64_t end;
	uint64_t bias;   /* what is added to the object's addresses */
	uint64_t offset; /* of the first byte, in the file */
	uint64_t inode;
	uint64_t device; /* as the kernel names it: not always what stat says */
	bool shared;     /* what is written here is written to the file, and seen by others */
};

struct modules {
	struct module *items; /* by address */
	size_t count;
};

/* Reads the executable file mappings of `pid`; mappings that `modules` holds already are kept as
 * they are, those that are gone are dropped (after calling `gone` for each, if not NULL). A mapping
 * that grew or shrank is gone, and another is there.
 * @return 0, or -1 with errno and nothing changed. */
int modules_read(struct modules *modules, struct objects *objects, int pid,
		 void (*gone)(const struct module *, void *), void *data);

/* Mappings side by side. */
struct stretch {
	uint64_t begin;
	uint64_t end;
};

/* Looks at the mappings of `pid` around `wanted`. @return whether no code can come of them that `modules` does
 * not have: all are anonymous memory, or modules already. Then `*known` is the whole stretch of such mappings that
 * `wanted` lies in. Not if the mappings cannot be read. */
bool modules_know(const struct modules *modules, int pid, const struct stretch *wanted,
		  struct stretch *known);

/* @return the module that holds `address`, NULL: none. */
const struct module *modules_find(const struct modules *modules, uint64_t address);

/* Same set, for a forked address space; `to` need not be initialised. @return 0, or -1 with errno
 * ENOMEM. */
int modules_copy(struct modules *to, const struct modules *from);
void modules_free(struct modules *modules);

#endif
