/* Makes one system call many times and prints what one costs, in ns.
 *
 * usage: calls pread|getppid COUNT FILE */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/syscall.h>

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
	char byte;
	char *end = NULL;
	long count = argc == 4 ? strtol(argv[2], &end, 10) : 0;

	if (count <= 0 || *end || (strcmp(argv[1], "pread") && strcmp(argv[1], "getppid"))) {
		fprintf(stderr, "usage: calls pread|getppid COUNT FILE\n");
		return 2;
	}
	int fd = open(argv[3], O_RDONLY);
	if (fd < 0) {
		fprintf(stderr, "calls: %s: %s\n", argv[3], strerror(errno));
		return 1;
	}
	double start = now_ns();
	if (strcmp(argv[1], "pread") == 0) {
		for (long i = 0; i < count; i++) {
			if (pread(fd, &byte, 1, 0) != 1) {
				fprintf(stderr, "calls: %s: no byte to read\n", argv[3]);
				return 1;
			}
		}
	} else {
		for (long i = 0; i < count; i++)
			syscall(SYS_getppid);
	}
	printf("%.3f\n", (now_ns() - start) / (double)count);
	return 0;
}
