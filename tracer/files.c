#include "tracer/files.h"

#include <errno.h>
#include <stdlib.h>

#define FOREVER UINT64_MAX

struct interval {
	struct interval *older;
	struct file *file;
	uint64_t begin;
	uint64_t end; /* FOREVER: open */
	bool cloexec; /* belongs to the descriptor, not to the file */
	bool gap;     /* being replaced: still possible behind `end` */
};

struct file *file_new(struct name *name, enum file_skip skip)
{
	struct file *file = malloc(sizeof(*file));
	if (!file)
		return NULL;
	*file = (struct file){.refs = 1, .skip = skip, .name = name_ref(name)};
	return file;
}

struct file *file_ref(struct file *file)
{
	file->refs++;
	return file;
}

void file_unref(struct file *file)
{
	if (file && --file->refs == 0) {
		name_unref(file->name);
		free(file);
	}
}

struct files *files_new(void)
{
	struct files *files = malloc(sizeof(*files));
	if (files)
		*files = (struct files){.refs = 1, .horizon = FOREVER};
	return files;
}

struct files *files_ref(struct files *files)
{
	files->refs++;
	return files;
}

static void interval_free(struct interval *i)
{
	while (i) {
		struct interval *older = i->older;
		file_unref(i->file);
		free(i);
		i = older;
	}
}

void files_unref(struct files *files)
{
	struct map_slot *slot;
	size_t at = 0;

	if (!files || --files->refs > 0)
		return;
	while ((slot = map_next(&files->table, &at)))
		interval_free(slot->value);
	map_free(&files->table);
	free(files);
}

static struct interval *newest(const struct files *files, int fd)
{
	return fd < 0 ? NULL : map_get(&files->table, (uint64_t)fd);
}

static struct interval *open_at(struct interval *i, uint64_t time)
{
	for (; i; i = i->older) {
		if (i->begin <= time && time < i->end)
			return i;
	}
	return NULL;
}

/* Drops the intervals behind `i` that no call still to be decoded can ask for. */
static void prune(struct interval *i, uint64_t horizon)
{
	while (i->older && (i->older->end > horizon || i->older->gap || i->older->end == FOREVER))
		i = i->older;
	interval_free(i->older);
	i->older = NULL;
}

static int add(struct files *files, int fd, struct file *file, bool cloexec, uint64_t begin)
{
	struct interval *i = malloc(sizeof(*i));
	if (!i)
		return -1;
	*i = (struct interval){
		.older = newest(files, fd),
		.file = file,
		.begin = begin,
		.end = FOREVER,
		.cloexec = cloexec,
	};
	if (map_put(&files->table, (uint64_t)fd, i) < 0) {
		free(i);
		return -1;
	}
	file_ref(file);
	if (i->older && i->older->end == FOREVER)
		i->older->end = begin;
	prune(i, files->horizon);
	return 0;
}

struct files *files_copy(const struct files *files, uint64_t time)
{
	struct files *copy = files_new();
	struct map_slot *slot;
	size_t at = 0;

	if (!copy)
		return NULL;
	while ((slot = map_next(&files->table, &at))) {
		struct interval *i = open_at(slot->value, time);
		if (i && add(copy, (int)slot->key, i->file, i->cloexec, 0) < 0) {
			files_unref(copy);
			return NULL;
		}
	}
	return copy;
}

int files_open(struct files *files, int fd, struct file *file, bool cloexec, uint64_t time)
{
	return add(files, fd, file, cloexec, time);
}

int files_learn(struct files *files, int fd, struct file *file, bool cloexec)
{
	struct interval *last = newest(files, fd);

	if (!last || last->end != FOREVER)
		return add(files, fd, file, cloexec, last ? last->end : 0);
	/* What it was before the last open of this number. */
	struct interval *i = malloc(sizeof(*i));
	if (!i)
		return -1;
	*i = (struct interval){.older = last->older, .file = file_ref(file), .end = last->begin};
	last->older = i;
	return 0;
}

struct file *files_at(const struct files *files, int fd, uint64_t time, bool *ambiguous)
{
	struct interval *last = newest(files, fd);
	struct interval *i = open_at(last, time);

	*ambiguous = false;
	if (i)
		return i->file;
	for (i = last; i; i = i->older) {
		if (i->gap && i->end <= time) {
			*ambiguous = true;
			return i->file;
		}
	}
	return NULL;
}

void files_close(struct files *files, int fd, uint64_t time, bool replaced)
{
	struct interval *i = open_at(newest(files, fd), time);
	if (i && i->end == FOREVER) {
		i->end = time;
		i->gap = replaced;
	}
}

void files_restore(struct files *files, int fd, uint64_t time)
{
	struct interval *last = newest(files, fd);
	struct interval *newer = NULL;

	for (struct interval *i = last; i; newer = i, i = i->older) {
		if (i->end == time && i->begin <= time) {
			i->end = newer ? newer->begin : FOREVER;
			i->gap = false;
			return;
		}
	}
}

void files_replaced(struct files *files, int fd)
{
	for (struct interval *i = newest(files, fd); i; i = i->older)
		i->gap = false;
}

void files_set_cloexec(struct files *files, int fd, bool cloexec)
{
	struct interval *i = newest(files, fd);
	if (i)
		i->cloexec = cloexec;
}

void files_exec(struct files *files, uint64_t time)
{
	struct map_slot *slot;
	size_t at = 0;

	while ((slot = map_next(&files->table, &at))) {
		struct interval *i = slot->value;
		if (i->cloexec && i->end == FOREVER)
			i->end = time;
	}
}

int files_next(const struct files *files, size_t *at, uint64_t time)
{
	struct map_slot *slot;

	while ((slot = map_next(&files->table, at))) {
		if (open_at(slot->value, time))
			return (int)slot->key;
	}
	return -1;
}
