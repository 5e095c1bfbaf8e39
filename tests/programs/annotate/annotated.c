/* Annotations in C, in all their ways. Each case prints the events that come of it, a JSON object a line, in the order
 * in which they end; and `custom KEY VALUE` and `app …` for the rest. usage: annotated CASE [fini]: with INIT and FINI
 * around the case, and some events more, without which DFTracer's library writes nothing. */
#include <dftracer/dftracer.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/wait.h>

#define SAY(name, in, args)     say(name, "C_APP", in, args)
#define SAY_CUT(name, in, args) SAY(name, in, args "\"cut\":1")

/* `args`: the inside of an object. In one write, since children do the same. */
static void say(const char *name, const char *cat, const char *in, const char *args)
{
	char line[512];
	int len = snprintf(line, sizeof(line),
			   "{\"name\":\"%s\",\"cat\":\"%s\",\"in\":\"%s\",\"args\":{%s}}\n", name,
			   cat, in, args);

	if (write(1, line, (size_t)len) != len)
		_exit(9);
}

static void recurse(int n, const char *in)
{
	char args[32];

	DFTRACER_C_FUNCTION_START();
	DFTRACER_C_FUNCTION_UPDATE_INT("n", n);
	if (n > 0)
		recurse(n - 1, "recurse");
	DFTRACER_C_FUNCTION_END();
	snprintf(args, sizeof(args), "\"n\":%d", n);
	SAY("recurse", in, args);
}

/* Without an END, the region ends with the function. */
static int leaves(int early)
{
	DFTRACER_C_FUNCTION_START();
	if (early)
		return 1;
	DFTRACER_C_FUNCTION_END();
	return 0;
}

static void nest(void)
{
	DFTRACER_C_REGION_START(outer);
	recurse(3, "outer");
	leaves(1);
	SAY("leaves", "outer", "");
	leaves(0);
	SAY("leaves", "outer", "");
	DFTRACER_C_REGION_START(inner);
	DFTRACER_C_REGION_END(inner);
	SAY("inner", "outer", "");
	DFTRACER_C_REGION_END(outer);
	SAY("outer", "", "");
}

static void arguments(void)
{
	DFTRACER_C_REGION_START(values);
	DFTRACER_C_REGION_UPDATE_INT(values, "step", -7);
	DFTRACER_C_REGION_UPDATE_STR(values, "file", "x");
	DFTRACER_C_REGION_UPDATE_INT(values, "step", 8);
	DFTRACER_C_REGION_UPDATE_INT(values, "least", (int)0x80000000);
	DFTRACER_C_REGION_UPDATE_INT_TYPE(values, "as_value", 9, 1);
	DFTRACER_C_REGION_UPDATE_STR_TYPE(values, "ignored", "val", 2);
	DFTRACER_C_REGION_UPDATE_STR(values, "empty", "");
	DFTRACER_C_REGION_UPDATE_STR(values, "number", "12");
	DFTRACER_C_REGION_END(values);
	SAY("values", "",
	    "\"step\":8,\"file\":\"x\",\"least\":-2147483648,\"as_value\":9,"
	    "\"ignored\":\"val\",\"empty\":\"\",\"number\":\"12\"");
}

