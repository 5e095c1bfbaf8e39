/* What the writer's tests share: a directory, a writer in it, and a reader of what it wrote that
 * knows nothing of how it was written. */
#ifndef TEST_WRITER_H
#define TEST_WRITER_H

#include "base/buf.h"
#include "base/clock.h"
#include "writer/writer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#define MS 1000000UL

struct place {
	char dir[64];
	char prefix[80];
	struct clock clock;
	struct writer *writer;
	struct writer_options options;
};

static inline void place_new(struct place *place)
{
	*place = (struct place){0};
	strcpy(place->dir, "/tmp/test-writer-XXXXXX");
	assert_non_null(mkdtemp(place->dir));
	snprintf(place->prefix, sizeof(place->prefix), "%s/t", place->dir);
	place->clock = clock_new();
	place->options = (struct writer_options){
		.prefix = place->prefix,
		.compress = true,
		.metadata = true,
		.thread_ids = true,
		.workers = 1,
		.version = "1.2.3",
		.clock = &place->clock,
	};
}

static inline void place_start(struct place *place)
{
	place->writer = writer_new(&place->options);
	assert_non_null(place->writer);
}

static inline void place_stop(struct place *place)
{
	assert_int_equal(writer_free(place->writer, 0), 0);
	place->writer = NULL;
}

/* Removes the directory and all in it. */
static inline void place_remove(struct place *place)
{
	char command[128];
	snprintf(command, sizeof(command), "rm -rf '%s'", place->dir);
	assert_int_equal(system(command), 0);
}

static inline uint64_t now(const struct place *place)
{
	return clock_now(&place->clock);
}

static inline struct trace *open_trace(struct place *place, pid_t pid, const char *exec)
{
	const char *argv[] = {exec, "-x", "a b"};
	struct trace_info info = {
		.pid = pid,
		.ppid = 1,
		.exec = exec,
		.argv = argv,
		.argc = 3,
		.comm = "main",
	};
	struct trace *trace = trace_new(place->writer, &info);
	assert_non_null(trace);
	return trace;
}

/* A pread as the tracer would write it. */
static inline void add_pread(struct place *place, struct trace *trace, pid_t tid, struct name *file,
			     uint64_t at)
{
	struct event event = {
		.layer = LAYER_POSIX,
		.name = "pread",
		.pid = tid,
		.tid = tid,
		.start = at ? at : now(place),
		.id = trace_next_id(trace),
		.level = 1,
		.file = file,
		.nargs = 4,
		.args = {{"fd", EVENT_INT, {.i = 5}},
			 {"count", EVENT_UINT, {.u = 1}},
			 {"offset", EVENT_INT, {.i = 0}},
			 {"ret", EVENT_INT, {.i = 1}}},
	};
	event.end = event.start + 2500;
	trace_event(trace, &event, true);
}

static inline int finish(struct trace *trace, bool wait)
{
	struct trace_end end = {.how = TRACE_END_EXIT, .value = 0};
	return trace_finish(trace, &end, wait, 0);
}

/* What a file holds. */
struct contents {
	struct buf text;
	bool valid;       /* one or more complete gzip members */
	size_t behind;    /* bytes after the last of them */
	unsigned members; /* complete ones */
	size_t biggest;   /* uncompressed bytes of the largest */
	bool cut_at_lines;
	size_t size; /* of the file */
};

static inline void read_whole(const char *path, struct buf *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	assert_true(fd >= 0);
	do {
		char *room = buf_reserve(out, 65536);
		assert_non_null(room);
		n = read(fd, room, 65536);
		assert_true(n >= 0);
		out->len += (size_t)n;
	} while (n > 0);
	close(fd);
}

