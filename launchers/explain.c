#include "launchers/explain.h"

#include "base/number.h"
#include "base/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>

/* Before 4.8 the filter's stop came ahead of the entry stop of the same call. */
#define KERNEL_MAJOR 4
#define KERNEL_MINOR 8

#define SAY_CAUSE(e, ...)  snprintf((e)->cause, sizeof((e)->cause), __VA_ARGS__)
#define SAY_REMEDY(e, ...) snprintf((e)->remedy, sizeof((e)->remedy), __VA_ARGS__)

bool explain_kernel(struct explanation *e)
{
	struct utsname name;
	unsigned major;
	unsigned minor;

	*e = (struct explanation){0};
	if (uname(&name) < 0 || sscanf(name.release, "%u.%u", &major, &minor) != 2)
		return true; /* no number: what it can do will be seen */
	if (major > KERNEL_MAJOR || (major == KERNEL_MAJOR && minor >= KERNEL_MINOR))
		return true;
	SAY_CAUSE(e,
		  "Linux %.60s is too old: stops of the filter come in another order before %d.%d",
		  name.release, KERNEL_MAJOR, KERNEL_MINOR);
	SAY_REMEDY(e, "run it on a host with Linux %d.%d or later", KERNEL_MAJOR, KERNEL_MINOR);
	return false;
}

/* @return whether children of this process would be in another pid namespace than itself. */
static bool has_pending_pid_namespace(void)
{
	struct stat own;
	struct stat children;

	if (stat("/proc/self/ns/pid", &own) < 0)
		return false;
	/* One that has no process yet cannot even be named. */
	if (stat("/proc/self/ns/pid_for_children", &children) < 0)
		return errno == ENOENT;
	return own.st_ino != children.st_ino;
}

/* @return the process that traces this one, 0: none. */
static uint64_t find_tracer(void)
{
	const char *const key = "TracerPid:";
	uint64_t tracer = 0;

	proc_status(getpid(), 10, &key, &tracer, 1);
	return tracer;
}

bool explain_is_recorded(void)
{
	char path[64];
	char comm[32];
	uint64_t tracer = find_tracer();

	snprintf(path, sizeof(path), "/proc/%llu/comm", (unsigned long long)tracer);
	return tracer && proc_read_line(path, comm, sizeof(comm)) &&
	       strcmp(comm, "dftrace-run") == 0;
}

bool explain_place(struct explanation *e)
{
	char self[32];
	long pid;

	*e = (struct explanation){0};
	ssize_t n = readlink("/proc/self", self, sizeof(self) - 1);
	self[n > 0 ? n : 0] = '\0';
	if (n > 0 && (number_parse(self, 1, INT32_MAX, &pid) < 0 || pid != getpid())) {
		SAY_CAUSE(e, "/proc shows the processes of another pid namespace");
		SAY_REMEDY(
			e,
			"mount it anew inside: unshare --mount-proc, or mount -t proc proc /proc");
		return false;
	}
	if (has_pending_pid_namespace()) {
		SAY_CAUSE(e, "the program would be in another pid namespace than its tracer");
		SAY_REMEDY(e, "use unshare with --fork");
		return false;
	}
	uint64_t tracer = find_tracer();
	if (tracer) {
		SAY_CAUSE(e, "already traced by process %llu", (unsigned long long)tracer);
		SAY_REMEDY(e, "a process has one tracer: run it without the other");
		return false;
	}
	return true;
}

long explain_yama_scope(void)
{
	char text[16];
	long scope;

	if (!proc_read_line("/proc/sys/kernel/yama/ptrace_scope", text, sizeof(text)) ||
	    number_parse(text, 0, 3, &scope) < 0)
		return -1;
	return scope;
}

int explain_seccomp_mode(void)
{
	const char *const key = "Seccomp:";
	uint64_t mode = UINT64_MAX;

	if (proc_status(getpid(), 10, &key, &mode, 1) < 0 || mode > 2)
		return -1;
	return (int)mode;
}

