/* Settings that come from DFTRACER_* variables and from a YAML file; the rows stand in environment.def. */
#ifndef LAUNCHERS_SETTINGS_H
#define LAUNCHERS_SETTINGS_H

#include "launchers/options-table.h"

#include <stddef.h>

enum settings_kind {
	SETTINGS_VALUE,
	SETTINGS_LIST,
	SETTINGS_WHEN_YES,
	SETTINGS_WHEN_NO,
	SETTINGS_IGNORED,
	SETTINGS_REFUSED,
};

struct settings_row {
	const char *variable; /* NULL: only keys; may end with * */
	const char *keys;     /* of the YAML file, separated by blanks; NULL: none */
	enum option_id option;
	enum settings_kind kind;
	const char *legal;    /* of IGNORED and REFUSED: see settings_is_legal; NULL: anything */
	const char *accepted; /* of REFUSED */
	const char *help;     /* what it stands for, or why not */
};

extern const struct settings_row settings_rows[];
extern const size_t settings_row_count;

#endif
