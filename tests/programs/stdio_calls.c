/* Calls every function of the C library's streams and tells what it should look like in a trace. Standard
 * streams are expected to be the regular files `in`, `out` and `err`. usage: stdio_calls */

/* The headers would make other calls of some of these. */
#ifndef __NO_INLINE__
#define __NO_INLINE__ 1
#endif
#undef _FORTIFY_SOURCE

#include "stdio_tell.h"

#include <wchar.h>

#define A "a.dat"

/* What the compiler knows of a call's meaning it uses to make another call. */
static FILE *(*volatile open_it)(const char *, const char *) = fopen;
static const char *volatile text = "some text";
static const char *volatile line_of_text = "last words\n";
static volatile size_t zero;

static void tell_mode(const char *symbol, const char *path, const char *mode, FILE *f)
{
	char more[64];

	snprintf(more, sizeof(more), "mode=%s", mode);
	tell(symbol, path, f ? NO_RET : -1, 0, more);
}

static void tell_pair(const char *symbol, long ret, long moved, const char *one, long a,
		      const char *two, long b)
{
	char more[96];

	snprintf(more, sizeof(more), "%s=%ld\t%s=%ld", one, a, two, b);
	tell(symbol, A, ret, moved, more);
}

static void blocks(FILE *f)
{
	static char block[5000];
	size_t n;

	memset(block, 'x', sizeof(block));
	n = fwrite(block, 1, 100, f);
	tell_pair("fwrite", (long)n, 100, "size", 1, "count", 100);
	n = fwrite(block, 50, 100, f);
	tell_pair("fwrite", (long)n, 5000, "size", 50, "count", 100);
	n = fwrite_unlocked(block, 10, 3, f);
	tell_pair("fwrite_unlocked", (long)n, 30, "size", 10, "count", 3);
	n = fwrite(block, zero, 3, f);
	tell_pair("fwrite", (long)n, 0, "size", 0, "count", 3);
	tell("fflush", A, fflush(f), 0, NULL);
	tell("fflush_unlocked", A, fflush_unlocked(f), 0, NULL);
	tell("ftell", A, ftell(f), 0, NULL);
	tell("ftello", A, ftello(f), 0, NULL);
	tell_pair("fseek", fseek(f, 10, SEEK_SET), 0, "offset", 10, "whence", SEEK_SET);
	tell_pair("fseeko", fseeko(f, -5, SEEK_CUR), 0, "offset", -5, "whence", SEEK_CUR);
	tell_pair("fseek", fseek(f, -1, SEEK_SET), 0, "offset", -1, "whence", SEEK_SET);
	n = fread(block, 1, 20, f);
	tell_pair("fread", (long)n, 20, "size", 1, "count", 20);
	n = fread_unlocked(block, 7, 3, f);
	tell_pair("fread_unlocked", (long)n, 21, "size", 7, "count", 3);
	rewind(f);
	tell("rewind", A, NO_RET, 0, NULL);
	n = fread(block, 1000, 5, f);
	tell_pair("fread", (long)n, 5000, "size", 1000, "count", 5);
	n = fread(block, 1000, 5, f);
	tell_pair("fread", (long)n, (long)n * 1000, "size", 1000, "count", 5);
	tell("fgetc", A, fgetc(f), 0, NULL);

	fpos_t at;

	tell("fgetpos", A, fgetpos(f, &at), 0, NULL);
	tell("fsetpos", A, fsetpos(f, &at), 0, NULL);
#ifdef __GLIBC__
	size_t __fread_chk(void *, size_t, size_t, size_t, FILE *);
	size_t __fread_unlocked_chk(void *, size_t, size_t, size_t, FILE *);

	rewind(f);
	tell("rewind", A, NO_RET, 0, NULL);
	n = __fread_chk(block, sizeof(block), 3, 4, f);
	tell_pair("__fread_chk", (long)n, 12, "size", 3, "count", 4);
	n = __fread_unlocked_chk(block, sizeof(block), 3, 5, f);
	tell_pair("__fread_unlocked_chk", (long)n, 15, "size", 3, "count", 5);
#endif
}

