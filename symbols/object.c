#include "symbols/object.h"

#include "base/map.h"
#include "base/sorted.h"
#include "symbols/object-parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#if defined(__x86_64__)
#define NATIVE_IRELATIVE R_X86_64_IRELATIVE
#elif defined(__aarch64__)
#define NATIVE_IRELATIVE R_AARCH64_IRELATIVE
#endif

struct object {
	struct object *next; /* same key in the cache */
	dev_t device;
	ino_t inode;
	off_t size;
	struct timespec changed;
	int error; /* why the file is refused; 0: it is not */
	struct elf_file file;
	struct symbol_set symbols;
	struct frames *frames; /* read when first asked for */
	enum object_names names;
	enum object_libc libc;
	void *attachment;
	void (*release)(void *);
};

struct objects {
	const char *const *dirs;
	size_t ndirs;
	struct map by_file; /* to a list of objects */
};

struct objects *objects_new(const char *const *symbol_dirs, size_t nsymbol_dirs)
{
	struct objects *objects = calloc(1, sizeof(*objects));

	if (objects) {
		objects->dirs = symbol_dirs;
		objects->ndirs = nsymbol_dirs;
	}
	return objects;
}

static void object_free(struct object *object)
{
	if (!object)
		return;
	if (object->release)
		object->release(object->attachment);
	symbol_set_free(&object->symbols);
	if (object->frames)
		free(object->frames->items);
	free(object->frames);
	elf_file_unmap(&object->file);
	free(object);
}

void objects_free(struct objects *objects)
{
	size_t at = 0;
	struct map_slot *slot;

	if (!objects)
		return;
	while ((slot = map_next(&objects->by_file, &at))) {
		struct object *object = slot->value;
		while (object) {
			struct object *next = object->next;
			object_free(object);
			object = next;
		}
	}
	map_free(&objects->by_file);
	free(objects);
}

/* Reads the symbols; a debug file's only when the object has none but what it exports. */
static int read_symbols(struct objects *objects, struct object *object, const char *path)
{
	struct elf_file debug;
	const struct elf_file *file = &object->file;

	ssize_t exported = symbol_set_add(&object->symbols, file, file, SHT_DYNSYM);
	if (exported < 0)
		return -1;
	ssize_t all = symbol_set_add(&object->symbols, file, file, SHT_SYMTAB);
	if (all < 0)
		return -1;
	object->names = all ? OBJECT_ALL_NAMES : exported ? OBJECT_EXPORTED : OBJECT_NO_NAMES;
	if (all)
		return 0;
	if (debug_file_map(&debug, file, path, objects->dirs, objects->ndirs) < 0)
		return errno == ENOMEM ? -1 : 0;
	all = symbol_set_add(&object->symbols, file, &debug, SHT_SYMTAB);
	elf_file_unmap(&debug);
	if (all < 0)
		return -1;
	if (all)
		object->names = OBJECT_DEBUG_NAMES;
	return 0;
}

/* Told by functions behind the streams, which come with any of them, not by the public ones,
 * which another library may define too. */
static enum object_libc find_libc(const struct object *object)
{
	if (object_named(object, "_IO_file_xsputn", NULL) ||
	    object_named(object, "_IO_new_file_xsputn", NULL))
		return OBJECT_GLIBC;
	/* A stripped musl shows no inner function, but its names for gnulib. */
	if (object_named(object, "__stdio_write", NULL) ||
	    (object_named(object, "__freadptrinc", NULL) && object_named(object, "fwrite", NULL)))
		return OBJECT_MUSL;
	return OBJECT_NO_LIBC;
}

/* @return 0 with what the object holds, or the reason for refusing it, in object->error; -1 with
 * errno. */
static int object_load(struct objects *objects, struct object *object, int fd, const char *path)
{
	object->frames = calloc(1, sizeof(*object->frames));
	if (!object->frames)
		return -1;
	if (elf_file_map(&object->file, fd, (size_t)object->size) < 0) {
		if (errno != ENOEXEC)
			return -1;
		object->error = ENOEXEC;
		return 0;
	}
	if (read_symbols(objects, object, path) < 0 || symbol_set_finish(&object->symbols) < 0)
		return -1;
	object->libc = find_libc(object);
	return 0;
}

static bool is_same(const struct object *object, const struct stat *st)
{
	return object->device == st->st_dev && object->inode == st->st_ino &&
	       object->size == st->st_size && object->changed.tv_sec == st->st_ctim.tv_sec &&
	       object->changed.tv_nsec == st->st_ctim.tv_nsec;
}

