#include "tracer/loop.h"

#include <signal.h>
#include <string.h>

static const char *const kind_names[] = {
	[STOP_SECCOMP] = "seccomp", [STOP_SYSCALL] = "syscall", [STOP_NEW_CHILD] = "new-child",
	[STOP_EXEC] = "exec",       [STOP_EXIT] = "exit",       [STOP_EVENT] = "event",
	[STOP_GROUP] = "group",     [STOP_SIGNAL] = "signal",   [STOP_OTHER] = "other",
	[STOP_DEAD] = "dead",
};

void debug_stop(struct tracer *tracer, const struct status *status, enum stop_kind kind)
{
	const char *detail = "";

	if (kind == STOP_SIGNAL || kind == STOP_GROUP)
		detail = sigabbrev_np(status->value & 0xff);
	else if (kind == STOP_DEAD && status->code != CLD_EXITED)
		detail = sigabbrev_np(status->value);
	fprintf(tracer->debug, "dftrace-run: stop %d %s value 0x%x %s\n", status->tid,
		kind_names[kind], (unsigned)status->value, detail ? detail : "");
	fflush(tracer->debug);
}
