/* Which object and which bias lie where in a process. */
#include "base/buf.h"
#include "symbols/modules.h"
#include "tests/unit/test_object.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <signal.h>

#include <sys/mman.h>
#include <sys/wait.h>

/* A program of the shop that runs until it is told to end. */
struct guest {
	pid_t pid;
	int input;
	uint64_t visible; /* where its function lies */
};

static void guest_start(struct guest *guest, const char *path)
{
	int in[2];
	int out[2];
	char line[64] = "";

	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	guest->pid = fork();
	assert_true(guest->pid >= 0);
	if (guest->pid == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		execl(path, path, (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	guest->input = in[1];
	assert_true(read(out[0], line, sizeof(line) - 1) > 0);
	close(out[0]);
	assert_int_equal(sscanf(line, "0x%" SCNx64, &guest->visible), 1);
}

static void guest_end(struct guest *guest)
{
	int status;

	close(guest->input);
	assert_int_equal(waitpid(guest->pid, &status, 0), guest->pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* The guest's function is found where the guest says it is. */
static void check_guest(struct guest *guest, const char *what)
{
	struct modules modules = {0};
	struct objects *objects = objects_new(NULL, 0);

	assert_int_equal(modules_read(&modules, objects, guest->pid, NULL, NULL), 0);
	const struct module *module = modules_find(&modules, guest->visible);
	assert_non_null(module);
	if (!module->object)
		print_error("%s: no object for %s\n", what, module->path);
	assert_non_null(module->object);
	const struct object_symbol *symbol = object_named(module->object, "visible", NULL);
	assert_non_null(symbol);
	if (symbol->address + module->bias != guest->visible)
		fail_msg("%s: %" PRIx64 " + %" PRIx64 " is not %" PRIx64, what, symbol->address,
			 module->bias, guest->visible);
	assert_int_equal(module->bias != 0, object_is_position_independent(module->object));
	modules_free(&modules);
	objects_free(objects);
}

static void test_kinds_of_programs(void **state)
{
	struct shop shop;
	struct guest guest;
	char path[128];
	char renamed[128];

	(void)state;
	shop_open(&shop);
	snprintf(renamed, sizeof(renamed), "%s/renamed", shop.dir);
	for (size_t i = 0; i < SHOP_KINDS; i++) {
		const struct kind *kind = &shop_kinds[i];
		if (strcmp(kind->name, "so") == 0 || !shop_build(&shop, kind))
			continue;
		snprintf(path, sizeof(path), "%s/%s", shop.dir, kind->name);
		guest_start(&guest, path);
		check_guest(&guest, kind->name);
		assert_int_equal(rename(path, renamed), 0);
		check_guest(&guest, "renamed");
		assert_int_equal(rename(renamed, path), 0);
		/* Replaced: another file has the name now. */
		assert_int_equal(
			run("cd %s && cp shop.c other && mv other %s", shop.dir, kind->name), 0);
		check_guest(&guest, "deleted");
		guest_end(&guest);
		assert_int_equal(unlink(path), 0);
	}
	shop_close(&shop);
}

/* The code of each of our modules is in memory what the object says. */
static void test_own_code(void **state)
{
	struct modules modules = {0};
	struct objects *objects = objects_new(NULL, 0);
	size_t checked = 0;

	(void)state;
	assert_int_equal(modules_read(&modules, objects, getpid(), NULL, NULL), 0);
	for (size_t i = 0; i < modules.count; i++) {
		const struct module *module = &modules.items[i];
		size_t len;
		assert_non_null(module->object);
		if (i)
			assert_true(module[-1].end <= module->begin);
		assert_null(modules_find(&modules, module->end) == module ? module : NULL);
		assert_ptr_equal(modules_find(&modules, module->begin), module);
		assert_ptr_equal(modules_find(&modules, module->end - 1), module);
		size_t count;
		const struct object_symbol *symbols = object_symbols(module->object, &count);
		for (size_t s = 0; s < count; s++) {
			uint64_t address = symbols[s].address + module->bias;
			const unsigned char *code =
				object_code(module->object, symbols[s].address, &len);
			if (address < module->begin || address + 16 > module->end || len < 16)
				continue;
			assert_memory_equal(code, (const void *)(uintptr_t)address, 16);
			checked++;
		}
	}
	assert_true(checked > 1000);

	/* One that sanitizers do not define as well. */
	uint64_t ungetc_at = (uint64_t)(uintptr_t)dlsym(RTLD_NEXT, "ungetc");
	const struct module *libc = modules_find(&modules, ungetc_at);
	assert_non_null(libc);
	assert_int_equal(object_libc(libc->object), OBJECT_GLIBC);
	const struct object_symbol *symbol = object_named(libc->object, "ungetc", NULL);
	while (symbol && symbol->address + libc->bias != ungetc_at)
		symbol = object_named(libc->object, "ungetc", symbol);
	assert_non_null(symbol);
	assert_null(modules_find(&modules, 0));
	assert_null(modules_find(&modules, (uint64_t)(uintptr_t)&modules));
	modules_free(&modules);
	objects_free(objects);
}

struct departed {
	size_t count;
	uint64_t begin;
};

static void note_gone(const struct module *module, void *data)
{
	struct departed *departed = data;

	departed->count++;
	departed->begin = module->begin;
	assert_non_null(module->path);
}

static const char *newer(struct shop *shop, const char *name, char *path, size_t size)
{
	assert_int_equal(run("cd %s && cp so '%s'", shop->dir, name), 0);
	snprintf(path, size, "%s/%s", shop->dir, name);
	return path;
}

static void test_changes(void **state)
{
	struct shop shop;
	char path[128];
	struct modules modules = {0};
	struct modules copy;
	struct departed departed = {0};
	struct objects *objects = objects_new(NULL, 0);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	static const char *const names[] = {"plain.so", "with space.so", "a (deleted)",
					    "new\nline.so"};

	(void)state;
	shop_open(&shop);
	assert_true(shop_build(&shop, &shop_kinds[SHOP_KINDS - 1]));
	assert_int_equal(modules_read(&modules, objects, getpid(), note_gone, &departed), 0);
	size_t before = modules.count;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		departed = (struct departed){0};
		int fd = open(newer(&shop, names[i], path, sizeof(path)), O_RDONLY | O_CLOEXEC);
		assert_true(fd >= 0);
		char *text = mmap(NULL, 3 * page, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
		assert_true(text != MAP_FAILED);
		close(fd);
		uint64_t at = (uint64_t)(uintptr_t)text;
		assert_int_equal(modules_read(&modules, objects, getpid(), note_gone, &departed),
				 0);
		assert_int_equal(modules.count, before + 1);
		const struct module *module = modules_find(&modules, at + 5);
		assert_non_null(module);
		if (!module->object)
			print_error("no object for %s\n", names[i]);
		assert_non_null(module->object);
		struct object *object = module->object;

		/* Still one module, also when a page of it may be written, or the file is gone. */
		assert_int_equal(mprotect(text + page, page, PROT_READ | PROT_WRITE | PROT_EXEC),
				 0);
		assert_int_equal(unlink(path), 0);
		assert_int_equal(modules_read(&modules, objects, getpid(), note_gone, &departed),
				 0);
		assert_int_equal(modules.count, before + 1);
		assert_int_equal(departed.count, 0);
		module = modules_find(&modules, at);
		assert_ptr_equal(module->object, object);
		assert_null(strstr(module->path, ".so (deleted)"));

		assert_int_equal(modules_copy(&copy, &modules), 0);
		munmap(text, 3 * page);
		assert_int_equal(modules_read(&modules, objects, getpid(), note_gone, &departed),
				 0);
		assert_int_equal(departed.count, 1);
		assert_int_equal(departed.begin, at);
		assert_null(modules_find(&modules, at));
		assert_int_equal(copy.count, before + 1);
		assert_ptr_equal(modules_find(&copy, at)->object, object);
		modules_free(&copy);
	}
	modules_free(&modules);
	assert_int_equal(modules_copy(&copy, &modules), 0);
	assert_int_equal(copy.count, 0);
	objects_free(objects);
	shop_close(&shop);
}

static void test_no_such_process(void **state)
{
	struct modules modules = {0};
	struct objects *objects = objects_new(NULL, 0);

	(void)state;
	assert_int_equal(modules_read(&modules, objects, getpid(), NULL, NULL), 0);
	size_t count = modules.count;
	assert_true(count > 0);
	assert_int_equal(modules_read(&modules, objects, 0x7fffffff, NULL, NULL), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(modules.count, count);
	modules_free(&modules);
	objects_free(objects);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds_of_programs),
		cmocka_unit_test(test_own_code),
		cmocka_unit_test(test_changes),
		cmocka_unit_test(test_no_such_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
