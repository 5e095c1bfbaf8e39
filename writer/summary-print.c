/* The summary as a table and as JSON. */
#include "writer/put.h"
#include "writer/summary-parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILES_SHOWN = 20 };

static int compare_numbers(uint64_t a, uint64_t b)
{
	return a > b ? -1 : a < b;
}

/* By layer; within it those that took longest first. */
static int compare_calls(const void *a, const void *b)
{
	const struct summary_call *one = *(const struct summary_call *const *)a;
	const struct summary_call *two = *(const struct summary_call *const *)b;

	if (one->layer != two->layer)
		return one->layer < two->layer ? -1 : 1;
	int order = strcmp(one->category, two->category);
	if (order == 0)
		order = compare_numbers(one->us, two->us);
	if (order == 0)
		order = compare_numbers(one->calls, two->calls);
	return order ? order : strcmp(one->name, two->name);
}

/* @return pointers to what the map holds, in order; NULL when it is empty or out of memory. To be freed. */
static void **sorted(const struct map *map, int (*compare)(const void *, const void *))
{
	void **items = map->count ? calloc(map->count, sizeof(void *)) : NULL;
	struct map_slot *slot;
	size_t count = 0;
	size_t at = 0;

	while (items && (slot = map_next(map, &at)))
		items[count++] = slot->value;
	if (items)
		qsort(items, count, sizeof(void *), compare);
	return items;
}

