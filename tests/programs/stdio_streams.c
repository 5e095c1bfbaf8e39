/* Where streams come from and how they end. usage: stdio_streams CASE [N [M]]; tells as stdio_calls does, and
 * in lines `moved <TAB> path <TAB> bytes written by stream functions <TAB> bytes read by them`. */
#ifndef __NO_INLINE__
#define __NO_INLINE__ 1
#endif
#undef _FORTIFY_SOURCE

#include "stdio_tell.h"

#include <pthread.h>
#include <stdint.h>

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

static FILE *(*volatile open_it)(const char *, const char *) = fopen;
static const char *volatile text = "some text";

static void put(FILE *f, const char *path)
{
	int ret = fputs(text, f);

	tell("fputs", path, ret, (long)strlen(text), NULL);
}

static void end(FILE *f, const char *path)
{
	tell("fclose", path, fclose(f), 0, NULL);
}

static FILE *begin(const char *path, const char *mode)
{
	FILE *f = open_it(path, mode);
	char more[64];

	MUST(f);
	snprintf(more, sizeof(more), "mode=%s", mode);
	tell("fopen", path, NO_RET, 0, more);
	return f;
}

/* Another file under the same stream. */
static void case_again(void)
{
	FILE *f = begin("a", "w");
	int other;

	put(f, "a");
	MUST((f = freopen("b", "w", f)));
	tell("freopen", "b", NO_RET, 0, "mode=w");
	put(f, "b");
	tell("fflush", "b", fflush(f), 0, NULL);
	/* What shells do: the descriptor becomes another file's. */
	other = open("c", O_WRONLY | O_CREAT, 0644);
	MUST(other >= 0 && dup2(other, fileno(f)) == fileno(f) && close(other) == 0);
	put(f, "c");
	end(f, "c");
	MUST(!freopen("none/none", "r", begin("a", "r")));
	tell("freopen", "none/none", -1, 0, "mode=r");
	/* Relative to where the program is then. */
	MUST(mkdir("d", 0755) == 0 && chdir("d") == 0);
	f = open_it("e", "w");
	MUST(f && chdir("..") == 0);
	tell("fopen", "d/e", NO_RET, 0, "mode=w");
	put(f, "d/e");
	end(f, "d/e");
}

/* Streams without a file of a name: none of this is an event, and what is inside is as it is. */
static void case_nameless(void)
{
	char memory[64], line[64], *grown = NULL;
	size_t size = 0;
	int ends[2];
	FILE *f, *g;

	MUST((f = fmemopen(memory, sizeof(memory), "w")) && fputs(text, f) >= 0 && fclose(f) == 0);
	MUST((f = open_memstream(&grown, &size)) && fprintf(f, "%d", 5) == 1 && fclose(f) == 0);
	free(grown);
	MUST(snprintf(line, sizeof(line), "%d %s", 5, text) > 0 && sscanf("5", "%zu", &size) == 1);
	MUST(pipe(ends) == 0 && (f = fdopen(ends[1], "w")) && (g = fdopen(ends[0], "r")));
	MUST(fputs("through\n", f) >= 0 && fclose(f) == 0 && fgets(line, sizeof(line), g));
	MUST(fclose(g) == 0);
	MUST((f = popen("echo from a child", "r")) && fgets(line, sizeof(line), f));
	MUST(strcmp(line, "from a child\n") == 0 && pclose(f) == 0);
	MUST((f = popen("cat >to", "w")) && fputs(text, f) >= 0 && pclose(f) == 0);
}

/* The name is the kernel's affair; what matters is that all of it is about one file. */
static void case_tmpfile(void)
{
	FILE *f = tmpfile();
	char line[64];

	MUST(f && fputs(text, f) >= 0);
	rewind(f);
	MUST(fgets(line, sizeof(line), f) && fclose(f) == 0);
}

static void at_end(void)
{
	FILE *f = open_it("late", "w");

	MUST(f);
	tell("fopen", "late", NO_RET, 0, "mode=w");
	put(f, "late");
	tell_out();
}

/* What is still in buffers at the end: by returning, by exit within calls, by what atexit runs, or never. */
static void case_exit(const char *how)
{
	static char block[9000];
	FILE *f = begin("a", "w"), *g = begin("b", "w");

	put(f, "a");
	put(f, "a");
	memset(block, 'y', sizeof(block));
	size_t n = fwrite(block, 1, sizeof(block), g);
	tell("fwrite", "b", (long)n, 9000, "size=1\tcount=9000");
	put(stdout, "out");
	if (strcmp(how, "atexit") == 0)
		MUST(atexit(at_end) == 0);
	tell_out();
	if (strcmp(how, "exit") == 0)
		exit(7);
	if (strcmp(how, "_exit") == 0)
		_exit(7);
	if (strcmp(how, "quick") == 0)
		quick_exit(7);
	if (strcmp(how, "abort") == 0)
		abort();
	if (strcmp(how, "flush") == 0) {
		/* No stream, and so all of them. */
		MUST(fflush(NULL) == 0);
		_exit(7);
	}
	if (strcmp(how, "close") == 0) {
#ifdef __GLIBC__
		MUST(fcloseall() == 0);
#else
		MUST(fclose(f) == 0 && fclose(g) == 0);
#endif
		_exit(7);
	}
}

/* Children have what is in their parent's buffers, and write it again. */
static void case_fork(int count)
{
	FILE *f = begin("a", "a");

	put(f, "a");
	tell_out();
	for (int i = 0; i < count; i++) {
		pid_t child = fork();
		int status;

		MUST(child >= 0);
		if (child == 0) {
			put(f, "a");
			tell_out();
			exit(0);
		}
		MUST(waitpid(child, &status, 0) == child && status == 0);
	}
	end(f, "a");
}

