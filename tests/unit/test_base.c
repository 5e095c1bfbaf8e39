/* base/: the helpers that everything else stands on. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/number.h"
#include "base/path.h"
#include "base/sorted.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static void buf_holds_what_was_added(void **state)
{
	(void)state;
	struct buf b = {0};
	buf_add_str(&b, "a");
	buf_add(&b, "b\0c", 3);
	buf_add(&b, NULL, 0);
	buf_add_char(&b, '|');
	buf_addf(&b, "%s-%d", "x", 7);
	assert_int_equal(b.len, 8);
	assert_memory_equal(b.data, "ab\0c|x-7", 8);
	assert_int_equal(buf_str(&b)[8], '\0');
	assert_int_equal(b.len, 8);
	buf_clear(&b);
	assert_string_equal(buf_str(&b), "");
	buf_free(&b);
	assert_null(b.data);
	buf_add_str(&b, "again");
	assert_string_equal(buf_str(&b), "again");
	buf_free(&b);
}

static void buf_writes_numbers_as_printf_does(void **state)
{
	(void)state;
	static const uint64_t values[] = {
		0,     1,         9,         10,         99,         100,
		12345, INT64_MAX, INT64_MIN, UINT64_MAX, UINT32_MAX, 1727387307981713,
	};
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		struct buf b = {0};
		char expected[64];
		buf_add_u64(&b, values[i]);
		buf_add_char(&b, ' ');
		buf_add_i64(&b, (int64_t)values[i]);
		snprintf(expected, sizeof(expected), "%llu %lld", (unsigned long long)values[i],
			 (long long)values[i]);
		assert_string_equal(buf_str(&b), expected);
		buf_free(&b);
	}
}

static void buf_grows(void **state)
{
	(void)state;
	struct buf b = {0};
	for (int i = 0; i < 100000; i++)
		buf_add_char(&b, (char)i);
	assert_int_equal(b.len, 100000);
	for (int i = 0; i < 100000; i++)
		assert_int_equal(b.data[i], (char)i);
	buf_free(&b);

	struct buf empty = {0};

	/* NULL means failure, so room for nothing is not that. */
	assert_non_null(buf_reserve(&empty, 0));
	buf_free(&empty);
}

/* Random operations on keys that collide often, against an array. */
static void map_does_what_an_array_does(void **state)
{
	(void)state;
	enum { KEYS = 500 };
	static char values[KEYS];
	void *model[KEYS] = {0};
	size_t count = 0;
	struct map m = {0};

	srandom(7);
	for (int round = 0; round < 200000; round++) {
		size_t k = (size_t)random() % KEYS;
		/* Keys in runs, and some that differ in their high bits only. */
		uint64_t key = k < KEYS / 2 ? k : (uint64_t)k << 40;
		void *value = &values[random() % KEYS];
		/* Grows in one half of the time and shrinks in the other. */
		long what = random() % 10;
		if (what < (round / 20000 % 2 ? 3 : 5)) {
			count += !model[k];
			assert_int_equal(map_put(&m, key, value), 0);
			model[k] = value;
		} else if (what < 8) {
			assert_ptr_equal(map_remove(&m, key), model[k]);
			count -= model[k] != NULL;
			model[k] = NULL;
		}
		assert_ptr_equal(map_get(&m, key), model[k]);
		assert_int_equal(m.count, count);
		if (round % 1000 == 0) {
			size_t at = 0;
			size_t seen = 0;
			struct map_slot *slot;
			while ((slot = map_next(&m, &at))) {
				size_t i = slot->key < KEYS ? slot->key : slot->key >> 40;
				assert_ptr_equal(slot->value, model[i]);
				seen++;
			}
			assert_int_equal(seen, count);
			for (size_t i = 0; i < KEYS; i++)
				assert_ptr_equal(map_get(&m, i < KEYS / 2 ? i : (uint64_t)i << 40),
						 model[i]);
		}
	}
	map_free(&m);
	assert_null(map_get(&m, 1));
	assert_null(map_remove(&m, 1));
}

