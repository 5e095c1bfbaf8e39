/* Events: their times, results, sizes and references; the start and the end of a process. */
#include "check/verify.h"
#include "writer/bytes.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static const uint64_t ns_per_second = 1000000000;
static const uint64_t year_2000 = 946684800;
static const uint64_t year_2200 = 7258118400;

/* Sizes beyond this are no bytes of a call: 4 EiB. */
static const int64_t huge = (int64_t)1 << 62;

static uint64_t in_ns(const struct trace *trace, uint64_t time)
{
	uint64_t ns;
	return __builtin_mul_overflow(time, trace->ns, &ns) ? UINT64_MAX : ns;
}

/* @return whether the event has times to go on with. */
static bool take_times(struct verify *verify, const struct line *line, const struct place *place,
		       uint64_t *start, uint64_t *end)
{
	struct findings *findings = &verify->trace->findings;
	const struct field *ts = &line->top[KEY_TS];
	const struct field *dur = &line->top[KEY_DUR];
	int64_t from;
	int64_t for_long;

	if (ts->kind == FIELD_ABSENT || dur->kind == FIELD_ABSENT) {
		finding_add(findings, FINDING_KEY_MISSING, place->number, "%s",
			    ts->kind == FIELD_ABSENT ? "ts" : "dur");
		return false;
	}
	if (!field_integer(ts, &from) || !field_integer(dur, &for_long)) {
		finding_add(findings, FINDING_KEY_TYPE, place->number, "ts or dur is no integer");
		return false;
	}
	if (ts->kind == FIELD_STRING || dur->kind == FIELD_STRING)
		finding_add(findings, FINDING_QUOTED, place->number, "ts or dur");
	if (from <= 0 || for_long < 0) {
		finding_add(findings, FINDING_TIME, place->number, "ts %lld, dur %lld",
			    (long long)from, (long long)for_long);
		return false;
	}
	*start = (uint64_t)from;
	*end = (uint64_t)from + (uint64_t)for_long;
	uint64_t begin_s = in_ns(verify->trace, *start) / ns_per_second;
	uint64_t end_s = in_ns(verify->trace, *end) / ns_per_second;
	if (begin_s < year_2000 || end_s > year_2200)
		finding_add(findings, FINDING_TIME_ODD, place->number, "ts %lld, dur %lld",
			    (long long)from, (long long)for_long);
	return true;
}

static void check_result(struct verify *verify, const struct line *line, const struct place *place,
			 bool known, int64_t ret)
{
	struct findings *findings = &verify->trace->findings;
	const struct field *number = line->arg[ARG_ERRNO];
	int64_t error;

	if (line->arg[ARG_RET] && !known && line->arg[ARG_RET]->kind != FIELD_STRING)
		finding_add(findings, FINDING_KEY_TYPE, place->number, "ret is %.*s",
			    (int)line->arg[ARG_RET]->raw.len, line->arg[ARG_RET]->raw.at);
	if (number) {
		if (!field_integer(number, &error) || error <= 0 || !known || ret != -1)
			finding_add(findings, FINDING_RESULT, place->number, "errno %.*s, ret %lld",
				    (int)number->raw.len, number->raw.at,
				    known ? (long long)ret : 0LL);
	} else if (known && ret == -1 && text_is(place->category, "POSIX")) {
		finding_add(findings, FINDING_RESULT, place->number, "ret -1 without errno");
	}
	if (line->arg[ARG_CUT] && line->arg[ARG_RET])
		finding_add(findings, FINDING_RESULT, place->number, "cut with a ret");
}

/* @return how many bytes the call moved. */
static uint64_t moved(struct verify *verify, const struct line *line, const struct place *place,
		      const struct bytes_row *row, int64_t ret)
{
	struct findings *findings = &verify->trace->findings;
	int64_t bytes = row->ret == BYTES_NOTHING ? 0 : ret;
	int64_t count;
	int64_t size;

	if (row->ret != BYTES_NOTHING && ret < -1) {
		finding_add(findings, FINDING_SIZE_ODD, place->number, "ret %lld", (long long)ret);
		return 0;
	}
	if ((row->ret == BYTES_COUNTED || row->ret == BYTES_ITEMS) && ret > 0 &&
	    field_integer(line->arg[ARG_COUNT], &count) && count >= 0 && ret > count)
		finding_add(findings, FINDING_SIZE, place->number, "ret %lld of %lld",
			    (long long)ret, (long long)count);
	if (row->ret == BYTES_ITEMS && field_integer(line->arg[ARG_SIZE], &size) && ret > 0 &&
	    __builtin_mul_overflow(ret, size, &bytes))
		bytes = huge;
	if (field_integer(line->arg[ARG_SIZE_SUM], &size))
		bytes = size;
	if (bytes >= huge || bytes < -1) {
		finding_add(findings, FINDING_SIZE_ODD, place->number, "%lld bytes",
			    (long long)bytes);
		return 0;
	}
	return bytes > 0 ? (uint64_t)bytes : 0;
}