/* What would break lines that are written as they come. */
static void hostile(void)
{
	static char longest[200001];
	char key[16];

	memset(longest, 'a', sizeof(longest) - 1);
	DFTRACER_C_REGION_START(strings);
	DFTRACER_C_REGION_UPDATE_STR(strings, "quoted", "a \"b\" \\c\n\t\x01 {}[],");
	DFTRACER_C_REGION_UPDATE_STR(strings, "bad", "\xff\xfe\xc3");
	DFTRACER_C_REGION_UPDATE_STR(strings, "good", "\xc3\xa4\xe2\x82\xac");
	DFTRACER_C_REGION_UPDATE_STR(strings, "null", NULL);
	DFTRACER_C_REGION_UPDATE_STR(strings, "wild", (const char *)16);
	DFTRACER_C_REGION_UPDATE_INT(strings, NULL, 1);
	DFTRACER_C_REGION_UPDATE_INT(strings, "key \"q\"", 1);
	DFTRACER_C_REGION_UPDATE_INT(strings, "level", 77);
	DFTRACER_C_REGION_UPDATE_STR(strings, "fhash", "mine");
	DFTRACER_C_REGION_END(strings);
	SAY("strings", "",
	    "\"quoted\":\"a \\\"b\\\" \\\\c\\n\\t\\u0001 {}[],\",\"bad\":\"\\ufffd\\ufffd\\ufffd\","
	    "\"good\":\"\\u00e4\\u20ac\",\"key \\\"q\\\"\":1,\"level_\":77,\"fhash_\":\"mine\"");
	struct DFTracerData *data = initialize_region(NULL, NULL, 0);
	finalize_region(data);
	say("unknown", "unknown", "", "");
	data = initialize_region("a \"name\"", "a\\cat", 0);
	finalize_region(data);
	say("a \\\"name\\\"", "a\\\\cat", "", "");
	DFTRACER_C_METADATA(meta, "a \"key\"", "b\\c");
	puts("custom a \"key\" b\\c");
	DFTRACER_C_APP_METADATA_STR("the \"case\"", "a \"small\" one");
	puts("app {\"the \\\"case\\\"\": \"a \\\"small\\\" one\"}");
	/* Its 200000 bytes are cut. */
	data = initialize_region("long", "C_APP", 0);
	update_metadata_string(data, "text", longest);
	finalize_region(data);
	SAY("long", "", "\"text\":\"65536 times a\"");
	/* More arguments than any event has by itself. */
	data = initialize_region("many", "C_APP", 0);
	for (int i = 0; i < 100; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		update_metadata_int(data, key, i);
	}
	finalize_region(data);
	SAY("many", "", "\"k0 to k99\":100");
}

/* Ends that have no beginning, beginnings that have no end, and those in another order. */
static void order(void)
{
	finalize_region(NULL);
	update_metadata_int(NULL, "x", 1);
	DFTRACER_C_REGION_START(twice);
	DFTRACER_C_REGION_END(twice);
	DFTRACER_C_REGION_END(twice);
	SAY("twice", "", "");
	struct DFTracerData *other = initialize_region("no kind", "C_APP", 5);
	finalize_region(other);
	struct DFTracerData *one = initialize_region("one", "C_APP", 0);
	struct DFTracerData *two = initialize_region("two", "C_APP", 0);
	struct DFTracerData *three = initialize_region("three", "C_APP", 0);
	finalize_region(one);
	SAY("one", "", "");
	finalize_region(three);
	SAY("three", "two", "");
	finalize_region(two);
	SAY("two", "one", "\"overlap\":1");
	initialize_region("never", "C_APP", 0);
	recurse(0, "never");
	SAY_CUT("never", "", "");
}

static void cut(void)
{
	DFTRACER_C_REGION_START(first);
	DFTRACER_C_REGION_UPDATE_INT(first, "n", 1);
	DFTRACER_C_REGION_START(second);
	SAY_CUT("second", "first", "");
	SAY_CUT("first", "", "\"n\":1,");
	_exit(0);
}

static void killed(void)
{
	DFTRACER_C_REGION_START(doomed);
	SAY_CUT("doomed", "", "");
	abort();
}

static void executes(void)
{
	DFTRACER_C_REGION_START(before_exec);
	SAY_CUT("before_exec", "", "");
	execl("/proc/self/exe", "annotated", "arguments", (char *)NULL);
}

static jmp_buf jump;

static void jumps(void)
{
	initialize_region("left", "C_APP", 0);
	longjmp(jump, 1);
}

static void longjumps(void)
{
	if (setjmp(jump) == 0)
		jumps();
	recurse(0, "left");
	SAY_CUT("left", "", "");
}

static struct DFTracerData *shared;

static void *thread(void *n)
{
	for (int i = 0; i < *(int *)n; i++) {
		DFTRACER_C_REGION_START(outer);
		DFTRACER_C_REGION_START(inner);
		DFTRACER_C_REGION_UPDATE_INT(inner, "i", i);
		DFTRACER_C_REGION_END(inner);
		DFTRACER_C_REGION_END(outer);
	}
	return NULL;
}

static void threads(void)
{
	pthread_t ids[4];
	char args[32];
	int n = 50;

	for (int i = 0; i < 4; i++)
		pthread_create(&ids[i], NULL, thread, &n);
	for (int i = 0; i < 4; i++)
		pthread_join(ids[i], NULL);
	for (int i = 0; i < 4 * n; i++) {
		snprintf(args, sizeof(args), "\"i\":%d", i % n);
		SAY("inner", "outer", args);
		SAY("outer", "", "");
	}
}

