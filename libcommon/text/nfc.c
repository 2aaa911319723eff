#include "libcommon/text/nfc.h"

#include <stdlib.h>
#include <string.h>

#include "libcommon/text/unicode_tables.h"
#include "libcommon/utf8.h"

/* Hangul syllables: the names of the Unicode Standard, 3.12. */
enum { S_BASE = 0xAC00, L_BASE = 0x1100, V_BASE = 0x1161, T_BASE = 0x11A7 };
enum { L_COUNT = 19, V_COUNT = 21, T_COUNT = 28 };
enum { S_COUNT = L_COUNT * V_COUNT * T_COUNT };

static int push(struct nfc *x, uint32_t c, struct err *err)
{
	uint8_t f = uni_nfc(c);

	if (grow(&x->chars, &x->chars_cap, x->nchars + 1, sizeof(*x->chars), err) < 0)
		return -1;
	x->chars[x->nchars++] = (struct nfc_char){ c, f == 255 ? 0 : f };
	return 0;
}

static int push_decomposed(struct nfc *x, uint32_t c, struct err *err)
{
	size_t lo = 0, hi = uni_ndecomps, mid, i;
	uint32_t s = c - S_BASE;

	if (s < S_COUNT) {
		if (push(x, L_BASE + s / (V_COUNT * T_COUNT), err) < 0 ||
		    push(x, V_BASE + s / T_COUNT % V_COUNT, err) < 0)
			return -1;
		return s % T_COUNT ? push(x, T_BASE + s % T_COUNT, err) : 0;
	}
	while (lo < hi) {
		mid = (lo + hi) / 2;
		if (uni_decomps[mid].c < c)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == uni_ndecomps || uni_decomps[lo].c != c)
		return push(x, c, err);
	for (i = 0; i < uni_decomps[lo].n; i++)
		if (push(x, uni_decomp_pool[uni_decomps[lo].at + i], err) < 0)
			return -1;
	return 0;
}

/* What a b composes to; 0: nothing. */
static uint32_t compose_pair(uint32_t a, uint32_t b)
{
	size_t lo = 0, hi = uni_npairs, mid;

	if (a - L_BASE < L_COUNT && b - V_BASE < V_COUNT)
		return S_BASE + ((a - L_BASE) * V_COUNT + (b - V_BASE)) * T_COUNT;
	if (a - S_BASE < S_COUNT && (a - S_BASE) % T_COUNT == 0 && b - T_BASE - 1 < T_COUNT - 1)
		return a + (b - T_BASE);
	while (lo < hi) {
		mid = (lo + hi) / 2;
		if (uni_pairs[mid].a < a || (uni_pairs[mid].a == a && uni_pairs[mid].b < b))
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == uni_npairs || uni_pairs[lo].a != a || uni_pairs[lo].b != b)
		return 0;
	return uni_pairs[lo].c;
}

/*
 * Canonical order: each run of marks (ccc > 0) sorted by class, equal classes in their order.  A
 * counting sort, as a hostile text is one run of a million marks.
 */
static int reorder(struct nfc *x, struct err *err)
{
	size_t i, j, end, n = x->nchars;
	struct nfc_char *c, *to;

	for (i = 0; i < n; i = end + 1) {
		size_t start[257] = {0};

		for (end = i; end < n && x->chars[end].ccc; end++)
			start[x->chars[end].ccc + 1]++;
		if (end - i < 2)
			continue;
		if (grow(&x->chars, &x->chars_cap, n + (end - i), sizeof(*x->chars), err) < 0)
			return -1;
		c = x->chars + i;
		to = x->chars + n;
		for (j = 1; j < 257; j++)
			start[j] += start[j - 1];
		for (j = 0; j < end - i; j++)
			to[start[c[j].ccc]++] = c[j];
		memcpy(c, to, (end - i) * sizeof(*c));
	}
	return 0;
}

