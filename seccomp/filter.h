/* The seccomp filter under which the traced program runs: wanted calls stop, all others run at full
 * speed. */
#ifndef SECCOMP_FILTER_H
#define SECCOMP_FILTER_H

#include <stddef.h>
#include <stdint.h>

#include <linux/filter.h>

/* One call that stops, if all its conditions hold; rules of one number are alternatives. */
struct filter_condition {
	unsigned arg;
	uint64_t mask;
	uint64_t value; /* the masked argument equals it */
};

#define FILTER_MAX_CONDITIONS 2

/* What the tracer is told when a call stops, by which it knows its own filter from others. */
#define FILTER_TRACE_DATA 0xdf7c

struct filter_rule {
	int nr;
	unsigned nconditions;
	struct filter_condition conditions[FILTER_MAX_CONDITIONS];
};

/* Makes the filter's program: SECCOMP_RET_TRACE for the rules and for every call of another
 * architecture than the native one (so that those can be counted), SECCOMP_RET_ALLOW for the rest.
 * @param allowed_ip  calls whose instruction pointer it is are not traced either; 0: none. It is looked at after
 * the number, so that calls that are always allowed can still be known to the kernel by that alone.
 * @param insns  where it goes, `*len` instructions at most; set to their number.
 * @return 0, or -1 with errno (E2BIG: it does not fit; libseccomp's own). */
int filter_build(const struct filter_rule *rules, size_t nrules, uint64_t allowed_ip,
		 struct sock_filter *insns, size_t *len);

/* Installs it for the calling thread and all that it will start, for good. Sets NO_NEW_PRIVS where the
 * kernel asks for it. Once it is in place, wanted calls fail with ENOSYS if no tracer answers.
 * @return 0, or -1 with errno. */
int filter_install(const struct sock_filter *insns, size_t len);

#endif
