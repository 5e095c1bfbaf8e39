#include "tracer/refused.h"

#include <errno.h>

#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

/* A process has one tracer: of TRACEME and of an attachment to a task of ours the kernel says EPERM. */
static bool is_tracing(const struct tracer *tracer, const struct call *call)
{
	long request = (long)call->args[0];

	if (call->ret != -EPERM)
		return false;
	if (request == PTRACE_TRACEME)
		return true;
	return (request == PTRACE_ATTACH || request == PTRACE_SEIZE) &&
	       map_get(&tracer->tasks, call->args[1]);
}

/* The strict mode and filters exclude each other. */
static bool is_strict_mode(const struct tracer *tracer, const struct call *call)
{
	if (!tracer->filter || call->ret != -EINVAL)
		return false;
	return call->row->nr == __NR_seccomp ? call->args[0] == SECCOMP_SET_MODE_STRICT
					     : (int)call->args[0] == PR_SET_SECCOMP &&
						       call->args[1] == SECCOMP_MODE_STRICT;
}

void refused_note(struct tracer *tracer, const struct task *task, const struct call *call)
{
	const char *name = task->process->argc ? task->process->argv[0] : "a program";

	if (call->row->effect == EFFECT_PTRACE && !tracer->refused_ptrace &&
	    is_tracing(tracer, call)) {
		tracer->refused_ptrace = true;
		tracer_warn(
			tracer,
			"%.100s was refused ptrace: a process has one tracer, here dftrace-run; "
			"run debuggers and tracers without it",
			name);
	}
	if (call->row->effect == EFFECT_OWN_FILTER && !tracer->refused_strict &&
	    is_strict_mode(tracer, call)) {
		tracer->refused_strict = true;
		tracer_warn(tracer,
			    "%.100s was refused seccomp's strict mode, which does not go with the "
			    "tracer's filter; use --no-seccomp",
			    name);
	}
}
