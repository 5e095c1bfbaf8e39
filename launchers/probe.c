#include "launchers/probe.h"

#include "seccomp/filter.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

/* Longer than all of it ever takes; the alarm is what ends a process that hangs. */
#define PATIENCE_S 30

#define TEXT "what the tracer reads out of the program"

/* The call that stops. It has no arguments, so the kernel does not care what stands there, and nothing
 * else in the program's part makes it. */
#define CALL SYS_getppid

/* What outlives processes that are killed for what they try. */
struct page {
	struct probe_result result;
	struct sock_filter insns[64];
	size_t ninsns;
};

/* Between program and tracer. */
struct pair {
	const struct probe_plan *plan;
	struct probe_result *result; /* the page's */
	struct page *page;           /* shared */
	int program;                 /* ends of a pair of sockets */
	int tracer;
	const char *text; /* at the same address in both, as they are forks of one process */
};

static bool tell(int end)
{
	return send(end, "", 1, MSG_NOSIGNAL) == 1;
}

static bool receive(int end)
{
	char byte;
	ssize_t n;

	do
		n = recv(end, &byte, 1, 0);
	while (n < 0 && errno == EINTR);
	return n == 1;
}

static void bind_to(struct pair *pair, int cpu)
{
	cpu_set_t set[128];

	if (cpu < 0 || (size_t)cpu >= sizeof(set) * 8)
		return;
	CPU_ZERO_S(sizeof(set), set);
	CPU_SET_S((size_t)cpu, sizeof(set), set);
	if (sched_setaffinity(0, sizeof(set), set) < 0)
		pair->result->bind = errno;
}

/* The program's side: as a run does it, and then some calls. */
static void be_program(struct pair *pair)
{
	struct probe_result *result = pair->result;

	alarm(PATIENCE_S);
	bind_to(pair, pair->plan->program_cpu);
	bool named = prctl(PR_SET_PTRACER, result->tracer, 0, 0, 0) == 0;
	bool seized = tell(pair->program) && receive(pair->program);
	if (named)
		prctl(PR_SET_PTRACER, 0, 0, 0, 0);
	if (!seized || result->seize != 0)
		_exit(0);
	if (pair->plan->filter) {
		result->filter =
			filter_install(pair->page->insns, pair->page->ninsns) < 0 ? errno : 0;
		result->no_new_privs = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
		if (result->filter)
			_exit(0);
	}
	if (!tell(pair->program) || !receive(pair->program))
		_exit(0);
	for (unsigned i = 0; i < pair->plan->calls; i++)
		syscall(CALL, pair->text);
	_exit(0);
}

static int try_syscall_info(pid_t pid)
{
	struct __ptrace_syscall_info info;

	return ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) < 0 ? errno : 0;
}

static int check(ssize_t n, const char *got)
{
	if (n < 0)
		return errno;
	return n == (ssize_t)sizeof(TEXT) && strcmp(got, TEXT) == 0 ? 0 : EIO;
}

static int try_proc_mem(pid_t pid, const char *text)
{
	char path[64];
	char got[sizeof(TEXT)] = "";

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno;
	int reason = check(pread(fd, got, sizeof(got), (off_t)(uintptr_t)text), got);
	close(fd);
	return reason;
}

static int try_vm_readv(pid_t pid, const char *text)
{
	char got[sizeof(TEXT)] = "";
	struct iovec local = {got, sizeof(got)};
	struct iovec remote = {(char *)text, sizeof(got)};

	return check(process_vm_readv(pid, &local, 1, &remote, 1, 0), got);
}

static int try_peek(pid_t pid, const char *text)
{
	long word;

	errno = 0;
	word = ptrace(PTRACE_PEEKDATA, pid, text, NULL);
	if (errno)
		return errno;
	return memcmp(&word, TEXT, sizeof(word)) == 0 ? 0 : EIO;
}

