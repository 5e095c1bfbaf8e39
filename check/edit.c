#include "check/edit.h"

#include <string.h>

#include <sys/stat.h>

static const uint64_t second = 1000000000;

/* Strings in the args of events that say nothing of who and where. */
static const char *const harmless[] = {"mode", "version", "date"};

/* Properties whose values say nothing of it. */
static const char *const open_properties[] = {
	"rank",   "world_size", "local_rank", "core_affinity",
	"tracer", "launcher",   "repaired",   "time_metric",
};

static bool is_one_of(struct text text, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (text_is(text, list[i]))
			return true;
	}
	return false;
}

static void add_key(struct buf *out, const char *key)
{
	buf_add_str(out, ",\"");
	buf_add_str(out, key);
	buf_add_str(out, "\":");
}

static void add_raw(struct buf *out, const char *key, const struct field *field)
{
	if (field->kind == FIELD_ABSENT)
		return;
	add_key(out, key);
	buf_add(out, field->raw.at, field->raw.len);
}

/* A number, plain also where it stood in quotes. */
static void add_number(struct buf *out, const char *key, const struct field *field, uint64_t shift)
{
	int64_t value;

	if (!field_integer(field, &value)) {
		add_raw(out, key, field);
		return;
	}
	add_key(out, key);
	buf_add_i64(out, value > 0 ? value + (int64_t)shift : value);
}

static void add_id(struct edit *edit, const struct line *line, struct buf *out)
{
	uint64_t id = 0;

	if (edit->next_id)
		id = edit->next_id++;
	else if (field_unsigned(&line->top[KEY_ID], &id))
		id += edit->id_shift;
	else
		return;
	buf_add_str(out, "\"id\":");
	buf_add_u64(out, id);
	buf_add_char(out, ',');
	if (id > edit->max_id)
		edit->max_id = id;
}

static void add_phase(const struct edit *edit, const struct line *line, enum line_kind kind,
		      struct buf *out)
{
	static const char *const letters[] = {"\"X\"", "\"C\"", "\"M\""};
	static const char *const numbers[] = {"1", "2", "4"};
	const struct field *ph = &line->top[KEY_PH];

	add_key(out, "ph");
	if (edit->from == edit->to)
		buf_add(out, ph->raw.at, ph->raw.len);
	else if (kind == LINE_COUNTER && edit->to == TRACE_V2)
		buf_add_str(out, field_is(ph, "A") ? "3" : "2");
	else
		buf_add_str(out, edit->to == TRACE_V2 ? numbers[kind] : letters[kind]);
}

static bool is_reference(struct text key)
{
	return (key.len >= 4 && memcmp(key.at + key.len - 4, "hash", 4) == 0) ||
	       text_is(key, "cwd") || text_is(key, "exec");
}

static enum name_kind name_kind(struct text name)
{
	if (text_is(name, "HH"))
		return NAME_HOST;
	if (text_is(name, "FH"))
		return NAME_FILE;
	return text_is(name, "SH") ? NAME_TEXT : (enum name_kind)0;
}

static bool is_property_open(struct text name)
{
	return is_one_of(name, open_properties,
			 sizeof(open_properties) / sizeof(open_properties[0])) ||
	       (name.len > 5 && memcmp(name.at, "lost:", 5) == 0) ||
	       (name.len > 8 && memcmp(name.at, "skipped:", 8) == 0);
}

static bool is_digits(struct text text)
{
	for (size_t i = 0; i < text.len; i++) {
		if (text.at[i] < '0' || text.at[i] > '9')
			return false;
	}
	return text.len > 0;
}

/* "Rank 3 program" keeps what stands in front of the program. @return its length. */
static size_t rank_prefix(struct text text)
{
	size_t at = 5;

	if (text.len < 6 || memcmp(text.at, "Rank ", 5) != 0)
		return 0;
	while (at < text.len && text.at[at] >= '0' && text.at[at] <= '9')
		at++;
	return at < text.len && text.at[at] == ' ' ? at + 1 : at;
}

