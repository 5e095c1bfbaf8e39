/* The descriptor table of a process, as far as it has been seen: which open file each descriptor was
 * at which time.
 *
 * Order between threads is known only by time: thread 1's close(5) may be reported after thread 2's
 * open() = 5. So a descriptor is a row of intervals, each from the end of the call that made it to the
 * start of the call that closed it, and a call asks for the file at its own start. */
#ifndef TRACER_FILES_H
#define TRACER_FILES_H

#include "base/map.h"
#include "writer/name.h"

#include <stdbool.h>
#include <stdint.h>

/* Why calls on a file are left out of the trace unless asked for. */
enum file_skip {
	FILE_RECORDED,
	FILE_TTY,
	FILE_PIPE,
	FILE_SOCKET,
	FILE_ANON,
	FILE_NULL, /* /dev/null, other devices and directories that came from outside */
};

/* An open file; reference-counted. */
struct file {
	unsigned refs;
	enum file_skip skip;
	bool outside;      /* left out by the data directories */
	bool streamed;     /* a stream of the C library uses it */
	struct name *name; /* NULL: it could not be seen */
};

/* @return a file with one reference, holding a reference to `name` (or NULL); NULL with errno ENOMEM. */
struct file *file_new(struct name *name, enum file_skip skip);
struct file *file_ref(struct file *file);
void file_unref(struct file *file); /* NULL is allowed */

/* Reference-counted: threads share one, as does whoever was made with CLONE_FILES. */
struct files {
	unsigned refs;
	/* No call that began earlier is still to be decoded; older intervals are dropped. From the
	 * start UINT64_MAX: calls are decoded as they come. */
	uint64_t horizon;
	struct map table;
};

struct files *files_new(void);
struct files *files_ref(struct files *files);
void files_unref(struct files *files);

/* @return a table of its own with what is open at `time`, for fork and unshare; NULL with ENOMEM. */
struct files *files_copy(const struct files *files, uint64_t time);

/* Says that `fd` is `file` from `time` on. Takes its own reference. An interval that is still open ends
 * there. @return 0, or -1 with errno ENOMEM. */
int files_open(struct files *files, int fd, struct file *file, bool cloexec, uint64_t time);

/* Same for a file that was there already when it was first seen. */
int files_learn(struct files *files, int fd, struct file *file, bool cloexec);

/* @return the file of `fd` at `time`, borrowed; NULL: none known. While dup2 replaces a descriptor both
 * files are possible: the old one is returned and `*ambiguous` set. */
struct file *files_at(const struct files *files, int fd, uint64_t time, bool *ambiguous);

/* The start of a call that closes `fd`, or, with `replaced`, that puts another file there. */
void files_close(struct files *files, int fd, uint64_t time, bool replaced);

/* The call that began at `time` has failed: what files_close ended there is open again. */
void files_restore(struct files *files, int fd, uint64_t time);

/* A call that replaced `fd` has ended; later calls see its new file only. */
void files_replaced(struct files *files, int fd);

void files_set_cloexec(struct files *files, int fd, bool cloexec);

/* Closes what exec closes. */
void files_exec(struct files *files, uint64_t time);

/* Walks the descriptors open at `time`; `*at` starts at 0. @return the descriptor, -1 at the end. */
int files_next(const struct files *files, size_t *at, uint64_t time);

#endif