static void count_event(struct verify *verify, const struct line *line, const struct place *place)
{
	struct tally_category *category = tally_category(&verify->trace->tally, place->category);
	int64_t ret = 0;
	bool known = field_integer(line->arg[ARG_RET], &ret);

	verify->trace->tally.events++;
	category->events++;
	check_result(verify, line, place, known, ret);
	if (known && ret == -1)
		category->errors++;
	if ((!known || ret == 0) && !line->arg[ARG_SIZE_SUM])
		return;
	const struct bytes_row *row = bytes_row(place->name.at, place->name.len);
	if (!row)
		return;
	uint64_t bytes = moved(verify, line, place, row, ret);
	if (row->direction & BYTES_READ)
		category->read += bytes;
	if (row->direction & BYTES_WRITTEN)
		category->written += bytes;
}

static void check_nesting(struct verify *verify, const struct line *line, const struct place *place,
			  uint64_t start, uint64_t end)
{
	struct nesting_call call = {
		.line = place->number,
		.id = place->id,
		.pid = place->pid,
		.tid = place->tid,
		.start = start,
		.end = end,
		.beside = line->arg[ARG_AIO] != NULL,
	};

	/* v2 lines have neither. */
	if (!field_integer(line->arg[ARG_P_IDX], &call.parent) ||
	    !field_integer(line->arg[ARG_LEVEL], &call.level))
		return;
	if (nesting_call(&verify->nesting, &call, &verify->trace->findings) < 0)
		verify->no_memory = true;
}

static void check_references(struct verify *verify, const struct line *line,
			     const struct place *place)
{
	static const enum line_arg files[] = {ARG_FHASH, ARG_OUT_FHASH, ARG_NEWPATH_HASH,
					      ARG_PATHNAME_HASH};

	if (verify->trace->has_metadata && !line->arg[ARG_HHASH])
		finding_add(&verify->trace->findings, FINDING_HOST_UNKNOWN, place->number,
			    "no hhash");
	verify_reference(verify, line, ARG_HHASH, NAME_HOST, place->number);
	/* In upstream's traces a path that is a command line as well is named once. */
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		verify_reference(verify, line, files[i], NAME_FILE | NAME_TEXT, place->number);
}

/* The start line's date is the host's local time: it may differ by its zone. */
static void check_date(struct verify *verify, const struct line *line, const struct place *place,
		       uint64_t start)
{
	const struct field *date = line->arg[ARG_DATE];
	struct tm tm = {0};
	char text[32];

	if (!date || date->kind != FIELD_STRING || date->text.len >= sizeof(text))
		return;
	memcpy(text, date->text.at, date->text.len);
	text[date->text.len] = '\0';
	int64_t said = strptime(text, "%a %b %e %H:%M:%S %Y", &tm) ? (int64_t)timegm(&tm) : -1;
	int64_t apart = said - (int64_t)(start / ns_per_second);
	if (said < 0 || apart < -26 * 3600 || apart > 26 * 3600)
		finding_add(&verify->trace->findings, FINDING_DATE, place->number, "%s", text);
}

static void take_start(struct verify *verify, const struct line *line, const struct place *place,
		       struct process *process, uint64_t start)
{
	struct findings *findings = &verify->trace->findings;

	if (process->started)
		finding_add(findings, FINDING_START_TWICE, place->number, "pid %llu",
			    (unsigned long long)place->pid);
	if (process->events > 0)
		finding_add(findings, FINDING_BEFORE_START, place->number, "pid %llu",
			    (unsigned long long)place->pid);
	process->started = true;
	process->start = start;
	field_unsigned(line->arg[ARG_PPID], &process->ppid);
	check_date(verify, line, place, start);
	verify_reference(verify, line, ARG_CMD_HASH, NAME_TEXT | NAME_FILE, place->number);
	verify_reference(verify, line, ARG_EXEC_HASH, NAME_TEXT | NAME_FILE, place->number);
	verify_reference(verify, line, ARG_CWD, NAME_TEXT | NAME_FILE, place->number);
}

