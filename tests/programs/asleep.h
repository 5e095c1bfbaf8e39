/* Waiting for a task to wait. */
#ifndef ASLEEP_H
#define ASLEEP_H

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <sys/types.h>

/* Waits until the process' main thread has been asleep at several looks: it is in its call. */
static void await_sleep(pid_t pid)
{
	const struct timespec pause = {0, 2000000};
	char path[64], line[512];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, pid);
	for (int looks = 0; looks < 3; looks++) {
		FILE *file = fopen(path, "re");
		char *read = file ? fgets(line, sizeof(line), file) : NULL;
		if (file)
			fclose(file);
		if (!read || strstr(line, ") Z "))
			return; /* it was fast, or we are slow */
		if (!strstr(line, ") S "))
			looks = -1;
		nanosleep(&pause, NULL);
	}
}

#endif
