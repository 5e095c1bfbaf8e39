/* How a test program says what it did: one line per call on stdout, which the cases hold against the
 * trace. */
#ifndef TESTS_PROGRAMS_SAY_H
#define TESTS_PROGRAMS_SAY_H

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition,         \
				strerror(errno));                                                  \
			exit(99);                                                                  \
		}                                                                                  \
	} while (0)

/* Prints bytes so that they fit on a line: everything unusual as %XX. NULL is `-`. With few calls: each one stops. */
__attribute__((unused)) static void say_bytes(const char *s)
{
	if (!s) {
		fputs("-", stdout);
		return;
	}
	char text[1024];
	size_t n = 0;
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;
		bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
			     (c >= 'a' && c <= 'z') || strchr("/._~", c);
		n += (size_t)snprintf(text + n, sizeof(text) - n, plain ? "%c" : "%%%02X", c);
		if (n > sizeof(text) - 4) {
			fputs(text, stdout);
			n = 0;
		}
	}
	text[n] = '\0';
	fputs(text, stdout);
}

/* `call`: the kernel's name, the trace's name, the directory that a relative path starts from (NULL: where
 * the program was started), the path (NULL: the call has none), what it returned. Keeps errno. */
__attribute__((unused)) static long say(const char *kernel, const char *name, const char *directory,
					const char *path, long ret)
{
	int error = ret == -1 ? errno : 0;

	printf("call\t%s\t%s\t", kernel, name);
	say_bytes(directory);
	putchar('\t');
	say_bytes(path);
	printf("\t%ld\t%d\n", ret, error);
	errno = error;
	return ret;
}

/* The same for a call whose return value the trace leaves out. */
__attribute__((unused)) static long say_no_ret(const char *kernel, const char *name,
					       const char *directory, const char *path, long ret)
{
	printf("call\t%s\t%s\t", kernel, name);
	say_bytes(directory);
	putchar('\t');
	say_bytes(path);
	printf("\t-\t0\n");
	return ret;
}

#endif
