#include "check/line.h"

#include "base/utf8.h"

#include <jansson.h>
#include <string.h>

struct scan {
	struct line *line;
	const char *at;
	const char *end;
	bool unusual; /* jansson has to look at it */
};

static const struct text top_names[LINE_KEYS] = {
#define TOP(id, key) [KEY_##id] = {key, sizeof(key) - 1},
#include "check/keys.def"
};

static const struct text arg_names[LINE_ARG_KEYS] = {
#define ARG(id, key) [ARG_##id] = {key, sizeof(key) - 1},
#include "check/keys.def"
};

static int fail(struct scan *scan, const char *wrong)
{
	if (!scan->line->wrong)
		scan->line->wrong = wrong;
	return -1;
}

static void skip_blanks(struct scan *scan)
{
	while (scan->at < scan->end && (*scan->at == ' ' || *scan->at == '\t')) {
		scan->line->has_blanks = true;
		scan->at++;
	}
}

static int expect(struct scan *scan, char c, const char *wrong)
{
	skip_blanks(scan);
	if (scan->at == scan->end || *scan->at != c)
		return fail(scan, wrong);
	scan->at++;
	skip_blanks(scan);
	return 0;
}

static int hex4(struct scan *scan, unsigned *value)
{
	*value = 0;
	if (scan->end - scan->at < 4)
		return fail(scan, "an escape in a string is cut");
	for (int i = 0; i < 4; i++) {
		char c = *scan->at++;
		unsigned digit;
		if (c >= '0' && c <= '9')
			digit = (unsigned)(c - '0');
		else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
			digit = (unsigned)((c | 0x20) - 'a' + 10);
		else
			return fail(scan, "an escape in a string is not one");
		*value = *value * 16 + digit;
	}
	return 0;
}

static void add_code(struct buf *out, unsigned code)
{
	if (code < 0x80) {
		buf_add_char(out, (char)code);
		return;
	}
	if (code < 0x800) {
		buf_add_char(out, (char)(0xc0 | code >> 6));
	} else {
		if (code < 0x10000) {
			buf_add_char(out, (char)(0xe0 | code >> 12));
		} else {
			buf_add_char(out, (char)(0xf0 | code >> 18));
			buf_add_char(out, (char)(0x80 | (code >> 12 & 0x3f)));
		}
		buf_add_char(out, (char)(0x80 | (code >> 6 & 0x3f)));
	}
	buf_add_char(out, (char)(0x80 | (code & 0x3f)));
}

static int add_unicode(struct scan *scan, struct buf *out)
{
	unsigned code;
	unsigned low;

	if (hex4(scan, &code) < 0)
		return -1;
	if (code >= 0xdc00 && code < 0xe000)
		return fail(scan, "half of a surrogate pair in a string");
	if (code >= 0xd800 && code < 0xdc00) {
		if (scan->end - scan->at < 2 || scan->at[0] != '\\' || scan->at[1] != 'u')
			return fail(scan, "half of a surrogate pair in a string");
		scan->at += 2;
		if (hex4(scan, &low) < 0)
			return -1;
		if (low < 0xdc00 || low >= 0xe000)
			return fail(scan, "half of a surrogate pair in a string");
		code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
	}
	add_code(out, code);
	return 0;
}

static int add_escape(struct scan *scan, struct buf *out)
{
	static const char letters[] = "\"\\/bfnrt";
	static const char meant[] = "\"\\/\b\f\n\r\t";

	if (scan->at == scan->end)
		return fail(scan, "a string is cut");
	char c = *scan->at++;
	if (c == 'u')
		return add_unicode(scan, out);
	const char *known = memchr(letters, c, sizeof(letters) - 1);
	if (!known)
		return fail(scan, "an escape in a string is not one");
	buf_add_char(out, meant[known - letters]);
	return 0;
}

/* Passes bytes that stand for themselves. */
static int pass_plain(struct scan *scan)
{
	const unsigned char *p = (const unsigned char *)scan->at;
	const unsigned char *end = (const unsigned char *)scan->end;

	while (p < end && *p != '"' && *p != '\\') {
		size_t n = 1;
		if (*p < ' ')
			return fail(scan, "a control character in a string");
		if (*p >= 0x80 && !(n = utf8_sequence(p, (size_t)(end - p))))
			return fail(scan, "a string is not UTF-8");
		p += n;
	}
	scan->at = (const char *)p;
	return p < end ? 0 : fail(scan, "a string is cut");
}

/* Reads a string; the cursor stands behind its opening quote. */
static int read_string(struct scan *scan, struct text *text)
{
	struct buf *scratch = &scan->line->scratch;
	const char *start = scan->at;
	size_t from = 0;
	bool escaped = false;

	for (;;) {
		const char *plain = scan->at;
		if (pass_plain(scan) < 0)
			return -1;
		if (*scan->at == '\\' && !escaped) {
			escaped = true;
			from = scratch->len;
			buf_add(scratch, start, (size_t)(scan->at - start));
		} else if (escaped) {
			buf_add(scratch, plain, (size_t)(scan->at - plain));
		}
		if (*scan->at++ == '"')
			break;
		if (add_escape(scan, scratch) < 0)
			return -1;
	}
	*text = escaped ? (struct text){scratch->data + from, scratch->len - from}
			: (struct text){start, (size_t)(scan->at - 1 - start)};
	return scratch->failed ? fail(scan, "out of memory") : 0;
}

