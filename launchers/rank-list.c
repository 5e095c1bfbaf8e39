#include "launchers/rank-list.h"

#include "base/number.h"
#include "launchers/options-table.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Reads one item, without commas. @return 0, or -1. */
static int parse(char *text, struct rank_item *item)
{
	*item = (struct rank_item){.first = 0, .last = LONG_MAX, .step = 1};
	if (strcmp(text, "first-per-node") == 0) {
		item->first_per_node = true;
		return 0;
	}
	if (text[0] == '%')
		return number_parse(text + 1, 1, LONG_MAX, &item->step);
	char *dash = strchr(text, '-');
	if (dash)
		*dash = '\0';
	if (number_parse(text, 0, LONG_MAX, &item->first) < 0)
		return -1;
	item->last = item->first;
	return dash ? number_parse(dash + 1, item->first, LONG_MAX, &item->last) : 0;
}

int rank_list_add(struct rank_list *list, const char *word, struct buf *error)
{
	char text[64];

	for (;;) {
		size_t len = strcspn(word, ",");
		struct rank_item *items =
			reallocarray(list->items, list->count + 1, sizeof(*items));
		if (!items) {
			buf_add_str(error, "out of memory while reading the command line");
			return -1;
		}
		list->items = items;
		if (len < sizeof(text)) {
			memcpy(text, word, len);
			text[len] = '\0';
		}
		if (len >= sizeof(text) || parse(text, &list->items[list->count]) < 0) {
			buf_add_str(error, "--ranks: ");
			option_add_quoted(error, word);
			buf_add_str(error, " is no list of ranks: give numbers, ranges, %N for "
					   "every Nth, or first-per-node, as in 0,4-7,%16");
			return -1;
		}
		list->count++;
		if (!word[len])
			return 0;
		word += len + 1;
	}
}

bool rank_list_wants_local(const struct rank_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		if (list->items[i].first_per_node)
			return true;
	}
	return false;
}

bool rank_list_has(const struct rank_list *list, long rank, long local_rank)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct rank_item *item = &list->items[i];
		if (item->first_per_node
			    ? local_rank == 0
			    : rank >= item->first && rank <= item->last && rank % item->step == 0)
			return true;
	}
	return list->count == 0;
}

void rank_list_free(struct rank_list *list)
{
	free(list->items);
	*list = (struct rank_list){0};
}