/* The name that a metadata line gives, in other words. */
static void add_other_name(const struct edit *edit, struct text kind, struct text name,
			   struct buf *out)
{
	size_t kept = text_is(kind, "process_name") ? rank_prefix(name) : 0;

	if (name_kind(kind)) {
		anonymous_name(edit->anonymous, out, name, name_kind(kind));
	} else if (text_is(kind, "process_name") || text_is(kind, "thread_name")) {
		buf_add(out, name.at, kept);
		name = (struct text){name.at + kept, name.len - kept};
		if (is_digits(name))
			buf_add(out, name.at, name.len);
		else if (name.len > 0)
			anonymous_word(edit->anonymous, out, "name-", name);
	} else {
		anonymous_word(edit->anonymous, out, "key-", name);
	}
}

/* An arg of a metadata line. @return whether it was written. */
static bool add_other_metadata(const struct edit *edit, struct text kind, const struct line *line,
			       const struct field *field, struct buf *out)
{
	const struct field *name = line->arg[ARG_NAME];
	bool is_name = text_is(field->key, "name");
	bool is_value = text_is(field->key, "value");

	if (is_value && name_kind(kind)) {
		anonymous_hash(edit->anonymous, out, field);
		return true;
	}
	if (field->kind != FIELD_STRING || (!is_name && !is_value))
		return false;
	bool property = text_is(kind, "PR") || text_is(kind, "rank") || text_is(kind, "CM");
	if (property ? name && name->kind == FIELD_STRING && is_property_open(name->text)
		     : is_value)
		return false;
	buf_add_char(out, '"');
	if (is_name && !text_is(kind, "PR"))
		add_other_name(edit, kind, field->text, out);
	else if (is_name)
		buf_add(out, field->raw.at + 1, field->raw.len - 2);
	else
		anonymous_word(edit->anonymous, out, "value-", field->text);
	buf_add_char(out, '"');
	return true;
}

/* The value of an arg, without names. */
static void add_anonymous(const struct edit *edit, const struct line *line, enum line_kind kind,
			  const struct field *field, struct buf *out)
{
	if (is_reference(field->key) && field->kind != FIELD_OTHER) {
		anonymous_hash(edit->anonymous, out, field);
		return;
	}
	if (kind == LINE_METADATA &&
	    add_other_metadata(edit, line->top[KEY_NAME].text, line, field, out))
		return;
	if (kind == LINE_METADATA || field->kind != FIELD_STRING ||
	    is_one_of(field->key, harmless, sizeof(harmless) / sizeof(harmless[0]))) {
		buf_add(out, field->raw.at, field->raw.len);
		return;
	}
	buf_add_char(out, '"');
	anonymous_word(edit->anonymous, out, "text-", field->text);
	buf_add_char(out, '"');
}

/* @return what is added to the value of an arg. */
static uint64_t shift_of(const struct edit *edit, const struct line *line,
			 const struct field *field)
{
	if (field == line->arg[ARG_P_IDX])
		return edit->id_shift;
	if (field == line->arg[ARG_PPID] || field == line->arg[ARG_CHILD] ||
	    field == line->arg[ARG_PID])
		return edit->pid_shift;
	return 0;
}

static bool is_left_out(const struct edit *edit, const struct line *line, const struct field *field)
{
	/* Nested objects hold settings, with paths. */
	if (edit->anonymous && field->kind == FIELD_OTHER)
		return true;
	/* A key that would have to be escaped is none that anybody writes. */
	for (size_t i = 0; i < field->key.len; i++) {
		unsigned char c = (unsigned char)field->key.at[i];
		if (c < ' ' || c == '"' || c == '\\')
			return true;
	}
	return edit->from != edit->to &&
	       (field == line->arg[ARG_P_IDX] || field == line->arg[ARG_LEVEL]);
}

