#include "launchers/handoff.h"

#include "launchers/explain.h"
#include "launchers/labels.h"
#include "launchers/parent.h"
#include "launchers/print-command.h"
#include "launchers/program.h"
#include "launchers/start.h"
#include "seccomp/filter.h"
#include "tracer/tracer.h"
#include "tracer/wanted.h"
#include "writer/prefix.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>

int handoff_open(struct channel *channel)
{
	channel->shared = mmap(NULL, sizeof(*channel->shared), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (channel->shared == MAP_FAILED)
		return -1;
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -1;
	channel->program = ends[0];
	channel->tracer = ends[1];
	return 0;
}

/* Waits for the other side. @return whether it is there. */
static bool receive(int end)
{
	unsigned char byte;
	ssize_t n;

	do
		n = recv(end, &byte, 1, 0);
	while (n < 0 && errno == EINTR);
	return n == 1;
}

/* Not with write: that is a call that the filter may want. @return whether the other side is there. */
static bool tell(int end)
{
	return send(end, "", 1, MSG_NOSIGNAL) == 1;
}

enum handoff_result handoff_program(struct channel *channel, const char *path, char **argv,
				    int *status)
{
	struct handoff *shared = channel->shared;
	struct buf error = {0};

	*status = 0;
	close(channel->tracer);
	/* Under Yama only a named process that is no ancestor may trace; the name is taken back. */
	bool named = prctl(PR_SET_PTRACER, shared->tracer_pid, 0, 0, 0) == 0;
	bool seized = tell(channel->program) && receive(channel->program);
	if (named)
		prctl(PR_SET_PTRACER, 0, 0, 0, 0);
	if (!seized || shared->error[0] || shared->error_number) {
		close(channel->program);
		return shared->error_number == EPERM ? HANDOFF_REFUSED : HANDOFF_FAILED;
	}
	if (shared->filter && filter_install(shared->insns, shared->ninsns) < 0) {
		shared->filter_error = errno;
		if (!tell(channel->program) || !receive(channel->program))
			return HANDOFF_FAILED;
	}
	*status = program_exec(path, argv, &error);
	start_say("%s", buf_str(&error));
	buf_free(&error);
	return HANDOFF_FAILED;
}

static bool excludes(const void *options, const char *comm)
{
	return options_excludes(options, comm);
}

/* Splits the patterns of -x. @return NULL when out of memory. */
static struct hook_pattern *make_patterns(const struct options *options)
{
	struct hook_pattern *patterns = calloc(options->hooks.count + 1, sizeof(*patterns));

	for (size_t i = 0; patterns && i < options->hooks.count; i++) {
		char *text = options->hooks.items[i];
		/* A regular expression may hold an @ of its own. */
		char *end = text[0] == '/' ? strrchr(text, '/') : text;
		char *at = strrchr(end, '@');
		if (at)
			*at++ = '\0';
		patterns[i] = (struct hook_pattern){text, at};
	}
	return patterns;
}

static bool excludes_recorder(const void *options, const char *comm)
{
	return options_excludes_recorder(options, comm);
}

static void fill_options(struct tracer_options *to, const struct options *from, bool parent_form)
{
	*to = (struct tracer_options){
		.prefix = from->output_absolute,
		.rank = from->own.info.values[RANK_RANK],
		.rank_said = from->rank != NULL,
		.stage = from->stage,
		.selection = &from->selection,
		.data_dirs = from->data_dirs.items,
		.ndata_dirs = from->data_dirs.count,
		.excludes = from->exclude.count ? excludes : NULL,
		.excludes_data = from,
		.hooks = {.limit = from->hook_limit,
			  .max_hooks = from->max_hooks,
			  .no_emulation = from->no_emulation,
			  .symbol_dirs = (const char *const *)from->symbol_dirs.items,
			  .nsymbol_dirs = from->symbol_dirs.count},
		.recorder = {.wanted = from->recorder,
			     .hits = (unsigned)from->recorder_hits,
			     .excludes = from->no_recorder.count ? excludes_recorder : NULL,
			     .excludes_data = from},
		.v2 = from->v2,
		.paths_given = from->paths_given,
		.names_kernel = from->names_kernel,
		.compress = !from->no_compress,
		.metadata = !from->no_metadata,
		.thread_ids = !from->no_tids,
		.core_affinity = from->core_affinity,
		.buffer_bytes = from->buffer_size,
		.summary = from->summary,
		.summary_only = from->summary_only,
		.json = from->json,
		.max_files = from->max_files,
		.placement = !from->no_placement,
		.quiet = from->quiet,
		.verbose = from->verbose,
		.debug = from->debug,
		.parent_form = parent_form,
		.use_syscall_info = !from->no_syscall_info,
		.use_proc_mem = !from->no_proc_mem,
		.use_vm_readv = !from->no_vm_readv,
	};
	for (unsigned i = 0; i < HOOK_LAYERS; i++) {
		if (selection_has_layer(&from->selection, i))
			to->hooks.written[i] = from->selection.hooks[i];
	}
}

/* The prefix as a pattern of the files' names. */
static void show_prefix(struct buf *out, const struct options *options)
{
	const struct rank_info *info = &options->own.info;
	char host[HOST_NAME_MAX + 1] = "";

	gethostname(host, sizeof(host) - 1);
	prefix_expand(out, options->output,
		      &(struct prefix_values){
			      .rank = info->values[RANK_RANK] ? info->values[RANK_RANK] : "*",
			      .host = host,
			      .pid = "*",
			      .job = info->values[RANK_JOBID],
		      });
}

/* The summary's file with its expansions made; empty when there is none. */
static void expand_summary_file(struct buf *out, const struct options *options, pid_t program)
{
	const struct rank_info *info = &options->own.info;
	char host[HOST_NAME_MAX + 1] = "";
	char pid[16];

	if (!options->summary_file)
		return;
	gethostname(host, sizeof(host) - 1);
	snprintf(pid, sizeof(pid), "%d", (int)program);
	prefix_expand(out, options->summary_file,
		      &(struct prefix_values){
			      .rank = info->values[RANK_RANK],
			      .host = host,
			      .pid = pid,
			      .job = info->values[RANK_JOBID],
		      });
}

/* @return whether the program is to run under a filter; says why not. */
static bool build_filter(struct tracer *tracer, const struct options *options,
			 struct handoff *shared)
{
	struct filter_rule *rules = calloc(WANTED_MAX, sizeof(*rules));
	size_t len = sizeof(shared->insns) / sizeof(*shared->insns);

	if (options->no_seccomp || !rules) {
		free(rules);
		tracer_warn_no_filter(tracer,
				      options->no_seccomp ? "--no-seccomp" : "out of memory");
		return false;
	}
	struct selection selection = options->selection;
	selection.traps = tracer->hooks != NULL;
	selection.jumps = tracer->recorder != NULL;
	int result =
		filter_build(rules, wanted_rules(&selection, rules),
			     tracer->recorder ? recorder_allowed_ip() : 0, shared->insns, &len);
	free(rules);
	if (result < 0) {
		tracer_warn_no_filter(tracer, strerror(errno));
		return false;
	}
	shared->ninsns = len;
	return true;
}

/* At ticks until the exec: the program may find that it cannot install the filter. */
static void before_exec(struct tracer *tracer, void *data)
{
	struct channel *channel = data;
	unsigned char byte;

	if (!tracer->filter || !channel->shared->filter_error ||
	    recv(channel->tracer, &byte, 1, MSG_DONTWAIT) != 1)
		return;
	/* It is blocked in a read; the interrupt takes hold before it runs another instruction. */
	if (tracer_without_filter(tracer, strerror(channel->shared->filter_error)) == 0)
		tell(channel->tracer);
}

static bool seize(struct channel *channel, struct tracer *tracer, const struct options *options,
		  pid_t pid)
{
	struct handoff *shared = channel->shared;

	shared->filter = build_filter(tracer, options, shared);
	if (!receive(channel->tracer))
		return false; /* the program is gone already */
	if (tracer_seize(tracer, pid, shared->filter) < 0) {
		struct explanation why;
		shared->error_number = errno;
		explain_ptrace(&why, errno, !tracer->options->parent_form);
		snprintf(shared->error, sizeof(shared->error),
			 "the program cannot be traced: %s; %s", why.cause, why.remedy);
	}
	return tell(channel->tracer) && !shared->error[0];
}

bool handoff_trace(struct channel *channel, const struct options *options, pid_t pid,
		   bool parent_form, int report_fd, const char *note, struct handoff_end *end)
{
	struct tracer_options tracer_options;
	struct parent parent = {0};
	struct labeler labeler;
	struct buf sources = {0};
	struct buf shown = {0};
	struct buf summary_file = {0};
	struct buf error = {0};
	bool followed = false;

	if (channel->program >= 0)
		close(channel->program);
	fill_options(&tracer_options, options, parent_form);
	labeler_init(&labeler, options);
	print_sources(options, &sources);
	show_prefix(&shown, options);
	tracer_options.shown_prefix = buf_str(&shown) ? buf_str(&shown) : options->output;
	expand_summary_file(&summary_file, options, pid);
	if (summary_file.len)
		tracer_options.summary_file = buf_str(&summary_file);
	tracer_options.first = &labeler.observer;
	tracer_options.settings = buf_str(&sources);
	struct hook_pattern *patterns = make_patterns(options);
	tracer_options.hooks.patterns = patterns;
	tracer_options.hooks.npatterns = patterns ? options->hooks.count : 0;
	struct tracer *tracer = tracer_new(&tracer_options, &error);
	if (!tracer) {
		snprintf(channel->shared->error, sizeof(channel->shared->error), "%s",
			 buf_str(&error));
		tell(channel->tracer);
		buf_free(&error);
		labeler_free(&labeler);
		buf_free(&sources);
		buf_free(&shown);
		buf_free(&summary_file);
		free(patterns);
		return false;
	}
	tracer->report_fd = report_fd;
	if (options->debug)
		tracer->debug = fdopen(fcntl(report_fd, F_DUPFD_CLOEXEC, 3), "w");
	if (note)
		tracer_warn(tracer, "%s", note);
	if (access("/proc/self", F_OK) < 0)
		tracer_warn(tracer, "/proc is not mounted: relative paths and descriptors from "
				    "outside are not known");
	tracer->before_exec = before_exec;
	tracer->before_exec_data = channel;
	if (parent_form)
		parent_attach(&parent, tracer);
	if (seize(channel, tracer, options, pid)) {
		followed = tracer_run(tracer) == 0 && tracer->main_ended;
		end->code = tracer->main_code;
		end->value = tracer->main_value;
	}
	close(channel->tracer);
	if (tracer->debug)
		fclose(tracer->debug);
	tracer_free(tracer);
	labeler_free(&labeler);
	buf_free(&sources);
	buf_free(&shown);
	buf_free(&summary_file);
	free(patterns);
	return followed;
}
