/* Names for what calls mean: paths from text, descriptors and directories from /proc where they were
 * not seen being made. */
#ifndef TRACER_RESOLVE_H
#define TRACER_RESOLVE_H

#include "tracer/call.h"
#include "tracer/tracer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* @return the file of `fd` at `time`, borrowed; asks /proc and remembers the answer when the table does
 * not know. NULL: not open, or with errno EACCES or EPERM not to be seen. `*ambiguous` as files_at. */
struct file *resolve_fd(struct tracer *tracer, struct task *task, int fd, uint64_t time,
			bool *ambiguous);

/* @return a new file for what /proc shows behind `fd` now, NULL: not open, or not to be seen. */
struct file *resolve_proc_fd(struct tracer *tracer, struct task *task, int fd);

/* @return what kind of file the path just opened as `fd` turned out to be. */
enum file_skip resolve_opened(const struct task *task, int fd);

/* @return the cwd at a call from `source`, borrowed, NULL: not known. At a stop it is what /proc says, which follows
 * a renamed directory. A call that was recorded inside may be over for long: for it the cwd is what came before it,
 * by the calls below. */
struct name *resolve_cwd(struct task *task, enum call_source source);

/* A rename has ended that may be one of the cwd, or above it. Of one that was recorded only texts tell: what goes
 * through symbolic links is seen at the next stop or tick. */
void resolve_renamed(struct tracer *tracer, struct task *task, const struct call *call);

/* Now and then, where calls are recorded: the cwd becomes what /proc says, once it says so twice and no call that has
 * been taken meanwhile explains it. Until then the calls of a process whose cwd another has renamed have its old
 * name. */
void resolve_cwd_tick(struct task *task);

/* @return a new name for `path`, an argument of the call, seen from the directory `dirfd` (AT_FDCWD: the cwd): absolute,
 * or as given under --paths given. `*wanted`: whether the data directories hold it. NULL: no name can be given. */
struct name *resolve_path(struct tracer *tracer, struct task *task, int dirfd, const char *path,
			  size_t len, const struct call *call, bool *wanted);

/* Same for the text of a symbolic link named `link`: relative to the link's directory. */
struct name *resolve_target(struct tracer *tracer, struct task *task, int dirfd, const char *link,
			    size_t link_len, const char *target, size_t target_len,
			    const struct call *call, bool *wanted);

/* @return whether events on the absolute path `path` are recorded under the data directories. */
bool resolve_is_wanted(const struct tracer *tracer, const char *path, size_t len);

#endif
