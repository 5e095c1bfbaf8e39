/* Room for jumps: of functions assembled here, and of all functions of real files against what objdump says of their
 * whole text. DFTRACE_CENSUS=FILE,… has those files looked at too. */

#include "base/map.h"
#include "symbols/plan.h"
#include "symbols/room.h"
#include "tests/unit/test_decoder.h"
#include "tests/unit/test_objdump.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BEGIN(name) ".globl " #name "\n.type " #name ",@function\n" #name ":\n.cfi_startproc\n"
#define END(name)   ".cfi_endproc\n.size " #name ",.-" #name "\n"
/* Here the jump of the place at `at` begins, and takes so many bytes; 0: it is refused. They are told by their distances:
 * an address in the data would be one that the program may jump to. */
#define ROOM(name, at, len)                                                                        \
	"77: .pushsection room_places,\"aw\"\n.quad 77b-" #name ", " #name ", " #at "-" #name      \
	", " #len "\n.popsection\n"

/* clang-format off */
__asm__(".text\n.p2align 4\n"
	BEGIN(w_plain) ROOM(w_plain, w_plain, 5) "push %rbx\n mov %edi,%ebx\n mov %edi,%eax\n add $17,%eax\n"
		ROOM(w_plain, w_plain_ret, 5) "add $8,%rsp\n w_plain_ret: ret\n" END(w_plain)
	BEGIN(w_endbr) "endbr64\n" ROOM(w_endbr, w_endbr + 4, 7) "lea 0x1234(%rip),%rax\n"
		"test %edi,%edi\n je 1f\n pop %r12\n pop %r13\n" ROOM(w_endbr, w_endbr_ret, 5)
		"pop %r14\n pop %r15\n w_endbr_ret: ret\n 1: xor %eax,%eax\n" ROOM(w_endbr, w_endbr_ret2, 5)
		"xor %edx,%edx\n xor %ecx,%ecx\n w_endbr_ret2: ret\n" END(w_endbr)
	/* Padding behind counts, as far as it is some. */
	".p2align 4\n"
	BEGIN(w_padded) "test %edi,%edi\n jne 1f\n mov %eax,%ecx\n 1: xor %eax,%eax\n"
		ROOM(w_padded, w_padded_ret, 5) "w_padded_top: pop %rbx\n w_padded_ret: ret\n nopw 0(%rax,%rax)\n"
		"2: jmp w_padded_top\n" END(w_padded)
	BEGIN(w_tight) "test %edi,%edi\n jne w_tight_ret\n mov $3,%eax\n" ROOM(w_tight, w_tight_ret, 0)
		"w_tight_ret: ret\n" END(w_tight)
	BEGIN(w_next) "mov $3,%eax\n mov $3,%eax\n ret\n" END(w_next)
	/* Led to: in the middle of the entry, and of the exit. */
	BEGIN(w_into) ROOM(w_into, w_into, 0) "push %rbx\n 1: mov %edi,%ebx\n dec %edi\n nop\n nop\n jne 1b\n"
		"mov %ebx,%eax\n pop %rbx\n ret\n" END(w_into)
	BEGIN(w_back) ROOM(w_back, w_back, 6) "sub $8,%rsp\n dec %edi\n js w_back_cold\n xor %eax,%eax\n"
		ROOM(w_back, w_back_ret, 0) "add $8,%rsp\n w_back_ret: ret\n" END(w_back)
	".cfi_startproc\n w_back_cold: add $8,%rsp\n jmp w_back_ret\n.cfi_endproc\n"
	/* A call may not be displaced, a jump only as the last. */
	BEGIN(w_calls) ROOM(w_calls, w_calls, 0) "push %rax\n call abort@PLT\n pop %rdx\n ret\n" END(w_calls)
	BEGIN(w_branches) ROOM(w_branches, w_branches, 6) "cmp $3,%edi\n nop\n jae 1f\n mov $5,%eax\n ret\n"
		"1: mov $6,%eax\n" ROOM(w_branches, w_branches_ret, 6) "mov $7,%eax\n w_branches_ret: ret\n" END(w_branches)
	BEGIN(w_branches_early) ROOM(w_branches_early, w_branches_early, 0) "test %edi,%edi\n je 1f\n mov $5,%eax\n ret\n"
		"1: mov $6,%eax\n ret\n" END(w_branches_early)
	/* A switch leads to a way out. */
	BEGIN(w_switch) ROOM(w_switch, w_switch, 7) "lea w_table(%rip),%rdx\n cmp $1,%edi\n ja 1f\n mov %edi,%edi\n"
		"movslq (%rdx,%rdi,4),%rax\n add %rdx,%rax\n jmp *%rax\n w_case0: mov $1,%eax\n"
		ROOM(w_switch, w_case1, 0) "w_case1: ret\n 1: mov $2,%eax\n" ROOM(w_switch, w_switch_ret, 5)
		"mov $4,%al\n pop %r8\n w_switch_ret: ret\n" END(w_switch)
	/* What a table leads to is come to by the instruction before, too. */
	BEGIN(w_falls) ROOM(w_falls, w_falls, 0) "mov %rdi,%rax\n w_fall0: add %esi,%edx\n movzbl (%rax),%ecx\n inc %rax\n"
		"lea w_falling(%rip),%r8\n and $1,%ecx\n movslq (%r8,%rcx,4),%rcx\n add %r8,%rcx\n jmp *%rcx\n"
		"w_fall1: mov %edx,%eax\n" ROOM(w_falls, w_falls_ret, 7) "add $1000,%edx\n w_falls_ret: ret\n" END(w_falls)
	/* One jump of two, each with a table of its own. */
	BEGIN(w_both) ROOM(w_both, w_both, 7) "lea w_both1(%rip),%rdx\n and $1,%edi\n mov (%rdx,%rdi,8),%rax\n"
		"1: jmp *%rax\n w_both10: lea w_both2(%rip),%rdx\n and $1,%esi\n mov (%rdx,%rsi,8),%rax\n jmp 1b\n"
		"w_both11: mov $3,%eax\n" ROOM(w_both, w_both_ret, 6) "add $4,%rax\n pop %rcx\n w_both_ret: ret\n"
		"w_both20: mov $5,%eax\n ret\n mov $6,%eax\n mov $4,%ecx\n" ROOM(w_both, w_both_ret2, 0)
		"w_both21: nop\n w_both_ret2: ret\n mov $2,%ecx\n" END(w_both)
	/* Labels that others have in their hands. */
	BEGIN(w_threads) ROOM(w_threads, w_threads, 0) "mov (%rdi),%rax\n add $8,%rdi\n jmp *%rax\n"
		"w_thread0: add %esi,%edx\n mov %edx,%eax\n" ROOM(w_threads, w_threads_ret, 0)
		"w_thread1: mov %edx,%eax\n pop %rcx\n pop %rdx\n w_threads_ret: ret\n" END(w_threads)
	BEGIN(w_tells) ROOM(w_tells, w_tells, 0) "lea 1f(%rip),%rax\n mov %rax,(%rdi)\n mov (%rsi),%rax\n jmp *%rax\n"
		"1: mov %edx,%eax\n" ROOM(w_tells, w_tells_ret, 0) "mov $2,%ecx\n w_tells_ret: ret\n" END(w_tells)
	/* A jump out of the function, of which nobody has a label. */
	BEGIN(w_leaves) ROOM(w_leaves, w_leaves, 6) "test %edi,%edi\n mov %edi,%eax\n je 1f\n mov 8(%rsi),%rax\n jmp *%rax\n"
		"1: mov %edx,%eax\n" ROOM(w_leaves, w_leaves_ret, 6) "mov $2,%ecx\n w_leaves_ret: ret\n" END(w_leaves)
	/* A function that begins inside another. */
	BEGIN(w_two) ROOM(w_two, w_two, 0) "xor %esi,%esi\n .globl w_other\n .type w_other,@function\n w_other: mov %edi,%eax\n"
		"add %esi,%eax\n" ROOM(w_two, w_two_ret, 6) "mov $3,%ecx\n w_two_ret: ret\n .size w_other,.-w_other\n" END(w_two)
	/* Padding follows. */
	".p2align 4\n" BEGIN(w_short) "mov 8(%rdi),%rax\n imul 16(%rdi),%rax\n add (%rdi),%rax\n"
		"ret\n" END(w_short) ".p2align 4\n"
	/* Code without a name leads into it. */
	BEGIN(w_named) ROOM(w_named, w_named, 0) "xor %esi,%esi\n 8: mov %edi,%eax\n mov $3,%ecx\n ret\n" END(w_named)
	".cfi_startproc\n mov %esi,%edx\n jmp 8b\n.cfi_endproc\n"
	/* Its extent is unknown. */
	BEGIN(w_far) ROOM(w_far, w_far, 0) "lea w_fars(%rip),%rdx\n movslq (%rdx,%rdi,4),%rax\n add %rdx,%rax\n jmp *%rax\n"
		"w_far0: mov $7,%eax\n" ROOM(w_far, w_far_ret, 0) "w_far_ret: ret\n mov $1,%eax\n ret\n" END(w_far)
	".section .rodata\n.p2align 2\n w_table: .long w_case0-w_table, w_case1-w_table\n"
	"w_fars: .long w_far0-w_fars\n"
	"w_falling: .long w_fall0-w_falling, w_fall1-w_falling\n"
	".section .data.rel.ro,\"aw\"\n.p2align 3\n w_both1: .quad w_both10, w_both11\n w_both2: .quad w_both20, w_both21\n"
	".quad w_thread0, w_thread1\n"
	".previous\n.text\n");
