/* The agent: records a thread's system calls inside the program. It lies at AGENT_BASE and is entered by a jump from a
 * stub (see stub.h), with
 *
 *	rcx	where to go on; the two bytes before are a system call instruction that does the same natively
 *	r11	the thread's ring, which is %gs's base as well
 *
 * and everything else as the program had it in front of its system call. It touches no stack, no vector register
 * and no register beside rax, rcx, rdx, rdi, rsi and r11, and calls nothing. Whatever it finds it may stop at any
 * instruction: the tracer then takes the call back (everything before the system call) or completes it
 * (everything behind it), by the labels below, before a signal handler can run. */
#include "tracer/recorder/agent/layout.h"

	.section .rodata.agent, "a"
	.balign 64
	.globl agent_begin, agent_saving, agent_working, agent_reading, agent_read, agent_called, agent_entry, agent_shapes, agent_end

agent_begin:
	jmp	agent_entry

	.org	agent_begin + AGENT_SYSCALL
call:	syscall
agent_called:
	/* The kernel has changed rcx and r11. */
	mov	%rax, %gs:RING_RESULT
	rdgsbase %r11
	rdtsc
	shl	$32, %rdx
	or	%rdx, %rax
	mov	RING_RECORD(%r11), %rcx
	mov	%rax, RECORD_END(%rcx)
	mov	RING_RESULT(%r11), %rax
	mov	%rax, RECORD_RESULT(%rcx)
	testw	$SHAPE_OPENS, RECORD_SHAPE(%rcx)
	jz	1f
	cmp	$AGENT_FDS_COUNT, %rax
	jae	1f
	lea	agent_begin + AGENT_FDS(%rip), %rdx
	movb	$1, (%rdx, %rax)
1:	movb	$RECORD_DONE, RECORD_STATE(%rcx)
	/* The next record's head is cleared before it can be looked at. */
	mov	RING_NEXT(%r11), %rax
	mov	%rax, %rdx
	and	RING_MASK(%r11), %rdx
	shl	$RECORD_SHIFT, %rdx
	movq	$0, RING_RECORDS(%r11, %rdx)
	mov	%rax, RING_HEAD(%r11)
	mov	RING_FLAGS(%r11), %rax
	add	$0x7f, %al
	sahf
	mov	RING_RDX(%r11), %rdx
	mov	RING_RET(%r11), %rcx
	mov	RING_RESULT(%r11), %rax
	jmp	*%rcx

	.balign 16
agent_entry:
	mov	%rax, RING_NR(%r11)
	mov	%rcx, RING_RET(%r11)
	mov	%rdx, RING_RDX(%r11)
	mov	%rdi, RING_RDI(%r11)
	mov	%rsi, RING_RSI(%r11)
agent_saving:
	lahf
	seto	%al
	mov	%rax, RING_FLAGS(%r11)
agent_working:
	mov	RING_NR(%r11), %rax
	cmp	$AGENT_LIMIT, %rax
	jae	aside
	lea	agent_shapes(%rip), %rcx
	movzwl	(%rcx, %rax, 2), %ecx
	test	%ecx, %ecx
	jz	aside
	mov	RING_HEAD(%r11), %rdx
	sub	RING_TAIL(%r11), %rdx
	cmp	RING_LIMIT(%r11), %rdx
	jae	full
	mov	RING_HEAD(%r11), %rdx
	inc	%rdx
	mov	%rdx, RING_NEXT(%r11)
	dec	%rdx
	and	RING_MASK(%r11), %rdx
	shl	$RECORD_SHIFT, %rdx
	lea	RING_RECORDS(%r11, %rdx), %rdx
	mov	%rdx, RING_RECORD(%r11)

	/* Descriptors are 32 bits to the kernel. */
	test	$(SHAPE_FD | SHAPE_DIR0 | SHAPE_DIR2), %ecx
	jz	paths
	test	$SHAPE_DIR2, %ecx
	jz	1f
	mov	RING_RDX(%r11), %eax
	cmp	$-100, %eax
	je	1f
	cmp	$AGENT_FDS_COUNT, %eax
	jae	aside
	lea	agent_begin + AGENT_FDS(%rip), %rsi
	cmpb	$0, (%rsi, %rax)
	je	aside
1:	test	$(SHAPE_FD | SHAPE_DIR0), %ecx
	jz	paths
	mov	%edi, %eax
	test	$SHAPE_DIR0, %ecx
	jz	2f
	cmp	$-100, %eax
	je	paths
2:	cmp	$AGENT_FDS_COUNT, %eax
	jae	aside
	lea	agent_begin + AGENT_FDS(%rip), %rsi
	cmpb	$0, (%rsi, %rax)
	je	aside
	test	$SHAPE_CLOSES, %ecx
	jz	paths
	movb	$0, (%rsi, %rax)

