/* Makes one call many times and prints what one costs, in ns.
 *
 * usage: calls pread|getppid|fread|burst COUNT FILE; fread wants a file without an end; burst makes COUNT times
 * a few thousand preads, with a pause before each, and prints the median */
#include <errno.h>
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

/* @return 0, or -1 when it did not read. */
static int preads(int fd, long count)
{
	char byte;

	for (long i = 0; i < count; i++) {
		if (pread(fd, &byte, 1, 0) != 1)
			return -1;
	}
	return 0;
}

#define BURST    2000
#define PAUSE_US 30000

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

static int bursts(int fd, long count)
{
	double *taken = calloc((size_t)count, sizeof(*taken));
	int failed = taken ? 0 : -1;

	for (long i = 0; i < count && !failed; i++) {
		usleep(PAUSE_US);
		double start = now_ns();
		failed = preads(fd, BURST);
		taken[i] = (now_ns() - start) / BURST;
	}
	if (!failed) {
		qsort(taken, (size_t)count, sizeof(*taken), by_size);
		printf("%.3f\n", taken[count / 2]);
	}
	free(taken);
	return failed;
}

/* Few of them make a system call. */
static int freads(FILE *file, long count)
{
	char byte;

	for (long i = 0; i < count; i++) {
		if (fread(&byte, 1, 1, file) != 1)
			return -1;
	}
	return 0;
}

static int getppids(long count)
{
	for (long i = 0; i < count; i++)
		syscall(SYS_getppid);
	return 0;
}

int main(int argc, char **argv)
{
	char *end = NULL;
	const char *call = argc == 4 ? argv[1] : "";
	long count = argc == 4 ? strtol(argv[2], &end, 10) : 0;
	int failed;

	if (count <= 0 || *end ||
	    (strcmp(call, "pread") && strcmp(call, "getppid") && strcmp(call, "fread") &&
	     strcmp(call, "burst"))) {
		fprintf(stderr, "usage: calls pread|getppid|fread|burst COUNT FILE\n");
		return 2;
	}
	FILE *file = fopen(argv[3], "r");
	if (!file || setvbuf(file, NULL, _IOFBF, 1 << 20)) {
		fprintf(stderr, "calls: %s: %s\n", argv[3], strerror(errno));
		return 1;
	}
	if (strcmp(call, "burst") == 0)
		return bursts(fileno(file), count) < 0;
	double start = now_ns();
	if (strcmp(call, "pread") == 0)
		failed = preads(fileno(file), count);
	else if (strcmp(call, "fread") == 0)
		failed = freads(file, count);
	else
		failed = getppids(count);
	double taken = now_ns() - start;
	if (failed) {
		fprintf(stderr, "calls: %s: nothing to read\n", argv[3]);
		return 1;
	}
	printf("%.3f\n", taken / (double)count);
	return 0;
}
