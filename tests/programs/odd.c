/* odd CASE: names and pointers that are unusual. */
#include "say.h"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

static void touch(const char *path)
{
	char text[8] = "contents";
	int fd = (int)say("openat", "open", NULL, path,
			  open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644));

	if (fd < 0)
		return;
	say("write", "write", NULL, path, write(fd, text, sizeof(text)));
	say("close", "close", NULL, path, close(fd));
	say("unlink", "unlink", NULL, path, unlink(path));
}

static void names(void)
{
	char all[256], every[3] = "x";
	size_t n = 0;

	touch("a new\nline");
	touch("tab\tquote\"back\\slash'apostrophe");
	touch("umlaut-\xc3\xa4-kanji-\xe6\xbc\xa2-emoji-\xf0\x9f\x98\x80");
	touch("latin-\xe4-cut-\xe6\xbc-alone-\xbf-surrogate-\xed\xa0\x80-overlong-\xc0\xaf-end-"
	      "\xf0\x9f");
	touch("(parentheses) | [brackets] {braces} <angles> $dollar `tick` *?");
	touch(" leading and trailing ");
	touch("del-\x7f-c1-\xc2\x85");
	for (int c = 1; c < 256; c++)
		if (c != '/')
			all[n++] = (char)c;
	all[n] = '\0';
	touch(all);
	for (int c = 1; c < 256; c++) {
		every[1] = (char)c;
		if (c != '/')
			touch(every);
	}
}

/* A path of `len` bytes that leads to a file in the working directory. */
static char *path_of(size_t len, const char *name)
{
	char *path = malloc(len + 1);
	size_t tail = strlen(name), i;

	CHECK(path);
	for (i = 0; i + 2 <= len - tail; i += 2)
		memcpy(path + i, "./", 2);
	if (i < len - tail)
		path[i++] = '/';
	memcpy(path + i, name, tail + 1);
	CHECK(strlen(path) == len);
	return path;
}

/* A file whose path has 4095 bytes, all of them names. */
static void deep(void)
{
	char *path = malloc(PATH_MAX);
	size_t len = 0, limit = PATH_MAX - 1;

	CHECK(path);
	while (limit - len > 250) {
		size_t part = limit - len > 500 ? 250 : (limit - len) / 2;

		memset(path + len, 'n', part);
		path[len + part] = '\0';
		CHECK(mkdir(path, 0755) == 0);
		say("mkdir", "mkdir", NULL, path, 0);
		path[len + part] = '/';
		len += part + 1;
	}
	memset(path + len, 'f', limit - len);
	path[limit] = '\0';
	touch(path);
	free(path);
}

static void lengths(void)
{
	char *path;

	for (size_t len = PATH_MAX - 10; len < PATH_MAX; len++) {
		path = path_of(len, "file");
		touch(path);
		free(path);
	}
	/* Too long for the kernel, which refuses it; so there is no name. */
	path = path_of(PATH_MAX, "file");
	say("access", "access", NULL, NULL, access(path, F_OK));
	free(path);
}

/* Strings that end exactly where the readable memory ends, and ones that do not end before it. */
static void edges(void)
{
	long page = sysconf(_SC_PAGESIZE);
	char *map = mmap(NULL, 3 * (size_t)page, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *end = map + 2 * page;

	CHECK(map != MAP_FAILED && mprotect(end, (size_t)page, PROT_NONE) == 0);
	strcpy(end - 5, "edge");
	touch(end - 5);
	strcpy(map + page - 3, "over-the-border");
	touch(map + page - 3);
	memset(end - 5, 'x', 5);
	say("access", "access", NULL, NULL, access(end - 5, F_OK));
	say("access", "access", NULL, NULL, access(end, F_OK));
	say("access", "access", NULL, NULL, access((char *)8, F_OK));
	say("access", "access", NULL, NULL, (int)syscall(SYS_access, NULL, F_OK));
	say("access", "access", NULL, NULL, access("", F_OK));
}

static void faults(void)
{
	static struct stat st;
	struct iovec iov[2] = {{(void *)8, 10}, {&st, 10}};
	int fd = (int)say("openat", "open", NULL, "f", open("f", O_RDWR | O_CREAT, 0644));
	char *bad = (char *)8;

	say("write", "write", NULL, "f", syscall(SYS_write, fd, "123456", 6));
	say("write", "write", NULL, "f", syscall(SYS_write, fd, bad, 6));
	say("pread64", "pread", NULL, "f", syscall(SYS_pread64, fd, bad, 6, 0));
	say("preadv", "preadv", NULL, "f", syscall(SYS_preadv, fd, iov, 2, 0, 0));
	say("readv", "readv", NULL, "f", syscall(SYS_readv, fd, bad, 2));
	say("newfstatat", "stat", NULL, "f", syscall(SYS_newfstatat, AT_FDCWD, "f", bad, 0));
	say("newfstatat", "stat", NULL, NULL, syscall(SYS_newfstatat, AT_FDCWD, bad, &st, 0));
	say("openat2", "open", NULL, "f", syscall(SYS_openat2, AT_FDCWD, "f", bad, 24L));
	say("rename", "rename", NULL, NULL, syscall(SYS_rename, bad, "g"));
	say("rename", "rename", NULL, "f", syscall(SYS_rename, "f", bad));
	say("readlink", "readlink", NULL, "f", syscall(SYS_readlink, "f", bad, 10));
	say("getdents64", "readdir", NULL, "f", syscall(SYS_getdents64, fd, bad, 10));
	say("pipe", "pipe", NULL, NULL, syscall(SYS_pipe, bad));
	say("sendfile", "sendfile", NULL, "f", syscall(SYS_sendfile, fd, fd, bad, 10));
	say("getxattr", "getxattr", NULL, "f", syscall(SYS_getxattr, "f", bad, NULL, 0));
	say("execve", "exec", NULL, NULL, syscall(SYS_execve, bad, NULL, NULL));
	say("clone3", "fork", NULL, NULL, syscall(SYS_clone3, bad, 88));
	say("utimensat", "utime", NULL, "f", syscall(SYS_utimensat, AT_FDCWD, "f", bad, 0));
}

static void many(const char *count)
{
	long n = atol(count), opened = 0;
	char name[32];

	for (long i = 0; i < n; i++) {
		int fd;

		snprintf(name, sizeof(name), "f%ld", i % 100);
		fd = open(name, O_RDWR | O_CREAT, 0644);
		CHECK(fd >= 0);
		opened++;
		if (i % 1000 == 0)
			CHECK(pwrite(fd, name, 3, 0) == 3);
	}
	printf("opened\t%ld\n", opened);
	/* All of them are closed at exit, by nobody's call. */
}

int main(int argc, char **argv)
{
	static char out[1 << 20];

	setvbuf(stdout, out, _IOFBF, sizeof(out));
	CHECK(argc >= 2);
	if (strcmp(argv[1], "names") == 0)
		names();
	else if (strcmp(argv[1], "deep") == 0)
		deep();
	else if (strcmp(argv[1], "lengths") == 0)
		lengths();
	else if (strcmp(argv[1], "edges") == 0)
		edges();
	else if (strcmp(argv[1], "faults") == 0)
		faults();
	else
		many(argv[1]);
	return 0;
}
