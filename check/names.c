#include "check/names.h"

#include <md5.h>
#include <stdint.h>

enum { KNOWN = 8 }; /* a value of the map is never NULL */

uint64_t name_hash_in(enum name_form form, struct text name)
{
	uint8_t digest[MD5_DIGEST_LENGTH];
	MD5_CTX md5;
	uint64_t hash = 0;

	MD5Init(&md5);
	MD5Update(&md5, (const uint8_t *)name.at, name.len);
	MD5Final(digest, &md5);
	switch (form) {
	case NAME_HEX:
		for (int i = 0; i < 16; i += 2)
			hash = hash << 8 | digest[i];
		break;
	case NAME_NIBBLES:
		for (int i = 0; i < 16; i++)
			hash = hash << 4 | digest[i] >> 4;
		break;
	case NAME_SHORT:
		hash = (uint64_t)digest[1] << 8 | digest[0];
		break;
	}
	return hash;
}

bool name_form_of(struct text name, const struct field *value, enum name_form *form)
{
	uint64_t hash;

	if (!field_hash(value, &hash))
		return false;
	if (value->kind == FIELD_STRING) {
		*form = NAME_HEX;
		return name_hash_in(NAME_HEX, name) == hash;
	}
	*form = hash <= UINT16_MAX ? NAME_SHORT : NAME_NIBBLES;
	return name_hash_in(*form, name) == hash;
}

void name_add_hash(struct buf *out, enum name_form form, uint64_t hash)
{
	if (form == NAME_HEX)
		buf_addf(out, "\"%016llx\"", (unsigned long long)hash);
	else
		buf_add_u64(out, hash);
}

int names_add(struct names *names, uint64_t hash, enum name_kind kind)
{
	uintptr_t kinds = KNOWN | names_kinds(names, hash) | kind;
	return map_put(&names->kinds, hash, (void *)kinds);
}

unsigned names_kinds(const struct names *names, uint64_t hash)
{
	return (unsigned)((uintptr_t)map_get(&names->kinds, hash) & (KNOWN - 1));
}

void names_free(struct names *names)
{
	map_free(&names->kinds);
}
