#include "base/mount.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool mount_find(int fd, struct mount *mount)
{
	char path[64];
	char text[256];
	char *line = NULL;
	size_t size = 0;
	int wanted = -1;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	FILE *f = fopen(path, "re");
	while (f && fgets(text, sizeof(text), f))
		sscanf(text, "mnt_id: %d", &wanted);
	if (f)
		fclose(f);
	f = wanted >= 0 ? fopen("/proc/self/mountinfo", "re") : NULL;
	bool found = false;
	while (f && !found && getline(&line, &size, f) > 0) {
		char *rest = strstr(line, " - ");
		int id;
		if (!rest || sscanf(line, "%d", &id) != 1 || id != wanted)
			continue;
		/* Type, source, options. */
		found = sscanf(rest + 3, "%63s %*s %255s", mount->type, mount->options) == 2;
	}
	if (f)
		fclose(f);
	free(line);
	return found;
}