static void paths_become_absolute(void **state)
{
	(void)state;
	static const struct {
		const char *base, *path, *expected;
	} cases[] = {
		{"/home/u", "a", "/home/u/a"},
		{"/home/u", "/a", "/a"},
		{"/home/u", "./a/./b/", "/home/u/a/b"},
		{"/home/u", "../../..", "/"},
		{"/home/u", "../x//y///z", "/home/x/y/z"},
		{"/home/u", "a/..", "/home/u"},
		{"/home/u", "", "/home/u"},
		{"/", "a", "/a"},
		{"/", "..", "/"},
		{"/", "", "/"},
		{"/a/../b/", "c", "/b/c"},
		{"/x", "...", "/x/..."},
		{"/x", "..a/.b", "/x/..a/.b"},
		{"/x", "/../../y", "/y"},
		{"pipe:[7]", "a", "pipe:[7]/a"},
		{"pipe:[7]", "../../a", "pipe:[7]/a"},
		{"pipe:[7]", "/a", "/a"},
	};
	struct buf out = {0};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		path_absolute(&out, cases[i].base, strlen(cases[i].base), cases[i].path,
			      strlen(cases[i].path));
		assert_string_equal(buf_str(&out), cases[i].expected);
	}
	buf_free(&out);
}

static void paths_are_below_by_components(void **state)
{
	(void)state;
	assert_true(path_is_below("/data", "/data"));
	assert_true(path_is_below("/data/a/b", "/data"));
	assert_false(path_is_below("/data2", "/data"));
	assert_false(path_is_below("/dat", "/data"));
	assert_false(path_is_below("/", "/data"));
	assert_true(path_is_below("/anything", "/"));
	assert_false(path_is_below("pipe:[7]", "/"));
	assert_string_equal(path_basename("/a/b"), "b");
	assert_string_equal(path_basename("b"), "b");
	assert_string_equal(path_basename("/a/"), "");
}

static void numbers_are_read_whole(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int error; /* 0: a number */
		long value;
	} cases[] = {
		{"0", 0, 0},
		{"42", 0, 42},
		{"-5", 0, -5},
		{"100", 0, 100},
		{"007", 0, 7},
		{"", EINVAL, 0},
		{"-", EINVAL, 0},
		{" 1", EINVAL, 0},
		{"1 ", EINVAL, 0},
		{"+1", EINVAL, 0},
		{"1x", EINVAL, 0},
		{"0x10", EINVAL, 0},
		{"--1", EINVAL, 0},
		{"1.5", EINVAL, 0},
		{"101", ERANGE, 0},
		{"-11", ERANGE, 0},
		{"99999999999999999999", ERANGE, 0},
		{"99999999999999999999x", EINVAL, 0},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		long value = 77;
		int result = number_parse(cases[i].text, -10, 100, &value);
		assert_int_equal(result, cases[i].error ? -1 : 0);
		if (cases[i].error)
			assert_int_equal(errno, cases[i].error);
		assert_int_equal(value, cases[i].error ? 77 : cases[i].value);
	}
}

static void clock_agrees_with_real_time_and_never_goes_back(void **state)
{
	(void)state;
	struct clock clock = clock_new();
	struct timespec real;
	uint64_t last = 0;

	clock_gettime(CLOCK_REALTIME, &real);
	uint64_t now = clock_now(&clock);
	int64_t off = (int64_t)now - ((int64_t)real.tv_sec * 1000000000 + real.tv_nsec);
	assert_true(off > -1000000000 && off < 1000000000);
	for (int i = 0; i < 1000; i++) {
		now = clock_now(&clock);
		assert_true(now >= last);
		last = now;
	}
}

static void sorted_things_are_counted(void **state)
{
	struct thing {
		char name;
		uint64_t number;
	} things[20];

	(void)state;
	assert_int_equal(sorted_up_to(NULL, 0, sizeof(*things), 0, UINT64_MAX), 0);
	/* Pairs of 0, 3, 6, …, the last of UINT64_MAX. */
	for (size_t i = 0; i < 20; i++)
		things[i] = (struct thing){'x', i < 18 ? i / 2 * 3 : UINT64_MAX};
	for (size_t count = 0; count <= 20; count++) {
		for (uint64_t most = 0; most < 30; most++) {
			size_t expected = 0;
			while (expected < count && things[expected].number <= most)
				expected++;
			assert_int_equal(sorted_up_to(things, count, sizeof(*things),
						      offsetof(struct thing, number), most),
					 expected);
		}
		assert_int_equal(sorted_up_to(things, count, sizeof(*things),
					      offsetof(struct thing, number), UINT64_MAX),
				 count);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buf_holds_what_was_added),
		cmocka_unit_test(buf_writes_numbers_as_printf_does),
		cmocka_unit_test(buf_grows),
		cmocka_unit_test(map_does_what_an_array_does),
		cmocka_unit_test(paths_become_absolute),
		cmocka_unit_test(paths_are_below_by_components),
		cmocka_unit_test(numbers_are_read_whole),
		cmocka_unit_test(sorted_things_are_counted),
		cmocka_unit_test(clock_agrees_with_real_time_and_never_goes_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
