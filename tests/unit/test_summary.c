/* What events add up to: by call and by file, in bounded memory. */
#include "writer/summary.h"

#include <errno.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct event event_of(enum layer layer, const char *name, struct name *file, uint64_t us,
			     int64_t ret)
{
	return (struct event){
		.layer = layer,
		.name = name,
		.start = 1000999,
		.end = 1000999 + us * 1000,
		.level = 1,
		.file = file,
		.nargs = 1,
		.args = {{.name = "ret", .kind = EVENT_INT, .value.i = ret}},
	};
}

static void add(struct summary *summary, enum layer layer, const char *name, const char *path,
		uint64_t us, int64_t ret)
{
	struct name *file = path ? name_new(path, strlen(path)) : NULL;
	struct event event = event_of(layer, name, file, us, ret);

	summary_add(summary, &event);
	name_unref(file);
}

static char *json_of(const struct summary *summary)
{
	struct buf out = {0};

	summary_print_json(&out, summary);
	char *text = strdup(buf_str(&out));
	buf_free(&out);
	return text;
}

static void holds(const struct summary *summary, const char *part)
{
	char *text = json_of(summary);
	if (!strstr(text, part))
		fail_msg("no %s in %.3000s", part, text);
	free(text);
}

static void lacks(const struct summary *summary, const char *part)
{
	char *text = json_of(summary);
	assert_null(strstr(text, part));
	free(text);
}

static void test_calls(void **state)
{
	(void)state;
	struct summary *s = summary_new();

	add(s, LAYER_POSIX, "read", "/a", 10, 100);
	add(s, LAYER_POSIX, "read", "/a", 30, 0);
	add(s, LAYER_POSIX, "read", "/b", 5, -1);
	add(s, LAYER_SYSCALL, "read", "/b", 7, 50);
	add(s, LAYER_POSIX, "open", "/b", 1, 3);
	add(s, LAYER_MPI, "MPI_Barrier", NULL, 2, 0);
	add(s, LAYER_MPI, "MPI_Barrier", NULL, 2, 15);
	add(s, LAYER_FUNC, "read", NULL, 2, -1);
	holds(s, "\"category\":\"POSIX\",\"name\":\"read\",\"calls\":3,\"errors\":1,\"cut\":0,"
		 "\"us\":45,\"longest_us\":30,\"bytes\":100}");
	holds(s, "\"category\":\"SYSCALL\",\"name\":\"read\",\"calls\":1,\"errors\":0,\"cut\":0,"
		 "\"us\":7,\"longest_us\":7,\"bytes\":50}");
	/* A descriptor is no number of bytes. */
	holds(s, "\"name\":\"open\",\"calls\":1,\"errors\":0,\"cut\":0,\"us\":1,\"longest_us\":1,"
		 "\"bytes\":0}");
	/* MPI returns the class of an error; what a function of the program's returns is not known. */
	holds(s, "\"name\":\"MPI_Barrier\",\"calls\":2,\"errors\":1,");
	holds(s, "\"category\":\"FUNC\",\"name\":\"read\",\"calls\":1,\"errors\":0,\"cut\":0,"
		 "\"us\":2,\"longest_us\":2,\"bytes\":0}");
	assert_int_equal(summary_events(s), 8);
	summary_free(s);
	summary_free(NULL);
}

static void test_arguments(void **state)
{
	(void)state;
	struct summary *s = summary_new();
	struct name *from = name_new("/from", 5);
	struct name *to = name_new("/to", 3);
	struct event event = event_of(LAYER_POSIX, "sendfile", from, 1, 70);

	event.args[event.nargs++] =
		(struct event_arg){.name = "out_fhash", .kind = EVENT_NAME, .value.ref = to};
	summary_add(s, &event);
	holds(s, "\"name\":\"sendfile\",\"calls\":1,\"errors\":0,\"cut\":0,\"us\":1,"
		 "\"longest_us\":1,\"bytes\":70}");
	holds(s, "\"path\":\"/from\",\"read\":70,\"written\":0,\"calls\":1,\"us\":1}");
	holds(s, "\"path\":\"/to\",\"read\":0,\"written\":70,\"calls\":1,\"us\":1}");

	/* Items are no bytes; size_sum is. */
	event = event_of(LAYER_STDIO, "fread", from, 1, 4);
	event.args[1] = event.args[0];
	event.args[0] = (struct event_arg){.name = "size_sum", .kind = EVENT_UINT, .value.u = 4000};
	event.nargs = 2;
	summary_add(s, &event);
	holds(s, "\"name\":\"fread\",\"calls\":1,\"errors\":0,\"cut\":0,\"us\":1,"
		 "\"longest_us\":1,\"bytes\":4000}");
	/* The file's bytes are still those of its system calls. */
	holds(s, "\"path\":\"/from\",\"read\":70,");

	event = event_of(LAYER_POSIX, "write", from, 9, 0);
	event.args[0] = (struct event_arg){.name = "cut", .kind = EVENT_INT, .value.i = 1};
	event.level = 2;
	summary_add(s, &event);
	holds(s, "\"name\":\"write\",\"calls\":1,\"errors\":0,\"cut\":1,\"us\":9,");
	holds(s, "\"outermost_us\":2,");

	/* An annotation may call its arguments as it likes. */
	event = event_of(LAYER_C_APP, "step", NULL, 1, 0);
	event.args[0] = (struct event_arg){
		.name = "size_sum", .kind = EVENT_STRING, .value.string = {"12", 2}};
	summary_add(s, &event);
	holds(s, "\"name\":\"step\",\"calls\":1,\"errors\":0,\"cut\":0,\"us\":1,\"longest_us\":1,"
		 "\"bytes\":0}");
	name_unref(from);
	name_unref(to);
	summary_free(s);
}

