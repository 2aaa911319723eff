#include "libcommon/stream/internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "libcommon/progress.h"

/* Indexed frames are small, as reading one record at random decompresses its frame. */
enum { FRAME_INDEXED = 256 << 10, FRAME_ZSTD = 1 << 20, FRAME_PLAIN = 256 << 10 };

struct stream_out {
	FILE *fp;
	char *name;
	struct stream_out_opts opts;
	struct stream_header head;
	struct decoder d;               /* checks records that come as bytes or JSON */
	msgpack_unpacked u;
	/* whole records that wait; the same compressed; a record from JSON */
	struct buf frame, packed, one;
	ZSTD_CCtx *cctx;
	struct stream_index index;
	uint64_t frame_first;           /* number of the first record in frame */
	uint64_t offset;                /* compressed bytes written */
	uint64_t plain;                 /* uncompressed bytes, those of frame included */
	struct hash64_state *hash;
	struct stream_totals t;
	double flushed_s;
};

static int write_all(struct stream_out *o, const void *p, size_t n, struct err *err)
{
	if (n && fwrite(p, 1, n, o->fp) != n)
		return err_errno(err, EX_IOERR, "cannot write '%s'", o->name);
	o->offset += n;
	return 0;
}

/* Write what waits in frame, as one zstd frame or plain. */
static int put_frame(struct stream_out *o, struct err *err)
{
	size_t n = o->frame.n, got;
	char *to;

	if (!n)
		return buf_ok(&o->frame, err);
	if (!o->opts.zstd_level) {
		if (write_all(o, o->frame.p, n, err) < 0)
			return -1;
		buf_clear(&o->frame);
		return 0;
	}
	buf_clear(&o->packed);
	if (!(to = buf_room(&o->packed, ZSTD_compressBound(n))))
		return err_oom(err, ZSTD_compressBound(n));
	got = ZSTD_compress2(o->cctx, to, ZSTD_compressBound(n), o->frame.p, n);
	if (ZSTD_isError(got))
		return err_set(err, EX_SOFTWARE, "zstd: %s", ZSTD_getErrorName(got));
	if (o->opts.index && o->t.n > o->frame_first &&
		index_add_entry(&o->index, o->frame_first, o->offset, err) < 0)
		return -1;
	if (o->opts.index &&
		index_add_frame(&o->index, (struct frame_size){ (uint32_t)got, (uint32_t)n }, err) < 0)
		return -1;
	o->frame_first = o->t.n;
	buf_clear(&o->frame);
	return write_all(o, to, got, err);
}

int stream_out_open(struct stream_out **out, FILE *fp, const char *name,
	const struct stream_header *h, struct stream_out_opts opts, struct err *err)
{
	struct stream_out *o = mem_zalloc(1, sizeof(*o), err);

	*out = NULL;
	if (!o)
		return -1;
	o->fp = fp;
	if (!(o->name = mem_strdup(strcmp(name, "-") ? name : "standard output", err))) {
		free(o);
		return -1;
	}
	o->opts = opts;
	o->flushed_s = now_s();
	if (stream_header_copy(&o->head, h, err) < 0 || !(o->hash = hash64_new(err)))
		goto fail;
	o->d.kind = h->kind;
	o->d.vocab = h->tok.vocab;
	o->d.ninputs = h->ninputs ? h->ninputs : 1;
	if (opts.zstd_level) {
		if (!(o->cctx = ZSTD_createCCtx())) {
			err_oom(err, 0);
			goto fail;
		}
		ZSTD_CCtx_setParameter(o->cctx, ZSTD_c_compressionLevel, opts.zstd_level);
		ZSTD_CCtx_setParameter(o->cctx, ZSTD_c_checksumFlag, 1);
	}
	if (header_encode(h, &o->frame, err) < 0)
		goto fail;
	o->plain = o->frame.n;
	/* TUNE has a frame of its own, so that a frame of records begins with one. */
	if (opts.zstd_level && put_frame(o, err) < 0)
		goto fail;
	*out = o;
	return 0;
fail:
	stream_out_close(o);
	return -1;
}

