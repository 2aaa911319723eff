/* check: read whole streams and say what is in them. */
#include <stdio.h>

#include "verbs.h"

static int print(const struct args *a, const char *name, const struct stream_header *h,
	struct stream_totals t, struct err *err)
{
	struct buf line = {0};
	struct json_w w = { .out = &line };
	char hex[XXH64_HEX];
	int rc;

	hash64_hex(t.xxh64, hex);
	if (a->json) {
		json_w_obj(&w);
		json_w_name(&w, "name");
		json_w_str(&w, name);
		json_w_name(&w, "kind");
		json_w_str(&w, stream_kind_name(h->kind));
		json_w_name(&w, "vocab");
		json_w_int(&w, h->tok.vocab);
		json_w_name(&w, "tokenizer");
		json_w_str(&w, h->tok.sha256);
		json_w_name(&w, "records");
		json_w_int(&w, (int64_t)t.n);
		json_w_name(&w, "tokens");
		json_w_int(&w, (int64_t)t.tokens);
		json_w_name(&w, "trained");
		json_w_int(&w, (int64_t)t.trained);
		json_w_name(&w, "xxh64");
		json_w_str(&w, hex);
		json_w_end(&w);
	} else {
		buf_printf(&line, "%s: ok: %s, %llu records, %llu tokens, %llu trained, xxh64 %s", name,
			stream_kind_name(h->kind), (unsigned long long)t.n, (unsigned long long)t.tokens,
			(unsigned long long)t.trained, hex);
	}
	buf_putc(&line, '\n');
	rc = buf_ok(&line, err);
	if (rc == 0 && (!a->quiet || a->json) && fwrite(line.p, 1, line.n, stdout) != line.n)
		rc = err_errno(err, EX_IOERR, "cannot write to standard output");
	buf_release(&line);
	return rc;
}

static int check_one(const struct args *a, const char *path, struct err *err)
{
	struct stream_in *in = NULL;
	struct record r;
	int got = stream_in_open(&in, path, err);

	while (got == 0 && (got = stream_next(in, &r, err)) > 0)
		got = 0;
	if (got == 0)
		got = print(a, stream_in_name(in), stream_in_header(in), stream_in_totals(in), err);
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
