/* Prefixes with expansions, lists of ranks, environments. */
#include "launchers/rank-list.h"
#include "launchers/ranks.h"
#include "writer/prefix.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void check_prefix(const char *prefix, const char *expected)
{
	const struct prefix_values values = {.rank = "3", .host = "h/1", .pid = "77"};
	struct buf out = {0};

	assert_null(prefix_check(prefix));
	prefix_expand(&out, prefix, &values);
	assert_string_equal(buf_str(&out), expected);
	buf_free(&out);
}

static void prefixes(void **state)
{
	(void)state;
	check_prefix("out/t", "out/t");
	check_prefix("%r", "3");
	check_prefix("a%%r%r-%h-%p.%j%%", "a%r3-h_1-77.none%");
	assert_string_equal(prefix_check("a%%%q"), "%q");
	assert_string_equal(prefix_check("100%"), "%");
	assert_int_equal(prefix_common("/a/%h/b%%/c%r/d"), strlen("/a/%h/b%%/c"));
	assert_int_equal(prefix_common("/a%%r"), strlen("/a%%r"));
}

static void escaped_prefix(void **state)
{
	struct buf once = {0};
	struct buf twice = {0};

	(void)state;
	prefix_escape(&once, "/100%r/%%");
	prefix_expand(&twice, buf_str(&once), &(struct prefix_values){.rank = "3"});
	assert_string_equal(buf_str(&twice), "/100%r/%%");
	buf_free(&once);
	buf_free(&twice);
}

static void rank_lists(void **state)
{
	struct rank_list list = {0};
	struct buf error = {0};

	(void)state;
	assert_true(rank_list_has(&list, 5, -1)); /* no list: all */
	assert_int_equal(rank_list_add(&list, "0,4-7,%16", &error), 0);
	const long in[] = {0, 4, 7, 16, 160};
	const long out[] = {1, 3, 8, 17};
	for (size_t i = 0; i < sizeof(in) / sizeof(*in); i++)
		assert_true(rank_list_has(&list, in[i], -1));
	for (size_t i = 0; i < sizeof(out) / sizeof(*out); i++)
		assert_false(rank_list_has(&list, out[i], 0));
	assert_false(rank_list_wants_local(&list));
	assert_int_equal(rank_list_add(&list, "first-per-node", &error), 0);
	assert_true(rank_list_wants_local(&list));
	assert_true(rank_list_has(&list, 17, 0));
	assert_false(rank_list_has(&list, 17, -1));
	assert_int_equal(rank_list_add(&list, "7-4", &error), -1);
	assert_non_null(strstr(buf_str(&error), "'7-4'"));
	rank_list_free(&list);
	buf_free(&error);
}

static void check_environment(const char *text, size_t len, const char *launcher, const char *rank)
{
	const struct environment environment = {text, len};
	struct rank_info info;

	ranks_read(&info, &environment);
	assert_int_equal(info.launcher == NULL, launcher == NULL);
	if (!launcher)
		return;
	assert_string_equal(info.launcher, launcher);
	assert_string_equal(info.values[RANK_RANK], rank);
}

static void environments(void **state)
{
	static const char open_mpi[] =
		"PMIX_RANK=4\0XOMPI_COMM_WORLD_RANK=9\0OMPI_COMM_WORLD_RANK=4";
	static const char not_numbers[] = "OMPI_COMM_WORLD_RANK=\0PMI_RANK=-1\0PMIX_RANK=3x";
	static const char prefix_only[] = "PMI_RANKS=1\0PMI_RAN=2\0PMI_RANK";
	static const char huge[] = "PMI_RANK=99999999999999999999";

	(void)state;
	check_environment(open_mpi, sizeof(open_mpi), "Open MPI", "4");
	check_environment(not_numbers, sizeof(not_numbers), NULL, NULL);
	check_environment(prefix_only, sizeof(prefix_only), NULL, NULL);
	check_environment(huge, sizeof(huge), NULL, NULL);
	check_environment(NULL, 0, NULL, NULL);
}

static void starters(void **state)
{
	(void)state;
	const char *const lines[][3] = {
		{"/usr/bin/mpirun", "-np", "4"},
		{"python3", "/opt/torchrun", "x"},
		{"srun", "-n", "4"},
		{"flux", "run", "app"},
	};
	const char *const others[][3] = {
		{"./flux", "input.nml", ""},
		{"mpiru", "-np", "4"},
		{"./app", "mpirun", ""},
		{"", "", ""},
	};

	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(ranks_starter(lines[i], 3)->is_above, i < 2);
		assert_null(ranks_starter(others[i], 3));
	}
	assert_null(ranks_starter(lines[3], 1));
	assert_null(ranks_starter(NULL, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(prefixes),   cmocka_unit_test(escaped_prefix),
		cmocka_unit_test(rank_lists), cmocka_unit_test(environments),
		cmocka_unit_test(starters),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
