/* What the parts of object.h share; for symbols/object*.c only. */
#ifndef SYMBOLS_OBJECT_PARTS_H
#define SYMBOLS_OBJECT_PARTS_H

#include "symbols/object.h"

#include <elf.h>

#include <sys/types.h>

/* A mapped ELF file of this machine. Nothing in it is trusted: everything that points into the file
 * is cut at the file's end. */
struct elf_file {
	const unsigned char *bytes;
	size_t size;
	unsigned type; /* ET_EXEC, ET_DYN, … */
	Elf64_Phdr *segments;
	size_t nsegments;
	Elf64_Shdr *sections;
	size_t nsections;
	size_t section_names; /* the section that holds their names */
};

/* Maps the file of a descriptor, which may be closed afterwards.
 * @return 0, or -1 with errno (ENOEXEC: no ELF file of this machine). */
int elf_file_map(struct elf_file *file, int fd, size_t size);
void elf_file_unmap(struct elf_file *file);

/* @return the bytes at an offset, `*len` of them at most to the file's end; NULL: none. */
const unsigned char *elf_file_bytes(const struct elf_file *file, uint64_t offset, size_t *len);

/* @return the contents of a section; NULL: none (also of sections without bytes in the file). */
const unsigned char *elf_file_contents(const struct elf_file *file, const Elf64_Shdr *section,
				       size_t *len);

/* @return the first section of this type and name (NULL: any) behind `previous` (NULL: the
 * first); NULL: no more. */
const Elf64_Shdr *elf_file_section(const struct elf_file *file, uint32_t type, const char *name,
				   const Elf64_Shdr *previous);

/* @return the PT_LOAD that brings the byte at `address` from the file, with one of these PF_ flags;
 * NULL: none. */
const Elf64_Phdr *elf_file_segment(const struct elf_file *file, uint64_t address, uint32_t flags);

/* @return the build-id, NULL: none. */
const unsigned char *elf_file_build_id(const struct elf_file *file, size_t *len);

/* object-variables.c: see object_variables and object_has_text. */
void object_variables_in(const struct elf_file *file, const char *const *prefixes,
			 object_variable_fn *each, void *data);
bool object_text_in(const struct elf_file *file, const char *text);

/* object-pointers.c: see object_pointers. */
bool object_pointers_in(const struct elf_file *file, object_address_fn *each, void *data);

/* The function symbols of an object. */
struct symbol_set {
	struct object_symbol *items;
	size_t count;
	char **names; /* blocks that hold the names */
	size_t nnames;
	char *names_at; /* the free rest of the last one */
	size_t names_left;
	uint32_t *heads; /* by hash of the name: index + 1 */
	uint32_t *nexts;
	size_t nheads; /* a power of two, or 0 */
};

/* Adds the functions of the tables of one type (SHT_SYMTAB, SHT_DYNSYM) in `tables`, which is the
 * object's file or a debug file of it.
 * @return how many, -1 with errno ENOMEM. */
ssize_t symbol_set_add(struct symbol_set *set, const struct elf_file *object,
		       const struct elf_file *tables, uint32_t type);

/* Sorts, drops doubles and hashes: done once, after the last addition. @return 0, or -1 with
 * errno ENOMEM. */
int symbol_set_finish(struct symbol_set *set);
void symbol_set_free(struct symbol_set *set);

const struct object_symbol *symbol_set_find(const struct symbol_set *set, const char *name,
					    const struct object_symbol *previous);

/* A frame description entry: code that .eh_frame knows to be one piece. */
struct frame {
	uint64_t begin;
	uint64_t end;
	uint64_t lsda; /* address of its table of landing pads; 0: none */
};

#define FRAME_LSDA_UNKNOWN UINT64_MAX

struct frames {
	struct frame *items; /* by address */
	size_t count;
	bool read;
};

/* Reads .eh_frame. @return 0, or -1 with errno ENOMEM. */
int frames_read(struct frames *frames, const struct elf_file *file);

/* Calls `each` for the landing pads of a frame, whose table is given. @return false: not understood. */
bool frame_landing_pads(const struct frame *frame, const unsigned char *table, size_t len,
			object_address_fn *each, void *data);

/* Looks for the separate debug file of the object that was opened by `path`.
 * @return 0 with the file mapped, or -1 with errno (ENOENT: there is none). */
int debug_file_map(struct elf_file *debug, const struct elf_file *object, const char *path,
		   const char *const *dirs, size_t ndirs);

#endif
