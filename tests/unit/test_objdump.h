/* Instructions as objdump lists them. */
#ifndef TEST_OBJDUMP_H
#define TEST_OBJDUMP_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Calls `each` for the instructions of a file, with address and text. @return 0 when objdump ended well. */
static int objdump_list(const char *path,
			void (*each)(void *data, uint64_t address, const char *text), void *data)
{
	char command[512];
	char *line = NULL;
	size_t size = 0;

	snprintf(command, sizeof(command),
		 "LC_ALL=C objdump -d -w --no-show-raw-insn '%s' 2>/dev/null", path);
	FILE *f = popen(command, "re");
	if (!f)
		return -1;
	while (getline(&line, &size, f) > 0) {
		char *end;
		uint64_t address = strtoull(line, &end, 16);
		if (end != line && end[0] == ':' && end[1] == '\t')
			each(data, address, end + 2);
	}
	free(line);
	return pclose(f);
}

#endif
