#include "check/verify.h"

#include <stdlib.h>
#include <string.h>

static const char *const key_names[LINE_KEYS] = {
#define TOP(id, key) [KEY_##id] = (key),
#include "check/keys.def"
};

/* How a phase is written. */
static const struct {
	const char *letter;
	uint64_t number;
	enum line_kind kind;
} phases[] = {
	{"X", 1, LINE_EVENT},
	{"M", 4, LINE_METADATA},
	{"C", 2, LINE_COUNTER},
	{"A", 3, LINE_COUNTER},
};

enum line_kind line_kind(const struct line *line, enum trace_format *format)
{
	const struct field *ph = &line->top[KEY_PH];

	for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++) {
		bool letter = field_is(ph, phases[i].letter);
		if (!letter &&
		    (ph->kind != FIELD_NUMBER || ph->negative || ph->magnitude != phases[i].number))
			continue;
		if (format)
			*format = letter ? TRACE_V1 : TRACE_V2;
		return phases[i].kind;
	}
	return LINE_BAD;
}

int line_type(struct text category)
{
	static const struct {
		const char *category;
		int type;
	} types[] = {
		{"POSIX", 3}, {"STDIO", 3},  {"dftracer", 1}, {"SYSCALL", 0}, {"HDF5", 5},
		{"MPI", 10},  {"MPIIO", 10}, {"C_APP", 2},    {"CPP_APP", 9}, {"FUNC", 0},
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (text_is(category, types[i].category))
			return types[i].type;
	}
	return -1;
}

void verify_copy(char *to, size_t size, struct text text)
{
	size_t len = text.len < size - 1 ? text.len : size - 1;
	for (size_t i = 0; i < len; i++)
		to[i] = text.at[i] >= ' ' && text.at[i] <= '~' ? text.at[i] : '?';
	to[len] = '\0';
}

static struct process *add_process(struct verify *verify, uint64_t pid)
{
	struct trace *trace = verify->trace;
	struct process *grown =
		reallocarray(trace->processes, trace->nprocesses + 1, sizeof(*trace->processes));

	if (!grown) {
		verify->no_memory = true;
		return NULL;
	}
	trace->processes = grown;
	/* The map's values are numbers. */
	uintptr_t number = trace->nprocesses + 1;
	if (map_put(&verify->processes, pid, (void *)number) < 0) {
		verify->no_memory = true;
		return NULL;
	}
	struct process *process = &grown[trace->nprocesses++];
	*process = (struct process){.pid = pid, .rank = -1, .world = -1};
	verify->last_pid = pid;
	verify->last_process = number;
	return process;
}

struct process *verify_process(struct verify *verify, uint64_t pid)
{
	if (!verify->last_process || verify->last_pid != pid) {
		verify->last_process = (size_t)(uintptr_t)map_get(&verify->processes, pid);
		verify->last_pid = pid;
	}
	if (!verify->last_process)
		return add_process(verify, pid);
	return &verify->trace->processes[verify->last_process - 1];
}

void verify_reference(struct verify *verify, const struct line *line, enum line_arg arg,
		      unsigned kinds, uint64_t number)
{
	struct findings *findings = &verify->trace->findings;
	const struct field *field = line->arg[arg];
	uint64_t hash;

	if (!field)
		return;
	if (!field_hash(field, &hash)) {
		finding_add(findings, FINDING_HASH, number, "%.*s", (int)field->raw.len,
			    field->raw.at);
		return;
	}
	/* Older traces have 0 for a file that is not traced. */
	if (hash == 0 && field->kind == FIELD_NUMBER)
		return;
	if ((names_kinds(&verify->names, hash) & kinds) == 0)
		finding_add(findings,
			    kinds == NAME_HOST ? FINDING_HOST_UNKNOWN : FINDING_NAME_UNKNOWN,
			    number, "%.*s %.*s", (int)field->key.len, field->key.at,
			    (int)field->raw.len, field->raw.at);
}