static void add_args(const struct edit *edit, const struct line *line, enum line_kind kind,
		     struct buf *out)
{
	const char *before = ",\"args\":{";

	if (line->top[KEY_ARGS].kind == FIELD_ABSENT)
		return;
	for (unsigned i = 0; i < line->nargs; i++) {
		const struct field *field = &line->args[i];
		uint64_t shift = shift_of(edit, line, field);
		int64_t value;
		if (is_left_out(edit, line, field))
			continue;
		buf_add_str(out, before);
		before = ",";
		buf_add_char(out, '"');
		buf_add(out, field->key.at, field->key.len);
		buf_add_str(out, "\":");
		if (shift && field_integer(field, &value) && value > 0)
			buf_add_i64(out, value + (int64_t)shift);
		else if (edit->anonymous)
			add_anonymous(edit, line, kind, field, out);
		else
			buf_add(out, field->raw.at, field->raw.len);
	}
	buf_add_str(out, before[1] ? ",\"args\":{}" : "}");
}

/* A name that stands in the joined file already. */
static bool is_written(struct edit *edit, const struct line *line)
{
	enum name_kind kind = name_kind(line->top[KEY_NAME].text);
	uint64_t hash;

	if (!edit->written || !kind || !field_hash(line->arg[ARG_VALUE], &hash))
		return false;
	if (names_kinds(edit->written, hash) & kind)
		return true;
	if (names_add(edit->written, hash, kind) < 0)
		edit->no_memory = true;
	return false;
}

static bool is_metric(const struct line *line)
{
	return field_is(&line->top[KEY_NAME], "CM") && field_is(line->arg[ARG_NAME], "time_metric");
}

/* v2 names the unit of its times, behind the name of the first thread. */
static void add_metric(struct edit *edit, const struct line *line, struct buf *out)
{
	edit->metric = true;
	buf_add_str(out, "\n{\"name\":\"CM\",\"cat\":\"dftracer\",\"type\":1");
	add_number(out, "pid", &line->top[KEY_PID], edit->pid_shift);
	add_number(out, "tid", &line->top[KEY_TID], edit->pid_shift);
	buf_add_str(out, ",\"ph\":4,\"args\":{");
	if (line->arg[ARG_HHASH]) {
		buf_add_str(out, "\"hhash\":");
		if (edit->anonymous)
			anonymous_hash(edit->anonymous, out, line->arg[ARG_HHASH]);
		else
			buf_add(out, line->arg[ARG_HHASH]->raw.at, line->arg[ARG_HHASH]->raw.len);
		buf_add_char(out, ',');
	}
	buf_add_str(out, "\"name\":\"time_metric\",\"value\":\"US\"}}");
}

void edit_line(struct edit *edit, const struct line *line, struct buf *out)
{
	enum line_kind kind = line_kind(line, NULL);
	bool other = edit->from != edit->to;

	if (kind == LINE_BAD ||
	    (kind == LINE_METADATA &&
	     (is_written(edit, line) || (other && edit->to == TRACE_V1 && is_metric(line)))))
		return;
	if (edit->anonymous && kind == LINE_METADATA && name_kind(line->top[KEY_NAME].text))
		anonymous_learn(edit->anonymous, line->arg[ARG_NAME], line->arg[ARG_VALUE],
				name_kind(line->top[KEY_NAME].text));
	buf_add_char(out, '{');
	if (edit->to == TRACE_V1 || kind == LINE_EVENT)
		add_id(edit, line, out);
	buf_add_str(out, "\"name\":");
	buf_add(out, line->top[KEY_NAME].raw.at, line->top[KEY_NAME].raw.len);
	add_raw(out, "cat", &line->top[KEY_CAT]);
	int type = line_type(line->top[KEY_CAT].text);
	if (edit->to == TRACE_V2 && line->top[KEY_TYPE].kind == FIELD_ABSENT)
		buf_addf(out, ",\"type\":%d", type > 0 ? type : 0);
	else if (edit->to == TRACE_V2)
		add_raw(out, "type", &line->top[KEY_TYPE]);
	add_number(out, "pid", &line->top[KEY_PID], edit->pid_shift);
	add_number(out, "tid", &line->top[KEY_TID], edit->pid_shift);
	add_number(out, "ts", &line->top[KEY_TS], 0);
	add_number(out, "dur", &line->top[KEY_DUR], 0);
	add_phase(edit, line, kind, out);
	add_args(edit, line, kind, out);
	buf_add_char(out, '}');
	if (other && edit->to == TRACE_V2 && !edit->metric &&
	    field_is(&line->top[KEY_NAME], "thread_name"))
		add_metric(edit, line, out);
}

