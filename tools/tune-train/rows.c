/* --rows STEP: the files and lines that a step trains on; --dry-run: the plan. */
#include <stdio.h>
#include <string.h>

#include "train.h"

static int print_doc(
	const struct run *r, const struct step_rec *rec, const struct step_doc *d, struct err *err)
{
	const struct stream_header *h = feed_header(r->feed);
	const char *input = d->src < h->ninputs ? h->inputs[d->src] : "?";
	struct buf b = {0};
	struct json_w w = { .out = &b };
	uint64_t trained = 0;
	int rc;

	for (size_t i = 0; i < d->ntok; i++)
		trained += r->data.mask[d->tok0 + i];
	if (r->tool->json) {
		json_w_obj(&w);
		json_w_name(&w, "record"); json_w_int(&w, (int64_t)rec->index);
		json_w_name(&w, "file"); json_w_str(&w, input);
		json_w_name(&w, "line"); json_w_int(&w, (int64_t)d->line);
		json_w_name(&w, "tokens"); json_w_int(&w, (int64_t)d->ntok);
		json_w_name(&w, "trained_tokens"); json_w_int(&w, (int64_t)trained);
		json_w_end(&w);
	} else {
		buf_printf(&b, "record %llu  %s:%llu  %zu tokens, %llu trained",
			(unsigned long long)rec->index, input, (unsigned long long)d->line, d->ntok,
			(unsigned long long)trained);
	}
	buf_putc(&b, '\n');
	rc = buf_ok(&b, err);
	if (!rc)
		fwrite(b.p, 1, b.n, stdout);   /* errors show when stdout is closed */
	buf_release(&b);
	return rc;
}

int print_rows(struct run *r, struct err *err)
{
	uint64_t n = feed_count(r->feed), per_epoch, step = r->o.rows_step - 1, first, got;

	if (r->steps && step >= r->steps)
		return err_set(err, EX_USAGE, "--rows %llu: the run has %llu steps",
			(unsigned long long)step + 1, (unsigned long long)r->steps);
	per_epoch = (n + r->batch - 1) / r->batch;
	first = step % per_epoch * r->batch;
	if (feed_load(r->feed, &r->data, r->seed, step / per_epoch, first,
			n - first < r->batch ? n - first : r->batch, r->max_record, 0, 1, &got, err) < 0)
		return -1;
	for (size_t i = 0; i < r->data.nrec; i++)
		for (size_t k = 0; k < r->data.rec[i].ndocs; k++)
			if (print_doc(r, &r->data.rec[i], &r->data.doc[r->data.rec[i].doc0 + k], err) < 0)
				return -1;
	return 0;
}
