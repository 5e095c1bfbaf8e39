/* workers threads|children COUNT CALLS: each thread or child writes its own file in pieces, reads it
 * back, and what each did is printed. */
#include "say.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <sys/wait.h>

struct worker {
	pthread_t thread;
	int number;
	int calls;
	long written;
	long read;
};

static void *work(void *data)
{
	struct worker *w = data;
	char name[32], piece[300] = {0};
	int fd;

	snprintf(name, sizeof(name), "file%d", w->number);
	fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	CHECK(fd >= 0);
	for (int i = 0; i < w->calls; i++) {
		ssize_t n = pwrite(fd, piece, (size_t)(1 + (w->number * 7 + i) % 300), w->written);

		CHECK(n > 0);
		w->written += n;
	}
	for (ssize_t n; (n = read(fd, piece, sizeof(piece))) != 0;) {
		CHECK(n > 0);
		w->read += n;
	}
	CHECK(close(fd) == 0);
	return NULL;
}

static void print(const struct worker *w)
{
	printf("file%d\t%ld %ld\n", w->number, w->written, w->read);
}

static void threads(struct worker *workers, int count)
{
	pthread_attr_t small;

	CHECK(pthread_attr_init(&small) == 0);
	CHECK(pthread_attr_setstacksize(&small, 64 * 1024) == 0);
	for (int i = 0; i < count; i++)
		CHECK(pthread_create(&workers[i].thread, &small, work, &workers[i]) == 0);
	for (int i = 0; i < count; i++) {
		CHECK(pthread_join(workers[i].thread, NULL) == 0);
		print(&workers[i]);
	}
}

/* At most 20 at a time, so that a small machine stays usable. */
static void children(struct worker *workers, int count)
{
	int running = 0, status;

	for (int i = 0; i < count; i++) {
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (pid == 0) {
			work(&workers[i]);
			print(&workers[i]);
			exit(workers[i].number % 7);
		}
		if (++running == 20) {
			CHECK(wait(&status) > 0 && WIFEXITED(status));
			running--;
		}
	}
	while (wait(&status) > 0)
		CHECK(WIFEXITED(status));
}

int main(int argc, char **argv)
{
	int count, calls;
	struct worker *workers;

	CHECK(argc == 4);
	count = atoi(argv[2]);
	calls = atoi(argv[3]);
	workers = calloc((size_t)count, sizeof(*workers));
	CHECK(workers);
	for (int i = 0; i < count; i++)
		workers[i] = (struct worker){.number = i, .calls = calls};
	if (strcmp(argv[1], "threads") == 0)
		threads(workers, count);
	else
		children(workers, count);
	free(workers);
	return 3;
}
