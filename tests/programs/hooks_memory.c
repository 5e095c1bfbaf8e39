/* Hooked code of which the memory becomes another's, or other memory becomes the code's.
 * usage: hooks_memory split|moved|copied|reopened|replaced LIBRARY OTHER; to be hooked by -x 'hooked_*'.
 * Prints `func` as hooks_ends does. */
#include "say.h"

#include <dlfcn.h>
#include <stdint.h>
#include <unistd.h>

#include <sys/mman.h>

#define PAGE  4096UL
#define TIMES 20L

/* Two pages of code: a function, and nothing. */
__asm__(".section .pages,\"ax\",@progbits\n.balign 4096\n.globl hooked_own\n"
	".type hooked_own,@function\nhooked_own:\n.cfi_startproc\n"
	"mov %rdi,%rax\nadd $2,%rax\nimul $3,%rax,%rax\nret\n"
	".cfi_endproc\n.size hooked_own,.-hooked_own\n"
	".balign 4096\n.globl nothing\nnothing:\n.zero 4096\n.text\n");
long hooked_own(long n);
extern char nothing[];

struct told {
	long calls;
	long sum;
};

static struct told own, library;

static void call_own(void)
{
	for (long i = 0; i < TIMES; i++, own.calls++) {
		long ret = hooked_own(i);
		CHECK(ret == (i + 2) * 3);
		own.sum += ret;
	}
}

static void *load(const char *path, long (**function)(long))
{
	void *handle = dlopen(path, RTLD_NOW);

	CHECK(handle);
	*(void **)function = dlsym(handle, "hooked_library");
	CHECK(*function);
	return handle;
}

/* A library of which hooked_library(n) is n + 1, and one of which it is something else. */
static void call_library(long (*function)(long), bool other)
{
	for (long i = 0; i < TIMES; i++, library.calls++) {
		long ret = function(i);
		CHECK((ret == i + 1) != other);
		library.sum += ret;
	}
}

/* A page of the code is made data, and then code comes: what is known of the rest goes on. */
static void split(char **argv)
{
	long (*function)(long);

	call_own();
	CHECK(mprotect(nothing, PAGE, PROT_READ) == 0);
	load(argv[3], &function);
	call_own();
	call_library(function, true);
	call_own();
}

/* As programs do that want their code on huge pages: a copy takes its place. */
static void moved(char **argv)
{
	void *page = (void *)((uintptr_t)hooked_own & ~(PAGE - 1));
	long (*function)(long);

	call_own();
	char *copy = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(copy != MAP_FAILED);
	memcpy(copy, page, PAGE);
	CHECK(mprotect(copy, PAGE, PROT_READ | PROT_EXEC) == 0);
	CHECK(mremap(copy, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, page) == page);
	call_own();
	load(argv[2], &function);
	call_own();
	call_library(function, false);
}

/* … or is written over it. */
static void copied(char **argv)
{
	void *page = (void *)((uintptr_t)hooked_own & ~(PAGE - 1));
	long (*function)(long);
	char copy[PAGE];

	call_own();
	memcpy(copy, page, PAGE);
	CHECK(mmap(page, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		   0) == page);
	load(argv[2], &function);
	memcpy(page, copy, PAGE);
	CHECK(mprotect(page, PAGE, PROT_READ | PROT_EXEC) == 0);
	call_own();
	call_library(function, false);
}

static void reopened(char **argv)
{
	long (*function)(long);
	uintptr_t first = 0;

	for (int i = 0; i < 5; i++) {
		void *handle = load(argv[2], &function);
		/* Where it was, or this shows nothing. */
		CHECK(!first || first == (uintptr_t)function);
		first = (uintptr_t)function;
		call_library(function, false);
		CHECK(dlclose(handle) == 0);
	}
}

/* Data lies where a library was: nothing is written there when it moves. */
static void replaced(char **argv)
{
	long (*function)(long);
	void *handle = load(argv[2], &function);

	call_library(function, false);
	CHECK(dlclose(handle) == 0);
	char *page = (char *)((uintptr_t)function & ~(PAGE - 1));
	CHECK(mmap(page, PAGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == page);
	memset(page, 0x11, PAGE);
	char *to = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(to != MAP_FAILED);
	CHECK(mremap(page, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
	for (unsigned long i = 0; i < PAGE; i++)
		CHECK(to[i] == 0x11);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(char **argv);
	} all[] = {{"split", split},
		   {"moved", moved},
		   {"copied", copied},
		   {"reopened", reopened},
		   {"replaced", replaced}};

	CHECK(argc == 4);
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		if (strcmp(argv[1], all[i].name) == 0)
			all[i].run(argv);
	}
	if (own.calls)
		printf("func\thooked_own\t%ld\t0\t%ld\n", own.calls, own.sum);
	if (library.calls)
		printf("func\thooked_library\t%ld\t0\t%ld\n", library.calls, library.sum);
	return 0;
}
