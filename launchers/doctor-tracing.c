/* The rows on what tracing needs: ptrace, the filter, the program's memory, and what a stop costs. */
#include "launchers/doctor.h"
#include "launchers/probe.h"
#include "tracer/recorder/recorder.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Of the program's calls, in each measurement; each stops twice. */
#define MEASURED_CALLS 1000

/* ptrace, in the form that a run would use; `*parent_form` says which that is.
 * @return whether a program can be traced at all. */
static bool add_ptrace(struct doctor *doctor, struct probe_result *result, bool *parent_form)
{
	struct probe_plan plan = {.features = true,
				  .filter = !doctor->options->no_seccomp,
				  .calls = 2,
				  .tracer_cpu = -1,
				  .program_cpu = -1};
	enum tracer_form form = doctor->options->tracer;
	struct explanation why;

	plan.parent_form =
		form == TRACER_FORM_PARENT || (form == TRACER_FORM_AUTO && getpid() == 1);
	int failed = probe_run(&plan, result);
	int reason = result->seize;
	if (failed == 0 && reason != 0) {
		explain_ptrace(&why, reason < 0 ? 0 : reason, !plan.parent_form);
		if (form == TRACER_FORM_AUTO && !plan.parent_form && reason == EPERM) {
			plan.parent_form = true;
			failed = probe_run(&plan, result);
		}
	}
	*parent_form = plan.parent_form;
	if (failed < 0) {
		struct doctor_row *row = doctor_add(doctor, "ptrace", DOCTOR_REFUSED,
						    "no processes can be made to try it");
		snprintf(row->why.cause, sizeof(row->why.cause), "%s", strerror(errno));
		snprintf(row->why.remedy, sizeof(row->why.remedy),
			 "raise the limits on processes and memory (ulimit -a)");
		return false;
	}
	if (result->seize != 0) {
		doctor_add(doctor, "ptrace", DOCTOR_REFUSED,
			   "the tracer cannot seize the program: %s",
			   result->seize < 0 ? "it was killed for trying" : strerror(result->seize))
			->why = why;
		return false;
	}
	if (reason != 0)
		doctor_add(doctor, "ptrace", DOCTOR_DEGRADED,
			   "only as the program's parent (as with --tracer parent)")
			->why = why;
	else
		doctor_add(doctor, "ptrace", DOCTOR_OK,
			   plan.parent_form ? "the tracer can seize the program, as its parent"
					    : "the tracer can seize the program from outside");
	return true;
}

static void add_yama(struct doctor *doctor)
{
	static const char *const scopes[] = {
		"scope 0: processes of one user may trace each other",
		"scope 1: descendants, and who is named as the tracer; dftrace-run is",
		"scope 2: administrators only",
		"scope 3: nobody",
	};
	long scope = explain_yama_scope();

	/* Where it is in the way, the row on ptrace says so. */
	doctor_add(doctor, "Yama", DOCTOR_OK, "%s", scope < 0 ? "not there" : scopes[scope]);
}

static void add_filter(struct doctor *doctor, const struct probe_result *result)
{
	int mode = explain_seccomp_mode();

	if (doctor->options->no_seccomp) {
		struct explanation *why =
			&doctor_add(doctor, "seccomp filter", DOCTOR_DEGRADED,
				    "none: every system call stops, which is slow")
				 ->why;
		snprintf(why->cause, sizeof(why->cause), "--no-seccomp was given");
		snprintf(why->remedy, sizeof(why->remedy), "leave it out where a filter works");
		return;
	}
	if (result->filter == 0) {
		doctor_add(doctor, "seccomp filter", DOCTOR_OK,
			   "works: only recorded calls stop%s%s",
			   result->no_new_privs ? "; sets NoNewPrivs" : "",
			   mode == 2 ? "; a filter is around us already" : "");
		return;
	}
	struct doctor_row *row = doctor_add(doctor, "seccomp filter", DOCTOR_DEGRADED,
					    "%s: every system call stops, which is slow",
					    result->filter < 0 ? "whoever installs one is killed"
							       : strerror(result->filter));
	explain_seccomp(&row->why, result->filter < 0 ? EPERM : result->filter);
}

