/* Descriptor intervals: what a descriptor was at which time, whatever order the news comes in. */
#include "tracer/files.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <stdio.h>
#include <string.h>

static struct file *make(const char *name)
{
	struct name *n = name_new(name, strlen(name));
	struct file *file = file_new(n, FILE_RECORDED);
	name_unref(n);
	return file;
}

/* Opens `name` as `fd` at `time`. */
static void open_at(struct files *files, int fd, const char *name, bool cloexec, uint64_t time)
{
	struct file *file = make(name);
	assert_int_equal(files_open(files, fd, file, cloexec, time), 0);
	file_unref(file);
}

static const char *seen(const struct files *files, int fd, uint64_t time)
{
	bool ambiguous;
	struct file *file = files_at(files, fd, time, &ambiguous);
	return file ? file->name->text : "-";
}

static void test_open_close(void **state)
{
	struct files *files = files_new();

	(void)state;
	files->horizon = 0;
	open_at(files, 5, "a", false, 100);
	files_close(files, 5, 200, false);
	open_at(files, 5, "b", false, 300);
	assert_string_equal(seen(files, 5, 99), "-");
	assert_string_equal(seen(files, 5, 100), "a");
	assert_string_equal(seen(files, 5, 199), "a");
	assert_string_equal(seen(files, 5, 250), "-");
	assert_string_equal(seen(files, 5, 300), "b");
	assert_string_equal(seen(files, 6, 300), "-");
	assert_string_equal(seen(files, -1, 300), "-");
	files_unref(files);
}

/* Thread 1's close is reported after thread 2's open of the same number. */
static void test_late_close(void **state)
{
	struct files *files = files_new();

	(void)state;
	files->horizon = 0;
	open_at(files, 5, "old", false, 100);
	open_at(files, 5, "new", false, 300);
	files_close(files, 5, 200, false);
	assert_string_equal(seen(files, 5, 300), "new");
	assert_string_equal(seen(files, 5, 400), "new");
	files_unref(files);
}

static void test_failed_close(void **state)
{
	struct files *files = files_new();

	(void)state;
	open_at(files, 5, "a", false, 100);
	files_close(files, 5, 200, false);
	assert_string_equal(seen(files, 5, 250), "-");
	files_restore(files, 5, 200);
	assert_string_equal(seen(files, 5, 250), "a");
	files_unref(files);
}

static void test_dup2_gap(void **state)
{
	struct files *files = files_new();
	bool ambiguous;

	(void)state;
	open_at(files, 5, "old", false, 100);
	files_close(files, 5, 200, true);
	assert_string_equal(files_at(files, 5, 250, &ambiguous)->name->text, "old");
	assert_true(ambiguous);
	files_replaced(files, 5);
	open_at(files, 5, "new", false, 300);
	assert_string_equal(files_at(files, 5, 300, &ambiguous)->name->text, "new");
	assert_false(ambiguous);
	files_close(files, 5, 400, true);
	files_restore(files, 5, 400);
	assert_string_equal(files_at(files, 5, 450, &ambiguous)->name->text, "new");
	assert_false(ambiguous);
	files_unref(files);
}

static void test_exec(void **state)
{
	struct files *files = files_new();

	(void)state;
	open_at(files, 3, "stays", false, 100);
	open_at(files, 4, "goes", true, 100);
	open_at(files, 5, "changed", false, 100);
	files_set_cloexec(files, 5, true);
	files_exec(files, 200);
	assert_string_equal(seen(files, 3, 200), "stays");
	assert_string_equal(seen(files, 4, 200), "-");
	assert_string_equal(seen(files, 5, 200), "-");
	files_unref(files);
}

static void test_copy(void **state)
{
	struct files *files = files_new();
	size_t at = 0;

	(void)state;
	open_at(files, 3, "a", true, 100);
	open_at(files, 4, "closed", false, 100);
	files_close(files, 4, 150, false);
	struct files *copy = files_copy(files, 200);
	files_close(files, 3, 210, false);
	assert_string_equal(seen(copy, 3, 300), "a");
	assert_string_equal(seen(copy, 4, 300), "-");
	assert_int_equal(files_next(copy, &at, 300), 3);
	assert_int_equal(files_next(copy, &at, 300), -1);
	files_exec(copy, 400);
	assert_string_equal(seen(copy, 3, 400), "-");
	files_unref(copy);
	files_unref(files);
}

/* A file that was there before it was first seen is so for earlier calls too. */
static void test_learn(void **state)
{
	struct files *files = files_new();
	struct file *file = make("inherited");

	(void)state;
	assert_int_equal(files_learn(files, 0, file, false), 0);
	assert_string_equal(seen(files, 0, 1), "inherited");
	files_close(files, 0, 100, false);
	assert_int_equal(files_learn(files, 0, file, false), 0);
	assert_string_equal(seen(files, 0, 150), "inherited");
	file_unref(file);
	files_unref(files);
}

/* Old intervals go when nothing can ask for them any more. */
static void test_bounded(void **state)
{
	struct files *files = files_new();

	(void)state;
	for (uint64_t t = 0; t < 100000; t++) {
		open_at(files, 7, "x", false, 2 * t);
		files_close(files, 7, 2 * t + 1, false);
	}
	assert_string_equal(seen(files, 7, 100), "-");
	assert_int_equal(files->table.count, 1);
	files_unref(files);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_open_close),   cmocka_unit_test(test_late_close),
		cmocka_unit_test(test_failed_close), cmocka_unit_test(test_dup2_gap),
		cmocka_unit_test(test_exec),         cmocka_unit_test(test_copy),
		cmocka_unit_test(test_learn),        cmocka_unit_test(test_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
