#include "symbols/object-parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A symbol table that is being read. */
struct table {
	const struct elf_file *object; /* whose code it is */
	const unsigned char *symbols;
	size_t count;
	const char *strings;
	size_t nstrings;
};

/* @return the length of the name without its version, 0 if it is none. */
static size_t name_len(const struct table *table, const Elf64_Sym *symbol)
{
	if (symbol->st_name >= table->nstrings)
		return 0;
	const char *name = table->strings + symbol->st_name;
	size_t len = strnlen(name, table->nstrings - symbol->st_name);
	if (len == table->nstrings - symbol->st_name)
		return 0;
	const char *version = len > 1 ? memchr(name + 1, '@', len - 1) : NULL;
	return version ? (size_t)(version - name) : len;
}

/* Reads the symbol `i`. @return the length of its name, 0: no function that lies in the object. */
static size_t read_symbol(const struct table *table, size_t i, Elf64_Sym *symbol)
{
	memcpy(symbol, table->symbols + i * sizeof(*symbol), sizeof(*symbol));
	unsigned type = ELF64_ST_TYPE(symbol->st_info);
	if ((type != STT_FUNC && type != STT_GNU_IFUNC) || symbol->st_shndx == SHN_UNDEF ||
	    symbol->st_shndx == SHN_ABS || symbol->st_shndx == SHN_COMMON ||
	    !elf_file_segment(table->object, symbol->st_value, PF_X))
		return 0;
	return name_len(table, symbol);
}

static bool find_table(struct table *table, const struct elf_file *file, const Elf64_Shdr *section)
{
	size_t len;

	if (section->sh_link >= file->nsections)
		return false;
	table->symbols = elf_file_contents(file, section, &len);
	if (!table->symbols)
		return false;
	table->count = len / sizeof(Elf64_Sym);
	const Elf64_Shdr *strings = &file->sections[section->sh_link];
	table->strings = (const char *)elf_file_contents(file, strings, &table->nstrings);
	return table->strings && strings->sh_type == SHT_STRTAB;
}

/* Names are kept in blocks of this size, longer ones in blocks of their own. */
#define NAMES_BLOCK 65536

/* @return `len` bytes for a name, NULL when out of memory. */
static char *new_name(struct symbol_set *set, size_t len)
{
	if (len > set->names_left) {
		size_t size = len > NAMES_BLOCK ? len : NAMES_BLOCK;
		char **names = reallocarray(set->names, set->nnames + 1, sizeof(*names));
		if (!names)
			return NULL;
		set->names = names;
		names[set->nnames] = malloc(size);
		if (!names[set->nnames])
			return NULL;
		set->names_at = names[set->nnames++];
		set->names_left = size;
	}
	char *name = set->names_at;
	set->names_at += len;
	set->names_left -= len;
	return name;
}

/* The names are copied: tables are touched only here, so a file that is overwritten later hurts
 * nobody, and a debug file need not stay mapped. */
static ssize_t add_table(struct symbol_set *set, const struct table *table)
{
	Elf64_Sym symbol;
	size_t before = set->count;
	size_t room = table->count;

	if (!room)
		return 0;
	/* Most tables hold functions, so room for all is not too much. */
	struct object_symbol *items =
		room < UINT32_MAX - 1 - before
			? reallocarray(set->items, before + room, sizeof(*items))
			: NULL;
	if (!items) {
		errno = ENOMEM;
		return -1;
	}
	set->items = items;
	for (size_t i = 0; i < table->count; i++) {
		size_t len = read_symbol(table, i, &symbol);
		if (!len)
			continue;
		char *name = new_name(set, len + 1);
		if (!name) {
			errno = ENOMEM;
			return -1;
		}
		memcpy(name, table->strings + symbol.st_name, len);
		name[len] = '\0';
		items[set->count++] = (struct object_symbol){
			.name = name,
			.address = symbol.st_value,
			.size = symbol.st_size,
			.ifunc = ELF64_ST_TYPE(symbol.st_info) == STT_GNU_IFUNC,
			.local = ELF64_ST_BIND(symbol.st_info) == STB_LOCAL,
		};
	}
	return (ssize_t)(set->count - before);
}

ssize_t symbol_set_add(struct symbol_set *set, const struct elf_file *object,
		       const struct elf_file *tables, uint32_t type)
{
	ssize_t total = 0;
	const Elf64_Shdr *section = NULL;
	struct table table = {.object = object};

	while ((section = elf_file_section(tables, type, NULL, section))) {
		if (!find_table(&table, tables, section))
			continue;
		ssize_t added = add_table(set, &table);
		if (added < 0)
			return -1;
		total += added;
	}
	return total;
}

static int compare_names(const void *a, const void *b)
{
	const struct object_symbol *x = a;
	const struct object_symbol *y = b;
	int order = strcmp(x->name, y->name);

	return order ? order : x->local - y->local;
}

static int compare_bindings(const void *a, const void *b)
{
	const struct object_symbol *x = a;
	const struct object_symbol *y = b;

	return x->local != y->local ? x->local - y->local : strcmp(x->name, y->name);
}

/* Few enough to stay in the cache. */
#define SORT_BITS 11
#define SORT_ALL  (1u << SORT_BITS)

