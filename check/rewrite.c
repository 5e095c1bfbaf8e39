#include "check/rewrite.h"

#include "base/path.h"
#include "check/anonymous.h"
#include "check/edit.h"
#include "check/sink.h"
#include "check/source.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <sys/stat.h>

/* Process ids end below this. */
enum { PID_STEP = 4194304 };

struct rewrite {
	const struct check_options *options;
	struct files *written;
	struct buf *error; /* a line for each failure */
	struct anonymous anonymous;
	struct progress progress;
	struct trace trace; /* of the file under way */
	struct line line;
	struct buf text;

	/* Of --merge only. */
	struct sink merged;
	bool merging; /* the sink is open */
	enum trace_format format;
	uint64_t ns;
	uint64_t ids;     /* so many have been given */
	struct map hosts; /* by the hash of the host: index + 1 */
	struct names names;
	bool metric;
	int status;
};

/* Says what became of a file, with the exit status that it means. */
__attribute__((format(printf, 4, 5))) static void refuse(struct rewrite *rewrite, int status,
							 const char *path, const char *format, ...)
{
	char *text;
	va_list args;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	buf_addf(rewrite->error, "%s%s: %s", rewrite->error->len > 0 ? "\n" : "", path,
		 text ? text : "out of memory");
	free(text);
	if (status > rewrite->status)
		rewrite->status = status;
}

/* The object in a line, without what stands around it. */
static struct text object_of(const struct source_line *raw)
{
	struct text text = {raw->bytes, raw->len};

	while (text.len > 0 && (text.at[0] == ' ' || text.at[0] == '\t')) {
		text.at++;
		text.len--;
	}
	while (text.len > 0 && text.at[text.len - 1] && strchr(" \t\r,", text.at[text.len - 1]))
		text.len--;
	return text;
}

/* Lines that only have to be copied, as a repair does. */
static bool is_verbatim(const struct rewrite *rewrite, const struct edit *edit)
{
	return edit->from == edit->to && !rewrite->options->anonymize && !rewrite->options->merge;
}

static void add_ends(struct rewrite *rewrite, struct edit *edit, struct sink *sink)
{
	const struct trace *trace = &rewrite->trace;

	if (!rewrite->options->repair)
		return;
	if (edit->next_id)
		edit->max_id = edit->next_id - 1;
	else if (edit->max_id < trace->max_id + edit->id_shift)
		edit->max_id = trace->max_id + edit->id_shift;
	for (size_t i = 0; i < trace->nprocesses; i++) {
		const struct process *process = &trace->processes[i];
		if (process->ended || (!process->started && trace->nprocesses > 1))
			continue;
		buf_clear(&rewrite->text);
		edit_end(edit, trace, process, &rewrite->text);
		sink_line(sink, rewrite->text.data, rewrite->text.len);
	}
}

/* Copies the lines of the file that has just been checked. */
static void copy_lines(struct rewrite *rewrite, struct source *source, struct edit *edit,
		       struct sink *sink)
{
	bool verbatim = is_verbatim(rewrite, edit);
	struct source_line raw;

	while (source_next(source, &raw)) {
		if (raw.cut && source_end(source, NULL) != SOURCE_WHOLE)
			break;
		struct text text = object_of(&raw);
		if (raw.too_long || text.len < 2 ||
		    line_read(&rewrite->line, text.at, text.len) < 0)
			continue;
		buf_clear(&rewrite->text);
		if (!verbatim) {
			edit_line(edit, &rewrite->line, &rewrite->text);
			text = (struct text){rewrite->text.data, rewrite->text.len};
		}
		if (text.len > 0)
			sink_line(sink, text.at, text.len);
		if (raw.number % 4096 == 0)
			progress_at(&rewrite->progress, source_read(source));
	}
	add_ends(rewrite, edit, sink);
}

static int copy_file(struct rewrite *rewrite, struct edit *edit, struct sink *sink)
{
	const char *path = rewrite->trace.path;
	char why[128];
	struct source *source = source_open(path, why, sizeof(why));

	if (!source) {
		refuse(rewrite, 2, path, "%s", why);
		return -1;
	}
	copy_lines(rewrite, source, edit, sink);
	source_close(source);
	if (edit->no_memory || rewrite->anonymous.no_memory || rewrite->text.failed) {
		refuse(rewrite, 2, path, "out of memory");
		return -1;
	}
	return 0;
}

