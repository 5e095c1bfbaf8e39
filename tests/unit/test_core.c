/* What the core offers to those that build on it: notifications, remote system calls, the site table. The
 * test is tracer and tracee: started with an argument it is the traced program. */
#include "seccomp/filter.h"
#include "tracer/arch/arch.h"
#include "tracer/remote.h"
#include "tracer/tracer.h"
#include "tracer/wanted.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#define READS   500
#define THREADS 3
#define FORKS   4

static void on_usr1(int sig)
{
	(void)sig;
}

static void *thread(void *arg)
{
	return arg;
}

/* The traced program: exits with 0 if all went as it should. */
static int tracee(void)
{
	pthread_t threads[THREADS];
	char byte;

	int fd = open("/proc/self/exe", O_RDONLY);
	for (int i = 0; i < READS; i++) {
		if (pread(fd, &byte, 1, i) != 1)
			return 1;
	}
	if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		return 2;
	signal(SIGUSR1, on_usr1);
	raise(SIGUSR1);
	raise(SIGUSR2); /* the observer swallows it, or it would be our end */
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, thread, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < FORKS; i++) {
		int status;
		pid_t pid = fork();
		if (pid == 0)
			_exit(i == 0 && signal(SIGUSR1, SIG_DFL) != on_usr1);
		if (waitpid(pid, &status, 0) != pid || status != 0)
			return 3;
	}
	return 0;
}

struct seen {
	struct observer observer;
	int execs, children, threads, signals, mapped, thread_exits, process_exits;
	int remote_wrong;
	uint64_t most_hits;
	uint64_t page;
};

static void check_remote(struct seen *seen, struct tracer *tracer, struct task *task)
{
	const uint64_t none[6] = {0};
	const uint64_t map[6] = {0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, (uint64_t)-1, 0};
	struct arch_regs before;
	struct arch_regs after;
	int64_t result = 0;

	arch_regs_get(task->tid, &before);
	if (remote_syscall(tracer, task, __NR_gettid, none, &result) < 0 || result != task->tid)
		seen->remote_wrong++;
	/* A wanted call stops at the filter too. */
	if (remote_syscall(tracer, task, __NR_mmap, map, &result) < 0 || result <= 0)
		seen->remote_wrong++;
	if (remote_syscall(tracer, task, __NR_close, (uint64_t[6]){999}, &result) < 0 ||
	    result != -EBADF)
		seen->remote_wrong++;
	arch_regs_get(task->tid, &after);
	if (arch_regs_ip(&before) != arch_regs_ip(&after) ||
	    arch_regs_sp(&before) != arch_regs_sp(&after))
		seen->remote_wrong++;
}

static void exec_stop(struct observer *o, struct tracer *tracer, struct task *task)
{
	struct seen *seen = (struct seen *)o;
	seen->execs++;
	check_remote(seen, tracer, task);
}

static void child_first_stop(struct observer *o, struct tracer *tracer, struct task *parent,
			     struct task *child)
{
	struct seen *seen = (struct seen *)o;
	(void)parent;
	seen->children++;
	check_remote(seen, tracer, child);
}

static void thread_start(struct observer *o, struct tracer *tracer, struct task *task)
{
	struct seen *seen = (struct seen *)o;
	struct arch_regs regs;
	(void)tracer;
	seen->threads++;
	if (arch_regs_get(task->tid, &regs) < 0 || arch_regs_set(task->tid, &regs) < 0)
		seen->remote_wrong++;
}

static bool before_signal(struct observer *o, struct tracer *tracer, struct task *task,
			  const siginfo_t *info)
{
	struct seen *seen = (struct seen *)o;
	(void)tracer;
	(void)task;
	seen->signals += info->si_signo == SIGUSR1;
	return info->si_signo == SIGUSR2;
}

static void mapped(struct observer *o, struct tracer *tracer, struct task *task, uint64_t address,
		   uint64_t length)
{
	struct seen *seen = (struct seen *)o;
	(void)tracer;
	(void)task;
	if (task->process->started && length == 4096 && address % 4096 == 0)
		seen->mapped++;
}

static void thread_exit(struct observer *o, struct tracer *tracer, struct task *task)
{
	struct seen *seen = (struct seen *)o;
	(void)tracer;
	(void)task;
	seen->thread_exits++;
}

static void process_exit(struct observer *o, struct tracer *tracer, struct task *task)
{
	struct seen *seen = (struct seen *)o;
	struct map_slot *slot;
	size_t at = 0;
	(void)tracer;
	seen->process_exits++;
	while ((slot = map_next(&task->mm->sites, &at))) {
		const struct site *site = slot->value;
		if (site->hits > seen->most_hits)
			seen->most_hits = site->hits;
	}
}