/* clang-format on */

struct expected {
	uint64_t begin; /* from the function's beginning, as `at` is */
	uint64_t function;
	uint64_t at;
	uint64_t len;
};

extern const struct expected __start_room_places[], __stop_room_places[];

/* @return what has to be taken from an address of this program for that of its file. */
static uint64_t own_bias(const struct object *object)
{
	const struct object_symbol *symbol = object_named(object, "w_plain", NULL);

	assert_non_null(symbol);
	return __start_room_places[0].function - symbol->address;
}

static void test_rooms(void **state)
{
	struct fixture *f = *state;
	struct object *object = objects_get(f->objects, "/proc/self/exe");
	struct rooms *rooms = rooms_new(object, f->decoder);
	uint64_t bias = own_bias(object);
	struct room room;
	unsigned wrong = 0;

	assert_non_null(rooms);
	for (const struct expected *e = __start_room_places; e != __stop_room_places; e++)
		assert_int_equal(rooms_learn(rooms, e->function - bias), 0);
	for (const struct expected *e = __start_room_places; e != __stop_room_places; e++) {
		const struct plan *plan = plan_function(object, f->decoder, e->function - bias);
		assert_non_null(plan);
		assert_null(plan->refused);
		const struct plan_place *place = plan->places;
		while (place < plan->places + plan->nplaces &&
		       place->address != plan->function + e->at)
			place++;
		assert_true(place < plan->places + plan->nplaces);
		if (place->kind == PLAN_ENTRY)
			rooms_entry(rooms, place->address, &room);
		else
			rooms_exit(rooms, place->address, 0, &room);
		bool right = e->len ? !room.refused && room.begin == plan->function + e->begin &&
					      room.len == e->len
				    : room.refused != NULL;
		if (!right)
			print_error("room %ld: at 0x%lx, %u bytes, %s\n",
				    (long)(e - __start_room_places),
				    (unsigned long)(room.begin + bias - e->function), room.len,
				    room.refused ? room.refused : "fits");
		wrong += !right;
	}
	assert_int_equal(wrong, 0);
	rooms_free(rooms);
}