static inline void inflate_all(const struct buf *raw, struct contents *contents)
{
	z_stream z = {0};
	char out[65536];
	size_t at = 0;

	contents->cut_at_lines = true;
	if (inflateInit2(&z, 15 + 16) != Z_OK)
		return;
	while (at < raw->len) {
		size_t whole = contents->text.len;
		int result;
		z.next_in = (Bytef *)raw->data + at;
		z.avail_in = (uInt)(raw->len - at);
		do {
			z.next_out = (Bytef *)out;
			z.avail_out = sizeof(out);
			result = inflate(&z, Z_NO_FLUSH);
			buf_add(&contents->text, out, sizeof(out) - z.avail_out);
		} while (result == Z_OK);
		if (result != Z_STREAM_END) {
			contents->text.len = whole;
			break;
		}
		at = raw->len - z.avail_in;
		contents->members++;
		size_t size = contents->text.len - whole;
		if (size > contents->biggest)
			contents->biggest = size;
		if (size && contents->text.data[contents->text.len - 1] != '\n')
			contents->cut_at_lines = false;
		inflateReset(&z);
	}
	inflateEnd(&z);
	contents->behind = raw->len - at;
	contents->valid = contents->members > 0;
}

static inline void read_trace(const char *path, struct contents *contents)
{
	struct buf raw = {0};

	*contents = (struct contents){0};
	read_whole(path, &raw);
	contents->size = raw.len;
	if (strlen(path) > 3 && strcmp(path + strlen(path) - 3, ".gz") == 0)
		inflate_all(&raw, contents);
	else
		buf_add(&contents->text, raw.data, raw.len);
	assert_non_null(buf_str(&contents->text));
	buf_free(&raw);
}

/* @return whether this is a line of JSON. A blank before its end is allowed in plain files. */
static inline bool is_object(const char *line, size_t len)
{
	while (len > 0 && line[len - 1] == ' ')
		len--;
	return len > 2 && line[0] == '{' && line[1] == '"' && line[len - 1] == '}';
}

/* @return the events of the process in the text, -1 when it is not whole lines, in brackets in
 * v1. */
static inline long count_events(const struct buf *text)
{
	const char *p = text->data;
	const char *end = p + text->len;
	bool v1 = text->len > 0 && *p == '[';
	bool closed = false;
	long events = 0;

	for (size_t n = 0; p < end; n++) {
		const char *line_end = memchr(p, '\n', (size_t)(end - p));
		if (!line_end || closed)
			return -1;
		size_t len = (size_t)(line_end - p);
		if (v1 && n == 0) {
			if (len != 1)
				return -1;
		} else if (v1 && len == 1 && *p == ']') {
			closed = true;
		} else {
			if (!is_object(p, len))
				return -1;
			events += memmem(p, len, v1 ? "\"ph\":\"X\"" : "\"ph\":1,", v1 ? 8 : 7) &&
				  !memmem(p, len, "\"cat\":\"dftracer\"", 16);
		}
		p = line_end + 1;
	}
	return closed == v1 ? events : -1;
}

/* @return how many files are in the directory; the path of one of them. */
static inline unsigned find_files(const struct place *place, char *path, size_t size)
{
	DIR *dir = opendir(place->dir);
	struct dirent *entry;
	unsigned count = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		count++;
		assert_true(snprintf(path, size, "%s/%s", place->dir, entry->d_name) < (int)size);
	}
	closedir(dir);
	return count;
}

/* Reads the only file. */
static inline void read_only_trace(const struct place *place, struct contents *contents)
{
	char path[512];
	assert_int_equal(find_files(place, path, sizeof(path)), 1);
	read_trace(path, contents);
	if (place->options.compress) {
		assert_true(contents->valid);
		assert_int_equal(contents->behind, 0);
	}
}

static inline unsigned count_text(const struct buf *text, const char *what)
{
	const char *p = text->data;
	unsigned count = 0;
	while ((p = memmem(p, text->len - (size_t)(p - text->data), what, strlen(what)))) {
		count++;
		p++;
	}
	return count;
}

static inline struct name *name_of(const char *text)
{
	struct name *name = name_new(text, strlen(text));
	assert_non_null(name);
	return name;
}

#endif