static void add_head(struct edit *edit, const struct process *process, const char *name,
		     uint64_t tid, struct buf *out)
{
	buf_add_char(out, '{');
	if (edit->to == TRACE_V1 || strcmp(name, "end") == 0)
		buf_addf(out, "\"id\":%llu,", (unsigned long long)++edit->max_id);
	buf_addf(out, "\"name\":\"%s\",\"cat\":\"dftracer\"", name);
	if (edit->to == TRACE_V2)
		buf_add_str(out, ",\"type\":1");
	add_key(out, "pid");
	buf_add_u64(out, process->pid + edit->pid_shift);
	add_key(out, "tid");
	buf_add_u64(out, tid + edit->pid_shift);
}

static void add_host(const struct edit *edit, const struct trace *trace,
		     const struct process *process, struct buf *out)
{
	struct field host = {.kind = FIELD_NUMBER, .magnitude = process->host};
	struct buf digits = {0};

	if (!process->host)
		return;
	buf_add_str(out, "\"hhash\":");
	name_add_hash(&digits, trace->form, process->host);
	if (trace->form == NAME_HEX) {
		host.kind = FIELD_STRING;
		host.text = (struct text){digits.data + 1, digits.len - 2};
	}
	if (edit->anonymous)
		anonymous_hash(edit->anonymous, out, &host);
	else
		buf_add(out, digits.data, digits.len);
	buf_add_char(out, ',');
	buf_free(&digits);
}

/* When the file was last written, in ns since the epoch. */
static uint64_t written_at(const char *path)
{
	struct stat status;

	if (stat(path, &status) < 0 || status.st_mtim.tv_sec < 1)
		return second;
	return (uint64_t)status.st_mtim.tv_sec * second + (uint64_t)status.st_mtim.tv_nsec;
}

void edit_end(struct edit *edit, const struct trace *trace, const struct process *process,
	      struct buf *out)
{
	uint64_t tid = trace->nprocesses == 1 && trace->tid ? trace->tid : process->pid;
	uint64_t last = process->last > process->start ? process->last : process->start;

	/* Nothing that has a time was left of it. */
	if (last < trace->ns)
		last = written_at(trace->path);
	/* Without metadata an event has no args, so a line of its own says it. */
	if (!trace->has_metadata) {
		add_head(edit, process, "PR", tid, out);
		buf_addf(out, ",\"ph\":%s,\"args\":{", edit->to == TRACE_V2 ? "4" : "\"M\"");
		add_host(edit, trace, process, out);
		buf_add_str(out, "\"name\":\"repaired\",\"value\":\"1\"}}\n");
	}
	add_head(edit, process, "end", tid, out);
	buf_addf(out, ",\"ts\":%llu,\"dur\":0,\"ph\":%s", (unsigned long long)(last / trace->ns),
		 edit->to == TRACE_V2 ? "1" : "\"X\"");
	if (trace->has_metadata) {
		buf_add_str(out, ",\"args\":{");
		add_host(edit, trace, process, out);
		buf_addf(out, "\"num_events\":%llu,\"repaired\":1}",
			 (unsigned long long)process->events);
	}
	buf_add_char(out, '}');
}
