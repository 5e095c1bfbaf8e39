/* The rows on the host: kernel, /proc, CPUs, container, launcher, and where the traces go. */
#include "base/mount.h"
#include "base/number.h"
#include "base/proc.h"
#include "launchers/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/vfs.h>

#define MIB (1024.0 * 1024)
/* Less free space than this is worth a word: a busy program writes as much in a minute. */
#define LITTLE_SPACE (256 * MIB)

static void add_kernel(struct doctor *doctor)
{
	struct utsname name;
	struct explanation why;
	bool good = explain_kernel(&why);

	if (uname(&name) < 0)
		memset(&name, 0, sizeof(name));
	doctor_add(doctor, "kernel", good ? DOCTOR_OK : DOCTOR_REFUSED, "Linux %s, %s",
		   name.release, name.machine)
		->why = why;
}

static void add_proc(struct doctor *doctor)
{
	struct mount mount = {.type = "", .options = ""};
	struct statfs fs;
	struct doctor_row *row;

	if (statfs("/proc", &fs) < 0 || fs.f_type != PROC_SUPER_MAGIC) {
		row = doctor_add(doctor, "/proc", DOCTOR_DEGRADED, "not mounted");
		snprintf(row->why.cause, sizeof(row->why.cause),
			 "inherited descriptors, directories and command lines are not known "
			 "without it");
		snprintf(row->why.remedy, sizeof(row->why.remedy), "mount -t proc proc /proc");
		return;
	}
	int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool known = fd >= 0 && mount_find(fd, &mount);
	if (fd >= 0)
		close(fd);
	/* What they hide from the tracer is tried in the row on /proc/PID. */
	const char *hidden = strstr(mount.options, "hidepid=");
	if (!hidden)
		hidden = strstr(mount.options, "subset=");
	doctor_add(doctor, "/proc", DOCTOR_OK, "mounted%s%s", known ? ", " : "",
		   !known   ? ""
		   : hidden ? hidden
			    : "shows all processes");
}

/* @return the quota of the group at `dir` in CPUs, 0: it has none. */
static double group_limit(const char *dir)
{
	char path[PATH_MAX];
	char text[64];
	double quota = 0;
	double period = 0;

	snprintf(path, sizeof(path), "%s/cpu.max", dir);
	if (proc_read_line(path, text, sizeof(text)))
		return sscanf(text, "%lf %lf", &quota, &period) == 2 ? quota / period : 0;
	/* The first version's. */
	snprintf(path, sizeof(path), "%s/cpu.cfs_quota_us", dir);
	if (!proc_read_line(path, text, sizeof(text)) || sscanf(text, "%lf", &quota) != 1)
		return 0;
	snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", dir);
	if (!proc_read_line(path, text, sizeof(text)) || sscanf(text, "%lf", &period) != 1)
		return 0;
	return quota > 0 && period > 0 ? quota / period : 0;
}

/* @return the tightest quota of the groups from `group` up to the root, in CPUs, 0: there is none. */
static double hierarchy_limit(const char *mount, const char *group)
{
	double limit = 0;
	char *dir;

	if (asprintf(&dir, "%s%s", mount, group) < 0)
		return 0;
	for (;;) {
		double here = group_limit(dir);
		if (here > 0 && (limit == 0 || here < limit))
			limit = here;
		char *slash = strrchr(dir, '/');
		if (slash < dir + strlen(mount))
			break;
		*slash = '\0';
	}
	free(dir);
	return limit;
}

/* @return for how many CPUs the cgroup gives time, 0: as many as there are. */
static double cpu_limit(void)
{
	FILE *f = fopen("/proc/self/cgroup", "re");
	char *line = NULL;
	size_t size = 0;
	double limit = 0;

	while (f && getline(&line, &size, f) > 0) {
		line[strcspn(line, "\n")] = '\0';
		/* A number, controllers, and the group. */
		char *group = strchr(line, ':');
		if (!group)
			continue;
		group++;
		const char *controllers = strsep(&group, ":");
		if (!group)
			continue;
		double here = 0;
		if (!*controllers)
			here = hierarchy_limit("/sys/fs/cgroup", group);
		else if (strcmp(controllers, "cpu") == 0 ||
			 strcmp(controllers, "cpu,cpuacct") == 0 ||
			 strcmp(controllers, "cpuacct,cpu") == 0)
			here = hierarchy_limit("/sys/fs/cgroup/cpu", group);
		if (here > 0 && (limit == 0 || here < limit))
			limit = here;
	}
	if (f)
		fclose(f);
	free(line);
	return limit;
}

static void add_cpus(struct doctor *doctor)
{
	cpu_set_t set[128];
	struct buf list = {0};
	int max = (int)sizeof(set) * 8;

	CPU_ZERO_S(sizeof(set), set);
	if (sched_getaffinity(0, sizeof(set), set) < 0) {
		doctor_add(doctor, "CPUs", DOCTOR_OK, "not known: %s", strerror(errno));
		return;
	}
	int count = CPU_COUNT_S(sizeof(set), set);
	for (int cpu = 0; cpu < max; cpu++) {
		int first = cpu;
		while (cpu < max && CPU_ISSET_S((size_t)cpu, sizeof(set), set))
			cpu++;
		if (cpu - first == 1)
			buf_addf(&list, "%s%d", list.len ? "," : "", first);
		else if (cpu > first)
			buf_addf(&list, "%s%d-%d", list.len ? "," : "", first, cpu - 1);
	}
	const char *text = buf_str(&list);
	double limit = cpu_limit();
	char quota[64] = "";
	if (limit > 0)
		snprintf(quota, sizeof(quota), "; the cgroup gives the time of %.1f", limit);
	struct doctor_row *row =
		doctor_add(doctor, "CPUs", DOCTOR_OK, "%d of %ld (%.300s)%s%s", count,
			   sysconf(_SC_NPROCESSORS_ONLN), text ? text : "?",
			   count == 1 ? ": program and tracer share it" : "", quota);
	row->numbers[0].name = "count";
	row->numbers[0].value = (uint64_t)count;
	buf_free(&list);
}