/* Requests on pid 0, which is nobody: the kernel itself answers ESRCH, before anything is permitted or
 * not. Any other answer is a filter's, or that of a sandbox that has its own kernel. */
static int seize_nobody(void)
{
	return ptrace(PTRACE_SEIZE, 0, NULL, NULL) < 0 ? errno : 0;
}

static int read_nobody(void)
{
	char byte;
	struct iovec one = {&byte, 1};

	return process_vm_readv(0, &one, 1, &one, 1, 0) < 0 ? errno : 0;
}

/* A filter at no address: EFAULT, unless somebody else answers. */
static int install_nothing(void)
{
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL) < 0 ? errno : 0;
}

/* Makes a request in a child, for filters that kill. @return its errno, -1: it was killed for it. */
static int ask(int (*request)(void))
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		return ESRCH;
	if (pid == 0) {
		signal(SIGSYS, SIG_DFL);
		_exit(request());
	}
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return ESRCH; /* SIGCHLD is ignored: no answer */
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* @return whether a filter or sandbox answers in place of the kernel; then explained. */
static bool is_filtered(struct explanation *e, const char *call, int answer)
{
	int mode = explain_seccomp_mode();

	if (answer == ESRCH)
		return false;
	if (answer == ENOSYS && mode == 0) {
		SAY_CAUSE(e, "this kernel or sandbox has no %s", call);
		SAY_REMEDY(e, "run it outside the sandbox, or on another host");
		return true;
	}
	SAY_CAUSE(e, "a seccomp filter around this process %s%s%s",
		  answer < 0 ? "kills whoever calls " : "forbids ", call,
		  mode == 2 ? " (Seccomp: 2 in /proc/self/status)" : "");
	SAY_REMEDY(e, "allow it where the container or service is started: docker and podman with "
		      "--cap-add SYS_PTRACE, or --security-opt seccomp=unconfined");
	return true;
}

static bool explain_yama(struct explanation *e, bool attached)
{
	switch (explain_yama_scope()) {
	case 3:
		SAY_CAUSE(e, "Yama forbids ptrace to everybody (kernel.yama.ptrace_scope is 3)");
		SAY_REMEDY(e, "an administrator has to set 0 or 1 in /etc/sysctl.d and reboot");
		return true;
	case 2:
		if (proc_capable(CAP_SYS_PTRACE))
			return false;
		SAY_CAUSE(e, "Yama allows ptrace to administrators only (kernel.yama.ptrace_scope "
			     "is 2)");
		SAY_REMEDY(e,
			   "an administrator can run: sysctl kernel.yama.ptrace_scope=1; or give "
			   "CAP_SYS_PTRACE");
		return true;
	case 1:
		if (!attached)
			return false;
		SAY_CAUSE(e,
			  "Yama allows ptrace of descendants only (kernel.yama.ptrace_scope is 1)");
		SAY_REMEDY(e, "use --tracer parent");
		return true;
	default:
		return false;
	}
}

/* A program that its user may not read, or that gives privileges, keeps its memory to itself, and so do its
 * children. */
static bool explain_own_file(struct explanation *e)
{
	char path[70];

	if (prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 1)
		return false;
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path));
	/* A longer one would not fit into a sentence. */
	if (n <= 0 || n == (ssize_t)sizeof(path))
		n = snprintf(path, sizeof(path), "its-file");
	path[n] = '\0';
	if (getauxval(AT_SECURE)) {
		SAY_CAUSE(e,
			  "dftrace-run is setuid, setgid or has file capabilities, so the kernel "
			  "protects its processes");
		SAY_REMEDY(e, "it needs no privileges: chmod u-s,g-s %s; setcap -r %s", path, path);
		return true;
	}
	SAY_CAUSE(e, "this user may not read the file of dftrace-run, so the kernel protects its "
		     "processes");
	SAY_REMEDY(e, "chmod a+r %s, or run a copy", path);
	return true;
}

