#include "symbols/object-parts.h"

#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>

#include <sys/mman.h>

#if defined(__x86_64__)
#define NATIVE_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define NATIVE_MACHINE EM_AARCH64
#else
#error "which ELF machine is this?"
#endif

const unsigned char *elf_file_bytes(const struct elf_file *file, uint64_t offset, size_t *len)
{
	if (offset >= file->size)
		return NULL;
	if (*len > file->size - offset)
		*len = file->size - offset;
	return *len ? file->bytes + offset : NULL;
}

const unsigned char *elf_file_contents(const struct elf_file *file, const Elf64_Shdr *section,
				       size_t *len)
{
	if (section->sh_type == SHT_NOBITS || (section->sh_flags & SHF_COMPRESSED))
		return NULL;
	*len = section->sh_size;
	return elf_file_bytes(file, section->sh_offset, len);
}

static bool is_named(const struct elf_file *file, const Elf64_Shdr *section, const char *name)
{
	size_t len;
	size_t want = strlen(name) + 1;

	if (file->section_names >= file->nsections)
		return false;
	const unsigned char *names =
		elf_file_contents(file, &file->sections[file->section_names], &len);
	return names && section->sh_name < len && len - section->sh_name >= want &&
	       memcmp(names + section->sh_name, name, want) == 0;
}

const Elf64_Shdr *elf_file_section(const struct elf_file *file, uint32_t type, const char *name,
				   const Elf64_Shdr *previous)
{
	size_t i = previous ? (size_t)(previous - file->sections) + 1 : 0;

	for (; i < file->nsections; i++) {
		const Elf64_Shdr *section = &file->sections[i];
		if (section->sh_type == type && (!name || is_named(file, section, name)))
			return section;
	}
	return NULL;
}

const Elf64_Phdr *elf_file_segment(const struct elf_file *file, uint64_t address, uint32_t flags)
{
	for (size_t i = 0; i < file->nsegments; i++) {
		const Elf64_Phdr *segment = &file->segments[i];
		if (segment->p_type == PT_LOAD && (segment->p_flags & flags) &&
		    address >= segment->p_vaddr && address - segment->p_vaddr < segment->p_filesz)
			return segment;
	}
	return NULL;
}

static const unsigned char *note_build_id(const struct elf_file *file, uint64_t offset,
					  uint64_t size, size_t *len)
{
	size_t left = size;
	const unsigned char *at = elf_file_bytes(file, offset, &left);
	Elf64_Nhdr note;

	while (at && left >= sizeof(note)) {
		memcpy(&note, at, sizeof(note));
		size_t name = ((size_t)note.n_namesz + 3) & ~(size_t)3;
		size_t whole = sizeof(note) + name + (((size_t)note.n_descsz + 3) & ~(size_t)3);
		if (whole > left)
			return NULL;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && note.n_descsz &&
		    memcmp(at + sizeof(note), "GNU", 4) == 0) {
			*len = note.n_descsz;
			return at + sizeof(note) + name;
		}
		at += whole;
		left -= whole;
	}
	return NULL;
}

const unsigned char *elf_file_build_id(const struct elf_file *file, size_t *len)
{
	const unsigned char *id = NULL;
	const Elf64_Shdr *section = NULL;

	/* A debug file keeps the section; its segments may point anywhere. */
	while (!id && (section = elf_file_section(file, SHT_NOTE, NULL, section)))
		id = note_build_id(file, section->sh_offset, section->sh_size, len);
	for (size_t i = 0; !id && i < file->nsegments; i++) {
		if (file->segments[i].p_type == PT_NOTE)
			id = note_build_id(file, file->segments[i].p_offset,
					   file->segments[i].p_filesz, len);
	}
	return id;
}

/* A segment is what the kernel would map of it: no more than the file has. */
static void cut(const struct elf_file *file, Elf64_Phdr *segment)
{
	if (segment->p_offset >= file->size)
		segment->p_filesz = 0;
	else if (segment->p_filesz > file->size - segment->p_offset)
		segment->p_filesz = file->size - segment->p_offset;
	if (segment->p_filesz > UINT64_MAX - segment->p_vaddr)
		segment->p_filesz = 0;
}

/* Copies the headers, so that libelf's handle need not live on. */
static int read_headers(struct elf_file *file, Elf *elf)
{
	size_t count;
	GElf_Phdr segment;
	GElf_Shdr shdr;

	if (elf_getphdrnum(elf, &count) == 0 && count) {
		file->segments = calloc(count, sizeof(*file->segments));
		if (!file->segments)
			return -1;
		for (size_t i = 0; i < count && gelf_getphdr(elf, (int)i, &segment); i++) {
			cut(file, &segment);
			file->segments[file->nsegments++] = segment;
		}
	}
	if (elf_getshdrnum(elf, &count) == 0 && count) {
		file->sections = calloc(count, sizeof(*file->sections));
		if (!file->sections)
			return -1;
		/* Indices are links: a header that cannot be read stays, as SHT_NULL. */
		for (size_t i = 0; i < count; i++) {
			Elf_Scn *section = elf_getscn(elf, i);
			if (section && gelf_getshdr(section, &shdr))
				file->sections[i] = shdr;
		}
		file->nsections = count;
	}
	if (elf_getshdrstrndx(elf, &file->section_names) < 0)
		file->section_names = file->nsections;
	return 0;
}

static int parse(struct elf_file *file)
{
	GElf_Ehdr header;

	errno = ENOEXEC;
	if (elf_version(EV_CURRENT) == EV_NONE)
		return -1;
	/* Copied before libelf writes anything: it reads the mapping only. */
	Elf *elf = elf_memory((char *)file->bytes, file->size);
	if (!elf)
		return -1;
	int result = -1;
	if (elf_kind(elf) == ELF_K_ELF && gelf_getclass(elf) == ELFCLASS64 &&
	    gelf_getehdr(elf, &header) && header.e_machine == NATIVE_MACHINE &&
	    header.e_ident[EI_DATA] == ELFDATA2LSB &&
	    (header.e_type == ET_EXEC || header.e_type == ET_DYN)) {
		file->type = header.e_type;
		result = read_headers(file, elf);
	}
	elf_end(elf);
	return result;
}

int elf_file_map(struct elf_file *file, int fd, size_t size)
{
	*file = (struct elf_file){.size = size};
	if (size < sizeof(Elf64_Ehdr)) {
		errno = ENOEXEC;
		return -1;
	}
	void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return -1;
	file->bytes = bytes;
	if (parse(file) < 0) {
		int error = errno;
		elf_file_unmap(file);
		errno = error;
		return -1;
	}
	return 0;
}

void elf_file_unmap(struct elf_file *file)
{
	if (file->bytes)
		munmap((void *)file->bytes, file->size);
	free(file->segments);
	free(file->sections);
	*file = (struct elf_file){0};
}
