#include "writer/line.h"

#include "writer/put.h"

#include <string.h>

struct piece {
	const char *text;
	size_t len;
};

#define PIECE(literal)                                                                             \
	{                                                                                          \
		literal, sizeof(literal) - 1                                                       \
	}

/* From the end of the name to the ids, per layer and format. */
static const struct piece categories[][2] = {
	[LAYER_DFTRACER] = {PIECE("\",\"cat\":\"dftracer\""),
			    PIECE("\",\"cat\":\"dftracer\",\"type\":1")},
	[LAYER_POSIX] = {PIECE("\",\"cat\":\"POSIX\""), PIECE("\",\"cat\":\"POSIX\",\"type\":3")},
	[LAYER_SYSCALL] = {PIECE("\",\"cat\":\"SYSCALL\""),
			   PIECE("\",\"cat\":\"SYSCALL\",\"type\":0")},
	[LAYER_STDIO] = {PIECE("\",\"cat\":\"STDIO\""), PIECE("\",\"cat\":\"STDIO\",\"type\":3")},
	[LAYER_MPI] = {PIECE("\",\"cat\":\"MPI\""), PIECE("\",\"cat\":\"MPI\",\"type\":10")},
	[LAYER_HDF5] = {PIECE("\",\"cat\":\"HDF5\""), PIECE("\",\"cat\":\"HDF5\",\"type\":5")},
	[LAYER_FUNC] = {PIECE("\",\"cat\":\"FUNC\""), PIECE("\",\"cat\":\"FUNC\",\"type\":0")},
};

/* More than all fixed text and numbers of a line take. */
enum { FIXED = 512 };

void line_ids(struct line_ids *ids, pid_t pid, pid_t tid)
{
	char *p = put_text(ids->text, ",\"pid\":");
	p = put_i64(p, pid);
	p = put_text(p, ",\"tid\":");
	p = put_i64(p, tid);
	ids->len = (size_t)(p - ids->text);
}

/* All of the text is copied, which the compiler does in a few moves; what is too much is
 * overwritten. */
static char *put_ids(char *p, const struct line_ids *ids)
{
	put_bytes(p, ids->text, sizeof(ids->text));
	return p + ids->len;
}

void line_record(struct buf *out, const struct line_format *format, const struct line_ids *ids,
		 const struct line_record *record)
{
	size_t value_len = record->value ? strlen(record->value) : 0;
	char *start = buf_reserve(out, FIXED + (record->name_len + value_len) * PUT_ESCAPED);
	if (!start)
		return;

	char *p = start;
	*p++ = '{';
	if (!format->v2) {
		p = put_text(p, "\"id\":");
		p = put_u64(p, record->id);
		*p++ = ',';
	}
	p = put_text(p, "\"name\":\"");
	p = put_string(p, record->kind);
	const struct piece *category = &categories[LAYER_DFTRACER][format->v2];
	p = put_bytes(p, category->text, category->len);
	p = put_ids(p, ids);
	if (format->v2)
		p = put_text(p, ",\"ph\":4,\"args\":{\"hhash\":");
	else
		p = put_text(p, ",\"ph\":\"M\",\"args\":{\"hhash\":");
	p = put_hash(p, format->host_hash);
	p = put_text(p, ",\"name\":\"");
	p = put_escaped(p, record->name, record->name_len);
	p = put_text(p, "\",\"value\":");
	if (record->value) {
		*p++ = '"';
		p = put_escaped(p, record->value, value_len);
		*p++ = '"';
	} else {
		p = put_hash(p, record->hash);
	}
	p = put_text(p, "}}\n");
	out->len += (size_t)(p - start);
}

