/* --list-hooks: the tables of functions, and what of them a run with these options hooks. */
#include "launchers/list-hooks.h"

#include "tracer/hooks/hooks.h"

#include <stdio.h>
#include <string.h>

static const char *state_name(bool written, bool hooked)
{
	if (written)
		return "recorded";
	return hooked ? "needed" : "off";
}

/* Where an item of -e would add the function, if it is off. */
static void print_remedy(const struct hook_table *table, const struct hook_row *row)
{
	switch (row->mode) {
	case HOOK_DEFAULT:
		printf("  +%s", table->name);
		break;
	case HOOK_ASKED:
		printf("  +%s:%s", table->name, row->group);
		break;
	case HOOK_ALL:
		printf("  +%s:all", table->name);
		break;
	default:
		break;
	}
}

int list_hooks(const struct options *options)
{
	bool wanted[HOOK_MOST_ROWS];
	char group[32];

	for (unsigned layer = 0; layer < HOOK_LAYERS; layer++) {
		const struct hook_table *table = &hook_tables[layer];
		const bool *written = options->selection.hooks[layer];
		const char *last = NULL;

		hooks_choose(layer, written, wanted);
		for (size_t i = 0; i < table->count; i++) {
			const struct hook_row *row = &table->rows[i];
			bool on = written[i];
			/* A function may have several rows, for other names of it. */
			if (row->mode == HOOK_NEVER || (last && strcmp(last, row->name) == 0))
				continue;
			last = row->name;
			snprintf(group, sizeof(group), "%s:%s", table->name, row->group);
			printf("%-8s  %-14s  %s", state_name(on, wanted[i]), group, row->name);
			if (!on)
				print_remedy(table, row);
			putchar('\n');
		}
	}
	return fflush(stdout) == 0 ? 0 : -1;
}