static void take_end(struct verify *verify, const struct line *line, const struct place *place,
		     struct process *process, uint64_t end)
{
	struct findings *findings = &verify->trace->findings;
	uint64_t count;

	if (process->ended)
		finding_add(findings, FINDING_AFTER_END, place->number, "a second end line");
	process->ended = true;
	process->repaired |= line->arg[ARG_REPAIRED] != NULL;
	if (end < process->last)
		finding_add(findings, FINDING_AFTER_OWN_END, place->number, "by %llu ns",
			    (unsigned long long)(process->last - end));
	if (field_unsigned(line->arg[ARG_NUM_EVENTS], &count) && count != process->events)
		finding_add(findings, FINDING_NUM_EVENTS, place->number, "%llu of %llu",
			    (unsigned long long)count, (unsigned long long)process->events);
	verify_reference(verify, line, ARG_EXEC, NAME_FILE | NAME_TEXT, place->number);
}

void verify_bound(struct verify *verify, const struct line *line, const struct place *place,
		  uint64_t ts)
{
	struct process *process = verify_process(verify, place->pid);
	uint64_t time = in_ns(verify->trace, ts);

	if (!process)
		return;
	verify_reference(verify, line, ARG_HHASH, NAME_HOST, place->number);
	if (text_is(place->name, "start"))
		take_start(verify, line, place, process, time);
	else
		take_end(verify, line, place, process, time);
	if (!process->host)
		field_hash(line->arg[ARG_HHASH], &process->host);
}

static void count_in_process(struct verify *verify, const struct place *place, uint64_t start,
			     uint64_t end)
{
	struct findings *findings = &verify->trace->findings;
	struct process *process = verify_process(verify, place->pid);

	if (!process)
		return;
	if (process->ended)
		finding_add(findings, FINDING_AFTER_END, place->number, "%.*s",
			    (int)place->name.len, place->name.at);
	process->events++;
	start = in_ns(verify->trace, start);
	end = in_ns(verify->trace, end);
	if (process->started && start < process->start)
		finding_add(findings, FINDING_BEFORE_OWN_START, place->number, "by %llu ns",
			    (unsigned long long)(process->start - start));
	if (end > process->last)
		process->last = end;
}

static void keep_birth(struct verify *verify, const struct line *line, const struct place *place,
		       uint64_t start)
{
	struct trace *trace = verify->trace;
	uint64_t child;

	if (!field_unsigned(line->arg[ARG_CHILD], &child) || trace->nbirths == TRACE_BIRTHS)
		return;
	struct birth *grown = reallocarray(trace->births, trace->nbirths + 1, sizeof(*grown));
	if (!grown) {
		verify->no_memory = true;
		return;
	}
	trace->births = grown;
	grown[trace->nbirths++] = (struct birth){place->pid, child, in_ns(trace, start)};
}

void verify_event(struct verify *verify, const struct line *line, const struct place *place)
{
	struct trace *trace = verify->trace;
	uint64_t start;
	uint64_t end;

	bool bound = text_is(place->category, "dftracer") &&
		     (text_is(place->name, "start") || text_is(place->name, "end"));
	trace->has_metadata |= line->top[KEY_ARGS].kind != FIELD_ABSENT;
	if (!take_times(verify, line, place, &start, &end))
		return;
	uint64_t first = in_ns(trace, start);
	uint64_t last = in_ns(trace, end);
	if (first < trace->tally.first)
		trace->tally.first = first;
	if (last > trace->tally.end)
		trace->tally.end = last;
	trace->tid = place->tid;
	if (bound) {
		verify_bound(verify, line, place, start);
		return;
	}
	count_in_process(verify, place, start, end);
	count_event(verify, line, place);
	check_references(verify, line, place);
	check_nesting(verify, line, place, start, end);
	if (line->arg[ARG_CHILD])
		keep_birth(verify, line, place, start);
	if (!nesting_is_named(&verify->nesting, place->pid, place->tid))
		finding_add(&trace->findings, FINDING_THREAD_UNKNOWN, place->number, "tid %llu",
			    (unsigned long long)place->tid);
}
