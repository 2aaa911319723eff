/* What loss scores: rows, or the documents of token streams and shard folders, as ids and masks. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "eval.h"
#include "libcommon/file.h"
#include "libcommon/stream/stream.h"

void items_release(struct items *it)
{
	for (size_t i = 0; i < it->n; i++) {
		free(it->item[i].ids);
		free(it->item[i].mask);
	}
	for (size_t i = 0; i < it->ninputs; i++)
		free(it->inputs[i]);
	free(it->item);
	free(it->inputs);
	*it = (struct items){0};
}

static int add_input(struct items *it, const char *name, struct err *err)
{
	if (grow(&it->inputs, &it->inputs_cap, it->ninputs + 1, sizeof(*it->inputs), err) < 0 ||
	    !(it->inputs[it->ninputs] = mem_strdup(name, err)))
		return -1;
	it->ninputs++;
	return 0;
}

static int push(struct items *it, const struct item *like, const uint32_t *ids, const uint8_t *mask,
	size_t n, struct err *err)
{
	struct item *o;

	if (grow(&it->item, &it->cap, it->n + 1, sizeof(*it->item), err) < 0)
		return -1;
	o = &it->item[it->n];
	*o = *like;
	o->n = n;
	o->ids = mem_zalloc(n, sizeof(*ids), err);
	o->mask = mem_zalloc(n, 1, err);
	if (!o->ids || !o->mask) {
		free(o->ids);
		free(o->mask);
		return -1;
	}
	memcpy(o->ids, ids, n * sizeof(*ids));
	memcpy(o->mask, mask, n);
	o->mask[0] = 0;
	o->row = it->rows;
	it->n++;
	if (n > it->longest)
		it->longest = n;
	if (o->whole > it->longest_record)
		it->longest_record = o->whole;
	return 0;
}

/*
 * A sample within the window is one item.  A longer one: if all but its first token is trained (a
 * text), windows of which each starts with the last token of the one before, so that every token is
 * scored exactly once; else the context is cut from the left, keeping its first token (BOS) and
 * every trained token; an answer longer than the window makes the row invalid (fault E6).
 */
static int add(struct items *it, struct item like, const uint32_t *ids, const uint8_t *mask,
	size_t n, size_t window, struct err *err)
{
	size_t first = 0, trained = 0, keep, shift = like.shift;
	int rc = 0;

	while (first < n && !mask[first])
		first++;
	for (size_t i = first; i < n; i++)
		trained += mask[i];
	if (n <= window) {
		rc = push(it, &like, ids, mask, n, err);
	} else if (first <= 1 && trained == n - first) {
		for (size_t at = 0; !rc && at + 1 < n; at += window - 1) {
			like.shift = shift + at;
			rc = push(it, &like, ids + at, mask + at, n - at < window ? n - at : window, err);
		}
	} else if (n - first >= window) {
		it->invalid++;
	} else {
		uint32_t *cut = mem_zalloc(window, sizeof(*cut), err);
		uint8_t *m = mem_zalloc(window, 1, err);

		keep = window - 1;
		if (cut && m) {
			cut[0] = ids[0];
			memcpy(cut + 1, ids + n - keep, keep * sizeof(*cut));
			memcpy(m + 1, mask + n - keep, keep);
			like.shift = shift + n - window;
			rc = push(it, &like, cut, m, window, err);
			it->cut++;
		} else {
			rc = -1;
		}
		free(cut);
		free(m);
	}
	it->rows++;
	return rc;
}

static int read_rows(struct items *it, struct eval *e, const struct peeked *p, struct err *err)
{
	struct chat_opts o = chat_opts_config(e->cfg);
	bool skip = !strcmp(cfg_str(e->cfg, "data.on_error"), "skip");
	struct sample s = {0};
	struct rows *r = NULL;
	struct row row;
	int rc;

	if (rows_take(&r, p, e->cfg, err) < 0 || add_input(it, rows_name(r), err) < 0) {
		rows_close(r);
		return -1;
	}
	while ((rc = rows_next(r, &row, err)) != 0 && rc != -1) {
		if (rc > 0)
			rc = row_sample(r, &row, &s, e->enc, e->tok, e->chat, &o, err);
		if (rc == 0)
			rc = add(it,
				(struct item){ .src = (uint32_t)it->ninputs - 1,
					.line = row.line,
					.seq = it->seq_end++,
					.whole = s.n,
					.record = it->records++ },
				s.ids, s.mask, s.n, (size_t)eval_window(e), err);
		if (rc == -2 && skip) {
			it->skipped++;
			tool_warn(e->tool, "skipped: %s", err->msg);
		} else if (rc < 0) {
			break;
		}
	}
	sample_release(&s);
	rows_close(r);
	return rc < 0 ? -1 : 0;
}

