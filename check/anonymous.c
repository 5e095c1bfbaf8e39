#include "check/anonymous.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <sys/random.h>

enum { ENDING = 6 }; /* longest ending of a file's name that is kept */

int anonymous_new(struct anonymous *anonymous)
{
	*anonymous = (struct anonymous){0};
	return getrandom(anonymous->secret, sizeof(anonymous->secret), 0) ==
			       (ssize_t)sizeof(anonymous->secret)
		       ? 0
		       : -1;
}

static uint64_t secret_hash(const struct anonymous *anonymous, struct text text)
{
	struct buf both = {0};

	buf_add(&both, anonymous->secret, sizeof(anonymous->secret));
	buf_add(&both, text.at, text.len);
	uint64_t hash =
		both.failed ? 0 : name_hash_in(NAME_HEX, (struct text){both.data, both.len});
	buf_free(&both);
	return hash;
}

void anonymous_word(const struct anonymous *anonymous, struct buf *out, const char *prefix,
		    struct text text)
{
	buf_addf(out, "%s%012llx", prefix,
		 (unsigned long long)secret_hash(anonymous, text) & 0xffffffffffff);
}

/* @return the length of an ending such as .h5, 0 when there is none to keep. */
static size_t ending(struct text name)
{
	for (size_t i = 1; i <= ENDING && i < name.len; i++) {
		char c = name.at[name.len - i];
		if (c == '.')
			return i > 1 ? i : 0;
		if (!isalnum((unsigned char)c))
			return 0;
	}
	return 0;
}

static void add_component(const struct anonymous *anonymous, struct buf *out, struct text name,
			  bool last)
{
	size_t kept = last ? ending(name) : 0;

	if (text_is(name, ".") || text_is(name, "..")) {
		buf_add(out, name.at, name.len);
		return;
	}
	anonymous_word(anonymous, out, "", (struct text){name.at, name.len - kept});
	buf_add(out, name.at + name.len - kept, kept);
}

static void add_path(const struct anonymous *anonymous, struct buf *out, struct text path)
{
	const char *at = path.at;
	const char *end = path.at + path.len;

	while (at < end) {
		if (*at == '/') {
			buf_add_char(out, *at++);
			continue;
		}
		const char *slash = memchr(at, '/', (size_t)(end - at));
		const char *stop = slash ? slash : end;
		add_component(anonymous, out, (struct text){at, (size_t)(stop - at)}, !slash);
		at = stop;
	}
}

static bool begins(struct text text, const char *with)
{
	return text.len >= strlen(with) && memcmp(text.at, with, strlen(with)) == 0;
}

void anonymous_name(const struct anonymous *anonymous, struct buf *out, struct text name,
		    enum name_kind kind)
{
	if (kind == NAME_HOST)
		anonymous_word(anonymous, out, "host-", name);
	else if (kind == NAME_TEXT)
		anonymous_word(anonymous, out, "cmd-", name);
	else if (begins(name, "pipe:[") || begins(name, "socket:["))
		anonymous_word(anonymous, out, name.at[0] == 'p' ? "pipe:" : "socket:", name);
	else
		add_path(anonymous, out, name);
}

static enum name_form form_of(const struct field *hash)
{
	if (hash->kind == FIELD_STRING)
		return NAME_HEX;
	return hash->magnitude <= UINT16_MAX ? NAME_SHORT : NAME_NIBBLES;
}

void anonymous_learn(struct anonymous *anonymous, const struct field *name,
		     const struct field *value, enum name_kind kind)
{
	struct buf text = {0};
	uint64_t old;

	if (!name || name->kind != FIELD_STRING || !field_hash(value, &old) ||
	    map_get(&anonymous->hashes, old))
		return;
	uint64_t *hash = malloc(sizeof(*hash));
	anonymous_name(anonymous, &text, name->text, kind);
	if (!hash || text.failed || map_put(&anonymous->hashes, old, hash) < 0) {
		free(hash);
		anonymous->no_memory = true;
	} else {
		*hash = name_hash_in(form_of(value), (struct text){text.data, text.len});
	}
	buf_free(&text);
}

void anonymous_hash(const struct anonymous *anonymous, struct buf *out, const struct field *hash)
{
	uint64_t old;

	if (!field_hash(hash, &old)) {
		buf_add_char(out, '0');
		return;
	}
	const uint64_t *known = map_get(&anonymous->hashes, old);
	enum name_form form = form_of(hash);
	uint64_t other = secret_hash(anonymous, (struct text){(const char *)&old, sizeof(old)});
	if (form == NAME_SHORT)
		other &= UINT16_MAX;
	name_add_hash(out, form, known ? *known : old ? other : 0);
}

void anonymous_free(struct anonymous *anonymous)
{
	map_free_values(&anonymous->hashes);
	*anonymous = (struct anonymous){0};
}
