/* Names without what they say: the same name becomes the same word everywhere in a run, and nobody who
 * has not the run's secret can find out which it was. */
#ifndef CHECK_ANONYMOUS_H
#define CHECK_ANONYMOUS_H

#include "base/map.h"
#include "check/names.h"

struct anonymous {
	unsigned char secret[16];
	struct map hashes; /* of names seen: what stands in their place */
	bool no_memory;
};

/* @return 0, or -1 with errno when there is no secret to be had. */
int anonymous_new(struct anonymous *anonymous);

/* Learns the name of a metadata line, before its hash is asked for. `file`: it is a path. */
void anonymous_learn(struct anonymous *anonymous, const struct field *name,
		     const struct field *value, enum name_kind kind);

/* Appends what stands for a path, a host, a text. They are words that JSON takes as they are. */
void anonymous_name(const struct anonymous *anonymous, struct buf *out, struct text name,
		    enum name_kind kind);

/* Appends what stands for a hash. */
void anonymous_hash(const struct anonymous *anonymous, struct buf *out, const struct field *hash);

/* Appends a word for any text, behind a prefix. */
void anonymous_word(const struct anonymous *anonymous, struct buf *out, const char *prefix,
		    struct text text);

void anonymous_free(struct anonymous *anonymous);

#endif