/* Floors of both ends, as in a line of the trace. */
static void test_microseconds(void **state)
{
	(void)state;
	struct summary *s = summary_new();
	struct event event = event_of(LAYER_POSIX, "read", NULL, 0, 0);

	event.start = 1999;
	event.end = 2000;
	summary_add(s, &event);
	holds(s, "\"us\":1,\"longest_us\":1,");
	event.start = 2000;
	event.end = 2999;
	summary_add(s, &event);
	holds(s, "\"calls\":2,\"errors\":0,\"cut\":0,\"us\":1,\"longest_us\":1,");
	summary_free(s);
}

static void test_images(void **state)
{
	(void)state;
	struct summary *all = summary_new();
	struct summary *image = summary_new();

	add(all, LAYER_POSIX, "read", "/a", 10, 100);
	add(image, LAYER_POSIX, "read", "/a", 20, 5);
	add(image, LAYER_POSIX, "write", "/b", 1, 6);
	summary_add_image(all, image);
	summary_add_image(all, NULL);
	holds(all, "{\"events\":3,\"process_images\":2,\"outermost_us\":31,");
	holds(all, "\"name\":\"read\",\"calls\":2,\"errors\":0,\"cut\":0,\"us\":30,"
		   "\"longest_us\":20,\"bytes\":105}");
	holds(all, "\"path\":\"/a\",\"read\":105,\"written\":0,\"calls\":2,\"us\":30}");
	holds(all, "\"path\":\"/b\",\"read\":0,\"written\":6,\"calls\":1,\"us\":1}");
	summary_free(image);
	summary_free(all);
}

/* @return the number behind the n-th `"key":` of the text. */
static unsigned long long number_after(const char *text, const char *key)
{
	const char *at = strstr(text, key);
	assert_non_null(at);
	return strtoull(at + strlen(key), NULL, 10);
}

static size_t count_of(const char *text, const char *part)
{
	size_t n = 0;

	for (; (text = strstr(text, part)); text += strlen(part))
		n++;
	return n;
}

static void test_many_files(void **state)
{
	(void)state;
	struct summary *s = summary_new();
	const unsigned count = 300000;
	char path[600];

	memset(path, 'x', sizeof(path));
	path[0] = '/';
	add(s, LAYER_POSIX, "write", "/large", 1, 1000000);
	size_t before = mallinfo2().uordblks;
	for (unsigned i = 0; i < count; i++) {
		/* Every second name is long. */
		int n = snprintf(path, sizeof(path), "/%u", i);
		if (i % 2)
			path[n] = 'x';
		path[sizeof(path) - 1] = '\0';
		add(s, LAYER_POSIX, i % 3 ? "write" : "stat", path, 1, 8);
	}
	assert_true(mallinfo2().uordblks - before < 24 << 20);
	add(s, LAYER_POSIX, "write", "/large", 1, 1);
	char *text = json_of(s);
	const char *others = strstr(text, "\"other_files\":");
	assert_non_null(others);
	assert_true(count_of(text, "\"path\":") <= 16384);
	assert_int_equal(count_of(text, "\"path\":") + number_after(others, "\"count\":"),
			 count + 1);
	assert_non_null(
		strstr(text, "\"path\":\"/large\",\"read\":0,\"written\":1000001,\"calls\":2,"));
	/* Nothing is lost of the sum. */
	unsigned long long written = 0;
	for (const char *at = text; (at = strstr(at, "\"written\":")); at++)
		written += strtoull(at + 10, NULL, 10);
	assert_int_equal(written, 1000001 + 8ULL * (count - count / 3));
	free(text);
	summary_free(s);
}

static void test_many_functions(void **state)
{
	(void)state;
	struct summary *s = summary_new();
	char name[16];

	for (unsigned i = 0; i < 20000; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		add(s, LAYER_FUNC, name, NULL, 1, 0);
	}
	add(s, LAYER_POSIX, "read", NULL, 1, 0);
	holds(s, "\"name\":\"f0\",\"calls\":1,");
	holds(s, "\"category\":\"FUNC\",\"name\":\"\",\"calls\":11808,");
	lacks(s, "\"name\":\"f19999\"");
	holds(s, "\"category\":\"POSIX\",\"name\":\"\",\"calls\":1,");
	summary_free(s);
}

static void test_table(void **state)
{
	(void)state;
	struct summary *s = summary_new();
	struct summary_style style = {.title = "title"};
	struct buf out = {0};
	char path[32];

	summary_print(&out, s, &style);
	assert_string_equal(buf_str(&out), "title: 0 calls of 0 process images\n");
	buf_clear(&out);
	add(s, LAYER_POSIX, "read", "/a\nb\x1b[2J", 1500000, 100);
	summary_print(&out, s, &style);
	/* A name is no line and no order to the terminal. */
	assert_non_null(strstr(buf_str(&out), "  /a?b?[2J\n"));
	assert_non_null(strstr(buf_str(&out), "100.00      1.500000   1500000   1500000         1"
					      "                     100  POSIX   read\n"));
	assert_null(strchr(buf_str(&out), 0x1b));
	for (int i = 0; i < 30; i++) {
		snprintf(path, sizeof(path), "/%d", i);
		add(s, LAYER_POSIX, "read", path, 1, 1);
	}
	buf_clear(&out);
	summary_print(&out, s, &style);
	assert_non_null(strstr(buf_str(&out), "(11 more)\n"));
	style.all_files = true;
	buf_clear(&out);
	summary_print(&out, s, &style);
	assert_null(strstr(buf_str(&out), "more)"));
	buf_free(&out);
	summary_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls),        cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_microseconds), cmocka_unit_test(test_images),
		cmocka_unit_test(test_many_files),   cmocka_unit_test(test_many_functions),
		cmocka_unit_test(test_table),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