/* What is taken up to a limit, padding gives. */
static void test_limits(void **state)
{
	struct fixture *f = *state;
	struct object *object = objects_get(f->objects, "/proc/self/exe");
	struct rooms *rooms = rooms_new(object, f->decoder);
	uint64_t function = object_named(object, "w_short", NULL)->address;
	uint64_t ret = function + 12;
	struct room room;

	assert_int_equal(rooms_learn(rooms, function), 0);
	rooms_exit(rooms, ret, 0, &room);
	assert_true(!room.refused && room.begin == ret - 8 && room.len == 9);
	rooms_exit(rooms, ret, ret - 3, &room);
	assert_true(!room.refused && room.begin == ret - 3 && room.len == 5);
	rooms_exit(rooms, ret, ret - 2, &room);
	assert_non_null(room.refused);
	rooms_free(rooms);
}

/* --- against objdump ----------------------------------------------------------------------------- */

struct listing {
	struct map starts;  /* of instructions */
	struct map targets; /* of direct branches and calls, and behind calls */
	bool called;        /* the line before was a call */
};

static void note(struct map *map, uint64_t address)
{
	assert_int_equal(map_put(map, address, map), 0);
}

static void take_line(void *data, uint64_t address, const char *text)
{
	struct listing *listing = data;

	note(&listing->starts, address);
	if (listing->called)
		note(&listing->targets, address);
	listing->called = strstr(text, "call") != NULL;
	/* What is direct ends in an address and a name. */
	const char *name = strstr(text, " <");
	if (!name || strchr(text, '(') || strchr(text, '*') || strchr(text, '%'))
		return;
	while (name > text && name[-1] != ' ' && name[-1] != '\t')
		name--;
	note(&listing->targets, strtoull(name, NULL, 16));
}

