/* Selections of dataspaces against counting one element after the other. */
#include "tracer/hooks/hdf5-space.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SIDE = 12, MOST = 40 };

/* The same numbers in each run. */
static uint64_t next(uint64_t *seed, uint64_t below)
{
	*seed = *seed * 6364136223846793005U + 1442695040888963407U;
	return (*seed >> 33) % below;
}

static struct h5_range random_range(uint64_t *seed)
{
	struct h5_range r = {.start = next(seed, SIDE), .count = 1 + next(seed, 4)};

	r.block = 1 + next(seed, 3);
	/* Blocks may touch and do not overlap. */
	r.stride = r.block + next(seed, 3);
	return r;
}

static bool is_in(const struct h5_range *r, uint64_t at)
{
	return at >= r->start && (at - r->start) / r->stride < r->count &&
	       (at - r->start) % r->stride < r->block;
}

static bool combine(bool in, enum h5_select op, bool here)
{
	switch (op) {
	case H5_SELECT_SET:
		return here;
	case H5_SELECT_OR:
		return in || here;
	case H5_SELECT_AND:
		return in && here;
	case H5_SELECT_XOR:
		return in != here;
	case H5_SELECT_NOTB:
		return in && !here;
	default:
		return !in && here;
	}
}

static void combined_slabs(void **state)
{
	uint64_t seed = 7;

	(void)state;
	for (int round = 0; round < 300; round++) {
		static bool in[MOST][MOST][MOST];
		struct h5_space space = {
			.extent = {.known = true, .rank = 3, .dims = {MOST, MOST, MOST}}};
		uint64_t count;

		memset(in, true, sizeof(in));
		int slabs = 1 + (int)next(&seed, 5);
		for (int s = 0; s < slabs; s++) {
			struct h5_range dims[3] = {random_range(&seed), random_range(&seed),
						   random_range(&seed)};
			enum h5_select op = (enum h5_select)next(&seed, 6);
			assert_int_equal(h5_space_select_slab(&space, op, 3, dims), 0);
			for (uint64_t i = 0; i < (uint64_t)MOST * MOST * MOST; i++) {
				uint64_t x = i / MOST / MOST;
				uint64_t y = i / MOST % MOST;
				uint64_t z = i % MOST;
				bool here = is_in(&dims[0], x) && is_in(&dims[1], y) &&
					    is_in(&dims[2], z);
				in[x][y][z] = combine(in[x][y][z], op, here);
			}
		}
		uint64_t expected = 0;
		for (uint64_t i = 0; i < (uint64_t)MOST * MOST * MOST; i++)
			expected += in[i / MOST / MOST][i / MOST % MOST][i % MOST];
		assert_true(h5_space_count(&space, &count));
		assert_int_equal(count, expected);
		h5_space_clear(&space);
	}
}

/* A program that picks lines one by one. */
static void many_slabs(void **state)
{
	struct h5_space space = {.extent = {.known = true, .rank = 2, .dims = {100000, 50}}};
	uint64_t count;

	(void)state;
	for (uint64_t i = 0; i < 1000; i++) {
		const struct h5_range dims[2] = {{i * 90, 1, 1, 1}, {0, 1, 1, 50}};
		assert_int_equal(
			h5_space_select_slab(&space, i ? H5_SELECT_OR : H5_SELECT_SET, 2, dims), 0);
	}
	assert_true(h5_space_count(&space, &count));
	assert_int_equal(count, 50000);
	/* More is too much work, and known to be unknown. */
	for (uint64_t i = 0; i < 1000; i++) {
		const struct h5_range dims[2] = {{i * 91, 1, 1, 1}, {0, 1, 1, 50}};
		assert_int_equal(h5_space_select_slab(&space, H5_SELECT_OR, 2, dims), 0);
	}
	assert_false(h5_space_count(&space, &count));
	h5_space_clear(&space);
}

/* Fine combs in both directions. */
static void much_work(void **state)
{
	const struct h5_range one[2] = {{0, 2, 10000, 1}, {0, 2, 10000, 1}};
	const struct h5_range two[2] = {{1, 2, 2, 1}, {0, 2, 10000, 1}};
	struct h5_space space = {.extent = {.known = true, .rank = 2, .dims = {20000, 20000}}};
	uint64_t count;

	(void)state;
	assert_int_equal(h5_space_select_slab(&space, H5_SELECT_SET, 2, one), 0);
	assert_true(h5_space_count(&space, &count));
	assert_int_equal(count, 100000000);
	assert_int_equal(h5_space_select_slab(&space, H5_SELECT_OR, 2, two), 0);
	/* Pieces in the same slabs are one, so this is little work all the same. */
	assert_true(h5_space_count(&space, &count));
	assert_int_equal(count, 100020000);
	h5_space_clear(&space);
}

static void unknown_is_unknown(void **state)
{
	const struct h5_range dims[1] = {{0, 1, 5, 1}};
	struct h5_space space = {0};
	uint64_t count;

	(void)state;
	assert_false(h5_space_count(&space, &count));
	/* Combined with a selection of unknown extent. */
	assert_int_equal(h5_space_select_slab(&space, H5_SELECT_AND, 1, dims), 0);
	assert_false(h5_space_count(&space, &count));
	assert_int_equal(h5_space_select_slab(&space, H5_SELECT_SET, 1, dims), 0);
	assert_true(h5_space_count(&space, &count));
	assert_int_equal(count, 5);
	h5_space_clear(&space);
	space.extent.known = true;
	h5_space_select_all(&space);
	assert_true(h5_space_count(&space, &count));
	assert_int_equal(count, 1);
	space.extent.null = true;
	assert_true(h5_space_count(&space, &count));
	assert_int_equal(count, 0);
	space.extent = (struct h5_extent){.known = true, .rank = 2, .dims = {UINT64_MAX, 2}};
	assert_false(h5_space_count(&space, &count));
}

static void copies(void **state)
{
	const struct h5_range one[1] = {{0, 1, 5, 1}};
	const struct h5_range two[1] = {{3, 1, 5, 1}};
	struct h5_space space = {.extent = {.known = true, .rank = 1, .dims = {10}}};
	struct h5_space copy = {0};
	uint64_t count;

	(void)state;
	assert_int_equal(h5_space_select_slab(&space, H5_SELECT_SET, 1, one), 0);
	assert_int_equal(h5_space_copy(&copy, &space), 0);
	assert_int_equal(h5_space_select_slab(&space, H5_SELECT_OR, 1, two), 0);
	assert_true(h5_space_count(&copy, &count));
	assert_int_equal(count, 5);
	assert_true(h5_space_count(&space, &count));
	assert_int_equal(count, 8);
	assert_int_equal(h5_space_select_space(&copy, H5_SELECT_NOTA, &space), 0);
	assert_false(h5_space_count(&copy, &count));
	h5_space_select_all(&copy);
	assert_int_equal(h5_space_select_space(&space, H5_SELECT_NOTA, &copy), 0);
	assert_true(h5_space_count(&space, &count));
	assert_int_equal(count, 2);
	h5_space_clear(&space);
	h5_space_clear(&copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(combined_slabs), cmocka_unit_test(many_slabs),
		cmocka_unit_test(much_work),      cmocka_unit_test(unknown_is_unknown),
		cmocka_unit_test(copies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
