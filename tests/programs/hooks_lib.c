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

/* Streams by a library's own calls. */
int stream_library(const char *path)
{
	FILE *f = fopen(path, "a");

	if (!f)
		return -1;
	int ret = fputs("by a library\n", f);
	return fclose(f) == 0 && ret >= 0 ? 0 : -1;
}
