#include "tracer/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/ptrace.h>
#include <sys/uio.h>

#define PAGE 4096

void memory_open(struct tracer *tracer, struct task *task)
{
	char path[64];

	if (!tracer->options->use_proc_mem || task->mm->mem_fd >= 0)
		return;
	snprintf(path, sizeof(path), "/proc/%d/mem", task->tid);
	task->mm->mem_fd = open(path, O_RDWR | O_CLOEXEC);
	if (task->mm->mem_fd < 0)
		task->mm->mem_fd = open(path, O_RDONLY | O_CLOEXEC);
}

static ssize_t peek(pid_t tid, uint64_t address, unsigned char *to, size_t len)
{
	size_t done = 0;

	while (done < len) {
		/* Words are read where they are aligned, so that none reaches into an unmapped page. */
		uint64_t at = (address + done) & ~7ULL;
		size_t skip = (size_t)(address + done - at);
		errno = 0;
		long word = ptrace(PTRACE_PEEKDATA, tid, at, NULL);
		if (errno)
			break;
		size_t n = 8 - skip < len - done ? 8 - skip : len - done;
		memcpy(to + done, (unsigned char *)&word + skip, n);
		done += n;
	}
	return (ssize_t)done;
}

ssize_t memory_read(struct tracer *tracer, struct task *task, uint64_t address, void *to,
		    size_t len)
{
	ssize_t n = -1;

	if (len == 0)
		return 0;
	/* A file offset is signed; no user address is that high. */
	if (address > INT64_MAX - len) {
		errno = EFAULT;
		return -1;
	}
	if (task->mm->mem_fd >= 0)
		n = pread(task->mm->mem_fd, to, len, (off_t)address);
	if (n <= 0 && tracer->options->use_vm_readv) {
		struct iovec local = {to, len};
		struct iovec remote = {(void *)(uintptr_t)address,
				       len}; // NOLINT(performance-no-int-to-ptr)
		n = process_vm_readv(task->tid, &local, 1, &remote, 1, 0);
	}
	if (n <= 0)
		n = peek(task->tid, address, to, len);
	if (n <= 0) {
		if (errno != ESRCH)
			errno = EFAULT;
		return -1;
	}
	return n;
}

int memory_read_string(struct tracer *tracer, struct task *task, uint64_t address, size_t max,
		       struct buf *to)
{
	size_t start = to->len;

	while (to->len - start < max) {
		/* Up to the page's end, since what follows may be unmapped; most paths need one read. */
		uint64_t at = address + (to->len - start);
		size_t want = PAGE - (size_t)(at % PAGE);
		if (want > max - (to->len - start))
			want = max - (to->len - start);
		if (want > 256 && to->len == start)
			want = 256;
		char *into = buf_reserve(to, want);
		if (!into) {
			errno = ENOMEM;
			return -1;
		}
		ssize_t n = memory_read(tracer, task, at, into, want);
		if (n < 0) {
			to->len = start;
			return -1;
		}
		char *end = memchr(into, '\0', (size_t)n);
		if (end) {
			to->len = (size_t)(end - to->data);
			return 0;
		}
		to->len += (size_t)n;
	}
	to->len = start;
	errno = ENAMETOOLONG;
	return -1;
}

bool memory_is_accessible(struct task *task, uint64_t address, size_t len)
{
	char bytes[PATH_MAX];
	struct iovec local = {bytes, len < sizeof(bytes) ? len : sizeof(bytes)};
	struct iovec remote = {(void *)(uintptr_t)address,
			       local.iov_len}; // NOLINT(performance-no-int-to-ptr)

	ssize_t n = process_vm_readv(task->tid, &local, 1, &remote, 1, 0);
	/* Where the host forbids the call, the benefit of the doubt. */
	return n == (ssize_t)local.iov_len || (n < 0 && errno != EFAULT);
}

int memory_write_beside(struct task *task, uint64_t address, const void *from, size_t len)
{
	struct iovec local = {(void *)(uintptr_t)from, len}; // NOLINT(performance-no-int-to-ptr)
	struct iovec remote = {(void *)(uintptr_t)address,
			       len}; // NOLINT(performance-no-int-to-ptr)

	/* Works after PR_SET_DUMPABLE 0, too; a kernel may refuse forced writes (since Linux 6.12). */
	if (task->mm->mem_fd >= 0 && address <= INT64_MAX - len &&
	    pwrite(task->mm->mem_fd, from, len, (off_t)address) == (ssize_t)len)
		return 0;
	return process_vm_writev(task->tid, &local, 1, &remote, 1, 0) == (ssize_t)len ? 0 : -1;
}

int memory_write(struct task *task, uint64_t address, const void *from, size_t len)
{
	const unsigned char *bytes = from;

	if (memory_write_beside(task, address, from, len) == 0)
		return 0;
	for (size_t done = 0; done < len;) {
		uint64_t at = (address + done) & ~7ULL;
		size_t skip = (size_t)(address + done - at);
		size_t n = 8 - skip < len - done ? 8 - skip : len - done;
		errno = 0;
		long word = ptrace(PTRACE_PEEKDATA, task->tid, at, NULL);
		if (errno)
			return -1;
		memcpy((unsigned char *)&word + skip, bytes + done, n);
		if (ptrace(PTRACE_POKEDATA, task->tid, at, word) < 0)
			return -1;
		done += n;
	}
	return 0;
}
