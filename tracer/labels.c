#include "tracer/labels.h"

#include <stdlib.h>
#include <string.h>

struct labels *labels_new(void)
{
	struct labels *labels = calloc(1, sizeof(*labels));

	if (labels)
		labels->refs = 1;
	return labels;
}

struct labels *labels_copy(const struct labels *labels)
{
	struct labels *copy = labels_new();
	int failed = 0;

	for (size_t i = 0; copy && labels && i < labels->count; i++)
		failed |= labels_set(copy, labels->items[i].key, labels->items[i].value);
	if (!failed)
		return copy;
	labels_unref(copy);
	return NULL;
}

struct labels *labels_ref(struct labels *labels)
{
	if (labels)
		labels->refs++;
	return labels;
}

void labels_unref(struct labels *labels)
{
	if (!labels || --labels->refs > 0)
		return;
	for (size_t i = 0; i < labels->count; i++)
		free(labels->items[i].value);
	free(labels);
}

static struct label *find(struct labels *labels, const char *key)
{
	for (size_t i = 0; i < labels->count; i++) {
		if (strcmp(labels->items[i].key, key) == 0)
			return &labels->items[i];
	}
	return NULL;
}

int labels_set(struct labels *labels, const char *key, const char *value)
{
	struct label *label = find(labels, key);

	if (!value || (!label && labels->count == LABELS_MOST))
		return 0;
	char *copy = strdup(value);
	if (!copy)
		return -1;
	if (!label) {
		label = &labels->items[labels->count++];
		label->value = NULL;
	}
	free(label->value);
	label->key = key;
	label->value = copy;
	return 0;
}

const char *labels_get(const struct labels *labels, const char *key)
{
	for (size_t i = 0; labels && i < labels->count; i++) {
		if (strcmp(labels->items[i].key, key) == 0)
			return labels->items[i].value;
	}
	return NULL;
}