static int try_proc_status(pid_t pid)
{
	static const char *const names[] = {"status", "stat", "maps", "cwd", "exe", "fd/0"};
	char path[64];
	char to[8];

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(path, sizeof(path), "/proc/%d/%s", pid, names[i]);
		bool is_file = i < 3;
		int fd = is_file ? open(path, O_RDONLY | O_CLOEXEC) : -1;
		if (is_file && fd < 0)
			return errno;
		if (fd >= 0)
			close(fd);
		/* Descriptor 0 may be closed, but must not be hidden. */
		if (!is_file && readlink(path, to, sizeof(to)) < 0 && errno != ENOENT)
			return errno;
	}
	return 0;
}

/* At the first stop. A part that kills the one who tries leaves the others at what they were. */
static void try_all(struct pair *pair, pid_t pid)
{
	struct probe_result *result = pair->result;

	result->syscall_info = try_syscall_info(pid);
	result->peek = try_peek(pid, pair->text);
	result->proc_status = try_proc_status(pid);
	result->proc_mem = try_proc_mem(pid, pair->text);
	result->vm_readv = try_vm_readv(pid, pair->text);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

/* Waits and restarts until the program has ended. */
static void follow(struct pair *pair, pid_t pid)
{
	struct probe_result *result = pair->result;
	uint64_t first = 0;
	int status;

	for (;;) {
		if (waitpid(pid, &status, __WALL) < 0 && errno != EINTR)
			break;
		if (WIFEXITED(status) || WIFSIGNALED(status))
			break;
		int event = status >> 16;
		int sig = WSTOPSIG(status);
		bool is_filter = event == PTRACE_EVENT_SECCOMP;
		bool is_call = sig == (SIGTRAP | 0x80);
		if (!is_filter && !is_call) {
			/* The stop that was asked for, or a signal: the alarm's, at worst. */
			ptrace(pair->plan->filter ? PTRACE_CONT : PTRACE_SYSCALL, pid, NULL,
			       event ? 0 : (uintptr_t)(unsigned)sig);
			continue;
		}
		if (result->stops == 0 && pair->plan->features)
			try_all(pair, pid);
		uint64_t now = now_ns();
		if (result->stops++ == 0)
			first = now;
		/* At once: the program's end may be seen elsewhere before it is here. */
		result->ns = now - first;
		ptrace(is_filter || !pair->plan->filter ? PTRACE_SYSCALL : PTRACE_CONT, pid, NULL,
		       NULL);
	}
}

/* The tracer's side. */
static void be_tracer(struct pair *pair, pid_t program)
{
	struct probe_result *result = pair->result;
	unsigned long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL;
	const struct filter_rule rule = {.nr = CALL};

	alarm(PATIENCE_S);
	bind_to(pair, pair->plan->tracer_cpu);
	if (pair->plan->filter)
		options |= PTRACE_O_TRACESECCOMP;
	/* Here, as libseccomp asks the kernel what it can, for which there are filters that kill. */
	struct page *page = pair->page;
	page->ninsns = sizeof(page->insns) / sizeof(*page->insns);
	if (pair->plan->filter && filter_build(&rule, 1, 0, page->insns, &page->ninsns) < 0) {
		result->started = errno;
		return;
	}
	if (!receive(pair->tracer))
		return;
	int reason = ptrace(PTRACE_SEIZE, program, NULL, options) < 0 ? errno : 0;
	result->seize = reason;
	if (!tell(pair->tracer) || reason)
		return;
	/* It has its filter now, or is gone because it could not have it. */
	if (!receive(pair->tracer))
		return;
	/* Blocked in a read that is taken up again: then all its calls stop. */
	if (!pair->plan->filter && ptrace(PTRACE_INTERRUPT, program, NULL, NULL) < 0)
		return;
	if (tell(pair->tracer))
		follow(pair, program);
}

static void run_parent_form(struct pair *pair)
{
	pair->result->tracer = getpid();
	pid_t program = fork();
	if (program == 0) {
		close(pair->tracer);
		be_program(pair);
	}
	close(pair->program);
	if (program < 0)
		pair->result->started = errno;
	else
		be_tracer(pair, program);
	_exit(0);
}

static void run_detached_form(struct pair *pair)
{
	pid_t program = getpid();
	pid_t middle = fork();

	if (middle == 0) {
		pid_t tracer = fork();
		if (tracer == 0) {
			setpgid(0, 0);
			close(pair->program);
			be_tracer(pair, program);
			_exit(0);
		}
		pair->result->tracer = tracer;
		if (tracer < 0)
			pair->result->started = errno;
		_exit(0);
	}
	if (middle < 0) {
		pair->result->started = errno;
		_exit(0);
	}
	close(pair->tracer);
	waitpid(middle, NULL, 0);
	if (pair->result->started == 0)
		be_program(pair);
	_exit(0);
}

static int run_pair(struct pair *pair)
{
	pid_t child = fork();

	if (child < 0)
		return -1;
	if (child == 0) {
		signal(SIGCHLD, SIG_DFL);
		signal(SIGALRM, SIG_DFL);
		if (pair->plan->parent_form)
			run_parent_form(pair);
		run_detached_form(pair);
	}
	close(pair->program);
	pair->program = -1;
	/* The tracer may be behind: it holds this end until it has written all. */
	close(pair->tracer);
	pair->tracer = -1;
	while (waitpid(child, NULL, 0) < 0) {
		if (errno != EINTR)
			return errno == ECHILD ? 0 : -1;
	}
	return 0;
}

int probe_run(const struct probe_plan *plan, struct probe_result *result)
{
	struct pair pair = {.plan = plan, .text = TEXT};
	int ends[2];

	*result = (struct probe_result){.seize = -1,
					.filter = -1,
					.syscall_info = -1,
					.proc_status = -1,
					.proc_mem = -1,
					.vm_readv = -1,
					.peek = -1};
	struct page *page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return -1;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
		int saved = errno;
		munmap(page, sizeof(*page));
		errno = saved;
		return -1;
	}
	pair.program = ends[0];
	pair.tracer = ends[1];
	pair.page = page;
	pair.result = &page->result;
	*pair.result = *result;
	int failed = run_pair(&pair);
	int saved = errno;
	*result = *pair.result;
	munmap(page, sizeof(*page));
	errno = result->started ? result->started : saved;
	return failed == 0 && result->started == 0 ? 0 : -1;
}

