/* What the tracer says of itself: one line on stderr when the main program ends. */
#include "tracer/loop.h"
#include "tracer/lost.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/socket.h>
#include <sys/stat.h>

/* A disk that hangs must not keep the program's end for longer. */
#define SETTLE_NS 2000000000
/* Longer lines would not go into a pipe in one piece. */
#define LINE_MAX_BYTES 4096
/* How long a reader of a full pipe or a stopped terminal is waited for. */
#define STDERR_PATIENCE_MS 200

void tracer_warn(struct tracer *tracer, const char *format, ...)
{
	va_list args;
	char text[512];

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (tracer->warnings.len)
		buf_add_str(&tracer->warnings, "; ");
	buf_add_str(&tracer->warnings, text);
}

/* A descriptor on the same file that does not block, since the flags of ours are the program's too. */
static int open_nonblocking(int fd)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | O_APPEND);
}

static void write_line(int fd, const char *line, size_t len)
{
	struct pollfd poller = {.fd = fd, .events = POLLOUT};
	struct stat st;

	if (poll(&poller, 1, STDERR_PATIENCE_MS) != 1 || !(poller.revents & POLLOUT) ||
	    fstat(fd, &st) < 0)
		return;
	if (S_ISSOCK(st.st_mode)) {
		(void)!send(fd, line, len, MSG_DONTWAIT | MSG_NOSIGNAL);
		return;
	}
	/* Room in a pipe may be gone again by the time of the write. */
	int own = S_ISREG(st.st_mode) ? -1 : open_nonblocking(fd);
	(void)!write(own >= 0 ? own : fd, line, len);
	if (own >= 0)
		close(own);
}

/* What is not where it belongs. */
static void add_staged(struct tracer *tracer, struct buf *line, const struct writer_totals *totals)
{
	uint64_t stayed = totals->stayed_files;
	uint64_t more = totals->staged_files - stayed;

	if (stayed)
		buf_addf(line, "; %llu file%s stayed in %s (%s)", (unsigned long long)stayed,
			 stayed == 1 ? "" : "s", tracer->options->stage,
			 strerror(totals->stayed_errno));
	if (more)
		buf_addf(line, "; %llu file%s in %s still to be moved", (unsigned long long)more,
			 more == 1 ? "" : "s", tracer->options->stage);
}

static void add_lost(struct tracer *tracer, struct buf *line, const uint64_t lost[LOST_COUNT],
		     const struct writer_totals *totals, uint64_t now)
{
	for (int i = 0; i < LOST_COUNT; i++) {
		if (lost[i])
			buf_addf(line, "; lost:%s %llu", lost_name(i), (unsigned long long)lost[i]);
	}
	if (totals->late_events)
		buf_addf(line, "; %llu of the events are not on disk yet",
			 (unsigned long long)totals->late_events);
	if (totals->lost_events || totals->lost_files)
		buf_addf(line, "; lost:write %llu events, %llu files (%s: %s)",
			 (unsigned long long)totals->lost_events,
			 (unsigned long long)totals->lost_files,
			 totals->first_path ? totals->first_path : "trace",
			 strerror(totals->first_errno));
	if (totals->skipped_files)
		buf_addf(line, "; %llu files beyond --max-files left out",
			 (unsigned long long)totals->skipped_files);
	add_staged(tracer, line, totals);
	if (tracer->hooks) {
		size_t len = line->len;
		buf_add_str(line, "; ");
		hooks_report(tracer->hooks, now - tracer->started, tracer->options->verbose > 0,
			     line);
		if (line->len == len + 2)
			line->len = len;
	}
	if (tracer->warnings.len)
		buf_addf(line, "; %s", buf_str(&tracer->warnings));
}

static uint64_t total_lost(const uint64_t lost[LOST_COUNT], const struct writer_totals *totals)
{
	uint64_t total = totals->lost_events;

	for (int i = 0; i < LOST_COUNT; i++)
		total += lost[i];
	return total;
}

/* @return whether the line has to be read, whatever the other ranks say. */
static bool has_losses(const uint64_t lost[LOST_COUNT], const struct writer_totals *totals)
{
	return total_lost(lost, totals) || totals->lost_files || totals->late_events ||
	       totals->staged_files;
}

/* What processes have lost, those that have ended and those that go on. */
static void sum_lost(const struct tracer *tracer, uint64_t lost[LOST_COUNT])
{
	struct map_slot *slot;
	size_t at = 0;

	memcpy(lost, tracer->lost, sizeof(tracer->lost));
	while ((slot = map_next(&tracer->processes, &at))) {
		const struct process *process = slot->value;
		for (int i = 0; i < LOST_COUNT; i++)
			lost[i] += process->lost[i];
	}
}

/* -v: what was left out on purpose, and what it took. */
static void add_verbose(struct tracer *tracer, struct buf *line)
{
	buf_addf(line, "dftrace-run: %llu process images, %llu stops, %s",
		 (unsigned long long)tracer->images, (unsigned long long)tracer->stops,
		 tracer->filter ? "seccomp filter" : "no seccomp filter");
	if (tracer->recorder) {
		buf_add_str(line, ", ");
		recorder_report(tracer->recorder, true, line);
	}
	for (int i = 0; i < SKIPPED_COUNT; i++) {
		if (tracer->skipped[i])
			buf_addf(line, ", skipped:%s %llu", skipped_name(i),
				 (unsigned long long)tracer->skipped[i]);
	}
	if (tracer->options->settings)
		buf_addf(line, "; settings: %s", tracer->options->settings);
	buf_add_char(line, '\n');
}

void report_exit(struct tracer *tracer, uint64_t now)
{
	struct writer_totals totals;
	uint64_t lost[LOST_COUNT];
	struct timespec cpu = {0};
	struct buf line = {0};
	const char *rank =
		tracer->confirmed_rank[0] ? tracer->confirmed_rank : tracer->options->rank;

	if (tracer->report_fd < 0)
		return;
	sum_lost(tracer, lost);
	/* What was not waited for yet: earlier images, and processes that go on. */
	writer_settle(tracer->writer, now + SETTLE_NS);
	writer_totals(tracer->writer, &totals);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	totals.events += totals.late_events;
	totals.files += totals.late_files;
	buf_addf(
		&line,
		"dftrace-run: %s%s%s%llu event%s in %llu file%s (%llu lost), %lld ms tracer CPU -> "
		"%s-*%s",
		rank ? "rank " : "", rank ? rank : "", rank ? ": " : "",
		(unsigned long long)totals.events, totals.events == 1 ? "" : "s",
		(unsigned long long)totals.files, totals.files == 1 ? "" : "s",
		(unsigned long long)total_lost(lost, &totals),
		(long long)cpu.tv_sec * 1000 + cpu.tv_nsec / 1000000, tracer->options->shown_prefix,
		tracer->options->compress ? ".pfw.gz" : ".pfw");
	add_lost(tracer, &line, lost, &totals, now);
	if (line.len > LINE_MAX_BYTES - 1)
		line.len = LINE_MAX_BYTES - 1;
	buf_add_char(&line, '\n');
	if (tracer->options->verbose)
		add_verbose(tracer, &line);
	/* One rank speaks for all, unless another has something of its own to say. */
	bool speaks = !rank || strcmp(rank, "0") == 0 || tracer->options->verbose ||
		      tracer->contradicted || has_losses(lost, &totals);
	if (!line.failed && !tracer->options->quiet && tracer->main_execed && speaks)
		write_line(tracer->report_fd, line.data, line.len);
	buf_free(&line);
	close(tracer->report_fd);
	tracer->report_fd = -1;
}
