/* Runs a program under a seccomp filter that refuses calls, as containers and services do.
 * usage: restricted NUMBER[:ARG]=ERRNO|kill... -- program [args]
 * With :ARG only calls whose argument of that number is not 0 are refused. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define MAX_RULES 200

#define LOAD(field)                                                                                \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offsetof(struct seccomp_data, field))

static struct sock_filter insns[4 * MAX_RULES + 8];
static unsigned short len;

static void add(struct sock_filter insn)
{
	insns[len++] = insn;
}

static int add_rule(const char *text)
{
	unsigned number;
	unsigned arg = 0;
	int at = 0;
	int has_arg = 0;
	char *end;

	if (sscanf(text, "%u:%u=%n", &number, &arg, &at) == 2 && at)
		has_arg = 1;
	else if (sscanf(text, "%u=%n", &number, &at) != 1 || !at)
		return -1;
	unsigned long reason = strtoul(text + at, &end, 10);
	unsigned action = SECCOMP_RET_ERRNO | (unsigned)reason;
	if (strcmp(text + at, "kill") == 0)
		action = SECCOMP_RET_KILL_PROCESS;
	else if (*end || end == text + at)
		return -1;
	add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, has_arg ? 4 : 1));
	if (has_arg) {
		add((struct sock_filter)LOAD(args[arg]));
		add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0));
	}
	add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
	if (has_arg)
		add((struct sock_filter)LOAD(nr));
	return 0;
}

int main(int argc, char **argv)
{
	int i;

	add((struct sock_filter)LOAD(nr));
	for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (i > MAX_RULES || add_rule(argv[i]) < 0) {
			fprintf(stderr, "restricted: cannot read '%s'\n", argv[i]);
			return 2;
		}
	}
	if (i + 1 >= argc) {
		fprintf(stderr, "usage: restricted NUMBER[:ARG]=ERRNO|kill... -- program [args]\n");
		return 2;
	}
	add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
	struct sock_fprog program = {.len = len, .filter = insns};
	/* Docker's does not set it where it starts as root. */
	if (geteuid() != 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return 2;
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0) {
		perror("restricted: seccomp");
		return 2;
	}
	execvp(argv[i + 1], &argv[i + 1]);
	perror("restricted: exec");
	return 2;
}
