#ifndef TUNE_UTF8_H
#define TUNE_UTF8_H
/*
 * utf8: well-formed sequences (Unicode 15, table 3-7: no overlong forms, no surrogates, nothing
 * above U+10FFFF).
 */
#include <stddef.h>
#include <stdint.h>

struct buf;

/* Append p[0..n) with each ill-formed sequence as one U+FFFD. */
void utf8_repair(const char *p, size_t n, struct buf *out);

/* Bytes of the well-formed sequence at p, or 0 if there is none before end. */
static inline size_t utf8_len(const char *p, const char *end)
{
	const unsigned char *s = (const unsigned char *)p;
	size_t n = (size_t)(end - p);

	if (n < 1 || (s[0] >= 0x80 && s[0] < 0xc2) || s[0] > 0xf4)
		return 0;
	if (s[0] < 0x80)
		return 1;
	if (n < 2 || (s[1] & 0xc0) != 0x80)
		return 0;
	if (s[0] < 0xe0)
		return 2;
	if (n < 3 || (s[2] & 0xc0) != 0x80)
		return 0;
	if (s[0] < 0xf0)
		return (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ? 0 : 3;
	if (n < 4 || (s[3] & 0xc0) != 0x80)
		return 0;
	return (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f) ? 0 : 4;
}

/*
 * Write code point c (a scalar value) at out, which has room for 4 bytes; returns the bytes
 * written.
 */
static inline size_t utf8_put(char *out, uint32_t c)
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 63));
		out[2] = (char)(0x80 | (c & 63));
		return 3;
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 63));
	out[2] = (char)(0x80 | (c >> 6 & 63));
	out[3] = (char)(0x80 | (c & 63));
	return 4;
}
#endif
