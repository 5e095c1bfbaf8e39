/* Makes one call many times and prints what one costs, in ns.
 *
 * usage: calls pread|getppid|fread|burst|pairs|threads COUNT FILE; fread wants a file without an end; burst, pairs and
 * threads make COUNT times a few thousand calls, with a pause before each, and print the median: of preads, of opens
 * with the close of each, of preads in four threads at once by their own CPU time */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/syscall.h>

#define BURST    2000
#define PAUSE_US 30000
#define THREADS  4

static double now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
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

static int pairs(const char *path, long count)
{
	for (long i = 0; i < count; i++) {
		int fd = open(path, O_RDONLY);
		if (fd < 0 || close(fd) < 0)
			return -1;
	}
	return 0;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

/* What each thread does; with `path` it opens and closes that. */
struct bursts {
	const char *path;
	int fd;
	long count;
	clockid_t clock;
	double median;
	int failed;
};

static void *bursts(void *data)
{
	struct bursts *b = data;
	double *taken = calloc((size_t)b->count, sizeof(*taken));

	b->failed = taken ? 0 : -1;
	for (long i = 0; i < b->count && !b->failed; i++) {
		usleep(PAUSE_US);
		double start = now_ns(b->clock);
		b->failed = b->path ? pairs(b->path, BURST) : preads(b->fd, BURST);
		taken[i] = (now_ns(b->clock) - start) / BURST;
	}
	if (!b->failed) {
		qsort(taken, (size_t)b->count, sizeof(*taken), by_size);
		b->median = taken[b->count / 2];
	}
	free(taken);
	return NULL;
}

/* @return what `nthreads` at once take for one call on the average, -1 when one failed. */
static double all_bursts(const struct bursts *what, int nthreads)
{
	struct bursts each[THREADS];
	pthread_t threads[THREADS];
	double sum = 0;
	int failed = 0;

	for (int i = 0; i < nthreads; i++) {
		each[i] = *what;
		if (nthreads > 1 && pthread_create(&threads[i], NULL, bursts, &each[i]))
			exit(1);
	}
	if (nthreads == 1)
		bursts(&each[0]);
	for (int i = 0; i < nthreads; i++) {
		if (nthreads > 1)
			pthread_join(threads[i], NULL);
		sum += each[i].median;
		failed |= each[i].failed;
	}
	return failed ? -1 : sum / nthreads;
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

/* @return what one call takes, -1 when there was none. */
static double measure(const char *call, long count, const char *path, FILE *file)
{
	struct bursts what = {.fd = fileno(file), .count = count, .clock = CLOCK_MONOTONIC};
	int failed;

	if (strcmp(call, "burst") == 0)
		return all_bursts(&what, 1);
	if (strcmp(call, "pairs") == 0) {
		what.path = path;
		return all_bursts(&what, 1);
	}
	if (strcmp(call, "threads") == 0) {
		/* Others may have the CPUs meanwhile. */
		what.clock = CLOCK_THREAD_CPUTIME_ID;
		return all_bursts(&what, THREADS);
	}
	double start = now_ns(CLOCK_MONOTONIC);
	if (strcmp(call, "pread") == 0)
		failed = preads(fileno(file), count);
	else if (strcmp(call, "fread") == 0)
		failed = freads(file, count);
	else
		failed = getppids(count);
	double taken = now_ns(CLOCK_MONOTONIC) - start;
	return failed ? -1 : taken / (double)count;
}

static int is_known(const char *call)
{
	static const char *const calls[] = {"pread", "getppid", "fread",
					    "burst", "pairs",   "threads"};

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		if (strcmp(call, calls[i]) == 0)
			return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	char *end = NULL;
	long count = argc == 4 ? strtol(argv[2], &end, 10) : 0;

	if (count <= 0 || *end || !is_known(argv[1])) {
		fprintf(stderr,
			"usage: calls pread|getppid|fread|burst|pairs|threads COUNT FILE\n");
		return 2;
	}
	FILE *file = fopen(argv[3], "r");
	if (!file || setvbuf(file, NULL, _IOFBF, 1 << 20)) {
		fprintf(stderr, "calls: %s: %s\n", argv[3], strerror(errno));
		return 1;
	}
	double taken = measure(argv[1], count, argv[3], file);
	if (taken < 0) {
		fprintf(stderr, "calls: %s: nothing to read\n", argv[3]);
		return 1;
	}
	printf("%.3f\n", taken);
	return 0;
}
