#include "check/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <sys/stat.h>

enum {
	READ_SIZE = 1 << 17,
	TEXT_SIZE = 1 << 18,
	/* Traces become 10 to 60 times smaller. What expands more than this after the first bytes is
	 * made to fill memory or disk. */
	RATIO = 600,
	RATIO_FROM = 64 << 20,
};

struct source {
	int fd;
	bool compressed;
	bool inflating; /* inside a member */
	bool at_eof;    /* of the file */
	enum source_end end;
	const char *why;
	uint64_t size;
	uint64_t read;
	uint64_t text;
	unsigned long members;
	unsigned long cut_members;
	bool member_cut; /* the last one ended inside a line; matters when another follows */
	z_stream stream;
	uint64_t lines;

	unsigned char *in;
	size_t in_at;
	size_t in_len;
	char *out;
	size_t cap;
	size_t at;     /* where the next line begins */
	size_t looked; /* no newline between at and here */
	size_t len;
	uint64_t skipped; /* bytes of a line that is too long */
};

static void set_end(struct source *source, enum source_end end, const char *why)
{
	source->end = end;
	source->why = why;
}

/* Reads more of the file when all is used. @return whether there are bytes. */
static bool fill(struct source *source)
{
	if (source->in_at < source->in_len)
		return true;
	if (source->at_eof)
		return false;
	ssize_t n;
	do
		n = read(source->fd, source->in, READ_SIZE);
	while (n < 0 && errno == EINTR);
	if (n <= 0) {
		source->at_eof = true;
		if (n < 0)
			set_end(source, SOURCE_UNUSABLE, strerror(errno));
		return false;
	}
	source->in_at = 0;
	source->in_len = (size_t)n;
	source->read += (size_t)n;
	return true;
}

/* Begins a member, or finds that there is none. @return whether it began. */
static bool begin_member(struct source *source)
{
	if (!fill(source)) {
		if (source->end == SOURCE_OPEN)
			set_end(source, SOURCE_WHOLE, NULL);
		return false;
	}
	if (source->members > 0 && source->in[source->in_at] != 0x1f) {
		set_end(source, SOURCE_TRAILING, "bytes behind the end of the compressed text");
		return false;
	}
	inflateReset(&source->stream);
	source->inflating = true;
	if (source->member_cut)
		source->cut_members++;
	return true;
}

static void end_member(struct source *source)
{
	source->inflating = false;
	source->members++;
	source->member_cut = source->len > source->at && source->out[source->len - 1] != '\n';
}

/* inflate() said no. The first two bytes decide whether it was a member at all. */
static void refuse_member(struct source *source)
{
	if (source->members > 0 && source->stream.total_out == 0)
		set_end(source, SOURCE_TRAILING, "bytes behind the end of the compressed text");
	else
		set_end(source, SOURCE_DAMAGED,
			source->stream.msg &&
					strcmp(source->stream.msg, "incorrect data check") == 0
				? "the compressed text does not have the sum that it should"
				: "the compressed text is damaged");
}

static void expand(struct source *source)
{
	if (!source->inflating && !begin_member(source))
		return;
	if (!fill(source)) {
		if (source->end == SOURCE_OPEN)
			set_end(source, SOURCE_TRUNCATED,
				"the file ends inside the compressed text");
		return;
	}
	z_stream *stream = &source->stream;
	stream->next_in = source->in + source->in_at;
	stream->avail_in = (uInt)(source->in_len - source->in_at);
	stream->next_out = (Bytef *)source->out + source->len;
	stream->avail_out = (uInt)(source->cap - source->len);
	int result = inflate(stream, Z_NO_FLUSH);
	size_t made = source->cap - source->len - stream->avail_out;
	source->in_at = source->in_len - stream->avail_in;
	source->len += made;
	source->text += made;
	if (result == Z_STREAM_END)
		end_member(source);
	else if (result != Z_OK && result != Z_BUF_ERROR)
		refuse_member(source);
	if (source->text > RATIO_FROM && source->text / RATIO > source->read)
		set_end(source, SOURCE_UNUSABLE,
			"it expands more than 600 times, as no trace does");
}

static void copy(struct source *source)
{
	if (!fill(source)) {
		if (source->end == SOURCE_OPEN)
			set_end(source, SOURCE_WHOLE, NULL);
		return;
	}
	size_t n = source->in_len - source->in_at;
	if (n > source->cap - source->len)
		n = source->cap - source->len;
	memcpy(source->out + source->len, source->in + source->in_at, n);
	source->in_at += n;
	source->len += n;
	source->text += n;
}

