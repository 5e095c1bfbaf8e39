#include "writer/prefix.h"

#include <string.h>

const char *prefix_check(const char *prefix)
{
	for (const char *at = prefix; (at = strchr(at, '%')); at += 2) {
		if (!at[1] || !strchr("rhpj%", at[1]))
			return at;
	}
	return NULL;
}

static void add_value(struct buf *out, const char *value)
{
	for (const char *at = value ? value : PREFIX_NONE; *at; at++)
		buf_add_char(out, *at == '/' || (unsigned char)*at < ' ' ? '_' : *at);
}

void prefix_expand(struct buf *out, const char *prefix, const struct prefix_values *values)
{
	for (const char *at = prefix; *at; at++) {
		if (*at != '%') {
			buf_add_char(out, *at);
			continue;
		}
		switch (*++at) {
		case 'r':
			add_value(out, values->rank);
			break;
		case 'h':
			add_value(out, values->host);
			break;
		case 'p':
			add_value(out, values->pid);
			break;
		case 'j':
			add_value(out, values->job);
			break;
		case '\0':
			return;
		default:
			buf_add_char(out, *at);
		}
	}
}

void prefix_escape(struct buf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '%')
			buf_add_char(out, '%');
		buf_add_char(out, *text);
	}
}

size_t prefix_common(const char *prefix)
{
	for (const char *at = prefix; (at = strchr(at, '%')); at += 2) {
		if (at[1] != '%' && at[1] != 'h')
			return (size_t)(at - prefix);
	}
	return strlen(prefix);
}