const char *const probe_seccomp_names[PROBE_SECCOMP_NAMES] = {
	"trace",      "user_notif",   "tsync",       "log",
	"spec_allow", "new_listener", "tsync_esrch", "wait_killable_recv",
};

/* Flags are looked at before the program's address, which is none. */
static bool knows_flag(unsigned long flags)
{
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, NULL) < 0 && errno == EFAULT;
}

static unsigned ask_seccomp(void)
{
	const uint32_t actions[] = {SECCOMP_RET_TRACE, SECCOMP_RET_USER_NOTIF};
	const unsigned long flags[] = {
		SECCOMP_FILTER_FLAG_TSYNC,
		SECCOMP_FILTER_FLAG_LOG,
		SECCOMP_FILTER_FLAG_SPEC_ALLOW,
		SECCOMP_FILTER_FLAG_NEW_LISTENER,
		SECCOMP_FILTER_FLAG_TSYNC_ESRCH,
		/* Means nothing alone. */
		SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
	};
	unsigned known = 0;

	for (unsigned i = 0; i < 2; i++) {
		if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &actions[i]) == 0)
			known |= 1U << i;
	}
	for (unsigned i = 0; i < 6; i++) {
		if (knows_flag(flags[i]))
			known |= 1U << (2 + i);
	}
	return known;
}

int probe_seccomp(void)
{
	int status = 0;
	pid_t pid = fork();

	if (pid < 0)
		return -1;
	if (pid == 0) {
		signal(SIGSYS, SIG_DFL);
		_exit((int)ask_seccomp());
	}
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -1;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
