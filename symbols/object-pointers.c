/* Addresses of code in an object's data. */
#include "symbols/object-parts.h"

#include <string.h>

/* Those that relocations without a symbol write. */
static void relocated(const struct elf_file *file, object_address_fn *each, void *data)
{
	const Elf64_Shdr *section = NULL;
	size_t len;
	Elf64_Rela rela;

	while ((section = elf_file_section(file, SHT_RELA, NULL, section))) {
		const unsigned char *bytes = elf_file_contents(file, section, &len);
		if (!bytes || !(section->sh_flags & SHF_ALLOC))
			continue;
		for (size_t at = 0; at + sizeof(rela) <= len; at += sizeof(rela)) {
			memcpy(&rela, bytes + at, sizeof(rela));
			uint64_t address = (uint64_t)rela.r_addend;
			if (ELF64_R_SYM(rela.r_info) == 0 && elf_file_segment(file, address, PF_X))
				each(data, address);
		}
	}
}

/* Those that stand in a segment as they are: packed relocations (RELR) add to them, too. */
static void written(const struct elf_file *file, const Elf64_Phdr *segment, uint64_t first,
		    uint64_t end, object_address_fn *each, void *data)
{
	size_t len = segment->p_filesz;
	const unsigned char *bytes = elf_file_bytes(file, segment->p_offset, &len);
	size_t at = -segment->p_vaddr % sizeof(uint64_t);
	uint64_t word;

	for (; bytes && at + sizeof(word) <= len; at += sizeof(word)) {
		memcpy(&word, bytes + at, sizeof(word));
		if (word >= first && word < end && elf_file_segment(file, word, PF_X))
			each(data, word);
	}
}

bool object_pointers_in(const struct elf_file *file, object_address_fn *each, void *data)
{
	uint64_t first = UINT64_MAX;
	uint64_t end = 0;

	for (size_t i = 0; i < file->nsegments; i++) {
		const Elf64_Phdr *segment = &file->segments[i];
		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
			continue;
		if (segment->p_vaddr < first)
			first = segment->p_vaddr;
		if (segment->p_vaddr + segment->p_filesz > end)
			end = segment->p_vaddr + segment->p_filesz;
	}
	for (size_t i = 0; i < file->nsegments; i++) {
		const Elf64_Phdr *segment = &file->segments[i];
		/* Where the file is position independent, addresses are relocated, and so lie where can be written. */
		if (segment->p_type == PT_LOAD &&
		    (file->type != ET_DYN || (segment->p_flags & PF_W)))
			written(file, segment, first, end, each, data);
	}
	relocated(file, each, data);
	return file->nsections > 0;
}
