#include "check/trace.h"

#include "check/source.h"
#include "check/verify.h"

#include <stdlib.h>
#include <string.h>

/* So many lines that are none, and no good one among them: this is no trace. */
enum { GIVE_UP = 1000 };

/* What of the frame has been seen. */
struct frame {
	struct verify *verify;
	struct line line;
	bool opened; /* by [ */
	bool closed; /* by ] */
	uint64_t good;
	uint64_t bad;
};

static struct text trim(const struct source_line *raw, bool *blanks)
{
	struct text text = {raw->bytes, raw->len};

	*blanks = false;
	while (text.len > 0 && (text.at[0] == ' ' || text.at[0] == '\t')) {
		text.at++;
		text.len--;
		*blanks = true;
	}
	/* A plain trace of ours may have a blank behind a line. */
	while (text.len > 0 && strchr(" \t\r", text.at[text.len - 1]) && text.at[text.len - 1])
		text.len--;
	return text;
}

/* @return whether the line belongs to the frame or is empty, so that nobody else looks at it. */
static bool take_frame(struct frame *frame, struct text text, uint64_t number)
{
	struct findings *findings = &frame->verify->trace->findings;

	if (frame->closed && text.len > 0) {
		frame->closed = false;
		finding_add(findings, FINDING_INNER_BRACKET, number, "lines follow the ]");
	}
	if (text.len == 0) {
		finding_add(findings, FINDING_EMPTY, number, "%s", "");
		return true;
	}
	if (text_is(text, "[")) {
		if (number > 1)
			finding_add(findings, FINDING_INNER_BRACKET, number, "[");
		frame->opened = true;
		return true;
	}
	if (text_is(text, "]")) {
		frame->closed = true;
		return true;
	}
	return false;
}

/* Says what is wrong, and shows where the line begins. */
static void refuse(struct frame *frame, struct text text, uint64_t number)
{
	frame->bad++;
	finding_add(&frame->verify->trace->findings, FINDING_JSON, number, "%s: %.*s",
		    frame->line.wrong, text.len < 60 ? (int)text.len : 60, text.at);
}

static void take_line(struct frame *frame, const struct source_line *raw)
{
	struct findings *findings = &frame->verify->trace->findings;
	bool blanks;
	struct text text = trim(raw, &blanks);

	if (raw->too_long) {
		finding_add(findings, FINDING_LONG, raw->number, "%s", "");
		frame->bad++;
		return;
	}
	if (take_frame(frame, text, raw->number))
		return;
	if (raw->number == 1 && blanks)
		finding_add(findings, FINDING_NO_OPENING, 1, "two blanks, as in unfinished traces");
	else if (blanks)
		finding_add(findings, FINDING_BLANKS, raw->number, "%s", "");
	if (text.at[text.len - 1] == ',') {
		finding_add(findings, FINDING_COMMA, raw->number, "%s", "");
		text.len--;
	}
	if (line_read(&frame->line, text.at, text.len) < 0) {
		refuse(frame, text, raw->number);
		return;
	}
	frame->good++;
	verify_line(frame->verify, &frame->line, raw->number);
}

static void check_frame(const struct frame *frame, bool whole)
{
	struct trace *trace = frame->verify->trace;
	struct findings *findings = &trace->findings;

	if (trace->format == TRACE_V2) {
		if (frame->opened || frame->closed)
			finding_add(findings, FINDING_BRACKETS, 0, "%s", "");
		return;
	}
	if (!frame->opened)
		finding_add(findings, FINDING_NO_OPENING, 1, "%s", "");
	if (!frame->closed && whole)
		finding_add(findings, FINDING_NO_CLOSING, trace->lines, "%s", "");
}

static void check_file(struct trace *trace, struct source *source)
{
	static const enum finding_kind kinds[] = {
		[SOURCE_TRUNCATED] = FINDING_TRUNCATED,
		[SOURCE_DAMAGED] = FINDING_DAMAGED,
		[SOURCE_TRAILING] = FINDING_TRAILING,
		[SOURCE_UNUSABLE] = FINDING_UNREADABLE,
	};
	unsigned long cut;
	const char *why;
	enum source_end end = source_end(source, &why);

	trace->compressed = source_is_compressed(source);
	trace->members = source_members(source, &cut);
	trace->size = source_size(source);
	trace->text = source_text(source);
	if (end == SOURCE_TRUNCATED || end == SOURCE_DAMAGED || end == SOURCE_TRAILING ||
	    end == SOURCE_UNUSABLE)
		finding_add(&trace->findings, kinds[end], 0, "%s", why);
	if (cut > 0)
		finding_add(&trace->findings, FINDING_MEMBER_CUT, 0, "%lu of %lu", cut,
			    trace->members);
	size_t len = strlen(trace->path);
	if (!trace->compressed && len > 3 && strcmp(trace->path + len - 3, ".gz") == 0)
		finding_add(&trace->findings, FINDING_NOT_COMPRESSED, 0, "%s", "");
}

/* Reads the lines. @return whether the file is a trace at all. */
static bool read_lines(struct frame *frame, struct source *source, struct progress *progress)
{
	struct trace *trace = frame->verify->trace;
	struct source_line raw;

	while (source_next(source, &raw)) {
		trace->lines = raw.number;
		if (raw.cut && source_end(source, NULL) != SOURCE_WHOLE)
			break; /* the file is cut, which is said once */
		take_line(frame, &raw);
		if (raw.cut)
			finding_add(&trace->findings, FINDING_NO_NEWLINE, raw.number, "%s", "");
		if (frame->good == 0 && frame->bad >= GIVE_UP)
			return false;
		if (raw.number % 4096 == 0)
			progress_at(progress, source_read(source));
	}
	return frame->good > 0;
}

void trace_check(struct trace *trace, const char *path, struct progress *progress)
{
	struct verify verify = {.trace = trace};
	struct frame frame = {.verify = &verify};
	char why[128];

	*trace = (struct trace){.path = path, .ns = 1000};
	tally_init(&trace->tally);
	struct source *source = source_open(path, why, sizeof(why));
	if (!source) {
		finding_add(&trace->findings, FINDING_UNREADABLE, 0, "%s", why);
		return;
	}
	bool is_trace = read_lines(&frame, source, progress);
	check_file(trace, source);
	verify_finish(&verify);
	if (is_trace)
		check_frame(&frame, source_end(source, NULL) == SOURCE_WHOLE);
	else if (!trace->findings.items[FINDING_UNREADABLE].count)
		finding_add(&trace->findings, FINDING_NO_LINES, 0, "%s", "");
	line_free(&frame.line);
	verify_free(&verify);
	source_close(source);
}

const char *trace_host(const struct trace *trace, uint64_t hash)
{
	for (size_t i = 0; i < trace->nhosts; i++) {
		if (trace->hosts[i].hash == hash)
			return trace->hosts[i].name;
	}
	return NULL;
}

void trace_free(struct trace *trace)
{
	free(trace->processes);
	free(trace->hosts);
	free(trace->births);
	trace->processes = NULL;
	trace->hosts = NULL;
	trace->births = NULL;
	trace->nprocesses = trace->nhosts = trace->nbirths = 0;
}
