/* tok: fills a tokenizer and makes its tables. */
#include "libcommon/text/tok.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "libcommon/text/nfc.h"
#include "libcommon/text/unicode_tables.h"

void *tok_alloc(size_t n, size_t size, struct err *err)
{
	enum { HUGE = 2 << 20 };
	size_t bytes;
	void *p;

	if (n > SIZE_MAX / 2 / size || n * size < HUGE)
		return mem_zalloc(n, size, err);
	bytes = (n * size + HUGE - 1) / HUGE * HUGE;
	if (!(p = aligned_alloc(HUGE, bytes))) {
		err_oom(err, bytes);
		return NULL;
	}
	/*
	 * Random reads wait for page tables before they wait for memory.  A wish: its result is
	 * nothing.
	 */
	(void)madvise(p, bytes, MADV_HUGEPAGE);
	memset(p, 0, n * size);
	return p;
}

/* GPT-2's alphabet: printable Latin-1 stands for itself, the other 68 bytes for U+0100 and on. */
static bool printable(unsigned b)
{
	return (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xFF && b != 0xAD);
}

uint32_t alphabet_char(uint8_t b)
{
	if (printable(b))
		return b;
	if (b <= ' ')
		return 0x100u + b;
	return b == 0xAD ? 0x143 : 0x121u + (b - 0x7Fu);
}

int alphabet_byte(uint32_t c)
{
	if (c < 0x100)
		return printable(c) ? (int)c : -1;
	if (c <= 0x120)
		return (int)(c - 0x100);
	return c <= 0x142 ? (int)(c - 0x121 + 0x7F) : c == 0x143 ? 0xAD : -1;
}

/*
 * Append the bytes that text spells; *raw and the text itself if a character is not in the
 * alphabet.
 */
static void unspell(struct buf *b, const char *text, size_t n, bool *raw)
{
	size_t i;
	uint32_t len;
	char *to = buf_room(b, n);
	int byte = 0;

	*raw = false;
	if (!to)
		return;
	for (i = 0; i < n && byte >= 0; i += len) {
		byte = alphabet_byte(uni_at(text + i, &len));
		*to++ = (char)byte;
	}
	*raw = byte < 0;
	if (*raw)
		buf_put(b, text, n);
	else
		b->n = (size_t)(to - b->p);
}

static uint64_t bytes_hash(const char *p, size_t n, bool raw)
{
	return hash64(p, n) ^ (raw ? 0x9E3779B97F4A7C15u : 0);
}

int tok_token(struct tokenizer *t, uint32_t id, const char *text, size_t n, enum token_kind kind,
    bool model, const char *where, struct err *err)
{
	size_t old = t->tok_cap;
	struct tok *x;

	if (id >= TOK_IDS_MAX)
		return err_set(err, EX_DATAERR, "%s: id %lu is above the limit of %d", where,
		    (unsigned long)id, TOK_IDS_MAX - 1);
	if (t->bytes.n + n > UINT32_MAX)
		return err_set(err, EX_DATAERR, "%s: more than 4 GiB of tokens", where);
	if (grow(&t->tok, &t->tok_cap, (size_t)id + 1, sizeof(*t->tok), err) < 0)
		return -1;
	for (; old < t->tok_cap; old++)
		t->tok[old] = (struct tok){ .kind = TOKEN_UNUSED };
	x = &t->tok[id];
	if (x->kind != TOKEN_UNUSED)
		return err_set(
		    err, EX_DATAERR, "%s: id %lu stands for two tokens", where, (unsigned long)id);
	*x = (struct tok){ (uint32_t)t->bytes.n, 0, (uint8_t)kind, model, !model };
	if (model)
		unspell(&t->bytes, text, n, &x->raw);
	else
		buf_put(&t->bytes, text, n);
	x->n = (uint32_t)(t->bytes.n - x->at);
	if (id >= t->vocab)
		t->vocab = id + 1;
	return buf_ok(&t->bytes, err);
}

static uint32_t find(const struct tokenizer *t, uint64_t h, const char *p, size_t n, bool raw)
{
	uint64_t s;
	size_t i;

	for (i = h & t->by_bytes_mask; (s = t->by_bytes[i]); i = (i + 1) & t->by_bytes_mask) {
		const struct tok *x = &t->tok[(uint32_t)s - 1];

		if (s >> 32 == h >> 32 && x->n == n && x->raw == raw &&
		    !memcmp(t->bytes.p + x->at, p, n))
			return (uint32_t)s - 1;
	}
	return TOK_NONE;
}

