/* The site table of an address space: where system calls are made from, and how often. */
#ifndef TRACER_SITES_H
#define TRACER_SITES_H

#include "base/map.h"

#include <stdint.h>

/* Counts a stop at `ip`. Beyond a bound on their number new sites are not counted.
 * @return how often it has stopped there, this one included; 0: not counted. */
uint64_t site_hit(struct map *sites, uint64_t ip);

#endif
