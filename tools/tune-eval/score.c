/*
 * Scores of items, batch by batch: items that fit together share a forward pass and can't see each
 * other.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eval.h"
#include "libcommon/outfile.h"
#include "libcommon/stream/stream.h"

struct scorer {
	struct eval *e;
	const struct items *it;
	uint32_t *ids; uint8_t *mask; int32_t *cu; uint32_t *zeros;
	float *logp; uint8_t *greedy;
	/* of one record, a value a token, for the SCOR stream */
	float *rec_logp; uint8_t *rec_greedy;
	struct stream_out *out;
	struct outfile file;
};

static int alloc(struct scorer *s, size_t tokens, struct err *err)
{
	s->ids = mem_zalloc(tokens, sizeof(*s->ids), err);
	s->mask = mem_zalloc(tokens, 1, err);
	s->cu = mem_zalloc(tokens + 1, sizeof(*s->cu), err);
	s->zeros = mem_zalloc(tokens, sizeof(*s->zeros), err);
	s->logp = mem_zalloc(tokens, sizeof(*s->logp), err);
	s->greedy = mem_zalloc(tokens, 1, err);
	s->rec_logp = mem_zalloc(s->it->longest_record, sizeof(*s->rec_logp), err);
	s->rec_greedy = mem_zalloc(s->it->longest_record, 1, err);
	return s->ids && s->mask && s->cu && s->zeros && s->logp && s->greedy && s->rec_logp &&
			s->rec_greedy
		? 0
		: -1;
}

static int open_scores(struct scorer *s, struct err *err)
{
	struct eval *e = s->e;
	struct stream_header h = { .major = STREAM_MAJOR,
		.minor = STREAM_MINOR,
		.kind = KIND_SCOR,
		.tok = { .vocab = tokenizer_vocab(e->tok),
			.bos = tokenizer_bos(e->tok),
			.pad = tokenizer_pad(e->tok) },
		.inputs = s->it->inputs,
		.ninputs = s->it->ninputs };
	bool plain = !strcmp(e->o.scores, "-");
	int rc;

	memcpy(h.tok.sha256, tokenizer_sha256(e->tok), sizeof(h.tok.sha256));
	if (refuse_terminal(e->o.scores, err) < 0 ||
		refuse_input(e->o.scores, e->tool->argv, (size_t)e->tool->argc, err) < 0 ||
		stream_add_prov(&h, "tune-eval", TUNE_VERSION, "{}", NULL, 0, err) < 0 ||
		outfile_open(&s->file, e->o.scores, e->o.force, err) < 0)
		rc = -1;
	else
		rc = stream_out_open(&s->out, s->file.fp, e->o.scores, &h,
			(struct stream_out_opts){ plain ? 0 : 3, false }, err);
	buf_release(&h.prov);
	return rc;
}

static bool same_record(const struct items *it, size_t i, size_t k)
{
	return k < it->n && it->item[i].record == it->item[k].record;
}

/*
 * Item i's trained tokens are logp[0..): add them up, and write the SCOR of the record that ends
 * with it. Returns how many there were.
 */
static long take(struct scorer *s, size_t i, const float *logp, const uint8_t *greedy,
	struct score *one, struct err *err)
{
	const struct item *item = &s->it->item[i];
	struct rec_scor r = { item->seq, (uint32_t)item->whole, s->rec_logp, s->rec_greedy };
	long k = 0;

	if (!i || !same_record(s->it, i, i - 1)) {
		memset(s->rec_logp, 0, item->whole * sizeof(*s->rec_logp));
		memset(s->rec_greedy, 0, item->whole);
	}
	for (size_t t = 0; t < item->n; t++) {
		if (!item->mask[t])
			continue;
		s->rec_logp[item->shift + t] = logp[k];
		s->rec_greedy[item->shift + t] = greedy[k];
		one->nll -= logp[k];
		one->greedy += greedy[k++];
	}
	one->tokens += (uint64_t)k;
	if (s->out && !same_record(s->it, i, i + 1) && stream_put_scor(s->out, &r, err) < 0)
		return -1;
	return k;
}

static int score_batch(
	struct scorer *s, size_t first, size_t last, struct score *per_row, struct err *err)
{
	struct batch b = {
		.ids = s->ids, .mask = s->mask, .cu = s->cu, .rec = s->zeros, .off0 = s->zeros, .group = 1
	};
	long at = 0;

	for (size_t i = first; i < last; i++) {
		const struct item *item = &s->it->item[i];

		memcpy(s->ids + b.t, item->ids, item->n * sizeof(*s->ids));
		memcpy(s->mask + b.t, item->mask, item->n);
		s->cu[b.docs++] = (int32_t)b.t;
		b.t += (long)item->n;
		for (size_t k = 0; k < item->n; k++)
			b.trained += item->mask[k];
	}
	s->cu[b.docs] = (int32_t)b.t;
	if (model_forward(s->e->model, &b, FWD_ADAPTER, 0, err) < 0 ||
		head_forward(s->e->model, s->logp, s->greedy, err) < 0)
		return -1;
	for (size_t i = first; i < last; i++) {
		long k = take(s, i, s->logp + at, s->greedy + at, &per_row[s->it->item[i].row], err);

		if (k < 0)
			return -1;
		at += k;
	}
	return 0;
}

int score_items(struct eval *e, const struct items *it, struct score *total, struct score *per_row,
	struct err *err)
{
	struct scorer s = { .e = e, .it = it, .file = { .slot = -1 } };
	struct stream_totals totals;
	struct progress p;
	long most = model_plan(e->model)->micro_tokens;
	int rc = alloc(&s, (size_t)most, err);

	progress_start(&p, "tune-eval", "rows", 0, it->n, e->tool->progress, e->tool->quiet);
	if (!rc && e->o.scores)
		rc = open_scores(&s, err);
	for (size_t i = 0, last; !rc && i < it->n; i = last) {
		long t = 0;

		for (last = i; last < it->n && (last == i || t + (long)it->item[last].n <= most); last++)
			t += (long)it->item[last].n;
		rc = score_batch(&s, i, last, per_row, err);
		progress_update(&p, last, "");
	}
	progress_end(&p);
	*total = (struct score){0};
	for (uint64_t r = 0; r < it->rows; r++) {
		total->nll += per_row[r].nll;
		total->tokens += per_row[r].tokens;
		total->greedy += per_row[r].greedy;
	}
	if (!rc && s.out &&
		(stream_out_finish(s.out, NULL, 0, &totals, err) < 0 || outfile_commit(&s.file, err) < 0))
		rc = -1;
	stream_out_close(s.out);
	outfile_abort(&s.file);
	free(s.ids);
	free(s.mask);
	free(s.cu);
	free(s.zeros);
	free(s.logp);
	free(s.greedy);
	free(s.rec_logp);
	free(s.rec_greedy);
	return rc;
}
