#include "launchers/config-file.h"

#include "base/option.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yaml.h>

#include <sys/stat.h>

enum {
	BYTES_MOST = 1 << 20,
	DEPTH_MOST = 8,
	VALUES_MOST = 4096,
};

struct reader {
	struct config_file *file;
	const char *path;
	yaml_parser_t parser;
	struct buf key;             /* dotted, of the mapping or value being read */
	size_t lengths[DEPTH_MOST]; /* of the key outside each open mapping */
	unsigned depth;             /* open mappings */
	bool has_key;               /* the next event is the value of `key` */
	struct buf *error;
};

/* "conf.yaml:7", in a form that stays on a line. */
static void add_place(struct buf *out, const char *path, size_t line)
{
	for (; *path; path++)
		buf_add_char(out, (unsigned char)*path < ' ' || *path == 0x7f ? '?' : *path);
	if (line)
		buf_addf(out, ":%zu", line);
}

static int refuse(struct reader *reader, size_t line, const char *why)
{
	add_place(reader->error, reader->path, line);
	buf_addf(reader->error, ": %s", why);
	return -1;
}

static int no_memory(struct reader *reader)
{
	return refuse(reader, 0, "out of memory");
}

/* Reads the file into `text`. A pipe may stand for a file; one that nobody writes to is empty. */
static int read_file(struct reader *reader, struct buf *text)
{
	struct stat st;
	ssize_t n;

	int fd = open(reader->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return refuse(reader, 0, strerror(errno));
	int result = 0;
	if (fstat(fd, &st) < 0)
		result = refuse(reader, 0, strerror(errno));
	else if (S_ISDIR(st.st_mode))
		result = refuse(reader, 0, strerror(EISDIR));
	else
		fcntl(fd, F_SETFL, O_RDONLY);
	while (result == 0) {
		char *room = buf_reserve(text, 65536);
		n = room ? read(fd, room, 65536) : -1;
		if (n < 0 && room && errno == EINTR)
			continue;
		if (n == 0)
			break;
		if (n < 0)
			result = room ? refuse(reader, 0, strerror(errno)) : no_memory(reader);
		else
			text->len += (size_t)n;
		if (text->len > BYTES_MOST)
			result = refuse(reader, 0,
					"larger than a megabyte, which no file of settings is");
	}
	close(fd);
	return result;
}

static int refuse_syntax(struct reader *reader)
{
	const yaml_parser_t *parser = &reader->parser;
	size_t line = parser->error == YAML_READER_ERROR ? 0 : parser->problem_mark.line + 1;

	if (parser->error == YAML_MEMORY_ERROR)
		return no_memory(reader);
	add_place(reader->error, reader->path, line);
	buf_addf(reader->error, ": no YAML: %s", parser->problem ? parser->problem : "unreadable");
	return -1;
}

/* Adds a value under the current key. Takes `value`. */
static int add_value(struct reader *reader, char *value, bool is_list, size_t line)
{
	struct config_file *file = reader->file;
	struct buf place = {0};
	const char *key = buf_str(&reader->key);

	if (!key || !value) {
		free(value);
		return no_memory(reader);
	}
	for (size_t i = 0; i < file->count; i++) {
		if (strcmp(file->values[i].key, key) == 0) {
			free(value);
			add_place(reader->error, reader->path, line);
			buf_add_str(reader->error, ": ");
			option_add_quoted(reader->error, key);
			buf_addf(reader->error, " stands here again, after %s",
				 file->values[i].place);
			return -1;
		}
	}
	if (file->count == VALUES_MOST) {
		free(value);
		return refuse(reader, line, "more values than there are settings");
	}
	struct config_value *values =
		reallocarray(file->values, file->count + 1, sizeof(*file->values));
	if (values)
		file->values = values;
	add_place(&place, reader->path, line);
	struct config_value added = {
		.key = strdup(key),
		.value = value,
		.place = buf_str(&place) ? strdup(place.data) : NULL,
		.is_list = is_list,
	};
	buf_free(&place);
	if (!values || !added.key || !added.place) {
		free(added.key);
		free(added.value);
		free(added.place);
		return no_memory(reader);
	}
	values[file->count++] = added;
	return 0;
}

/* @return a copy of a scalar, empty for null; NULL when out of memory. NUL cannot be in it: YAML has no such. */
static char *copy_scalar(const yaml_event_t *event)
{
	const char *text = (const char *)event->data.scalar.value;
	size_t len = event->data.scalar.length;
	bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;

	if (plain && (strcmp(text, "~") == 0 || strcasecmp(text, "null") == 0))
		len = 0;
	return strndup(text, len);
}

static int next(struct reader *reader, yaml_event_t *event)
{
	if (!yaml_parser_parse(&reader->parser, event))
		return refuse_syntax(reader);
	size_t line = event->start_mark.line + 1;
	if (event->type != YAML_ALIAS_EVENT)
		return 0;
	yaml_event_delete(event);
	return refuse(reader, line, "an alias (*name): write the value itself");
}

/* Reads the items of a list up to its end. */
static int read_list(struct reader *reader, size_t line)
{
	struct buf list = {0};
	yaml_event_t event;
	int result = 0;

	for (bool more = true; more && result == 0;) {
		if (next(reader, &event) < 0) {
			result = -1;
			break;
		}
		if (event.type == YAML_SCALAR_EVENT) {
			buf_addf(&list, "%s%s", list.len ? ":" : "",
				 (const char *)event.data.scalar.value);
		} else if (event.type == YAML_SEQUENCE_END_EVENT) {
			more = false;
		} else {
			result = refuse(reader, event.start_mark.line + 1,
					"a list of plain values is wanted here");
		}
		yaml_event_delete(&event);
	}
	const char *text = buf_str(&list);
	if (result == 0)
		result = add_value(reader, text ? strdup(text) : NULL, true, line);
	buf_free(&list);
	return result;
}

/* A scalar is a key, or the value of one. */
static int take_scalar(struct reader *reader, const yaml_event_t *event, size_t line)
{
	const char *text = (const char *)event->data.scalar.value;

	if (strlen(text) < event->data.scalar.length)
		return refuse(reader, line, "a NUL byte");
	if (reader->depth == 0) {
		if (!*text)
			return 0; /* a file of comments */
		return refuse(reader, line,
			      "settings are wanted, as in \"tracer: {init: PRELOAD}\"");
	}
	if (reader->has_key) {
		reader->has_key = false;
		int result = add_value(reader, copy_scalar(event), false, line);
		reader->key.len = reader->lengths[reader->depth - 1];
		return result;
	}
	reader->has_key = true;
	if (reader->key.len)
		buf_add_char(&reader->key, '.');
	buf_add_str(&reader->key, text);
	return 0;
}

static int open_mapping(struct reader *reader, size_t line)
{
	if (reader->depth > 0 && !reader->has_key)
		return refuse(reader, line, "a name is wanted here");
	if (reader->depth == DEPTH_MOST)
		return refuse(reader, line, "nested deeper than any setting");
	reader->lengths[reader->depth++] = reader->key.len;
	reader->has_key = false;
	return 0;
}

static void close_mapping(struct reader *reader)
{
	reader->depth--;
	reader->key.len = reader->depth > 0 ? reader->lengths[reader->depth - 1] : 0;
}

static int open_list(struct reader *reader, size_t line)
{
	if (!reader->has_key)
		return refuse(reader, line, "settings are wanted here, not a list");
	reader->has_key = false;
	int result = read_list(reader, line);
	reader->key.len = reader->lengths[reader->depth - 1];
	return result;
}

static int read_events(struct reader *reader)
{
	yaml_event_t event;
	unsigned documents = 0;
	int result = 0;

	for (bool more = true; more && result == 0;) {
		if (next(reader, &event) < 0)
			return -1;
		size_t line = event.start_mark.line + 1;
		switch (event.type) {
		case YAML_DOCUMENT_START_EVENT:
			if (++documents > 1)
				result = refuse(reader, line, "a second document");
			break;
		case YAML_SCALAR_EVENT:
			result = take_scalar(reader, &event, line);
			break;
		case YAML_MAPPING_START_EVENT:
			result = open_mapping(reader, line);
			break;
		case YAML_MAPPING_END_EVENT:
			close_mapping(reader);
			break;
		case YAML_SEQUENCE_START_EVENT:
			result = open_list(reader, line);
			break;
		case YAML_STREAM_END_EVENT:
			more = false;
			break;
		default:
			break;
		}
		yaml_event_delete(&event);
	}
	return result;
}

int config_file_read(struct config_file *file, const char *path, struct buf *error)
{
	struct reader reader = {.file = file, .path = path, .error = error};
	struct buf text = {0};
	int result = -1;

	*file = (struct config_file){0};
	if (read_file(&reader, &text) == 0) {
		if (!yaml_parser_initialize(&reader.parser)) {
			no_memory(&reader);
		} else {
			yaml_parser_set_input_string(
				&reader.parser, (const unsigned char *)(text.len ? text.data : ""),
				text.len);
			result = read_events(&reader);
			yaml_parser_delete(&reader.parser);
		}
	}
	buf_free(&reader.key);
	buf_free(&text);
	return result;
}

void config_file_free(struct config_file *file)
{
	for (size_t i = 0; i < file->count; i++) {
		free(file->values[i].key);
		free(file->values[i].value);
		free(file->values[i].place);
	}
	free(file->values);
	*file = (struct config_file){0};
}
