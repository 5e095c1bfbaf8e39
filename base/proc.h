/* Small files of /proc and /sys. */
#ifndef BASE_PROC_H
#define BASE_PROC_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/types.h>

/* Reads what fits of a file into `text`, NUL-terminated. @return whether there was any; else `text` is empty. */
bool proc_read_text(const char *path, char *text, size_t size);

/* Same for the first line, without its newline; it may be empty. */
bool proc_read_line(const char *path, char *text, size_t size);

/* Reads a whole file below /proc/PID into `to`, with a NUL behind it. @return 0, or -1 with errno. */
int proc_read_all(pid_t pid, const char *what, struct buf *to);

/* Reads the number behind each `keys[i]` ("PPid:") into `values[i]`, in the given base; a key that is not
 * there leaves its value alone.
 * @return 0, or -1 with errno (ENOENT: no such process). */
int proc_status(pid_t pid, int base, const char *const *keys, uint64_t *values, int n);

/* @return the state letter of /proc/TID/stat, 0: it is gone. */
char proc_state(pid_t tid);

/* @return whether the process catches the signal; true as well where that cannot be read. */
bool proc_catches(pid_t tid, int sig);

/* Whether this process has a capability (CAP_…), effective. */
bool proc_capable(unsigned capability);

#endif