/* The object of an open file: from the cache, or new. */
static struct object *get(struct objects *objects, int fd, const char *path)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return NULL;
	if (!S_ISREG(st.st_mode)) {
		errno = ENOEXEC;
		return NULL;
	}
	uint64_t key = (uint64_t)st.st_dev << 40 ^ (uint64_t)st.st_ino;
	struct object *first = map_get(&objects->by_file, key);
	for (struct object *object = first; object; object = object->next) {
		if (is_same(object, &st))
			return object;
	}
	struct object *object = calloc(1, sizeof(*object));
	if (!object)
		return NULL;
	object->device = st.st_dev;
	object->inode = st.st_ino;
	object->size = st.st_size;
	object->changed = st.st_ctim;
	object->next = first;
	if (object_load(objects, object, fd, path) < 0 ||
	    map_put(&objects->by_file, key, object) < 0) {
		int error = errno;
		object_free(object);
		errno = error;
		return NULL;
	}
	return object;
}

struct object *objects_get(struct objects *objects, const char *path)
{
	/* Not to wait for a pipe's writer, nor to be given a terminal. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return NULL;
	struct object *object = get(objects, fd, path);
	int error = errno;
	close(fd);
	if (object && object->error) {
		error = object->error;
		object = NULL;
	}
	errno = error;
	return object;
}

const struct object_symbol *object_symbols(const struct object *object, size_t *count)
{
	*count = object->symbols.count;
	return object->symbols.items;
}

size_t object_symbols_up_to(const struct object *object, uint64_t address)
{
	const struct symbol_set *set = &object->symbols;

	return sorted_up_to(set->items, set->count, sizeof(*set->items),
			    offsetof(struct object_symbol, address), address);
}

const struct object_symbol *object_named(const struct object *object, const char *name,
					 const struct object_symbol *previous)
{
	return symbol_set_find(&object->symbols, name, previous);
}

/* The symbol that holds the address: the nearest whose size reaches it, else the nearest if its
 * size is unknown. */
static bool symbol_bounds(const struct object *object, uint64_t address, uint64_t *begin,
			  uint64_t *end)
{
	/* Symbols nest in hand-written code only, and not deep. */
	enum { DEPTH = 32 };
	const struct symbol_set *set = &object->symbols;
	size_t below = object_symbols_up_to(object, address);

	for (size_t i = below; i > 0 && below - i < DEPTH; i--) {
		const struct object_symbol *symbol = &set->items[i - 1];
		if (address - symbol->address < symbol->size) {
			*begin = symbol->address;
			*end = symbol->size < UINT64_MAX - symbol->address
				       ? symbol->address + symbol->size
				       : UINT64_MAX;
			return true;
		}
	}
	if (!below || set->items[below - 1].size)
		return false;
	*begin = set->items[below - 1].address;
	*end = below < set->count ? set->items[below].address : UINT64_MAX;
	return true;
}

bool object_bounds(const struct object *object, uint64_t address, uint64_t *begin, uint64_t *end)
{
	const struct elf_file *file = &object->file;
	struct frames *frames = object->frames;
	const Elf64_Phdr *segment = elf_file_segment(file, address, PF_X);

	if (!segment || (!frames->read && frames_read(frames, file) < 0))
		return false;
	size_t below = sorted_up_to(frames->items, frames->count, sizeof(*frames->items),
				    offsetof(struct frame, begin), address);
	if (below && address < frames->items[below - 1].end) {
		*begin = frames->items[below - 1].begin;
		*end = frames->items[below - 1].end;
		return true;
	}
	if (!symbol_bounds(object, address, begin, end))
		return false;
	/* What has an FDE is another piece; so is what lies in another segment. */
	if (below && frames->items[below - 1].end > *begin)
		*begin = frames->items[below - 1].end;
	if (below < frames->count && frames->items[below].begin < *end)
		*end = frames->items[below].begin;
	if (*end > segment->p_vaddr + segment->p_filesz)
		*end = segment->p_vaddr + segment->p_filesz;
	return true;
}

bool object_frame(const struct object *object, size_t n, uint64_t *begin, uint64_t *end)
{
	struct frames *frames = object->frames;

	if ((!frames->read && frames_read(frames, &object->file) < 0) || n >= frames->count)
		return false;
	*begin = frames->items[n].begin;
	*end = frames->items[n].end;
	return true;
}

bool object_pointers(const struct object *object, object_address_fn *each, void *data)
{
	return object_pointers_in(&object->file, each, data);
}

static const unsigned char *bytes_at(const struct object *object, uint64_t address, uint32_t flags,
				     size_t *len)
{
	const Elf64_Phdr *segment = elf_file_segment(&object->file, address, flags);

	if (!segment)
		return NULL;
	uint64_t into = address - segment->p_vaddr;
	*len = segment->p_filesz - into;
	return elf_file_bytes(&object->file, segment->p_offset + into, len);
}

const unsigned char *object_code(const struct object *object, uint64_t address, size_t *len)
{
	return bytes_at(object, address, PF_X, len);
}

const unsigned char *object_data(const struct object *object, uint64_t address, size_t *len)
{
	return bytes_at(object, address, PF_R, len);
}

void object_variables(const struct object *object, const char *const *prefixes,
		      object_variable_fn *each, void *data)
{
	object_variables_in(&object->file, prefixes, each, data);
}

bool object_has_text(const struct object *object, const char *text)
{
	return object_text_in(&object->file, text);
}

uint64_t object_address_of(const struct object *object, uint64_t offset)
{
	const struct elf_file *file = &object->file;
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	/* Where segments are not aligned in the file, one page of it is mapped for two of them. */
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < file->nsegments; i++) {
			const Elf64_Phdr *segment = &file->segments[i];
			uint64_t first = segment->p_offset & ~(page - 1);
			if (segment->p_type == PT_LOAD && segment->p_filesz && offset >= first &&
			    offset - first < segment->p_filesz + (segment->p_offset - first) &&
			    (pass || (segment->p_flags & PF_X)))
				return segment->p_vaddr + (offset - segment->p_offset);
		}
	}
	return UINT64_MAX;
}

