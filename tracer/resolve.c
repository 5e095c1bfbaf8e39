#include "tracer/resolve.h"

#include "base/path.h"
#include "tracer/arch/arch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>
#include <sys/sysmacros.h>

static const char deleted[] = " (deleted)";

/* Reads a link below /proc/TID. @return its length, -1 with errno. */
static ssize_t read_link(const struct task *task, const char *what, char *to, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", task->tid, what);
	ssize_t n = readlink(path, to, size - 1);
	if (n >= 0)
		to[n] = '\0';
	return n;
}

static int stat_link(const struct task *task, const char *what, struct stat *st)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", task->tid, what);
	return stat(path, st);
}

/* The kernel marks the text of what was unlinked, but a name may really end so. */
static size_t without_deleted(const char *text, size_t len, const struct stat *st)
{
	size_t tail = sizeof(deleted) - 1;
	struct stat named;

	if (len <= tail || strcmp(text + len - tail, deleted) != 0)
		return len;
	if (lstat(text, &named) == 0 && named.st_dev == st->st_dev && named.st_ino == st->st_ino)
		return len;
	return len - tail;
}

/* What the program sees of a path that /proc gives: less its root, where that is not ours. */
static const char *below_root(struct task *task, const char *text, size_t *len)
{
	struct fs *fs = task->fs;

	if (!fs->root_known) {
		char root[PATH_MAX];
		ssize_t n = read_link(task, "root", root, sizeof(root));
		name_unref(fs->root);
		fs->root = n > 1 ? name_new(root, (size_t)n) : NULL;
		fs->root_known = true;
	}
	if (fs->root && path_is_below(text, fs->root->text)) {
		text += fs->root->len;
		*len -= fs->root->len;
		if (*len == 0) {
			*len = 1;
			return "/";
		}
	}
	return text;
}

static bool is_tty(dev_t rdev)
{
	unsigned m = major(rdev);
	/* 4: consoles and serial lines, 5: /dev/tty and ptmx, 136 to 143: pseudo-terminals
	 * (Documentation/admin-guide/devices.txt of the kernel) */
	return m == 4 || m == 5 || (m >= 136 && m <= 143);
}

static enum file_skip skip_by_text(const char *text)
{
	if (strncmp(text, "pipe:", 5) == 0)
		return FILE_PIPE;
	if (strncmp(text, "socket:", 7) == 0)
		return FILE_SOCKET;
	return FILE_ANON;
}

/* Of a descriptor that came from outside only regular files are recorded. */
static enum file_skip skip_of_outside(const char *text, const struct stat *st)
{
	if (text[0] != '/')
		return skip_by_text(text);
	switch (st->st_mode & S_IFMT) {
	case S_IFREG:
		return FILE_RECORDED;
	case S_IFIFO:
		return FILE_PIPE;
	case S_IFSOCK:
		return FILE_SOCKET;
	case S_IFCHR:
		return is_tty(st->st_rdev) ? FILE_TTY : FILE_NULL;
	default:
		return FILE_NULL;
	}
}

struct file *resolve_proc_fd(struct tracer *tracer, struct task *task, int fd)
{
	char text[PATH_MAX + sizeof(deleted)];
	char what[32];
	struct stat st = {0};

	snprintf(what, sizeof(what), "fd/%d", fd);
	ssize_t n = read_link(task, what, text, sizeof(text));
	if (n < 0 || stat_link(task, what, &st) < 0)
		return NULL;
	size_t len = (size_t)n;
	const char *name = text;
	enum file_skip skip = skip_of_outside(text, &st);
	if (text[0] == '/') {
		len = without_deleted(text, len, &st);
		text[len] = '\0';
		if (strncmp(text, "/memfd:", 7) == 0) {
			name = text + 1;
			len--;
			skip = FILE_ANON;
		} else {
			name = below_root(task, text, &len);
		}
	}
	struct name *ref = name_new(name, len);
	struct file *file = ref ? file_new(ref, skip) : NULL;
	if (file)
		file->outside = name[0] == '/' && !resolve_is_wanted(tracer, ref->text, ref->len);
	name_unref(ref);
	return file;
}

/* The close-on-exec flag of a descriptor that was not seen being made. */
static bool proc_cloexec(const struct task *task, int fd)
{
	char path[64];
	char line[256];
	unsigned flags = 0;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", task->tid, fd);
	FILE *f = fopen(path, "re");
	if (!f)
		return false;
	while (fgets(line, sizeof(line), f)) {
		if (strncmp(line, "flags:", 6) == 0)
			flags = (unsigned)strtoul(line + 6, NULL, 8);
	}
	fclose(f);
	return flags & O_CLOEXEC;
}

