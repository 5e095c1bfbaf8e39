#include "tracer/topology.h"

#include <hwloc.h>
#include <stdlib.h>

/* Marks each CPU with the number of the object of `type` that holds it. */
static void mark(hwloc_topology_t hwloc, hwloc_obj_type_t type, int *marks)
{
	hwloc_obj_t object = NULL;
	int count = 0;

	while ((object = hwloc_get_next_obj_by_type(hwloc, type, object))) {
		int cpu = -1;
		while ((cpu = hwloc_bitmap_next(object->cpuset, cpu)) >= 0 &&
		       cpu < TOPOLOGY_MAX_CPUS)
			marks[cpu] = count;
		count++;
	}
}

struct topology *topology_read(void)
{
	struct topology *topology = NULL;
	hwloc_topology_t hwloc;

	/* Complaints about firmware would go to the program's terminal. */
	setenv("HWLOC_HIDE_ERRORS", "2", 0);
	if (hwloc_topology_init(&hwloc))
		return NULL;
	if (hwloc_topology_set_all_types_filter(hwloc, HWLOC_TYPE_FILTER_KEEP_NONE) == 0 &&
	    hwloc_topology_set_type_filter(hwloc, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL) ==
		    0 &&
	    hwloc_topology_set_type_filter(hwloc, HWLOC_OBJ_L3CACHE, HWLOC_TYPE_FILTER_KEEP_ALL) ==
		    0 &&
	    hwloc_topology_load(hwloc) == 0 &&
	    /* HWLOC_XMLFILE in a job's environment may describe another machine. */
	    hwloc_topology_is_thissystem(hwloc))
		topology = malloc(sizeof(*topology));
	if (topology) {
		for (int i = 0; i < TOPOLOGY_MAX_CPUS; i++) {
			topology->core[i] = -1 - i;
			topology->cache[i] = -1;
		}
		mark(hwloc, HWLOC_OBJ_CORE, topology->core);
		mark(hwloc, HWLOC_OBJ_L3CACHE, topology->cache);
	}
	hwloc_topology_destroy(hwloc);
	return topology;
}
