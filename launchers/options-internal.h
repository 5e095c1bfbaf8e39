/* What the parts of the command line's parser share: not for others. */
#ifndef LAUNCHERS_OPTIONS_INTERNAL_H
#define LAUNCHERS_OPTIONS_INTERNAL_H

#include "launchers/options-table.h"
#include "launchers/options.h"

/* Says that there is no memory. @return -1 */
int options_no_memory(struct buf *error);

/* @return the working directory; NULL, with the sentence of it in `error`, when there is none. */
char *options_working_directory(const char *option, struct buf *error);

/* options-output.c: the prefix. @return 0, or -1 with the sentence. */
int options_set_output(struct options *options, const char *value, struct buf *error);
int options_set_stage(struct options *options, const char *value, struct buf *error);

/* Fills in the default and makes the prefix absolute. */
int options_finish_output(struct options *options, struct buf *error);

/* options-environment.c: applies the variables whose option was not given.
 * @return 0, or -1 with the sentence. */
int options_read_environment(struct options *options, bool *all, struct buf *error);

/* options.c: applies an option. @return an enum options_action (OPTIONS_RUN: go on), -1 with the sentence. */
int options_apply(struct options *options, enum option_id id, const char *value, bool *all,
		  struct buf *error);

/* Remembers where a setting comes from. `value` may be NULL; `variable`: NULL: the command line.
 * @return 0, or -1 with the sentence. */
int options_note(struct options *options, enum option_id id, const char *value,
		 const char *variable, struct buf *error);

#endif