static void characters(FILE *f)
{
	rewind(f);
	tell("rewind", A, NO_RET, 0, NULL);
	tell("fputc", A, fputc('a', f), 1, NULL);
	tell("putc", A, putc('b', f), 1, NULL);
	tell("fputc_unlocked", A, fputc_unlocked('c', f), 1, NULL);
	tell("putc_unlocked", A, putc_unlocked(0xe9, f), 1, NULL);
	tell("putw", A, putw(77, f), 0, NULL);
	rewind(f);
	tell("rewind", A, NO_RET, 0, NULL);
	tell("fgetc", A, fgetc(f), 1, NULL);
	tell("getc", A, getc(f), 1, NULL);
	tell("fgetc_unlocked", A, fgetc_unlocked(f), 1, NULL);
	tell("getc_unlocked", A, getc_unlocked(f), 1, NULL);
	tell("getw", A, getw(f), 0, NULL);
	tell("ungetc", A, ungetc('z', f), 0, NULL);
	tell("fgetc", A, fgetc(f), 1, NULL);
}

static void lines(FILE *f)
{
	char buffer[64], *line = NULL;
	size_t size = 0;
	int ret;

	rewind(f);
	tell("rewind", A, NO_RET, 0, NULL);
	ret = fputs(text, f);
	tell("fputs", A, ret, (long)strlen(text), NULL);
	ret = fputs_unlocked("\nsecond line\nthird;fourth\n", f);
	tell("fputs_unlocked", A, ret, 26, NULL);
	rewind(f);
	tell("rewind", A, NO_RET, 0, NULL);
	MUST(fgets(buffer, sizeof(buffer), f) == buffer);
	tell("fgets", A, NO_RET, (long)strlen(buffer), "num=64");
	MUST(fgets_unlocked(buffer, 7, f) == buffer);
	tell("fgets_unlocked", A, NO_RET, 6, "num=7");
#ifdef __GLIBC__
	char *__fgets_chk(char *, size_t, int, FILE *);

	MUST(__fgets_chk(buffer, sizeof(buffer), 3, f) == buffer);
	tell("__fgets_chk", A, NO_RET, 2, "num=3");
#endif
	ret = (int)getline(&line, &size, f);
	tell("getline", A, ret, ret, NULL);
	ret = (int)getdelim(&line, &size, ';', f);
	tell("getdelim", A, ret, ret, "delim=59");
	free(line);
}

__attribute__((format(printf, 2, 3))) static int list_print(FILE *f, const char *format, ...)
{
	va_list list;
	int ret;

	va_start(list, format);
	ret = f == stdout ? vprintf(format, list) : vfprintf(f, format, list);
	va_end(list);
	return ret;
}

__attribute__((format(scanf, 2, 3))) static int list_scan(FILE *f, const char *format, ...)
{
	va_list list;
	int ret;

	va_start(list, format);
	ret = f == stdin ? vscanf(format, list) : vfscanf(f, format, list);
	va_end(list);
	return ret;
}

static void formats(FILE *f)
{
	int a = 0, b = 0, ret;

	rewind(f);
	tell("rewind", A, NO_RET, 0, NULL);
	ret = fprintf(f, "%d %d\n", 12345, getpid() > 0);
	tell("fprintf", A, ret, ret, NULL);
	ret = list_print(f, "%.3f %s %d\n", 1.25, text, 7);
	tell("vfprintf", A, ret, ret, NULL);
#ifdef __GLIBC__
	int __fprintf_chk(FILE *, int, const char *, ...);

	ret = __fprintf_chk(f, 1, "%s\n", text);
	tell("__fprintf_chk", A, ret, ret, NULL);
#endif
	rewind(f);
	tell("rewind", A, NO_RET, 0, NULL);
	ret = fscanf(f, "%d %d", &a, &b);
	MUST(a == 12345 && b == 1);
	tell("fscanf", A, ret, 0, NULL);
	ret = list_scan(f, "%d", &a);
	tell("vfscanf", A, ret, 0, NULL);
}

