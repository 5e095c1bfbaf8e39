/* Lists of strings that options collect. */
#ifndef LAUNCHERS_STRINGS_H
#define LAUNCHERS_STRINGS_H

#include <stddef.h>

struct strings {
	char **items;
	size_t count;
};

/* Appends `text`, taking it over; it is freed when that fails. @return 0, or -1: out of memory, or it was NULL. */
int strings_take(struct strings *strings, char *text);

void strings_free(struct strings *strings);

#endif
