/* How a program that is about streams says what it did without using any: lines are kept in memory and
 * written to the file `said` with one system call. */
#ifndef TESTS_PROGRAMS_STDIO_TELL_H
#define TESTS_PROGRAMS_STDIO_TELL_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NO_RET LONG_MIN

static char tell_text[1 << 20];
static size_t tell_length;

__attribute__((unused, format(printf, 1, 2))) static void tell_line(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	int n = vsnprintf(tell_text + tell_length, sizeof(tell_text) - tell_length, format, list);
	va_end(list);
	if (n > 0 && (size_t)n < sizeof(tell_text) - tell_length)
		tell_length += (size_t)n;
}

/* `stdio <TAB> symbol <TAB> path <TAB> ret <TAB> bytes moved {<TAB> key=value}`; `more` is the latter. */
__attribute__((unused)) static void tell(const char *symbol, const char *path, long ret, long moved,
					 const char *more)
{
	char value[32] = "-";

	if (ret != NO_RET)
		snprintf(value, sizeof(value), "%ld", ret);
	tell_line("stdio\t%s\t%s\t%s\t%ld%s%s\n", symbol, path ? path : "-", value, moved,
		  more ? "\t" : "", more ? more : "");
}

/* Writes what was told so far to the file. */
__attribute__((unused)) static void tell_out(void)
{
	int fd = open("said", O_WRONLY | O_CREAT | O_APPEND, 0644);

	if (fd < 0 || write(fd, tell_text, tell_length) != (ssize_t)tell_length || close(fd) != 0)
		_exit(98);
	tell_length = 0;
}

/* A failure, without streams. */
#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			tell_line("failed\t%s:%d: %s: errno %d\n", __FILE__, __LINE__, #condition, \
				  errno);                                                          \
			tell_out();                                                                \
			_exit(97);                                                                 \
		}                                                                                  \
	} while (0)

#endif
