/* What an ELF file's symbols, bounds and code are, against readelf; separate debug files; damage.
 */
#include "tests/unit/test_object.h"

#include <inttypes.h>

#define LIBC    "/lib/x86_64-linux-gnu/libc.so.6"
#define MUSL    "/lib/ld-musl-x86_64.so.1"
#define FORTRAN "/usr/lib/x86_64-linux-gnu/libgfortran.so.5"

__attribute__((format(printf, 2, 3))) static FILE *ask(char *line, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(line, 512, format, args);
	va_end(args);
	FILE *f = popen(line, "re"); // NOLINT(cert-env33-c)
	assert_non_null(f);
	return f;
}

static const struct object_symbol *find(const struct object *object, const char *name,
					uint64_t address)
{
	const struct object_symbol *symbol = NULL;

	while ((symbol = object_named(object, name, symbol)) && symbol->address != address)
		;
	return symbol;
}

/* Every function that readelf lists is there as it says, and (unless names came from elsewhere)
 * no other. */
static size_t compare_symbols(const struct object *object, const char *path)
{
	char line[4096];
	char type[16];
	char bind[16];
	char section[16];
	char name[2048];
	char size[32];
	uint64_t address;
	size_t count;
	size_t same = 0;
	const struct object_symbol *symbols = object_symbols(object, &count);
	bool *seen = calloc(count + 1, sizeof(*seen));
	FILE *f = ask(line, "LC_ALL=C readelf -wN -W -s %s 2>/dev/null", path);

	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, " %*d: %" SCNx64 " %31s %15s %15s %*s %15s %2047s", &address, size,
			   type, bind, section, name) != 6 ||
		    (strcmp(type, "FUNC") != 0 && strcmp(type, "IFUNC") != 0) ||
		    strcmp(section, "UND") == 0 || strcmp(section, "ABS") == 0)
			continue;
		name[1 + strcspn(name + 1, "@")] = '\0';
		const struct object_symbol *symbol = find(object, name, address);
		if (!symbol)
			print_error("%s: no %s at %" PRIx64 "\n", path, name, address);
		assert_non_null(symbol);
		if (!symbol)
			break;
		assert_true(symbol->size >= strtoull(size, NULL, 0));
		assert_int_equal(symbol->ifunc, type[0] == 'I');
		/* A name that is both is the global one. */
		assert_true(!symbol->local || strcmp(bind, "LOCAL") == 0);
		same += !seen[symbol - symbols];
		seen[symbol - symbols] = true;
	}
	pclose(f);
	free(seen);
	if (object_names(object) != OBJECT_DEBUG_NAMES)
		assert_int_equal(same, count);
	for (size_t i = 1; i < count; i++) {
		assert_true(symbols[i - 1].address <= symbols[i].address);
		if (symbols[i - 1].address == symbols[i].address)
			assert_true(symbols[i - 1].local <= symbols[i].local);
	}
	return same;
}

static size_t compare_frames(const struct object *object, const char *path)
{
	char line[4096];
	uint64_t begin;
	uint64_t end;
	uint64_t b;
	uint64_t e;
	size_t count = 0;
	FILE *f = ask(line, "LC_ALL=C readelf -W -wNf %s 2>/dev/null", path);

	while (fgets(line, sizeof(line), f)) {
		const char *pc = strstr(line, " FDE ") ? strstr(line, "pc=") : NULL;
		if (!pc || sscanf(pc, "pc=%" SCNx64 "..%" SCNx64, &begin, &end) != 2 ||
		    begin == end)
			continue;
		for (uint64_t at = begin; at < end; at += end - begin - 1 ? end - begin - 1 : 1) {
			assert_true(object_bounds(object, at, &b, &e));
			assert_int_equal(b, begin);
			assert_int_equal(e, end);
		}
		count++;
	}
	pclose(f);
	return count;
}