/* Names come from the program: a line stays a line, and a terminal is told nothing. */
static void add_plain(struct buf *out, const char *text)
{
	for (; *text; text++)
		buf_add_char(out, (unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text);
}

static void add_share(struct buf *out, uint64_t part, uint64_t whole)
{
	if (whole)
		buf_addf(out, "%6.2f", 100.0 * (double)part / (double)whole);
	else
		buf_addf(out, "%6s", "");
}

/* Zero is left blank where it says that there is nothing to say. */
static void add_some(struct buf *out, int width, uint64_t value)
{
	if (value)
		buf_addf(out, " %*llu", width, (unsigned long long)value);
	else
		buf_addf(out, " %*s", width, "");
}

static void add_call(struct buf *out, const struct summary *summary,
		     const struct summary_call *call, const char *category, const char *name,
		     bool any_cut)
{
	add_share(out, call->us, summary->outermost);
	buf_addf(out, " %6llu.%06llu %9llu %9llu %9llu", (unsigned long long)call->us / 1000000,
		 (unsigned long long)call->us % 1000000,
		 (unsigned long long)(call->calls ? call->us / call->calls : 0),
		 (unsigned long long)call->longest, (unsigned long long)call->calls);
	add_some(out, 7, call->errors);
	if (any_cut)
		add_some(out, 5, call->cut);
	add_some(out, 15, call->bytes);
	buf_add_str(out, "  ");
	add_plain(out, category);
	buf_addf(out, "%*s ", strlen(category) < 7 ? 7 - (int)strlen(category) : 0, "");
	add_plain(out, name);
	buf_add_char(out, '\n');
}

static void print_calls(struct buf *out, const struct summary *summary)
{
	struct summary_call **calls =
		(struct summary_call **)sorted(&summary->calls, compare_calls);
	struct summary_call total = {0};
	const char *category = "";
	bool any_cut = false;

	if (!calls)
		return;
	for (size_t i = 0; i < summary->calls.count; i++)
		any_cut |= calls[i]->cut > 0;
	buf_addf(out, "%6s %13s %9s %9s %9s %7s%s %15s  %-7s %s\n", "% time", "seconds", "us/call",
		 "longest", "calls", "errors", any_cut ? "   cut" : "", "bytes", "layer", "call");
	for (size_t i = 0; i < summary->calls.count; i++) {
		if (i > 0 && strcmp(calls[i]->category, category) != 0) {
			add_call(out, summary, &total, category, "total", any_cut);
			total = (struct summary_call){0};
		}
		category = calls[i]->category;
		summary_call_add(&total, calls[i]);
		add_call(out, summary, calls[i], category,
			 *calls[i]->name ? calls[i]->name : "(others)", any_cut);
	}
	add_call(out, summary, &total, category, "total", any_cut);
	free(calls);
}

static void add_file(struct buf *out, const struct summary_use *use, const char *path)
{
	buf_addf(out, "%15llu %15llu %9llu %6llu.%06llu  ", (unsigned long long)use->read,
		 (unsigned long long)use->written, (unsigned long long)use->calls,
		 (unsigned long long)use->us / 1000000, (unsigned long long)use->us % 1000000);
	add_plain(out, path);
	buf_add_char(out, '\n');
}

static void print_files(struct buf *out, const struct summary *summary, bool all)
{
	struct summary_file **files =
		(struct summary_file **)sorted(&summary->files, summary_compare_files);
	struct summary_use rest = summary_file_use(&summary->others);
	uint64_t more = summary->other_files;
	char text[48];

	if (!files)
		return;
	buf_addf(out, "\n%15s %15s %9s %13s  %s\n", "read", "written", "calls", "seconds", "file");
	for (size_t i = 0; i < summary->files.count; i++) {
		struct summary_use use = summary_file_use(files[i]);
		if (all || i < FILES_SHOWN) {
			add_file(out, &use, files[i]->name->text);
		} else {
			summary_use_add(&rest, &use);
			more++;
		}
	}
	free(files);
	if (!more)
		return;
	snprintf(text, sizeof(text), "(%llu more)", (unsigned long long)more);
	add_file(out, &rest, text);
}

void summary_print(struct buf *out, const struct summary *summary,
		   const struct summary_style *style)
{
	buf_addf(out, "%s: %llu call%s of %llu process image%s\n", style->title,
		 (unsigned long long)summary->events, summary->events == 1 ? "" : "s",
		 (unsigned long long)summary->images, summary->images == 1 ? "" : "s");
	print_calls(out, summary);
	print_files(out, summary, style->all_files);
}

static void add_string(struct buf *out, const char *key, const char *text)
{
	buf_addf(out, "\"%s\":", key);
	put_json(out, text);
}

static void add_number(struct buf *out, const char *key, uint64_t value)
{
	buf_addf(out, ",\"%s\":%llu", key, (unsigned long long)value);
}

static void print_json_calls(struct buf *out, const struct summary *summary)
{
	struct summary_call **calls =
		(struct summary_call **)sorted(&summary->calls, compare_calls);

	buf_add_str(out, ",\"call_sums\":[");
	for (size_t i = 0; calls && i < summary->calls.count; i++) {
		buf_add_str(out, i ? ",\n{" : "\n{");
		add_string(out, "category", calls[i]->category);
		buf_add_char(out, ',');
		add_string(out, "name", calls[i]->name);
		add_number(out, "calls", calls[i]->calls);
		add_number(out, "errors", calls[i]->errors);
		add_number(out, "cut", calls[i]->cut);
		add_number(out, "us", calls[i]->us);
		add_number(out, "longest_us", calls[i]->longest);
		add_number(out, "bytes", calls[i]->bytes);
		buf_add_char(out, '}');
	}
	buf_add_char(out, ']');
	free(calls);
}

static void add_json_uses(struct buf *out, const struct summary_file *file)
{
	struct summary_use use = summary_file_use(file);

	add_number(out, "read", use.read);
	add_number(out, "written", use.written);
	add_number(out, "calls", use.calls);
	add_number(out, "us", use.us);
}

static void print_json_files(struct buf *out, const struct summary *summary)
{
	struct summary_file **files =
		(struct summary_file **)sorted(&summary->files, summary_compare_files);

	buf_add_str(out, ",\"file_sums\":[");
	for (size_t i = 0; files && i < summary->files.count; i++) {
		buf_add_str(out, i ? ",\n{" : "\n{");
		add_string(out, "path", files[i]->name->text);
		add_json_uses(out, files[i]);
		buf_add_char(out, '}');
	}
	buf_add_str(out, "],\"other_files\":{");
	buf_addf(out, "\"count\":%llu", (unsigned long long)summary->other_files);
	add_json_uses(out, &summary->others);
	buf_add_char(out, '}');
	free(files);
}

void summary_print_json(struct buf *out, const struct summary *summary)
{
	buf_addf(out, "{\"events\":%llu", (unsigned long long)summary->events);
	add_number(out, "process_images", summary->images);
	add_number(out, "outermost_us", summary->outermost);
	print_json_calls(out, summary);
	print_json_files(out, summary);
	buf_add_str(out, "}\n");
}
