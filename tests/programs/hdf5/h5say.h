/* What an HDF5 program tells of its calls, a line each: hdf5, function, file, object, bytes. `-`: there is none, or it
 * cannot be known from outside. */
#ifndef H5SAY_H
#define H5SAY_H

#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>

#define NONE   (-1LL)
#define LEN(a) (sizeof(a) / sizeof(*(a)))

/* Ends the program when a call has failed. */
static inline hid_t good(hid_t result, const char *what)
{
	if (result < 0) {
		fprintf(stderr, "%s failed\n", what);
		exit(1);
	}
	return result;
}

static inline void tell(const char *function, const char *file, const char *object, long long bytes)
{
	printf("hdf5\t%s\t%s\t%s\t", function, file, object);
	if (bytes == NONE)
		puts("-");
	else
		printf("%lld\n", bytes);
}

/* A call that is part of the trace. `tells` are file, object and bytes. */
#define SAY(function, args, ...)                                                                   \
	({                                                                                         \
		hid_t result_ = good(function args, #function);                                    \
		tell(#function, __VA_ARGS__);                                                      \
		result_;                                                                           \
	})

/* A call that is not. */
#define DO(function, args) good(function args, #function)

#endif
