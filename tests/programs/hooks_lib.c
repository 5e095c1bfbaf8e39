/* A library that is loaded and unloaded: hooks_load. With OTHER its function begins and ends elsewhere. */
#include <stdio.h>

long hooked_library(long n);
int stream_library(const char *path);

#ifdef OTHER
long padding(long n);
long padding(long n)
{
	return n * 41 % 17;
}
#endif

__attribute__((noinline)) long hooked_library(long n)
{
#ifdef OTHER
	for (volatile long i = 0; i < 3; i++)
		n += i;
	return padding(n) + n;
#else
	__asm__ volatile("" : "+r"(n));
	return n + 1;
#endif
}

/* Chosen by the first call or by dlsym, long after the library was mapped. */
static long by_library(long n)
{
	__asm__ volatile("" : "+r"(n));
	return n * 3;
}

__attribute__((used)) static long (*choose(void))(long)
{
	return by_library;
}

long hooked_by_library(long n) __attribute__((ifunc("choose")));

/* Streams by a library's own calls. */
int stream_library(const char *path)
{
	FILE *f = fopen(path, "a");

	if (!f)
		return -1;
	int ret = fputs("by a library\n", f);
	return fclose(f) == 0 && ret >= 0 ? 0 : -1;
}
