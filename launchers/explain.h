/* Why this host refuses something, in words for the one who has to change it. */
#ifndef LAUNCHERS_EXPLAIN_H
#define LAUNCHERS_EXPLAIN_H

#include "base/buf.h"

#include <stdbool.h>

/* Two halves of one sentence: what is in the way, and who can change what. Empty where nothing is. */
struct explanation {
	char cause[240];
	char remedy[200];
};

/* @return whether the kernel is one that dftrace-run can work with; else explained. */
bool explain_kernel(struct explanation *e);

/* @return whether this process runs under another dftrace-run, which records all that it starts. */
bool explain_is_recorded(void);

/* @return whether a program can be traced from this process at all; else explained: another tracer, a
 * pid namespace that only children enter, another one's /proc. */
bool explain_place(struct explanation *e);

/* Why PTRACE_SEIZE failed with `reason` (0: whoever tried was killed) on a process that the same user
 * started from this one. Tries in a child whether it is a seccomp filter, then looks at Yama, the program's
 * own file and the security modules. `attached`: the tracer was no ancestor. */
void explain_ptrace(struct explanation *e, int reason, bool attached);

/* @return whether a seccomp filter around us kills whoever makes the calls that tracing takes, with `filter`
 * those for a filter of ours as well; then explained. Tries in children. */
bool explain_killing_filter(struct explanation *e, bool filter);

/* Why installing a seccomp filter failed with `reason`. */
void explain_seccomp(struct explanation *e, int reason);

/* Why process_vm_readv failed with `reason`, although ptrace works. */
void explain_vm_readv(struct explanation *e, int reason);

/* @return the kernel's number for how much ptrace Yama allows, -1: there is no Yama. */
long explain_yama_scope(void);

/* @return the mode of the seccomp filter that is already around us: 0 none, 2 a filter; -1: not known. */
int explain_seccomp_mode(void);

#endif