static uint32_t lookup(const struct tokenizer *t, const char *p, size_t n, bool raw)
{
	return find(t, bytes_hash(p, n, raw), p, n, raw);
}

/* A spelling on its way to its id: hashed, the slot on its way from memory. */
struct wanted {
	char small[256];
	struct buf bytes;
	bool raw;
	uint64_t hash;
};

static void want(const struct tokenizer *t, struct wanted *w, const char *text, size_t n)
{
	w->bytes = (struct buf){ n < sizeof(w->small) ? w->small : NULL, 0,
		n < sizeof(w->small) ? sizeof(w->small) : 0, false };
	unspell(&w->bytes, text, n, &w->raw);
	if (w->bytes.oom)
		return;
	w->hash = bytes_hash(w->bytes.p, w->bytes.n, w->raw);
	__builtin_prefetch(&t->by_bytes[w->hash & t->by_bytes_mask]);
}

static uint32_t get(const struct tokenizer *t, struct wanted *w)
{
	uint32_t id = w->bytes.oom ? TOK_NONE : find(t, w->hash, w->bytes.p, w->bytes.n, w->raw);

	if (w->bytes.p != w->small)
		buf_release(&w->bytes);
	return id;
}

uint32_t tok_lookup(const struct tokenizer *t, const char *text, size_t n)
{
	struct wanted w;

	want(t, &w, text, n);
	return get(t, &w);
}

uint32_t tok_lookup_bytes(const struct tokenizer *t, const char *p, size_t n)
{
	return lookup(t, p, n, false);
}

int tok_index(struct tokenizer *t, struct err *err)
{
	size_t cap = 16, i;
	uint32_t id;
	char b;

	while (cap < (size_t)t->vocab * 2)
		cap *= 2;
	if (!(t->by_bytes = tok_alloc(cap, sizeof(*t->by_bytes), err)))
		return -1;
	t->by_bytes_mask = cap - 1;
	for (id = 0; id < t->vocab; id++) {
		const struct tok *x = &t->tok[id];
		const char *p = t->bytes.p + x->at;
		uint64_t h;

		if (!x->model || x->kind == TOKEN_UNUSED)
			continue;
		h = bytes_hash(p, x->n, x->raw);
		if (find(t, h, p, x->n, x->raw) != TOK_NONE)
			return err_set(err, EX_DATAERR,
			    "%s: the token of id %lu stands in the vocabulary twice", t->source,
			    (unsigned long)id);
		for (i = h & t->by_bytes_mask; t->by_bytes[i]; )
			i = (i + 1) & t->by_bytes_mask;
		t->by_bytes[i] = (h >> 32) << 32 | (id + 1);
	}
	for (i = 0; i < 256; i++) {
		b = (char)i;
		t->byte_id[i] = lookup(t, &b, 1, false);
	}
	return 0;
}

/* The token whose bytes are those of left and right; it often is `near` or the next. */
static uint32_t concatenated(const struct tokenizer *t, const struct tok *left,
    const struct tok *right, uint32_t near, struct buf *scratch)
{
	const char *p = t->bytes.p;
	uint32_t id;

	for (id = near; id < t->vocab && id < near + 2; id++) {
		const struct tok *x = &t->tok[id];

		if (x->model && !x->raw && x->n == left->n + right->n &&
		    !memcmp(p + x->at, p + left->at, left->n) &&
		    !memcmp(p + x->at + left->n, p + right->at, right->n))
			return id;
	}
	buf_clear(scratch);
	buf_put(scratch, p + left->at, left->n);
	buf_put(scratch, p + right->at, right->n);
	return scratch->oom ? TOK_NONE : lookup(t, scratch->p, scratch->n, false);
}

int tok_merge(struct tokenizer *t, const char *left, size_t nl, const char *right, size_t nr,
    const char *where, struct err *err)
{
	struct merge m = { .made = TOK_NONE };
	struct wanted wl, wr;
	uint32_t near = t->nmerges ? t->merges[t->nmerges - 1].made : 0;
	const struct tok *l, *r;
	struct buf both = {0};

	want(t, &wl, left, nl);
	want(t, &wr, right, nr);
	m.left = get(t, &wl);
	m.right = get(t, &wr);
	if (m.left != TOK_NONE && m.right != TOK_NONE) {
		l = &t->tok[m.left];
		r = &t->tok[m.right];
		if (l->raw || r->raw) {
			buf_put(&both, left, nl);
			buf_put(&both, right, nr);
			m.made = both.oom ? TOK_NONE : tok_lookup(t, both.p, both.n);
		} else {
			m.made = concatenated(t, l, r, near, &both);
		}
		buf_release(&both);
	}
	if (m.made == TOK_NONE)
		return err_set(err, EX_DATAERR,
		    "%s[%zu]: '%.*s' and '%.*s': not tokens, or what they make is none", where,
		    t->nmerges, (int)(nl < 200 ? nl : 200), left, (int)(nr < 200 ? nr : 200),
		    right);
	if (t->nmerges >= INT32_MAX)
		return err_set(err, EX_DATAERR, "%s: more than 2^31 merges", where);
	if (grow(&t->merges, &t->merges_cap, t->nmerges + 1, sizeof(*t->merges), err) < 0)
		return -1;
	t->merges[t->nmerges++] = m;
	t->tok[m.left].merged = t->tok[m.right].merged = t->tok[m.made].merged = true;
	return 0;
}