static struct edit edit_for(struct rewrite *rewrite, enum trace_format to)
{
	return (struct edit){
		.from = rewrite->trace.format,
		.to = to,
		.anonymous = rewrite->options->anonymize ? &rewrite->anonymous : NULL,
		/* Only events of v2 have ids. */
		.next_id = rewrite->trace.format == TRACE_V2 && to == TRACE_V1 ? 1 : 0,
	};
}

/* The name of a file that is written beside the original or to a directory. */
static void add_path(const struct rewrite *rewrite, const char *path, struct buf *out)
{
	const struct check_options *options = rewrite->options;
	const char *base = path_basename(path);
	size_t len = strlen(base);
	bool compressed = len > 3 && strcmp(base + len - 3, ".gz") == 0;

	len -= compressed ? 3 : 0;
	if (len > 4 && memcmp(base + len - 4, ".pfw", 4) == 0)
		len -= 4;
	if (options->output)
		buf_addf(out, "%s/", options->output);
	else
		buf_add(out, path, (size_t)(base - path));
	if (options->anonymize) {
		anonymous_word(&rewrite->anonymous, out, "anonymous-", (struct text){base, len});
		buf_add_str(out, "-preload");
	} else {
		buf_add(out, base, len);
		if (!options->output && options->to)
			buf_add_str(out, options->to == TRACE_V2 ? "-v2" : "-v1");
		else if (!options->output)
			buf_add_str(out, "-repaired");
	}
	buf_add_str(out, compressed || rewrite->trace.compressed ? ".pfw.gz" : ".pfw");
}

static mode_t mode_of(const char *path)
{
	struct stat status;
	return stat(path, &status) == 0 ? status.st_mode & 0777 : 0600;
}

static void remember(struct rewrite *rewrite, const char *path)
{
	struct buf error = {0};
	if (files_add(rewrite->written, path, &error) < 0)
		refuse(rewrite, 2, path, "%s", buf_str(&error));
	buf_free(&error);
}

/* Gives a file its name, if it is whole. */
static void close_sink(struct rewrite *rewrite, struct sink *sink, const char *path, bool whole)
{
	if (!whole)
		sink_abandon(sink);
	else if (sink_close(sink) < 0)
		refuse(rewrite, 2, path, "%s", strerror(errno));
	else
		remember(rewrite, path);
}

/* Writes a file of its own. */
static void write_one(struct rewrite *rewrite)
{
	const struct check_options *options = rewrite->options;
	const struct trace *trace = &rewrite->trace;
	enum trace_format to = options->to ? options->to : trace->format;
	struct edit edit = edit_for(rewrite, to);
	struct buf path = {0};
	struct sink sink;

	if (options->in_place)
		buf_add_str(&path, trace->path);
	else
		add_path(rewrite, trace->path, &path);
	const char *name = buf_str(&path);
	mode_t mode = options->in_place ? mode_of(trace->path) : 0600;
	if (!name) {
		refuse(rewrite, 2, trace->path, "out of memory");
	} else if (sink_open(&sink, name, to == TRACE_V1, options->in_place, mode) < 0) {
		refuse(rewrite, 2, name, "%s", strerror(errno));
	} else {
		bool whole = copy_file(rewrite, &edit, &sink) == 0;
		close_sink(rewrite, &sink, name, whole);
	}
	buf_free(&path);
}

/* Process ids of different hosts must not meet in one file. */
static uint64_t pid_shift(struct rewrite *rewrite)
{
	uint64_t host = 0;

	for (size_t i = 0; i < rewrite->trace.nprocesses && !host; i++)
		host = rewrite->trace.processes[i].host;
	if (!host)
		return 0;
	uintptr_t index = (uintptr_t)map_get(&rewrite->hosts, host);
	if (!index) {
		index = rewrite->hosts.count + 1;
		if (map_put(&rewrite->hosts, host, (void *)index) < 0)
			refuse(rewrite, 2, rewrite->trace.path, "out of memory");
	}
	return (index - 1) * PID_STEP;
}

static bool open_merged(struct rewrite *rewrite)
{
	const struct check_options *options = rewrite->options;

	if (rewrite->merging)
		return true;
	rewrite->format = options->to ? options->to : rewrite->trace.format;
	rewrite->ns = rewrite->trace.ns;
	if (sink_open(&rewrite->merged, options->merge, rewrite->format == TRACE_V1, false, 0600) <
	    0) {
		refuse(rewrite, 2, options->merge, "%s", strerror(errno));
		return false;
	}
	rewrite->merging = true;
	return true;
}

