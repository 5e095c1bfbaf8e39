/* Makes memory executable, time and again, as programs do that write code; then maps a library's code as data into
 * the middle of it and makes that executable, too, moves it elsewhere, and makes it executable once more by another
 * call.
 * usage: hooks_jit TIMES LIBRARY; prints `func` as hooks_ends does, for -x hooked_library. */
#include "say.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/syscall.h>

#define PAGE  4096UL
#define PAGES 64UL

typedef long function(long);

static void write_code(unsigned char *page, long n)
{
	/* lea N(%rdi),%rax; ret */
	unsigned char code[] = {0x48, 0x8d, 0x47, (unsigned char)n, 0xc3};
	function *written = (function *)(void *)page;

	CHECK(mprotect(page, PAGE, PROT_READ | PROT_WRITE) == 0);
	memcpy(page, code, sizeof(code));
	CHECK(mprotect(page, PAGE, PROT_READ | PROT_EXEC) == 0);
	CHECK(written(1000) == 1000 + n);
}

/* The page of the library's file that has the function, mapped over a page of code. */
static function *map_again(const char *path, function *loaded, unsigned char *page)
{
	Dl_info info;
	int fd = open(path, O_RDONLY);

	CHECK(fd >= 0 && dladdr((void *)loaded, &info));
	uintptr_t offset = (uintptr_t)loaded - (uintptr_t)info.dli_fbase;
	CHECK(mmap(page, PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd,
		   (off_t)(offset & ~(PAGE - 1))) == page);
	close(fd);
	CHECK(mprotect(page, PAGE, PROT_READ | PROT_EXEC) == 0);
	return (function *)(void *)(page + offset % PAGE);
}

/* The page of the function, moved to another place. */
static function *move(function *from, unsigned char *to)
{
	uintptr_t offset = (uintptr_t)from % PAGE;

	CHECK(mremap((void *)((uintptr_t)from - offset), PAGE, PAGE, MREMAP_FIXED | MREMAP_MAYMOVE,
		     to) == to);
	return (function *)(void *)(to + offset);
}

int main(int argc, char **argv)
{
	long times = argc == 3 ? atol(argv[1]) : 0;
	long sum = 0;

	CHECK(times > 0);
	unsigned char *pages = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(pages != MAP_FAILED);
	for (long i = 0; i < times; i++)
		write_code(pages + (unsigned long)i % PAGES * PAGE, i % 100);
	void *library = dlopen(argv[2], RTLD_NOW);
	CHECK(library);
	function *loaded = (function *)dlsym(library, "hooked_library");
	CHECK(loaded);
	write_code(pages, 5);
	function *again = map_again(argv[2], loaded, pages + PAGES / 2 * PAGE);
	for (long i = 0; i < 20; i++)
		sum += loaded(i) + again(i);
	again = move(again, pages + PAGES / 4 * PAGE);
	for (long i = 0; i < 20; i++)
		sum += loaded(i) + again(i);
	CHECK(syscall(SYS_pkey_mprotect, (uintptr_t)again & ~(PAGE - 1), PAGE, PROT_READ, -1) == 0);
	CHECK(syscall(SYS_pkey_mprotect, (uintptr_t)again & ~(PAGE - 1), PAGE,
		      PROT_READ | PROT_EXEC, -1) == 0);
	for (long i = 0; i < 20; i++)
		sum += loaded(i) + again(i);
	/* To where it may not go. */
	CHECK(mremap((void *)((uintptr_t)again & ~(PAGE - 1)), PAGE, PAGE,
		     MREMAP_FIXED | MREMAP_MAYMOVE, (void *)1) == MAP_FAILED);
	for (long i = 0; i < 20; i++)
		sum += loaded(i) + again(i);
	printf("func\thooked_library\t160\t0\t%ld\n", sum);
	return 0;
}
