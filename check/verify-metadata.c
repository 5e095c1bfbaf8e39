/* Lines of names and properties: HH, FH, SH, process_name, thread_name, PR, rank, CM. */
#include "check/verify.h"

#include <stdlib.h>
#include <string.h>

static void add_host(struct verify *verify, uint64_t hash, struct text name)
{
	struct trace *trace = verify->trace;

	for (size_t i = 0; i < trace->nhosts; i++) {
		if (trace->hosts[i].hash == hash)
			return;
	}
	struct host *grown = reallocarray(trace->hosts, trace->nhosts + 1, sizeof(*grown));
	if (!grown) {
		verify->no_memory = true;
		return;
	}
	trace->hosts = grown;
	grown[trace->nhosts].hash = hash;
	verify_copy(grown[trace->nhosts++].name, sizeof(grown->name), name);
}

static bool contains(struct text text, const char *what)
{
	return memmem(text.at, text.len, what, strlen(what)) != NULL;
}

/* Whether the name may differ from what was hashed: bytes that are no UTF-8 are replaced by us, other
 * characters become blanks in upstream's traces. */
static bool is_replaced(const struct trace *trace, struct text name)
{
	return contains(name, "\xef\xbf\xbd") || (!trace->ours && contains(name, " "));
}

static void take_hashed(struct verify *verify, const struct line *line, const struct place *place,
			enum name_kind kind)
{
	struct trace *trace = verify->trace;
	const struct field *name = line->arg[ARG_NAME];
	const struct field *value = line->arg[ARG_VALUE];
	enum name_form form = NAME_HEX;
	uint64_t hash;

	if (!name || name->kind != FIELD_STRING || !value) {
		finding_add(&trace->findings, FINDING_METADATA, place->number,
			    "it has no name or no value");
		return;
	}
	if (!field_hash(value, &hash)) {
		finding_add(&trace->findings, FINDING_HASH, place->number, "%.*s",
			    (int)value->raw.len, value->raw.at);
		return;
	}
	if (!name_form_of(name->text, value, &form) && !is_replaced(trace, name->text))
		finding_add(&trace->findings, FINDING_HASH_WRONG, place->number, "%.*s of %.*s",
			    (int)value->raw.len, value->raw.at, (int)name->raw.len, name->raw.at);
	trace->form = form;
	trace->any_hash = true;
	if (names_add(&verify->names, hash, kind) < 0)
		verify->no_memory = true;
	if (kind == NAME_HOST)
		add_host(verify, hash, name->text);
}

/* Whether the value repeats the line's name, as thread_name does. */
static void check_repeats(struct verify *verify, const struct line *line, const struct place *place,
			  const char *kind)
{
	const struct field *name = line->arg[ARG_NAME];

	if (!name || name->kind != FIELD_STRING || name->text.len == 0 ||
	    !field_is(line->arg[ARG_VALUE], kind))
		finding_add(&verify->trace->findings, FINDING_METADATA, place->number, "%s", kind);
}

static void take_process_name(struct verify *verify, const struct line *line,
			      const struct place *place, struct process *process)
{
	check_repeats(verify, line, place, "process_name");
	process->named = true;
	/* Upstream begins with the thread's name, and names processes when it knows the rank. */
	if (!verify->thread_named && !process->started)
		verify->trace->ours = true;
	if (line->arg[ARG_NAME] && line->arg[ARG_NAME]->kind == FIELD_STRING)
		verify_copy(process->name, sizeof(process->name), line->arg[ARG_NAME]->text);
}

static void take_lost(struct verify *verify, struct text name, const struct field *value,
		      const struct place *place)
{
	struct trace *trace = verify->trace;
	int64_t count;

	if (!field_integer(value, &count) || count < 0) {
		finding_add(&trace->findings, FINDING_METADATA, place->number, "%.*s is no count",
			    (int)name.len, name.at);
		return;
	}
	tally_add_count(&trace->tally, name, (uint64_t)count);
	if (name.at[0] == 'l' && count > 0)
		finding_add(&trace->findings, FINDING_LOST, place->number, "%.*s %lld",
			    (int)name.len, name.at, (long long)count);
}