static const char *last_component(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* What the row says where nothing is in the way. */
static const char *recorder_state(const struct options *options, bool threads)
{
	if (options->argc && options_excludes_recorder(options, last_component(options->argv[0])))
		return "works here, but not in this program (--no-recorder)";
	if (!options->recorder)
		return "works here, if asked for by --capture recorder";
	return threads ? "works here (--capture recorder)"
		       : "works here, but not in places that several threads have come to";
}

static void add_recorder(struct doctor *doctor, bool filter)
{
	bool threads = true;
	const char *obstacle =
		filter ? recorder_obstacle() : "there is no filter to let its calls pass";

	if (!obstacle)
		obstacle = recorder_trial(&threads);
	if (!obstacle) {
		doctor_add(doctor, "recorder", DOCTOR_OK, "%s",
			   recorder_state(doctor->options, threads));
		return;
	}
	struct doctor_row *row = doctor_add(doctor, "recorder",
					    doctor->options->recorder ? DOCTOR_DEGRADED : DOCTOR_OK,
					    "not here: all calls stop");
	snprintf(row->why.cause, sizeof(row->why.cause), "%s", obstacle);
	snprintf(row->why.remedy, sizeof(row->why.remedy), "nothing is lost, it is slower");
}

static void add_seccomp_features(struct doctor *doctor)
{
	struct buf names = {0};
	int known = probe_seccomp();

	for (int i = 0; known > 0 && i < PROBE_SECCOMP_NAMES; i++) {
		if (known >> i & 1)
			buf_addf(&names, " %s", probe_seccomp_names[i]);
	}
	const char *text = buf_str(&names);
	/* For the record: a run needs none of them but `trace`, which was tried above. */
	doctor_add(doctor, "seccomp features", DOCTOR_OK, "%s",
		   known > 0 && text ? text + 1 : "cannot be asked");
	buf_free(&names);
}

/* A step of the ladder that is there or not. */
static struct doctor_row *add_step(struct doctor *doctor, const char *what, int reason,
				   const char *good, const char *bad)
{
	if (reason == 0)
		return doctor_add(doctor, what, DOCTOR_OK, "%s", good);
	return doctor_add(doctor, what, DOCTOR_DEGRADED, "%s: %s",
			  reason < 0 ? "cannot be tried" : strerror(reason), bad);
}

static void add_syscall_info(struct doctor *doctor, const struct probe_result *result)
{
	struct doctor_row *row = add_step(doctor, "PTRACE_GET_SYSCALL_INFO", result->syscall_info,
					  "works", "calls are read from the registers");

	if (row->state == DOCTOR_OK)
		return;
	snprintf(row->why.cause, sizeof(row->why.cause), "%s",
		 result->syscall_info == EIO ? "this kernel is older than 5.3"
					     : "a seccomp filter or sandbox does not know it");
	snprintf(row->why.remedy, sizeof(row->why.remedy), "none needed: registers say the same");
}

static void add_memory(struct doctor *doctor, const struct probe_result *result)
{
	bool other = result->vm_readv == 0;
	struct doctor_row *row = add_step(doctor, "/proc/PID/mem", result->proc_mem, "can be read",
					  other ? "process_vm_readv is used instead"
						: "words are read one by one, which is slow");
	if (row->state != DOCTOR_OK) {
		snprintf(row->why.cause, sizeof(row->why.cause), "%s",
			 access("/proc/self", F_OK) < 0
				 ? "/proc is not mounted"
				 : "/proc does not show other processes' memory here");
		snprintf(row->why.remedy, sizeof(row->why.remedy),
			 "mount proc without hidepid and subset, and let no security module deny "
			 "it");
	}
	row = add_step(doctor, "process_vm_readv", result->vm_readv, "works",
		       "no loss as long as /proc/PID/mem can be read");
	if (row->state != DOCTOR_OK)
		explain_vm_readv(&row->why, result->vm_readv < 0 ? EPERM : result->vm_readv);
}

/* @return ns a stop takes with both bound so, 0: not measured. */
static uint64_t measure(bool parent_form, bool filter, int tracer_cpu, int program_cpu)
{
	const struct probe_plan plan = {.parent_form = parent_form,
					.filter = filter,
					.calls = MEASURED_CALLS,
					.tracer_cpu = tracer_cpu,
					.program_cpu = program_cpu};
	struct probe_result result;

	if (probe_run(&plan, &result) < 0 || result.bind || result.stops < MEASURED_CALLS)
		return 0;
	return result.ns / (result.stops - 1);
}

static void add_cost(struct doctor *doctor, bool parent_form, bool filter)
{
	cpu_set_t set[128];
	int cpus[2] = {-1, -1};
	int found = 0;

	CPU_ZERO_S(sizeof(set), set);
	if (sched_getaffinity(0, sizeof(set), set) == 0) {
		for (int cpu = 0; cpu < (int)sizeof(set) * 8 && found < 2; cpu++) {
			if (CPU_ISSET_S((size_t)cpu, sizeof(set), set))
				cpus[found++] = cpu;
		}
	}
	uint64_t same = measure(parent_form, filter, cpus[0], cpus[0]);
	uint64_t other = found == 2 ? measure(parent_form, filter, cpus[0], cpus[1]) : 0;
	if (same == 0) {
		doctor_add(doctor, "cost of a stop", DOCTOR_OK, "could not be measured");
		return;
	}
	struct doctor_row *row;
	if (other)
		row = doctor_add(
			doctor, "cost of a stop", DOCTOR_OK,
			"%.1f us on the program's CPU, %.1f us from another one; a recorded "
			"call has two",
			(double)same / 1000, (double)other / 1000);
	else
		row = doctor_add(doctor, "cost of a stop", DOCTOR_OK,
				 "%.1f us on the program's CPU; a recorded call has two",
				 (double)same / 1000);
	row->numbers[0].name = "same_cpu_ns";
	row->numbers[0].value = same;
	row->numbers[1].name = "stops";
	row->numbers[1].value = 2ULL * MEASURED_CALLS;
	if (other) {
		row->numbers[2].name = "other_cpu_ns";
		row->numbers[2].value = other;
	}
}

void doctor_tracing(struct doctor *doctor)
{
	struct probe_result result;
	struct explanation why;
	bool parent_form;

	/* Under another tracer everything below would be refused for that reason alone. */
	if (explain_is_recorded()) {
		struct doctor_row *row = doctor_add(doctor, "ptrace", DOCTOR_DEGRADED,
						    "a run here starts the program as it is");
		snprintf(row->why.cause, sizeof(row->why.cause),
			 "already under dftrace-run, which records it as well");
		snprintf(row->why.remedy, sizeof(row->why.remedy), "leave out one of the two");
		return;
	}
	if (!explain_place(&why)) {
		doctor_add(doctor, "ptrace", DOCTOR_REFUSED, "not from here")->why = why;
		add_yama(doctor);
		return;
	}
	bool can_trace = add_ptrace(doctor, &result, &parent_form);
	add_yama(doctor);
	add_seccomp_features(doctor);
	if (!can_trace)
		return;
	add_filter(doctor, &result);
	doctor->no_new_privs = result.no_new_privs;
	bool filter = result.filter == 0;
	if (!filter && !doctor->options->no_seccomp) {
		/* What comes after the filter has not been tried. */
		const struct probe_plan plan = {.parent_form = parent_form,
						.features = true,
						.calls = 2,
						.tracer_cpu = -1,
						.program_cpu = -1};
		if (probe_run(&plan, &result) < 0)
			return;
	}
	add_syscall_info(doctor, &result);
	add_memory(doctor, &result);
	if (result.proc_status > 0) {
		struct doctor_row *row =
			doctor_add(doctor, "/proc/PID", DOCTOR_DEGRADED,
				   "%s: inherited descriptors and directories have no names",
				   strerror(result.proc_status));
		snprintf(row->why.cause, sizeof(row->why.cause),
			 "the tracer does not see the program in /proc");
		snprintf(row->why.remedy, sizeof(row->why.remedy),
			 "mount proc without hidepid and subset: mount -t proc proc /proc");
	} else {
		doctor_add(doctor, "/proc/PID", DOCTOR_OK, "shows the program to the tracer");
	}
	add_recorder(doctor, filter);
	add_cost(doctor, parent_form, filter);
}
