#include "check/files.h"

#include <errno.h>
#include <fts.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <sys/stat.h>

static int add(struct files *files, const char *path, off_t size)
{
	char **grown = reallocarray(files->paths, files->count + 1, sizeof(*grown));
	char *copy = strdup(path);

	if (grown)
		files->paths = grown;
	if (!grown || !copy) {
		free(copy);
		errno = ENOMEM;
		return -1;
	}
	grown[files->count++] = copy;
	files->size += size > 0 ? (uint64_t)size : 0;
	return 0;
}

static bool is_trace_name(const char *name)
{
	size_t len = strlen(name);
	return (len > 4 && strcmp(name + len - 4, ".pfw") == 0) ||
	       (len > 7 && strcmp(name + len - 7, ".pfw.gz") == 0);
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* @return 0, or -1 with errno; `at` names the directory that could not be read. */
static int walk(struct files *files, const char *top, struct buf *at)
{
	char *const tops[] = {(char *)top, NULL};
	FTS *tree = fts_open(tops, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
	FTSENT *entry;
	int result = 0;

	if (!tree)
		return -1;
	while (result == 0 && (entry = fts_read(tree))) {
		if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR) {
			buf_add_str(at, entry->fts_path);
			errno = entry->fts_errno;
			result = -1;
		} else if (entry->fts_info == FTS_F && is_trace_name(entry->fts_name)) {
			result = add(files, entry->fts_path, entry->fts_statp->st_size);
		}
	}
	int number = errno;
	fts_close(tree);
	errno = number;
	return result;
}

int files_add(struct files *files, const char *path, struct buf *error)
{
	struct stat status = {0};
	struct buf at = {0};
	size_t before = files->count;

	if (stat(path, &status) < 0 || !S_ISDIR(status.st_mode)) {
		if (add(files, path, S_ISREG(status.st_mode) ? status.st_size : 0) == 0)
			return 0;
		buf_add_str(error, strerror(errno));
		return -1;
	}
	int result = walk(files, path, &at);
	if (result < 0)
		buf_addf(error, "%s: %s", at.len > 0 ? buf_str(&at) : path, strerror(errno));
	else if (files->count == before)
		buf_addf(error, "%s: no *.pfw and no *.pfw.gz in this directory", path);
	buf_free(&at);
	return error->len > 0 ? -1 : 0;
}

void files_free(struct files *files)
{
	for (size_t i = 0; i < files->count; i++)
		free(files->paths[i]);
	free(files->paths);
	*files = (struct files){0};
}