static void take_property(struct verify *verify, const struct line *line, const struct place *place,
			  struct process *process)
{
	const struct field *name = line->arg[ARG_NAME];
	const struct field *value = line->arg[ARG_VALUE];
	int64_t number;

	if (!name || name->kind != FIELD_STRING || !value) {
		finding_add(&verify->trace->findings, FINDING_METADATA, place->number,
			    "it has no name or no value");
		return;
	}
	if (text_is(name->text, "rank") || text_is(name->text, "world_size")) {
		int64_t *to = text_is(name->text, "rank") ? &process->rank : &process->world;
		if (field_integer(value, &number) && number >= 0)
			*to = number;
		else
			finding_add(&verify->trace->findings, FINDING_METADATA, place->number,
				    "%.*s is %.*s", (int)name->text.len, name->text.at,
				    (int)value->raw.len, value->raw.at);
	} else if (text_is(name->text, "jobid") && value->kind == FIELD_STRING) {
		verify_copy(process->job, sizeof(process->job), value->text);
	} else if (text_is(name->text, "tracer") && value->kind == FIELD_STRING &&
		   value->text.len >= 7 && memcmp(value->text.at, "dftrace", 7) == 0 &&
		   (value->text.len == 7 || value->text.at[7] == ' ')) {
		verify->trace->ours = true;
	} else if (text_is(name->text, "repaired")) {
		process->repaired = true;
	} else if (name->text.len > 5 && (memcmp(name->text.at, "lost:", 5) == 0 ||
					  memcmp(name->text.at, "skipp", 5) == 0)) {
		take_lost(verify, name->text, value, place);
	}
}

static void take_time_metric(struct verify *verify, const struct line *line)
{
	static const struct {
		const char *metric;
		uint64_t ns;
	} metrics[] = {{"NS", 1}, {"US", 1000}, {"MS", 1000000}, {"SEC", 1000000000}};

	if (!field_is(line->arg[ARG_NAME], "time_metric"))
		return;
	for (size_t i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++) {
		if (field_is(line->arg[ARG_VALUE], metrics[i].metric))
			verify->trace->ns = metrics[i].ns;
	}
}

/* The process that the line is about. Behind the end of an image, a host or a name begins the next one. */
static struct process *process_of(struct verify *verify, const struct place *place)
{
	struct process *process = verify_process(verify, place->pid);

	bool begins = text_is(place->name, "HH") || text_is(place->name, "process_name") ||
		      text_is(place->name, "thread_name");
	if (process && process->ended && begins) {
		map_remove(&verify->processes, place->pid);
		verify->last_process = 0;
		process = verify_process(verify, place->pid);
	}
	return process;
}

void verify_metadata(struct verify *verify, const struct line *line, const struct place *place)
{
	struct text kind = place->name;

	if (line->top[KEY_ARGS].kind == FIELD_ABSENT) {
		finding_add(&verify->trace->findings, FINDING_METADATA, place->number, "no args");
		return;
	}
	if (text_is(kind, "HH"))
		take_hashed(verify, line, place, NAME_HOST);
	else if (text_is(kind, "FH"))
		take_hashed(verify, line, place, NAME_FILE);
	else if (text_is(kind, "SH"))
		take_hashed(verify, line, place, NAME_TEXT);
	verify_reference(verify, line, ARG_HHASH, NAME_HOST, place->number);
	struct process *process = process_of(verify, place);
	if (!process)
		return;
	if (!process->host)
		field_hash(line->arg[ARG_HHASH], &process->host);
	if (text_is(kind, "process_name")) {
		take_process_name(verify, line, place, process);
	} else if (text_is(kind, "thread_name")) {
		check_repeats(verify, line, place, "thread_name");
		verify->thread_named = true;
		if (nesting_name(&verify->nesting, place->pid, place->tid) < 0)
			verify->no_memory = true;
	} else if (text_is(kind, "PR") || text_is(kind, "rank")) {
		take_property(verify, line, place, process);
	} else if (text_is(kind, "CM")) {
		take_time_metric(verify, line);
	} else if (!text_is(kind, "HH") && !text_is(kind, "FH") && !text_is(kind, "SH")) {
		finding_add(&verify->trace->findings, FINDING_METADATA, place->number,
			    "unknown name %.*s", (int)kind.len, kind.at);
	}
}
