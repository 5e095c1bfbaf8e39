/* The reader of YAML settings, and what the options make of them: any bytes, as the file of --config. */
#include "launchers/config-file.h"
#include "launchers/options.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config_file file = {0};
	struct options options;
	struct buf error = {0};
	char *path = (char *)fuzz_file("settings.yaml", data, size);

	int read = config_file_read(&file, path, &error);
	FUZZ_HOLDS(read == 0 || buf_str(&error)[0]);
	for (size_t i = 0; read == 0 && i < file.count; i++) {
		FUZZ_HOLDS(file.values[i].key && file.values[i].place);
		for (size_t j = 0; j < i; j++)
			FUZZ_HOLDS(strcmp(file.values[i].key, file.values[j].key) != 0);
	}
	config_file_free(&file);
	buf_clear(&error);

	char *words[] = {"dftrace-run", "--config", path, "ls", NULL};
	int action = options_parse(&options, 4, words, &error);
	/* What cannot be read is no file of settings. */
	FUZZ_HOLDS(action == OPTIONS_RUN || buf_str(&error)[0]);
	FUZZ_HOLDS(read == 0 || action < 0);
	options_free(&options);
	buf_free(&error);
	fuzz_clean();
	return 0;
}
