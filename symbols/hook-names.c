/* Which function of a layer a symbol is. Spellings of a name are not listed but recognised: a library has up to
 * twenty for one function, and they differ from one to the next. */
#include "symbols/hooks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct hook_names {
	enum hook_layer layer;
	const struct hook_row **rows; /* by name, without regard to case, once one was looked for */
	size_t count;
	bool sorted;
	size_t common; /* as many letters do all names begin with */
};

static int compare_rows(const void *a, const void *b)
{
	const struct hook_row *const *x = a;
	const struct hook_row *const *y = b;

	return strcasecmp((*x)->name, (*y)->name);
}

struct hook_names *hook_names_new(enum hook_layer layer)
{
	const struct hook_table *table = &hook_tables[layer];
	struct hook_names *names = calloc(1, sizeof(*names));

	if (!names)
		return NULL;
	names->layer = layer;
	names->count = table->count;
	names->rows = calloc(table->count + 1, sizeof(struct hook_row *));
	if (!names->rows) {
		free(names);
		return NULL;
	}
	names->common = table->count ? strlen(table->rows[0].name) : 0;
	for (size_t i = 0; i < table->count; i++) {
		names->rows[i] = &table->rows[i];
		while (strncmp(table->rows[i].name, table->rows[0].name, names->common) != 0)
			names->common--;
	}
	return names;
}

void hook_names_free(struct hook_names *names)
{
	if (!names)
		return;
	free(names->rows);
	free(names);
}

/* @return the row whose name is these bytes, in any case of letters. */
static const struct hook_row *find(struct hook_names *names, const char *name, size_t len)
{
	if (!names->sorted)
		qsort(names->rows, names->count, sizeof(struct hook_row *), compare_rows);
	names->sorted = true;
	for (size_t low = 0, high = names->count; low < high;) {
		size_t middle = low + (high - low) / 2;
		const struct hook_row *row = names->rows[middle];
		int order = strncasecmp(name, row->name, len);
		if (order == 0)
			order = row->name[len] ? -1 : 0;
		if (order == 0)
			return row;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

static bool starts(const char *name, const char *with)
{
	return strncasecmp(name, with, strlen(with)) == 0;
}

/* Takes an ending off. @return whether it was there. */
static bool strip(const char *name, size_t *len, const char *ending)
{
	size_t n = strlen(ending);

	if (*len <= n || strncmp(name + *len - n, ending, n) != 0)
		return false;
	*len -= n;
	return true;
}

/* The form for large counts, in the modules of MPI 4. */
static const struct hook_row *find_large(struct hook_names *names, const char *name, size_t len)
{
	char text[96];

	int whole = snprintf(text, sizeof(text), "%.*s_c", (int)len, name);
	return whole > 0 && (size_t)whole < sizeof(text) ? find(names, text, (size_t)whole) : NULL;
}

/* mpi_x_f08_, mpi_x_f08ts_large_, MPI_File_open_f, mpi_x__, MPI_X … `name` begins behind a P. */
static const struct hook_row *find_fortran(struct hook_names *names, const char *name,
					   enum hook_form *form)
{
	size_t len = strlen(name);

	*form = HOOK_FORM_FORTRAN;
	while (len && name[len - 1] == '_')
		len--;
	bool large = strip(name, &len, "_large");
	if (strip(name, &len, "_f08ts"))
		*form = HOOK_FORM_DESCRIPTORS;
	else if (!strip(name, &len, "_f08") && !large)
		strip(name, &len, "_f");
	return large ? find_large(names, name, len) : find(names, name, len);
}

static const struct hook_row *find_mpi(struct hook_names *names, const char *symbol,
				       enum hook_form *form)
{
	const char *name = symbol;
	const struct hook_row *row;
	char text[96];

	/* Nearly all symbols of all libraries end here. */
	if ((name[0] | 0x20) != 'm' && (name[0] | 0x20) != 'p')
		return NULL;
	if (starts(name, "pmpi"))
		name++;
	if (starts(name, "mpir_")) {
		/* What MPICH's modules call their own: pmpir_x_f08_. */
		if (name == symbol || symbol[0] != 'p')
			return NULL;
		int len = snprintf(text, sizeof(text), "mpi_%s", name + 5);
		if (len < 0 || (size_t)len >= sizeof(text))
			return NULL;
		name = text;
	}
	if (!starts(name, "mpi_"))
		return NULL;
	row = find(names, name, strlen(name));
	if (row && strcmp(row->name, name) == 0) {
		*form = HOOK_FORM_C;
		return row;
	}
	return find_fortran(names, name, form);
}

const struct hook_row *hook_names_find(struct hook_names *names, const char *symbol,
				       enum hook_form *form)
{
	if (names->layer == HOOK_MPI)
		return find_mpi(names, symbol, form);
	*form = HOOK_FORM_C;
	if (!names->count || strncmp(symbol, names->rows[0]->name, names->common) != 0)
		return NULL;
	const struct hook_row *row = find(names, symbol, strlen(symbol));
	return row && strcmp(row->name, symbol) == 0 ? row : NULL;
}
