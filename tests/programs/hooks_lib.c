/* A library that is loaded and unloaded: hooks_load. With OTHER its function begins and ends elsewhere. */
#include <stdio.h>

long hooked_library(long n);
int stream_library(const char *path);
long call_back(long (*function)(long), long n);
long raw_pread(int fd, char *byte);

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

/* Code that may be mapped anywhere. */
__attribute__((noinline)) long call_back(long (*function)(long), long n)
{
	return function(n) + 1;
}

__attribute__((noinline)) long raw_pread(int fd, char *byte)
{
	register long offset __asm__("r10") = 0;
	long ret;

	__asm__ volatile("mov $17,%%eax\nsyscall"
			 : "=a"(ret)
			 : "D"((long)fd), "S"(byte), "d"(1L), "r"(offset)
			 : "rcx", "r11", "memory");
	return ret;
}
