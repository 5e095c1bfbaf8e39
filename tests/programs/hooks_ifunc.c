/* Functions that a resolver chooses when the program is linked at run time. They are to be hooked by their names:
 * -x 'hooked_*' -x memcpy. usage: hooks_ifunc [LIBRARY]; prints `func` as hooks_ends does, and for each memcpy
 * `copy <TAB> to <TAB> from <TAB> length`. */
#include "say.h"

#include <dlfcn.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include <sys/wait.h>

#define COPIES 20

typedef long function(long);

long hooked_chosen(long n);

/* One of the two is never called. */
static long one_way(long n)
{
	long ret = n * 7;

	__asm__ volatile("" : "+r"(ret));
	return ret;
}

static long other_way(long n)
{
	long ret = n * 9;

	__asm__ volatile("" : "+r"(ret));
	return ret;
}

/* Nothing is relocated yet where this runs. */
__attribute__((used, no_stack_protector)) static function *choose(void)
{
	long cold = 1;

	__asm__ volatile("" : "+r"(cold));
	return cold ? one_way : other_way;
}

__attribute__((ifunc("choose"))) long hooked_chosen(long n);

static long calls;
static long sum;

static void call(long n)
{
	long ret = hooked_chosen(n);

	CHECK(ret == n * 7);
	calls++;
	sum += ret;
}

/* Before the program's own code begins. */
__attribute__((constructor)) static void early(void)
{
	for (long i = 0; i < 5; i++)
		call(i);
}

static void copies(void)
{
	static char from[8192];
	static char to[8192];
	void *(*volatile copy)(void *, const void *, size_t) = memcpy;

	for (size_t i = 0; i < COPIES; i++) {
		size_t length = i * i * 7;

		CHECK(copy(to + i, from, length) == to + i);
		printf("copy\t%ld\t%ld\t%zu\n", (long)(intptr_t)(to + i), (long)(intptr_t)from,
		       length);
	}
}

static void ask(void *library)
{
	function *there = (function *)dlsym(library, "hooked_by_library");

	CHECK(there);
	for (sum = 0, calls = 0; calls < 12; calls++)
		sum += there(calls);
}

int main(int argc, char **argv)
{
	for (long i = 0; i < 30; i++)
		call(i);
	copies();
	CHECK(time(NULL) > 0);
	printf("func\thooked_chosen\t%ld\t0\t%ld\n", calls, sum);
	if (argc > 1) {
		void *library = dlopen(argv[1], RTLD_LAZY);

		CHECK(library);
		/* A child asks first, in memory of its own. */
		int child = fork();
		int status = 0;
		CHECK(child >= 0);
		if (child == 0) {
			ask(library);
			_exit(0);
		}
		CHECK(waitpid(child, &status, 0) == child && status == 0);
		ask(library);
		printf("func\thooked_by_library\t%ld\t0\t%ld\n", calls, sum);
	}
	return 0;
}
