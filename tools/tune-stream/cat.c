/* cat: several streams as one, or as the lines of the JSON form. */
#include <stdio.h>

#include "copy.h"
#include "verbs.h"

static int print_line(struct buf *line, int rc, struct err *err)
{
	if (rc < 0)
		return -1;
	buf_putc(line, '\n');
	if (buf_ok(line, err) < 0)
		return -1;
	if (fwrite(line->p, 1, line->n, stdout) != line->n)
		return err_errno(err, EX_IOERR, "cannot write to standard output");
	buf_clear(line);
	return 0;
}

static int cat_binary(struct stream_merge *m, struct err *err)
{
	struct copy c = {0};
	struct record r;
	int got, rc = copy_begin(&c, m, err);

	while (rc == 0 && (got = stream_merge_next(m, &r, err)) != 0)
		rc = got < 0 ? -1 : copy_record(&c, m, &r, err);
	if (rc == 0)
		rc = copy_end(&c, m, err);
	copy_release(&c);
	return rc;
}

/* TEND of the part that ends, with the sums since `from`. */
static int print_end(
	struct buf *line, struct stream_totals t, struct stream_totals from, struct err *err)
{
	t = (struct stream_totals){ t.n - from.n, t.tokens - from.tokens, t.trained - from.trained,
		t.xxh64 };
	return print_line(line, stream_totals_json(&t, line, err), err);
}

static int cat_json(struct stream_merge *m, struct err *err)
{
	struct buf line = {0};
	struct record r;
	struct stream_totals from = {0}, t = {0};
	struct hash64_state *hash = hash64_new(err);
	size_t ninputs = stream_merge_header(m)->ninputs;
	int got = 1, rc = -1;

	if (!hash || print_line(&line, stream_header_json(stream_merge_header(m), &line, err), err) < 0)
		goto done;
	while ((got = stream_merge_next(m, &r, err)) > 0) {
		/* its inputs are new: a part of its own */
		if (stream_merge_header(m)->ninputs != ninputs) {
			ninputs = stream_merge_header(m)->ninputs;
			t.xxh64 = hash64_value(hash);
			hash64_free(hash);
			if (!(hash = hash64_new(err)) || print_end(&line, t, from, err) < 0 ||
			    print_line(&line, stream_header_json(stream_merge_header(m), &line, err), err) < 0)
				goto done;
			from = t;
		}
		hash64_add(hash, r.raw, r.len);
		if (print_line(&line, stream_record_json(&r, &line, err), err) < 0) {
			err_prefix(err, "%s: record %llu: ", stream_merge_name(m), (unsigned long long)r.index);
			goto done;
		}
		t = stream_merge_totals(m);
		if (stream_merge_would_block(m) && fflush(stdout)) {
			err_errno(err, EX_IOERR, "cannot write to standard output");
			goto done;
		}
	}
	t = stream_merge_totals(m);
	if (got == 0 && hash) {
		t.xxh64 = hash64_value(hash);
		rc = print_end(&line, t, from, err);
	}
done:
	hash64_free(hash);
	buf_release(&line);
	return rc;
}

int verb_cat(const struct args *a, struct err *err)
{
	struct stream_merge *m = NULL;
	int rc = -1;

	if ((a->json || refuse_terminal("-", err) == 0) &&
	    stream_merge_open(&m, a->paths, a->npaths, "tune-stream cat", err) == 0)
		rc = a->json ? cat_json(m, err) : cat_binary(m, err);
	stream_merge_close(m);
	return rc;
}
