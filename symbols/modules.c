#include "symbols/modules.h"

#include "base/buf.h"
#include "base/sorted.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>
#include <sys/sysmacros.h>

static void module_free(struct module *module)
{
	free(module->path);
	module->path = NULL;
}

void modules_free(struct modules *modules)
{
	for (size_t i = 0; i < modules->count; i++)
		module_free(&modules->items[i]);
	free(modules->items);
	*modules = (struct modules){0};
}

int modules_copy(struct modules *to, const struct modules *from)
{
	*to = (struct modules){0};
	if (!from->count)
		return 0;
	to->items = calloc(from->count, sizeof(*to->items));
	if (!to->items)
		return -1;
	for (; to->count < from->count; to->count++) {
		char *path = strdup(from->items[to->count].path);
		if (!path) {
			modules_free(to);
			errno = ENOMEM;
			return -1;
		}
		to->items[to->count] = from->items[to->count];
		to->items[to->count].path = path;
	}
	return 0;
}

const struct module *modules_find(const struct modules *modules, uint64_t address)
{
	size_t below = sorted_up_to(modules->items, modules->count, sizeof(*modules->items),
				    offsetof(struct module, begin), address);

	return below > 0 && address < modules->items[below - 1].end ? &modules->items[below - 1]
								    : NULL;
}

static int read_maps(struct buf *text, int pid)
{
	char path[32];
	ssize_t n = -1;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	do {
		char *room = buf_reserve(text, 16384);
		if (!room) {
			errno = ENOMEM;
			n = -1;
			break;
		}
		n = read(fd, room, 16384);
		if (n > 0)
			text->len += (size_t)n;
	} while (n > 0);
	int error = errno;
	close(fd);
	errno = error;
	return n < 0 ? -1 : 0;
}

/* Understands a line of maps; the path stays in the line. Of anonymous memory there is none. */
static bool parse_line(char *line, struct module *module, bool *executable)
{
	char execute;
	char shared;
	unsigned major;
	unsigned minor;
	int path = 0;

	*module = (struct module){0};
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*c%*c%c%c %" SCNx64 " %x:%x %" SCNu64 " %n",
		   &module->begin, &module->end, &execute, &shared, &module->offset, &major, &minor,
		   &module->inode, &path) != 8)
		return false;
	*executable = execute == 'x';
	module->shared = shared == 's';
	module->device = makedev(major, minor);
	module->path = line[path] == '/' ? line + path : NULL;
	return true;
}

static bool continues(const struct module *last, const struct module *next)
{
	return last->end == next->begin && last->inode == next->inode &&
	       last->device == next->device && last->shared == next->shared &&
	       last->offset + (last->end - last->begin) == next->offset;
}

/* Appends a mapping, or lengthens the last by it: mprotect on one page of text makes three of
 * one. */
static int append(struct modules *modules, size_t *room, const struct module *next)
{
	if (modules->count && continues(&modules->items[modules->count - 1], next)) {
		modules->items[modules->count - 1].end = next->end;
		return 0;
	}
	if (modules->count == *room) {
		size_t more = *room ? *room * 2 : 16;
		struct module *items = reallocarray(modules->items, more, sizeof(*items));
		if (!items)
			return -1;
		modules->items = items;
		*room = more;
	}
	char *path = strdup(next->path);
	if (!path)
		return -1;
	modules->items[modules->count] = *next;
	modules->items[modules->count++].path = path;
	return 0;
}

/* The executable mappings of files as the kernel lists them, without objects. */
static int list(struct modules *modules, int pid)
{
	struct buf text = {0};
	struct module next;
	bool executable;
	size_t room = 0;
	int result = read_maps(&text, pid);

	if (result == 0 && !buf_str(&text)) {
		errno = ENOMEM;
		result = -1;
	}
	for (char *line = text.data; result == 0 && *line;) {
		char *end = strchrnul(line, '\n');
		char *behind = *end ? end + 1 : end;
		*end = '\0';
		if (parse_line(line, &next, &executable) && executable && next.path)
			result = append(modules, &room, &next);
		line = behind;
	}
	int error = errno;
	buf_free(&text);
	errno = error;
	return result;
}

/* @return whether the mapping is part of a module. */
static bool is_known(const struct modules *modules, const struct module *mapping)
{
	const struct module *module = modules_find(modules, mapping->begin);

	return module && mapping->end <= module->end && module->inode == mapping->inode &&
	       module->device == mapping->device && module->shared == mapping->shared &&
	       module->offset + (mapping->begin - module->begin) == mapping->offset;
}

bool modules_know(const struct modules *modules, int pid, const struct stretch *wanted,
		  struct stretch *known)
{
	struct buf text = {0};
	struct module next;
	bool executable;

