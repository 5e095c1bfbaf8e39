/* Code that is mapped shared and writable: what is written there is written to the file. The page of a library's
 * functions, called there: one to be hooked, one that calls a hooked function back, one that makes system calls.
 * usage: hooks_shared TIMES LIBRARY FILE; LIBRARY is copied to FILE. To be hooked by -x 'hooked_*'.
 * Prints `func` as hooks_ends does (of the function that is called back), and `pread <TAB> calls`. */
#include "say.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

#include <sys/mman.h>

#define PAGE 4096UL

long hooked_own(long n);

__attribute__((noinline)) long hooked_own(long n)
{
	__asm__ volatile("" : "+r"(n));
	return n + 2;
}

static void copy(const char *from, const char *to)
{
	char bytes[65536];
	int in = open(from, O_RDONLY);
	int out = open(to, O_RDWR | O_CREAT | O_TRUNC, 0755);
	ssize_t n;

	CHECK(in >= 0 && out >= 0);
	while ((n = read(in, bytes, sizeof(bytes))) > 0)
		CHECK(write(out, bytes, (size_t)n) == n);
	CHECK(n == 0 && close(in) == 0 && close(out) == 0);
}

/* Where a function of a library stands in its file. */
static uintptr_t offset_of(const char *library, const char *name)
{
	Dl_info info;
	void *loaded = dlopen(library, RTLD_NOW);
	CHECK(loaded);
	void *function = dlsym(loaded, name);
	CHECK(function && dladdr(function, &info));
	return (uintptr_t)function - (uintptr_t)info.dli_fbase;
}

int main(int argc, char **argv)
{
	long (*shared)(long);
	long (*calls_back)(long (*)(long), long);
	long (*reads)(int, char *);
	char byte;
	long sum = 0;
	long times = argc == 4 ? atol(argv[1]) : 0;

	CHECK(times > 0);
	copy(argv[2], argv[3]);
	int fd = open(argv[3], O_RDWR);
	unsigned char *code =
		mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED, fd, 0);
	CHECK(code != MAP_FAILED);
	*(void **)&shared = code + offset_of(argv[2], "hooked_library");
	*(void **)&calls_back = code + offset_of(argv[2], "call_back");
	*(void **)&reads = code + offset_of(argv[2], "raw_pread");
	for (long i = 0; i < times; i++) {
		CHECK(shared(i) == i + 1);
		sum += calls_back(hooked_own, i);
		CHECK(reads(fd, &byte) == 1);
	}
	printf("func\thooked_own\t%ld\t0\t%ld\n", times, sum - times);
	printf("pread\t%ld\n", times);
	return 0;
}
