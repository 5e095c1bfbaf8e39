/* Counting the elements of selections. Hyperslabs are combined by set operations, and overlap as they like: a
 * dimension falls into pieces that lie in the same slabs, and an element is in the selection according to the
 * slabs in which all of its coordinates lie. */
#include "tracer/hooks/hdf5-space.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Selections that are more work than this are not counted: the program waits meanwhile. */
#define MOST_SLABS  1024
#define MOST_EDGES  (1UL << 16)
#define MOST_PIECES (1UL << 16)
#define MOST_PAIRS  (1UL << 21)

static void free_slabs(struct h5_space *space)
{
	for (size_t i = 0; i < space->nslabs; i++)
		free(space->slabs[i].dims);
	free(space->slabs);
	space->slabs = NULL;
	space->nslabs = 0;
}

void h5_space_clear(struct h5_space *space)
{
	free_slabs(space);
	memset(space, 0, sizeof(*space));
	space->selected = H5_SELECTED_UNKNOWN;
}

void h5_space_select_all(struct h5_space *space)
{
	free_slabs(space);
	space->selected = H5_SELECTED_ALL;
}

void h5_space_select_count(struct h5_space *space, uint64_t count)
{
	free_slabs(space);
	space->selected = H5_SELECTED_COUNT;
	space->count = count;
}

void h5_space_select_unknown(struct h5_space *space)
{
	free_slabs(space);
	space->selected = H5_SELECTED_UNKNOWN;
}

static int add_slab(struct h5_space *space, enum h5_select op, unsigned rank,
		    const struct h5_range *dims)
{
	struct h5_slab *more;
	struct h5_range *copy;

	/* One more than there can be: what counts them says that it is too much. */
	if (space->nslabs > MOST_SLABS)
		return 0;
	more = reallocarray(space->slabs, space->nslabs + 1, sizeof(*more));
	copy = calloc(rank ? rank : 1, sizeof(*copy));
	if (more)
		space->slabs = more;
	if (!more || !copy) {
		free(copy);
		errno = ENOMEM;
		return -1;
	}
	memcpy(copy, dims, rank * sizeof(*copy));
	struct h5_slab *slab = &space->slabs[space->nslabs++];
	slab->op = op;
	slab->dims = copy;
	return 0;
}

int h5_space_copy(struct h5_space *to, const struct h5_space *from)
{
	struct h5_space copy = *from;

	copy.slabs = NULL;
	copy.nslabs = 0;
	for (size_t i = 0; i < from->nslabs; i++) {
		if (add_slab(&copy, from->slabs[i].op, from->rank, from->slabs[i].dims) < 0) {
			free_slabs(&copy);
			return -1;
		}
	}
	free_slabs(to);
	*to = copy;
	return 0;
}

static bool has_dimensions(const struct h5_extent *extent)
{
	return extent->known && !extent->null && extent->rank > 0;
}

/* The whole extent as a slab, which others can be combined with. */
static int slab_of_all(struct h5_space *space)
{
	const struct h5_extent *extent = &space->extent;
	struct h5_range dims[H5_MAX_RANK];

	for (unsigned d = 0; d < extent->rank; d++)
		dims[d] = (struct h5_range){0, 1, 1, extent->dims[d]};
	space->rank = extent->rank;
	space->selected = H5_SELECTED_SLABS;
	return add_slab(space, H5_SELECT_SET, extent->rank, dims);
}

int h5_space_select_slab(struct h5_space *space, enum h5_select op, unsigned rank,
			 const struct h5_range *dims)
{
	if (op == H5_SELECT_SET) {
		free_slabs(space);
		space->selected = H5_SELECTED_SLABS;
		space->rank = rank;
		return add_slab(space, op, rank, dims);
	}
	if (op > H5_SELECT_NOTA) {
		h5_space_select_unknown(space);
		return 0;
	}
	if (space->selected == H5_SELECTED_NONE) {
		bool nothing = op == H5_SELECT_AND || op == H5_SELECT_NOTB;
		return nothing ? 0 : h5_space_select_slab(space, H5_SELECT_SET, rank, dims);
	}
	if (space->selected == H5_SELECTED_ALL && has_dimensions(&space->extent) &&
	    space->extent.rank == rank && slab_of_all(space) < 0)
		return -1;
	if (space->selected != H5_SELECTED_SLABS || space->rank != rank) {
		h5_space_select_unknown(space);
		return 0;
	}
	return add_slab(space, op, rank, dims);
}