static void buffers(void)
{
	static char buffer[4096];
	FILE *f;

	f = open_it(A, "r");
	tell_mode("fopen", A, "r", f);
	tell_pair("setvbuf", setvbuf(f, NULL, _IOFBF, 4096), 0, "mode", _IOFBF, "size", 4096);
	tell("fclose", A, fclose(f), 0, NULL);
	f = open_it(A, "r");
	tell_mode("fopen", A, "r", f);
	setbuf(f, NULL);
	tell("setbuf", A, NO_RET, 0, NULL);
	tell("fgetc", A, fgetc(f), 1, NULL);
	tell("fclose", A, fclose(f), 0, NULL);
	f = open_it(A, "r");
	tell_mode("fopen", A, "r", f);
	setbuffer(f, buffer, sizeof(buffer));
	tell("setbuffer", A, NO_RET, 0, "size=4096");
	setlinebuf(f);
	tell("setlinebuf", A, NO_RET, 0, NULL);
	tell("fclose", A, fclose(f), 0, NULL);
}

static void wide(void)
{
	FILE *f = open_it("w.dat", "w+");
	wchar_t line[32];
	int ret;

	tell_mode("fopen", "w.dat", "w+", f);
	ret = fputws(L"wide\n", f);
	tell("fputws", "w.dat", ret, 0, NULL);
	ret = fwprintf(f, L"%d\n", 17);
	tell("fwprintf", "w.dat", ret, 0, NULL);
	rewind(f);
	tell("rewind", "w.dat", NO_RET, 0, NULL);
	MUST(fgetws(line, 32, f) == line);
	tell("fgetws", "w.dat", NO_RET, 0, "num=32");
	tell("fclose", "w.dat", fclose(f), 0, NULL);
}

static void standard(void)
{
	int a = 0, ret;

	ret = puts(text);
	tell("puts", "out", ret, (long)strlen(text) + 1, NULL);
	tell("putchar", "out", putchar('c'), 1, NULL);
	tell("putchar_unlocked", "out", putchar_unlocked('d'), 1, NULL);
	ret = printf("%d %s\n", 5, text);
	tell("printf", "out", ret, ret, NULL);
	ret = list_print(stdout, "%d %s\n", 6, text);
	tell("vprintf", "out", ret, ret, NULL);
	tell("fflush", "out", fflush(stdout), 0, NULL);
	tell("getchar", "in", getchar(), 1, NULL);
	tell("getchar_unlocked", "in", getchar_unlocked(), 1, NULL);
	ret = scanf("%d", &a);
	tell("scanf", "in", ret, 0, NULL);
	ret = list_scan(stdin, "%d", &a);
	tell("vscanf", "in", ret, 0, NULL);
	errno = ENOENT;
	perror("stdio_calls");
	tell("perror", "err", NO_RET, 0, NULL);
	ret = fputs(line_of_text, stderr);
	tell("fputs", "err", ret, (long)strlen(line_of_text), NULL);
}

int main(void)
{
	FILE *f = open_it("none/none", "r");
	int fd;

	tell_mode("fopen", "none/none", "r", f);
	f = open_it(A, "w+");
	tell_mode("fopen", A, "w+", f);
	blocks(f);
	characters(f);
	lines(f);
	formats(f);
	f = freopen("b.dat", "w", f);
	tell_mode("freopen", "b.dat", "w", f);
	long ret = fputs(text, f);
	tell("fputs", "b.dat", ret, (long)strlen(text), NULL);
	tell("fclose", "b.dat", fclose(f), 0, NULL);
	buffers();
	wide();
	fd = open("c.dat", O_RDWR | O_CREAT, 0644);
	f = fdopen(fd, "w");
	char more[32];
	snprintf(more, sizeof(more), "fd=%d\tmode=w", fd);
	tell("fdopen", "c.dat", NO_RET, 0, more);
	ret = fputs(text, f);
	tell("fputs", "c.dat", ret, (long)strlen(text), NULL);
	tell("fclose", "c.dat", fclose(f), 0, NULL);
	standard();
	tell_out();
	return 0;
}
