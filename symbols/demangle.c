#include "symbols/demangle.h"

#include <stddef.h>
#include <string.h>

/* Of the C++ run-time library, whose header is for C++ only (Itanium C++ ABI, 3.4). */
extern char *__cxa_demangle(const char *name, char *to, size_t *size, int *status);

char *demangle(const char *name)
{
	int status;

	if (strncmp(name, "_Z", 2) != 0)
		return NULL;
	return __cxa_demangle(name, NULL, NULL, &status);
}
