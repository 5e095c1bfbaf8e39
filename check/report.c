#include "check/report.h"

#include <string.h>
#include <time.h>

const char *report_verdict(int status)
{
	static const char *const verdicts[] = {"good", "findings", "unusable"};
	return verdicts[status];
}

/* 1234567 → 1.2 MB: decimal, as disks are sold. */
static void add_bytes(struct buf *out, uint64_t bytes)
{
	static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
	double value = (double)bytes;
	unsigned unit = 0;

	while (value >= 999.95 && unit < 6) {
		value /= 1000;
		unit++;
	}
	buf_addf(out, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
}

static void add_count(struct buf *out, uint64_t count, const char *one, const char *many)
{
	buf_addf(out, "%llu %s", (unsigned long long)count, count == 1 ? one : many);
}

static void add_categories(struct buf *out, const struct tally *tally)
{
	add_count(out, tally->events, "event", "events");
	for (unsigned i = 0; i < tally->ncategories; i++)
		buf_addf(out, "%s%s %llu", i == 0 ? ": " : ", ", tally->categories[i].name,
			 (unsigned long long)tally->categories[i].events);
	if (tally->counters > 0)
		buf_addf(out, "; %llu aggregated", (unsigned long long)tally->counters);
}

static void add_span(struct buf *out, const struct tally *tally)
{
	char text[32];

	if (tally->first == UINT64_MAX)
		return;
	time_t start = (time_t)(tally->first / 1000000000);
	struct tm tm;
	if (gmtime_r(&start, &tm) && strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm) > 0)
		buf_addf(out, "; %.3f s from %s UTC", (double)(tally->end - tally->first) / 1e9,
			 text);
}

static void add_losses(struct buf *out, const struct tally *tally)
{
	bool any = false;
	for (unsigned i = 0; i < tally->ncounts; i++) {
		if (strncmp(tally->counts[i].name, "lost:", 5) == 0) {
			buf_addf(out, "%s%s %llu", any ? ", " : "; ", tally->counts[i].name,
				 (unsigned long long)tally->counts[i].count);
			any = true;
		}
	}
}

static void add_sums(struct buf *out, const struct tally *tally)
{
	uint64_t read;
	uint64_t written;

	add_categories(out, tally);
	tally_bytes(tally, &read, &written);
	buf_add_str(out, "; read ");
	add_bytes(out, read);
	buf_add_str(out, ", written ");
	add_bytes(out, written);
	add_span(out, tally);
	add_losses(out, tally);
}

static void add_process(struct buf *out, const struct process *process)
{
	buf_addf(out, "%s%spid %llu", process->name, process->name[0] ? ", " : "",
		 (unsigned long long)process->pid);
	if (process->rank >= 0)
		buf_addf(out, ", rank %lld", (long long)process->rank);
	if (process->rank >= 0 && process->world >= 0)
		buf_addf(out, " of %lld", (long long)process->world);
}

/* Who: the only process, or how many; the hosts. */
static void add_origin(struct buf *out, const struct trace *trace)
{
	if (trace->nprocesses == 1)
		add_process(out, &trace->processes[0]);
	else
		add_count(out, trace->nprocesses, "process", "processes");
	for (size_t i = 0; i < trace->nhosts && i < 4; i++)
		buf_addf(out, "%s%s", i == 0 ? " on " : ", ", trace->hosts[i].name);
	if (trace->nhosts > 4)
		buf_addf(out, " and %zu more", trace->nhosts - 4);
	buf_addf(out, "; %s%s", trace->format == TRACE_V2 ? "v2" : "v1",
		 trace->ours ? "" : ", not by dftrace");
	if (trace->any_hash && trace->form != NAME_HEX)
		buf_addf(out, ", hashes of %d bits", trace->form == NAME_SHORT ? 16 : 64);
	buf_addf(out, ", %s", trace->compressed ? "gzip" : "plain");
	if (trace->members > 1)
		buf_addf(out, " of %lu members", trace->members);
}