/* SELinux's switch, or the label that a module has put on us. */
static bool explain_module(struct explanation *e)
{
	char text[128];
	char label[128];

	if (proc_read_line("/sys/fs/selinux/booleans/deny_ptrace", text, sizeof(text)) &&
	    text[0] == '1') {
		SAY_CAUSE(e, "SELinux forbids ptrace (its boolean deny_ptrace is on)");
		SAY_REMEDY(e, "an administrator can run: setsebool deny_ptrace off");
		return true;
	}
	if (!proc_read_line("/proc/self/attr/current", label, sizeof(label)) || !label[0] ||
	    strncmp(label, "unconfined", strlen("unconfined")) == 0)
		return false;
	SAY_CAUSE(e, "a security module confines this process as '%s'", label);
	SAY_REMEDY(e, "its profile has to allow ptrace to itself (AppArmor: ptrace "
		      "peer=@{profile_name}; docker: --security-opt apparmor=unconfined)");
	return true;
}

bool explain_killing_filter(struct explanation *e, bool filter)
{
	*e = (struct explanation){0};
	if (explain_seccomp_mode() != 2)
		return false;
	if (ask(seize_nobody) < 0)
		return is_filtered(e, "ptrace", -1);
	if (!filter || ask(install_nothing) >= 0)
		return false;
	SAY_CAUSE(e, "a seccomp filter around this process kills whoever calls seccomp");
	SAY_REMEDY(e, "allow it where the container or service is started, or use "
		      "--no-seccomp, which is slow");
	return true;
}

void explain_ptrace(struct explanation *e, int reason, bool attached)
{
	*e = (struct explanation){0};
	if (is_filtered(e, "ptrace", ask(seize_nobody)))
		return;
	if (reason == 0 && explain_killing_filter(e, true))
		return;
	if (reason == 0) {
		SAY_CAUSE(e, "the tracer ended before the program began");
		SAY_REMEDY(e, "the system's log may say who ended it");
		return;
	}
	if (explain_yama(e, attached) || explain_own_file(e) || explain_module(e))
		return;
	SAY_CAUSE(e, "the kernel refuses ptrace (%s)", strerror(reason));
	SAY_REMEDY(e, reason == EPERM
			      ? "CAP_SYS_PTRACE may be needed here (docker and podman: --cap-add "
				"SYS_PTRACE)"
			      : "dftrace-run --doctor says more about this host");
}

void explain_seccomp(struct explanation *e, int reason)
{
	int mode = explain_seccomp_mode();

	*e = (struct explanation){0};
	if (mode == 2 && reason != ENOMEM) {
		SAY_CAUSE(e, "the seccomp filter around this process forbids another one (%s)",
			  strerror(reason));
		SAY_REMEDY(e,
			   "allow seccomp(2) where the container or service is started (docker and "
			   "podman: --security-opt seccomp=unconfined)");
		return;
	}
	if (reason == ENOSYS || reason == EINVAL) {
		SAY_CAUSE(e, "this kernel or sandbox has no seccomp filters (%s)",
			  strerror(reason));
		SAY_REMEDY(e, "a kernel with CONFIG_SECCOMP_FILTER has them");
		return;
	}
	SAY_CAUSE(e, "the kernel refuses a seccomp filter (%s)", strerror(reason));
	SAY_REMEDY(e, "tracing works without, slower");
}

void explain_vm_readv(struct explanation *e, int reason)
{
	int answer = ask(read_nobody);

	*e = (struct explanation){0};
	if (answer == ENOSYS && explain_seccomp_mode() == 0) {
		SAY_CAUSE(e, "this kernel was built without process_vm_readv");
		SAY_REMEDY(e, "none needed, as long as /proc/PID/mem works");
		return;
	}
	if (is_filtered(e, "process_vm_readv", answer))
		return;
	SAY_CAUSE(e, "the kernel refuses process_vm_readv (%s)", strerror(reason));
	SAY_REMEDY(e, "none needed, as long as /proc/PID/mem works");
}