/* A number that a line must have. @return whether it has it. */
static bool take_number(struct verify *verify, const struct line *line, enum line_key key,
			uint64_t number, uint64_t *value)
{
	struct findings *findings = &verify->trace->findings;
	const struct field *field = &line->top[key];

	*value = 0;
	if (field->kind == FIELD_ABSENT) {
		finding_add(findings, FINDING_KEY_MISSING, number, "%s", key_names[key]);
		return false;
	}
	if (!field_unsigned(field, value) || *value > UINT32_MAX) {
		finding_add(findings, FINDING_KEY_TYPE, number, "%s is %.*s", key_names[key],
			    (int)field->raw.len, field->raw.at);
		return false;
	}
	if (field->kind == FIELD_STRING)
		finding_add(findings, FINDING_QUOTED, number, "%s", key_names[key]);
	return true;
}

static bool take_string(struct verify *verify, const struct line *line, enum line_key key,
			uint64_t number, struct text *text)
{
	struct findings *findings = &verify->trace->findings;
	const struct field *field = &line->top[key];

	if (field->kind == FIELD_STRING) {
		*text = field->text;
		return true;
	}
	if (field->kind == FIELD_ABSENT)
		finding_add(findings, FINDING_KEY_MISSING, number, "%s", key_names[key]);
	else
		finding_add(findings, FINDING_KEY_TYPE, number, "%s is %.*s", key_names[key],
			    (int)field->raw.len, field->raw.at);
	return false;
}

/* Only v1 lines and events of v2 have an id. */
static void take_id(struct verify *verify, const struct line *line, struct place *place)
{
	struct trace *trace = verify->trace;
	const struct field *field = &line->top[KEY_ID];

	if (field->kind == FIELD_ABSENT) {
		if (place->kind == LINE_EVENT ||
		    (trace->format == TRACE_V1 && place->kind == LINE_METADATA))
			finding_add(&trace->findings,
				    place->kind == LINE_EVENT ? FINDING_KEY_MISSING
							      : FINDING_METADATA,
				    place->number, "no id");
		return;
	}
	if (!field_unsigned(field, &place->id) || place->id == 0) {
		finding_add(&trace->findings, FINDING_ID, place->number, "%.*s",
			    (int)field->raw.len, field->raw.at);
		return;
	}
	if (field->kind == FIELD_STRING)
		finding_add(&trace->findings, FINDING_QUOTED, place->number, "id");
	switch (ids_add(&verify->ids, place->id)) {
	case IDS_NEW:
		break;
	case IDS_TWICE:
		finding_add(&trace->findings, FINDING_ID_TWICE, place->number, "%llu",
			    (unsigned long long)place->id);
		break;
	case IDS_WILD:
		finding_add(&trace->findings, FINDING_ID_WILD, place->number, "%llu",
			    (unsigned long long)place->id);
		break;
	}
	if (place->id > trace->max_id)
		trace->max_id = place->id;
}

static void check_type(struct verify *verify, const struct line *line, const struct place *place)
{
	struct findings *findings = &verify->trace->findings;
	const struct field *field = &line->top[KEY_TYPE];
	uint64_t type;

	if (verify->trace->format == TRACE_V1 && field->kind == FIELD_ABSENT)
		return;
	if (!field_unsigned(field, &type)) {
		finding_add(findings, FINDING_TYPE, place->number,
			    field->kind == FIELD_ABSENT ? "it is missing" : "it is no number");
		return;
	}
	int known = line_type(place->category);
	if (known >= 0 && type != (uint64_t)known)
		finding_add(findings, FINDING_TYPE, place->number, "%llu for %.*s",
			    (unsigned long long)type, (int)place->category.len, place->category.at);
}

/* The form of the line, whatever it says. */
static void check_form(struct verify *verify, const struct line *line, uint64_t number)
{
	struct findings *findings = &verify->trace->findings;

	if (line->has_blanks)
		finding_add(findings, FINDING_BLANKS, number, "%s", "");
	if (line->out_of_order)
		finding_add(findings, FINDING_ORDER, number, "%s", "");
	if (line->has_stranger)
		finding_add(findings, FINDING_STRANGER, number, "%s", "");
	if (line->has_null)
		finding_add(findings, FINDING_NULL_VALUE, number, "%s", "");
	if (line->has_fraction)
		finding_add(findings, FINDING_FRACTION, number, "%s", "");
	if (line->top[KEY_ARGS].kind != FIELD_ABSENT &&
	    (line->top[KEY_ARGS].kind != FIELD_OTHER || line->top[KEY_ARGS].raw.len > 0))
		finding_add(findings, FINDING_KEY_TYPE, number, "args is no object");
}