/* The stream's inputs are numbered from src0 on. */
static int add_record(
	struct items *it, const struct record *r, uint32_t src0, size_t window, struct err *err)
{
	struct item like = { .seq = it->seq0 + r->seq, .record = it->records };

	if (rec_optional(r))
		return 0;
	it->records++;
	if (like.seq >= it->seq_end)
		it->seq_end = like.seq + 1;
	if (r->kind == KIND_TOKS) {
		like.src = src0 + r->toks.src;
		like.line = r->toks.line;
		like.whole = r->toks.n;
		return add(it, like, r->toks.ids, r->toks.mask, r->toks.n, window, err);
	}
	like.whole = r->pack.n;
	for (uint32_t i = 0; i < r->pack.ndocs; i++) {
		size_t at = like.shift;

		like.src = src0 + r->pack.srcs[i];
		like.line = r->pack.lines[i];
		if (add(it, like, r->pack.ids + at, r->pack.mask + at, r->pack.lens[i], window, err) < 0)
			return -1;
		like.shift += r->pack.lens[i];
	}
	return 0;
}

static int read_stream(struct items *it, struct eval *e, const struct peeked *p, struct err *err)
{
	struct stream_tok mine = { .bos = -1, .pad = -1, .vocab = tokenizer_vocab(e->tok) };
	const struct stream_header *h;
	uint32_t src0 = (uint32_t)it->ninputs;
	struct stream_in *in = NULL;
	struct record r;
	int rc = -1;

	memcpy(mine.sha256, tokenizer_sha256(e->tok), sizeof(mine.sha256));
	if (stream_in_take(&in, p, err) < 0)
		return -1;
	h = stream_in_header(in);
	if (stream_same_tokenizer(
			&h->tok, stream_in_name(in), &mine, tokenizer_source(e->tok), err) < 0)
		goto done;
	if (h->kind != KIND_TOKS && h->kind != KIND_PACK) {
		err_set(err, EX_DATAERR, "%s: a stream of kind %s; loss scores toks and pack",
			stream_in_name(in), stream_kind_name(h->kind));
		goto done;
	}
	while ((rc = stream_next(in, &r, err)) > 0)
		if (add_record(it, &r, src0, (size_t)eval_window(e), err) < 0) {
			rc = -1;
			break;
		}
	h = stream_in_header(in);
	for (size_t i = 0; !rc && i < h->ninputs; i++)
		rc = add_input(it, h->inputs[i], err);
done:
	stream_in_close(in);
	return rc;
}

static int read_file(struct items *it, struct eval *e, const char *path, struct err *err)
{
	struct peeked p;

	if (file_peek(&p, path, err) < 0)
		return -1;
	return (stream_begins(p.head, p.n) ? read_stream : read_rows)(it, e, &p, err);
}

static int is_shard(const struct dirent *d)
{
	return has_suffix(d->d_name, ".tns");
}

/* The val files of a shard folder, or, if it has none, the train files. */
static int read_folder(struct items *it, struct eval *e, const char *dir, struct err *err)
{
	struct dirent **list = NULL;
	int n = scandir(dir, &list, is_shard, alphasort), rc = 0, used = 0;

	for (int pass = 0; pass < 2 && !used; pass++)
		for (int i = 0; i < n && !rc; i++) {
			char *path;

			if (strncmp(list[i]->d_name, pass ? "train-" : "val-", pass ? 6 : 4))
				continue;
			used++;
			if (!(path = path_join(dir, list[i]->d_name)))
				rc = err_oom(err, 256);
			else
				rc = read_file(it, e, path, err);
			free(path);
		}
	for (int i = 0; i < n; i++)
		free(list[i]);
	free(list);
	return rc || used
		? rc
		: err_set(err, EX_NOINPUT,
			  "'%s' is not a shard folder: it has no val-*.tns and no train-*.tns", dir);
}

int items_read(struct items *it, struct eval *e, struct err *err)
{
	char stdin_name[] = "-", *one[] = { stdin_name }, **files = e->tool->argc ? e->tool->argv : one;
	int n = e->tool->argc ? e->tool->argc : 1;

	for (int i = 0; i < n; i++) {
		it->seq0 = it->seq_end;
		if ((is_dir(files[i]) ? read_folder : read_file)(it, e, files[i], err) < 0)
			return -1;
	}
	if (it->cut)
		tool_warn(e->tool,
			"%llu contexts were longer than the model's window of %ld tokens and were cut from the "
			"left",
			(unsigned long long)it->cut, eval_window(e));
	if (it->invalid)
		tool_warn(e->tool,
			"%llu rows are left out: what is scored is longer than the model's window of %ld "
			"tokens",
			(unsigned long long)it->invalid, eval_window(e));
	return it->n ? 0 : err_set(err, EX_DATAERR, "no row to score");
}
