/* What the recorder may displace, and what it puts there instead. */

#include "base/map.h"
#include "symbols/object.h"
#include "tests/unit/test_objdump.h"
#include "tracer/recorder/internal.h"
#include "tracer/recorder/window.h"
#include "tracer/wanted.h"

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <linux/seccomp.h>
#include <sys/syscall.h>

#include <cmocka.h>

#define BEGIN 0x400000UL
#define STUB  0x500000UL

/* What reading the clock waits for, before it and behind. */
static long early;
static long late;

static void wait_once(long *ns)
{
	const struct timespec time = {0, *ns};

	*ns = 0;
	if (time.tv_nsec)
		nanosleep(&time, NULL);
}

/* In place of the library's. */
int clock_gettime(clockid_t id, struct timespec *to)
{
	wait_once(&early);
	long result = syscall(SYS_clock_gettime, id, to);
	wait_once(&late);
	return (int)result;
}

/* Who is kept waiting between its two clocks does not take the times apart. */
static void test_clocks(void **state)
{
	const struct clock clock = clock_new();
	const long tenth = 100000000;
	struct recorder first = {0};
	struct recorder last = {0};
	struct recorder interrupted[2] = {{.ticks = 0}};

	(void)state;
	drain_begin_clock(&first, &clock);
	early = tenth;
	drain_begin_clock(&interrupted[0], &clock);
	late = tenth;
	drain_begin_clock(&interrupted[1], &clock);
	assert_true(early == 0 && late == 0);
	drain_begin_clock(&last, &clock);
	double rate = (double)(last.ns - first.ns) / (double)(last.ticks - first.ticks);
	for (int i = 0; i < 2; i++) {
		double ns = (double)(interrupted[i].ticks - first.ticks) * rate;
		assert_in_range((uint64_t)ns + (uint64_t)tenth - (interrupted[i].ns - first.ns),
				tenth * 9 / 10, tenth * 11 / 10);
	}
}

static int set_up(void **state)
{
	*state = insn_decoder_new();
	return *state ? 0 : -1;
}

static int tear_down(void **state)
{
	insn_decoder_free(*state);
	return 0;
}

/* Looks at the first system call of a function; what follows the function is `more` bytes of the code. */
static struct window look(struct insn_decoder *decoder, const char *code, size_t len, size_t more)
{
	const struct window_code around = {
		.bytes = (const unsigned char *)code,
		.len = len,
		.function_len = len - more,
		.begin = BEGIN,
	};
	const char *call = memmem(code, len, "\x0f\x05", 2);
	struct window window;

	assert_non_null(call);
	window_find(decoder, &around, BEGIN + (uint64_t)(call - code) + 2, &window);
	return window;
}

#define LOOK(code, more) look(*state, code, sizeof(code) - 1, more)

static void test_before(void **state)
{
	/* nop; mov $17,%eax; syscall; ret */
	struct window w = LOOK("\x90\xb8\x11\0\0\0\x0f\x05\xc3", 0);

	assert_int_equal(w.form, WINDOW_BEFORE);
	assert_int_equal(w.begin, BEGIN + 1);
	assert_int_equal(w.insn.len, 5);
	/* mov %r11,0x8(%rsp), of the C library's cancellation, is what it takes, too. */
	w = LOOK("\x4c\x89\x5c\x24\x08\x0f\x05\xc3", 0);
	assert_int_equal(w.form, WINDOW_BEFORE);
}

static void test_before_is_by_instructions_not_by_bytes(void **state)
{
	/* movl $1,-0x48(%rsp) ends in what looks like mov $1,%eax */
	struct window w = LOOK("\xc7\x44\x24\xb8\x01\0\0\0\x0f\x05\x48\x89\xc2\xc3", 0);

	assert_int_equal(w.form, WINDOW_BEFORE);
	assert_int_equal(w.begin, BEGIN);
	assert_int_equal(w.insn.len, 8);
	/* The bytes of a system call inside another instruction: mov $0x050f,%eax */
	w = LOOK("\xb8\x0f\x05\0\0\x90\x90\x90", 0);
	assert_int_equal(w.form, WINDOW_REFUSED);
	assert_int_equal(w.refusal, WINDOW_NO_DECODE);
}

