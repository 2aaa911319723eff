#include "libcommon/text/chat.h"

#include <stdlib.h>
#include <string.h>

#include "libcommon/file.h"
#include "libcommon/text/template.h"

enum { TEMPLATE_MAX = 1 << 20 };

struct chat_template {
	const struct dialect *dialect;
	struct buf source, bos, date;
	char sha256[SHA256_HEX];
};

const char *role_name(enum role r)
{
	static const char *const names[] = { "system", "user", "assistant", "tool" };

	return names[r];
}

static int hash_text(const char *s, size_t n, char hex[SHA256_HEX], struct err *err)
{
	struct sha256 *h = sha256_new(err);

	if (!h)
		return -1;
	sha256_add(h, s, n);
	sha256_end(h, hex);
	return 0;
}

/* The template's text into c->source: 1 if there is one, 0 if there is none. */
static int find_source(
	struct chat_template *c, const struct tokenizer *t, const char *name, struct err *err)
{
	const char *text = *name ? dialect_text(name) : tokenizer_chat_template(t);

	if (!strcmp(name, "none") || (!*name && !text))
		return 0;
	if (text)
		buf_puts(&c->source, text);
	else if (!is_file(name))
		return err_set(
			err, EX_CONFIG, "data.template: '%s' is neither chatml, llama3, none nor a file", name);
	else if (file_read(name, TEMPLATE_MAX, &c->source, err) < 0)
		return -1;
	return buf_ok(&c->source, err) < 0 ? -1 : 1;
}

static int recognise(struct chat_template *c, const char *name, struct err *err)
{
	size_t n = c->source.n;
	char hex[SHA256_HEX];

	if (n && c->source.p[n - 1] == '\n')
		n--;
	if (hash_text(c->source.p, c->source.n, c->sha256, err) < 0 ||
		hash_text(c->source.p, n, hex, err) < 0)
		return -1;
	if ((c->dialect = dialect_find(hex)))
		return 0;
	if (*name)
		return err_set(err, EX_CONFIG, "the chat template in '%s' is not one we know (sha256 %s); "
			"use data.template=chatml, llama3 or none", name, hex);
	return err_set(err, EX_CONFIG, "the model's chat template is not one we know (sha256 %s); "
		"use data.template=chatml, llama3 or none", hex);
}

/*
 * A marker that the tokenizer splits into plain text could neither end an answer nor be kept out of
 * a user's text.
 */
static int check_tokens(struct chat_template *c, const struct tokenizer *t, struct err *err)
{
	const char *s;
	size_t i;
	uint32_t n;
	enum token_kind kind;

	for (i = 0; (s = dialect_token(c->dialect, i)); i++)
		if (tokenizer_find(t, s) < 0)
			return err_set(err, EX_CONFIG,
				"the chat template %s needs the token '%s', which the tokenizer of '%s' does not "
				"have; "
				"use another data.template, or none",
				c->dialect->name, s, tokenizer_source(t));
	if (c->dialect->flags & DIALECT_BOS && tokenizer_bos(t) >= 0) {
		s = tokenizer_token(t, (uint32_t)tokenizer_bos(t), &n, &kind);
		buf_put(&c->bos, s, s ? n : 0);
	}
	return buf_ok(&c->bos, err);
}

static int set_vars(
	struct chat_template *c, const char *const (*vars)[2], size_t nvars, struct err *err)
{
	bool dates = c->dialect->flags & DIALECT_DATES;
	/* the template's own; the clock must not decide what is trained */
	const char *date = "26 Jul 2024";
	size_t i;

	for (i = 0; i < nvars; i++) {
		if (!dates || strcmp(vars[i][0], "date_string"))
			return err_set(err, EX_CONFIG,
				"data.template_vars: the chat template %s has no variable '%s'%s", c->dialect->name,
				vars[i][0], dates ? " (it has date_string)" : "");
		date = vars[i][1];
	}
	buf_puts(&c->date, date);
	return buf_ok(&c->date, err);
}

int chat_open(struct chat_template **out, const struct tokenizer *t, const char *name,
	const char *const (*vars)[2], size_t nvars, struct err *err)
{
	struct chat_template *c = mem_zalloc(1, sizeof(*c), err);
	int got;

	*out = NULL;
	if (!c || (got = find_source(c, t, name, err)) < 0)
		goto fail;
	if (!got) {
		chat_close(c);
		return nvars ? err_set(err, EX_CONFIG,
						   "data.template_vars: there is no chat template to take '%s'", vars[0][0])
					 : 0;
	}
	if (recognise(c, name, err) < 0 || check_tokens(c, t, err) < 0 ||
		set_vars(c, vars, nvars, err) < 0)
		goto fail;
	*out = c;
	return 0;
fail:
	chat_close(c);
	return -1;
}

void chat_close(struct chat_template *c)
{
	if (!c)
		return;
	buf_release(&c->source);
	buf_release(&c->bos);
	buf_release(&c->date);
	free(c);
}

const char *chat_name(const struct chat_template *c)
{
	return c->dialect->name;
}

const char *chat_source(const struct chat_template *c)
{
	return c->source.p;
}

const char *chat_sha256(const struct chat_template *c)
{
	return c->sha256;
}

void rendered_release(struct rendered *r)
{
	buf_release(&r->text);
	buf_release(&r->allowed);
	free(r->answers);
	*r = (struct rendered){0};
}

/* ---- rendering ---- */

static void put(struct rendered *r, const char *s, size_t n, bool ours)
{
	char *o;

	buf_put(&r->text, s, n);
	if ((o = buf_room(&r->allowed, n))) {
		memset(o, ours, n);
		r->allowed.n += n;
	}
}