	*known = (struct stretch){0};
	if (read_maps(&text, pid) < 0 || !buf_str(&text)) {
		buf_free(&text);
		return false;
	}
	for (char *line = text.data; *line;) {
		char *end = strchrnul(line, '\n');
		char *behind = *end ? end + 1 : end;
		*end = '\0';
		if (!parse_line(line, &next, &executable) || next.begin != known->end ||
		    (next.path && !is_known(modules, &next))) {
			if (known->end > wanted->begin)
				break;
			*known = (struct stretch){next.end, next.end};
			if (!next.path || is_known(modules, &next))
				known->begin = next.begin;
		} else {
			known->end = next.end;
		}
		line = behind;
	}
	buf_free(&text);
	return known->begin <= wanted->begin && wanted->end <= known->end;
}

static bool is_mapped_file(const char *path, const struct module *module)
{
	struct stat st;

	if (stat(path, &st) < 0 || st.st_ino != module->inode)
		return false;
	/* btrfs and overlayfs tell stat of another device than they tell maps; theirs have no
	 * hardware behind them. */
	return st.st_dev == module->device || major(st.st_dev) == 0;
}

/* The kernel writes a newline in a path as \012. */
static void add_path(struct buf *out, const char *path)
{
	for (const char *p; (p = strstr(path, "\\012")); path = p + 4) {
		buf_add(out, path, (size_t)(p - path));
		buf_add_char(out, '\n');
	}
	buf_add_str(out, path);
}

/* Tries one way to the file. @return -1 when out of memory. */
static int try(struct module *module, struct objects *objects, const char *path)
{
	if (module->object || !is_mapped_file(path, module))
		return 0;
	module->object = objects_get(objects, path);
	return !module->object && errno == ENOMEM ? -1 : 0;
}

static int find_object(struct module *module, struct objects *objects, int pid)
{
	struct buf path = {0};
	int result = 0;

	/* The mapping itself leads to its file whatever became of the name, but needs a
	 * capability. */
	buf_addf(&path, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, module->begin, module->end);
	if (!path.failed)
		result = try(module, objects, buf_str(&path));
	buf_clear(&path);
	buf_addf(&path, "/proc/%d/root", pid);
	add_path(&path, module->path);
	if (result == 0 && buf_str(&path))
		result = try(module, objects, buf_str(&path));
	/* Of the program itself there is another link, also when it was deleted. */
	buf_clear(&path);
	buf_addf(&path, "/proc/%d/exe", pid);
	if (result == 0 && buf_str(&path))
		result = try(module, objects, buf_str(&path));
	if (!buf_str(&path))
		result = -1;
	buf_free(&path);
	if (result < 0) {
		errno = ENOMEM;
		return -1;
	}
	if (module->object) {
		uint64_t address = object_address_of(module->object, module->offset);
		if (address == UINT64_MAX)
			module->object = NULL;
		else
			module->bias = module->begin - address;
	}
	return 0;
}

static bool is_same(const struct module *a, const struct module *b)
{
	return a->begin == b->begin && a->end == b->end && a->offset == b->offset &&
	       a->inode == b->inode && a->device == b->device && a->shared == b->shared;
}

/* The module of `modules` that is `wanted` too, NULL: none; both are walked by address. */
static struct module *find_same(const struct modules *modules, size_t *at,
				const struct module *wanted)
{
	while (*at < modules->count && modules->items[*at].begin < wanted->begin)
		++*at;
	if (*at == modules->count || !is_same(&modules->items[*at], wanted))
		return NULL;
	return &modules->items[*at];
}

int modules_read(struct modules *modules, struct objects *objects, int pid,
		 void (*gone)(const struct module *, void *), void *data)
{
	struct modules now = {0};
	size_t at = 0;

	if (list(&now, pid) < 0)
		goto fail;
	for (size_t i = 0; i < now.count; i++) {
		struct module *module = &now.items[i];
		const struct module *before = find_same(modules, &at, module);
		if (before) {
			module->object = before->object;
			module->bias = before->bias;
		} else if (find_object(module, objects, pid) < 0) {
			goto fail;
		}
	}
	at = 0;
	for (size_t i = 0; i < modules->count; i++) {
		struct module *before = &modules->items[i];
		struct module *kept = find_same(&now, &at, before);
		if (kept) {
			/* The first name stays: the file may have been deleted meanwhile. */
			char *path = kept->path;
			kept->path = before->path;
			before->path = path;
		} else if (gone) {
			gone(before, data);
		}
	}
	modules_free(modules);
	*modules = now;
	return 0;
fail:;
	int error = errno;
	modules_free(&now);
	errno = error;
	return -1;
}