static bool check_format(struct verify *verify, const struct line *line, struct place *place)
{
	struct trace *trace = verify->trace;
	enum trace_format format = TRACE_UNKNOWN;

	if (line->top[KEY_PH].kind == FIELD_ABSENT) {
		finding_add(&trace->findings, FINDING_KEY_MISSING, place->number, "ph");
		return false;
	}
	place->kind = line_kind(line, &format);
	if (place->kind == LINE_BAD) {
		finding_add(&trace->findings, FINDING_PHASE, place->number, "%.*s",
			    (int)line->top[KEY_PH].raw.len, line->top[KEY_PH].raw.at);
		return false;
	}
	if (trace->format == TRACE_UNKNOWN)
		trace->format = format;
	else if (trace->format != format)
		finding_add(&trace->findings, FINDING_MIXED, place->number, "ph %.*s",
			    (int)line->top[KEY_PH].raw.len, line->top[KEY_PH].raw.at);
	return true;
}

void verify_line(struct verify *verify, const struct line *line, uint64_t number)
{
	struct trace *trace = verify->trace;
	struct place place = {.number = number};

	check_form(verify, line, number);
	if (!check_format(verify, line, &place))
		return;
	take_id(verify, line, &place);
	bool whole = take_string(verify, line, KEY_NAME, number, &place.name);
	whole &= take_string(verify, line, KEY_CAT, number, &place.category);
	whole &= take_number(verify, line, KEY_PID, number, &place.pid);
	whole &= take_number(verify, line, KEY_TID, number, &place.tid);
	if (!whole)
		return;
	check_type(verify, line, &place);
	switch (place.kind) {
	case LINE_EVENT:
		verify_event(verify, line, &place);
		break;
	case LINE_METADATA:
		trace->tally.metadata++;
		verify_metadata(verify, line, &place);
		break;
	default:
		trace->tally.counters++;
		break;
	}
}

/* What a process should have had when its trace is over. */
static void finish_process(struct verify *verify, const struct process *process, bool only)
{
	struct trace *trace = verify->trace;
	struct findings *findings = &trace->findings;
	unsigned long long pid = process->pid;

	if (!process->started)
		finding_add(findings, only ? FINDING_NO_START : FINDING_OTHER_PROCESS, 0,
			    "pid %llu", pid);
	if (!process->ended && (only || process->started))
		finding_add(findings, FINDING_NO_END, 0, "pid %llu", pid);
	if (!process->named)
		finding_add(findings, FINDING_PROCESS_UNKNOWN, 0, "pid %llu", pid);
	if (process->repaired)
		finding_add(findings, FINDING_REPAIRED, 0, "pid %llu", pid);
}

void verify_finish(struct verify *verify)
{
	struct trace *trace = verify->trace;
	bool killed = false;

	for (size_t i = 0; i < trace->nprocesses; i++) {
		const struct process *process = &trace->processes[i];
		finish_process(verify, process, trace->nprocesses == 1);
		killed |= !process->ended || process->repaired;
	}
	nesting_finish(&verify->nesting, killed, &trace->findings);
	if (trace->nhosts == 0 && trace->lines > 0)
		finding_add(&trace->findings, FINDING_NO_HOST, 0, "%s", "");
	if (verify->no_memory)
		finding_add(&trace->findings, FINDING_UNREADABLE, 0, "out of memory");
	trace->findings.foreign = !trace->ours;
}

void verify_free(struct verify *verify)
{
	ids_free(&verify->ids);
	names_free(&verify->names);
	nesting_free(&verify->nesting);
	map_free(&verify->processes);
}
