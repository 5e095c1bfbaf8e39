/* The command lines of both programs: the input's words stand between newlines. */
#include "check/options.h"
#include "launchers/options.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

enum { WORDS = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *words[WORDS + 2] = {"dftrace"};
	char *text = strndup((const char *)data, size);
	struct buf error = {0};
	int count = 1;

	FUZZ_HOLDS(text);
	for (char *rest = text; rest && count <= WORDS; count++)
		words[count] = strsep(&rest, "\n");
	words[count] = NULL;
	/* Each has its own copy of the words, since the one changes them. */
	char *copies[WORDS + 2];
	for (int i = 0; i <= count; i++) {
		copies[i] = words[i] ? strdup(words[i]) : NULL;
		FUZZ_HOLDS(!words[i] || copies[i]);
	}
	struct options options;
	int action = options_parse(&options, count, words, &error);
	FUZZ_HOLDS(action >= -1 && action <= OPTIONS_VERSION);
	FUZZ_HOLDS(action >= 0 || buf_str(&error)[0]);
	FUZZ_HOLDS(action != OPTIONS_RUN || options.argc >= 0);
	options_free(&options);
	buf_clear(&error);

	struct check_options check;
	action = check_options_parse(&check, count, copies, &error);
	FUZZ_HOLDS(action == 0 || buf_str(&error)[0]);
	buf_free(&error);
	/* getopt moves words, so free what there was. */
	for (int i = 0; i < count; i++)
		free(copies[i]);
	free(text);
	return 0;
}