static size_t args_bound(const struct event_arg *args, unsigned count)
{
	size_t bound = 0;

	for (unsigned i = 0; i < count; i++) {
		const struct event_arg *arg = &args[i];
		/* ,"name": and the value; a hash needs no more than a number. */
		bound += 4 + strlen(arg->name) + PUT_NUMBER + 2;
		if (arg->kind == EVENT_STRING)
			bound += arg->value.string.len * PUT_ESCAPED;
		else if (arg->kind == EVENT_JSON)
			bound += arg->value.string.len;
	}
	return bound;
}

/* @return how much room the line may need. */
static size_t event_bound(const struct event *event)
{
	size_t category = event->layer == LAYER_APP ? strlen(event->category) : 0;

	return FIXED + (strlen(event->name) + category) * PUT_ESCAPED +
	       args_bound(event->first, event->nfirst) + args_bound(event->args, event->nargs);
}

static char *put_arg(char *p, const struct event_arg *arg)
{
	if (arg->kind == EVENT_NAME && !arg->value.ref)
		return p;
	p = put_text(p, ",\"");
	p = put_string(p, arg->name);
	p = put_text(p, "\":");
	switch (arg->kind) {
	case EVENT_INT:
		return put_i64(p, arg->value.i);
	case EVENT_UINT:
		return put_u64(p, arg->value.u);
	case EVENT_NAME:
		return put_hash(p, name_hash(arg->value.ref));
	case EVENT_JSON:
		return put_bytes(p, arg->value.string.bytes, arg->value.string.len);
	case EVENT_STRING:
		*p++ = '"';
		p = put_escaped(p, arg->value.string.bytes, arg->value.string.len);
		*p++ = '"';
		return p;
	}
	return p;
}

static char *put_args(char *p, const struct line_format *format, const struct event *event)
{
	p = put_text(p, ",\"args\":{\"hhash\":");
	p = put_hash(p, format->host_hash);
	if (!format->v2 && event->level > 0) {
		p = put_text(p, ",\"p_idx\":");
		p = event->parent ? put_u64(p, event->parent) : put_text(p, "-1");
		p = put_text(p, ",\"level\":");
		p = put_u64(p, event->level);
	}
	if (event->file) {
		p = put_text(p, ",\"fhash\":");
		p = put_hash(p, name_hash(event->file));
	}
	for (unsigned i = 0; i < event->nfirst; i++)
		p = put_arg(p, &event->first[i]);
	for (unsigned i = 0; i < event->nargs; i++)
		p = put_arg(p, &event->args[i]);
	*p++ = '}';
	return p;
}

/* From the end of the name to the ids. */
static char *put_category(char *p, const struct line_format *format, const struct event *event)
{
	if (event->layer != LAYER_APP) {
		const struct piece *category = &categories[event->layer][format->v2];
		return put_bytes(p, category->text, category->len);
	}
	p = put_text(p, "\",\"cat\":\"");
	p = put_escaped(p, event->category, strlen(event->category));
	*p++ = '"';
	if (format->v2) {
		p = put_text(p, ",\"type\":");
		p = put_u64(p, event->type);
	}
	return p;
}

void line_event(struct buf *out, const struct line_format *format, const struct line_ids *ids,
		const struct event *event)
{
	char *start = buf_reserve(out, event_bound(event));
	if (!start)
		return;

	/* Both ends are rounded down, so that calls of a thread never overlap by rounding. */
	uint64_t ts = event->start / 1000;
	char *p = put_text(start, "{\"id\":");
	p = put_u64(p, event->id);
	p = put_text(p, ",\"name\":\"");
	p = put_escaped(p, event->name, strlen(event->name));
	p = put_category(p, format, event);
	p = put_ids(p, ids);
	p = put_text(p, ",\"ts\":");
	p = put_u64(p, ts);
	p = put_text(p, ",\"dur\":");
	p = put_u64(p, event->end / 1000 - ts);
	p = format->v2 ? put_text(p, ",\"ph\":1") : put_text(p, ",\"ph\":\"X\"");
	if (format->metadata)
		p = put_args(p, format, event);
	p = put_text(p, "}\n");
	out->len += (size_t)(p - start);
}
