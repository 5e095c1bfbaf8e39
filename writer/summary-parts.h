/* What the summary holds, for its printing: not for others. */
#ifndef WRITER_SUMMARY_PARTS_H
#define WRITER_SUMMARY_PARTS_H

#include "base/map.h"
#include "writer/summary.h"

enum { SUMMARY_LAYERS = LAYER_C_APP + 1 };

struct summary_call {
	enum layer layer;
	uint64_t calls;
	uint64_t errors;
	uint64_t cut;
	uint64_t us;      /* of all calls together */
	uint64_t longest; /* µs */
	uint64_t bytes;
	char name[]; /* empty: those of the layer that there was no room for */
};

/* Of one layer's calls on a file. */
struct summary_use {
	uint64_t calls;
	uint64_t us;
	uint64_t read;
	uint64_t written;
};

struct summary_file {
	struct name *name; /* NULL: of the others */
	struct summary_use uses[SUMMARY_LAYERS];
};

struct summary {
	struct map calls; /* struct summary_call, by hash of layer and name */
	struct map files; /* struct summary_file, by hash of the path */
	size_t text;      /* bytes of the paths */
	struct summary_file others;
	uint64_t other_files; /* how often one was added to the others */
	uint64_t images;
	uint64_t events;
	uint64_t outermost; /* µs of the calls that no recorded call is around */
};

/* Adds the sums of one to another. */
void summary_call_add(struct summary_call *to, const struct summary_call *from);
void summary_use_add(struct summary_use *to, const struct summary_use *from);

/* The bytes of a file, counted once: those of its system calls where such were recorded, else those of the library
 * that moved most. */
struct summary_use summary_file_use(const struct summary_file *file);

/* Orders pointers to files: most bytes first, then most calls, then by path. For qsort. */
int summary_compare_files(const void *a, const void *b);

/* The category of a layer as the trace spells it. */
const char *summary_category(enum layer layer);

#endif