int h5_space_select_space(struct h5_space *space, enum h5_select op, const struct h5_space *other)
{
	struct h5_space whole = {0};
	int result;

	if (other->selected == H5_SELECTED_ALL && has_dimensions(&other->extent)) {
		whole.extent = other->extent;
		if (slab_of_all(&whole) < 0)
			return -1;
		other = &whole;
	}
	/* Several slabs are a set of their own, and cannot be added one by one. */
	if (other->selected == H5_SELECTED_SLABS && other->nslabs == 1) {
		result = h5_space_select_slab(space, op, other->rank, other->slabs[0].dims);
	} else {
		h5_space_select_unknown(space);
		result = 0;
	}
	free_slabs(&whole);
	return result;
}

bool h5_extent_count(const struct h5_extent *extent, uint64_t *count)
{
	if (!extent->known) {
		*count = extent->count;
		return extent->counted;
	}
	*count = extent->null ? 0 : 1;
	for (unsigned d = 0; d < extent->rank; d++) {
		if (__builtin_mul_overflow(*count, extent->dims[d], count))
			return false;
	}
	return true;
}

/* Where a slab begins or ends in a dimension. */
struct edge {
	uint64_t at;
	size_t slab;
};

/* Pieces of a dimension, or of several taken together: `count` elements that lie in the slabs whose bits are set. */
struct pieces {
	size_t words; /* of a set */
	size_t n;
	size_t cap;
	uint64_t *items; /* each: count, then the set */
};

static uint64_t *piece_at(const struct pieces *p, size_t i)
{
	return p->items + i * (p->words + 1);
}

static bool add_piece(struct pieces *p, uint64_t count, const uint64_t *set)
{
	bool empty = true;

	/* What lies in no slab stays out, whatever the operations are. */
	for (size_t w = 0; w < p->words; w++)
		empty &= set[w] == 0;
	if (empty || count == 0)
		return true;
	if (p->n == MOST_PIECES)
		return false;
	if (p->n == p->cap) {
		size_t cap = p->cap ? p->cap * 2 : 64;
		uint64_t *more = reallocarray(p->items, cap, (p->words + 1) * sizeof(*p->items));
		if (!more)
			return false;
		p->items = more;
		p->cap = cap;
	}
	uint64_t *to = piece_at(p, p->n++);
	to[0] = count;
	memcpy(to + 1, set, p->words * sizeof(*set));
	return true;
}

static int compare_sets(const void *a, const void *b, void *words)
{
	return memcmp((const uint64_t *)a + 1, (const uint64_t *)b + 1,
		      *(size_t *)words * sizeof(uint64_t));
}

/* Makes one of all pieces in the same slabs. */
static void merge(struct pieces *p)
{
	size_t n = 0;

	if (p->n == 0)
		return;
	qsort_r(p->items, p->n, (p->words + 1) * sizeof(*p->items), compare_sets, &p->words);
	for (size_t i = 1; i < p->n; i++) {
		uint64_t *last = piece_at(p, n);
		const uint64_t *item = piece_at(p, i);
		if (compare_sets(last, item, &p->words) == 0)
			last[0] += item[0];
		else if (++n != i)
			memcpy(piece_at(p, n), item, (p->words + 1) * sizeof(*item));
	}
	p->n = n + 1;
}