const struct added *tok_find_added(const struct tokenizer *t, const char *text, size_t n)
{
	size_t k;
	int j;

	for (j = 0; j < 2 && n; j++) {
		const struct trie *x = &t->trie[j];
		uint32_t at = x->n ? x->first[(uint8_t)text[0]] : TOK_NONE;

		for (k = 1; k < n && at != TOK_NONE; k++)
			for (at = x->nodes[at].child;
			     at != TOK_NONE && x->nodes[at].byte != (uint8_t)text[k];)
				at = x->nodes[at].next;
		if (at != TOK_NONE && x->nodes[at].added != TOK_NONE)
			return &t->added[x->nodes[at].added];
	}
	return NULL;
}

/*
 * Make the text of added token a the bytes of its token, which as a model token of the byte-level
 * alphabet stands for others.
 */
static int own_bytes(struct tokenizer *t, const struct added *a, const char *where, struct err *err)
{
	struct tok *x = &t->tok[a->id];

	if (x->raw || (x->n == a->n && !memcmp(t->bytes.p + x->at, a->text, a->n)))
		return 0;
	if (x->n == 1 || x->merged)
		return err_set(err, EX_DATAERR,
		    "%s: '%s' is also the spelling of a token that text is made of",
		    where, a->text);
	x->at = (uint32_t)t->bytes.n;
	x->n = a->n;
	x->raw = true;
	x->model = false;
	buf_put(&t->bytes, a->text, a->n);
	return t->bytes.n > UINT32_MAX
	    ? err_set(err, EX_DATAERR, "%s: more than 4 GiB of tokens", where)
	    : buf_ok(&t->bytes, err);
}

int tok_added(struct tokenizer *t, const struct added *a, const char *where, struct err *err)
{
	struct added x = *a;
	struct nfc norm = {0};
	int rc = -1, changed;

	if (!a->n || tok_find_added(t, a->text, a->n))
		return 0;
	if (a->n > TOK_ADDED_BYTES_MAX)
		return err_set(err, EX_DATAERR, "%s: an added token of %lu bytes; the limit is %d",
		    where, (unsigned long)a->n, TOK_ADDED_BYTES_MAX);
	if (own_bytes(t, a, where, err) < 0)
		return -1;
	if (a->normalized && t->nfc) { /* it is looked for in normalised text */
		if ((changed = nfc(&norm, a->text, a->n, err)) < 0)
			goto done;
		if (changed) {
			x.text = norm.out.p;
			x.n = (uint32_t)norm.out.n;
		}
	}
	if (!(x.text = arena_strndup(&t->arena, x.text, x.n))) {
		err_oom(err, x.n);
		goto done;
	}
	if (grow(&t->added, &t->added_cap, t->nadded + 1, sizeof(*t->added), err) < 0 ||
	    trie_add(&t->trie[a->normalized], x.text, x.n, (uint32_t)t->nadded, err) < 0)
		goto done;
	t->added[t->nadded++] = x;
	t->tok[x.id].kind = x.special ? TOKEN_SPECIAL : TOKEN_ADDED;
	rc = 0;
done:
	nfc_release(&norm);
	return rc;
}

int tok_stop(struct tokenizer *t, int64_t id, const char *where, struct err *err)
{
	size_t i;

	if (id < 0 || id >= (int64_t)t->vocab)
		return err_set(err, EX_DATAERR,
		    "%s: id %lld is not below the vocabulary's size %lu", where, (long long)id,
		    (unsigned long)t->vocab);
	for (i = 0; i < t->nstops; i++)
		if (t->stops[i] == id)
			return 0;
	if (t->nstops == TOK_STOPS_MAX)
		return err_set(err, EX_DATAERR, "%s: more than %d tokens that end an answer", where,
		    TOK_STOPS_MAX);
	t->stops[t->nstops++] = (uint32_t)id;
	return 0;
}

