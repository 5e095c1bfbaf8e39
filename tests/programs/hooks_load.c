/* Many threads in one hooked function, beside what makes that hard. To be hooked by -x 'hooked_*'.
 * usage: hooks_load plain|fork|dlopen|signals THREADS MILLISECONDS [LIBRARY LIBRARY]
 * Prints `func <TAB> name <TAB> calls <TAB> 0 <TAB> sum`, over all processes. */
#include "say.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/wait.h>

long hooked_work(long n);

/* Shared with all children. */
static struct counts {
	_Atomic long work;
	_Atomic long sum;
	_Atomic long library;
	_Atomic long library_sum;
} * counts;

static _Atomic int over;

__attribute__((noinline)) long hooked_work(long n)
{
	__asm__ volatile("" : "+r"(n));
	if (n % 3 == 0)
		return n + 1;
	return n % 3 == 1 ? n + 2 : n;
}

static void once(long i)
{
	long ret = hooked_work(i);

	CHECK(ret == (i % 3 == 0 ? i + 1 : i % 3 == 1 ? i + 2 : i));
	counts->work++;
	counts->sum += ret;
}

static void *spin(void *data)
{
	for (long i = (long)(intptr_t)data; !over; i++)
		once(i);
	return NULL;
}

static void forks(void)
{
	pid_t child = fork();
	int status;

	CHECK(child >= 0);
	if (child == 0) {
		for (long i = 0; i < 20; i++)
			once(i);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void loads(const char *name)
{
	void *library = dlopen(name, RTLD_NOW);
	long (*function)(long);
	int (*stream)(const char *);

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(99);
	}
	*(void **)&function = dlsym(library, "hooked_library");
	*(void **)&stream = dlsym(library, "stream_library");
	CHECK(function && stream);
	for (long i = 0; i < 5; i++) {
		counts->library_sum += function(i);
		counts->library++;
	}
	CHECK(stream("library.txt") == 0);
	CHECK(dlclose(library) == 0);
}

static void ignore(int number)
{
	(void)number;
}

static long milliseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
	pthread_t threads[256];
	int count = argc > 2 ? atoi(argv[2]) : 0;
	long end = milliseconds() + (argc > 3 ? atol(argv[3]) : 0);
	struct sigaction action = {.sa_handler = ignore, .sa_flags = SA_RESTART};

	if (count > 256 || argc < 4 || (argv[1][0] == 'd' && argc < 6))
		return 2;
	counts = mmap(NULL, sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	CHECK(counts != MAP_FAILED && sigaction(SIGUSR1, &action, NULL) == 0);
	for (int i = 0; i < count; i++)
		CHECK(pthread_create(&threads[i], NULL, spin, (void *)(intptr_t)(i * 7)) == 0);
	for (int i = 0; milliseconds() < end || i < 10; i++) {
		if (argv[1][0] == 'f')
			forks();
		else if (argv[1][0] == 'd')
			loads(argv[4 + i % 2]);
		else if (argv[1][0] == 's' && count)
			CHECK(pthread_kill(threads[i % count], SIGUSR1) == 0);
		else
			once(i);
	}
	over = 1;
	for (int i = 0; i < count; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	printf("func\thooked_work\t%ld\t0\t%ld\n", (long)counts->work, (long)counts->sum);
	if (argv[1][0] == 'd')
		printf("func\thooked_library\t%ld\t0\t%ld\n", (long)counts->library,
		       (long)counts->library_sum);
	return 0;
}