static void become_tracee(const char *what, int go, const struct selection *selection, bool filter)
{
	static struct filter_rule rules[WANTED_MAX];
	static struct sock_filter insns[4096];
	size_t len = sizeof(insns) / sizeof(*insns);
	char byte;

	if (filter && filter_build(rules, wanted_rules(selection, rules), 0, insns, &len) < 0)
		_exit(100);
	if (read(go, &byte, 1) != 1)
		_exit(101);
	if (filter && filter_install(insns, len) < 0)
		_exit(102);
	/* LeakSanitizer is a tracer itself. */
	setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
	execl("/proc/self/exe", "tracee", what, NULL);
	_exit(103);
}

/* Takes away a stop that the loop should have seen: once, when the program sleeps. */
static void steal_stop(struct tracer *tracer, uint64_t now, void *data)
{
	int *stolen = data;
	siginfo_t info;

	(void)now;
	/* While a stop of its waits in the queue it would only be let go on from that one. */
	if (!tracer->main_execed || *stolen || !STAILQ_EMPTY(&tracer->queue))
		return;
	if (++*stolen == 1 && ptrace(PTRACE_INTERRUPT, tracer->main_pid, NULL, NULL) == 0)
		waitid(P_PID, (id_t)tracer->main_pid, &info, WSTOPPED | __WALL);
}

static void run(const char *what, bool filter, bool use_info, struct seen *seen,
		struct tracer *result)
{
	char dir[] = "/tmp/test_core.XXXXXX";
	char prefix[64];
	struct selection selection;
	struct buf error = {0};
	int stolen = 0;
	int go[2];

	assert_non_null(mkdtemp(dir));
	snprintf(prefix, sizeof(prefix), "%s/t", dir);
	selection_default(&selection);
	struct tracer_options options = {
		.prefix = prefix,
		.shown_prefix = prefix,
		.selection = &selection,
		.compress = true,
		.use_syscall_info = use_info,
		.use_proc_mem = true,
		.use_vm_readv = true,
	};
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (pid == 0)
		become_tracee(what, go[0], &selection, filter);
	struct tracer *tracer = tracer_new(&options, &error);
	assert_non_null(tracer);
	*seen = (struct seen){.observer = {.exec_stop = exec_stop,
					   .child_first_stop = child_first_stop,
					   .thread_start = thread_start,
					   .before_signal = before_signal,
					   .mapped = mapped,
					   .thread_exit = thread_exit,
					   .process_exit = process_exit}};
	if (strcmp(what, "sleeper") == 0) {
		tracer->each_tick = steal_stop;
		tracer->parent_data = &stolen;
	} else {
		tracer_observe(tracer, &seen->observer);
	}
	assert_int_equal(tracer_seize(tracer, pid, filter), 0);
	assert_int_equal(write(go[1], "", 1), 1);
	assert_int_equal(tracer_run(tracer), 0);
	*result = *tracer;
	tracer_free(tracer);
	close(go[0]);
	close(go[1]);
	snprintf(prefix, sizeof(prefix), "rm -rf %s", dir);
	assert_int_equal(system(prefix), 0);
}

static void check(bool filter, bool use_info)
{
	struct seen seen;
	struct tracer tracer;

	run("tracee", filter, use_info, &seen, &tracer);
	assert_true(tracer.main_ended);
	assert_int_equal(tracer.main_code, CLD_EXITED);
	assert_int_equal(tracer.main_value, 0);
	assert_int_equal(seen.execs, 1);
	assert_int_equal(seen.children, FORKS);
	assert_int_equal(seen.threads, THREADS);
	assert_int_equal(seen.signals, 1);
	assert_int_equal(seen.mapped, 1);
	assert_int_equal(seen.thread_exits, 1 + FORKS + THREADS);
	assert_int_equal(seen.process_exits, 1 + FORKS);
	assert_int_equal(seen.remote_wrong, 0);
	assert_true(seen.most_hits >= READS);
}

static void test_with_filter(void **state)
{
	(void)state;
	check(true, true);
}

static void test_without_filter(void **state)
{
	(void)state;
	check(false, true);
}

static void test_without_syscall_info(void **state)
{
	(void)state;
	check(true, false);
}

static void test_without_both(void **state)
{
	(void)state;
	check(false, false);
}

/* A stop that never arrives must not hang the program. */
static void test_watchdog(void **state)
{
	struct seen seen;
	struct tracer tracer;

	(void)state;
	run("sleeper", true, true, &seen, &tracer);
	assert_true(tracer.main_ended);
	assert_int_equal(tracer.main_code, CLD_EXITED);
	assert_int_equal(tracer.main_value, 0);
	assert_int_equal(tracer.lost[LOST_DROPPED], 1);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_with_filter),
		cmocka_unit_test(test_without_filter),
		cmocka_unit_test(test_without_syscall_info),
		cmocka_unit_test(test_without_both),
		cmocka_unit_test(test_watchdog),
	};

	if (argc > 1 && strcmp(argv[1], "tracee") == 0)
		return tracee();
	if (argc > 1 && strcmp(argv[1], "sleeper") == 0)
		return usleep(700000);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
