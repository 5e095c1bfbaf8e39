#include "writer/output.h"

#include "writer/name.h"
#include "writer/put.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

enum {
	MAX_NAMES = 1000000, /* of one process id on one host */
};

/* Replaces `path` by the name's `n`-th spelling, from 1 on. */
static const char *spell(struct buf *path, const struct output_name *name, unsigned n)
{
	struct buf word = {0};
	char digits[PUT_HASH];

	buf_addf(&word, "%s-%s-%d", name->exec, name->host, (int)name->pid);
	if (n > 1)
		buf_addf(&word, "-%u", n);
	buf_clear(path);
	path->failed = word.failed;
	if (!word.failed) {
		put_hash(digits, name_hash_text(word.data, word.len));
		buf_addf(path, "%s-%.16s-preload%s", name->prefix, digits + 1, name->suffix);
	}
	buf_free(&word);
	return buf_str(path);
}

/* Makes the directories above `path`. An error is told only when it matters: a directory that
 * exists may answer EROFS or EACCES as well.
 * @return the last error other than EEXIST, 0: none. */
static int make_parents(char *path)
{
	int error = 0;
	for (char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		if (mkdir(path, 0777) < 0 && errno != EEXIST)
			error = errno;
		*slash = '/';
	}
	return error;
}

static int create(const char *path)
{
	return open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0600);
}

/* Creates `path`, and its directories where they are missing. */
static int create_with_parents(char *path)
{
	int fd = create(path);
	/* Another process may be removing the directories while we make them. */
	for (int tries = 0; fd < 0 && errno == ENOENT && tries < 3; tries++) {
		int error = make_parents(path);
		fd = create(path);
		if (fd < 0 && errno == ENOENT && error)
			errno = error;
	}
	return fd;
}

int output_create(struct output *output, const struct output_name *name)
{
	struct buf path = {0};
	struct stat st;
	int fd = -1;

	for (unsigned n = 1; fd < 0 && n <= MAX_NAMES; n++) {
		if (!spell(&path, name, n)) {
			buf_free(&path);
			errno = ENOMEM;
			return -1;
		}
		fd = create_with_parents(path.data);
		if (fd < 0 && errno != EEXIST)
			break;
	}
	output->path = path.data;
	output->fd = fd;
	output->ending_at = 0;
	output->ending_len = 0;
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) < 0) {
		int error = errno;
		output_close(output);
		errno = error;
		return -1;
	}
	output->dev = st.st_dev;
	output->ino = st.st_ino;
	return 0;
}

