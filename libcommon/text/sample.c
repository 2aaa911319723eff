/* sample: one row as ids and a mask. */
#include <stdlib.h>
#include <string.h>

#include "libcommon/text/chat.h"
#include "libcommon/text/special.h"

void sample_release(struct sample *s)
{
	free(s->ids);
	free(s->mask);
	rendered_release(&s->scratch);
	specials_free(s->specials);
	*s = (struct sample){0};
}

static int reserve(struct sample *s, size_t more, struct err *err)
{
	return grow(&s->ids, &s->cap, s->n + more, sizeof(*s->ids), err) < 0 ||
		grow(&s->mask, &s->mask_cap, s->n + more, 1, err) < 0 ? -1 : 0;
}

static void add(struct sample *s, uint32_t id, int trained)
{
	s->ids[s->n] = id;
	s->mask[s->n++] = (uint8_t)trained;
}

/* Start a sample: BOS where the tokenizer adds it, unless the first id is one already (MUST-3). */
static int start(
	struct sample *s, const struct tokenizer *t, const struct encoding *enc, struct err *err)
{
	int64_t bos = tokenizer_bos(t);

	s->n = 0;
	if (reserve(s, enc->n + 2, err) < 0)
		return -1;
	if (tokenizer_add_bos(t) && bos >= 0 && !(enc->n && enc->ids[0] == bos))
		add(s, (uint32_t)bos, 0);
	return 0;
}

static int finish_eos(
	struct sample *s, const struct tokenizer *t, const struct chat_opts *o, struct err *err)
{
	int64_t eos = tokenizer_eos(t);

	if (!o->eos)
		return 0;
	if (eos < 0)
		return err_set(err, EX_CONFIG,
			"data.eos: the tokenizer has no eos token to end a row with; use data.eos=false");
	if (reserve(s, 1, err) < 0)
		return -1;
	add(s, (uint32_t)eos, 1);
	return 0;
}

/* Count the strings of special tokens in content; o->special may refuse them. */
static int check_content(struct sample *s, const struct tokenizer *t, const char *text, size_t n,
	const struct chat_opts *o, struct err *err)
{
	uint32_t first, len;
	uint64_t found;
	enum token_kind kind;
	const char *name;

	if (!s->specials && specials_new(&s->specials, t, err) < 0)
		return -1;
	if (!(found = specials_count(s->specials, text, n, &first)))
		return 0;
	s->special_in_content += found;
	if (o->special != SPECIAL_ERROR)
		return 0;
	name = tokenizer_token(t, first, &len, &kind);
	return err_set(err, EX_DATAERR,
		"the content holds the special token '%.*s' (data.special_in_content=error)", (int)len,
		name);
}

static int check_rendered(
	struct sample *s, const struct tokenizer *t, const struct chat_opts *o, struct err *err)
{
	const struct rendered *r = &s->scratch;
	const char *p = r->allowed.p, *end = p + r->allowed.n, *stop;

	while ((p = memchr(p, 0, (size_t)(end - p)))) {
		if (!(stop = memchr(p, 1, (size_t)(end - p))))
			stop = end;
		if (check_content(s, t, r->text.p + (p - r->allowed.p), (size_t)(stop - p), o, err) < 0)
			return -1;
		p = stop;
	}
	return 0;
}

static int encode_rendered(
	struct encoder *e, const struct rendered *r, bool allow, struct encoding *enc, struct err *err)
{
	return allow ? encode(e, r->text.p, r->text.n, true, enc, err) :
		encode_masked(e, r->text.p, r->text.n, (const uint8_t *)r->allowed.p, enc, err);
}

/* Mark tokens [from, ...) whose bytes meet an answer; both lists are in the order of the text. */
static void mark(
	struct sample *s, size_t from, const struct encoding *enc, const struct answer *a, size_t n)
{
	size_t i, k = 0;

	for (i = 0; i < enc->n; i++) {
		while (k < n && a[k].end <= enc->spans[i].begin)
			k++;
		if (k == n)
			return;
		s->mask[from + i] = enc->spans[i].end > a[k].begin;
	}
}

static int nothing_trained(const struct answer *a, size_t n, struct err *err)
{
	size_t i;

	if (!n)
		return err_set(err, EX_DATAERR, "messages: no assistant turn to train on");
	for (i = 0; i < n && a[i].empty; i++)
		;
	return i < n
		? 0
		: err_set(err, EX_DATAERR, "messages[%u].content: the answer is empty", a[n - 1].message);
}

