#include "libcommon/text/pretok.h"

#include <stdint.h>
#include <string.h>

#include "libcommon/text/unicode_tables.h"

/* Classes of ASCII in one load: this is the hot path of all splitters. */
enum { O = UNI_OTHER, L = UNI_LETTER, N = UNI_NUMBER, S = UNI_SPACE };
static const uint8_t ascii[128] = {
	['\t'] = S, ['\n'] = S, ['\v'] = S, ['\f'] = S, ['\r'] = S, [' '] = S,
	['0'] = N, ['1'] = N, ['2'] = N, ['3'] = N, ['4'] = N, ['5'] = N,
	['6'] = N, ['7'] = N, ['8'] = N, ['9'] = N,
	['A'] = L, ['B'] = L, ['C'] = L, ['D'] = L, ['E'] = L, ['F'] = L,
	['G'] = L, ['H'] = L, ['I'] = L, ['J'] = L, ['K'] = L, ['L'] = L,
	['M'] = L, ['N'] = L, ['O'] = L, ['P'] = L, ['Q'] = L, ['R'] = L,
	['S'] = L, ['T'] = L, ['U'] = L, ['V'] = L, ['W'] = L, ['X'] = L,
	['Y'] = L, ['Z'] = L,
	['a'] = L, ['b'] = L, ['c'] = L, ['d'] = L, ['e'] = L, ['f'] = L,
	['g'] = L, ['h'] = L, ['i'] = L, ['j'] = L, ['k'] = L, ['l'] = L,
	['m'] = L, ['n'] = L, ['o'] = L, ['p'] = L, ['q'] = L, ['r'] = L,
	['s'] = L, ['t'] = L, ['u'] = L, ['v'] = L, ['w'] = L, ['x'] = L,
	['y'] = L, ['z'] = L,
};

static inline unsigned class_at(const char *p, uint32_t *n)
{
	uint8_t c = (uint8_t)*p;

	*n = 1;
	return c < 0x80 ? ascii[c] : uni_class(uni_at(p, n));
}

static inline bool is_nl(char c)
{
	return c == '\n' || c == '\r';
}

/* End of the run of class k at p. */
static inline const char *run(const char *p, const char *end, unsigned k)
{
	uint32_t n;

	while (p < end && class_at(p, &n) == k)
		p += n;
	return p;
}

/*
 * Rust's char::is_numeric, which Digits asks: \p{N}, and what Unicode 17 added to it (tokenizers
 * 0.23 is built with such a Rust, while its regular expressions know Unicode 16).
 */
static inline bool is_numeric(const char *p, uint32_t *n)
{
	unsigned k = class_at(p, n);
	uint32_t c;

	if (k == N)
		return true;
	if (k != O || *n < 4)
		return false;
	c = uni_at(p, n);
	return c - 0x11DE0u < 10 || c - 0x16FF4u < 3;
}

/* Length of 's 't 're 've 'm 'll 'd at p, or 0.  fold: (?i), under which U+017F is an s too. */
static inline unsigned contraction(const char *p, const char *end, bool fold)
{
	char a, b;

	if (end - p < 2 || *p != '\'')
		return 0;
	a = p[1];
	b = end - p > 2 ? p[2] : 0;
	if (fold && a == '\xC5' && b == '\xBF')
		return 3;
	if (fold) {
		a |= 0x20;
		b |= 0x20;
		if ((p[1] & 0xC0) != 0x40)    /* not a letter before |= */
			return 0;
		if (end - p > 2 && (p[2] & 0xC0) != 0x40)
			b = 0;
	}
	if (a == 's' || a == 't' || a == 'm' || a == 'd')
		return 2;
	if (end - p > 2 && (((a == 'r' || a == 'v') && b == 'e') || (a == 'l' && b == 'l')))
		return 3;
	return 0;
}

/*
 * \s+(?!\S)|\s+ for the run of spaces at p: all of it if the text ends there, else all but its last
 * character, else that one.  digits: what follows counts as an end when it is a number.
 */