static bool is_digit(const struct scan *scan)
{
	return scan->at < scan->end && *scan->at >= '0' && *scan->at <= '9';
}

/* Whatever is no integer is left to jansson, which knows what a number is. */
static int read_number(struct scan *scan, struct field *field)
{
	const char *start = scan->at;
	bool fits = true;

	field->kind = FIELD_NUMBER;
	field->negative = *scan->at == '-';
	field->magnitude = 0;
	scan->at += field->negative;
	const char *digits = scan->at;
	while (is_digit(scan)) {
		unsigned digit = (unsigned)(*scan->at++ - '0');
		fits = fits && !__builtin_mul_overflow(field->magnitude, 10, &field->magnitude) &&
		       !__builtin_add_overflow(field->magnitude, digit, &field->magnitude);
	}
	if (scan->at == digits || (*digits == '0' && scan->at - digits > 1))
		return fail(scan, "a number is not one");
	if (field->negative && field->magnitude > (uint64_t)INT64_MAX + 1)
		fits = false;
	while (scan->at < scan->end && *scan->at && strchr("+-.eE0123456789", *scan->at)) {
		fits = false;
		scan->at++;
	}
	if (!fits) {
		field->kind = FIELD_FRACTION;
		scan->line->has_fraction = scan->unusual = true;
	}
	field->raw = (struct text){start, (size_t)(scan->at - start)};
	return 0;
}

/* Passes an object or an array by its brackets alone. */
static int pass_nested(struct scan *scan)
{
	unsigned depth = 0;

	do {
		char c = *scan->at++;
		struct text text;
		if (c == '"' && read_string(scan, &text) < 0)
			return -1;
		if (c == '{' || c == '[')
			depth++;
		else if (c == '}' || c == ']')
			depth--;
	} while (depth > 0 && scan->at < scan->end);
	return depth == 0 ? 0 : fail(scan, "the object is not closed");
}

static int read_other(struct scan *scan, struct field *field)
{
	const char *start = scan->at;

	scan->unusual = true;
	field->kind = FIELD_OTHER;
	if (*start == '{' || *start == '[') {
		if (pass_nested(scan) < 0)
			return -1;
	} else {
		while (scan->at < scan->end && *scan->at >= 'a' && *scan->at <= 'z')
			scan->at++;
		if (scan->at == start)
			return fail(scan, "a value is missing");
	}
	field->raw = (struct text){start, (size_t)(scan->at - start)};
	if (text_is(field->raw, "null")) {
		field->kind = FIELD_NULL;
		scan->line->has_null = true;
	}
	return 0;
}

static int read_value(struct scan *scan, struct field *field)
{
	const char *start = scan->at;

	if (scan->at == scan->end)
		return fail(scan, "the line is cut");
	if (*start == '"') {
		scan->at++;
		field->kind = FIELD_STRING;
		if (read_string(scan, &field->text) < 0)
			return -1;
		field->raw = (struct text){start, (size_t)(scan->at - start)};
		return 0;
	}
	return *start == '-' || (*start >= '0' && *start <= '9') ? read_number(scan, field)
								 : read_other(scan, field);
}

static int find_top(struct text key)
{
	for (int i = 0; i < LINE_KEYS; i++) {
		if (top_names[i].len == key.len && memcmp(top_names[i].at, key.at, key.len) == 0)
			return i;
	}
	return -1;
}

static int find_arg(struct text key)
{
	for (int i = 0; i < LINE_ARG_KEYS && arg_names[i].len <= key.len; i++) {
		if (arg_names[i].len == key.len && memcmp(arg_names[i].at, key.at, key.len) == 0)
			return i;
	}
	return -1;
}

/* Only keys that are not known one by one have to be compared with each other. */
static int keep_arg(struct scan *scan, struct field *field)
{
	struct line *line = scan->line;
	int known = find_arg(field->key);

	if (known >= 0) {
		if (line->arg[known])
			return fail(scan, "a key stands twice");
		line->arg[known] = field;
		return 0;
	}
	for (const struct field *other = line->args; other < field; other++) {
		if (other->key.len == field->key.len &&
		    memcmp(other->key.at, field->key.at, field->key.len) == 0)
			return fail(scan, "a key stands twice");
	}
	return 0;
}

/* Reads `"key":`. @return 0, or -1. */
static int read_key(struct scan *scan, struct text *key)
{
	if (expect(scan, '"', "a key is missing") < 0)
		return -1;
	return read_string(scan, key) < 0 ? -1 : expect(scan, ':', "a colon is missing");
}

/* @return 1 when another key follows, 0 at the end of the object, -1. */
static int follows(struct scan *scan)
{
	skip_blanks(scan);
	if (scan->at < scan->end && *scan->at == ',') {
		scan->at++;
		return 1;
	}
	return expect(scan, '}', "a comma or the closing brace is missing");
}