static int index_merges(struct tokenizer *t, struct err *err)
{
	size_t i, at, cap;

	for (t->pairs_shift = 60; (size_t)1 << (64 - t->pairs_shift) < t->nmerges * 2; )
		t->pairs_shift--;
	cap = (size_t)1 << (64 - t->pairs_shift);
	t->bits_shift = t->pairs_shift - 2;
	if (!(t->pair_bits = mem_zalloc(cap * 4 / 64, sizeof(*t->pair_bits), err)))
		return -1;
	if (!(t->pairs = tok_alloc(cap, sizeof(*t->pairs), err)) ||
	    !(t->byte_pair = mem_zalloc(256 * 256, sizeof(*t->byte_pair), err)))
		return -1;
	memset(t->pairs, 0xFF, cap * sizeof(*t->pairs));
	for (i = 0; i < t->nmerges; i++) {
		const struct merge *m = &t->merges[i];
		uint64_t h = ((uint64_t)m->left << 32 | m->right) * 0x9E3779B97F4A7C15u, s;

		for (at = h >> t->pairs_shift; (s = t->pairs[at]) != UINT64_MAX;
		     at = (at + 1) & (cap - 1))
			if (t->merges[(uint32_t)s].left == m->left &&
			    t->merges[(uint32_t)s].right == m->right)
				break;
		t->pair_bits[h >> t->bits_shift >> 6] |= (uint64_t)1 << (h >> t->bits_shift & 63);
		t->pairs[at] = h << 32 | i; /* a pair listed twice has the later rank */
	}
	for (i = 0; i < 256 * 256; i++)
		t->byte_pair[i] = tok_pair(t, t->byte_id[i >> 8], t->byte_id[i & 255]);
	return 0;
}

static void put_u32(struct buf *b, uint32_t v)
{
	char le[4] = { (char)v, (char)(v >> 8), (char)(v >> 16), (char)(v >> 24) };

	buf_put(b, le, sizeof(le));
}

/* The canonical form of tune-stream(5), hashed. */
static int identity(struct tokenizer *t, struct err *err)
{
	struct sha256 *h = NULL;
	struct buf b = {0};
	uint32_t id;
	size_t i;
	int rc = -1;

	buf_printf(&b, "tune-tokenizer-1\nnormalizer=%s\npretokenizer=%s\nignore_merges=%d\n",
	    t->nfc ? "nfc" : "none", t->pretok->name, t->ignore_merges);
	put_u32(&b, t->vocab);
	for (id = 0; id < t->vocab; id++) {
		const struct tok *x = &t->tok[id];
		bool used = x->kind != TOKEN_UNUSED;

		put_u32(&b, used ? x->n : 0);
		buf_put(&b, t->bytes.p + x->at, used ? x->n : 0);
		buf_putc(&b, x->kind == TOKEN_NORMAL ? 0 : used ? 1 : 2);
	}
	put_u32(&b, (uint32_t)t->nmerges);
	for (i = 0; i < t->nmerges; i++) {
		put_u32(&b, t->merges[i].left);
		put_u32(&b, t->merges[i].right);
	}
	if (buf_ok(&b, err) < 0 || !(h = sha256_new(err)))
		goto done;
	sha256_add(h, b.p, b.n);
	sha256_end(h, t->sha256);
	rc = 0;
done:
	buf_release(&b);
	return rc;
}

/*
 * Tokens that end a turn in the templates we know; where the template writes one, it ends an
 * answer.
 */
static int template_stops(struct tokenizer *t, struct err *err)
{
	static const char *const ends[] = { "<|im_end|>", "<|eot_id|>", NULL };
	int64_t id;
	size_t i;

	for (i = 0; t->chat_template && ends[i]; i++)
		if (strstr(t->chat_template, ends[i]) && (id = tokenizer_find(t, ends[i])) >= 0 &&
		    tok_stop(t, id, t->source, err) < 0)
			return -1;
	return 0;
}

int tok_finish(struct tokenizer *t, struct err *err)
{
	while (t->vocab && t->tok[t->vocab - 1].kind == TOKEN_UNUSED)
		t->vocab--;
	if (!t->vocab)
		return err_set(err, EX_DATAERR, "%s: the vocabulary is empty", t->source);
	if (index_merges(t, err) < 0 || template_stops(t, err) < 0)
		return -1;
	return identity(t, err);
}
