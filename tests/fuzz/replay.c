/* Gives files to a target, one after the other. usage: TARGET FILE... */
#include "tests/fuzz/fuzz.h"

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		FILE *file = fopen(argv[i], "re");
		size_t size = 0;
		uint8_t *data = NULL;

		FUZZ_HOLDS(file);
		while (!feof(file)) {
			uint8_t *more = realloc(data, size + 4096);

			FUZZ_HOLDS(more);
			data = more;
			size += fread(data + size, 1, 4096, file);
			FUZZ_HOLDS(!ferror(file));
		}
		fclose(file);
		/* Just as long, so that a sanitizer sees what is read behind it. */
		uint8_t *exact = size ? realloc(data, size) : data;
		FUZZ_HOLDS(exact);
		fprintf(stderr, "%s\n", argv[i]);
		LLVMFuzzerTestOneInput(exact, size);
		free(exact);
	}
	return 0;
}