static void *finisher(void *unused)
{
	finalize_region(shared);
	DFTRACER_C_REGION_START(own);
	DFTRACER_C_REGION_END(own);
	return unused;
}

static void across(void)
{
	pthread_t id;

	shared = initialize_region("across", "C_APP", 0);
	pthread_create(&id, NULL, finisher, NULL);
	pthread_join(id, NULL);
	SAY("across", "", "");
	SAY("own", "", "");
}

/* A child has what its parent had begun; what it does not end is the parent's alone. */
static void forks(void)
{
	DFTRACER_C_APP_METADATA_STR("who", "parent");
	struct DFTracerData *ended = initialize_region("ended", "C_APP", 0);
	struct DFTracerData *left = initialize_region("left", "C_APP", 0);

	pid_t child = fork();
	if (child == 0) {
		DFTRACER_C_APP_METADATA_STR("who", "child");
		DFTRACER_C_REGION_START(in_child);
		update_metadata_int(ended, "child", 1);
		DFTRACER_C_REGION_END(in_child);
		SAY("in_child", "", "");
		finalize_region(ended);
		SAY("ended", "", "\"child\":1,\"overlap\":1");
		_exit(0);
	}
	waitpid(child, NULL, 0);
	finalize_region(left);
	SAY("left", "ended", "");
	finalize_region(ended);
	SAY("ended", "", "");
	/* One that only executes something else writes no file of its own. */
	DFTRACER_C_REGION_START(runs);
	if (system("exit 0") != 0)
		exit(8);
	DFTRACER_C_REGION_END(runs);
	SAY("runs", "", "");
}

/* What comes behind FINI is not recorded, and what is open ends there. */
static void finishes(void)
{
	DFTRACER_C_INIT("some/file", "/some:/dirs", NULL);
	recurse(0, "");
	struct DFTracerData *open = initialize_region("open", "C_APP", 0);
	DFTRACER_C_FINI();
	SAY_CUT("open", "", "");
	finalize_region(open);
	leaves(0);
	DFTRACER_C_INIT(NULL, NULL, NULL);
	leaves(0);
}

static void metadata(void)
{
	DFTRACER_C_METADATA(one, "key", "value");
	puts("custom key value");
	DFTRACER_C_METADATA(two, "another", "one");
	puts("custom another one");
	DFTRACER_C_APP_METADATA_INT("answer", 41);
	DFTRACER_C_APP_METADATA_INT("answer", 42);
	DFTRACER_C_APP_METADATA_STR("case", "a small one");
	DFTRACER_C_MARK_USED("solver");
	DFTRACER_C_MARK_USED("solver");
	recurse(0, "");
	puts("app {\"answer\": 42, \"case\": \"a small one\"}");
	puts("used {\"solver\": 1}");
}

/* System calls and calls of streams inside regions. */
static void calls(void)
{
	DFTRACER_C_REGION_START(writes);
	int fd = open("data", O_CREAT | O_WRONLY | O_TRUNC, 0600);
	DFTRACER_C_REGION_START(deep);
	if (write(fd, "12345", 5) != 5)
		exit(8);
	DFTRACER_C_REGION_END(deep);
	close(fd);
	FILE *file = fopen("data", "a");
	fprintf(file, "%d", 678);
	fclose(file);
	DFTRACER_C_REGION_END(writes);
	SAY("deep", "writes", "");
	SAY("writes", "", "");
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {
		{"nest", nest},         {"arguments", arguments},
		{"hostile", hostile},   {"order", order},
		{"cut", cut},           {"killed", killed},
		{"executes", executes}, {"longjumps", longjumps},
		{"threads", threads},   {"across", across},
		{"forks", forks},       {"finishes", finishes},
		{"metadata", metadata}, {"calls", calls},
	};

	setvbuf(stdout, NULL, _IONBF, 0);
	for (size_t i = 0; argc > 1 && i < sizeof(cases) / sizeof(*cases); i++) {
		if (strcmp(argv[1], cases[i].name) == 0) {
			if (argc > 2) {
				DFTRACER_C_INIT(NULL, NULL, NULL);
				nest();
			}
			cases[i].run();
			if (argc > 2)
				DFTRACER_C_FINI();
			return 0;
		}
	}
	return 2;
}
