#include "base/utf8.h"

size_t utf8_sequence(const unsigned char *s, size_t len)
{
	unsigned char low = 0x80;
	unsigned char high = 0xbf;
	size_t want;

	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		want = 2;
	else if (s[0] >= 0xe0 && s[0] <= 0xef)
		want = 3;
	else if (s[0] >= 0xf0 && s[0] <= 0xf4)
		want = 4;
	else
		return 0;
	if (len < want)
		return 0;
	if (s[0] == 0xe0)
		low = 0xa0;
	else if (s[0] == 0xed)
		high = 0x9f;
	else if (s[0] == 0xf0)
		low = 0x90;
	else if (s[0] == 0xf4)
		high = 0x8f;
	if (s[1] < low || s[1] > high)
		return 0;
	for (size_t i = 2; i < want; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	}
	return want;
}
