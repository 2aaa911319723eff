/*
 * encode: rows -> documents, by several threads, in the input's order.
 *
 * The main thread reads raw rows into chunks; a chunk is a task of the pool: it is parsed, rendered
 * and tokenised into memory of its own.  Then the main thread hands the documents on, chunk after
 * chunk.  What a chunk makes depends on its rows only.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "libcommon/file.h"
#include "libcommon/pool.h"
#include "tokenize.h"

enum { CHUNK_BYTES = 128 << 10, CHUNK_ROWS = 256, CHUNKS_A_THREAD = 4 };

/* A row of a chunk: where it lies in raw, then what became of it. */
struct item {
	size_t at, n;                  /* in raw */
	struct raw_row row;
	int rc, code;                  /* 0, or -1, -2 and the exit status */
	size_t ids, nids;              /* in ids and mask; of an error: in msgs */
	uint64_t special;
};
struct chunk {
	struct buf raw, msgs, mask;
	uint32_t *ids; size_t nids, ids_cap;
	struct item *items; size_t n, cap;
};
struct worker { struct encoder *enc; struct row_parser *parser; struct sample sample; };

struct batch {
	struct tokenize *z;
	struct rows *rows;
	struct pool *pool;
	struct worker *workers; int nworkers;
	struct chunk *chunks; size_t nchunks, used;
	bool idle;                     /* the input would block */
};

static void fail_item(struct chunk *c, struct item *it, int rc, const struct err *err)
{
	it->rc = rc;
	it->code = err->code;
	it->ids = c->msgs.n;
	buf_put(&c->msgs, err->msg, strlen(err->msg) + 1);
}

/* Read rows into c: 1, 0 at the end of the file, -1 (what was read before is in c). */
static int fill(struct batch *b, struct chunk *c, struct err *err)
{
	struct item *it;
	int got;

	c->n = c->nids = 0;
	buf_clear(&c->raw);
	buf_clear(&c->msgs);
	buf_clear(&c->mask);
	do {
		if (grow(&c->items, &c->cap, c->n + 1, sizeof(*c->items), err) < 0)
			return -1;
		it = &c->items[c->n];
		*it = (struct item){0};
		got = rows_read(b->rows, &it->row, err);
		if (got == 0 || got == -1)
			return got;
		c->n++;
		if (got == -2)
			fail_item(c, it, -2, err);
		it->at = c->raw.n;
		it->n = got == -2 ? 0 : it->row.n;
		buf_put(&c->raw, it->row.text, it->n);
		if (buf_ok(&c->raw, err) < 0)
			return -1;
		b->idle = rows_would_block(b->rows);
	} while (c->n < CHUNK_ROWS && c->raw.n < CHUNK_BYTES && !b->idle);
	return 1;
}

static int encode_item(const struct tokenize *z, const struct rows *rows, struct worker *w,
	struct chunk *c, struct item *it, struct err *err)
{
	struct row row;
	struct sample *s = &w->sample;
	int rc;

	it->row.text = c->raw.p + it->at;
	if ((rc = row_parse(rows, w->parser, &it->row, &row, err)) < 0 ||
	    (rc = row_sample(rows, &row, s, w->enc, z->tok, z->chat, &z->opts, err)) < 0)
		return rc;
	if (grow(&c->ids, &c->ids_cap, c->nids + s->n, sizeof(*c->ids), err) < 0)
		return -1;
	memcpy(c->ids + c->nids, s->ids, s->n * sizeof(*s->ids));
	buf_put(&c->mask, s->mask, s->n);
	it->ids = c->nids;
	it->nids = s->n;
	it->special = s->special_in_content;
	c->nids += s->n;
	return buf_ok(&c->mask, err);
}

static void encode_chunk(void *ctx, long task, int worker)
{
	struct batch *b = ctx;
	struct chunk *c = &b->chunks[task];
	struct err err;
	size_t i;
	int rc;

	for (i = 0; i < c->n; i++) {
		err.code = 0;
		if (!c->items[i].rc &&
			(rc = encode_item(b->z, b->rows, &b->workers[worker], c, &c->items[i], &err)) < 0)
			fail_item(c, &c->items[i], rc, &err);
	}
}

