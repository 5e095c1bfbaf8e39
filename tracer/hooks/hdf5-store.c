/* Shapes by name. A program that opens a dataset which it has made before need not ask for its extent: it is
 * remembered as long as nobody else can have changed the file. */
#include "tracer/hooks/hdf5.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

/* Of a file with more than this the older ones are forgotten. */
#define MOST_SHAPES (1UL << 16)

struct h5_known {
	char *path;
	char *attribute; /* NULL: the object itself */
	struct h5_shape *shape;
};

static uint64_t key_of(const char *path, const char *attribute)
{
	uint64_t h = map_hash(MAP_HASH, path);

	return attribute ? map_hash(h * 3, attribute) : h;
}

static bool is_same(const struct h5_known *known, const char *path, const char *attribute)
{
	if (strcmp(known->path, path) != 0 || !known->attribute != !attribute)
		return false;
	return !attribute || strcmp(known->attribute, attribute) == 0;
}

static void known_free(struct h5_known *known)
{
	if (!known)
		return;
	h5_shape_unref(known->shape);
	free(known->path);
	free(known->attribute);
	free(known);
}

struct h5_shape *h5_store_get(const struct h5_store *store, const char *path, const char *attribute)
{
	const struct h5_known *known = map_get(&store->shapes, key_of(path, attribute));

	return known && is_same(known, path, attribute) ? known->shape : NULL;
}

/* Without memory nothing is remembered. */
void h5_store_put(struct h5_store *store, const char *path, const char *attribute,
		  struct h5_shape *shape)
{
	uint64_t key = key_of(path, attribute);
	struct h5_known *known = calloc(1, sizeof(*known));

	known_free(map_remove(&store->shapes, key));
	if (store->shapes.count >= MOST_SHAPES)
		h5_store_clear(store);
	if (!known)
		return;
	known->path = strdup(path);
	known->attribute = attribute ? strdup(attribute) : NULL;
	known->shape = h5_shape_ref(shape);
	if (!known->path || (attribute && !known->attribute) ||
	    map_put(&store->shapes, key, known) < 0)
		known_free(known);
}

void h5_store_clear(struct h5_store *store)
{
	struct map_slot *slot;
	size_t at = 0;

	while ((slot = map_next(&store->shapes, &at)))
		known_free(slot->value);
	map_free(&store->shapes);
	store->shapes = (struct map){0};
}

/* Attributes that were made here under different names are different ones. One that was found may be any of them: its
 * object may have several names. */
void h5_store_drop_attribute(struct h5_store *store, const char *path, const char *attribute)
{
	const struct h5_shape *shape =
		path && attribute ? h5_store_get(store, path, attribute) : NULL;
	bool is_certain = shape && shape->made;
	const struct map_slot *slot;
	size_t at = 0;

	while ((slot = map_next(&store->shapes, &at))) {
		struct h5_known *known = slot->value;
		if (!known->attribute ||
		    (is_certain && known->shape->made && !is_same(known, path, attribute)))
			continue;
		map_remove(&store->shapes, slot->key);
		known_free(known);
		/* What follows may have moved. */
		at = 0;
	}
}

/* Same for datasets: a found one may be that whose extent has changed. */
void h5_store_doubt_extents(struct h5_store *store, const struct h5_shape *changed)
{
	const struct map_slot *slot;
	size_t at = 0;

	while ((slot = map_next(&store->shapes, &at))) {
		const struct h5_known *known = slot->value;
		bool differs = known->shape->made && changed->made;
		if (!known->attribute && known->shape != changed && !differs)
			known->shape->extent = (struct h5_extent){0};
	}
}

void h5_store_free(struct h5_store *store)
{
	h5_store_clear(store);
	name_unref(store->path);
	free(store);
}

/* The file as the program sees it: it may have another root. */
static struct h5_stamp stamp_of(const struct library_call *call, const struct h5_store *store)
{
	struct h5_stamp stamp = {0};
	struct stat st;
	char root[64];

	if (store->path->text[0] != '/')
		return stamp;
	snprintf(root, sizeof(root), "/proc/%d/root", call->task->tid);
	int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return stamp;
	stamp.known = fstatat(fd, store->path->text + 1, &st, 0) == 0;
	close(fd);
	if (stamp.known) {
		stamp.device = st.st_dev;
		stamp.inode = st.st_ino;
		stamp.size = (uint64_t)st.st_size;
		stamp.mtime_s = st.st_mtim.tv_sec;
		stamp.mtime_ns = st.st_mtim.tv_nsec;
	}
	return stamp;
}

void h5_store_stamp(const struct library_call *call, struct h5_store *store)
{
	store->stamp = stamp_of(call, store);
}

void h5_store_check(const struct library_call *call, struct h5_store *store)
{
	/* While it is open here, what is opened again is the same. */
	if (store->opened > 0 || store->shapes.count == 0)
		return;
	struct h5_stamp now = stamp_of(call, store);
	const struct h5_stamp *then = &store->stamp;
	if (!now.known || !then->known || now.device != then->device || now.inode != then->inode ||
	    now.size != then->size || now.mtime_s != then->mtime_s ||
	    now.mtime_ns != then->mtime_ns)
		h5_store_clear(store);
}
