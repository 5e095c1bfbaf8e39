/* ELF files: their functions, where these begin and end, and their code. */
#ifndef SYMBOLS_OBJECT_H
#define SYMBOLS_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Files are parsed once and kept: a thousand processes share one libc. */
struct objects;

/* An ELF file for the native machine. Addresses are those of the file (virtual addresses before
 * the load bias). */
struct object;

/* A function symbol. Aliases at one address are neighbours. */
struct object_symbol {
	const char *name; /* without a version; the object's */
	uint64_t address;
	uint64_t size; /* 0: unknown */
	bool ifunc;    /* the address is the resolver's */
	bool local;
};

enum object_names {
	OBJECT_NO_NAMES,    /* stripped, and no debug file */
	OBJECT_EXPORTED,    /* .dynsym only */
	OBJECT_ALL_NAMES,   /* .symtab */
	OBJECT_DEBUG_NAMES, /* .symtab of a separate debug file */
};

/* Which C library's streams an object has: their FILE structures differ. */
enum object_libc { OBJECT_NO_LIBC, OBJECT_GLIBC, OBJECT_MUSL };

/* @param symbol_dirs  where separate debug files are looked for besides /usr/lib/debug, borrowed;
 * may be NULL when there are none.
 * @return NULL with errno ENOMEM. */
struct objects *objects_new(const char *const *symbol_dirs, size_t nsymbol_dirs);
void objects_free(struct objects *objects);

/* @param path  how the file is reached from here, e.g. /proc/PID/map_files/… or /proc/PID/root/….
 * @return the object, the cache's: known by device, inode, size and time of change; NULL with
 * errno (ENOEXEC: no ELF file of this machine). A damaged file is refused or understood as far as
 * it goes, never a crash. */
struct object *objects_get(struct objects *objects, const char *path);

/* All function symbols, by address; of one address the global ones first. */
const struct object_symbol *object_symbols(const struct object *object, size_t *count);

/* @return how many of these symbols begin at or below the address. */
size_t object_symbols_up_to(const struct object *object, uint64_t address);

/* @return the first symbol of this name by address, or the next one after `previous`; NULL: no
 * more. Fast. */
const struct object_symbol *object_named(const struct object *object, const char *name,
					 const struct object_symbol *previous);

/* A variable: its name, with a version perhaps, valid for the call, and its address. */
typedef void object_variable_fn(void *data, const char *name, uint64_t address);

/* Calls `each` for the variables that the file's own tables name and whose names begin with one of the
 * prefixes (up to a NULL), in no order; some twice. */
void object_variables(const struct object *object, const char *const *prefixes,
		      object_variable_fn *each, void *data);

/* @return whether the text stands anywhere in what is loaded of the file. Slow. */
bool object_has_text(const struct object *object, const char *text);

/* The code of the function that holds `address`: by its FDE (.eh_frame), else by its symbol's
 * size, else up to the next symbol. An FDE that begins inside a symbol (a .cold part) is its own
 * piece.
 * @return false: unknown. */
bool object_bounds(const struct object *object, uint64_t address, uint64_t *begin, uint64_t *end);

/* @return whether .eh_frame has an entry `n`, of all by address: the piece of code that it is about. */
bool object_frame(const struct object *object, size_t n, uint64_t *begin, uint64_t *end);

typedef void object_address_fn(void *data, uint64_t address);

/* Calls `each` for the landing pads of the code that holds `address`, which may lie in other pieces.
 * @return false: they are not known. */
bool object_landing_pads(const struct object *object, uint64_t address, object_address_fn *each,
			 void *data);

/* Calls `each` for the addresses of code that stand in the file's data, or are written there when it is relocated;
 * for numbers that look like one, too.
 * @return false: there may be more, the file does not say where. */
bool object_pointers(const struct object *object, object_address_fn *each, void *data);

/* @return the file's bytes at `address`, `*len` of them up to the segment's end; NULL: no code of
 * the file lies there. */
const unsigned char *object_code(const struct object *object, uint64_t address, size_t *len);

/* Same for all that is loaded from the file and can be read, as jump tables; what is relocated
 * has its value from the file. */
const unsigned char *object_data(const struct object *object, uint64_t address, size_t *len);

/* @return the address at which the byte at file offset `offset` is loaded (less the bias), -1:
 * none of a segment. Offsets of whole pages that are mapped with a segment belong to it; where
 * two share a page, to the one with code. */
uint64_t object_address_of(const struct object *object, uint64_t offset);

/* The slots that IRELATIVE relocations fill with what the resolver of an IFUNC chose: `*resolver`
 * and the slot's address. `*at` starts at 0.
 * @return false at the end. */
bool object_irelative(const struct object *object, size_t *at, uint64_t *resolver, uint64_t *slot);

enum object_names object_names(const struct object *object);
enum object_libc object_libc(const struct object *object);

/* @return whether the file may have a C library in it: its start-up code is there, or nothing tells of sections.
 * Go's own programs have none, nor has what is written without a library. */
bool object_has_c_start(const struct object *object);
bool object_is_position_independent(const struct object *object);

/* Room for what others derive from an object and want to keep with it (plans of its functions);
 * freed by `release` with the cache, or when something else is attached. */
void *object_attachment(const struct object *object);
void object_attach(struct object *object, void *data, void (*release)(void *));

#endif