paths:
	mov	RING_RSI(%r11), %rsi
	test	$(SHAPE_VECTOR | SHAPE_PATH0 | SHAPE_PATH1 | SHAPE_PATH3), %ecx
	jnz	memory
fill:
	/* rcx: the shape; rdx: the record; RING_NEXT: behind what has been copied. */
	mov	RING_RDI(%r11), %rdi
	mov	%rdi, RECORD_ARGS(%rdx)
	mov	%rsi, RECORD_ARGS + 8(%rdx)
	mov	RING_RDX(%r11), %rax
	mov	%rax, RECORD_ARGS + 16(%rdx)
	mov	%r10, RECORD_ARGS + 24(%rdx)
	mov	%r8, RECORD_ARGS + 32(%rdx)
	mov	%r9, RECORD_ARGS + 40(%rdx)
	mov	RING_RET(%r11), %rax
	mov	%rax, RECORD_IP(%rdx)
	mov	%rsp, RECORD_SP(%rdx)
	/* The record's first word: number, state, records behind it, shape. */
	shl	$32, %rcx
	mov	RING_NEXT(%r11), %rax
	sub	RING_HEAD(%r11), %rax
	dec	%rax
	shl	$24, %rax
	or	%rax, %rcx
	or	RING_NR(%r11), %rcx
	or	$(RECORD_OPEN << 16), %rcx
	rdtsc
	shl	$32, %rdx
	or	%rdx, %rax
	mov	RING_RECORD(%r11), %rdx
	mov	%rax, RECORD_START(%rdx)
	mov	%rcx, (%rdx)
	mov	RING_NR(%r11), %rax
	mov	RING_RDX(%r11), %rdx
	jmp	call

full:
	incq	RING_FULL(%r11)
aside:
	mov	RING_FLAGS(%r11), %rax
	add	$0x7f, %al
	sahf
	mov	RING_RDX(%r11), %rdx
	mov	RING_RDI(%r11), %rdi
	mov	RING_RSI(%r11), %rsi
	mov	RING_RET(%r11), %rcx
	lea	-2(%rcx), %rcx
	mov	RING_NR(%r11), %rax
	jmp	*%rcx

memory:
	test	$SHAPE_VECTOR, %ecx
	jz	copies
	/* The sum of the vector's lengths: rdi, over rsi up to rdx. */
	mov	RING_RDX(%r11), %rdx
	cmp	$AGENT_VECTOR_MAX, %rdx
	ja	aside
	shl	$4, %rdx
	add	%rsi, %rdx
	xor	%edi, %edi
agent_reading:
1:	cmp	%rdx, %rsi
	je	2f
	add	8(%rsi), %rdi
	add	$16, %rsi
	jmp	1b
2:	mov	RING_RSI(%r11), %rsi
	mov	RING_RECORD(%r11), %rdx
	mov	%rdi, RECORD_SUM(%rdx)
	jmp	fill

	/* Paths go one after the other into the records behind. There is no stack for a call: where to go on
	 * follows from the bits that are left. */
copies:
	lea	RECORD_SIZE(%rdx), %rdi
	test	$SHAPE_PATH0, %ecx
	jz	3f
	mov	RING_RDI(%r11), %rsi
	and	$~SHAPE_PATH0, %ecx
	jmp	copy
3:	test	$SHAPE_PATH1, %ecx
	jz	4f
	and	$~SHAPE_PATH1, %ecx
	mov	RING_RSI(%r11), %rsi
	jmp	copy
4:	test	$SHAPE_PATH3, %ecx
	jz	copied
	and	$~SHAPE_PATH3, %ecx
	mov	%r10, %rsi
copy:
	test	%rsi, %rsi
	jz	aside
	lea	AGENT_PATH_MAX(%rsi), %rdx
5:	cmp	%rdx, %rsi
	je	aside
	mov	(%rsi), %al
	mov	%al, (%rdi)
	inc	%rsi
	inc	%rdi
	test	%al, %al
	jnz	5b
	jmp	3b
copied:
	/* How many records that was. */
	mov	RING_RECORD(%r11), %rdx
	sub	%rdx, %rdi
	add	$(RECORD_SIZE - 1), %rdi
	shr	$RECORD_SHIFT, %rdi
	add	RING_HEAD(%r11), %rdi
	mov	%rdi, RING_NEXT(%r11)
	mov	RING_NR(%r11), %rdi
	lea	agent_shapes(%rip), %rcx
	movzwl	(%rcx, %rdi, 2), %ecx
	mov	RING_RSI(%r11), %rsi
	jmp	fill
agent_read:

	.balign 2
	/* By number; the tracer fills it in where it puts the agent. */
agent_shapes:
	.fill	AGENT_LIMIT, 2, 0
agent_end:

	.section .note.GNU-stack, "", @progbits