/* A row that can't be used: counted, or the end. */
static int bad_item(
	struct tokenize *z, uint32_t src, const struct item *it, int rc, struct err *err)
{
	if (rc == -1)
		return -1;
	if (strcmp(cfg_str(z->cfg, "data.on_error"), "skip"))
		return z->report.rows < 2
			? -1
			: err_more(err, err->code, "--on-error=skip leaves such rows out and counts them");
	report_skip(z, src, it->row.line, err);
	return 0;
}

/* Hand on what a chunk made: 0, 1 if the sink has enough, -1. */
static int emit(struct tokenize *z, uint32_t src, const struct chunk *c, struct err *err)
{
	size_t i;
	int rc;

	for (i = 0; i < c->n; i++) {
		const struct item *it = &c->items[i];
		struct doc d = { src, it->row.line, c->ids + it->ids, (const uint8_t *)c->mask.p + it->ids,
			it->nids, it->special };

		z->report.rows++;
		if ((rc = it->rc))
			err_set(err, it->code, "%s", c->msgs.p + it->ids);
		else if ((rc = z->sink(z->sink_ctx, &d, err)) >= 0)
			report_doc(z, &d);
		if (rc < 0 ? bad_item(z, src, it, rc, err) < 0 : rc)
			return rc < 0 ? -1 : 1;
	}
	return 0;
}

static void show_progress(struct batch *b, uint64_t before)
{
	char rows[16], tokens[16], extra[64];

	format_count((double)b->z->report.rows, rows);
	format_count((double)b->z->report.tokens, tokens);
	snprintf(extra, sizeof(extra), "%s rows, %s tokens", rows, tokens);
	progress_update(&b->z->progress, before + rows_bytes(b->rows), extra);
}

static void say_shape(const struct batch *b)
{
	struct tokenize *z = b->z;
	enum row_shape s = rows_shape(b->rows);

	progress_clear(&z->progress);
	if (s == SHAPE_TEXT)
		tool_say(z->tool, "%s: text", rows_name(b->rows));
	else if (s != SHAPE_AUTO)
		tool_say(z->tool, "%s: %s, %s%s", rows_name(b->rows), row_shape_name(s),
			z->chat ? "chat template " : "no chat template", z->chat ? chat_name(z->chat) : "");
}

/* One file from begin to end: 0, 1 if the sink has enough, -1. */
static int encode_file(struct batch *b, uint32_t src, uint64_t before, struct err *err)
{
	struct tokenize *z = b->z;
	bool said = false;
	struct err stop = {0};
	int got = 1, rc = 0;
	size_t i;

	while (got > 0 && !rc) {
		b->used = 0;
		do
			got = fill(b, &b->chunks[b->used++], &stop);
		while (got > 0 && b->used < b->nchunks && !b->idle);
		z->in_array[src] = rows_in_array(b->rows);
		if (!said && rows_shape(b->rows) != SHAPE_AUTO) {
			say_shape(b);
			said = true;
		}
		pool_run(b->pool, (long)b->used, encode_chunk, b);
		for (i = 0; i < b->used && !rc; i++)
			rc = emit(z, src, &b->chunks[i], err);
		if (!rc && b->idle)
			rc = z->pause(z->sink_ctx, err);
		show_progress(b, before);
	}
	if (!rc && got < 0) {
		*err = stop;
		rc = -1;
	}
	rows_sum(b->rows, &z->sums[src].bytes, &z->sums[src].xxh64);
	return rc;
}

static int batch_open(struct batch *b, struct tokenize *z, struct err *err)
{
	int i;

	*b = (struct batch){ .z = z };
	if (pool_new(&b->pool, (int)cfg_int(z->cfg, "train.threads"), err) < 0)
		return -1;
	b->nworkers = pool_threads(b->pool);
	b->nchunks = (size_t)b->nworkers * (b->nworkers > 1 ? CHUNKS_A_THREAD : 1);
	if (!(b->workers = mem_zalloc((size_t)b->nworkers, sizeof(*b->workers), err)) ||
	    !(b->chunks = mem_zalloc(b->nchunks, sizeof(*b->chunks), err)))
		return -1;
	for (i = 0; i < b->nworkers; i++)
		if (encoder_new(&b->workers[i].enc, z->tok, err) < 0 ||
			row_parser_new(&b->workers[i].parser, err) < 0)
			return -1;
	return 0;
}

