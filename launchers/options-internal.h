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

/* Sets `*to` to the path, made absolute; `option` is for messages. @return 0, or -1 with the sentence. */
int options_set_path(char **to, const char *option, const char *value, struct buf *error);

/* Fills in the default and makes the prefix absolute. */
int options_finish_output(struct options *options, struct buf *error);

/* settings.c: applies variables of the environment and the keys of a YAML file, but for those whose option is among
 * the words of the command line; warns of unknown ones. @return 0, or -1 with the sentence. */
int options_read_settings(struct options *options, const struct setting *words, size_t count,
			  bool *all, struct buf *error);

/* @return which of the words, separated by |, the value is in any case; -1: none. */
int options_choose(const char *words, const char *value);

/* Appends them as "a, b or c". */
void options_add_words(struct buf *out, const char *words);

/* options.c: applies an option. @return 0, or -1 with the sentence. */
int options_apply(struct options *options, enum option_id id, const char *value, bool *all,
		  struct buf *error);

/* Appends to a list of settings. @return 0, or -1 with the sentence. */
int options_add_setting(struct setting **list, size_t *count, struct setting setting,
			struct buf *error);

/* Remembers where a setting comes from. `value` may be NULL; `source`: NULL: the command line. Both must outlive
 * the options. @return 0, or -1 with the sentence. */
int options_note(struct options *options, enum option_id id, const char *value, const char *source,
		 struct buf *error);

#endif
