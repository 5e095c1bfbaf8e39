#include "check/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

enum {
	TEXT_STEP = 1 << 17,
	/* As large as those of dftrace-run: readers work on members side by side. */
	MEMBER_SIZE = 8 << 20,
};

static void failed(struct sink *sink, int error)
{
	if (!sink->error)
		sink->error = error ? error : EIO;
}

int sink_open(struct sink *sink, const char *path, bool brackets, bool replace, mode_t mode)
{
	size_t len = strlen(path);
	char *temporary = NULL;

	*sink = (struct sink){.fd = -1, .brackets = brackets, .replace = replace};
	sink->compressed = len > 3 && strcmp(path + len - 3, ".gz") == 0;
	if (!replace && access(path, F_OK) == 0) {
		errno = EEXIST;
		return -1;
	}
	sink->path = strdup(path);
	if (!sink->path || asprintf(&temporary, "%s.%d.tmp", path, (int)getpid()) < 0 ||
	    (sink->compressed && !(sink->deflater = deflater_new()))) {
		free(temporary);
		free(sink->path);
		errno = ENOMEM;
		return -1;
	}
	sink->temporary = temporary;
	sink->fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (sink->fd < 0) {
		int error = errno;
		sink_abandon(sink);
		errno = error;
		return -1;
	}
	if (brackets)
		sink_line(sink, "[", 1);
	return 0;
}

static void put_out(struct sink *sink)
{
	const char *at = sink->out.data;
	size_t left = sink->out.len;

	if (sink->out.failed)
		failed(sink, ENOMEM);
	while (left > 0 && !sink->error) {
		ssize_t n = write(sink->fd, at, left);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			failed(sink, errno);
			break;
		}
		at += n;
		left -= (size_t)n;
	}
	buf_clear(&sink->out);
}

/* Hands the text on. `end`: closes the member, with `text` as its last bytes. */
static void put_text_out(struct sink *sink, bool end, const char *last)
{
	if (sink->text.failed)
		failed(sink, ENOMEM);
	if (!sink->compressed) {
		buf_add(&sink->out, sink->text.data, sink->text.len);
		buf_add_str(&sink->out, last);
	} else {
		if (!sink->member_is_open) {
			deflater_reset(sink->deflater);
			member_open(&sink->member, &sink->out);
			sink->member_is_open = true;
		}
		if (member_add(&sink->member, sink->deflater, &sink->out, sink->text.data,
			       sink->text.len, end) < 0)
			failed(sink, ENOMEM);
		if (end) {
			member_close(&sink->member, &sink->out, last, strlen(last));
			sink->member_is_open = false;
		}
	}
	buf_clear(&sink->text);
	put_out(sink);
}

void sink_line(struct sink *sink, const char *bytes, size_t len)
{
	buf_add(&sink->text, bytes, len);
	buf_add_char(&sink->text, '\n');
	if (sink->text.len >= TEXT_STEP)
		put_text_out(sink, sink->member_is_open && sink->member.size >= MEMBER_SIZE, "");
}

static void release(struct sink *sink)
{
	if (sink->fd >= 0)
		close(sink->fd);
	deflater_free(sink->deflater);
	buf_free(&sink->text);
	buf_free(&sink->out);
	free(sink->path);
	free(sink->temporary);
}

static int give_name(const struct sink *sink)
{
	if (sink->replace)
		return rename(sink->temporary, sink->path);
	/* A link never replaces what has got the name meanwhile. */
	if (link(sink->temporary, sink->path) == 0)
		return unlink(sink->temporary);
	if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS)
		return -1;
	return access(sink->path, F_OK) == 0 ? (errno = EEXIST, -1)
					     : rename(sink->temporary, sink->path);
}

int sink_close(struct sink *sink)
{
	put_text_out(sink, true, sink->brackets ? "]\n" : "");
	if (!sink->error && (fsync(sink->fd) < 0 && errno != EINVAL))
		failed(sink, errno);
	if (!sink->error && give_name(sink) < 0)
		failed(sink, errno);
	if (sink->error)
		unlink(sink->temporary);
	int error = sink->error;
	release(sink);
	errno = error;
	return error ? -1 : 0;
}

void sink_abandon(struct sink *sink)
{
	if (sink->fd >= 0)
		unlink(sink->temporary);
	release(sink);
}