static void batch_close(struct batch *b)
{
	size_t i;

	for (i = 0; b->workers && i < (size_t)b->nworkers; i++) {
		encoder_free(b->workers[i].enc);
		row_parser_free(b->workers[i].parser);
		sample_release(&b->workers[i].sample);
	}
	for (i = 0; b->chunks && i < b->nchunks; i++) {
		struct chunk *c = &b->chunks[i];

		buf_release(&c->raw);
		buf_release(&c->msgs);
		buf_release(&c->mask);
		free(c->ids);
		free(c->items);
	}
	free(b->workers);
	free(b->chunks);
	pool_free(b->pool);
}

/* Bytes of all inputs, 0 if one is no regular file. */
static uint64_t total_bytes(const struct tokenize *z)
{
	uint64_t total = 0;
	struct stat st;
	size_t i;

	for (i = 0; i < z->ninputs; i++) {
		if (stat(z->inputs[i], &st) < 0 || !S_ISREG(st.st_mode))
			return 0;
		total += (uint64_t)st.st_size;
	}
	return total;
}

int encode_rows(struct tokenize *z, struct err *err)
{
	struct batch b;
	uint64_t before = 0;
	uint32_t i;
	int rc = batch_open(&b, z, err);

	progress_start(
		&z->progress, z->tool->name, "B", 0, total_bytes(z), z->tool->progress, z->tool->quiet);
	for (i = 0; i < z->ninputs && !rc; i++) {
		if (rows_open(&b.rows, z->inputs[i], z->cfg, err) < 0) {
			rc = -1;
			break;
		}
		rc = encode_file(&b, i, before, err);
		before += z->sums[i].bytes;
		rows_close(b.rows);
	}
	progress_end(&z->progress);
	batch_close(&b);
	return rc < 0 ? -1 : 0;
}

static int raw_file(struct tokenize *z, struct encoder *e, uint32_t src, struct buf *text,
	struct buf *mask, struct err *err)
{
	struct encoding enc;
	struct doc d = { .src = src, .line = 1 };
	bool is_stdin = !strcmp(z->inputs[src], "-");
	int rc;

	buf_clear(text);
	buf_clear(mask);
	if (file_read(is_stdin ? "/dev/stdin" : z->inputs[src], ROW_MAX, text, err) < 0)
		return -1;
	z->sums[src] = (struct stream_input_sum){ text->n, hash64(text->p, text->n) };
	z->report.rows++;
	if (encode(e, text->p, text->n, z->opts.special == SPECIAL_ALLOW, &enc, err) < 0) {
		err_prefix(err, "%s: ", input_name(z, src));
		return -1;
	}
	if (!enc.n)
		return err_set(err, EX_DATAERR, "%s: empty", input_name(z, src));
	d.ids = enc.ids;
	d.n = enc.n;
	if (!buf_room(mask, d.n))
		return buf_ok(mask, err);
	memset(mask->p, 1, d.n);
	mask->p[0] = 0;
	d.mask = (const uint8_t *)mask->p;
	if ((rc = z->sink(z->sink_ctx, &d, err)) >= 0)
		report_doc(z, &d);
	return rc < 0 ? -1 : rc;
}

int encode_raw(struct tokenize *z, struct err *err)
{
	struct encoder *e;
	struct buf text = {0}, mask = {0};
	uint32_t i;
	int rc = encoder_new(&e, z->tok, err);

	for (i = 0; i < z->ninputs && !rc; i++)
		rc = raw_file(z, e, i, &text, &mask, err);
	encoder_free(e);
	buf_release(&text);
	buf_release(&mask);
	return rc < 0 ? -1 : 0;
}