struct file *resolve_fd(struct tracer *tracer, struct task *task, int fd, uint64_t time,
			bool *ambiguous)
{
	*ambiguous = false;
	if (fd < 0) {
		errno = EBADF;
		return NULL;
	}
	struct file *file = files_at(task->files, fd, time, ambiguous);
	if (file)
		return file;
	file = resolve_proc_fd(tracer, task, fd);
	if (!file)
		return NULL;
	int learned = files_learn(task->files, fd, file, proc_cloexec(task, fd));
	file_unref(file); /* the table holds it now, or it is gone */
	return learned < 0 ? NULL : file;
}

enum file_skip resolve_opened(const struct task *task, int fd)
{
	char what[32];
	char text[32];
	struct stat st;

	snprintf(what, sizeof(what), "fd/%d", fd);
	if (stat_link(task, what, &st) < 0)
		return FILE_RECORDED;
	switch (st.st_mode & S_IFMT) {
	case S_IFCHR:
		return is_tty(st.st_rdev) ? FILE_TTY : FILE_RECORDED;
	case S_IFSOCK:
		return FILE_SOCKET;
	case S_IFIFO:
		/* A named FIFO is recorded, a pipe reached through /dev/stdout is not. A longer text
		 * than this is a path. */
		return read_link(task, what, text, sizeof(text)) > 0 && text[0] != '/'
			       ? FILE_PIPE
			       : FILE_RECORDED;
	case 0:
		return FILE_ANON;
	default:
		return FILE_RECORDED;
	}
}

#define CWD_SIZE (PATH_MAX + sizeof(deleted))

/* @return what /proc shows, `*len` bytes of `text`; NULL: it is not to be seen (dumpable 0). */
static const char *proc_cwd(struct task *task, char text[CWD_SIZE], size_t *len)
{
	struct stat st;
	ssize_t n = read_link(task, "cwd", text, CWD_SIZE);

	if (n < 0)
		return NULL;
	*len = (size_t)n;
	if (*len >= sizeof(deleted) && stat_link(task, "cwd", &st) == 0)
		*len = without_deleted(text, *len, &st);
	text[*len] = '\0';
	return below_root(task, text, len);
}

static bool is_named(const struct name *name, const char *text, size_t len)
{
	return name && name->len == len && memcmp(name->text, text, len) == 0;
}

static void set_cwd(struct fs *fs, const char *text, size_t len)
{
	struct name *cwd = is_named(fs->cwd, text, len) ? NULL : name_new(text, len);

	name_unref(fs->cwd_shown);
	fs->cwd_shown = NULL;
	if (cwd) {
		name_unref(fs->cwd);
		fs->cwd = cwd;
	}
}

struct name *resolve_cwd(struct task *task, enum call_source source)
{
	char text[CWD_SIZE];
	struct fs *fs = task->fs;
	size_t len;

	if (source == CALL_FROM_RECORDER && fs->cwd)
		return fs->cwd;
	const char *shown = proc_cwd(task, text, &len);
	if (shown)
		set_cwd(fs, shown, len);
	return fs->cwd; /* else what chdir said last */
}

void resolve_cwd_tick(struct task *task)
{
	char text[CWD_SIZE];
	struct fs *fs = task->fs;
	size_t len;
	const char *shown = proc_cwd(task, text, &len);

	if (!shown)
		return;
	if (is_named(fs->cwd, shown, len) || is_named(fs->cwd_shown, shown, len)) {
		set_cwd(fs, shown, len);
		return;
	}
	/* Of itself, maybe, by a call that is recorded and not taken yet. */
	name_unref(fs->cwd_shown);
	fs->cwd_shown = name_new(shown, len);
}

bool resolve_is_wanted(const struct tracer *tracer, const char *path, size_t len)
{
	static const char *const suffixes[] = {".py", ".pyc", ".pfw", ".pfw.gz"};
	const struct tracer_options *options = tracer->options;

	if (options->ndata_dirs == 0)
		return true;
	/* As upstream does, in list mode only. */
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
		size_t n = strlen(suffixes[i]);
		if (len >= n && memcmp(path + len - n, suffixes[i], n) == 0)
			return false;
	}
	for (size_t i = 0; i < options->ndata_dirs; i++) {
		if (path_is_below(path, options->data_dirs[i]))
			return true;
	}
	return false;
}