static void test_branches_before_stay(void **state)
{
	/* jne over five bytes; call; jmp: what leads to the call is not what stands before it */
	struct window w = LOOK("\xe8\0\0\0\0\x0f\x05\x48\x3d\x01\xf0\xff\xff\xc3", 0);

	assert_int_equal(w.form, WINDOW_AFTER);
	w = LOOK("\x0f\x85\0\0\0\0\x0f\x05\x90\x90\x90\xc3", 0);
	assert_int_equal(w.form, WINDOW_REFUSED);
	assert_int_equal(w.refusal, WINDOW_NO_ROOM);
}

static void test_behind(void **state)
{
	/* xor %eax,%eax; syscall; cmp $-4095,%rax; ret */
	struct window w = LOOK("\x31\xc0\x0f\x05\x48\x3d\x01\xf0\xff\xff\xc3", 0);

	assert_int_equal(w.form, WINDOW_AFTER);
	assert_int_equal(w.begin, BEGIN + 2);
	assert_int_equal(w.insn.len, 6);
	/* Two short ones would have a place between them where a thread can stand. */
	w = LOOK("\x31\xc0\x0f\x05\x89\xc2\x89\xc3\xc3", 0);
	assert_int_equal(w.refusal, WINDOW_NO_ROOM);
	/* A call would push an address inside the stub. */
	w = LOOK("\x31\xc0\x0f\x05\xe8\0\0\0\0\xc3", 0);
	assert_int_equal(w.refusal, WINDOW_NO_COPY);
}

static void test_return_behind_needs_filler(void **state)
{
	/* syscall; ret; nopw, up to the next sixteen */
	struct window w = LOOK("\x31\xc0\x0f\x05\xc3\x66\x2e\x0f\x1f\x84\0\0\0\0\0\x90", 11);

	assert_int_equal(w.form, WINDOW_AFTER);
	w = LOOK("\x31\xc0\x0f\x05\xc3\xcc\xcc\xcc\xcc\xcc\xcc\xcc\xcc\xcc\xcc\xcc", 11);
	assert_int_equal(w.form, WINDOW_AFTER);
	/* The next function begins at once, with an endbr64. */
	w = LOOK("\x31\xc0\x0f\x05\xc3\xf3\x0f\x1e\xfa\x90\x90\x90\x90\x90\x90\x90", 11);
	assert_int_equal(w.refusal, WINDOW_NO_ROOM);
	w = LOOK("\x31\xc0\x0f\x05\xc3\x55\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90", 11);
	assert_int_equal(w.refusal, WINDOW_NO_ROOM);
	/* There is none left: the function ends where the next may begin. */
	w = LOOK("\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x31\xc0\x0f\x05\xc3", 0);
	assert_int_equal(w.refusal, WINDOW_NO_ROOM);
}

static void test_what_is_no_call(void **state)
{
	const struct window_code code = {(const unsigned char *)"\x90\x90\x90\x90\xc3", 5, 5,
					 BEGIN};
	struct window w;

	for (uint64_t ip = BEGIN - 3; ip < BEGIN + 9; ip++) {
		window_find(*state, &code, ip, &w);
		assert_int_equal(w.form, WINDOW_REFUSED);
	}
}

static void test_jumps(void **state)
{
	unsigned char jump[WINDOW_JUMP];
	struct window before = LOOK("\xb8\x11\0\0\0\x0f\x05\xc3", 0);
	struct window behind = LOOK("\x31\xc0\x0f\x05\x48\x3d\x01\xf0\xff\xff\xc3", 0);
	unsigned fitting = 0;

	assert_true(stub_jump(&before, STUB, jump));
	assert_memory_equal(jump, "\xe9\xfb\xff\x0f\x00", WINDOW_JUMP);
	assert_false(stub_jump(&before, BEGIN + (1UL << 32), jump));
	/* Of 64 kB one in 256 places has the breakpoint in its distance. */
	for (uint64_t at = STUB; at < STUB + AREA_SIZE; at += STUB_SIZE)
		fitting += stub_jump(&behind, at, jump) && jump[2] == 0xcc;
	assert_int_equal(fitting, AREA_SIZE / STUB_SIZE / 256);
}