static void compose(struct nfc *x)
{
	struct nfc_char *c = x->chars;
	size_t i, out = 0, starter = SIZE_MAX;
	uint32_t made;

	for (i = 0; i < x->nchars; i++) {
		/* Blocked: a mark of the same or a higher class stands between. */
		if (starter != SIZE_MAX && (out - 1 == starter || c[out - 1].ccc < c[i].ccc) &&
		    (made = compose_pair(c[starter].c, c[i].c))) {
			c[starter].c = made;
			continue;
		}
		if (!c[i].ccc)
			starter = out;
		c[out++] = c[i];
	}
	x->nchars = out;
}

/* Normalise in[from .. to), which nothing outside can change, and note it if the bytes differ. */
static int patch(struct nfc *x, const char *in, size_t from, size_t to, struct err *err)
{
	size_t p, at = x->out.n, i;
	uint32_t n;

	x->nchars = 0;
	for (p = from; p < to; p += n)
		if (push_decomposed(x, uni_at(in + p, &n), err) < 0)
			return -1;
	if (reorder(x, err) < 0)
		return -1;
	compose(x);
	for (i = 0; i < x->nchars && buf_room(&x->out, 4); i++)
		x->out.n += utf8_put(x->out.p + x->out.n, x->chars[i].c);
	if (buf_ok(&x->out, err) < 0)
		return -1;
	if (x->out.n - at == to - from && !memcmp(x->out.p + at, in + from, to - from))
		return 0;
	if (grow(&x->patches, &x->cap, x->n + 1, sizeof(*x->patches), err) < 0)
		return -1;
	x->patches[x->n++] = (struct nfc_patch){ (uint32_t)at, (uint32_t)(x->out.n - at),
		(uint32_t)from, (uint32_t)(to - from) };
	return 0;
}

/*
 * The next place at or after p whose character may have to change; n if there is none.  *safe: the
 * last character before it.
 */
static size_t next_unsafe(const char *in, size_t p, size_t n, size_t *safe)
{
	uint32_t len;
	uint64_t w;

	while (p < n) {
		if (n - p >= 8) {
			memcpy(&w, in + p, 8);
			if (!(w & 0x8080808080808080u)) {
				*safe = p + 7;
				p += 8;
				continue;
			}
		}
		if ((unsigned char)in[p] < 0xCC) { /* below U+0300 */
			*safe = p;
			p += (unsigned char)in[p] < 0x80 ? 1 : 2;
			continue;
		}
		if (uni_nfc(uni_at(in + p, &len)))
			return p;
		*safe = p;
		p += len;
	}
	return n;
}

int nfc(struct nfc *x, const char *in, size_t n, struct err *err)
{
	size_t safe = 0, copied = 0, p = next_unsafe(in, 0, n, &safe), end;
	uint32_t len;

	if (p == n)
		return 0;
	x->n = 0;
	buf_clear(&x->out);
	while (p < n) {
		/* From the last character that is stable by itself up to the next such one. */
		buf_put(&x->out, in + copied, safe - copied);
		for (end = p; end < n && uni_nfc(uni_at(in + end, &len)); end += len)
			;
		if (patch(x, in, safe, end, err) < 0)
			return -1;
		copied = safe = end;
		p = next_unsafe(in, end, n, &safe);
	}
	buf_put(&x->out, in + copied, n - copied);
	if (buf_ok(&x->out, err) < 0)
		return -1;
	return x->n > 0;
}

uint32_t nfc_source(const struct nfc *x, uint32_t at, bool up, size_t *hint)
{
	const struct nfc_patch *p;
	size_t i = *hint;

	/* The last patch that begins before `at`. */
	while (i < x->n && x->patches[i].at < at)
		i++;
	*hint = i ? i - 1 : 0;
	if (!i)
		return at;
	p = &x->patches[i - 1];
	if (at >= p->at + p->n)
		return p->from + p->m + (at - p->at - p->n);
	return up ? p->from + p->m : p->from;
}

void nfc_release(struct nfc *x)
{
	buf_release(&x->out);
	free(x->patches);
	free(x->chars);
	*x = (struct nfc){0};
}
