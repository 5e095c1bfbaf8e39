#include "tracer/recorder/stub.h"

#include "tracer/arch/arch.h"
#include "tracer/recorder/agent/layout.h"

#include <string.h>

#define JUMP 0xe9

static const unsigned char syscall_insn[ARCH_SYSCALL_LEN] = {0x0f, 0x05};

static void put(struct stub *stub, const void *bytes, size_t len)
{
	memcpy(stub->bytes + stub->len, bytes, len);
	stub->len += (unsigned char)len;
}

/* @return whether the distance from the end of what is put to `target` has been put. */
static bool put_distance(struct stub *stub, uint64_t address, uint64_t target)
{
	int64_t distance = (int64_t)(target - (address + stub->len + 4));
	int32_t disp = (int32_t)distance;

	put(stub, &disp, sizeof(disp));
	return disp == distance;
}

/* The displaced instruction, and behind it a jump to where it would have gone on. @return its length, 0: it cannot
 * lie there. */
static size_t put_displaced(struct stub *stub, const struct window *window, uint64_t address)
{
	uint64_t from = window->form == WINDOW_BEFORE ? window->begin : window->ip;
	size_t len = insn_relocate(&window->insn, from, address + stub->len,
				   stub->bytes + stub->len, INSN_RELOCATED_MAX);

	stub->len += (unsigned char)len;
	return len;
}

/* By %gs and without a flag: jrcxz jumps if it is a ring's. */
static void put_test(struct stub *stub)
{
	static const unsigned char rdgsbase_rcx[] = {0xf3, 0x48, 0x0f, 0xae, 0xc9};
	static const unsigned char mov_r11_rcx[] = {0x49, 0x89, 0xcb};
	static const unsigned char bswap_rcx[] = {0x48, 0x0f, 0xc9};
	static const unsigned char lea_ecx_rcx[] = {0x8d, 0x89};
	static const unsigned char jrcxz_over_jump[] = {0xe3, WINDOW_JUMP};
	const uint32_t disp = AGENT_GS_TEST;

	put(stub, rdgsbase_rcx, sizeof(rdgsbase_rcx));
	put(stub, mov_r11_rcx, sizeof(mov_r11_rcx));
	put(stub, bswap_rcx, sizeof(bswap_rcx));
	put(stub, lea_ecx_rcx, sizeof(lea_ecx_rcx));
	put(stub, &disp, sizeof(disp));
	put(stub, jrcxz_over_jump, sizeof(jrcxz_over_jump));
}

int stub_make(struct stub *stub, const struct window *window, uint64_t address)
{
	static const unsigned char jump = JUMP;
	static const unsigned char lea_rcx[] = {0x48, 0x8d, 0x0d};
	static const unsigned char jump_through[] = {0xff, 0x25, 0, 0, 0, 0};
	static const size_t rest = 4 + sizeof(jump_through) + 8; /* behind lea's opcode */
	const uint64_t agent = AGENT_BASE;
	bool before = window->form == WINDOW_BEFORE;
	bool reached = true;

	*stub = (struct stub){0};
	if (before) {
		reached = put_displaced(stub, window, address) > 0;
		/* It goes on here, instead. */
		stub->len = window->insn.len;
	}
	stub->test = stub->len;
	put_test(stub);
	/* Both ways lead to, or just behind, one system call instruction. */
	put(stub, &jump, 1);
	uint64_t own = address + stub->len + 4 + sizeof(lea_rcx) + rest;
	uint64_t call = before ? window->ip - ARCH_SYSCALL_LEN : own;
	reached &= put_distance(stub, address, call);
	put(stub, lea_rcx, sizeof(lea_rcx));
	reached &= put_distance(stub, address, call + ARCH_SYSCALL_LEN);
	put(stub, jump_through, sizeof(jump_through));
	put(stub, &agent, sizeof(agent));
	if (before)
		return reached ? 0 : -1;
	put(stub, syscall_insn, sizeof(syscall_insn));
	stub->after = stub->len;
	reached &= put_displaced(stub, window, address) > 0;
	return reached ? 0 : -1;
}

bool stub_jump(const struct window *window, uint64_t address, unsigned char jump[WINDOW_JUMP])
{
	int64_t distance = (int64_t)(address - (window->begin + WINDOW_JUMP));
	int32_t disp = (int32_t)distance;

	jump[0] = JUMP;
	memcpy(jump + 1, &disp, sizeof(disp));
	if (disp != distance)
		return false;
	return window->form == WINDOW_BEFORE || jump[ARCH_SYSCALL_LEN] == ARCH_BREAKPOINT;
}
