#include "base/proc.h"
#include "tracer/topology.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads a file of one line below `root`. @return whether there was one; without its newline. */
static bool read_line(const char *root, const char *name, char *text, size_t size)
{
	char path[512];

	if (snprintf(path, sizeof(path), "%s/%s", root, name) >= (int)sizeof(path))
		return false;
	return proc_read_line(path, text, size);
}

/* Marks the CPUs of a list such as 0-3,8 with the list's first CPU, which no other list has. */
static bool mark(char *list, int *marks)
{
	int first = -1;

	for (char *range; (range = strsep(&list, ","));) {
		int from;
		int to;
		int numbers = sscanf(range, "%d-%d", &from, &to);
		if (numbers < 1 || from < 0)
			return false;
		if (numbers == 1)
			to = from;
		if (first < 0)
			first = from;
		for (int cpu = from; cpu <= to && cpu < TOPOLOGY_MAX_CPUS; cpu++)
			marks[cpu] = first;
	}
	return first >= 0;
}

/* The third level, as it is the last one that all cores near each other share. */
static void read_cache(const char *root, int cpu, struct topology *topology)
{
	char name[128];
	char text[4096];

	for (int index = 0;; index++) {
		snprintf(name, sizeof(name), "cpu%d/cache/index%d/level", cpu, index);
		if (!read_line(root, name, text, sizeof(text)))
			return;
		if (strcmp(text, "3") != 0)
			continue;
		snprintf(name, sizeof(name), "cpu%d/cache/index%d/shared_cpu_list", cpu, index);
		if (read_line(root, name, text, sizeof(text)))
			mark(text, topology->cache);
		return;
	}
}

static bool read_core(const char *root, int cpu, struct topology *topology)
{
	char name[128];
	char text[4096];

	snprintf(name, sizeof(name), "cpu%d/topology/core_cpus_list", cpu);
	if (read_line(root, name, text, sizeof(text)))
		return mark(text, topology->core);
	/* Its name before Linux 5.3. */
	snprintf(name, sizeof(name), "cpu%d/topology/thread_siblings_list", cpu);
	return read_line(root, name, text, sizeof(text)) && mark(text, topology->core);
}

static struct topology *read_from(const char *root)
{
	struct topology *topology = malloc(sizeof(*topology));
	DIR *dir = opendir(root);
	struct dirent *entry;
	bool any = false;

	for (int i = 0; topology && i < TOPOLOGY_MAX_CPUS; i++) {
		topology->core[i] = -1 - i;
		topology->cache[i] = -1;
	}
	while (topology && dir && (entry = readdir(dir))) {
		int cpu;
		int len = 0;
		if (sscanf(entry->d_name, "cpu%d%n", &cpu, &len) != 1 || entry->d_name[len] ||
		    cpu < 0 || cpu >= TOPOLOGY_MAX_CPUS)
			continue;
		/* An offline CPU has no topology. */
		if (read_core(root, cpu, topology)) {
			read_cache(root, cpu, topology);
			any = true;
		}
	}
	if (dir)
		closedir(dir);
	if (!any) {
		free(topology);
		return NULL;
	}
	return topology;
}

struct topology *topology_read(void)
{
	return read_from("/sys/devices/system/cpu");
}
