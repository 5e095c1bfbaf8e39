#include "launchers/parent.h"

#include "base/proc.h"
#include "launchers/program.h"

#include <time.h>
#include <unistd.h>

#include <sys/resource.h>

/* A launcher signals the whole group, or us alone. The program's own copy comes within this time. */
#define GROUP_WINDOW 60000000
#define SEEN_FOR     1000000000

static const int passed_on[] = {SIGHUP,   SIGINT,  SIGQUIT, SIGTERM, SIGUSR1,
				SIGUSR2,  SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT,
				SIGWINCH, SIGURG,  SIGIO,   SIGPWR,  SIGVTALRM};

static void passed_on_set(sigset_t *set)
{
	sigemptyset(set);
	for (size_t i = 0; i < sizeof(passed_on) / sizeof(*passed_on); i++)
		sigaddset(set, passed_on[i]);
}

void parent_block(sigset_t *old)
{
	sigset_t set;

	passed_on_set(&set);
	sigprocmask(SIG_BLOCK, &set, old);
}

/* @return whether the signal waits to be delivered to the program: then it has had it. */
static bool is_pending(pid_t pid, int sig)
{
	static const char *const keys[] = {"SigPnd:", "ShdPnd:"};
	uint64_t pending[2] = {0};

	proc_status(pid, 16, keys, pending, 2);
	return ((pending[0] | pending[1]) >> (sig - 1)) & 1;
}

static void pass_on(pid_t pid, const siginfo_t *info)
{
	if (info->si_code == SI_QUEUE)
		sigqueue(pid, info->si_signo, info->si_value);
	else
		kill(pid, info->si_signo);
}

static bool is_recent(uint64_t time, uint64_t now)
{
	return time && now - time < SEEN_FOR;
}

/* Whoever watches us with waitpid(WUNTRACED), a shell above all, must see the program's stop as ours, if
 * it concerns us: a stop of the program alone would leave nobody to let it go on. */
static void stop_with_program(struct parent *parent, uint64_t now)
{
	if (!is_recent(parent->stop_signal, now) || !is_recent(parent->stopped, now))
		return;
	parent->stop_signal = 0;
	parent->stopped = 0;
	raise(SIGSTOP);
}

static bool is_stop_signal(int sig)
{
	return sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU;
}

/* Takes what has come for us since the last look. */
static void receive(struct parent *parent, uint64_t now)
{
	const struct timespec at_once = {0};
	siginfo_t info;
	sigset_t set;

	passed_on_set(&set);
	while (sigtimedwait(&set, &info, &at_once) > 0) {
		if (is_stop_signal(info.si_signo))
			parent->stop_signal = now;
		/* The terminal's keys reach the program by themselves; its hangup is for the session's
		 * leader, which may be us. */
		if (info.si_code <= 0 || info.si_signo == SIGHUP)
			parent->held[info.si_signo] = (struct parent_signal){info, now};
	}
}

static void each_tick(struct tracer *tracer, uint64_t now, void *data)
{
	struct parent *parent = data;

	receive(parent, now);
	for (int sig = 1; sig < 32; sig++) {
		struct parent_signal *held = &parent->held[sig];
		if (!held->info.si_signo)
			continue;
		pid_t sender = held->info.si_code <= 0 ? held->info.si_pid : 0;
		bool shared = parent->seen[sig].sender == sender &&
			      is_recent(parent->seen[sig].time, now);
		if (!shared && now - held->since < GROUP_WINDOW)
			continue;
		if (!shared && !tracer->main_ended && !is_pending(tracer->main_pid, sig))
			pass_on(tracer->main_pid, &held->info);
		held->info.si_signo = 0;
	}
	stop_with_program(parent, now);
}

static void main_signal(struct tracer *tracer, int sig, const siginfo_t *info, void *data)
{
	struct parent *parent = data;

	if (sig < 32) {
		parent->seen[sig].sender = info->si_code <= 0 ? info->si_pid : 0;
		parent->seen[sig].time = clock_now(&tracer->clock);
	}
}

static void main_stopped(struct tracer *tracer, void *data)
{
	struct parent *parent = data;
	uint64_t now = clock_now(&tracer->clock);

	parent->stopped = now;
	receive(parent, now);
	stop_with_program(parent, now);
}

void parent_attach(struct parent *parent, struct tracer *tracer)
{
	parent->tracer = tracer;
	tracer->parent_data = parent;
	tracer->each_tick = each_tick;
	tracer->main_signal = main_signal;
	tracer->main_stopped = main_stopped;
}

void parent_end(const struct handoff_end *end)
{
	const struct rlimit none = {0, 0};
	sigset_t set;

	if (end->code == CLD_EXITED)
		_exit(end->value);
	/* The program has left a core file if one was wanted; ours would replace it. */
	setrlimit(RLIMIT_CORE, &none);
	signal(end->value, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, end->value);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise(end->value);
	_exit(128 + end->value);
}
