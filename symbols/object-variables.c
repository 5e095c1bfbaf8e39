/* What an object's symbol tables say besides functions, and what texts it holds. */
#include "symbols/object-parts.h"

#include <string.h>

/* Calls `each` for the variables of one table whose names begin with one of the prefixes. */
static void walk_table(const struct elf_file *file, const Elf64_Shdr *section,
		       const char *const *prefixes, object_variable_fn *each, void *data)
{
	size_t len;
	size_t nstrings;
	Elf64_Sym symbol;

	if (section->sh_link >= file->nsections)
		return;
	const unsigned char *symbols = elf_file_contents(file, section, &len);
	const char *strings =
		(const char *)elf_file_contents(file, &file->sections[section->sh_link], &nstrings);
	for (size_t i = 0; symbols && strings && i < len / sizeof(symbol); i++) {
		memcpy(&symbol, symbols + i * sizeof(symbol), sizeof(symbol));
		unsigned type = ELF64_ST_TYPE(symbol.st_info);
		if ((type != STT_OBJECT && type != STT_COMMON) || symbol.st_shndx == SHN_UNDEF ||
		    symbol.st_name >= nstrings ||
		    !memchr(strings + symbol.st_name, '\0', nstrings - symbol.st_name))
			continue;
		const char *name = strings + symbol.st_name;
		for (const char *const *p = prefixes; *p; p++) {
			if (strncmp(name, *p, strlen(*p)) == 0)
				each(data, name, symbol.st_value);
		}
	}
}

void object_variables_in(const struct elf_file *file, const char *const *prefixes,
			 object_variable_fn *each, void *data)
{
	static const uint32_t types[] = {SHT_DYNSYM, SHT_SYMTAB};

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		const Elf64_Shdr *section = NULL;
		while ((section = elf_file_section(file, types[i], NULL, section)))
			walk_table(file, section, prefixes, each, data);
	}
}

bool object_text_in(const struct elf_file *file, const char *text)
{
	for (size_t i = 0; i < file->nsegments; i++) {
		const Elf64_Phdr *segment = &file->segments[i];
		size_t len = segment->p_filesz;
		if (segment->p_type != PT_LOAD || !len)
			continue;
		const unsigned char *bytes = elf_file_bytes(file, segment->p_offset, &len);
		if (bytes && memmem(bytes, len, text, strlen(text)))
			return true;
	}
	return false;
}
