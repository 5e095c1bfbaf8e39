#include "tracer/recorder/window.h"

#include "tracer/arch/arch.h"

#include <string.h>

#define LOCK_PREFIX 0xf0
/* Of functions. */
#define ALIGNMENT 16

/* What compilers fill the way to the next function with. A function may begin with an endbr64, which is none. */
static bool is_filler(struct insn_decoder *decoder, const unsigned char *code, size_t len)
{
	static const unsigned char endbr[] = {0xf3, 0x0f, 0x1e};
	struct insn insn;

	while (len) {
		if (*code == ARCH_BREAKPOINT) {
			code++;
			len--;
			continue;
		}
		if (insn_decode(decoder, code, len, 0, &insn) < 0 || insn.kind != INSN_NOP ||
		    (len >= sizeof(endbr) && memcmp(code, endbr, sizeof(endbr)) == 0))
			return false;
		code += insn.len;
		len -= insn.len;
	}
	return true;
}

/* The instruction behind the call, at `at` of the code. */
static enum window_refusal look_behind(struct insn_decoder *decoder, const struct window_code *code,
				       size_t at, struct insn *insn)
{
	uint64_t ip = code->begin + at;

	if (insn_decode(decoder, code->bytes + at, code->function_len - at, ip, insn) < 0)
		return WINDOW_NO_DECODE;
	if (insn->kind == INSN_REFUSED || insn->kind == INSN_CALL)
		return WINDOW_NO_COPY;
	if (ARCH_SYSCALL_LEN + insn->len >= WINDOW_JUMP)
		return WINDOW_FITS;
	if (insn->kind != INSN_RET && insn->kind != INSN_JMP)
		return WINDOW_NO_ROOM;
	/* From there on nothing is executed up to the next function, or the next part of this one. */
	size_t end = at + insn->len;
	size_t filler = (size_t)(-(code->begin + end) & (ALIGNMENT - 1));
	if (ARCH_SYSCALL_LEN + insn->len + filler < WINDOW_JUMP || filler > code->len - end ||
	    !is_filler(decoder, code->bytes + end, filler))
		return WINDOW_NO_ROOM;
	return WINDOW_FITS;
}

void window_find(struct insn_decoder *decoder, const struct window_code *code, uint64_t ip,
		 struct window *window)
{
	uint64_t call = ip - ARCH_SYSCALL_LEN - code->begin;
	size_t at = 0;
	size_t before = 0;
	struct insn insn;

	*window = (struct window){.form = WINDOW_REFUSED, .refusal = WINDOW_NO_DECODE, .ip = ip};
	if (call > code->function_len || code->function_len - call < ARCH_SYSCALL_LEN ||
	    arch_find_syscall(code->bytes + call, ARCH_SYSCALL_LEN) != 0)
		return;
	while (at < call) {
		size_t n = insn_length(decoder, code->bytes + at, code->function_len - at);
		if (n == 0)
			return;
		before = at;
		at += n;
	}
	if (at != call)
		return;
	if (call - before >= WINDOW_JUMP && code->bytes[before] != LOCK_PREFIX &&
	    insn_decode(decoder, code->bytes + before, call - before, code->begin + before,
			&insn) == 0 &&
	    insn_is_straight(&insn) && insn.len == call - before) {
		window->form = WINDOW_BEFORE;
		window->refusal = WINDOW_FITS;
		window->begin = code->begin + before;
		window->insn = insn;
		return;
	}
	window->refusal = look_behind(decoder, code, call + ARCH_SYSCALL_LEN, &window->insn);
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
		[WINDOW_SHARED] = "a jump would be written to its file",
		[WINDOW_CHANGED] = "the code in memory is not the file's",
		[WINDOW_NO_STUB] = "no memory near it",
	};
	return words[refusal];
}