static size_t compare_irelative(const struct object *object, const char *path)
{
	char line[4096];
	char type[64];
	uint64_t slot;
	uint64_t resolver;
	uint64_t s;
	uint64_t r;
	size_t at = 0;
	size_t count = 0;
	FILE *f = ask(line, "LC_ALL=C readelf -W -r %s 2>/dev/null", path);

	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%" SCNx64 " %*x %63s %" SCNx64, &slot, type, &resolver) != 3 ||
		    strncmp(type, "R_X86_64_IREL", 13) != 0)
			continue;
		assert_true(object_irelative(object, &at, &r, &s));
		assert_int_equal(r, resolver);
		assert_int_equal(s, slot);
		count++;
	}
	pclose(f);
	assert_false(object_irelative(object, &at, &r, &s));
	return count;
}

/* The code that the object gives is what the file holds. */
static void compare_code(const struct object *object, const char *path)
{
	size_t count;
	unsigned char bytes[64];
	const struct object_symbol *symbols = object_symbols(object, &count);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	for (size_t i = 0; i < count; i++) {
		size_t len;
		const unsigned char *code = object_code(object, symbols[i].address, &len);
		assert_non_null(code);
		assert_true(len >= symbols[i].size);
		assert_ptr_equal(code, object_data(object, symbols[i].address, &len));
	}
	/* The first code segment holds what readelf says it does. */
	char line[4096];
	uint64_t offset;
	uint64_t address;
	FILE *f = ask(line, "LC_ALL=C readelf -W -l %s 2>/dev/null", path);
	size_t segments = 0;
	while (fgets(line, sizeof(line), f)) {
		uint64_t size;
		size_t len;
		if (sscanf(line, " LOAD %" SCNx64 " %" SCNx64 " %*x %" SCNx64, &offset, &address,
			   &size) != 3 ||
		    !strstr(line, " E 0x"))
			continue;
		assert_int_equal(object_address_of(object, offset), address);
		assert_int_equal(object_address_of(object, offset + size - 1), address + size - 1);
		const unsigned char *code = object_code(object, address, &len);
		assert_int_equal(len, size);
		assert_int_equal(pread(fd, bytes, sizeof(bytes), (off_t)offset), sizeof(bytes));
		assert_memory_equal(code, bytes, sizeof(bytes));
		assert_null(object_code(object, address + size, &len));
		segments++;
	}
	assert_true(segments >= 1);
	assert_int_equal(object_address_of(object, (uint64_t)1 << 40), UINT64_MAX);
	pclose(f);
	close(fd);
}

static void compare(struct objects *objects, const char *path, size_t symbols, size_t frames)
{
	struct object *object = objects_get(objects, path);

	if (!object && errno == ENOENT) {
		print_message("%s: not on this machine\n", path);
		return;
	}
	assert_non_null(object);
	size_t nsymbols = compare_symbols(object, path);
	size_t nframes = compare_frames(object, path);
	size_t nirelative = compare_irelative(object, path);
	compare_code(object, path);
	print_message("%s: %zu symbols, %zu frames, %zu irelative\n", path, nsymbols, nframes,
		      nirelative);
	assert_true(nsymbols >= symbols);
	assert_true(nframes >= frames);
}

static void test_programs_against_readelf(void **state)
{
	struct shop shop;
	char path[128];
	struct objects *objects = objects_new(NULL, 0);

	(void)state;
	shop_open(&shop);
	for (size_t i = 0; i < SHOP_KINDS; i++) {
		const struct kind *kind = &shop_kinds[i];
		if (!shop_build(&shop, kind))
			continue;
		snprintf(path, sizeof(path), "%s/%s", shop.dir, kind->name);
		compare(objects, path, 10, 0);
		struct object *object = objects_get(objects, path);
		assert_int_equal(object_names(object), OBJECT_ALL_NAMES);
		bool is_static = strncmp(kind->name, "static", 6) == 0;
		assert_int_equal(object_libc(object), is_static ? OBJECT_GLIBC
						      : strcmp(kind->name, "musl") == 0
							      ? OBJECT_MUSL
							      : OBJECT_NO_LIBC);
		assert_int_equal(object_is_position_independent(object),
				 strcmp(kind->name, "static") != 0 &&
					 strcmp(kind->name, "no-pie") != 0 &&
					 strcmp(kind->name, "musl") != 0);
	}
	objects_free(objects);
	shop_close(&shop);
}