static bool is_empty(struct scan *scan)
{
	skip_blanks(scan);
	if (scan->at == scan->end || *scan->at != '}')
		return false;
	scan->at++;
	return true;
}

static int read_args(struct scan *scan)
{
	struct line *line = scan->line;
	int more;

	scan->at++;
	if (is_empty(scan))
		return 0;
	do {
		if (line->nargs == LINE_ARGS)
			return fail(scan, "too many args");
		struct field *field = &line->args[line->nargs];
		if (read_key(scan, &field->key) < 0 || read_value(scan, field) < 0 ||
		    keep_arg(scan, field) < 0)
			return -1;
		line->nargs++;
		more = follows(scan);
	} while (more > 0);
	return more;
}

static int read_pair(struct scan *scan, int *last)
{
	struct line *line = scan->line;
	struct field stranger = {0};
	struct text key;

	if (read_key(scan, &key) < 0)
		return -1;
	int known = find_top(key);
	struct field *field = known >= 0 ? &line->top[known] : &stranger;
	if (known < 0)
		line->has_stranger = true;
	else if (field->kind != FIELD_ABSENT)
		return fail(scan, "a key stands twice");
	else if (known < *last)
		line->out_of_order = true;
	if (known >= 0)
		*last = known;
	if (known == KEY_ARGS && scan->at < scan->end && *scan->at == '{') {
		field->kind = FIELD_OTHER;
		return read_args(scan);
	}
	return read_value(scan, field);
}

static int read_object(struct scan *scan)
{
	int last = -1;
	int more;

	if (expect(scan, '{', "no object") < 0)
		return -1;
	if (is_empty(scan))
		return 0;
	do {
		if (read_pair(scan, &last) < 0)
			return -1;
		more = follows(scan);
	} while (more > 0);
	if (more < 0)
		return -1;
	return scan->at == scan->end ? 0 : fail(scan, "something stands behind the object");
}

int line_read(struct line *line, const char *bytes, size_t len)
{
	struct scan scan = {.line = line, .at = bytes, .end = bytes + len};

	/* Only what was used of the args has to be forgotten: they are written before they are read. */
	memset(line->top, 0, sizeof(line->top));
	memset(line->arg, 0, sizeof(line->arg));
	line->nargs = 0;
	line->has_blanks = line->out_of_order = line->has_stranger = false;
	line->has_fraction = line->has_null = false;
	line->wrong = NULL;
	buf_clear(&line->scratch);
	/* Strings without their escapes are shorter, and may not move. */
	if (memchr(bytes, '\\', len) && !buf_reserve(&line->scratch, len))
		return fail(&scan, "out of memory");
	if (read_object(&scan) < 0)
		return -1;
	if (scan.unusual) {
		json_error_t error;
		json_t *judged = json_loadb(
			bytes, len,
			JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, &error);
		if (!judged)
			return fail(&scan, "it is not JSON");
		json_decref(judged);
	}
	return 0;
}

void line_free(struct line *line)
{
	buf_free(&line->scratch);
}

bool text_is(struct text text, const char *other)
{
	return strlen(other) == text.len && memcmp(text.at, other, text.len) == 0;
}

bool field_is(const struct field *field, const char *text)
{
	return field && field->kind == FIELD_STRING && text_is(field->text, text);
}

/* Digits in quotes. */
static bool quoted_number(struct text text, int64_t *value)
{
	bool negative = text.len > 0 && *text.at == '-';

	*value = 0;
	for (size_t i = negative; i < text.len; i++) {
		int digit = text.at[i] - '0';
		if (digit < 0 || digit > 9 || __builtin_mul_overflow(*value, 10, value) ||
		    __builtin_add_overflow(*value, negative ? -digit : digit, value))
			return false;
	}
	return text.len > negative;
}

bool field_integer(const struct field *field, int64_t *value)
{
	if (field && field->kind == FIELD_STRING)
		return quoted_number(field->text, value);
	if (!field || field->kind != FIELD_NUMBER ||
	    (!field->negative && field->magnitude > INT64_MAX))
		return false;
	*value = field->negative ? (int64_t)-field->magnitude : (int64_t)field->magnitude;
	return true;
}

bool field_unsigned(const struct field *field, uint64_t *value)
{
	int64_t wide;

	if (!field_integer(field, &wide) || wide < 0)
		return false;
	*value = (uint64_t)wide;
	return true;
}

bool field_hash(const struct field *field, uint64_t *hash)
{
	if (!field)
		return false;
	if (field->kind == FIELD_NUMBER && !field->negative) {
		*hash = field->magnitude;
		return true;
	}
	if (field->kind != FIELD_STRING || field->text.len != 16)
		return false;
	*hash = 0;
	for (size_t i = 0; i < 16; i++) {
		char c = field->text.at[i];
		if (c >= '0' && c <= '9')
			*hash = *hash << 4 | (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			*hash = *hash << 4 | (uint64_t)(c - 'a' + 10);
		else
			return false;
	}
	return true;
}