static int compare_edges(const void *a, const void *b)
{
	const struct edge *x = a;
	const struct edge *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

/* @return the edges of all slabs in a dimension, in order; NULL: too many. */
static struct edge *edges_of(const struct h5_space *space, unsigned d, size_t *count)
{
	struct edge *edges;
	size_t n = 0;

	for (size_t i = 0; i < space->nslabs; i++) {
		uint64_t blocks = space->slabs[i].dims[d].count;
		if (blocks > MOST_EDGES)
			return NULL;
		n += 2 * blocks;
	}
	if (n > MOST_EDGES)
		return NULL;
	edges = calloc(n + 1, sizeof(*edges));
	if (!edges)
		return NULL;
	*count = n;
	n = 0;
	for (size_t i = 0; i < space->nslabs; i++) {
		const struct h5_range *r = &space->slabs[i].dims[d];
		for (uint64_t b = 0; b < r->count; b++) {
			edges[n++] = (struct edge){r->start + b * r->stride, i};
			edges[n++] = (struct edge){r->start + b * r->stride + r->block, i};
		}
	}
	qsort(edges, n, sizeof(*edges), compare_edges);
	return edges;
}

/* Cuts a dimension into pieces. @return whether that was possible. */
static bool cut(const struct h5_space *space, unsigned d, struct pieces *out)
{
	size_t n;
	struct edge *edges = edges_of(space, d, &n);
	uint64_t *set = calloc(out->words, sizeof(*set));
	bool done = edges && set;

	for (size_t i = 0; done && i < n; i++) {
		/* Blocks of a slab do not overlap, and where they touch it is left and entered: twice is not at all. */
		set[edges[i].slab / 64] ^= 1ULL << (edges[i].slab % 64);
		if (i + 1 < n)
			done = add_piece(out, edges[i + 1].at - edges[i].at, set);
	}
	free(edges);
	free(set);
	if (done)
		merge(out);
	return done;
}

static bool has(const uint64_t *set, size_t slab)
{
	return (set[slab / 64] >> (slab % 64)) & 1;
}

/* @return whether an element in these slabs is selected. */
static bool is_selected(const struct h5_space *space, const uint64_t *set)
{
	bool in = false;

	for (size_t i = 0; i < space->nslabs; i++) {
		bool here = has(set, i);
		switch (space->slabs[i].op) {
		case H5_SELECT_SET:
			in = here;
			break;
		case H5_SELECT_OR:
			in |= here;
			break;
		case H5_SELECT_AND:
			in &= here;
			break;
		case H5_SELECT_XOR:
			in ^= here;
			break;
		case H5_SELECT_NOTB:
			in &= !here;
			break;
		default:
			in = !in && here;
			break;
		}
	}
	return in;
}

/* Replaces `all` by its product with another dimension's pieces. */
static bool multiply(struct pieces *all, const struct pieces *other)
{
	struct pieces product = {.words = all->words};
	uint64_t *set = calloc(all->words, sizeof(*set));
	bool done = set != NULL && all->n * other->n <= MOST_PAIRS;

	for (size_t i = 0; done && i < all->n; i++) {
		for (size_t j = 0; done && j < other->n; j++) {
			const uint64_t *a = piece_at(all, i);
			const uint64_t *b = piece_at(other, j);
			for (size_t w = 0; w < all->words; w++)
				set[w] = a[1 + w] & b[1 + w];
			done = add_piece(&product, a[0] * b[0], set);
		}
		if (product.n > MOST_PIECES / 2)
			merge(&product);
	}
	free(set);
	free(all->items);
	*all = product;
	if (done)
		merge(all);
	return done;
}

static bool count_slabs(const struct h5_space *space, uint64_t *count)
{
	struct pieces all = {.words = (space->nslabs + 63) / 64};
	bool done = all.words > 0 && space->nslabs <= MOST_SLABS && cut(space, 0, &all);

	for (unsigned d = 1; done && d < space->rank; d++) {
		struct pieces next = {.words = all.words};
		done = cut(space, d, &next) && multiply(&all, &next);
		free(next.items);
	}
	*count = 0;
	for (size_t i = 0; done && i < all.n; i++) {
		if (is_selected(space, piece_at(&all, i) + 1))
			*count += piece_at(&all, i)[0];
	}
	free(all.items);
	return done;
}

bool h5_space_count(const struct h5_space *space, uint64_t *count)
{
	switch (space->selected) {
	case H5_SELECTED_ALL:
		return h5_extent_count(&space->extent, count);
	case H5_SELECTED_NONE:
		*count = 0;
		return true;
	case H5_SELECTED_COUNT:
		*count = space->count;
		return true;
	case H5_SELECTED_SLABS:
		if (space->nslabs != 1)
			return space->nslabs > 0 && space->rank > 0 && count_slabs(space, count);
		*count = 1;
		for (unsigned d = 0; d < space->rank; d++) {
			const struct h5_range *r = &space->slabs[0].dims[d];
			if (__builtin_mul_overflow(*count, r->count, count) ||
			    __builtin_mul_overflow(*count, r->block, count))
				return false;
		}
		return true;
	default:
		return false;
	}
}
