#include "launchers/strings.h"

#include <stdlib.h>

int strings_take(struct strings *strings, char *text)
{
	char **items = NULL;
	if (text)
		items = reallocarray(strings->items, strings->count + 1, sizeof(*items));
	if (!items) {
		free(text);
		return -1;
	}
	items[strings->count++] = text;
	strings->items = items;
	return 0;
}

void strings_free(struct strings *strings)
{
	for (size_t i = 0; i < strings->count; i++)
		free(strings->items[i]);
	free(strings->items);
	*strings = (struct strings){0};
}