/* Make room for a record of about n bytes in the frame. */
static int begin_record(struct stream_out *o, size_t n, struct err *err)
{
	size_t most = o->opts.index ? FRAME_INDEXED : o->opts.zstd_level ? FRAME_ZSTD : FRAME_PLAIN;

	return o->frame.n && o->frame.n + n > most ? put_frame(o, err) : 0;
}

/* The record from `start` of the frame on is complete. */
static int end_record(
	struct stream_out *o, size_t start, uint64_t tokens, uint64_t trained, struct err *err)
{
	size_t n = o->frame.n - start;

	if (buf_ok(&o->frame, err) < 0)
		return -1;
	if (n > STREAM_RECORD_MAX)
		return err_set(err, EX_DATAERR, "%s: a record of %zu bytes is larger than the limit of %d",
			o->name, n, STREAM_RECORD_MAX);
	hash64_add(o->hash, o->frame.p + start, n);
	o->plain += n;
	o->t.n++;
	o->t.tokens += tokens;
	o->t.trained += trained;
	return 0;
}

static uint64_t count_ones(const uint8_t *mask, uint32_t n)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < n; i++)
		sum += mask[i];
	return sum;
}

static void put_ids_mask(msgpack_packer *pk, const uint32_t *ids, const uint8_t *mask, uint32_t n)
{
	msg_put_str(pk, "ids");
	msg_put_bin(pk, ids, (size_t)n * 4);
	msg_put_str(pk, "mask");
	msg_put_bin(pk, mask, n);
}

int stream_put_toks(struct stream_out *o, const struct rec_toks *t, struct err *err)
{
	msgpack_packer pk;
	size_t start;

	if (begin_record(o, (size_t)t->n * 5 + 64, err) < 0)
		return -1;
	start = o->frame.n;
	msg_packer(&pk, &o->frame);
	msg_begin(&pk, "TOKS", 5);
	msg_put_str(&pk, "seq");
	msgpack_pack_uint64(&pk, t->seq);
	msg_put_str(&pk, "src");
	msgpack_pack_uint32(&pk, t->src);
	msg_put_str(&pk, "line");
	msgpack_pack_uint64(&pk, t->line);
	put_ids_mask(&pk, t->ids, t->mask, t->n);
	return end_record(o, start, t->n, count_ones(t->mask, t->n), err);
}

int stream_put_pack(struct stream_out *o, const struct rec_pack *p, struct err *err)
{
	msgpack_packer pk;
	size_t start;
	uint32_t i;

	if (begin_record(o, (size_t)p->n * 5 + (size_t)p->ndocs * 24 + 64, err) < 0)
		return -1;
	start = o->frame.n;
	msg_packer(&pk, &o->frame);
	msg_begin(&pk, "PACK", 7);
	msg_put_str(&pk, "seq");
	msgpack_pack_uint64(&pk, p->seq);
	put_ids_mask(&pk, p->ids, p->mask, p->n);
	msg_put_str(&pk, "lens");
	msgpack_pack_array(&pk, p->ndocs);
	for (i = 0; i < p->ndocs; i++)
		msgpack_pack_uint32(&pk, p->lens[i]);
	msg_put_str(&pk, "docs");
	msgpack_pack_array(&pk, p->ndocs);
	for (i = 0; i < p->ndocs; i++)
		msgpack_pack_uint64(&pk, p->docs[i]);
	msg_put_str(&pk, "srcs");
	msgpack_pack_array(&pk, p->ndocs);
	for (i = 0; i < p->ndocs; i++)
		msgpack_pack_uint32(&pk, p->srcs[i]);
	msg_put_str(&pk, "lines");
	msgpack_pack_array(&pk, p->ndocs);
	for (i = 0; i < p->ndocs; i++)
		msgpack_pack_uint64(&pk, p->lines[i]);
	return end_record(o, start, p->n, count_ones(p->mask, p->n), err);
}

