#include "tracer/select.h"

#include "symbols/hooks.h"
#include "tracer/syscalls.h"

#include <errno.h>
#include <string.h>

struct class_info {
	const char *name;
	const char *what;
	bool on;
};

static const struct class_info classes[CLASS_COUNT] = {
	[CLASS_DATA] = {"%data", "moving bytes", true},
	[CLASS_DESC] = {"%desc", "opening, closing and positioning descriptors, mapping files",
			true},
	[CLASS_META] = {"%meta", "asking and changing what a file system knows of a file", true},
	[CLASS_PROCESS] = {"%process", "processes, pipes and signals sent", true},
	[CLASS_MEMORY] = {"%memory", "memory without a file", false},
	[CLASS_NETWORK] = {"%network", "sockets, and read and write on them", false},
	[CLASS_IOCTL] = {"%ioctl", "device control", false},
	[CLASS_SYNC] = {"%sync", "waiting for other threads", false},
	[CLASS_TIME] = {"%time", "sleeping", false},
	[CLASS_IPC] = {"%ipc",
		       "read and write on terminals, pipes, /dev/null and other anonymous files",
		       false},
};

bool selection_class(unsigned index, const char **name, const char **what, bool *on)
{
	/* CLASS_STATE has no name: its calls are never recorded. */
	if (index >= CLASS_STATE)
		index++;
	if (index >= CLASS_COUNT)
		return false;
	*name = classes[index].name;
	*what = classes[index].what;
	*on = classes[index].on;
	return true;
}

static bool is_named(const struct hook_row *row, const char *item)
{
	if (strcmp(item, row->name) == 0)
		return true;
	for (size_t n = 0; n < HOOK_MAX_NAMES && row->symbols[n]; n++) {
		if (strcmp(item, row->symbols[n]) == 0)
			return true;
	}
	return false;
}

/* @return whether the item, `layer` or `layer:group`, holds the row. */
static bool holds(const char *item, const char *layer, const struct hook_row *row, bool value)
{
	size_t len = strlen(layer);

	if (strncmp(item, layer, len) != 0)
		return false;
	/* What is taken away is all of it. */
	if (item[len] == '\0')
		return row->mode == HOOK_DEFAULT || !value;
	if (item[len] != ':')
		return false;
	if (strcmp(item + len + 1, "all") == 0)
		return true;
	return strcmp(item + len + 1, row->group) == 0 && (row->mode != HOOK_ALL || !value);
}

/* @return whether the item is a layer, a group, or one of their functions. */
static bool set_hooks(struct selection *selection, const char *item, bool value)
{
	bool known = false;

	for (unsigned layer = 0; layer < HOOK_LAYERS; layer++) {
		const struct hook_table *table = &hook_tables[layer];
		for (size_t i = 0; i < table->count; i++) {
			const struct hook_row *row = &table->rows[i];
			if (row->mode == HOOK_NEVER ||
			    (!holds(item, table->name, row, value) && !is_named(row, item)))
				continue;
			selection->hooks[layer][i] = value;
			known = true;
		}
	}
	return known;
}

bool selection_has_layer(const struct selection *selection, enum hook_layer layer)
{
	for (size_t i = 0; i < hook_tables[layer].count; i++) {
		if (selection->hooks[layer][i])
			return true;
	}
	return false;
}

void selection_default(struct selection *selection)
{
	*selection = (struct selection){0};
	for (size_t i = 0; i < syscall_row_count; i++)
		selection->rows[i] = classes[syscall_rows[i].class].on;
	for (unsigned i = 0; i < HOOK_LAYERS; i++)
		set_hooks(selection, hook_tables[i].name, true);
}

static bool row_matches(const struct syscall_row *row, const char *item)
{
	if (!row->written)
		return false;
	if (strcmp(item, "posix") == 0)
		return classes[row->class].on;
	if (item[0] == '%')
		return strcmp(item, classes[row->class].name) == 0;
	const char *names[] = {row->written, row->kernel, row->fd_name, row->nofollow_name,
			       row->rmdir_name};
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (names[i] && strcmp(item, names[i]) == 0)
			return true;
	}
	return false;
}