/* @return what the environment or the file system says of a container; NULL: nothing does. */
static const char *container(char *text, size_t size)
{
	static const struct {
		const char *variable;
		const char *name;
	} variables[] = {
		{"APPTAINER_CONTAINER", "Apptainer"},
		{"SINGULARITY_CONTAINER", "Singularity"},
		{"KUBERNETES_SERVICE_HOST", "Kubernetes"},
		{"CHARLIECLOUD_VERSION", "Charliecloud"},
	};
	const char *name = getenv("container");

	for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++) {
		if (getenv(variables[i].variable))
			return variables[i].name;
	}
	if (access("/run/.containerenv", F_OK) == 0)
		return "Podman";
	if (access("/.dockerenv", F_OK) == 0)
		return "Docker";
	if (proc_read_line("/run/systemd/container", text, size) && text[0])
		return text;
	return name && *name ? name : NULL;
}

static void add_container(struct doctor *doctor)
{
	unsigned inside = 1;
	unsigned outside = 1;
	unsigned count = 0;
	char text[128];
	char map[128];
	const char *name = container(text, sizeof(text));

	/* The first namespace maps every number to itself. */
	bool own_users = proc_read_line("/proc/self/uid_map", map, sizeof(map)) &&
			 sscanf(map, "%u %u %u", &inside, &outside, &count) == 3 &&
			 (inside != 0 || outside != 0 || count != UINT_MAX);
	doctor_add(doctor, "container", DOCTOR_OK, "%.100s%s%s", name ? name : "none to be seen",
		   own_users ? "; a user namespace" : "",
		   getpid() == 1 ? "; dftrace-run is its first process" : "");
}

static void add_launcher(struct doctor *doctor)
{
	const struct rank_info *info = &doctor->options->own.info;
	const char *rank = info->values[RANK_RANK];
	const char *size = info->values[RANK_WORLD_SIZE];
	struct buf found = {0};

	if (info->batch)
		buf_addf(&found, "%s job %.40s", info->batch, info->values[RANK_JOBID]);
	if (info->launcher && (!info->batch || strcmp(info->batch, info->launcher) != 0))
		buf_addf(&found, "%s%s", found.len ? ", " : "", info->launcher);
	if (rank)
		buf_addf(&found, "%srank %.20s", found.len ? " " : "", rank);
	if (rank && size)
		buf_addf(&found, " of %.20s", size);
	const char *text = buf_str(&found);
	doctor_add(doctor, "launcher", DOCTOR_OK, "%s",
		   found.len && text ? text : "none to be seen");
	buf_free(&found);
}

/* Cuts the prefix down to the nearest directory that exists. @return its descriptor, -1 with errno. */
static int open_output(char *path)
{
	for (;;) {
		char *slash = strrchr(path, '/');
		slash[slash == path] = '\0';
		int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0 || errno != ENOENT || slash == path)
			return fd;
	}
}

/* Makes a file there and removes it. @return 0, or errno. */
static int try_to_write(const char *dir)
{
	char *path;

	if (asprintf(&path, "%s/.dftrace-XXXXXX", dir) < 0)
		return ENOMEM;
	int fd = mkostemp(path, O_CLOEXEC);
	int reason = fd < 0 ? errno : 0;
	/* A quota shows only when there is something to write. */
	if (fd >= 0 && write(fd, "", 1) != 1)
		reason = errno;
	if (fd >= 0) {
		close(fd);
		unlink(path);
	}
	free(path);
	return reason;
}

static void add_output(struct doctor *doctor)
{
	char *dir = strdup(doctor->options->output_absolute);
	struct mount mount = {.type = ""};
	struct doctor_row *row;
	struct statvfs fs;

	if (!dir)
		return;
	int fd = open_output(dir);
	int reason = fd < 0 ? errno : try_to_write(dir);
	if (reason) {
		row = doctor_add(doctor, "output", DOCTOR_REFUSED, "%.300s: %s", dir,
				 strerror(reason));
		snprintf(row->why.cause, sizeof(row->why.cause), "traces cannot be written there");
		snprintf(row->why.remedy, sizeof(row->why.remedy), "choose another place with -o");
	} else if (fstatvfs(fd, &fs) == 0) {
		double space = (double)fs.f_bavail * (double)fs.f_frsize;
		bool known = mount_find(fd, &mount);
		row = doctor_add(doctor, "output",
				 space < LITTLE_SPACE ? DOCTOR_DEGRADED : DOCTOR_OK,
				 "%.300s on %s, %.0f MiB free", dir,
				 known ? mount.type : "a file system", space / MIB);
		row->numbers[0].name = "free_bytes";
		row->numbers[0].value = (uint64_t)space;
		if (space < LITTLE_SPACE) {
			snprintf(row->why.cause, sizeof(row->why.cause),
				 "events that find no space are lost, and counted");
			snprintf(row->why.remedy, sizeof(row->why.remedy),
				 "choose another place with -o, or record less with -e and -d");
		}
	}
	if (fd >= 0)
		close(fd);
	free(dir);
}

void doctor_host(struct doctor *doctor)
{
	add_kernel(doctor);
	add_container(doctor);
	add_launcher(doctor);
	add_cpus(doctor);
	add_proc(doctor);
	add_output(doctor);
}
