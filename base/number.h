/* Reading numbers that a person wrote. */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

/* Reads a whole decimal number, nothing before or behind it, into `*value`.
 * @return 0, or -1 with errno EINVAL (not a number) or ERANGE (outside min…max). */
int number_parse(const char *text, long min, long max, long *value);

#endif
