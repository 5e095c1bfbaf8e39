#include "tracer/wanted.h"

#include "tracer/arch/arch.h"
#include "tracer/syscalls.h"

#include <signal.h>

#include <linux/prctl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

/* A request is an unsigned int to the kernel; the upper half may hold anything. */
static struct filter_rule ioctl_rule(const struct syscall_row *row, uint32_t request)
{
	return (struct filter_rule){row->nr, 1, {{1, UINT32_MAX, request}}};
}

static struct filter_rule prctl_rule(const struct syscall_row *row, uint32_t option)
{
	return (struct filter_rule){row->nr, 1, {{0, UINT32_MAX, option}}};
}

static struct filter_rule sigaction_rule(const struct syscall_row *row, uint32_t sig)
{
	return (struct filter_rule){row->nr, 1, {{0, UINT32_MAX, sig}}};
}

/* @return how many there are. */
static size_t own_filter_rules(const struct selection *selection, const struct syscall_row *row,
			       struct filter_rule *rules)
{
	size_t n = 0;

	if (row->nr != __NR_prctl) {
		rules[n++] = (struct filter_rule){row->nr, 0, {{0}}};
		return n;
	}
	rules[n++] = prctl_rule(row, PR_SET_SECCOMP);
	rules[n++] = prctl_rule(row, PR_SET_SYSCALL_USER_DISPATCH);
	if (selection->traps)
		rules[n++] = prctl_rule(row, PR_SET_DUMPABLE);
	return n;
}

size_t wanted_rules(const struct selection *selection, struct filter_rule *rules)
{
	const struct filter_condition has_file = {3, MAP_ANONYMOUS, 0};
	const struct filter_condition executable = {2, PROT_EXEC, PROT_EXEC};
	const struct filter_condition to_a_place = {3, MREMAP_FIXED, MREMAP_FIXED};
	const struct filter_condition may_move = {3, MREMAP_MAYMOVE, MREMAP_MAYMOVE};
	size_t n = 0;

	for (size_t i = 0; i < syscall_row_count; i++) {
		const struct syscall_row *row = &syscall_rows[i];
		bool selected = selection->rows[i];
		switch (row->effect) {
		case EFFECT_MMAP:
			/* Executable mappings are where code comes from, recorded or not; what
			 * was mapped otherwise may become executable. */
			if (selected && selection->memory)
				rules[n++] = (struct filter_rule){row->nr, 0, {{0}}};
			else if (selected || selection->traps)
				rules[n++] = (struct filter_rule){row->nr, 1, {has_file}};
			else
				rules[n++] =
					(struct filter_rule){row->nr, 2, {has_file, executable}};
			break;
		case EFFECT_IOCTL:
			/* Two requests change close-on-exec. */
			if (selected) {
				rules[n++] = (struct filter_rule){row->nr, 0, {{0}}};
			} else {
				rules[n++] = ioctl_rule(row, FIOCLEX);
				rules[n++] = ioctl_rule(row, FIONCLEX);
			}
			break;
		case EFFECT_MPROTECT:
			/* What becomes executable may be a file's. */
			if (selected)
				rules[n++] = (struct filter_rule){row->nr, 0, {{0}}};
			else if (selection->traps)
				rules[n++] = (struct filter_rule){row->nr, 1, {executable}};
			break;
		case EFFECT_MREMAP:
			/* Code has to go to where it is expected. */
			if (selected)
				rules[n++] = (struct filter_rule){row->nr, 0, {{0}}};
			else if (selection->jumps)
				rules[n++] = (struct filter_rule){row->nr, 1, {may_move}};
			else if (selection->traps)
				rules[n++] = (struct filter_rule){row->nr, 1, {to_a_place}};
			break;
		case EFFECT_RENAME:
			/* At a stop /proc says what has become of the cwd. */
			if (selected || selection->jumps)
				rules[n++] = (struct filter_rule){row->nr, 0, {{0}}};
			break;
		case EFFECT_SIGMASK:
			if (selection->traps || selection->jumps)
				rules[n++] = (struct filter_rule){row->nr, 0, {{0}}};
			break;
		case EFFECT_SIGACTION:
			if (selection->traps || selection->jumps)
				rules[n++] = sigaction_rule(row, SIGTRAP);
			/* What a path that cannot be read raises inside the recorder. */
			if (selection->jumps) {
				rules[n++] = sigaction_rule(row, SIGSEGV);
				rules[n++] = sigaction_rule(row, SIGBUS);
			}
			break;
		case EFFECT_OWN_FILTER:
			n += own_filter_rules(selection, row, rules + n);
			break;
		default:
			if (selected || syscall_row_is_state(row))
				rules[n++] = (struct filter_rule){row->nr, 0, {{0}}};
		}
	}
	return n;
}
