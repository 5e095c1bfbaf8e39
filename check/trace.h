/* One trace file, checked: what it holds and what is wrong with it. */
#ifndef CHECK_TRACE_H
#define CHECK_TRACE_H

#include "check/findings.h"
#include "check/line.h"
#include "check/names.h"
#include "check/progress.h"
#include "check/tally.h"

#include <stdbool.h>
#include <stdint.h>

enum trace_format {
	TRACE_UNKNOWN,
	TRACE_V1, /* letters for phases */
	TRACE_V2, /* numbers */
};

enum line_kind {
	LINE_EVENT,
	LINE_COUNTER, /* aggregated */
	LINE_METADATA,
	LINE_BAD,
};

/* A program image: from its start line to its end line. */
struct process {
	uint64_t pid;
	uint64_t ppid; /* 0: not known */
	uint64_t host; /* hash; 0: not known */
	bool started;
	bool ended;
	bool repaired;
	bool named;      /* by a process_name line */
	uint64_t start;  /* of the start line, in ns since the epoch */
	uint64_t last;   /* latest end of an event */
	uint64_t events; /* without start and end */
	int64_t rank;    /* -1: none */
	int64_t world;   /* how many ranks; -1: not known */
	char name[48];
	char job[48];
};

struct host {
	uint64_t hash;
	char name[64];
};

/* A process that another one made. */
struct birth {
	uint64_t pid;
	uint64_t child;
	uint64_t time; /* when the call began, in ns since the epoch */
};

enum { TRACE_BIRTHS = 1 << 18 }; /* so many are looked at */

struct trace {
	const char *path;
	struct findings findings;
	struct tally tally;
	enum trace_format format;
	enum name_form form; /* of its hashes */
	bool any_hash;
	bool compressed;
	bool has_metadata; /* an event has args */
	bool ours;
	unsigned long members;
	uint64_t size; /* of the file */
	uint64_t text;
	uint64_t lines;
	uint64_t max_id;
	uint64_t tid; /* of the last event */
	uint64_t ns;  /* a unit of ts */
	struct process *processes;
	size_t nprocesses;
	struct host *hosts;
	size_t nhosts;
	struct birth *births;
	size_t nbirths;
};

/* Checks a file. Whatever is wrong stands in the findings. `progress` may be NULL. */
void trace_check(struct trace *trace, const char *path, struct progress *progress);

void trace_free(struct trace *trace);

/* @return the host's name, NULL when it has no HH line. */
const char *trace_host(const struct trace *trace, uint64_t hash);

/* What a line is by its phase; `format` (may be NULL) is set unless it is LINE_BAD. */
enum line_kind line_kind(const struct line *line, enum trace_format *format);

/* The type that v2 lines have for a category, -1 when it is not known. */
int line_type(struct text category);

#endif