/* The instructions of a stub, as another look at its bytes has them. */
static void test_stubs(void **state)
{
	static const char *const codes[] = {
		"\xb8\x11\0\0\0\x0f\x05\xc3",
		"\x48\x8b\x05\0\x01\0\0\x0f\x05\xc3", /* mov 0x100(%rip),%rax */
	};
	struct stub stub;

	for (size_t i = 0; i < 2; i++) {
		struct window w = look(*state, codes[i], i ? 10 : 8, 0);
		assert_int_equal(stub_make(&stub, &w, STUB), 0);
		assert_int_equal(stub.test, w.insn.len);
		assert_true(stub.len <= STUB_SIZE);
		int32_t disp;
		memcpy(&disp, stub.bytes + 3, 4);
		/* It means the same memory from there. */
		if (i)
			assert_int_equal(STUB + 7 + (uint64_t)(int64_t)disp, BEGIN + 7 + 0x100);
		/* Out of reach. */
		assert_int_equal(stub_make(&stub, &w, BEGIN + (1UL << 33)), -1);
	}
	struct window w = LOOK("\x31\xc0\x0f\x05\x48\x3d\x01\xf0\xff\xff\xc3", 0);
	assert_int_equal(stub_make(&stub, &w, STUB), 0);
	assert_memory_equal(stub.bytes + stub.after - 2, "\x0f\x05\x48\x3d\x01\xf0\xff\xff", 8);
	assert_true(stub.len <= STUB_SIZE);
}

