/* Finds out how long a recorded call takes that does nothing. Lies where the agent will, before it is there, so that the
 * filter lets its calls pass; entered with
 *
 *	rax	the call's number
 *	r8	how often it is made
 *
 * All arguments are -1, which no call takes. r9 becomes the least number of ticks; then it makes one call that the
 * filter stops. */
#include "tracer/recorder/agent/layout.h"

	.section .rodata.measure, "a"
	.balign 64
	.globl measure_begin, measure_entry, measure_end

measure_begin:
	.org	measure_begin + AGENT_SYSCALL
	syscall
	rdtsc
	shl	$32, %rdx
	or	%rdx, %rax
	sub	%rbp, %rax
	cmp	%r9, %rax
	cmovb	%rax, %r9
	dec	%r8
	jmp	1f
measure_entry:
	mov	%rax, %rbx
	mov	$-1, %rdi
	mov	$-1, %rsi
	mov	$-1, %r9
	mov	$-1, %r10
	test	%r8, %r8
1:	jz	2f
	rdtsc
	shl	$32, %rdx
	or	%rdx, %rax
	mov	%rax, %rbp
	mov	$-1, %rdx
	mov	%rbx, %rax
	jmp	measure_begin + AGENT_SYSCALL
2:	mov	$-1, %rdx
	mov	%rbx, %rax
	syscall
measure_end:

	.section .note.GNU-stack, "", @progbits
