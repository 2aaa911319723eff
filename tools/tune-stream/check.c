/* check: read whole streams and say what is in them. */
#include <stdio.h>
#include <stdlib.h>

#include "verbs.h"

/* What was found in one stream; xxh64: of its records as read, which of one part is TEND's. */
struct found { const struct stream_in *in; struct stream_totals t; uint64_t parts; };

static void print_json(struct buf *line, const struct found *f, const char *hex)
{
	const struct stream_header *h = stream_in_header(f->in);
	struct json_w w = { .out = line };

	json_w_obj(&w);
	json_w_name(&w, "name"); json_w_str(&w, stream_in_name(f->in));
	json_w_name(&w, "kind"); json_w_str(&w, stream_kind_name(h->kind));
	json_w_name(&w, "vocab"); json_w_int(&w, h->tok.vocab);
	json_w_name(&w, "tokenizer"); json_w_str(&w, h->tok.sha256);
	json_w_name(&w, "parts"); json_w_int(&w, (int64_t)f->parts);
	json_w_name(&w, "records"); json_w_int(&w, (int64_t)f->t.n);
	json_w_name(&w, "tokens"); json_w_int(&w, (int64_t)f->t.tokens);
	json_w_name(&w, "trained"); json_w_int(&w, (int64_t)f->t.trained);
	json_w_name(&w, "xxh64"); json_w_str(&w, hex);
	json_w_end(&w);
}

static int print(const struct args *a, const struct found *f, struct err *err)
{
	struct buf line = {0};
	char hex[XXH64_HEX], parts[40] = "";
	int rc;

	hash64_hex(f->t.xxh64, hex);
	if (f->parts > 1)
		snprintf(parts, sizeof(parts), " in %llu parts", (unsigned long long)f->parts);
	if (a->json)
		print_json(&line, f, hex);
	else
		buf_printf(&line, "%s: ok: %s, %llu records%s, %llu tokens, %llu trained, xxh64 %s",
			stream_in_name(f->in), stream_kind_name(stream_in_header(f->in)->kind),
			(unsigned long long)f->t.n, parts, (unsigned long long)f->t.tokens,
			(unsigned long long)f->t.trained, hex);
	buf_putc(&line, '\n');
	rc = buf_ok(&line, err);
	if (rc == 0 && (!a->quiet || a->json) && fwrite(line.p, 1, line.n, stdout) != line.n)
		rc = err_errno(err, EX_IOERR, "cannot write to standard output");
	buf_release(&line);
	return rc;
}

/* The seqs so far: while they only rise, none can stand twice. */
struct seqs { uint64_t *at; size_t n, cap; bool risen; };

static int seq_add(struct seqs *s, const struct record *r, struct err *err)
{
	if (rec_optional(r) || r->kind == KIND_TENS)
		return 0;
	if (grow(&s->at, &s->cap, s->n + 1, sizeof(*s->at), err) < 0)
		return -1;
	s->risen = s->risen && (!s->n || s->at[s->n - 1] < r->seq);
	s->at[s->n++] = r->seq;
	return 0;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int seqs_unique(struct seqs *s, const char *name, struct err *err)
{
	if (s->risen)
		return 0;
	qsort(s->at, s->n, sizeof(*s->at), by_value);
	for (size_t i = 1; i < s->n; i++)
		if (s->at[i] == s->at[i - 1])
			return err_set(err, EX_DATAERR, "%s: two records have seq %llu, which must be unique",
				name, (unsigned long long)s->at[i]);
	return 0;
}

static int check_one(const struct args *a, const char *path, struct err *err)
{
	struct stream_in *in = NULL;
	struct seqs seqs = { .risen = true };
	struct record r;
	int got = stream_in_open(&in, path, err);

	while (got == 0 && (got = stream_next(in, &r, err)) > 0)
		got = seq_add(&seqs, &r, err);
	if (got == 0)
		got = seqs_unique(&seqs, stream_in_name(in), err);
	if (got == 0) {
		struct found f = { in, stream_in_totals(in), stream_in_parts(in) };

		f.t.xxh64 = stream_in_running_hash(in);
		got = print(a, &f, err);
	}
	free(seqs.at);
	stream_in_close(in);
	return got;
}

int verb_check(const struct args *a, struct err *err)
{
	static const char *const only_stdin[] = { "-" };
	const char *const *paths = a->npaths ? a->paths : only_stdin;
	size_t i, n = a->npaths ? a->npaths : 1;

	/* A bad stream does not hide those after it. */
	for (i = 0; i < n; i++) {
		struct err one = {0};

		if (check_one(a, paths[i], &one) < 0)
			err_more(err, one.code, "%s", one.msg);
	}
	return err->code ? -1 : 0;
}
