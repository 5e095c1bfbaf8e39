#include "writer/name.h"

#include <md5.h>
#include <stdlib.h>
#include <string.h>

struct name *name_new(const char *text, size_t len)
{
	struct name *name = malloc(sizeof(*name) + len + 1);
	if (!name)
		return NULL;
	name->refs = 1;
	name->hash = 0;
	name->len = len;
	if (len)
		memcpy(name->text, text, len);
	name->text[len] = '\0';
	return name;
}

struct name *name_ref(struct name *name)
{
	if (name)
		name->refs++;
	return name;
}

void name_unref(struct name *name)
{
	if (name && --name->refs == 0)
		free(name);
}

uint64_t name_hash_text(const char *text, size_t len)
{
	uint8_t digest[MD5_DIGEST_LENGTH];
	uint64_t hash = 0;
	MD5_CTX md5;

	MD5Init(&md5);
	MD5Update(&md5, (const uint8_t *)text, len);
	MD5Final(digest, &md5);
	for (size_t i = 0; i < sizeof(digest); i += 2)
		hash = hash << 8 | digest[i];
	return hash;
}

uint64_t name_hash(struct name *name)
{
	if (!name->hash)
		name->hash = name_hash_text(name->text, name->len);
	return name->hash;
}
