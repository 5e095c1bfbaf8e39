#include "tracer/recorder/window.h"

#include "tracer/arch/arch.h"

#include <string.h>

#define LOCK_PREFIX 0xf0

static bool goes_on(const struct insn *insn)
{
	switch (insn->kind) {
	case INSN_REFUSED:
	case INSN_JMP:
	case INSN_JCC:
	case INSN_CALL:
	case INSN_RET:
	case INSN_JMP_INDIRECT:
		return false;
	default:
		return true;
	}
}

static bool is_padding(struct insn_decoder *decoder, const unsigned char *code, size_t len)
{
	struct insn insn;

	while (len) {
		if (*code == ARCH_BREAKPOINT) {
			code++;
			len--;
			continue;
		}
		if (insn_decode(decoder, code, len, 0, &insn) < 0 || insn.kind != INSN_NOP)
			return false;
		code += insn.len;
		len -= insn.len;
	}
	return true;
}

/* The instruction behind the call. */
static enum window_refusal look_behind(struct insn_decoder *decoder, const unsigned char *code,
				       size_t len, uint64_t ip, struct insn *insn)
{
	if (insn_decode(decoder, code, len, ip, insn) < 0)
		return WINDOW_NO_DECODE;
	if (insn->kind == INSN_REFUSED || insn->kind == INSN_CALL)
		return WINDOW_NO_COPY;
	if (ARCH_SYSCALL_LEN + insn->len >= WINDOW_JUMP)
		return WINDOW_FITS;
	/* Behind the function's last instruction nothing is ever executed. */
	bool last = insn->kind == INSN_RET || insn->kind == INSN_JMP;
	if (!last || len + ARCH_SYSCALL_LEN < WINDOW_JUMP ||
	    !is_padding(decoder, code + insn->len, len - insn->len))
		return WINDOW_NO_ROOM;
	return WINDOW_FITS;
}

void window_find(struct insn_decoder *decoder, const unsigned char *code, size_t len,
		 uint64_t begin, uint64_t ip, struct window *window)
{
	size_t call = (size_t)(ip - ARCH_SYSCALL_LEN - begin);
	size_t at = 0;
	size_t before = 0;
	struct insn insn;

	*window = (struct window){.form = WINDOW_REFUSED, .refusal = WINDOW_NO_DECODE, .ip = ip};
	if (ip < begin + ARCH_SYSCALL_LEN || call + ARCH_SYSCALL_LEN > len ||
	    arch_find_syscall(code + call, ARCH_SYSCALL_LEN) != 0)
		return;
	while (at < call) {
		size_t n = insn_length(decoder, code + at, len - at);
		if (n == 0)
			return;
		before = at;
		at += n;
	}
	if (at != call)
		return;
	if (call - before >= WINDOW_JUMP && code[before] != LOCK_PREFIX &&
	    insn_decode(decoder, code + before, call - before, begin + before, &insn) == 0 &&
	    goes_on(&insn) && insn.len == call - before) {
		window->form = WINDOW_BEFORE;
		window->refusal = WINDOW_FITS;
		window->begin = begin + before;
		window->insn = insn;
		return;
	}
	size_t behind = call + ARCH_SYSCALL_LEN;
	window->refusal = look_behind(decoder, code + behind, len - behind, ip, &window->insn);
	if (window->refusal != WINDOW_FITS)
		return;
	window->form = WINDOW_AFTER;
	window->begin = ip - ARCH_SYSCALL_LEN;
}

const char *window_refusal(enum window_refusal refusal)
{
	static const char *const words[] = {
		[WINDOW_FITS] = "",
		[WINDOW_NO_BOUNDS] = "its function is not known",
		[WINDOW_NO_DECODE] = "its function could not be decoded",
		[WINDOW_NO_ROOM] = "there is no room for a jump",
		[WINDOW_NO_COPY] = "what a jump would displace has to stay",
		[WINDOW_CHANGED] = "the code in memory is not the file's",
		[WINDOW_NO_STUB] = "no memory near it",
	};
	return words[refusal];
}