/* The directory that relative paths start from, borrowed; NULL: not known. */
static struct name *base_of(struct tracer *tracer, struct task *task, int dirfd,
			    const struct call *call)
{
	bool ambiguous;

	if (dirfd == AT_FDCWD)
		return resolve_cwd(task, call->source);
	struct file *dir = resolve_fd(tracer, task, dirfd, call->start, &ambiguous);
	return dir ? dir->name : NULL;
}

/* Turns tracer->path into the name to write. */
static struct name *finish(struct tracer *tracer, const char *given, size_t given_len, bool *wanted)
{
	const char *absolute = buf_str(&tracer->path);

	if (!absolute)
		return NULL;
	*wanted = resolve_is_wanted(tracer, absolute, tracer->path.len);
	if (tracer->options->paths_given)
		return name_new(given, given_len);
	return name_new(absolute, tracer->path.len);
}

/* Makes tracer->path of a path. @return whether it could be. */
static bool make_absolute(struct tracer *tracer, struct task *task, int dirfd, const char *path,
			  size_t len, const struct call *call)
{
	struct name *base = NULL;

	if (len == 0)
		return false;
	if (path[0] != '/') {
		base = base_of(tracer, task, dirfd, call);
		if (!base)
			return false;
	}
	path_absolute(&tracer->path, base ? base->text : "/", base ? base->len : 1, path, len);
	return true;
}

struct name *resolve_path(struct tracer *tracer, struct task *task, int dirfd, const char *path,
			  size_t len, const struct call *call, bool *wanted)
{
	*wanted = false;
	if (!make_absolute(tracer, task, dirfd, path, len, call))
		return NULL;
	return finish(tracer, path, len, wanted);
}

/* @return the absolute text of a call's path, tracer->path's; NULL: not known. */
static const char *path_of(struct tracer *tracer, struct task *task, const struct call *call,
			   int dirfd, unsigned arg)
{
	if (call->data[arg].state != DATA_COPIED ||
	    !make_absolute(tracer, task, dirfd, call_bytes(call, arg), call->data[arg].len, call))
		return NULL;
	return buf_str(&tracer->path);
}

/* The cwd, where it is below `from`, is below `to` now. @return whether it was. */
static bool move_cwd(struct tracer *tracer, struct fs *fs, const char *from, const char *to)
{
	if (!path_is_below(fs->cwd->text, from))
		return false;
	buf_clear(&tracer->text);
	buf_add_str(&tracer->text, to);
	buf_add_str(&tracer->text, fs->cwd->text + strlen(from));
	set_cwd(fs, tracer->text.data, tracer->text.len);
	return true;
}

void resolve_renamed(struct tracer *tracer, struct task *task, const struct call *call)
{
	bool at = call->row->nr != __NR_rename;
	bool swaps = call->row->nr == __NR_renameat2 && (call->args[4] & RENAME_EXCHANGE);
	struct fs *fs = task->fs;

	if (call->source == CALL_FROM_STOPS) {
		resolve_cwd(task, call->source);
		return;
	}
	const char *path = path_of(tracer, task, call, at ? (int)call->args[0] : AT_FDCWD, at);
	char *from = fs->cwd && path ? strdup(path) : NULL;
	const char *to =
		path_of(tracer, task, call, at ? (int)call->args[2] : AT_FDCWD, at ? 3 : 1);
	if (from && to && !move_cwd(tracer, fs, from, to) && swaps)
		move_cwd(tracer, fs, to, from);
	free(from);
}

struct name *resolve_target(struct tracer *tracer, struct task *task, int dirfd, const char *link,
			    size_t link_len, const char *target, size_t target_len,
			    const struct call *call, bool *wanted)
{
	struct name *base = NULL;

	*wanted = false;
	if (target_len == 0)
		return NULL;
	buf_clear(&tracer->text);
	if (target[0] != '/') {
		if (link_len == 0)
			return NULL;
		if (link[0] != '/') {
			base = base_of(tracer, task, dirfd, call);
			if (!base)
				return NULL;
		}
		/* The link's directory: its path with the last component taken away by text. */
		const char *slash = memrchr(link, '/', link_len);
		buf_add(&tracer->text, link, slash ? (size_t)(slash - link) + 1 : 0);
	}
	buf_add(&tracer->text, target, target_len);
	path_absolute(&tracer->path, base ? base->text : "/", base ? base->len : 1,
		      tracer->text.data, tracer->text.len);
	return finish(tracer, target, target_len, wanted);
}