int sample_chat(struct sample *s, struct encoder *e, const struct tokenizer *t,
	const struct chat_template *c, const struct message *m, size_t n, const struct chat_opts *o,
	struct err *err)
{
	const struct rendered *r = &s->scratch;
	const struct answer *a;
	struct encoding enc;
	size_t i, from, na;

	s->special_in_content = 0;
	if (chat_render(c, m, n, false, &s->scratch, err) < 0)
		return -1;
	na = r->nanswers && o->train_on == TRAIN_LAST ? 1 : r->nanswers;
	a = r->nanswers ? r->answers + (r->nanswers - na) : NULL;
	if ((o->train_on != TRAIN_ALL && nothing_trained(a, na, err) < 0) ||
		check_rendered(s, t, o, err) < 0 ||
		encode_rendered(e, r, o->special == SPECIAL_ALLOW, &enc, err) < 0 ||
		start(s, t, &enc, err) < 0)
		return -1;
	from = s->n;
	for (i = 0; i < enc.n; i++)
		add(s, enc.ids[i], o->train_on == TRAIN_ALL);
	if (o->train_on != TRAIN_ALL)
		mark(s, from, &enc, a, na);
	if (s->n)
		s->mask[0] = 0;
	return 0;
}

int sample_plain(struct sample *s, struct encoder *e, const struct tokenizer *t, const char *prompt,
	size_t np, const char *answer, size_t na, const struct chat_opts *o, struct err *err)
{
	bool allow = o->special == SPECIAL_ALLOW;
	struct encoding enc;
	size_t i;

	s->special_in_content = 0;
	if (!na)
		return err_set(err, EX_DATAERR, "the answer is empty");
	if (check_content(s, t, prompt, np, o, err) < 0 ||
		check_content(s, t, answer, na, o, err) < 0 ||
		encode(e, prompt, np, allow, &enc, err) < 0 || start(s, t, &enc, err) < 0)
		return -1;
	for (i = 0; i < enc.n; i++)
		add(s, enc.ids[i], o->train_on == TRAIN_ALL);
	/*
	 * The answer is encoded apart, so that no token joins it to the prompt: generation starts from
	 * the prompt's ids (K3).
	 */
	if (encode(e, answer, na, allow, &enc, err) < 0 || reserve(s, enc.n, err) < 0)
		return -1;
	for (i = 0; i < enc.n; i++)
		add(s, enc.ids[i], 1);
	s->mask[0] = 0;
	return finish_eos(s, t, o, err);
}

int sample_text(struct sample *s, struct encoder *e, const struct tokenizer *t, const char *text,
	size_t n, const struct chat_opts *o, struct err *err)
{
	struct encoding enc;
	size_t i;

	s->special_in_content = 0;
	if (!n)
		return err_set(err, EX_DATAERR, "text: empty");
	if (check_content(s, t, text, n, o, err) < 0 ||
		encode(e, text, n, o->special == SPECIAL_ALLOW, &enc, err) < 0 ||
		start(s, t, &enc, err) < 0)
		return -1;
	for (i = 0; i < enc.n; i++)
		add(s, enc.ids[i], 1);
	s->mask[0] = 0;
	return finish_eos(s, t, o, err);
}

int sample_prompt(struct sample *s, struct encoder *e, const struct tokenizer *t,
	const struct chat_template *c, const struct message *m, size_t n, const struct chat_opts *o,
	struct err *err)
{
	bool allow = o->special == SPECIAL_ALLOW;
	struct encoding enc;
	size_t i;

	s->special_in_content = 0;
	if (!c && (n != 1 || m[0].role != ROLE_USER))
		return err_set(err, EX_CONFIG,
			"a conversation needs a chat template and the model has none; use data.template=chatml "
			"or llama3");
	if (c ? chat_render(c, m, n, true, &s->scratch, err) < 0 || check_rendered(s, t, o, err) < 0 ||
				encode_rendered(e, &s->scratch, allow, &enc, err) < 0
		  : check_content(s, t, m[0].text, m[0].n, o, err) < 0 ||
				encode(e, m[0].text, m[0].n, allow, &enc, err) < 0)
		return -1;
	if (start(s, t, &enc, err) < 0)
		return -1;
	for (i = 0; i < enc.n; i++)
		add(s, enc.ids[i], 0);
	return 0;
}
