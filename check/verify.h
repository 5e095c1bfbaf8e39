/* Checking one line after the other: what trace.c hands to the parts that know a kind of line. */
#ifndef CHECK_VERIFY_H
#define CHECK_VERIFY_H

#include "check/ids.h"
#include "check/nesting.h"
#include "check/trace.h"

struct verify {
	struct trace *trace;
	struct ids ids;
	struct names names;
	struct nesting nesting;
	struct map processes; /* by pid: index + 1 of the present image */
	uint64_t last_pid;
	size_t last_process; /* index + 1 of last_pid's, 0: none */
	bool thread_named;   /* a thread_name line has been */
	bool no_memory;
};

/* Where the line under way is, and what all kinds of lines have. */
struct place {
	uint64_t number;
	enum line_kind kind;
	uint64_t id; /* 0: none */
	uint64_t pid;
	uint64_t tid;
	struct text name;
	struct text category;
};

/* Checks a line. */
void verify_line(struct verify *verify, const struct line *line, uint64_t number);

/* … of names and properties. */
void verify_metadata(struct verify *verify, const struct line *line, const struct place *place);

/* … of an event. */
void verify_event(struct verify *verify, const struct line *line, const struct place *place);

/* … that is the start or the end of a process. */
void verify_bound(struct verify *verify, const struct line *line, const struct place *place,
		  uint64_t ts);

/* @return the image of a pid that is under way, made when there is none; NULL when out of memory. */
struct process *verify_process(struct verify *verify, uint64_t pid);

/* Checks that a hash has been named before. */
void verify_reference(struct verify *verify, const struct line *line, enum line_arg arg,
		      unsigned kinds, uint64_t number);

/* When all lines are read. */
void verify_finish(struct verify *verify);

void verify_free(struct verify *verify);

/* Copies text from a trace: what is not printable ASCII is replaced, what is too long is cut. */
void verify_copy(char *to, size_t size, struct text text);

#endif