void report_words(struct buf *out, const struct finding *finding, enum finding_kind kind)
{
	if (finding->line > 0)
		buf_addf(out, "line %llu: ", (unsigned long long)finding->line);
	buf_add_str(out, finding_rows[kind].words);
	if (finding->detail[0])
		buf_addf(out, ": %s", finding->detail);
	if (finding->count > 1)
		buf_addf(out, " (%llu times)", (unsigned long long)finding->count);
}

static void add_findings(struct buf *out, const struct trace *trace, bool quiet)
{
	for (int i = 0; i < FINDING_KINDS; i++) {
		enum finding_kind kind = (enum finding_kind)i;
		enum finding_class class = finding_class(&trace->findings, kind);
		const struct finding *finding = &trace->findings.items[i];
		if (finding->count == 0 || (quiet && class == FINDING_NOTE))
			continue;
		if (quiet)
			buf_addf(out, "%s: ", trace->path);
		else
			buf_addf(out, "  %s: ", class == FINDING_NOTE ? "note" : "finding");
		report_words(out, finding, kind);
		buf_add_char(out, '\n');
	}
}

static void print(FILE *out, struct buf *text)
{
	if (text->len > 0)
		fwrite(text->data, 1, text->len, out);
	buf_free(text);
}

void report_file(FILE *out, const struct trace *trace, bool quiet)
{
	const struct finding *unreadable = &trace->findings.items[FINDING_UNREADABLE];
	struct buf text = {0};

	if (unreadable->count > 0 && trace->lines == 0) {
		buf_addf(&text, "%s: %s\n", trace->path, unreadable->detail);
		print(out, &text);
		return;
	}
	if (findings_worst(&trace->findings) == FINDING_UNUSABLE) {
		bool none = unreadable->count == 0;
		buf_addf(&text, "%s: %s\n", trace->path,
			 none ? finding_rows[FINDING_NO_LINES].words : unreadable->detail);
		print(out, &text);
		return;
	}
	if (!quiet) {
		buf_addf(&text, "%s\n  ", trace->path);
		add_origin(&text, trace);
		buf_add_str(&text, "\n  ");
		add_sums(&text, &trace->tally);
		buf_add_char(&text, '\n');
	}
	add_findings(&text, trace, quiet);
	print(out, &text);
}

static void add_verdict(struct buf *out, const struct set *set)
{
	buf_addf(out, "%s: ", report_verdict(set_status(set)));
	add_count(out, set->files, "file", "files");
	if (set->unusable > 0)
		buf_addf(out, ", %zu unusable", set->unusable);
	if (set->bad > 0)
		buf_addf(out, ", %zu with findings", set->bad);
	if (set->nfindings > 0) {
		buf_add_str(out, ", ");
		add_count(out, set->nfindings, "finding", "findings");
		buf_add_str(out, " about the whole");
	}
	buf_add_str(out, ", ");
	add_count(out, set->total.events, "event", "events");
	uint64_t lost = tally_counted(&set->total, "lost:");
	if (lost > 0)
		buf_addf(out, ", %llu lost", (unsigned long long)lost);
	buf_add_char(out, '\n');
}

void report_total(FILE *out, const struct set *set, bool quiet)
{
	struct buf text = {0};

	if (!quiet && set->files > 1 && set->files > set->unusable) {
		size_t ranks = set_ranks(set);
		buf_add_str(&text, "total\n  ");
		add_count(&text, set->nprocesses, "process", "processes");
		buf_add_str(&text, " on ");
		add_count(&text, set->hosts, "host", "hosts");
		if (ranks > 0) {
			buf_add_str(&text, ", ");
			add_count(&text, ranks, "rank", "ranks");
		}
		buf_add_str(&text, "\n  ");
		add_sums(&text, &set->total);
		buf_add_char(&text, '\n');
	}
	for (size_t i = 0; i < set->nfindings; i++)
		buf_addf(&text, "%s%s\n", quiet ? "" : "finding: ", set->findings[i]);
	add_verdict(&text, set);
	print(out, &text);
}