int stream_put_scor(struct stream_out *o, const struct rec_scor *s, struct err *err)
{
	msgpack_packer pk;
	size_t start;

	if (begin_record(o, (size_t)s->n * 5 + 64, err) < 0)
		return -1;
	start = o->frame.n;
	msg_packer(&pk, &o->frame);
	msg_begin(&pk, "SCOR", 3);
	msg_put_str(&pk, "seq");
	msgpack_pack_uint64(&pk, s->seq);
	msg_put_str(&pk, "logp");
	msg_put_bin(&pk, s->logp, (size_t)s->n * 4);
	msg_put_str(&pk, "greedy");
	msg_put_bin(&pk, s->greedy, s->n);
	return end_record(o, start, s->n, 0, err);
}

int stream_put_raw(struct stream_out *o, const struct record *r, struct err *err)
{
	size_t start;

	if (begin_record(o, r->len, err) < 0)
		return -1;
	start = o->frame.n;
	buf_put(&o->frame, r->raw, r->len);
	return end_record(o, start, r->tokens, r->trained, err);
}

int stream_put_json(struct stream_out *o, const struct json *line, struct err *err)
{
	struct record r = {0};
	const msgpack_object *map;

	buf_clear(&o->one);
	if (json_to_record(line, o->head.kind, &o->one, err) < 0 ||
	    msg_parse(&o->u, (uint8_t *)o->one.p, o->one.n, STREAM_RECORD_MAX, r.tag, &map, err) < 0)
		return -1;
	if (rec_is(&r, "indx"))   /* its offsets were those of another file */
		return 0;
	r.raw = (uint8_t *)o->one.p;
	r.len = o->one.n;
	return decode_record(&o->d, map, &r, err) < 0 ? -1 : stream_put_raw(o, &r, err);
}

int stream_out_flush(struct stream_out *o, struct err *err)
{
	if (put_frame(o, err) < 0)
		return -1;
	if (fflush(o->fp))
		return err_errno(err, EX_IOERR, "cannot write '%s'", o->name);
	o->flushed_s = now_s();
	return 0;
}

int stream_out_tick(struct stream_out *o, bool input_would_block, struct err *err)
{
	struct stat st;

	/* A file has no reader that waits, and its bytes must not depend on the clock. */
	if (fstat(fileno(o->fp), &st) == 0 && S_ISREG(st.st_mode))
		return 0;
	return input_would_block || now_s() - o->flushed_s >= 1 ? stream_out_flush(o, err) : 0;
}

int stream_out_finish(struct stream_out *o, const struct stream_input_sum *inputs, size_t ninputs,
	struct stream_totals *totals, struct err *err)
{
	struct buf table = {0};
	int rc = -1;

	o->t.xxh64 = hash64_value(o->hash);
	/* The last frame holds indx and TEND alone: who seeks finds both through the seek table. */
	if (o->opts.zstd_level && put_frame(o, err) < 0)
		return -1;
	if (o->opts.index && index_encode(&o->index, o->t.n, &o->frame, err) < 0)
		return -1;
	if (end_encode(&o->t, inputs, ninputs, &o->frame, err) < 0 || put_frame(o, err) < 0)
		return -1;
	if (o->opts.index)
		seek_table_encode(&o->index, &table);
	if (buf_ok(&table, err) == 0 && write_all(o, table.p, table.n, err) == 0)
		rc = stream_out_flush(o, err);
	buf_release(&table);
	if (totals)
		*totals = o->t;
	return rc;
}

uint64_t stream_out_bytes(const struct stream_out *o)
{
	return o->plain;
}

void stream_out_close(struct stream_out *o)
{
	if (!o)
		return;
	stream_header_release(&o->head);
	decoder_release(&o->d);
	msgpack_unpacked_destroy(&o->u);
	buf_release(&o->frame);
	buf_release(&o->packed);
	buf_release(&o->one);
	ZSTD_freeCCtx(o->cctx);
	index_release(&o->index);
	hash64_free(o->hash);
	free(o->name);
	free(o);
}