/* Makes room behind the text that is there. @return whether a line may still grow. */
static bool make_room(struct source *source)
{
	if (source->at > 0) {
		memmove(source->out, source->out + source->at, source->len - source->at);
		source->len -= source->at;
		source->looked -= source->at;
		source->at = 0;
	}
	if (source->len < source->cap)
		return true;
	if (source->cap >= SOURCE_LINE)
		return false;
	size_t cap = source->cap * 2;
	char *bigger = cap > 0 ? realloc(source->out, cap) : NULL;
	if (!bigger) {
		set_end(source, SOURCE_UNUSABLE, "out of memory");
		return false;
	}
	source->out = bigger;
	source->cap = cap;
	return true;
}

static void more(struct source *source)
{
	if (source->compressed)
		expand(source);
	else
		copy(source);
}

/* Drops what follows of a line that is too long, up to its newline. */
static void skip(struct source *source)
{
	uint64_t skipped = source->len;

	source->len = source->at = source->looked = 0;
	while (source->end == SOURCE_OPEN) {
		more(source);
		const char *newline = memchr(source->out, '\n', source->len);
		if (newline) {
			source->at = source->looked = (size_t)(newline + 1 - source->out);
			return;
		}
		skipped += source->len;
		source->len = 0;
		if (skipped / SOURCE_GIVE_UP > SOURCE_LINE)
			set_end(source, SOURCE_UNUSABLE,
				"a line of more than 1 GiB, as no trace has");
	}
}

/* @return where the line ends, NULL when the text ended before. */
static const char *find_newline(struct source *source)
{
	for (;;) {
		const char *newline =
			memchr(source->out + source->looked, '\n', source->len - source->looked);
		if (newline)
			return newline;
		source->looked = source->len;
		if (source->end != SOURCE_OPEN ||
		    (source->len == source->cap && !make_room(source)))
			return NULL;
		more(source);
	}
}

bool source_next(struct source *source, struct source_line *line)
{
	const char *newline = find_newline(source);

	*line = (struct source_line){.number = ++source->lines};
	if (newline) {
		line->bytes = source->out + source->at;
		line->len = (size_t)(newline - line->bytes);
		source->at = source->looked = (size_t)(newline + 1 - source->out);
		return true;
	}
	if (source->end == SOURCE_OPEN) {
		skip(source);
		line->too_long = true;
		line->bytes = "";
		return source->end != SOURCE_UNUSABLE;
	}
	line->bytes = source->out + source->at;
	line->len = source->len - source->at;
	line->cut = true;
	source->at = source->looked = source->len;
	return line->len > 0 && source->end != SOURCE_UNUSABLE;
}

enum source_end source_end(const struct source *source, const char **why)
{
	if (why)
		*why = source->why;
	return source->end;
}

bool source_is_compressed(const struct source *source)
{
	return source->compressed;
}

unsigned long source_members(const struct source *source, unsigned long *cut)
{
	if (cut)
		*cut = source->cut_members;
	return source->members;
}

uint64_t source_read(const struct source *source)
{
	return source->read;
}

uint64_t source_size(const struct source *source)
{
	return source->size;
}

uint64_t source_text(const struct source *source)
{
	return source->text;
}

/* Looks at the first bytes. @return NULL, or why it is no trace. */
static const char *recognise(struct source *source)
{
	if (!fill(source))
		return source->why ? source->why : "the file is empty";
	if (source->in_len >= 2 && source->in[0] == 0x1f && source->in[1] == 0x8b) {
		source->compressed = true;
		return inflateInit2(&source->stream, 15 + 16) == Z_OK ? NULL : "out of memory";
	}
	size_t blanks = 0;
	while (blanks < source->in_len && strchr(" \t\r\n", source->in[blanks]) &&
	       source->in[blanks])
		blanks++;
	if (blanks < source->in_len && source->in[blanks] != '[' && source->in[blanks] != '{' &&
	    source->in[blanks] != ']')
		return "not a trace: neither gzip nor lines of JSON";
	return NULL;
}

static const char *open_file(struct source *source, const char *path)
{
	struct stat status;

	/* A FIFO must not make us wait for its writer. */
	source->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (source->fd < 0 || fstat(source->fd, &status) < 0)
		return strerror(errno);
	if (!S_ISREG(status.st_mode))
		return "not a regular file";
	source->size = (uint64_t)status.st_size;
	source->in = malloc(READ_SIZE);
	source->out = malloc(TEXT_SIZE);
	source->cap = TEXT_SIZE;
	if (!source->in || !source->out)
		return "out of memory";
	posix_fadvise(source->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	return recognise(source);
}

struct source *source_open(const char *path, char *why, size_t size)
{
	struct source *source = calloc(1, sizeof(*source));
	const char *wrong = "out of memory";

	if (source) {
		source->fd = -1;
		wrong = open_file(source, path);
		if (!wrong)
			return source;
	}
	snprintf(why, size, "%s", wrong);
	source_close(source);
	return NULL;
}

void source_close(struct source *source)
{
	if (!source)
		return;
	if (source->compressed)
		inflateEnd(&source->stream);
	if (source->fd >= 0)
		close(source->fd);
	free(source->in);
	free(source->out);
	free(source);
}
