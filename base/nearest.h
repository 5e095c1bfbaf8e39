/* Which of the known words was probably meant by one that is not known. */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

/* What was found so far; zeroed at first. */
struct nearest {
	const char *word; /* NULL: none is near */
	unsigned distance;
};

/* Looks at one known word. A wrong letter or two are near, and so is a word with something missing or added at
 * either end. */
void nearest_try(struct nearest *nearest, const char *meant, const char *known);

#endif
