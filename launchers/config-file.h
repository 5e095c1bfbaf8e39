/* A YAML file of settings: mappings of mappings of plain values, as a list of dotted keys with values. */
#ifndef LAUNCHERS_CONFIG_FILE_H
#define LAUNCHERS_CONFIG_FILE_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

struct config_value {
	char *key;   /* "features.io.posix" */
	char *value; /* of a list: its items, joined by colons; empty: null */
	char *place; /* "conf.yaml:7" */
	bool is_list;
	bool known; /* the reader's, to find what it has not asked for */
};

struct config_file {
	struct config_value *values; /* in the order of the file; each key once */
	size_t count;
};

/* Reads the file at `path`. Files of more than a megabyte, aliases, deep nesting and several documents are refused,
 * since no file of settings needs them. @return 0, or -1 with one sentence in `error` that says where and why. */
int config_file_read(struct config_file *file, const char *path, struct buf *error);

void config_file_free(struct config_file *file);

#endif
