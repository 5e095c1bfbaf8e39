/* recorder_soak SECONDS: threads and children that come and go among calls that are made often, at a steady pace.
 * Prints how many calls of each name there were on the file `data`. */
#include "say.h"

#include <fcntl.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <sys/wait.h>

enum { THREADS = 3, CALLS = 100, PAUSE_US = 40000, ROUNDS_PER_CHILD = 10 };

static int data;

static void *work(void *unused)
{
	char bytes[4];

	(void)unused;
	for (int i = 0; i < CALLS; i++) {
		CHECK(pread(data, bytes, 3, 1) == 3 && memcmp(bytes, "ell", 3) == 0);
		CHECK(lseek(data, 0, SEEK_CUR) >= 0);
		int fd = open("data", O_RDONLY);
		CHECK(fd >= 0 && close(fd) == 0);
	}
	return NULL;
}

static void child(void)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		work(NULL);
		_exit(0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	long works = 0;
	long rounds = 0;

	CHECK(argc == 2);
	data = open("data", O_RDWR | O_CREAT | O_TRUNC, 0600);
	CHECK(data >= 0 && write(data, "hello", 5) == 5);
	for (time_t end = time(NULL) + atol(argv[1]); time(NULL) < end; rounds++) {
		for (int i = 0; i < THREADS; i++)
			CHECK(pthread_create(&threads[i], NULL, work, NULL) == 0);
		for (int i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
		works += THREADS;
		if (rounds % ROUNDS_PER_CHILD == 0) {
			child();
			works++;
		}
		usleep(PAUSE_US);
	}
	printf("pread\t%ld\nlseek\t%ld\nopen\t%ld\nclose\t%ld\n", works * CALLS, works * CALLS,
	       works * CALLS + 1, works * CALLS);
	return 0;
}
