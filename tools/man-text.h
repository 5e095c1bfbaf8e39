/* What the manual pages share: text for roff, and the options from a table. */
#ifndef TOOLS_MAN_TEXT_H
#define TOOLS_MAN_TEXT_H

#include "base/option.h"

/* Prints text for roff: a hyphen stays a hyphen when copied from the page, and a line that begins
 * with a control character is none. */
void man_print_text(const char *text);

/* Prints the options by groups. */
void man_print_options(const struct option_table *table);

/* @return the program's exit status, said why when the page could not be written. */
int man_finish(void);

#endif
