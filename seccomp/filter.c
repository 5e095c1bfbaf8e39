#include "seccomp/filter.h"

#include <errno.h>
#include <seccomp.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static int add_rule(scmp_filter_ctx ctx, const struct filter_rule *rule)
{
	struct scmp_arg_cmp compare[FILTER_MAX_CONDITIONS];

	for (unsigned i = 0; i < rule->nconditions; i++) {
		const struct filter_condition *c = &rule->conditions[i];
		compare[i] = SCMP_CMP64(c->arg, SCMP_CMP_MASKED_EQ, c->mask, c->value);
	}
	return seccomp_rule_add_exact_array(ctx, SCMP_ACT_TRACE(FILTER_TRACE_DATA), rule->nr,
					    rule->nconditions, compare);
}

/* libseccomp writes programs to descriptors only. */
static int export(scmp_filter_ctx ctx, struct sock_filter *insns, size_t *len)
{
	int fd = memfd_create("filter", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	int result = seccomp_export_bpf(ctx, fd);
	off_t size = result == 0 ? lseek(fd, 0, SEEK_END) : 0;
	if (result == 0 && (size_t)size > *len * sizeof(*insns))
		result = -E2BIG;
	if (result == 0 && pread(fd, insns, (size_t)size, 0) != size)
		result = -EIO;
	*len = (size_t)size / sizeof(*insns);
	close(fd);
	return result;
}

/* libseccomp knows no instruction pointer: what traces goes to the end of the program instead, where it is looked at.
 * @return 0, or -errno. */
static int add_allowed_ip(struct sock_filter *insns, size_t *len, size_t room, uint64_t ip)
{
	const uint32_t at = offsetof(struct seccomp_data, instruction_pointer);
	const uint32_t trace = SECCOMP_RET_TRACE | FILTER_TRACE_DATA;
	const struct sock_filter end[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)ip, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at + 4),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(ip >> 32), 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, trace),
	};
	const size_t n = sizeof(end) / sizeof(*end);

	if (room - *len < n)
		return -E2BIG;
	for (size_t i = 0; i < *len; i++) {
		if (insns[i].code == (BPF_RET | BPF_K) && insns[i].k == trace)
			insns[i] = (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA,
								(uint32_t)(*len - i - 1));
	}
	memcpy(insns + *len, end, sizeof(end));
	*len += n;
	return 0;
}

int filter_build(const struct filter_rule *rules, size_t nrules, uint64_t allowed_ip,
		 struct sock_filter *insns, size_t *len)
{
	const size_t room = *len;
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
	if (!ctx) {
		errno = ENOMEM;
		return -1;
	}
	/* The default would kill programs that make one 32-bit call. */
	int result =
		seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_TRACE(FILTER_TRACE_DATA));
	/* A binary tree over the numbers instead of a chain; libseccomp 2.5 and later. */
	if (result == 0)
		(void)seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	for (size_t i = 0; i < nrules && result == 0; i++)
		result = add_rule(ctx, &rules[i]);
	if (result == 0)
		result = export(ctx, insns, len);
	if (result == 0 && allowed_ip)
		result = add_allowed_ip(insns, len, room, allowed_ip);
	seccomp_release(ctx);
	if (result < 0) {
		errno = -result;
		return -1;
	}
	return 0;
}

int filter_install(const struct sock_filter *insns, size_t len)
{
	struct sock_fprog program = {.len = (unsigned short)len,
				     .filter = (struct sock_filter *)insns};

	/* With CAP_SYS_ADMIN no flag of the program has to change. */
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0)
		return 0;
	if (errno != EACCES || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0 ? 0 : -1;
}
