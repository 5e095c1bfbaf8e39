/* Variables by name. They are asked for seldom, and of few objects: the tables are gone through each time. */
#include "symbols/object-parts.h"

#include <string.h>

struct search {
	const char *prefix;
	void (*each)(const char *name, uint64_t address, void *data);
	void *data;
};

static void look(const struct search *s, const Elf64_Sym *symbol, const char *strings,
		 size_t nstrings)
{
	char name[128];

	if (ELF64_ST_TYPE(symbol->st_info) != STT_OBJECT || symbol->st_shndx == SHN_UNDEF ||
	    symbol->st_shndx == SHN_ABS || symbol->st_shndx == SHN_COMMON ||
	    symbol->st_name >= nstrings)
		return;
	/* A copy, since a static program's own table may lack the end of its last name. */
	const char *text = strings + symbol->st_name;
	size_t len = strnlen(text, nstrings - symbol->st_name);
	if (len >= sizeof(name) || strncmp(text, s->prefix, strlen(s->prefix)) != 0)
		return;
	memcpy(name, text, len);
	name[len] = '\0';
	s->each(name, symbol->st_value, s->data);
}

static void look_in_tables(const struct search *s, const struct elf_file *file, uint32_t type)
{
	const Elf64_Shdr *section = NULL;
	Elf64_Sym symbol;
	size_t len;
	size_t nstrings;

	while ((section = elf_file_section(file, type, NULL, section))) {
		const unsigned char *symbols = elf_file_contents(file, section, &len);
		if (!symbols || section->sh_link >= file->nsections)
			continue;
		const char *strings = (const char *)elf_file_contents(
			file, &file->sections[section->sh_link], &nstrings);
		for (size_t i = 0; strings && i < len / sizeof(symbol); i++) {
			memcpy(&symbol, symbols + i * sizeof(symbol), sizeof(symbol));
			look(s, &symbol, strings, nstrings);
		}
	}
}

void elf_file_variables(const struct elf_file *file, const char *prefix,
			void (*each)(const char *name, uint64_t address, void *data), void *data)
{
	const struct search s = {prefix, each, data};

	look_in_tables(&s, file, SHT_DYNSYM);
	look_in_tables(&s, file, SHT_SYMTAB);
}
