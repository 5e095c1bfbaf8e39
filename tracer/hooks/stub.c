#include "tracer/hooks/stub.h"

#include "tracer/arch/arch.h"
#include "tracer/recorder/agent/layout.h"

#include <string.h>

#define JUMP 0xe9

_Static_assert(HOOK_STUB_END - HOOK_STUB_BREAKPOINT == HOOK_TRAP, "HOOK_TRAP");

size_t hook_jump_length(const struct hook_jump *jump, unsigned n)
{
	size_t len = 0;

	for (unsigned i = 0; i < n; i++)
		len += jump->insns[i].len;
	return len;
}

size_t hook_jump_head(const struct hook_jump *jump)
{
	return hook_jump_length(jump, jump->ninsns - 1U);
}

int hook_jump_make(struct hook_jump *jump, struct insn_decoder *decoder, const struct room *room,
		   bool exit, const unsigned char *code)
{
	*jump = (struct hook_jump){.begin = room->begin, .len = room->len, .exit = exit};
	for (size_t at = 0; at < room->len;) {
		struct insn *insn = &jump->insns[jump->ninsns];
		if (jump->ninsns == ROOM_JUMP ||
		    insn_decode(decoder, code + at, room->len - at, room->begin + at, insn) < 0)
			return -1;
		at += insn->len;
		jump->ninsns++;
		/* What follows is padding. */
		if (exit && insn->kind == INSN_RET)
			break;
	}
	if (exit && (jump->insns[jump->ninsns - 1].kind != INSN_RET ||
		     hook_jump_head(jump) > HOOK_STUB_TEST))
		return -1;
	return 0;
}

/* Copies an instruction to offset `to` of the stub. @return its length there, with or without the way back; 0: it
 * cannot lie there. */
static size_t put_insn(const struct insn *insn, uint64_t from, uint64_t address,
		       unsigned char *stub, size_t to, bool goes_back)
{
	unsigned char bytes[INSN_RELOCATED_MAX];
	size_t len = insn_relocate(insn, from, address + to, bytes, sizeof(bytes));

	/* All but jumps are their own bytes, and a jump. */
	if (len && !goes_back)
		len = insn->len;
	if (to + len > HOOK_STUB_SIZE)
		return 0;
	memcpy(stub + to, bytes, len);
	return len;
}

static void put_test(unsigned char *out, uint64_t agent)
{
	static const unsigned char code[] = {
		0x48,
		0x89,
		0x8c,
		0x24,
		0,
		0,
		0,
		0, /* mov %rcx,-HOOK_SAVED(%rsp) */
		0xf3,
		0x48,
		0x0f,
		0xae,
		0xc9, /* rdgsbase %rcx */
		0x48,
		0x0f,
		0xc9, /* bswap %rcx */
		0x8d,
		0x89,
		0,
		0,
		0,
		0, /* lea AGENT_GS_TEST(%rcx),%ecx */
		0xe3,
		0x0a, /* jrcxz over the breakpoint, not just behind it */
		0x48,
		0x8b,
		0x8c,
		0x24,
		0,
		0,
		0,
		0, /* mov -HOOK_SAVED(%rsp),%rcx */
		ARCH_BREAKPOINT,
		0x90,
		0x48,
		0x8d,
		0x0d,
		0,
		0,
		0,
		0, /* lea the end part(%rip),%rcx */
		0x65,
		0xff,
		0x24,
		0x25,
		0,
		0,
		0,
		0, /* jmp *%gs:agent */
	};
	const uint32_t test = AGENT_GS_TEST;
	const int32_t saved = -HOOK_SAVED;
	const int32_t end = HOOK_STUB_END - (HOOK_STUB_TEST + 41);
	const uint32_t at = (uint32_t)agent;

	_Static_assert(sizeof(code) <= HOOK_STUB_END - HOOK_WORD - HOOK_STUB_TEST, "room");
	memcpy(out, code, sizeof(code));
	memcpy(out + 4, &saved, sizeof(saved));
	memcpy(out + 18, &test, sizeof(test));
	memcpy(out + 28, &saved, sizeof(saved));
	memcpy(out + 37, &end, sizeof(end));
	memcpy(out + 45, &at, sizeof(at));
}

uint64_t hook_stub_make(const struct hook_jump *jump, uint64_t begin, uint64_t address,
			unsigned char stub[HOOK_STUB_SIZE])
{
	const uint16_t shape = jump->exit ? SHAPE_HOOK_EXIT : SHAPE_HOOK_ENTRY;
	const uint64_t word = (uint64_t)shape << 32 | RECORD_DONE << 16;
	size_t head = jump->exit ? hook_jump_head(jump) : 0;
	size_t to = HOOK_STUB_TEST - head;
	uint64_t from = begin;

	memset(stub, ARCH_BREAKPOINT, HOOK_STUB_SIZE);
	put_test(stub + HOOK_STUB_TEST, jump->exit ? RING_HOOK_EXIT : RING_HOOK_ENTRY);
	memcpy(stub + HOOK_STUB_END - HOOK_WORD, &word, sizeof(word));
	memcpy(stub + HOOK_STUB_END - HOOK_RECIPE, jump->recipe, sizeof(jump->recipe));
	for (unsigned i = 0; i < jump->ninsns; i++) {
		bool last = i + 1 == jump->ninsns;
		if (jump->exit ? last : i == 0)
			to = HOOK_STUB_END;
		size_t len = put_insn(&jump->insns[i], from, address, stub, to, last);
		if (!len)
			return 0;
		to += len;
		from += jump->insns[i].len;
	}
	return address + HOOK_STUB_TEST - head;
}

int hook_jump_bytes(uint64_t begin, uint64_t target, unsigned char bytes[ROOM_JUMP])
{
	int64_t distance = (int64_t)(target - (begin + ROOM_JUMP));
	int32_t disp = (int32_t)distance;

	bytes[0] = JUMP;
	memcpy(bytes + 1, &disp, sizeof(disp));
	return disp == distance ? 0 : -1;
}

uint64_t hook_jump_target(uint64_t begin, const unsigned char bytes[ROOM_JUMP])
{
	int32_t disp;

	memcpy(&disp, bytes + 1, sizeof(disp));
	return bytes[0] == JUMP ? begin + ROOM_JUMP + (uint64_t)(int64_t)disp : 0;
}
