#include "tracer/sites.h"

#include "tracer/task.h"

#include <stdlib.h>

/* Programs have hundreds; more come from code that is made at run time. */
#define MAX_SITES 65536

uint64_t site_hit(struct map *sites, uint64_t ip)
{
	struct site *site = map_get(sites, ip);

	if (site)
		return ++site->hits;
	if (sites->count >= MAX_SITES || !(site = malloc(sizeof(*site))))
		return 0;
	*site = (struct site){.ip = ip, .hits = 1};
	if (map_put(sites, ip, site) < 0) {
		free(site);
		return 0;
	}
	return 1;
}