static void test_shapes(void **state)
{
	static const struct {
		uint64_t nr;
		uint16_t shape;
	} shapes[] = {
		{__NR_read, SHAPE_RECORDED | SHAPE_FD},
		{__NR_preadv2, SHAPE_RECORDED | SHAPE_FD | SHAPE_VECTOR},
		{__NR_close, SHAPE_RECORDED | SHAPE_FD | SHAPE_CLOSES},
		{__NR_open, SHAPE_RECORDED | SHAPE_OPENS | SHAPE_PATH0},
		{__NR_openat, SHAPE_RECORDED | SHAPE_OPENS | SHAPE_DIR0 | SHAPE_PATH1},
		{__NR_rename, SHAPE_RECORDED | SHAPE_PATH0 | SHAPE_PATH1},
		{__NR_renameat2,
		 SHAPE_RECORDED | SHAPE_DIR0 | SHAPE_DIR2 | SHAPE_PATH1 | SHAPE_PATH3},
		/* What changes more than one descriptor, what the kernel fills in, what waits for children. */
		{__NR_openat2, 0},
		{__NR_dup, 0},
		{__NR_dup2, 0},
		{__NR_fcntl, 0},
		{__NR_chdir, 0},
		{__NR_mmap, 0},
		{__NR_clone, 0},
		{__NR_execve, 0},
		{__NR_close_range, 0},
		{__NR_wait4, 0},
		{__NR_io_submit, 0},
		{__NR_sendfile, 0},
		{__NR_rt_sigreturn, 0},
		{__NR_ioctl, 0},
		{__NR_symlink, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
		assert_int_equal(recorder_shape(syscall_row(shapes[i].nr)), shapes[i].shape);
}

static void test_layout(void **state)
{
	(void)state;
	assert_int_equal(offsetof(struct agent_ring, head), RING_HEAD);
	assert_int_equal(offsetof(struct agent_ring, limit), RING_LIMIT);
	assert_int_equal(offsetof(struct agent_ring, mask), RING_MASK);
	assert_int_equal(offsetof(struct agent_ring, full), RING_FULL);
	assert_int_equal(offsetof(struct agent_ring, nr), RING_NR);
	assert_int_equal(offsetof(struct agent_ring, ret), RING_RET);
	assert_int_equal(offsetof(struct agent_ring, rdx), RING_RDX);
	assert_int_equal(offsetof(struct agent_ring, rdi), RING_RDI);
	assert_int_equal(offsetof(struct agent_ring, rsi), RING_RSI);
	assert_int_equal(offsetof(struct agent_ring, result), RING_RESULT);
	assert_int_equal(offsetof(struct agent_ring, record), RING_RECORD);
	assert_int_equal(offsetof(struct agent_ring, next), RING_NEXT);
	assert_int_equal(offsetof(struct agent_ring, flags), RING_FLAGS);
	assert_int_equal(offsetof(struct agent_ring, tail), RING_TAIL);
	assert_int_equal(offsetof(struct agent_ring, hook_entry), RING_HOOK_ENTRY);
	assert_int_equal(offsetof(struct agent_ring, hook_exit), RING_HOOK_EXIT);
	assert_int_equal(offsetof(struct agent_ring, first), RING_FIRST);
	assert_int_equal(offsetof(struct agent_ring, hook_rax), RING_HOOK_RAX);
	assert_int_equal(offsetof(struct agent_ring, hook_rdx), RING_HOOK_RDX);
	assert_int_equal(offsetof(struct agent_ring, hook_flags), RING_HOOK_FLAGS);
	assert_int_equal(offsetof(struct agent_ring, hook_back), RING_HOOK_BACK);
	assert_int_equal(offsetof(struct agent_record, stub), RECORD_STUB);
	assert_int_equal(offsetof(struct agent_record, fd), RECORD_FD);
	assert_int_equal(offsetof(struct agent_record, length), RECORD_LENGTH);
	assert_int_equal(offsetof(struct agent_ring, records), RING_RECORDS);
	assert_int_equal(sizeof(struct agent_record), RECORD_SIZE);
	assert_int_equal(offsetof(struct agent_record, state), RECORD_STATE);
	assert_int_equal(offsetof(struct agent_record, shape), RECORD_SHAPE);
	assert_int_equal(offsetof(struct agent_record, start), RECORD_START);
	assert_int_equal(offsetof(struct agent_record, end), RECORD_END);
	assert_int_equal(offsetof(struct agent_record, result), RECORD_RESULT);
	assert_int_equal(offsetof(struct agent_record, args), RECORD_ARGS);
	assert_int_equal(offsetof(struct agent_record, ip), RECORD_IP);
	assert_int_equal(offsetof(struct agent_record, sp), RECORD_SP);
	assert_int_equal(offsetof(struct agent_record, sum), RECORD_SUM);
	assert_int_equal(agent_offset(agent_called), AGENT_SYSCALL + ARCH_SYSCALL_LEN);
	assert_true(agent_offset(agent_end) + 16 < AGENT_TEXT_SIZE);
}

/* --- The filter that lets its calls pass --- */

/* Runs the filter's program as the kernel does. @return its answer; `*by_number`: nothing but the number and the
 * architecture has been looked at, by which the kernel can know the answer beforehand. */
static uint32_t filtered(const struct sock_filter *insns, const struct seccomp_data *data,
			 bool *by_number)
{
	uint32_t a = 0;

	*by_number = true;
	for (const struct sock_filter *i = insns;; i++) {
		switch (i->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			memcpy(&a, (const char *)data + i->k, sizeof(a));
			*by_number &= i->k == offsetof(struct seccomp_data, nr) ||
				      i->k == offsetof(struct seccomp_data, arch);
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= i->k;
			break;
		case BPF_JMP | BPF_JA:
			i += i->k;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			i += a == i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JGT | BPF_K:
			i += a > i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			i += a >= i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JSET | BPF_K:
			i += a & i->k ? i->jt : i->jf;
			break;
		default:
			assert_int_equal(i->code, BPF_RET | BPF_K);
			return i->k;
		}
	}
}

static void test_filter(void **state)
{
	struct filter_rule rules[WANTED_MAX];
	struct sock_filter insns[4096];
	size_t len = sizeof(insns) / sizeof(*insns);
	struct selection selection;
	const uint64_t ip = recorder_allowed_ip();
	const uint32_t trace = SECCOMP_RET_TRACE | FILTER_TRACE_DATA;
	unsigned passed = 0;

	(void)state;
	selection_default(&selection);
	size_t n = wanted_rules(&selection, rules);
	assert_int_equal(filter_build(rules, n, ip, insns, &len), 0);
	for (int nr = 0; nr < 600; nr++) {
		struct seccomp_data data = {.nr = nr, .arch = ARCH_AUDIT};
		bool by_number;
		size_t rule = 0;
		while (rule < n && rules[rule].nr != nr)
			rule++;
		data.instruction_pointer = ip;
		assert_int_equal(filtered(insns, &data, &by_number), SECCOMP_RET_ALLOW);
		/* What no rule is about is known by its number alone. */
		if (rule == n)
			assert_true(by_number);
		if (rule == n || rules[rule].nconditions)
			continue;
		passed++;
		/* Both halves count. */
		for (int bit = 0; bit < 64; bit++) {
			data.instruction_pointer = ip ^ (uint64_t)1 << bit;
			assert_int_equal(filtered(insns, &data, &by_number), trace);
		}
	}
	assert_true(passed > 50);
}

/* --- Against another decoder --- */

struct listing {
	struct map starts; /* every address at which an instruction begins */
	uint64_t *calls;
	size_t ncalls;
};

static void take_line(void *data, uint64_t address, const char *text)
{
	struct listing *listing = data;

	assert_int_equal(map_put(&listing->starts, address, listing), 0);
	if (strncmp(text, "syscall", 7) == 0) {
		listing->calls =
			reallocarray(listing->calls, listing->ncalls + 1, sizeof(*listing->calls));
		listing->calls[listing->ncalls++] = address;
	}
}

static int list(const char *path, struct listing *listing)
{
	return objdump_list(path, take_line, listing);
}

static bool begins(const struct listing *listing, uint64_t address)
{
	return map_get(&listing->starts, address);
}

/* @return whether an instruction goes from `begin` to `end`. */
static bool is_one(const struct listing *listing, uint64_t begin, uint64_t end)
{
	if (!begins(listing, begin))
		return false;
	for (uint64_t at = begin + 1; at < end; at++) {
		if (begins(listing, at))
			return false;
	}
	return true;
}

static void check_file(struct insn_decoder *decoder, struct objects *objects, const char *path,
		       unsigned *forms)
{
	struct object *object = objects_get(objects, path);
	struct listing listing = {0};

	if (!object || list(path, &listing) != 0)
		return;
	for (size_t i = 0; i < listing.ncalls; i++) {
		uint64_t call = listing.calls[i];
		uint64_t begin;
		uint64_t end;
		struct window_code code = {0};
		struct window w;
		if (!object_bounds(object, call, &begin, &end))
			continue;
		code.bytes = object_code(object, begin, &code.len);
		code.begin = begin;
		code.function_len = (size_t)(end - begin);
		if (!code.bytes || code.len < code.function_len)
			continue;
		window_find(decoder, &code, call + 2, &w);
		forms[w.form]++;
		bool agrees =
			w.form == WINDOW_REFUSED ||
			(w.form == WINDOW_BEFORE
				 ? w.begin + w.insn.len == call && is_one(&listing, w.begin, call)
				 : w.begin == call && is_one(&listing, w.ip, w.ip + w.insn.len));
		if (!agrees)
			print_error("%s: the system call at 0x%lx\n", path, (unsigned long)call);
		assert_true(agrees);
	}
	map_free(&listing.starts);
	free(listing.calls);
}

static void test_system_files(void **state)
{
	static const char *const patterns[] = {
		"/lib/x86_64-linux-gnu/libc.so.6",
		"/lib64/ld-linux-x86-64.so.2",
		"/usr/bin/bash",
		"/usr/bin/tar",
		"/usr/lib/x86_64-linux-musl/libc.so",
		"build/examples/fortran_io.static",
	};
	struct objects *objects = objects_new(NULL, 0);
	unsigned forms[WINDOW_REFUSED + 1] = {0};

	assert_non_null(objects);
	for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++) {
		glob_t found;
		if (glob(patterns[i], 0, NULL, &found) != 0)
			continue;
		for (size_t k = 0; k < found.gl_pathc; k++)
			check_file(*state, objects, found.gl_pathv[k], forms);
		globfree(&found);
	}
	print_message("before %u, behind %u, refused %u\n", forms[WINDOW_BEFORE],
		      forms[WINDOW_AFTER], forms[WINDOW_REFUSED]);
	/* Most can be had. */
	assert_true(forms[WINDOW_BEFORE] > 4 * forms[WINDOW_REFUSED]);
	objects_free(objects);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_before, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_before_is_by_instructions_not_by_bytes, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_branches_before_stay, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_behind, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_return_behind_needs_filler, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_is_no_call, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_jumps, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_stubs, set_up, tear_down),
		cmocka_unit_test(test_clocks),
		cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_layout),
		cmocka_unit_test(test_filter),
		cmocka_unit_test_setup_teardown(test_system_files, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
