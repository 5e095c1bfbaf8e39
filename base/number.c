#include "base/number.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

int number_parse(const char *text, long min, long max, long *value)
{
	char *end;

	if (!isdigit((unsigned char)text[0]) &&
	    !(text[0] == '-' && isdigit((unsigned char)text[1]))) {
		errno = EINVAL;
		return -1;
	}
	errno = 0;
	long n = strtol(text, &end, 10);
	if (*end) {
		errno = EINVAL;
		return -1;
	}
	if (errno || n < min || n > max) {
		errno = ERANGE;
		return -1;
	}
	*value = n;
	return 0;
}