/* @return whether the item is known. */
static bool set(struct selection *selection, const char *item, bool value)
{
	bool known = false;

	for (size_t i = 0; i < syscall_row_count; i++) {
		if (row_matches(&syscall_rows[i], item)) {
			selection->rows[i] = value;
			known = true;
		}
	}
	if (strcmp(item, classes[CLASS_IPC].name) == 0) {
		selection->ipc = value;
		known = true;
	}
	if (strcmp(item, classes[CLASS_NETWORK].name) == 0)
		selection->network = value;
	if (strcmp(item, classes[CLASS_MEMORY].name) == 0)
		selection->memory = value;
	return set_hooks(selection, item, value) || known;
}

static void explain(struct buf *error, const char *item)
{
	const char *name;
	const char *what;
	bool on;

	buf_addf(error,
		 "-e: nothing is called '%s': give posix, stdio, mpi, hdf5, mpi:GROUP or "
		 "hdf5:GROUP (--list-hooks), a class (",
		 item);
	for (unsigned i = 0; selection_class(i, &name, &what, &on); i++)
		buf_addf(error, "%s%s", i ? " " : "", name);
	buf_add_str(error, ") or a call such as openat; +ITEM adds, !ITEM removes");
}

static int apply_item(struct selection *selection, const char *item, struct buf *error)
{
	bool add = item[0] == '+';
	bool remove = item[0] == '!';

	if (add || remove) {
		item++;
	} else if (!selection->replaced) {
		memset(selection->rows, 0, sizeof(selection->rows));
		selection->ipc = false;
		selection->network = false;
		selection->memory = false;
		memset(selection->hooks, 0, sizeof(selection->hooks));
		selection->replaced = true;
	}
	if (!set(selection, item, !remove)) {
		explain(error, item);
		errno = EINVAL;
		return -1;
	}
	return 0;
}

int selection_apply(struct selection *selection, const char *items, struct buf *error)
{
	char item[64];

	if (strncmp(items, "trace=", 6) == 0)
		items += 6;
	for (const char *p = items;;) {
		size_t len = strcspn(p, ",");
		if (len >= sizeof(item))
			len = sizeof(item) - 1;
		memcpy(item, p, len);
		item[len] = '\0';
		if (apply_item(selection, item, error) < 0)
			return -1;
		p += strcspn(p, ",");
		if (!*p)
			return 0;
		p++;
	}
}

/* A part of a table: its name when all that can be is recorded, how much of it when less is. */
static void describe_part(struct buf *out, const char *name, size_t on, size_t all)
{
	if (on == 0)
		return;
	buf_addf(out, "%s%s", out->len ? " " : "", name);
	if (on < all)
		buf_addf(out, "(%zu of %zu)", on, all);
}

static void describe_class(const struct selection *selection, enum syscall_class class,
			   struct buf *out)
{
	size_t all = 0;
	size_t on = 0;

	for (size_t i = 0; i < syscall_row_count; i++) {
		if (syscall_rows[i].class == class && syscall_rows[i].written) {
			all++;
			on += selection->rows[i];
		}
	}
	if (class == CLASS_IPC)
		on = all = selection->ipc;
	describe_part(out, classes[class].name, on, all);
}

void selection_describe(const struct selection *selection, struct buf *out)
{
	size_t before = out->len;

	for (unsigned class = 0; class < CLASS_COUNT; class ++) {
		if (class != CLASS_STATE)
			describe_class(selection, class, out);
	}
	for (unsigned layer = 0; layer < HOOK_LAYERS; layer++) {
		const struct hook_table *table = &hook_tables[layer];
		size_t wanted = 0;
		size_t on = 0;
		for (size_t i = 0; i < table->count; i++) {
			wanted += table->rows[i].mode == HOOK_DEFAULT;
			on += selection->hooks[layer][i];
		}
		describe_part(out, table->name, on, on > wanted ? on : wanted);
	}
	if (out->len == before)
		buf_add_str(out, "nothing");
}
