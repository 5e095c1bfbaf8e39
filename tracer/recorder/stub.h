/* What a jump at a window leads to: it does what was displaced and goes to the agent, or, in a thread without a
 * ring, on as without us. No flag, no stack, and no register but rcx and r11 changes, which every system call
 * destroys.
 *
 *	[the displaced instruction, WINDOW_BEFORE]
 *	is %gs one of our rings? no: to the system call instruction
 *	rcx: where to go on
 *	to the agent
 *	[system call; the displaced instruction; back: WINDOW_AFTER]
 */
#ifndef TRACER_RECORDER_STUB_H
#define TRACER_RECORDER_STUB_H

#include "tracer/recorder/window.h"

#define STUB_SIZE 128

struct stub {
	unsigned char bytes[STUB_SIZE];
	unsigned char len;
	unsigned char test; /* offset of what comes before the agent */
	unsigned char
		after; /* WINDOW_AFTER: offset of the displaced instruction, where the agent goes on */
};

/* Makes the stub of a window of a process, to lie at `address`. @return 0, or -1 when something is out of reach. */
int stub_make(struct stub *stub, const struct window *window, uint64_t address);

/* The jump from the window to a stub at `address`. @return whether it may lie there: a jump reaches it, and, for
 * WINDOW_AFTER, the third byte of the jump is a breakpoint. */
bool stub_jump(const struct window *window, uint64_t address, unsigned char jump[WINDOW_JUMP]);

#endif
