/* The two ways to the topology agree on this machine, and sysfs is read right for others. */

/* The source itself, for machines that this one is not. */
#define topology_read topology_read_sysfs
#include "tracer/topology-sysfs.c"
#undef topology_read

struct topology *topology_read(void);

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <sys/stat.h>

#include <cmocka.h>

/* Writes a file of one line below `root`, with the directories above it. */
static void put(const char *root, const char *name, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	for (char *p = path + strlen(root) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		assert_true(mkdir(path, 0700) == 0 || access(path, F_OK) == 0);
		*p = '/';
	}
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fprintf(f, "%s\n", text) > 0);
	assert_int_equal(fclose(f), 0);
}

static void remove_all(const char *root)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", root);
	assert_int_equal(system(command), 0); // NOLINT(cert-env33-c)
}

/* Whether two CPUs share in one is whether they do in the other; the numbers may differ. */
static void test_agrees_with_hwloc(void **state)
{
	struct topology *one = topology_read_sysfs();
	struct topology *two = topology_read();
	int count = (int)sysconf(_SC_NPROCESSORS_CONF);

	(void)state;
	assert_non_null(one);
	assert_non_null(two);
	for (int a = 0; a < count && a < TOPOLOGY_MAX_CPUS; a++) {
		for (int b = 0; b < count && b < TOPOLOGY_MAX_CPUS; b++) {
			assert_int_equal(one->core[a] == one->core[b],
					 two->core[a] == two->core[b]);
			assert_int_equal(one->cache[a] == one->cache[b],
					 two->cache[a] == two->cache[b]);
		}
	}
	free(one);
	free(two);
}

/* Two sockets of two cores of two threads, numbered as servers do: the second threads come last. CPU 7 is
 * offline, and CPU 3 has the file's name of before Linux 5.3. */
static void test_server(void **state)
{
	char root[] = "/tmp/dftrace-topology-XXXXXX";
	char name[64];
	char text[64];

	(void)state;
	assert_non_null(mkdtemp(root));
	for (int cpu = 0; cpu < 7; cpu++) {
		int first = cpu % 4;
		snprintf(name, sizeof(name), "cpu%d/topology/%s", cpu,
			 cpu == 3 ? "thread_siblings_list" : "core_cpus_list");
		if (first == 3)
			snprintf(text, sizeof(text), "3");
		else
			snprintf(text, sizeof(text), "%d,%d", first, first + 4);
		put(root, name, text);
		for (int level = 1; level <= 3; level++) {
			snprintf(name, sizeof(name), "cpu%d/cache/index%d/level", cpu, level - 1);
			snprintf(text, sizeof(text), "%d", level);
			put(root, name, text);
			snprintf(name, sizeof(name), "cpu%d/cache/index%d/shared_cpu_list", cpu,
				 level - 1);
			if (level == 3)
				snprintf(text, sizeof(text), "%s", first < 2 ? "0-1,4-5" : "2-3,6");
			put(root, name, text);
		}
	}
	put(root, "cpu7/online", "0");
	put(root, "cpufreq/boost", "1");
	put(root, "cpuidle/current_driver", "none");

	struct topology *topology = read_from(root);
	assert_non_null(topology);
	for (int a = 0; a < 7; a++) {
		for (int b = 0; b < 7; b++) {
			assert_int_equal(topology->core[a] == topology->core[b], a % 4 == b % 4);
			assert_int_equal(topology->cache[a] == topology->cache[b],
					 a % 4 / 2 == b % 4 / 2);
		}
		assert_true(topology->core[a] != topology->core[7]);
	}
	assert_true(topology->core[7] != topology->core[8]);
	free(topology);
	remove_all(root);
}

static void test_nothing_there(void **state)
{
	char root[] = "/tmp/dftrace-topology-XXXXXX";

	(void)state;
	assert_non_null(mkdtemp(root));
	assert_null(read_from(root));
	put(root, "cpu0/topology/core_cpus_list", "nonsense");
	put(root, "cpu99999/topology/core_cpus_list", "99999");
	put(root, "cpu0x/topology/core_cpus_list", "0");
	assert_null(read_from(root));
	put(root, "cpu1/topology/core_cpus_list", "1-99999");
	struct topology *topology = read_from(root);
	assert_non_null(topology);
	assert_int_equal(topology->core[TOPOLOGY_MAX_CPUS - 1], topology->core[1]);
	free(topology);
	remove_all(root);
	assert_null(read_from(root));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_agrees_with_hwloc),
		cmocka_unit_test(test_server),
		cmocka_unit_test(test_nothing_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
