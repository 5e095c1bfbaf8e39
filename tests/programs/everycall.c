/* Calls every recorded system call by its number, with good and with failing arguments, and says so. */
#include "say.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>
#include <utime.h>

#include <linux/aio_abi.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>

/* Newer than the C library's headers. */
enum { NR_FCHMODAT2 = 452, NR_SETXATTRAT = 463, NR_GETXATTRAT, NR_LISTXATTRAT, NR_REMOVEXATTRAT };

#define GONE 999 /* no open descriptor */
/* One call on `path`, as the trace names it. */
#define CALL(kernel, name, path, ...)                                                              \
	say(#kernel, name, NULL, path, syscall(SYS_##kernel, __VA_ARGS__))
#define CALL_IN(kernel, name, dir, path, ...)                                                      \
	say(#kernel, name, dir, path, syscall(SYS_##kernel, __VA_ARGS__))
#define NEWER(kernel, number, name, path, ...)                                                     \
	say(kernel, name, NULL, path, syscall(number, __VA_ARGS__))

struct xattr_args {
	uint64_t value;
	uint32_t size;
	uint32_t flags;
};

static char buffer[8192];

static int opens(void)
{
	struct open_how how = {.flags = O_RDWR | O_CREAT, .mode = 0600};
	struct open_how wrong = {.flags = O_RDONLY, .resolve = 1 << 30};
	int dir, fd;

	CALL(mkdir, "mkdir", "d", "d", 0755);
	CALL(mkdir, "mkdir", "d", "d", 0755);
	dir = (int)CALL(open, "open", "d", "d", O_RDONLY | O_DIRECTORY);
	CALL(open, "open", "none", "none", O_RDONLY);
	fd = (int)CALL(openat, "open", "f", AT_FDCWD, "./d/../f", O_RDWR | O_CREAT, 0644);
	CALL_IN(openat, "open", "d", "in", dir, "in", O_RDWR | O_CREAT | O_EXCL, 0644);
	CALL_IN(openat, "open", "d", "in", dir, "in", O_RDWR | O_CREAT | O_EXCL, 0644);
	CALL_IN(openat2, "open", "d", "two", dir, "two", &how, sizeof(how));
	CALL(openat2, "open", "f", AT_FDCWD, "f", &wrong, sizeof(wrong));
	CALL(creat, "open", "c", "c", 0600);
	CALL(creat, "open", "none/c", "none/c", 0600);
	return fd;
}

static void moves_data(int fd)
{
	struct iovec iov[2] = {{buffer, 100}, {buffer + 200, 28}};
	int out = (int)CALL(open, "open", "out", "out", O_RDWR | O_CREAT | O_TRUNC, 0644);
	loff_t at = 0, to = 10;
	int ends[2];

	CALL(write, "write", "f", fd, buffer, 4096);
	CALL(write, "write", "f", fd, NULL, 5);
	CALL(lseek, "lseek", "f", fd, 0, SEEK_SET);
	CALL(lseek, "lseek", "f", fd, -1L, SEEK_SET);
	CALL(read, "read", "f", fd, buffer, 1000);
	CALL(read, "read", "f", fd, NULL, 10);
	CALL(pread64, "pread", "f", fd, buffer, 100, 4000);
	CALL(pread64, "pread", "f", fd, buffer, 100, -1L);
	CALL(pwrite64, "pwrite", "f", fd, buffer, 512, 8192);
	CALL(pwrite64, "pwrite", "f", fd, buffer, 1, -1L);
	CALL(readv, "readv", "f", fd, iov, 2);
	CALL(readv, "readv", "f", fd, NULL, 2);
	CALL(writev, "writev", "out", out, iov, 2);
	CALL(writev, "writev", "out", out, iov, -1);
	CALL(preadv, "preadv", "f", fd, iov, 2, 5, 0);
	CALL(preadv, "preadv", "f", fd, iov, 2, -5L, -1L);
	CALL(pwritev, "pwritev", "out", out, iov, 1, 50, 0);
	CALL(pwritev, "pwritev", "out", out, NULL, 1, 50, 0);
	CALL(preadv2, "preadv", "f", fd, iov, 2, 7, 0, 0);
	CALL(preadv2, "preadv", "f", fd, iov, 2, 7, 0, 1 << 30);
	CALL(pwritev2, "pwritev", "out", out, iov, 2, 70, 0, 0);
	CALL(pwritev2, "pwritev", "out", out, iov, 2, 70, 0, 1 << 30);
	CALL(sendfile, "sendfile", "f", out, fd, &at, 300);
	CALL(sendfile, "sendfile", "f", out, fd, (void *)8, 300);
	at = 1;
	CALL(copy_file_range, "copy_file_range", "f", fd, &at, out, &to, 500, 0);
	CALL(copy_file_range, "copy_file_range", "f", fd, NULL, out, NULL, 5, 1 << 30);
	say_no_ret("pipe2", "pipe", NULL, NULL, syscall(SYS_pipe2, ends, O_CLOEXEC));
	at = 0;
	CALL(splice, "splice", "f", fd, &at, ends[1], NULL, 64, 0);
	CALL(splice, "splice", "f", fd, &at, ends[1], (void *)8, 64, 0);
	CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
}

static void descriptors(int fd)
{
	int other = (int)CALL(dup, "dup", "f", fd);
	void *map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);

	CHECK(map != MAP_FAILED);
	say_no_ret("mmap", "mmap", NULL, "f", 0);
	CALL(mmap, "mmap", "f", NULL, 4096, PROT_READ, MAP_SHARED, fd, 1);
	CALL(msync, "msync", NULL, map, 4096, MS_SYNC);
	CALL(msync, "msync", NULL, (char *)map + 1, 4096, MS_SYNC);
	CHECK(munmap(map, 4096) == 0);
	CALL(dup2, "dup2", "f", fd, 50);
	CALL(dup2, "dup2", "f", fd, -1);
	CALL(dup3, "dup3", "f", fd, 51, O_CLOEXEC);
	CALL(dup3, "dup3", "f", fd, fd, 0);
	CALL(fcntl, "fcntl", "f", fd, F_DUPFD, 60);
	CALL(fcntl, "fcntl", "f", fd, F_DUPFD_CLOEXEC, 60);
	CALL(fcntl, "fcntl", "f", fd, F_GETFD);
	CALL(fcntl, "fcntl", "f", fd, F_SETFD, FD_CLOEXEC);
	CALL(fcntl, "fcntl", "f", fd, F_GETFL);
	CALL(fcntl, "fcntl", "f", fd, 9999);
	CALL(flock, "flock", "f", fd, 2);
	CALL(flock, "flock", "f", fd, 0);
	CALL(fsync, "fsync", "f", fd);
	CALL(fdatasync, "fdatasync", "f", fd);
	say("sync", "sync", NULL, NULL, syscall(SYS_sync));
	CALL(syncfs, "syncfs", "f", fd);
	CALL(sync_file_range, "sync_file_range", "f", fd, 0, 100, 0);
	CALL(sync_file_range, "sync_file_range", "f", fd, 0, 100, 99);
	CALL(ftruncate, "ftruncate", "f", fd, 9000);
	CALL(ftruncate, "ftruncate", "f", fd, -1L);
	CALL(fallocate, "fallocate", "f", fd, 0, 0, 10000);
	CALL(fallocate, "fallocate", "f", fd, 0, -1L, 10000L);
	CALL(fadvise64, "posix_fadvise", "f", fd, 0, 0, 0);
	CALL(fadvise64, "posix_fadvise", "f", fd, 0, 0, 99);
	CALL(readahead, "readahead", "f", fd, 0, 4096);
	CALL(close, "close", "f", other);
	CALL(close_range, "close", "f", 50, 50, 0);
	/* Nothing is open there, so nothing is closed and nothing recorded. */
	CHECK(syscall(SYS_close_range, 900, 910, 0) == 0);
	CHECK(syscall(SYS_close, GONE) == -1 && errno == EBADF);
}

static void statuses(int fd, int dir)
{
	struct stat st;
	struct statx stx;
	struct statfs fs;

	CALL(stat, "stat", "f", "f", &st);
	CALL(stat, "stat", "none", "none", &st);
	CALL(lstat, "fstatat", "f", "f", &st);
	CALL(lstat, "fstatat", "none", "none", &st);
	CALL(fstat, "fstat", "f", fd, &st);
	CALL(fstat, "fstat", "f", fd, (void *)8);
	CALL_IN(newfstatat, "stat", "d", "in", dir, "in", &st, 0);
	CALL_IN(newfstatat, "fstatat", "d", "in", dir, "in", &st, AT_SYMLINK_NOFOLLOW);
	CALL(newfstatat, "fstat", "f", fd, "", &st, AT_EMPTY_PATH);
	CALL(newfstatat, "stat", NULL, AT_FDCWD, "", &st, 0);
	CALL(newfstatat, "stat", "f", AT_FDCWD, "f", &st, 1 << 30);
	CALL_IN(statx, "stat", "d", "in", dir, "in", 0, STATX_SIZE, &stx);
	CALL_IN(statx, "fstatat", "d", "in", dir, "in", AT_SYMLINK_NOFOLLOW, STATX_SIZE, &stx);
	CALL(statx, "fstat", "f", fd, "", AT_EMPTY_PATH, STATX_SIZE, &stx);
	CALL(statx, "stat", "none", AT_FDCWD, "none", 0, STATX_SIZE, &stx);
	CALL(statfs, "statfs", "d", "d", &fs);
	CALL(statfs, "statfs", "none", "none", &fs);
	CALL(fstatfs, "fstatfs", "f", fd, &fs);
	CALL(fstatfs, "fstatfs", "f", fd, (void *)8);
	CALL(access, "access", "f", "f", R_OK);
	CALL(access, "access", "none", "none", R_OK);
	CALL_IN(faccessat, "access", "d", "in", dir, "in", R_OK);
	CALL(faccessat, "access", "f", AT_FDCWD, "f", 99);
	CALL_IN(faccessat2, "access", "d", "in", dir, "in", R_OK, AT_EACCESS);
	CALL(faccessat2, "access", "f", AT_FDCWD, "f", R_OK, 1 << 30);
}

static void names(int dir)
{
	CALL(truncate, "truncate", "f", "f", 5000);
	CALL(truncate, "truncate", "d", "d", 5);
	CALL_IN(mkdirat, "mkdir", "d", "sub", dir, "sub", 0700);
	CALL(mkdirat, "mkdir", "none/sub", AT_FDCWD, "none/sub", 0700);
	CALL(rename, "rename", "c", "c", "c2");
	CALL(rename, "rename", "none", "none", "c3");
	CALL_IN(renameat, "rename", "d", "two", dir, "two", dir, "three");
	CALL(renameat, "rename", "none", AT_FDCWD, "none", dir, "three");
	CALL(renameat2, "rename", "c2", AT_FDCWD, "c2", AT_FDCWD, "c3", 0);
	CALL(renameat2, "rename", "c3", AT_FDCWD, "c3", AT_FDCWD, "c2", 99);
	CALL(link, "link", "c3", "c3", "hard");
	CALL(link, "link", "c3", "c3", "hard");
	CALL_IN(linkat, "link", "d", "in", dir, "in", dir, "hard", 0);
	CALL(linkat, "link", "none", AT_FDCWD, "none", dir, "hard2", 0);
	CALL(symlink, "symlink", "f", "f", "soft");
	CALL(symlink, "symlink", "f", "f", "soft");
	CALL_IN(symlinkat, "symlink", "d", "../f", "../f", dir, "soft");
	CALL(symlinkat, "symlink", "none/g", "g", AT_FDCWD, "none/soft");
	CALL(readlink, "readlink", "soft", "soft", buffer, 100);
	CALL(readlink, "readlink", "f", "f", buffer, 100);
	CALL_IN(readlinkat, "readlink", "d", "soft", dir, "soft", buffer, 100);
	CALL(readlinkat, "readlink", "none", AT_FDCWD, "none", buffer, 100);
	CALL(mknod, "mknod", "fifo", "fifo", S_IFIFO | 0600, 0);
	CALL(mknod, "mknod", "fifo", "fifo", S_IFIFO | 0600, 0);
	CALL_IN(mknodat, "mknod", "d", "fifo", dir, "fifo", S_IFIFO | 0600, 0);
	CALL(mknodat, "mknod", "none/x", AT_FDCWD, "none/x", S_IFIFO | 0600, 0);
}

static void owners(int fd, int dir)
{
	uid_t me = geteuid();
	gid_t group = getegid();
	struct utimbuf old = {.actime = 1000000000, .modtime = 1000000001};

	CALL(chmod, "chmod", "f", "f", 0640);
	CALL(chmod, "chmod", "none", "none", 0640);
	CALL(fchmod, "fchmod", "f", fd, 0600);
	CALL_IN(fchmodat, "chmod", "d", "in", dir, "in", 0600);
	CALL(fchmodat, "chmod", "none", AT_FDCWD, "none", 0600);
	NEWER("fchmodat2", NR_FCHMODAT2, "chmod", "f", AT_FDCWD, "f", 0600, 0);
	NEWER("fchmodat2", NR_FCHMODAT2, "fchmod", "f", fd, "", 0600, AT_EMPTY_PATH);
	NEWER("fchmodat2", NR_FCHMODAT2, "chmod", "none", AT_FDCWD, "none", 0600, 0);
	CALL(chown, "chown", "f", "f", me, group);
	CALL(chown, "chown", "none", "none", me, group);
	CALL(lchown, "chown", "soft", "soft", me, group);
	CALL(lchown, "chown", "none", "none", me, group);
	CALL(fchown, "fchown", "f", fd, me, group);
	CALL_IN(fchownat, "chown", "d", "in", dir, "in", me, group, 0);
	CALL(fchownat, "fchown", "f", fd, "", me, group, AT_EMPTY_PATH);
	CALL(fchownat, "chown", "none", AT_FDCWD, "none", me, group, 0);
	CALL(utime, "utime", "f", "f", &old);
	CALL(utime, "utime", "none", "none", NULL);
	CALL(utimes, "utime", "f", "f", NULL);
	CALL(utimes, "utime", "none", "none", NULL);
	CALL_IN(futimesat, "utime", "d", "in", dir, "in", NULL);
	CALL(futimesat, "utime", "f", fd, NULL, NULL);
	CALL(futimesat, "utime", "none", AT_FDCWD, "none", NULL);
	CALL_IN(utimensat, "utime", "d", "in", dir, "in", NULL, 0);
	CALL(utimensat, "utime", "f", fd, NULL, NULL, 0);
	CALL(utimensat, "utime", "none", AT_FDCWD, "none", NULL, 0);
}

static void attributes(int fd)
{
	struct xattr_args args = {(uintptr_t) "v", 1, 0};

	CALL(setxattr, "setxattr", "f", "f", "user.a", "v", 1, 0);
	CALL(setxattr, "setxattr", "none", "none", "user.a", "v", 1, 0);
	CALL(lsetxattr, "lsetxattr", "f", "f", "user.b", "v", 1, 0);
	CALL(lsetxattr, "lsetxattr", "none", "none", "user.b", "v", 1, 0);
	CALL(fsetxattr, "fsetxattr", "f", fd, "user.c", "v", 1, 0);
	CALL(fsetxattr, "fsetxattr", "f", fd, "nonsense", "v", 1, 0);
	CALL(getxattr, "getxattr", "f", "f", "user.a", buffer, 100);
	CALL(getxattr, "getxattr", "f", "f", "user.none", buffer, 100);
	CALL(lgetxattr, "lgetxattr", "f", "f", "user.a", buffer, 100);
	CALL(lgetxattr, "lgetxattr", "f", "f", "user.none", buffer, 100);
	CALL(fgetxattr, "fgetxattr", "f", fd, "user.a", buffer, 100);
	CALL(fgetxattr, "fgetxattr", "f", fd, "user.none", buffer, 100);
	CALL(listxattr, "listxattr", "f", "f", buffer, 100);
	CALL(listxattr, "listxattr", "none", "none", buffer, 100);
	CALL(llistxattr, "llistxattr", "f", "f", buffer, 100);
	CALL(llistxattr, "llistxattr", "none", "none", buffer, 100);
	CALL(flistxattr, "flistxattr", "f", fd, buffer, 100);
	CALL(flistxattr, "flistxattr", "f", fd, buffer, 1);
	NEWER("setxattrat", NR_SETXATTRAT, "setxattr", "f", AT_FDCWD, "f", 0, "user.d", &args,
	      sizeof(args));
	NEWER("getxattrat", NR_GETXATTRAT, "lgetxattr", "f", AT_FDCWD, "f", AT_SYMLINK_NOFOLLOW,
	      "user.none", &args, sizeof(args));
	NEWER("listxattrat", NR_LISTXATTRAT, "listxattr", "none", AT_FDCWD, "none", 0, buffer, 100);
	NEWER("listxattrat", NR_LISTXATTRAT, "flistxattr", "f", fd, "", AT_EMPTY_PATH, buffer, 100);
	NEWER("removexattrat", NR_REMOVEXATTRAT, "removexattr", "f", AT_FDCWD, "f", 0, "user.d");
	CALL(removexattr, "removexattr", "f", "f", "user.a");
	CALL(removexattr, "removexattr", "f", "f", "user.a");
	CALL(lremovexattr, "lremovexattr", "f", "f", "user.b");
	CALL(lremovexattr, "lremovexattr", "f", "f", "user.b");
	CALL(fremovexattr, "fremovexattr", "f", fd, "user.c");
	CALL(fremovexattr, "fremovexattr", "f", fd, "user.c");
}

static void directories(int dir)
{
	int path_fd;
	long n;

	do {
		n = CALL(getdents64, "readdir", "d", dir, buffer, sizeof(buffer));
	} while (n > 0);
	CHECK(lseek(dir, 0, SEEK_SET) == 0);
	say("lseek", "lseek", NULL, "d", 0);
	do {
		n = CALL(getdents, "readdir", "d", dir, buffer, sizeof(buffer));
	} while (n > 0);
	CALL(getdents64, "readdir", "d", dir, buffer, 1);
	CALL(chdir, "chdir", "none", "none");
	CALL(chdir, "chdir", "d", "d");
	CALL_IN(access, "access", "d", "in", "in", R_OK);
	CALL_IN(chdir, "chdir", "d", "..", "..");
	CALL(fchdir, "fchdir", "d", dir);
	CALL_IN(rmdir, "rmdir", "d", "sub", "sub");
	CALL_IN(unlink, "unlink", "d", "hard", "hard");
	CALL_IN(unlink, "unlink", "d", "hard", "hard");
	CALL_IN(chdir, "chdir", "d", "..", "..");
	path_fd = (int)CALL(open, "open", "f", "f", O_PATH);
	CALL(fchdir, "fchdir", "f", path_fd);
	CHECK(mkdir("e", 0700) == 0);
	say("mkdir", "mkdir", NULL, "e", 0);
	CALL(unlinkat, "rmdir", "e", AT_FDCWD, "e", AT_REMOVEDIR);
	CALL(unlinkat, "unlink", "e", AT_FDCWD, "e", 0);
	CALL(rmdir, "rmdir", "d", "d");
}

static void handles(int dir)
{
	struct file_handle *handle = calloc(1, sizeof(*handle) + 128);
	int mount;
	long fd;

	CHECK(handle);
	handle->handle_bytes = 128;
	if (syscall(SYS_name_to_handle_at, AT_FDCWD, "f", handle, &mount, 0) == 0) {
		fd = syscall(SYS_open_by_handle_at, dir, handle, O_RDONLY);
		say("open_by_handle_at", "open", NULL, fd >= 0 ? "f" : NULL, fd);
	}
	handle->handle_bytes = 1 << 20;
	say("open_by_handle_at", "open", NULL, NULL,
	    syscall(SYS_open_by_handle_at, dir, handle, O_RDONLY));
	free(handle);
}

static void asynchronous(int fd)
{
	aio_context_t context = 0;
	struct io_event done[1];
	struct iocb read_it = {.aio_lio_opcode = IOCB_CMD_PREAD,
			       .aio_fildes = (unsigned)fd,
			       .aio_buf = (uintptr_t)buffer,
			       .aio_nbytes = 333,
			       .aio_offset = 11};
	struct iocb *list[1] = {&read_it};
	struct timespec patience = {.tv_sec = 10};

	if (syscall(SYS_io_setup, 4, &context) != 0)
		return;
	say("io_submit", "io_submit", NULL, NULL, syscall(SYS_io_submit, context, 1L, list));
	say("io_getevents", "io_getevents", NULL, NULL,
	    syscall(SYS_io_getevents, context, 1L, 1L, done, &patience));
	say("pread64", "pread", NULL, "f", (long)done[0].res);
	say("io_submit", "io_submit", NULL, NULL, syscall(SYS_io_submit, context, 1L, NULL));
	say("io_submit", "io_submit", NULL, NULL, syscall(SYS_io_submit, context, 1L, list));
	say("io_pgetevents", "io_getevents", NULL, NULL,
	    syscall(SYS_io_pgetevents, context, 1L, 1L, done, &patience, NULL));
	say("pread64", "pread", NULL, "f", (long)done[0].res);
	CHECK(syscall(SYS_io_destroy, context) == 0);
	say("io_getevents", "io_getevents", NULL, NULL,
	    syscall(SYS_io_getevents, context, 1L, 1L, done, &patience));
	say("io_uring_enter", "io_uring_enter", NULL, NULL,
	    syscall(SYS_io_uring_enter, GONE, 1, 0, 0, NULL, 0));
}

static void reap(long child, const char *kernel)
{
	int status;
	siginfo_t info;

	CHECK(child > 0);
	say_no_ret(kernel, "fork", NULL, NULL, child);
	if (strcmp(kernel, "fork") == 0) {
		CHECK(syscall(SYS_wait4, child, &status, 0, NULL) == child);
		say_no_ret("wait4", "wait", NULL, NULL, child);
	} else {
		CHECK(syscall(SYS_waitid, P_PID, child, &info, WEXITED, NULL) == 0);
		say_no_ret("waitid", "wait", NULL, NULL, 0);
	}
}

static void processes(void)
{
	char *argv[] = {"none", NULL}, *none[] = {NULL};
	struct clone_args args = {.exit_signal = SIGCHLD};
	int ends[2];
	long child;

	fflush(stdout);
	child = syscall(SYS_fork);
	if (child == 0)
		syscall(SYS_exit_group, 0);
	reap(child, "fork");
	fflush(stdout);
	child = vfork();
	if (child == 0)
		_exit(0);
	reap(child, "vfork");
	fflush(stdout);
	child = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (child == 0)
		syscall(SYS_exit_group, 0);
	reap(child, "clone");
	fflush(stdout);
	child = syscall(SYS_clone3, &args, sizeof(args));
	if (child == 0)
		syscall(SYS_exit_group, 0);
	reap(child, "clone3");
	say("wait4", "wait", NULL, NULL, syscall(SYS_wait4, -1, NULL, 0, NULL));
	say("waitid", "wait", NULL, NULL, syscall(SYS_waitid, P_ALL, 0, NULL, WEXITED, NULL));
	CALL(execve, "exec", "none", "none", argv, none);
	CALL(execveat, "exec", "f", AT_FDCWD, "f", argv, none, AT_SYMLINK_NOFOLLOW);
	say_no_ret("pipe", "pipe", NULL, NULL, syscall(SYS_pipe, ends));
	say("pipe", "pipe", NULL, NULL, syscall(SYS_pipe, (void *)8));
	say("kill", "kill", NULL, NULL, syscall(SYS_kill, getpid(), 0));
	say("kill", "kill", NULL, NULL, syscall(SYS_kill, getpid(), 999));
	say("tkill", "kill", NULL, NULL, syscall(SYS_tkill, gettid(), 0));
	say("tgkill", "kill", NULL, NULL, syscall(SYS_tgkill, getpid(), gettid(), 999));
}

static void tees(void)
{
	int fd = (int)CALL(open, "open", "fifo", "fifo", O_RDWR);
	int ends[2];

	/* A FIFO that was opened by its path is recorded, so tee(2) has a file to be about. */
	CHECK(pipe(ends) == 0);
	say_no_ret("pipe", "pipe", NULL, NULL, 0);
	CALL(write, "write", "fifo", fd, "twelve bytes", 12);
	CALL(tee, "tee", "fifo", fd, ends[1], 12, 0);
	CALL(tee, "tee", "fifo", fd, ends[1], 12, 1 << 30);
}

int main(void)
{
	static char out[1 << 16];
	int fd, dir;

	/* So that no call on stdout comes between. */
	setvbuf(stdout, out, _IOFBF, sizeof(out));
	fd = opens();
	dir = fd - 1;
	moves_data(fd);
	descriptors(fd);
	statuses(fd, dir);
	names(dir);
	owners(fd, dir);
	attributes(fd);
	handles(dir);
	asynchronous(fd);
	tees();
	processes();
	directories(dir);
	return 0;
}
