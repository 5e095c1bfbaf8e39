/* What the targets of fuzzing share: each of them has LLVMFuzzerTestOneInput, which libFuzzer calls with what it makes up,
 * and replay.c with files. What a target believes it says with FUZZ_HOLDS. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_HOLDS(condition)                                                                      \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__,          \
				#condition);                                                       \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

/* A directory of this process, made once, removed at its end. */
const char *fuzz_directory(void);

/* Writes a file of this name to it, in place of an older one. @return its path, until the next call. */
const char *fuzz_file(const char *name, const uint8_t *data, size_t size);

/* Removes all files in it. */
void fuzz_clean(void);

#endif