static void test_libraries_against_readelf(void **state)
{
	struct objects *objects = objects_new(NULL, 0);

	(void)state;
	compare(objects, LIBC, 2000, 2000);
	compare(objects, MUSL, 1000, 0);
	compare(objects, FORTRAN, 1000, 1000);
	char self[32];
	snprintf(self, sizeof(self), "/proc/%d/exe", getpid());
	compare(objects, self, 20, 20);
	struct object *libc = objects_get(objects, LIBC);
	assert_non_null(libc);
	assert_int_equal(object_libc(libc), OBJECT_GLIBC);
	/* Two versions, two functions, one name. */
	const struct object_symbol *one = object_named(libc, "memcpy", NULL);
	assert_non_null(one);
	const struct object_symbol *two = object_named(libc, "memcpy", one);
	assert_non_null(two);
	assert_true(one->address < two->address);
	assert_non_null(object_named(libc, "fopen", NULL));
	assert_null(object_named(libc, "fopen@@GLIBC_2.2.5", NULL));
	assert_null(object_named(libc, "no_such_function", NULL));
	struct object *musl = objects_get(objects, MUSL);
	if (musl)
		assert_int_equal(object_libc(musl), OBJECT_MUSL);
	objects_free(objects);
}

static void test_names_and_bounds(void **state)
{
	struct shop shop;
	char path[128];
	uint64_t begin;
	uint64_t end;
	struct objects *objects = objects_new(NULL, 0);

	(void)state;
	shop_open(&shop);
	assert_true(shop_build(&shop, &shop_kinds[2]));
	snprintf(path, sizeof(path), "%s/pie", shop.dir);
	struct object *object = objects_get(objects, path);
	assert_non_null(object);

	/* Aliases are neighbours, the local one last. */
	const struct object_symbol *alias = object_named(object, "third_name", NULL);
	assert_non_null(alias);
	assert_true(alias->local);
	assert_int_equal(alias[-1].address, alias->address);
	assert_int_equal(alias[-2].address, alias->address);
	assert_false(alias[-1].local || alias[-2].local);
	assert_true(object_named(object, "chosen", NULL)->ifunc);

	/* A .cold part is a piece of its own, elsewhere. */
	const struct object_symbol *warm = object_named(object, "with_cold", NULL);
	const struct object_symbol *cold = object_named(object, "with_cold.cold", NULL);
	assert_non_null(cold);
	assert_true(object_bounds(object, warm->address + 1, &begin, &end));
	assert_int_equal(begin, warm->address);
	assert_int_equal(end, warm->address + warm->size);
	assert_true(object_bounds(object, cold->address, &begin, &end));
	assert_int_equal(begin, cold->address);
	assert_int_equal(end, cold->address + cold->size);

	/* Without FDEs: by size; up to the next symbol; not at all. */
	uint64_t bare = object_named(object, "bare", NULL)->address;
	uint64_t next = object_named(object, "bare_next", NULL)->address;
	assert_true(object_bounds(object, bare - 1, &begin, &end));
	assert_int_equal(begin, bare - 3);
	assert_int_equal(end, bare);
	assert_true(object_bounds(object, bare + 1, &begin, &end));
	assert_int_equal(begin, bare);
	assert_int_equal(end, next);
	assert_true(object_bounds(object, next, &begin, &end));
	assert_int_equal(end, next + 1);
	assert_false(object_bounds(object, next + 1, &begin, &end));
	assert_false(object_bounds(object, 0, &begin, &end));
	assert_false(object_bounds(object, UINT64_MAX, &begin, &end));
	objects_free(objects);
	shop_close(&shop);
}

