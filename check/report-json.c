/* The report as JSON. Names are those of the text where they are numbers' names. */
#include "check/report.h"
#include "version.h"

#include <string.h>

static void set_number(json_t *object, const char *key, uint64_t value)
{
	json_object_set_new(object, key, json_integer((json_int_t)value));
}

static json_t *categories(const struct tally *tally)
{
	json_t *object = json_object();
	for (unsigned i = 0; i < tally->ncategories; i++) {
		const struct tally_category *category = &tally->categories[i];
		json_t *one = json_object();
		set_number(one, "events", category->events);
		set_number(one, "errors", category->errors);
		set_number(one, "read", category->read);
		set_number(one, "written", category->written);
		json_object_set_new(object, category->name, one);
	}
	return object;
}

static void add_tally(json_t *object, const struct tally *tally)
{
	uint64_t read;
	uint64_t written;

	set_number(object, "events", tally->events);
	set_number(object, "aggregated", tally->counters);
	set_number(object, "metadata", tally->metadata);
	json_object_set_new(object, "categories", categories(tally));
	tally_bytes(tally, &read, &written);
	set_number(object, "read", read);
	set_number(object, "written", written);
	if (tally->first != UINT64_MAX) {
		set_number(object, "start_us", tally->first / 1000);
		set_number(object, "end_us", tally->end / 1000);
	}
	json_t *counts = json_object();
	for (unsigned i = 0; i < tally->ncounts; i++)
		set_number(counts, tally->counts[i].name, tally->counts[i].count);
	json_object_set_new(object, "counts", counts);
}

static json_t *process_json(const struct trace *trace, const struct process *process)
{
	const char *host = trace_host(trace, process->host);
	json_t *object = json_object();

	set_number(object, "pid", process->pid);
	if (process->ppid)
		set_number(object, "ppid", process->ppid);
	if (process->name[0])
		json_object_set_new(object, "name", json_string(process->name));
	if (host)
		json_object_set_new(object, "host", json_string(host));
	if (process->rank >= 0)
		set_number(object, "rank", (uint64_t)process->rank);
	if (process->world >= 0)
		set_number(object, "world_size", (uint64_t)process->world);
	set_number(object, "events", process->events);
	json_object_set_new(object, "ended", json_boolean(process->ended));
	json_object_set_new(object, "repaired", json_boolean(process->repaired));
	return object;
}

static json_t *findings(const struct trace *trace)
{
	static const char *const classes[] = {"note", "finding", "finding", "unusable"};
	json_t *array = json_array();
	struct buf words = {0};

	for (int i = 0; i < FINDING_KINDS; i++) {
		const struct finding *finding = &trace->findings.items[i];
		enum finding_kind kind = (enum finding_kind)i;
		if (finding->count == 0)
			continue;
		json_t *object = json_object();
		json_object_set_new(object, "id", json_string(finding_rows[i].id));
		json_object_set_new(object, "class",
				    json_string(classes[finding_class(&trace->findings, kind)]));
		if (finding->line > 0)
			set_number(object, "line", finding->line);
		set_number(object, "count", finding->count);
		buf_clear(&words);
		report_words(&words, finding, kind);
		json_object_set_new(object, "text", json_stringn(words.data, words.len));
		json_array_append_new(array, object);
	}
	buf_free(&words);
	return array;
}

/* A path that is no UTF-8 cannot stand in JSON as it is. */
static json_t *path_json(const char *path)
{
	json_t *string = json_string(path);
	struct buf safe = {0};

	if (string)
		return string;
	for (; *path; path++)
		buf_add_char(&safe, (unsigned char)*path < 0x80 ? *path : '?');
	string = json_stringn(safe.data, safe.len);
	buf_free(&safe);
	return string;
}

json_t *report_json_file(const struct trace *trace)
{
	static const char *const formats[] = {"unknown", "v1", "v2"};
	json_t *object = json_object();
	json_t *processes = json_array();
	json_t *hosts = json_array();

	json_object_set_new(object, "path", path_json(trace->path));
	json_object_set_new(object, "format", json_string(formats[trace->format]));
	json_object_set_new(object, "dftrace", json_boolean(trace->ours));
	json_object_set_new(object, "compressed", json_boolean(trace->compressed));
	set_number(object, "members", trace->members);
	set_number(object, "bytes", trace->size);
	set_number(object, "text_bytes", trace->text);
	set_number(object, "lines", trace->lines);
	add_tally(object, &trace->tally);
	for (size_t i = 0; i < trace->nhosts; i++)
		json_array_append_new(hosts, json_string(trace->hosts[i].name));
	json_object_set_new(object, "hosts", hosts);
	for (size_t i = 0; i < trace->nprocesses; i++)
		json_array_append_new(processes, process_json(trace, &trace->processes[i]));
	json_object_set_new(object, "processes", processes);
	json_object_set_new(object, "findings", findings(trace));
	return object;
}

json_t *report_json(const struct set *set, json_t *files)
{
	json_t *object = json_object();
	json_t *total = json_object();
	json_t *whole = json_array();
	int status = set_status(set);

	json_object_set_new(object, "version", json_string(DFTRACE_VERSION));
	json_object_set_new(object, "verdict", json_string(report_verdict(status)));
	json_object_set_new(object, "status", json_integer(status));
	json_object_set_new(object, "files", files);
	set_number(total, "files", set->files);
	set_number(total, "unusable", set->unusable);
	set_number(total, "with_findings", set->bad);
	set_number(total, "processes", set->nprocesses);
	set_number(total, "hosts", set->hosts);
	set_number(total, "ranks", set_ranks(set));
	add_tally(total, &set->total);
	json_object_set_new(object, "total", total);
	for (size_t i = 0; i < set->nfindings; i++)
		json_array_append_new(whole, json_string(set->findings[i]));
	json_object_set_new(object, "findings", whole);
	return object;
}