struct worker {
	pthread_t thread;
	int number;
	int calls;
	long written;
	long read;
	FILE *shared;
	long to_shared;
};

static void *work(void *data)
{
	struct worker *w = data;
	char name[32], piece[400] = {0};
	FILE *f;

	snprintf(name, sizeof(name), "file%d", w->number);
	f = open_it(name, "w+");
	MUST(f);
	for (int i = 0; i < w->calls; i++) {
		size_t want = (size_t)(1 + (w->number * 7 + i) % 300);

		w->written += (long)fwrite(piece, 1, want, f);
		w->to_shared += (long)fwrite(piece, 1, want, w->shared);
	}
	rewind(f);
	for (size_t n; (n = fread(piece, 1, sizeof(piece), f)) > 0;)
		w->read += (long)n;
	MUST(fclose(f) == 0);
	return NULL;
}

static void case_threads(int count, int calls)
{
	struct worker *workers = calloc((size_t)count, sizeof(*workers));
	FILE *shared = open_it("shared", "w");
	long all = 0;

	MUST(workers && shared);
	for (int i = 0; i < count; i++) {
		workers[i] = (struct worker){.number = i, .calls = calls, .shared = shared};
		MUST(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0);
	}
	for (int i = 0; i < count; i++) {
		MUST(pthread_join(workers[i].thread, NULL) == 0);
		all += workers[i].to_shared;
		tell_line("moved\tfile%d\t%ld\t%ld\n", i, workers[i].written, workers[i].read);
	}
	MUST(fclose(shared) == 0);
	tell_line("moved\tshared\t%ld\t0\n", all);
	free(workers);
}

/* Names that JSON and hashes must stand. */
static void case_names(void)
{
	static const char *const names[] = {"a b", "\"q\"",     "back\\slash",
					    "ä",   "new\nline", "tab\there"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		FILE *f = open_it(names[i], "w");

		MUST(f && fputs(text, f) >= 0 && fclose(f) == 0);
		MUST((f = open_it(names[i], "r,ccs=")) || (f = open_it(names[i], "re")));
		MUST(fclose(f) == 0);
	}
}

static ssize_t cookie_write(void *inner, const char *bytes, size_t size)
{
	return fwrite(bytes, 1, size, inner) == size ? (ssize_t)size : -1;
}

/* A stream that is no file, and writes to one that is. */
static void case_cookie(void)
{
	FILE *inner = open_it("inner", "w");
	FILE *outer =
		inner ? fopencookie(inner, "w", (cookie_io_functions_t){.write = cookie_write})
		      : NULL;
	long bytes = 0;

	MUST(outer);
	for (int i = 0; i < 1000; i++) {
		MUST(fputs(text, outer) >= 0);
		bytes += (long)strlen(text);
	}
	MUST(fclose(outer) == 0 && fclose(inner) == 0);
	tell_line("moved\tinner\t%ld\t0\n", bytes);
}

/* Nothing can be written; the calls say so when they find out. */
static void case_full(void)
{
	FILE *f = begin("/dev/full", "w");

	put(f, "/dev/full");
	tell("fflush", "/dev/full", fflush(f), 0, NULL);
	put(f, "/dev/full");
	tell("fclose", "/dev/full", fclose(f), 0, NULL);
}

/* Arguments at the end of what is mapped, and ones that are not mapped. */
static void case_edges(void)
{
	long page = sysconf(_SC_PAGESIZE);
	char *area = mmap(NULL, 3 * (size_t)page, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *last;
	FILE *f;

	MUST(area != MAP_FAILED && munmap(area + 2 * page, (size_t)page) == 0);
	last = strcpy(area + 2 * page - 2, "f");
	f = begin(last, "w");
	memset(area, 'l', 2 * (size_t)page - 1);
	area[2 * page - 1] = 0;
	int ret = fputs(area, f);
	tell("fputs", "f", ret, 2 * page - 1, NULL);
	end(f, "f");
	f = begin("f", "r");
	MUST(fgets(area + page, (int)page, f));
	tell("fgets", "f", NO_RET, page - 1, "num=4096");
	/* No name: the kernel says EFAULT. */
	FILE *none = open_it((char *)(intptr_t)16, "r");
	MUST(!none);
	tell("fopen", NULL, -1, 0, "mode=r");
	none = open_it("", "r");
	MUST(!none);
	tell("fopen", NULL, -1, 0, "mode=r");
	end(f, "f");
	MUST(munmap(area, 2 * (size_t)page) == 0);
}

int main(int argc, char **argv)
{
	const char *which = argc > 1 ? argv[1] : "";
	int n = argc > 2 ? atoi(argv[2]) : 0, m = argc > 3 ? atoi(argv[3]) : 0;

	if (strcmp(which, "again") == 0)
		case_again();
	else if (strcmp(which, "nameless") == 0)
		case_nameless();
	else if (strcmp(which, "tmpfile") == 0)
		case_tmpfile();
	else if (strcmp(which, "exit") == 0)
		case_exit(argc > 2 ? argv[2] : "");
	else if (strcmp(which, "fork") == 0)
		case_fork(n);
	else if (strcmp(which, "threads") == 0)
		case_threads(n, m);
	else if (strcmp(which, "names") == 0)
		case_names();
	else if (strcmp(which, "cookie") == 0)
		case_cookie();
	else if (strcmp(which, "full") == 0)
		case_full();
	else if (strcmp(which, "edges") == 0)
		case_edges();
	else
		return 2;
	if (strcmp(which, "exit") != 0)
		tell_out();
	return 0;
}