static void count_release(void *data)
{
	++*(int *)data;
}

static void test_cache(void **state)
{
	struct shop shop;
	char path[128];
	char link[128];
	int released = 0;
	struct objects *objects = objects_new(NULL, 0);

	(void)state;
	shop_open(&shop);
	assert_true(shop_build(&shop, &shop_kinds[2]));
	snprintf(path, sizeof(path), "%s/pie", shop.dir);
	snprintf(link, sizeof(link), "%s/link", shop.dir);
	assert_int_equal(symlink("pie", link), 0);
	struct object *object = objects_get(objects, path);
	assert_non_null(object);
	assert_ptr_equal(objects_get(objects, path), object);
	assert_ptr_equal(objects_get(objects, link), object);
	assert_null(object_attachment(object));
	object_attach(object, &released, count_release);
	assert_ptr_equal(object_attachment(object), &released);

	/* Another file of this name, and the same file with other contents. */
	assert_int_equal(run("cd %s && cp pie two && mv two pie", shop.dir), 0);
	struct object *two = objects_get(objects, path);
	assert_non_null(two);
	assert_ptr_not_equal(two, object);
	assert_int_equal(run("cd %s && strip pie -o bare && cat bare >pie", shop.dir), 0);
	struct object *three = objects_get(objects, path);
	assert_non_null(three);
	assert_ptr_not_equal(three, two);
	assert_null(object_named(three, "visible", NULL));
	assert_non_null(object_named(two, "visible", NULL));

	assert_null(objects_get(objects, "/no/such/file"));
	assert_int_equal(errno, ENOENT);
	for (int i = 0; i < 2; i++) {
		assert_null(objects_get(objects, "/etc/passwd"));
		assert_int_equal(errno, ENOEXEC);
	}
	assert_null(objects_get(objects, "/dev/null"));
	assert_int_equal(errno, ENOEXEC);
	assert_null(objects_get(objects, "/"));
	assert_int_equal(errno, ENOEXEC);
	assert_int_equal(released, 0);
	objects_free(objects);
	assert_int_equal(released, 1);
	shop_close(&shop);
}

/* Whether DIR/program has its names now, in a cache of its own. */
static enum object_names names_of(struct shop *shop, const char *dir)
{
	char path[128];
	struct objects *objects = objects_new(&dir, dir ? 1 : 0);

	snprintf(path, sizeof(path), "%s/program", shop->dir);
	struct object *object = objects_get(objects, path);
	assert_non_null(object);
	enum object_names names = object_names(object);
	const struct object_symbol *symbol = object_named(object, "with_cold", NULL);
	assert_int_equal(symbol != NULL, names == OBJECT_DEBUG_NAMES);
	if (symbol)
		assert_int_equal(compare_symbols(object, path), 0);
	objects_free(objects);
	return names;
}