static int list(const char *path, struct listing *listing)
{
	return objdump_list(path, take_line, listing);
}

struct census {
	unsigned entries;
	unsigned entries_found;
	unsigned exits;
	unsigned exits_found;
};

static void check_room(const char *path, const struct listing *listing,
		       const struct plan_place *place, const struct room *room)
{
	bool good = map_get(&listing->starts, room->begin) && room->begin <= place->address &&
		    room->begin + room->len > place->address && room->len >= ROOM_JUMP;

	for (uint64_t at = room->begin + 1; at < room->begin + room->len; at++)
		good &= !map_get(&listing->targets, at);
	if (!good)
		print_error("%s: a room of %u bytes at 0x%lx\n", path, room->len,
			    (unsigned long)room->begin);
	assert_true(good);
}

static void take_census(struct fixture *f, const char *path, struct census *census)
{
	struct object *object = objects_get(f->objects, path);
	struct listing listing = {0};
	struct rooms *rooms = object ? rooms_new(object, f->decoder) : NULL;
	size_t count = 0;
	const struct object_symbol *symbols = object ? object_symbols(object, &count) : NULL;

	if (!object || list(path, &listing) != 0)
		return;
	assert_non_null(rooms);
	for (size_t i = 0; i < count; i++) {
		if (!symbols[i].ifunc)
			assert_int_equal(rooms_learn(rooms, symbols[i].address), 0);
	}
	for (size_t i = 0; i < count; i++) {
		const struct plan *plan = plan_function(object, f->decoder, symbols[i].address);
		assert_non_null(plan);
		for (size_t p = 0; p < plan->nplaces && !symbols[i].ifunc; p++) {
			const struct plan_place *place = &plan->places[p];
			struct room room = {.refused = ""};
			if (place->kind == PLAN_ENTRY) {
				census->entries++;
				rooms_entry(rooms, place->address, &room);
				census->entries_found += !room.refused;
			} else if (place->kind == PLAN_RET) {
				census->exits++;
				rooms_exit(rooms, place->address, 0, &room);
				census->exits_found += !room.refused;
			}
			if (!room.refused)
				check_room(path, &listing, place, &room);
		}
	}
	rooms_free(rooms);
	map_free(&listing.starts);
	map_free(&listing.targets);
}

static void test_files(void **state)
{
	static const char *const paths[] = {
		"/lib/x86_64-linux-gnu/libc.so.6",
		"/usr/lib/x86_64-linux-musl/libc.so",
		"build/examples/fortran_io.static",
		"build/examples/steps.cpp.static",
	};

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		struct census c = {0};
		take_census(*state, paths[i], &c);
		print_message("%s: %u of %u entries, %u of %u exits\n", paths[i], c.entries_found,
			      c.entries, c.exits_found, c.exits);
		assert_true(c.entries_found >= c.entries / 10 * 6);
		assert_true(c.exits_found >= c.exits / 10 * 6);
	}
}

static void test_more(void **state)
{
	const char *named = getenv("DFTRACE_CENSUS");
	char *paths = strdup(named ? named : "");
	char *rest = paths;
	char *path;

	assert_non_null(paths);
	while ((path = strsep(&rest, ",")) && *path) {
		struct census c = {0};
		take_census(*state, path, &c);
		print_message("%s: %u of %u entries, %u of %u exits\n", path, c.entries_found,
			      c.entries, c.exits_found, c.exits);
	}
	free(paths);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rooms),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_more),
	};
	return cmocka_run_group_tests_name("room", tests, set_up, tear_down);
}
