/* The agent's code for function hooks. It lies at AGENT_BASE + AGENT_HOOKS and is entered by a jump from a stub (see
 * tracer/hooks/stub.h), at the beginning of a hooked function or in front of its `ret`, with
 *
 *	rsp	at the return address
 *	rcx	the stub's end part; the program's own rcx lies below the stack pointer
 *	%gs	the thread's ring
 *
 * and everything else as the program had it. Each appends one record; what is recorded belongs together by the stack
 * pointer and the return address, which is for the tracer to see. Nothing changes: no register, no flag, and of memory
 * only those 8 bytes, which are nobody's. Where it stands when a signal comes the tracer tells by the labels below. */
#include "tracer/recorder/agent/layout.h"

	.section .rodata.agent.hooks, "a"
	.balign 64
	.globl agent_hooks_begin, agent_hook_entry, agent_hook_entry_kept, agent_hook_entry_working
	.globl agent_hook_exit, agent_hook_exit_kept, agent_hook_exit_working
	.globl agent_hook_reading, agent_hook_read, agent_hook_aside, agent_hook_committed, agent_hook_left
	.globl agent_hooks_end

	/* Leaves the record's address in rdx. */
	.macro BEGIN name
agent_hook_\name:
	mov	%rcx, %gs:RING_HOOK_BACK
	mov	%rax, %gs:RING_HOOK_RAX
	mov	%rdx, %gs:RING_HOOK_RDX
agent_hook_\name\()_kept:
	lahf
	seto	%al
	mov	%rax, %gs:RING_HOOK_FLAGS
agent_hook_\name\()_working:
	mov	%gs:RING_HEAD, %rdx
	mov	%rdx, %rax
	sub	%gs:RING_TAIL, %rax
	cmp	%gs:RING_LIMIT, %rax
	jae	full
	and	%gs:RING_MASK, %rdx
	shl	$RECORD_SHIFT, %rdx
	add	%gs:RING_FIRST, %rdx
	mov	%rcx, RECORD_STUB(%rdx)
	mov	%rsp, RECORD_SP(%rdx)
	mov	(%rsp), %rax
	mov	%rax, RECORD_IP(%rdx)
	.endm

agent_hooks_begin:
	BEGIN	entry
	mov	%rdi, RECORD_ARGS(%rdx)
	mov	%rsi, RECORD_ARGS + 8(%rdx)
	mov	%gs:RING_HOOK_RDX, %rax
	mov	%rax, RECORD_ARGS + 16(%rdx)
	mov	-HOOK_SAVED(%rsp), %rax
	mov	%rax, RECORD_ARGS + 24(%rdx)
	mov	%r8, RECORD_ARGS + 32(%rdx)
	mov	%r9, RECORD_ARGS + 40(%rdx)
	cmpl	$0, -HOOK_RECIPE(%rcx)
	jne	recipe
filled:
	mov	-HOOK_WORD(%rcx), %rax
	mov	%rax, (%rdx)
	mov	%rdx, %rcx
	rdtsc
	shl	$32, %rdx
	or	%rdx, %rax
	mov	%rax, RECORD_START(%rcx)
	mov	%rax, RECORD_END(%rcx)
	/* The next record's head is cleared before it can be looked at. */
	mov	%gs:RING_HEAD, %rax
	inc	%rax
	mov	%rax, %rdx
	and	%gs:RING_MASK, %rdx
	shl	$RECORD_SHIFT, %rdx
	add	%gs:RING_FIRST, %rdx
	movq	$0, (%rdx)
	mov	%rax, %gs:RING_HEAD
agent_hook_committed:
	mov	%gs:RING_HOOK_FLAGS, %rax
	add	$0x7f, %al
	sahf
	mov	%gs:RING_HOOK_RDX, %rdx
	mov	%gs:RING_HOOK_RAX, %rax
	mov	-HOOK_SAVED(%rsp), %rcx
	jmp	*%gs:RING_HOOK_BACK
agent_hook_left:

	.balign 16
	BEGIN	exit
	mov	%gs:RING_HOOK_RAX, %rax
	mov	%rax, RECORD_RESULT(%rdx)
	cmpb	$0, RECIPE_FILLED - HOOK_RECIPE(%rcx)
	je	filled
	test	%rax, %rax
	je	filled
	jmp	measure

full:
	incq	%gs:RING_FULL
agent_hook_aside:
	/* The tracer shall see to it, at the stub's breakpoint. */
	subq	$HOOK_TRAP, %gs:RING_HOOK_BACK
	jmp	agent_hook_committed

recipe:
	/* A descriptor that the tracer does not know yet it has to look at now. */
	movzbl	RECIPE_FIXED - HOOK_RECIPE(%rcx), %eax
	dec	%eax
	jns	2f
	movzbl	RECIPE_STREAM - HOOK_RECIPE(%rcx), %eax
	test	%eax, %eax
	jz	string
	mov	RECORD_ARGS - 8(%rdx, %rax, 8), %rax
	test	%rax, %rax
	jz	1f
agent_hook_reading:
	mov	HOOK_FILENO(%rax), %eax
2:	mov	%eax, RECORD_FD(%rdx)
	test	%eax, %eax
	js	string
	cmp	$AGENT_FDS_COUNT, %eax
	jae	agent_hook_aside
	lea	agent_hooks_begin - AGENT_HOOKS + AGENT_FDS(%rip), %rcx
	cmpb	$0, (%rcx, %rax)
	je	agent_hook_aside
	mov	RECORD_STUB(%rdx), %rcx
	jmp	string
1:	movl	$-1, RECORD_FD(%rdx)
string:
	movzbl	RECIPE_STRING - HOOK_RECIPE(%rcx), %eax
	test	%eax, %eax
	jz	filled
	mov	RECORD_ARGS - 8(%rdx, %rax, 8), %rax
	/* The length of the string at rax. */
measure:
	mov	%rax, %rcx
3:	cmpb	$0, (%rax)
	je	4f
	inc	%rax
	jmp	3b
4:	sub	%rcx, %rax
	mov	%rax, RECORD_LENGTH(%rdx)
	mov	RECORD_STUB(%rdx), %rcx
	jmp	filled
agent_hook_read:
agent_hooks_end:

	.section .note.GNU-stack, "", @progbits
