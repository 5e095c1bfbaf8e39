/* Moves bytes in every way that the kernel counts in rchar and wchar, and prints by how much they grew. */
#include "say.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

struct counts {
	long rchar;
	long wchar;
};

/* The counters as they are before this very read is added to them. */
static struct counts counters(void)
{
	char text[512];
	struct counts c;
	int fd = open("/proc/self/io", O_RDONLY);
	ssize_t n = read(fd, text, sizeof(text) - 1);

	CHECK(n > 0 && close(fd) == 0);
	text[n] = '\0';
	CHECK(sscanf(text, "rchar: %ld wchar: %ld", &c.rchar, &c.wchar) == 2);
	return c;
}

static void pair(int in, int out)
{
	char text[3000] = {0};
	struct iovec iov[2] = {{text, 700}, {text + 700, 11}};

	CHECK(write(in, text, 1234) == 1234);
	CHECK(read(out, text, 234) == 234);
	CHECK(readv(out, iov, 2) == 711);
	CHECK(writev(in, iov, 2) == 711);
	CHECK(read(out, text, sizeof(text)) == 1000);
}

static void *move(void *data)
{
	char name[16], text[2000] = {0};
	int ends[2], fd, out;
	loff_t at = 3;

	snprintf(name, sizeof(name), "data%ld", (long)data);
	fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
	out = open("copy", O_RDWR | O_CREAT, 0644);
	CHECK(fd >= 0 && out >= 0);
	for (int i = 0; i < 20; i++)
		CHECK(pwrite(fd, text, 1000 + i, i * 1000) == 1000 + i);
	CHECK(pread(fd, text, 500, 100) == 500);
	CHECK(pread(fd, text, 500, 1 << 20) == 0);
	CHECK(sendfile(out, fd, &at, 777) == 777);
	CHECK(copy_file_range(fd, NULL, out, NULL, 4321, 0) == 4321);
	CHECK(pipe(ends) == 0);
	pair(ends[1], ends[0]);
	CHECK(sendfile(ends[1], fd, &at, 555) == 555);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
	pair(ends[0], ends[1]);
	CHECK(syscall(SYS_write, fd, 8L, 10L) == -1);
	fd = open("/dev/zero", O_RDWR);
	CHECK(read(fd, text, 1999) == 1999 && write(fd, text, 1999) == 1999);
	CHECK(write(STDERR_FILENO, "to stderr\n", 10) == 10);
	return NULL;
}

int main(void)
{
	struct counts before = counters(), after;
	pthread_t thread;

	move((void *)0);
	CHECK(pthread_create(&thread, NULL, move, (void *)1) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(write(STDOUT_FILENO, "moved\n", 6) == 6);
	after = counters();
	printf("rchar\t%ld\nwchar\t%ld\n", after.rchar - before.rchar, after.wchar - before.wchar);
	return 0;
}