static inline const char *spaces(const char *p, const char *end, bool digits)
{
	const char *q = p, *last = p;
	uint32_t n;

	while (q < end && class_at(q, &n) == S) {
		last = q;
		q += n;
	}
	return q == end || last == p || (digits && is_numeric(q, &n)) ? q : last;
}

/*
 * 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 * digits: each number stands alone (Digits goes before).
 */
static inline const char *gpt2_like(const char *p, const char *end, bool digits)
{
	const char *q = p;
	uint32_t n;
	unsigned k, c = contraction(p, end, false);

	if (c)
		return p + c;
	if (*p == ' ' && end - p > 1)
		q = p + 1;
	k = class_at(q, &n);
	if (k == S)
		return spaces(p, end, digits);
	if (!digits)
		return run(q + n, end, k);
	if (is_numeric(q, &n))
		return q > p ? q : q + n;
	for (q += n; q < end && class_at(q, &n) == k && (n < 4 || !is_numeric(q, &n)); )
		q += n;
	return q;
}

static const char *gpt2(const char *p, const char *end)
{
	return gpt2_like(p, end, false);
}

static const char *smollm2(const char *p, const char *end)
{
	return gpt2_like(p, end, true);
}

/*
 * (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|
 *  ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
 * most: how many digits a piece may hold.
 */
static inline const char *llama3_like(const char *p, const char *end, int most)
{
	const char *q, *nl;
	uint32_t n, m;
	unsigned k = class_at(p, &n), c;

	if (k == L)
		return run(p + n, end, L);
	if (k == N) {
		for (q = p + n; --most && q < end && class_at(q, &n) == N; )
			q += n;
		return q;
	}
	if (*p == '\'' && (c = contraction(p, end, true)))
		return p + c;
	q = p + n;
	if (q < end && !is_nl(*p) && class_at(q, &m) == L)
		return run(q + m, end, L);
	if (k == O || (*p == ' ' && q < end && class_at(q, &m) == O)) {
		for (q = run(q, end, O); q < end && is_nl(*q); )
			q++;
		return q;
	}
	for (q = p, nl = NULL; q < end && class_at(q, &n) == S; q += n)
		if (is_nl(*q))
			nl = q;
	return nl ? nl + 1 : spaces(p, end, false);
}

static const char *llama3(const char *p, const char *end)
{
	return llama3_like(p, end, 3);
}

static const char *qwen2(const char *p, const char *end)
{
	return llama3_like(p, end, 1);
}

#define REGEX_LIKE_LLAMA3(numbers) \
	"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" numbers \
	"| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
const struct pretok pretoks[] = {
	{ "gpt2", gpt2,
	  "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+" },
	{ "llama3", llama3, REGEX_LIKE_LLAMA3("\\p{N}{1,3}") },
	{ "qwen2", qwen2, REGEX_LIKE_LLAMA3("\\p{N}") },
	{ "smollm2", smollm2, NULL },
	{ NULL, NULL, NULL },
};

const struct pretok_gguf pretok_ggufs[] = {
	{ "gpt-2", "gpt2", false, false, false },
	{ "gpt2", "gpt2", false, false, false },
	{ "llama-bpe", "llama3", false, true, true },
	{ "llama3", "llama3", false, true, true },
	{ "llama-v3", "llama3", false, true, true },
	{ "qwen2", "qwen2", true, false, false },
	{ "deepseek-r1-qwen", "qwen2", true, false, false },
	{ "smollm", "smollm2", false, false, false },
	{ "starcoder", "smollm2", false, false, false },
	{ "refact", "smollm2", false, false, false },
	{ NULL, NULL, false, false, false },
};

const struct pretok *pretok_find(const char *name)
{
	const struct pretok *p;

	for (p = pretoks; p->name; p++)
		if (!strcmp(p->name, name))
			return p;
	return NULL;
}
