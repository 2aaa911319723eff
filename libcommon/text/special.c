#include "libcommon/text/special.h"

#include <stdlib.h>
#include <string.h>

struct special { const char *s; uint32_t n, id; };

struct specials {
	struct special *items;     /* longest first */
	size_t n, cap;
	int only;                  /* the byte that all start with, -1 if there is none */
	uint8_t pair[8192];        /* bit b0*256 + b1: some token starts with these two bytes */
};

static int longer(const void *a, const void *b)
{
	const struct special *x = a, *y = b;

	return (x->n < y->n) - (x->n > y->n);
}

int specials_new(struct specials **out, const struct tokenizer *t, struct err *err)
{
	struct specials *s = mem_zalloc(1, sizeof(*s), err);
	uint32_t id, n, pair;
	enum token_kind kind;
	const char *text;

	*out = s;
	for (id = 0; s && id < tokenizer_vocab(t); id++) {
		text = tokenizer_token(t, id, &n, &kind);
		if (!text || kind != TOKEN_SPECIAL || n < 2)
			continue;
		if (grow(&s->items, &s->cap, s->n + 1, sizeof(*s->items), err) < 0) {
			specials_free(s);
			*out = s = NULL;
			break;
		}
		s->only = !s->n || s->only == (uint8_t)text[0] ? (uint8_t)text[0] : -1;
		s->items[s->n++] = (struct special){ text, n, id };
		pair = (uint32_t)(uint8_t)text[0] << 8 | (uint8_t)text[1];
		s->pair[pair >> 3] |= (uint8_t)(1 << (pair & 7));
	}
	if (s && s->n)
		qsort(s->items, s->n, sizeof(*s->items), longer);
	return s ? 0 : -1;
}

void specials_free(struct specials *s)
{
	if (s)
		free(s->items);
	free(s);
}

uint64_t specials_count(const struct specials *s, const char *text, size_t n, uint32_t *first)
{
	uint64_t count = 0;
	size_t i, k;

	for (i = 0; s->n && i + 1 < n; i++) {
		const char *next = s->only < 0 ? text + i : memchr(text + i, s->only, n - 1 - i);
		uint32_t pair;

		if (!next)
			break;
		i = (size_t)(next - text);
		pair = (uint32_t)(uint8_t)next[0] << 8 | (uint8_t)next[1];
		if (!(s->pair[pair >> 3] >> (pair & 7) & 1))
			continue;
		for (k = 0; k < s->n; k++)
			if (s->items[k].n <= n - i && !memcmp(s->items[k].s, text + i, s->items[k].n))
				break;
		if (k == s->n)
			continue;
		if (!count++)
			*first = s->items[k].id;
		i += s->items[k].n - 1;
	}
	return count;
}
