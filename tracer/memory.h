/* The memory of a stopped task. Ways of reading, in this order: the address space's kept-open
 * /proc/TID/mem, process_vm_readv, PTRACE_PEEKDATA. */
#ifndef TRACER_MEMORY_H
#define TRACER_MEMORY_H

#include "base/buf.h"
#include "tracer/tracer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/types.h>

/* Opens the task's memory and keeps it in its mm. Later it may be refused (PR_SET_DUMPABLE 0). */
void memory_open(struct tracer *tracer, struct task *task);

/* @return bytes read, fewer than `len` where unmapped memory begins, -1 with errno EFAULT if there are
 * none (or ESRCH). */
ssize_t memory_read(struct tracer *tracer, struct task *task, uint64_t address, void *to,
		    size_t len);

/* Appends the string at `address`, without its NUL. @return 0, or -1 with errno EFAULT (unmapped memory
 * came first), ENAMETOOLONG (no end within `max` bytes), ESRCH; then nothing is appended. */
int memory_read_string(struct tracer *tracer, struct task *task, uint64_t address, size_t max,
		       struct buf *to);

/* @return whether the program itself could read the bytes. Reading by force, as /proc/TID/mem does, sees
 * pages that it has no access to. */
bool memory_is_accessible(struct task *task, uint64_t address, size_t len);

/* Writes memory that other threads write meanwhile, and nothing around it. @return 0, or -1 with errno: the program may
 * not write it itself, and forced writes are refused; or neither way is to be had. */
int memory_write_beside(struct task *task, uint64_t address, const void *from, size_t len);

/* Writes memory of the program, also such that it may not write itself (text): through the kept-open /proc/TID/mem, by
 * process_vm_writev, else by PTRACE_POKEDATA, which reads and writes the words around it. @return 0, or -1 with errno. */
int memory_write(struct task *task, uint64_t address, const void *from, size_t len);

#endif
