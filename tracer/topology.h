/* Which CPUs share a core and a last-level cache. topology-hwloc.c asks hwloc; topology-sysfs.c reads what
 * the kernel says itself, for the static build, since there is no static libudev for hwloc. */
#ifndef TRACER_TOPOLOGY_H
#define TRACER_TOPOLOGY_H

/* What the kernel can be built for on x86. */
#define TOPOLOGY_MAX_CPUS 8192

/* By CPU number. CPUs that share have the same number; those of which nothing is known share no core and,
 * for want of better knowledge, one cache. */
struct topology {
	int core[TOPOLOGY_MAX_CPUS];
	int cache[TOPOLOGY_MAX_CPUS];
};

/* Reads the topology of this machine, which may take milliseconds.
 * @return it, to be freed; NULL when it cannot be told. */
struct topology *topology_read(void);

#endif