/* @return whether the joined file can go on. */
static bool merge_one(struct rewrite *rewrite)
{
	if (!open_merged(rewrite))
		return false;
	if (rewrite->trace.ns != rewrite->ns) {
		refuse(rewrite, 2, rewrite->trace.path,
		       "its times have another unit than those before");
		return true;
	}
	struct edit edit = edit_for(rewrite, rewrite->format);
	edit.written = &rewrite->names;
	edit.metric = rewrite->metric;
	edit.pid_shift = pid_shift(rewrite);
	edit.id_shift = rewrite->ids;
	if (edit.next_id)
		edit.next_id = rewrite->ids + 1;
	bool going_on = copy_file(rewrite, &edit, &rewrite->merged) == 0;
	rewrite->metric = edit.metric;
	if (edit.next_id && edit.next_id - 1 > edit.max_id)
		edit.max_id = edit.next_id - 1;
	if (edit.max_id > rewrite->ids)
		rewrite->ids = edit.max_id;
	return going_on;
}

/* @return whether to go on with the next file. */
static bool take_file(struct rewrite *rewrite, const char *path)
{
	const struct check_options *options = rewrite->options;
	bool going_on = true;

	trace_check(&rewrite->trace, path, &rewrite->progress);
	enum finding_class worst = findings_worst(&rewrite->trace.findings);
	if (worst == FINDING_UNUSABLE) {
		const struct finding *why = &rewrite->trace.findings.items[FINDING_UNREADABLE];
		refuse(rewrite, 2, path, "%s",
		       why->count > 0 ? why->detail : finding_rows[FINDING_NO_LINES].words);
	} else if (options->merge) {
		going_on = merge_one(rewrite);
	} else if (options->to || options->anonymize ||
		   findings_repairable(&rewrite->trace.findings)) {
		write_one(rewrite);
	} else if (worst > FINDING_NOTE) {
		refuse(rewrite, 1, path, "it has findings, and none that a repair mends");
	}
	progress_next(&rewrite->progress, rewrite->trace.size);
	trace_free(&rewrite->trace);
	return going_on;
}

/* Creates a directory and those above it. @return 0, or -1 with errno. */
static int make_directories(const char *path)
{
	char *copy = strdup(path);
	int result = 0;

	if (!copy)
		return -1;
	for (char *p = strchr(copy + 1, '/'); p && result == 0; p = strchr(p + 1, '/')) {
		*p = '\0';
		result = mkdir(copy, 0777) < 0 && errno != EEXIST ? -1 : 0;
		*p = '/';
	}
	if (result == 0 && mkdir(copy, 0777) < 0 && errno != EEXIST)
		result = -1;
	int error = errno;
	free(copy);
	errno = error;
	return result;
}

int rewrite(const struct check_options *options, const struct files *files, struct files *written,
	    struct buf *error)
{
	struct rewrite *rewrite = calloc(1, sizeof(*rewrite));
	bool going_on;

	if (!rewrite) {
		buf_add_str(error, "out of memory");
		return 2;
	}
	rewrite->options = options;
	rewrite->written = written;
	rewrite->error = error;
	if (options->output && make_directories(options->output) < 0)
		refuse(rewrite, 2, options->output, "%s", strerror(errno));
	else if (options->anonymize && anonymous_new(&rewrite->anonymous) < 0)
		refuse(rewrite, 2, "--anonymize", "no random numbers: %s", strerror(errno));
	/* Each file is read twice: what is wrong has to be known before it is mended. */
	progress_begin(&rewrite->progress, "writing", files->size, !options->quiet);
	going_on = rewrite->status == 0;
	for (size_t i = 0; i < files->count && going_on; i++)
		going_on = take_file(rewrite, files->paths[i]);
	progress_clear(&rewrite->progress);
	if (rewrite->merging)
		close_sink(rewrite, &rewrite->merged, options->merge, going_on);
	int status = rewrite->status;
	anonymous_free(&rewrite->anonymous);
	names_free(&rewrite->names);
	map_free(&rewrite->hosts);
	line_free(&rewrite->line);
	buf_free(&rewrite->text);
	free(rewrite);
	return status;
}
