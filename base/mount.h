/* What lies under a descriptor. */
#ifndef BASE_MOUNT_H
#define BASE_MOUNT_H

#include <stdbool.h>

/* A mount as /proc/self/mountinfo tells it. */
struct mount {
	char type[64];
	char options[256];
};

/* The mount on which `fd` lies. @return whether it was found. */
bool mount_find(int fd, struct mount *mount);

#endif
