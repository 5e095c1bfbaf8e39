/* A string that the trace refers to by its hash: a path, a host, a command line. */
#ifndef WRITER_NAME_H
#define WRITER_NAME_H

#include <stddef.h>
#include <stdint.h>

/* Reference-counted, immutable; used by one thread at a time. */
struct name {
	unsigned refs;
	uint64_t hash; /* 0 until name_hash computed it */
	size_t len;
	char text[]; /* raw bytes, NUL-terminated */
};

/* @return a new name with one reference, NULL with errno ENOMEM. */
struct name *name_new(const char *text, size_t len);

/* Takes another reference; NULL is allowed. */
struct name *name_ref(struct name *name);

/* Gives a reference back; NULL is allowed. */
void name_unref(struct name *name);

/* The hash that stands in the trace: bytes 0, 2, 4, … 14 of the MD5 of the text, most significant
 * first, so that printing it with 16 hexadecimal digits gives the trace's spelling (format of
 * DFTracer 1.0.9 and later). */
uint64_t name_hash(struct name *name);

/* The same of bytes that are no name. */
uint64_t name_hash_text(const char *text, size_t len);

#endif