bool object_irelative(const struct object *object, size_t *at, uint64_t *resolver, uint64_t *slot)
{
	const struct elf_file *file = &object->file;
	const Elf64_Shdr *section = NULL;
	size_t passed = 0; /* relocations of the sections before */
	size_t len;
	Elf64_Rela rela;

	while ((section = elf_file_section(file, SHT_RELA, NULL, section))) {
		const unsigned char *bytes = elf_file_contents(file, section, &len);
		/* In the file only, and not loaded: what the linker was told to keep. */
		if (!bytes || !(section->sh_flags & SHF_ALLOC))
			continue;
		size_t count = len / sizeof(rela);
		for (; *at - passed < count; ++*at) {
			memcpy(&rela, bytes + (*at - passed) * sizeof(rela), sizeof(rela));
			if (ELF64_R_TYPE(rela.r_info) != NATIVE_IRELATIVE)
				continue;
			*resolver = (uint64_t)rela.r_addend;
			*slot = rela.r_offset;
			++*at;
			return true;
		}
		passed += count;
	}
	return false;
}

enum object_names object_names(const struct object *object)
{
	return object->names;
}

enum object_libc object_libc(const struct object *object)
{
	return object->libc;
}

bool object_has_c_start(const struct object *object)
{
	const struct elf_file *file = &object->file;

	return !file->nsections || elf_file_section(file, SHT_INIT_ARRAY, NULL, NULL) ||
	       elf_file_section(file, SHT_PROGBITS, ".init", NULL);
}

bool object_is_position_independent(const struct object *object)
{
	return object->file.type == ET_DYN;
}

void *object_attachment(const struct object *object)
{
	return object->attachment;
}

void object_attach(struct object *object, void *data, void (*release)(void *))
{
	if (object->release)
		object->release(object->attachment);
	object->attachment = data;
	object->release = release;
}

bool object_landing_pads(const struct object *object, uint64_t address, object_address_fn *each,
			 void *data)
{
	struct frames *frames = object->frames;
	size_t len = 0;

	if (!frames->read && frames_read(frames, &object->file) < 0)
		return false;
	size_t below = sorted_up_to(frames->items, frames->count, sizeof(*frames->items),
				    offsetof(struct frame, begin), address);
	const struct frame *frame = below ? &frames->items[below - 1] : NULL;
	/* Without an entry there exceptions do not pass. */
	if (!frame || address >= frame->end || !frame->lsda)
		return true;
	if (frame->lsda == FRAME_LSDA_UNKNOWN)
		return false;
	const unsigned char *table = object_data(object, frame->lsda, &len);
	return table && frame_landing_pads(frame, table, len, each, data);
}
