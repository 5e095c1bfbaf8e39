#include "base/proc.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool proc_read_text(const char *path, char *text, size_t size)
{
	ssize_t n = -1;

	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, size - 1);
		close(fd);
	}
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

bool proc_read_line(const char *path, char *text, size_t size)
{
	bool done = proc_read_text(path, text, size);

	text[strcspn(text, "\n")] = '\0';
	return done;
}

int proc_read_all(pid_t pid, const char *what, struct buf *to)
{
	char path[64];
	ssize_t n;

	buf_clear(to);
	snprintf(path, sizeof(path), "/proc/%d/%s", pid, what);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	do {
		char *into = buf_reserve(to, 4096);
		n = into ? read(fd, into, 4096) : -1;
		if (n > 0)
			to->len += (size_t)n;
	} while (n > 0);
	close(fd);
	return n < 0 || !buf_str(to) ? -1 : 0;
}

int proc_status(pid_t pid, int base, const char *const *keys, uint64_t *values, int n)
{
	char path[64];
	char line[256];

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f)) {
		for (int i = 0; i < n; i++) {
			size_t len = strlen(keys[i]);
			if (strncmp(line, keys[i], len) == 0)
				values[i] = strtoull(line + len, NULL, base);
		}
	}
	fclose(f);
	return 0;
}

bool proc_capable(unsigned capability)
{
	const char *const key = "CapEff:";
	uint64_t capabilities = 0;

	return proc_status(getpid(), 16, &key, &capabilities, 1) == 0 &&
	       (capabilities >> capability & 1);
}

char proc_state(pid_t tid)
{
	char path[64];
	char text[512];

	snprintf(path, sizeof(path), "/proc/%d/stat", tid);
	if (!proc_read_text(path, text, sizeof(text)))
		return 0;
	/* The name before it may hold anything. */
	const char *end = strrchr(text, ')');
	return end && end[1] ? end[2] : 0;
}

bool proc_catches(pid_t tid, int sig)
{
	const char *const key = "SigCgt:";
	uint64_t caught = ~0ULL;

	proc_status(tid, 16, &key, &caught, 1);
	return (caught >> (sig - 1)) & 1;
}
