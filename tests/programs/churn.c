/* churn THREADS ROUNDS: threads open, duplicate and close files as fast as they can, so that the same few
 * descriptor numbers mean another file every time. Each thread has its own file and prints what it wrote. */
#include "say.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

struct churner {
	pthread_t thread;
	int number;
	int rounds;
	long bytes;
	long calls;
};

static void put(struct churner *c, int fd, size_t size)
{
	static const char piece[256];

	CHECK(write(fd, piece, size) == (ssize_t)size);
	c->bytes += (long)size;
	c->calls++;
}

static void *churn(void *data)
{
	struct churner *c = data;
	char name[32];

	snprintf(name, sizeof(name), "churn%d", c->number);
	for (int i = 0; i < c->rounds; i++) {
		int fd = open(name, O_WRONLY | O_CREAT | O_APPEND, 0644), copy;

		CHECK(fd >= 0);
		put(c, fd, (size_t)(c->number + 1));
		copy = dup(fd);
		CHECK(copy >= 0 && close(fd) == 0);
		put(c, copy, (size_t)(c->number + 2));
		fd = fcntl(copy, F_DUPFD, 0);
		CHECK(fd >= 0);
		put(c, fd, 1);
		CHECK(close(copy) == 0 && close(fd) == 0);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct churner churners[64] = {0};
	int count;

	CHECK(argc == 3);
	count = atoi(argv[1]);
	CHECK(count >= 1 && count <= 64);
	for (int i = 0; i < count; i++) {
		churners[i] = (struct churner){.number = i, .rounds = atoi(argv[2])};
		CHECK(pthread_create(&churners[i].thread, NULL, churn, &churners[i]) == 0);
	}
	for (int i = 0; i < count; i++) {
		CHECK(pthread_join(churners[i].thread, NULL) == 0);
		printf("churn%d\t%ld %ld\n", i, churners[i].bytes, churners[i].calls);
	}
	return 0;
}
