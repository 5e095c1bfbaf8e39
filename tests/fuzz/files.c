#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

static char directory[32];

static void leave(void)
{
	fuzz_clean();
	rmdir(directory);
}

const char *fuzz_directory(void)
{
	if (!*directory) {
		/* In memory, where there is such a place. */
		strcpy(directory, "/dev/shm/fuzz-XXXXXX");
		if (!mkdtemp(directory)) {
			strcpy(directory, "/tmp/fuzz-XXXXXX");
			FUZZ_HOLDS(mkdtemp(directory));
		}
		FUZZ_HOLDS(atexit(leave) == 0);
	}
	return directory;
}

const char *fuzz_file(const char *name, const uint8_t *data, size_t size)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", fuzz_directory(), name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	FUZZ_HOLDS(fd >= 0 && write(fd, data, size) == (ssize_t)size && close(fd) == 0);
	return path;
}

void fuzz_clean(void)
{
	DIR *dir = opendir(fuzz_directory());
	struct dirent *entry;

	FUZZ_HOLDS(dir);
	while ((entry = readdir(dir))) {
		if (*entry->d_name != '.')
			FUZZ_HOLDS(unlinkat(dirfd(dir), entry->d_name, 0) == 0);
	}
	closedir(dir);
}