static void puts_template(struct rendered *r, const char *s)
{
	put(r, s, strlen(s), true);
}

/* Bytes of the white space at s that Python's str.strip removes, 0 if it is none. */
static size_t space_at(const unsigned char *s, size_t n)
{
	if (s[0] < 0x80)
		return s[0] == ' ' || (s[0] >= 9 && s[0] <= 13) || (s[0] >= 28 && s[0] <= 31);
	if (n >= 2 && s[0] == 0xc2)
		return s[1] == 0x85 || s[1] == 0xa0 ? 2 : 0;
	if (n < 3)
		return 0;
	if (s[0] == 0xe1)
		return s[1] == 0x9a && s[2] == 0x80 ? 3 : 0;                   /* U+1680 */
	/* U+2000..200A, 2028, 2029, 202F */
	if (s[0] == 0xe2 && s[1] == 0x80)
		return s[2] <= 0x8a || s[2] == 0xa8 || s[2] == 0xa9 || s[2] == 0xaf ? 3 : 0;
	if (s[0] == 0xe2)
		return s[1] == 0x81 && s[2] == 0x9f ? 3 : 0;                   /* U+205F */
	return s[0] == 0xe3 && s[1] == 0x80 && s[2] == 0x80 ? 3 : 0;           /* U+3000 */
}

static void strip(const char **text, size_t *len)
{
	const unsigned char *s = (const unsigned char *)*text;
	size_t n = *len, k, back;

	while (n && (k = space_at(s, n))) {
		s += k;
		n -= k;
	}
	for (;;) {
		for (k = 0, back = 1; back <= 3 && back <= n && !k; back++)
			if (space_at(s + n - back, back) == back)
				k = back;
		if (!k)
			break;
		n -= k;
	}
	*text = (const char *)s;
	*len = n;
}

static void header(const struct dialect *d, const char *role, struct rendered *r)
{
	puts_template(r, d->turns->begin);
	puts_template(r, role);
	puts_template(r, d->turns->after_role);
}

static int turn(const struct dialect *d, const struct message *m, uint32_t index,
	struct rendered *r, struct err *err)
{
	const char *s = m->text;
	size_t n = m->n, begin;

	if (d->flags & DIALECT_TRIM)
		strip(&s, &n);
	header(d, role_name(m->role), r);
	begin = r->text.n;
	put(r, s, n, false);
	puts_template(r, d->turns->end);
	if (m->role == ROLE_ASSISTANT) {
		if (grow(&r->answers, &r->cap, r->nanswers + 1, sizeof(*r->answers), err) < 0)
			return -1;
		r->answers[r->nanswers++] = (struct answer){ begin, r->text.n, index, n == 0 };
	}
	puts_template(r, d->turns->after);
	return 0;
}

/*
 * Llama 3.1 and later: a system turn that always says the dates, then what the system message says.
 */
static void dated_system(
	const struct chat_template *c, const struct message *system, struct rendered *r)
{
	const struct dialect *d = c->dialect;
	const char *s = system ? system->text : "";
	size_t n = system ? system->n : 0;

	strip(&s, &n);
	header(d, "system", r);
	puts_template(r, "Cutting Knowledge Date: December 2023\nToday Date: ");
	put(r, c->date.p, c->date.n, false);
	puts_template(r, "\n\n");
	put(r, s, n, false);
	puts_template(r, d->turns->end);
	puts_template(r, d->turns->after);
}

static int check_roles(const struct dialect *d, const struct message *m, size_t n, struct err *err)
{
	size_t i, offset = n && m[0].role == ROLE_SYSTEM;

	if (!n)
		return err_set(err, EX_DATAERR, "messages: empty");
	for (i = 0; i < n; i++) {
		if (m[i].role == ROLE_TOOL)
			return err_set(
				err, EX_DATAERR, "messages[%zu].role: tool messages are not supported", i);
		if (d->flags & DIALECT_ALTERNATE && (m[i].role == ROLE_USER) != (i % 2 == offset))
			return err_set(err, EX_DATAERR,
				"messages[%zu].role: %s stands where the template %s takes %s (user and assistant "
				"must take turns)",
				i, role_name(m[i].role), d->name, i % 2 == offset ? "user" : "assistant");
	}
	return 0;
}

int chat_render(const struct chat_template *c, const struct message *m, size_t n,
	bool generation_prompt, struct rendered *r, struct err *err)
{
	const struct dialect *d = c->dialect;
	size_t i = 0;

	buf_clear(&r->text);
	buf_clear(&r->allowed);
	r->nanswers = 0;
	if (check_roles(d, m, n, err) < 0)
		return -1;
	if (d->flags & DIALECT_BOS)
		put(r, c->bos.p, c->bos.n, true);
	if (d->flags & DIALECT_DATES) {
		i = m[0].role == ROLE_SYSTEM;
		dated_system(c, i ? &m[0] : NULL, r);
	} else if (d->system && m[0].role != ROLE_SYSTEM) {
		header(d, "system", r);
		puts_template(r, d->system);
		puts_template(r, d->turns->end);
		puts_template(r, d->turns->after);
	}
	for (; i < n; i++)
		if (turn(d, &m[i], (uint32_t)i, r, err) < 0)
			return -1;
	if (generation_prompt || d->flags & DIALECT_ALWAYS_PROMPT)
		header(d, "assistant", r);
	return buf_ok(&r->text, err) < 0 || buf_ok(&r->allowed, err) < 0 ? -1 : 0;
}