/* Writes all of it, in as many calls as it takes. */
static int write_all(int fd, const char *bytes, size_t len, uint64_t at)
{
	while (len > 0) {
		ssize_t n = pwrite(fd, bytes, len, (off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			errno = n < 0 ? errno : EIO;
			return -1;
		}
		bytes += n;
		len -= (size_t)n;
		at += (size_t)n;
	}
	return 0;
}

/* Copies what is in `from` to `to`. @return 0, or -1 with errno. */
static int copy(int from, int to)
{
	enum { COPY_BYTES = 1 << 18 };
	char *bytes = malloc(COPY_BYTES);
	uint64_t at = 0;
	ssize_t n = -1;

	if (!bytes)
		return -1;
	while ((n = read(from, bytes, COPY_BYTES)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 || write_all(to, bytes, (size_t)n, at) < 0) {
			n = -1;
			break;
		}
		at += (size_t)n;
	}
	int error = errno;
	free(bytes);
	errno = error;
	return n < 0 ? -1 : 0;
}

/* Copies a file to a new one with a name of its own. @return 0, or -1 with errno and nothing there. */
static int copy_file(const char *from, char *to)
{
	int in = open(from, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (in < 0)
		return -1;
	int out = create_with_parents(to);
	int result = out < 0 ? -1 : copy(in, out);
	int error = errno;
	close(in);
	/* Some file systems tell only now that there is no room. */
	if (out >= 0 && close(out) < 0 && errno != EINTR && result == 0) {
		error = errno;
		result = -1;
	}
	if (out >= 0 && result < 0)
		unlink(to);
	errno = error;
	return result;
}

/* Gives a file another name of the same file system, if that is free. @return 0, or -1 with errno. */
static int rename_new(const char *from, const char *to)
{
	if (link(from, to) == 0) {
		unlink(from);
		return 0;
	}
	if (errno == EEXIST || errno == ENOENT || errno == EXDEV)
		return -1;
	/* There are file systems without hard links. */
	return renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
}

/* Moves `from` to the first free spelling. @return 0 and the name in `path`, or -1 with errno. */
static int move_to_free(const char *from, struct buf *path, const struct output_name *name)
{
	for (unsigned n = 1; n <= MAX_NAMES; n++) {
		if (!spell(path, name, n)) {
			errno = ENOMEM;
			return -1;
		}
		if (rename_new(from, path->data) == 0)
			return 0;
		if (errno == ENOENT && make_parents(path->data) == 0 &&
		    rename_new(from, path->data) == 0)
			return 0;
		if (errno != EEXIST)
			return -1;
	}
	return -1;
}

/* For another file system: a copy beside the place where it belongs, which then takes its name.
 * @return 0 and the name in `path`, or -1 with errno and nothing there. */
static int move_across(const char *from, struct buf *path, const struct output_name *name)
{
	struct output_name part = *name;
	struct buf beside = {0};
	int result = -1;
	int error = ENOMEM;

	part.suffix = ".part";
	if (spell(&beside, &part, 1)) {
		result = copy_file(from, beside.data);
		error = errno;
	}
	if (result == 0) {
		result = move_to_free(beside.data, path, name);
		error = errno;
		unlink(result == 0 ? from : beside.data);
	}
	buf_free(&beside);
	errno = error;
	return result;
}

int output_move(struct output *output, const struct output_name *name)
{
	struct buf path = {0};
	int result = move_to_free(output->path, &path, name);

	if (result < 0 && errno != ENOMEM && errno != ENOENT)
		result = move_across(output->path, &path, name);
	if (result < 0) {
		int error = errno;
		buf_free(&path);
		errno = error;
		return -1;
	}
	free(output->path);
	output->path = path.data;
	return 0;
}

/* Makes the file end where it ended before a write failed. */
static void cut_back(struct output *output)
{
	/* Should this fail as well, the file still holds a valid trace with bytes behind it. */
	write_all(output->fd, output->ending, output->ending_len, output->ending_at);
	while (ftruncate(output->fd, (off_t)(output->ending_at + output->ending_len)) < 0 &&
	       errno == EINTR)
		;
}

int output_append(struct output *output, const struct buf *bytes, size_t ending_len)
{
	size_t old = output->ending_len;

	if (write_all(output->fd, bytes->data + old, bytes->len - old, output->ending_at + old) <
		    0 ||
	    write_all(output->fd, bytes->data, old, output->ending_at) < 0) {
		int error = errno;
		cut_back(output);
		errno = error;
		return -1;
	}
	output->ending_at += bytes->len - ending_len;
	output->ending_len = ending_len;
	memcpy(output->ending, bytes->data + bytes->len - ending_len, ending_len);
	return 0;
}

void output_remove(struct output *output)
{
	if (output->ino)
		unlink(output->path);
}

int output_close(struct output *output)
{
	int fd = output->fd;
	output->fd = -1;
	/* After EINTR the descriptor is closed all the same. */
	return fd >= 0 && close(fd) < 0 && errno != EINTR ? -1 : 0;
}

int output_open(struct output *output)
{
	struct stat st;

	if (output->fd >= 0)
		return 0;
	output->fd = open(output->path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (output->fd < 0)
		return -1;
	if (fstat(output->fd, &st) == 0 && st.st_dev == output->dev && st.st_ino == output->ino)
		return 0;
	output_close(output);
	errno = ESTALE;
	return -1;
}

bool output_is_removed(const struct output *output)
{
	struct stat st;
	return fstat(output->fd, &st) == 0 && st.st_nlink == 0;
}
