/* Facts that /proc/PID/status tells. */
#ifndef BASE_PROC_H
#define BASE_PROC_H

#include <stdint.h>

#include <sys/types.h>

/* Reads the number behind each `keys[i]` ("PPid:") into `values[i]`, in the given base; a key that is not
 * there leaves its value alone.
 * @return 0, or -1 with errno (ENOENT: no such process). */
int proc_status(pid_t pid, int base, const char *const *keys, uint64_t *values, int n);

#endif
