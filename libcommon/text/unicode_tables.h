#ifndef TUNE_UNICODE_TABLES_H
#define TUNE_UNICODE_TABLES_H
/*
 * unicode_tables: what the splitters and NFC know of characters, as Hugging Face tokenizers has it;
 * unicode_gen.py says from where.
 */
#include <stddef.h>
#include <stdint.h>

enum uni_class { UNI_OTHER, UNI_LETTER, UNI_NUMBER, UNI_SPACE };   /* none, \p{L}, \p{N}, \s */
/* Full canonical decomposition: uni_decomp_pool[at .. at + n). */
struct uni_decomp { uint32_t c; uint16_t at, n; };
struct uni_pair { uint32_t a, b, c; };                        /* a b composes to c */

extern const uint8_t uni_class_index[4352], uni_class_block[];   /* blocks of 256, 2 bits each */
extern const uint8_t uni_nfc_index[8704], uni_nfc_block[];       /* blocks of 128, a byte each */
extern const struct uni_decomp uni_decomps[];                 /* by c */
extern const size_t uni_ndecomps;
extern const uint32_t uni_decomp_pool[];
extern const struct uni_pair uni_pairs[];                     /* by a, then b */
extern const size_t uni_npairs;

static inline enum uni_class uni_class(uint32_t c)
{
	size_t at = (size_t)uni_class_index[c >> 8] * 64 + (c >> 2 & 63);

	return uni_class_block[at] >> (c & 3) * 2 & 3;
}

/* 0: c is in NFC whatever stands around it.  Else its combining class; 255 if that is 0. */
static inline uint8_t uni_nfc(uint32_t c)
{
	return uni_nfc_block[(size_t)uni_nfc_index[c >> 7] * 128 + (c & 127)];
}

/* The character at p, valid UTF-8; *n is its length in bytes. */
static inline uint32_t uni_at(const char *p, uint32_t *n)
{
	const uint8_t *s = (const uint8_t *)p;

	if (s[0] < 0x80) {
		*n = 1;
		return s[0];
	}
	if (s[0] < 0xE0) {
		*n = 2;
		return (s[0] & 31u) << 6 | (s[1] & 63u);
	}
	if (s[0] < 0xF0) {
		*n = 3;
		return (s[0] & 15u) << 12 | (s[1] & 63u) << 6 | (s[2] & 63u);
	}
	*n = 4;
	return (s[0] & 7u) << 18 | (s[1] & 63u) << 12 | (s[2] & 63u) << 6 | (s[3] & 63u);
}
#endif
