/* UTF-8 as it has to be. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stddef.h>

/* @return the length of the valid sequence at `s`, which starts with a byte >= 0x80; 0 when there is none
 * (overlong forms, surrogates and values past U+10FFFF are not valid). */
size_t utf8_sequence(const unsigned char *s, size_t len);

#endif
