/* What the tests of ELF objects share: programs built for them, in a directory of their own. */
#ifndef TEST_OBJECT_H
#define TEST_OBJECT_H

#include "symbols/object.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include <cmocka.h>

struct shop {
	char dir[64];
};

/* A program that says where a function of it lies and stays until its input ends; with names that
 * mean something else each. */
static const char shop_source[] =
	"#include <stdio.h>\n"
	"#include <stdlib.h>\n"
	"#include <string.h>\n"
	"__attribute__((noinline)) int visible(int a) { __asm__(\"\"); return a + 1; }\n"
	"int other_name(int a) __attribute__((alias(\"visible\")));\n"
	"static int third_name(int a) __attribute__((alias(\"visible\"), used));\n"
	"__attribute__((cold, noinline)) void rare(const char *s) { puts(s); exit(3); }\n"
	"__attribute__((noinline)) int with_cold(int a, const char *s) {\n"
	"	if (__builtin_expect(a < 0, 0)) { rare(s); puts(\"x\"); rare(s); }\n"
	"	return a * 3 + (int)strlen(s);\n"
	"}\n"
	"static int one(void) { return 1; }\n"
	"static int (*choose(void))(void) { return one; }\n"
	"#ifndef MUSL\n"
	"int chosen(void) __attribute__((ifunc(\"choose\")));\n"
	"#else\n"
	"int chosen(void) { return choose()(); }\n"
	"#endif\n"
	"__asm__(\".text\\n.globl bare_sized\\n.type bare_sized,@function\\nbare_sized: nop\\n "
	"nop\\n\"\n"
	"	\"ret\\n.size bare_sized, . - bare_sized\\n\"\n"
	"	\".globl bare\\n.type bare,@function\\nbare: nop\\n ret\\n\"\n"
	"	\".globl bare_next\\n.type bare_next,@function\\nbare_next: ret\\n\"\n"
	"	\".size bare_next, 1\\n\");\n"
	"int main(int argc, char **argv) {\n"
	"	printf(\"%p %d\\n\", (void *)visible, chosen() + with_cold(argc, argv[0]));\n"
	"	fflush(stdout);\n"
	"	return getchar() == 'x';\n"
	"}\n";

__attribute__((format(printf, 1, 2))) static inline int run(const char *format, ...)
{
	char command[1024];
	va_list args;

	va_start(args, format);
	assert_true(vsnprintf(command, sizeof(command), format, args) < (int)sizeof(command));
	va_end(args);
	return system(command); // NOLINT(cert-env33-c)
}

static inline void shop_open(struct shop *shop)
{
	strcpy(shop->dir, "/tmp/test-object-XXXXXX");
	assert_non_null(mkdtemp(shop->dir));
	char path[128];
	snprintf(path, sizeof(path), "%s/shop.c", shop->dir);
	FILE *f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fputs(shop_source, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static inline void shop_close(struct shop *shop)
{
	assert_int_equal(run("rm -r %s", shop->dir), 0);
}

/* The kinds of programs; the first word is the compiler, one that is not there is no failure. */
struct kind {
	const char *name;
	const char *command;
};

static const struct kind shop_kinds[] = {
	{"static", "gcc -O2 -static"},
	{"static-pie", "gcc -O2 -static-pie"},
	{"pie", "gcc -O2 -pie"},
	{"no-pie", "gcc -O2 -no-pie"},
	{"plain", "gcc -O2 -fno-asynchronous-unwind-tables -fno-unwind-tables"},
	{"one-segment", "gcc -O2 -Wl,-z,noseparate-code"},
	{"gold", "gcc -O2 -fuse-ld=gold"},
	{"lld", "clang -O2 -fuse-ld=lld"},
	{"clang", "clang -O2"},
	{"musl", "musl-gcc -O2 -static -DMUSL"},
	{"musl-dynamic", "musl-gcc -O2 -DMUSL"},
	{"so", "gcc -O2 -shared -fPIC"},
};

#define SHOP_KINDS (sizeof(shop_kinds) / sizeof(shop_kinds[0]))

/* Builds DIR/NAME. @return false: this machine cannot. */
static inline bool shop_build(struct shop *shop, const struct kind *kind)
{
	return run("cd %s && %s -w shop.c -o %s 2>/dev/null", shop->dir, kind->command,
		   kind->name) == 0;
}

#endif
