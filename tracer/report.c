/* What the tracer says of itself: one line on stderr when the main program ends. */
#include "tracer/loop.h"
#include "tracer/lost.h"
#include "writer/summary.h"

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

/* @return whether all of it was taken. */
static bool write_line(int fd, const char *line, size_t len)
{
	struct pollfd poller = {.fd = fd, .events = POLLOUT};
	struct stat st;

	if (poll(&poller, 1, STDERR_PATIENCE_MS) != 1 || !(poller.revents & POLLOUT) ||
	    fstat(fd, &st) < 0)
		return false;
	if (S_ISSOCK(st.st_mode))
		return send(fd, line, len, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)len;
	/* Room in a pipe may be gone again by the time of the write. */
	int own = S_ISREG(st.st_mode) ? -1 : open_nonblocking(fd);
	ssize_t written = write(own >= 0 ? own : fd, line, len);
	if (own >= 0)
		close(own);
	return written == (ssize_t)len;
}

/* More than goes into a pipe at once, for as long as its reader takes it. */
static void write_text(int fd, const char *text, size_t len)
{
	while (len > 0) {
		size_t part = len < LINE_MAX_BYTES ? len : LINE_MAX_BYTES;
		/* Whole lines, where there are others between. */
		const char *end = memrchr(text, '\n', part);
		if (end)
			part = (size_t)(end - text) + 1;
		if (!write_line(fd, text, part))
			return;
		text += part;
		len -= part;
	}
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

/* @return the main program's rank, NULL: none is known. */
static const char *rank_of(const struct tracer *tracer)
{
	return tracer->confirmed_rank[0] ? tracer->confirmed_rank : tracer->options->rank;
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
		recorder_report(tracer, line);
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

/* The line's beginning: how many events, and where. */
static void add_counts(struct tracer *tracer, struct buf *line, const uint64_t lost[LOST_COUNT],
		       const struct writer_totals *totals)
{
	struct timespec cpu = {0};
	const char *rank = rank_of(tracer);
	bool written = !tracer->options->summary_only;
	uint64_t events = written ? totals->events : summary_events(tracer->summary);

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	buf_addf(line, "dftrace-run: %s%s%s%llu event%s ", rank ? "rank " : "", rank ? rank : "",
		 rank ? ": " : "", (unsigned long long)events, events == 1 ? "" : "s");
	if (written)
		buf_addf(line, "in %llu file%s ", (unsigned long long)totals->files,
			 totals->files == 1 ? "" : "s");
	buf_addf(line, "(%llu lost), %lld ms tracer CPU",
		 (unsigned long long)total_lost(lost, totals),
		 (long long)cpu.tv_sec * 1000 + cpu.tv_nsec / 1000000);
	if (written)
		buf_addf(line, " -> %s-*%s", tracer->options->shown_prefix,
			 tracer->options->compress ? ".pfw.gz" : ".pfw");
	else
		buf_add_str(line, ", no traces (--summary-only)");
}

static void render_summary(struct tracer *tracer, struct buf *out)
{
	const char *rank = rank_of(tracer);
	struct buf title = {0};

	if (tracer->options->json) {
		summary_print_json(out, tracer->summary);
		return;
	}
	buf_addf(&title, "dftrace-run: %s%s%ssummary", rank ? "rank " : "", rank ? rank : "",
		 rank ? ": " : "");
	struct summary_style style = {
		.title = buf_str(&title) ? buf_str(&title) : "summary",
		.all_files = tracer->options->verbose > 0,
	};
	summary_print(out, tracer->summary, &style);
	buf_free(&title);
}

/* Replaces the summary's file. @return 0, or -1 with errno. */
static int write_file(const char *path, const char *text, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOCTTY | O_CLOEXEC, 0666);
	if (fd < 0)
		return -1;
	while (len > 0) {
		ssize_t n = write(fd, text, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		text += n;
		len -= (size_t)n;
	}
	int error = len > 0 ? errno : 0;
	close(fd);
	errno = error;
	return error ? -1 : 0;
}

void report_summary(struct tracer *tracer)
{
	const char *path = tracer->options->summary_file;
	struct buf text = {0};

	if (!tracer->summary || !tracer->main_execed ||
	    (tracer->summarized && tracer->summarized == summary_events(tracer->summary)))
		return;
	tracer->summarized = summary_events(tracer->summary);
	render_summary(tracer, &text);
	if (text.failed)
		tracer_warn(tracer, "the summary is left out: out of memory");
	else if (!path && tracer->report_fd >= 0)
		write_text(tracer->report_fd, text.data, text.len);
	else if (path && write_file(path, text.data, text.len) < 0)
		tracer_warn(tracer, "the summary cannot be written to %s: %s", path,
			    strerror(errno));
	buf_free(&text);
}

void report_exit(struct tracer *tracer, uint64_t now)
{
	struct writer_totals totals;
	uint64_t lost[LOST_COUNT];
	struct buf line = {0};
	const char *rank = rank_of(tracer);

	if (tracer->reported)
		return;
	tracer->reported = true;
	if (tracer->report_fd < 0 && !tracer->options->summary_file)
		return;
	sum_lost(tracer, lost);
	/* What was not waited for yet: earlier images, and processes that go on. */
	writer_settle(tracer->writer, now + SETTLE_NS);
	writer_totals(tracer->writer, &totals);
	totals.events += totals.late_events;
	totals.files += totals.late_files;
	/* One rank speaks for all, unless another has something of its own to say. */
	bool first = !rank || strcmp(rank, "0") == 0 || tracer->options->verbose;
	if (first || tracer->options->summary_file)
		report_summary(tracer);
	add_counts(tracer, &line, lost, &totals);
	add_lost(tracer, &line, lost, &totals, now);
	if (line.len > LINE_MAX_BYTES - 1)
		line.len = LINE_MAX_BYTES - 1;
	buf_add_char(&line, '\n');
	if (tracer->options->verbose)
		add_verbose(tracer, &line);
	bool speaks = first || tracer->contradicted || has_losses(lost, &totals);
	if (tracer->report_fd >= 0 && !line.failed && !tracer->options->quiet &&
	    tracer->main_execed && speaks)
		write_line(tracer->report_fd, line.data, line.len);
	buf_free(&line);
	if (tracer->report_fd >= 0)
		close(tracer->report_fd);
	tracer->report_fd = -1;
}