static void test_debug_files(void **state)
{
	struct shop shop;
	char dirs[128];

	(void)state;
	shop_open(&shop);
	snprintf(dirs, sizeof(dirs), "%s/dirs", shop.dir);
	assert_int_equal(
		run("cd %s && gcc -O2 -g -w -Wl,--build-id=0xabcdef0123 shop.c -o whole && "
		    "objcopy --only-keep-debug whole d && strip whole -o program",
		    shop.dir),
		0);
	assert_int_equal(names_of(&shop, dirs), OBJECT_NO_NAMES);

	/* By build-id, which must be the file's own too. */
	assert_int_equal(run("cd %s && mkdir -p dirs/.build-id/ab && "
			     "cp d dirs/.build-id/ab/cdef0123.debug",
			     shop.dir),
			 0);
	assert_int_equal(names_of(&shop, dirs), OBJECT_DEBUG_NAMES);
	assert_int_equal(names_of(&shop, NULL), OBJECT_NO_NAMES);
	assert_int_equal(run("cd %s && gcc -O2 -g -w -Wl,--build-id=0xabcdef0124 shop.c -o x && "
			     "mv x dirs/.build-id/ab/cdef0123.debug",
			     shop.dir),
			 0);
	assert_int_equal(names_of(&shop, dirs), OBJECT_NO_NAMES);

	/* By name, which must have the checksum. */
	assert_int_equal(
		run("cd %s && rm -r dirs && gcc -O2 -w -Wl,--build-id=none shop.c -o whole && "
		    "objcopy --only-keep-debug whole d && strip whole -o program && "
		    "objcopy --add-gnu-debuglink=d program",
		    shop.dir),
		0);
	assert_int_equal(names_of(&shop, NULL), OBJECT_DEBUG_NAMES);
	assert_int_equal(run("cd %s && mkdir .debug && mv d .debug", shop.dir), 0);
	assert_int_equal(names_of(&shop, NULL), OBJECT_DEBUG_NAMES);
	assert_int_equal(
		run("cd %s && mkdir -p dirs%s && mv .debug/d dirs%s", shop.dir, shop.dir, shop.dir),
		0);
	assert_int_equal(names_of(&shop, NULL), OBJECT_NO_NAMES);
	assert_int_equal(names_of(&shop, dirs), OBJECT_DEBUG_NAMES);
	assert_int_equal(run("cd %s && mv dirs%s/d dirs", shop.dir, shop.dir), 0);
	assert_int_equal(names_of(&shop, dirs), OBJECT_DEBUG_NAMES);
	assert_int_equal(run("cd %s && printf x >>dirs/d", shop.dir), 0);
	assert_int_equal(names_of(&shop, dirs), OBJECT_NO_NAMES);
	shop_close(&shop);
}

static void test_stripped(void **state)
{
	struct shop shop;
	char path[128];
	struct objects *objects = objects_new(NULL, 0);

	(void)state;
	shop_open(&shop);
	assert_true(shop_build(&shop, &shop_kinds[0]));
	assert_int_equal(run("cd %s && strip static -o bare && strip -g static -o names", shop.dir),
			 0);
	snprintf(path, sizeof(path), "%s/bare", shop.dir);
	struct object *object = objects_get(objects, path);
	assert_non_null(object);
	assert_int_equal(object_names(object), OBJECT_NO_NAMES);
	size_t frames = compare_frames(object, path);
	assert_true(frames > 500);
	assert_true(compare_irelative(object, path) > 10);
	snprintf(path, sizeof(path), "%s/names", shop.dir);
	compare(objects, path, 1000, frames);

	/* Without section headers .eh_frame_hdr leads to the frames. */
	assert_true(shop_build(&shop, &shop_kinds[1]));
	assert_int_equal(
		run("cd %s && cp static-pie cut && "
		    "printf '\\0\\0\\0\\0\\0\\0\\0\\0' | "
		    "dd of=cut bs=1 seek=40 conv=notrunc status=none && "
		    "printf '\\0\\0\\0\\0' | dd of=cut bs=1 seek=60 conv=notrunc status=none",
		    shop.dir),
		0);
	snprintf(path, sizeof(path), "%s/cut", shop.dir);
	object = objects_get(objects, path);
	assert_non_null(object);
	snprintf(path, sizeof(path), "%s/static-pie", shop.dir);
	assert_true(compare_frames(object, path) > 500);
	objects_free(objects);
	shop_close(&shop);
}