/* One round of a radix sort: by SORT_BITS bits of the address. */
static void sort_round(struct object_symbol *to, const struct object_symbol *from, size_t count,
		       unsigned shift)
{
	size_t starts[SORT_ALL] = {0};
	size_t at = 0;

	for (size_t i = 0; i < count; i++)
		starts[from[i].address >> shift & (SORT_ALL - 1)]++;
	for (size_t i = 0; i < SORT_ALL; i++) {
		size_t n = starts[i];
		starts[i] = at;
		at += n;
	}
	for (size_t i = 0; i < count; i++)
		to[starts[from[i].address >> shift & (SORT_ALL - 1)]++] = from[i];
}

static int compare_addresses(const void *a, const void *b)
{
	const struct object_symbol *x = a;
	const struct object_symbol *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

/* Large tables are most of what an object costs at start-up: a few rounds over them are much
 * cheaper than comparing. */
static int sort_by_address(struct symbol_set *set)
{
	uint64_t all = 0;

	if (set->count < SORT_ALL) {
		qsort(set->items, set->count, sizeof(*set->items), compare_addresses);
		return 0;
	}
	struct object_symbol *other = reallocarray(NULL, set->count, sizeof(*other));
	if (!other)
		return -1;
	for (size_t i = 0; i < set->count; i++)
		all |= set->items[i].address;
	for (unsigned shift = 0; shift < 64 && all >> shift; shift += SORT_BITS) {
		struct object_symbol *from = set->items;
		sort_round(other, from, set->count, shift);
		set->items = other;
		other = from;
	}
	free(other);
	return 0;
}

/* Sorts the symbols at each address: they are few, and mostly in order. */
static void sort_aliases(struct symbol_set *set, int (*compare)(const void *, const void *))
{
	/* But a damaged file may have all of them at one. */
	enum { FEW = 32 };

	for (size_t i = 0; i < set->count;) {
		struct object_symbol *first = &set->items[i];
		size_t n = 1;
		while (i + n < set->count && first[n].address == first->address)
			n++;
		if (n > FEW)
			qsort(first, n, sizeof(*first), compare);
		for (size_t k = 1; k < n && n <= FEW; k++) {
			const struct object_symbol symbol = first[k];
			size_t at = k;
			for (; at > 0 && compare(&first[at - 1], &symbol) > 0; at--)
				first[at] = first[at - 1];
			first[at] = symbol;
		}
		i += n;
	}
}

/* The tables overlap (.dynsym is part of .symtab), and one name may be of two versions or both
 * local and global: it is kept once for each address. */
static void drop_doubles(struct symbol_set *set)
{
	struct object_symbol *last = NULL;
	size_t kept = 0;

	for (size_t i = 0; i < set->count; i++) {
		const struct object_symbol *symbol = &set->items[i];
		if (last && last->address == symbol->address &&
		    strcmp(last->name, symbol->name) == 0) {
			if (symbol->size > last->size)
				last->size = symbol->size;
			continue;
		}
		last = &set->items[kept++];
		*last = *symbol;
	}
	set->count = kept;
}

/* By eight bytes: names of C++ are long. */
static uint32_t hash(const char *name)
{
	size_t len = strlen(name);
	uint64_t h = len;
	uint64_t word;

	for (; len; name += sizeof(word)) {
		size_t n = len < sizeof(word) ? len : sizeof(word);
		word = 0;
		memcpy(&word, name, n);
		h = (h ^ word) * 0x9e3779b97f4a7c15U;
		h ^= h >> 32;
		len -= n;
	}
	return (uint32_t)h;
}

int symbol_set_finish(struct symbol_set *set)
{
	if (!set->count)
		return 0;
	if (sort_by_address(set) < 0)
		return -1;
	sort_aliases(set, compare_names);
	drop_doubles(set);
	sort_aliases(set, compare_bindings);
	size_t nheads = 16;
	while (nheads < set->count)
		nheads *= 2;
	set->heads = calloc(nheads, sizeof(*set->heads));
	set->nexts = calloc(set->count, sizeof(*set->nexts));
	if (!set->heads || !set->nexts)
		return -1;
	set->nheads = nheads;
	/* From the end, so that a chain goes by address. */
	for (size_t i = set->count; i-- > 0;) {
		uint32_t *head = &set->heads[hash(set->items[i].name) & (nheads - 1)];
		set->nexts[i] = *head;
		*head = (uint32_t)i + 1;
	}
	return 0;
}

void symbol_set_free(struct symbol_set *set)
{
	for (size_t i = 0; i < set->nnames; i++)
		free(set->names[i]);
	free(set->names);
	free(set->items);
	free(set->heads);
	free(set->nexts);
	*set = (struct symbol_set){0};
}

const struct object_symbol *symbol_set_find(const struct symbol_set *set, const char *name,
					    const struct object_symbol *previous)
{
	if (!set->nheads)
		return NULL;
	uint32_t i = previous ? set->nexts[previous - set->items]
			      : set->heads[hash(name) & (set->nheads - 1)];
	while (i && strcmp(set->items[i - 1].name, name) != 0)
		i = set->nexts[i - 1];
	return i ? &set->items[i - 1] : NULL;
}
