/* Where the loader ends: a breakpoint at the executable's entry point, taken away when it is hit. */
#include "tracer/entry.h"

#include "base/proc.h"
#include "tracer/arch/arch.h"
#include "tracer/memory.h"

#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* Reads what the kernel told the program at exec. */
static void read_auxv(struct task *task, uint64_t *base)
{
	Elf64_auxv_t auxv[64];
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/auxv", task->tid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	ssize_t n = read(fd, auxv, sizeof(auxv));
	close(fd);
	for (size_t i = 0; n > 0 && i < (size_t)n / sizeof(*auxv); i++) {
		if (auxv[i].a_type == AT_ENTRY)
			task->mm->entry = auxv[i].a_un.a_val;
		else if (auxv[i].a_type == AT_SYSINFO_EHDR)
			task->mm->vdso = auxv[i].a_un.a_val;
		else if (auxv[i].a_type == AT_BASE)
			*base = auxv[i].a_un.a_val;
	}
}

/* The kernel forces a breakpoint's signal on who blocks or ignores it, by taking both away. */
static bool may_force_trap(const struct task *task)
{
	static const char *const keys[] = {"SigBlk:", "SigIgn:"};
	uint64_t masks[2] = {0};

	proc_status(task->tid, 16, keys, masks, 2);
	return !(((masks[0] | masks[1]) >> (SIGTRAP - 1)) & 1);
}

static void exec_stop(struct observer *observer, struct tracer *tracer, struct task *task)
{
	const unsigned char breakpoint = ARCH_BREAKPOINT;
	struct mm *mm = task->mm;
	uint64_t base = 0;

	(void)observer;
	read_auxv(task, &base);
	/* Without an interpreter the entry point comes first. Where no breakpoint can be placed, the
	 * loader's calls count as the program's. */
	if (base == 0 || mm->entry == 0 || !may_force_trap(task) ||
	    memory_read(tracer, task, mm->entry, &mm->entry_byte, 1) != 1 ||
	    memory_write(task, mm->entry, &breakpoint, 1) < 0) {
		task->process->started = true;
		return;
	}
	mm->entry_pending = true;
	mm->entry_placed = true;
}

static bool before_signal(struct observer *observer, struct tracer *tracer, struct task *task,
			  const siginfo_t *info)
{
	struct mm *mm = task->mm;
	struct arch_regs regs;

	(void)observer;
	(void)tracer;
	/* The kernel, not another process, sends it for the instruction. */
	if (info->si_signo != SIGTRAP || info->si_code != SI_KERNEL || !mm->entry ||
	    arch_regs_get(task->tid, &regs) < 0 ||
	    arch_regs_ip(&regs) != mm->entry + ARCH_BREAKPOINT_LEN)
		return false;
	/* A hooked function begins there as well: the breakpoint is its own from now on. */
	if (hook_space_has(mm->hooks, mm->entry)) {
		mm->entry_pending = false;
		task->process->started = true;
		return false;
	}
	/* None was placed, or the program has this instruction itself. */
	if (!mm->entry_placed || (!mm->entry_pending && mm->entry_byte == ARCH_BREAKPOINT))
		return false;
	/* Not pending: another thread came here first. */
	if (mm->entry_pending && memory_write(task, mm->entry, &mm->entry_byte, 1) < 0)
		return false;
	mm->entry_pending = false;
	task->process->started = true;
	arch_regs_set_ip(&regs, mm->entry);
	arch_regs_set(task->tid, &regs);
	return true;
}

void entry_init(struct observer *observer)
{
	*observer = (struct observer){.exec_stop = exec_stop, .before_signal = before_signal};
}