/* Asks an object everything. */
static void exhaust(const struct object *object)
{
	size_t count;
	size_t len;
	size_t at = 0;
	uint64_t a;
	uint64_t b;
	volatile unsigned char last;
	const struct object_symbol *symbols = object_symbols(object, &count);

	for (size_t i = 0; i < count; i++) {
		assert_non_null(object_named(object, symbols[i].name, NULL));
		const unsigned char *code = object_code(object, symbols[i].address, &len);
		if (code)
			last = code[len - 1];
		if (object_bounds(object, symbols[i].address, &a, &b))
			assert_true(a <= symbols[i].address && symbols[i].address < b);
	}
	while (object_irelative(object, &at, &a, &b))
		;
	for (uint64_t i = 0; i < 0x8000; i += 0x123) {
		object_address_of(object, i);
		object_bounds(object, i, &a, &b);
		object_bounds(object, 0x400000 + i, &a, &b);
		const unsigned char *data = object_data(object, i, &len);
		if (data)
			last = data[len - 1];
	}
	(void)last;
}

/* @return whether it was understood. */
static bool try_damaged(const char *path, const unsigned char *bytes, size_t size)
{
	struct objects *objects = objects_new(NULL, 0);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), size);
	close(fd);
	struct object *object = objects_get(objects, path);
	if (object)
		exhaust(object);
	else
		assert_true(errno == ENOEXEC || errno == ENOMEM);
	objects_free(objects);
	return object != NULL;
}

static size_t load(const char *path, unsigned char *bytes, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	ssize_t size = read(fd, bytes, room);
	close(fd);
	assert_true(size > 0);
	return (size_t)size;
}

/* Where damage does most: headers, the tables of sections and segments, .eh_frame, symbols. */
static size_t place_of_damage(unsigned *seed, const unsigned char *bytes, size_t size)
{
	uint64_t sections;

	memcpy(&sections, bytes + 40, sizeof(sections));
	if (sections >= size)
		return 0;
	switch (rand_r(seed) % 4) {
	case 0:
		return (size_t)rand_r(seed) % 1024;
	case 1:
		return sections + (size_t)rand_r(seed) % (size - sections);
	default:
		return (size_t)rand_r(seed) % size;
	}
}

static void test_damage(void **state)
{
	enum { ROOM = 1 << 20, ROUNDS = 3000 };
	static const unsigned char values[] = {0, 1, 0x7f, 0x80, 0xff};
	struct shop shop;
	char path[128];
	unsigned seed = 20261130;
	size_t tried = 0;
	size_t understood = 0;
	unsigned char *whole = malloc(ROOM);
	unsigned char *bytes = malloc(ROOM);

	(void)state;
	shop_open(&shop);
	for (size_t k = 2; k < 4; k++) {
		assert_true(shop_build(&shop, &shop_kinds[k]));
		snprintf(path, sizeof(path), "%s/%s", shop.dir, shop_kinds[k].name);
		size_t size = load(path, whole, ROOM);
		snprintf(path, sizeof(path), "%s/damaged", shop.dir);
		for (size_t len = 0; len < size; len += len < 1100 ? 13 : 97, tried++)
			understood += try_damaged(path, whole, len);
		for (int i = 0; i < ROUNDS; i++, tried++) {
			memcpy(bytes, whole, size);
			for (int n = 1 + rand_r(&seed) % 20; n > 0; n--) {
				size_t at = place_of_damage(&seed, whole, size);
				int value = rand_r(&seed);
				bytes[at] = value & 0x100 ? values[(value & 0xff) % 5]
							  : (unsigned char)value;
			}
			understood += try_damaged(path, bytes, size);
		}
	}
	print_message("%zu of %zu damaged files understood\n", understood, tried);
	assert_true(understood > ROUNDS / 4);
	free(whole);
	free(bytes);
	shop_close(&shop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_programs_against_readelf),
		cmocka_unit_test(test_libraries_against_readelf),
		cmocka_unit_test(test_names_and_bounds),
		cmocka_unit_test(test_cache),
		cmocka_unit_test(test_debug_files),
		cmocka_unit_test(test_stripped),
		cmocka_unit_test(test_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
