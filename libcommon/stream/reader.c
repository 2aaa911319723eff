#include "libcommon/stream/internal.h"

#include <stdlib.h>
#include <string.h>

struct stream_in {
	struct bytes b;
	struct stream_header head;      /* of the first segment, inputs grown by later ones */
	bool open;                      /* between TUNE and TEND */
	bool started;                   /* head is there */
	struct decoder d;
	uint32_t *src_map;              /* d.src_map, owned */
	msgpack_unpacked u;
	struct hash64_state *seg_hash, *all_hash;
	struct stream_totals seg, done; /* of the open segment; of the finished ones */
	uint64_t index;                 /* of the next record */
	uint64_t parts;                 /* segments begun */
};

const char *stream_in_name(const struct stream_in *in)
{
	return in->b.name;
}

const struct stream_header *stream_in_header(const struct stream_in *in)
{
	return &in->head;
}

struct stream_totals stream_in_totals(const struct stream_in *in)
{
	return (struct stream_totals){ in->done.n + in->seg.n, in->done.tokens + in->seg.tokens,
		in->done.trained + in->seg.trained, hash64_value(in->seg_hash) };
}

uint64_t stream_in_running_hash(const struct stream_in *in)
{
	return hash64_value(in->all_hash);
}

uint64_t stream_in_parts(const struct stream_in *in)
{
	return in->parts;
}

/* "NAME: record N: " in front. */
static int at_record(const struct stream_in *in, struct err *err)
{
	return err_prefix(err, "%s: record %llu: ", in->b.name, (unsigned long long)in->index);
}

static int cut(const struct stream_in *in, struct err *err)
{
	unsigned long long n = in->index;

	if (bytes_have(&in->b) || in->b.in_frame)
		return err_set(err, EX_DATAERR, "%s: truncated inside record %llu", in->b.name, n);
	if (!n)
		return err_set(err, EX_DATAERR,
			"%s: empty: no TUNE record (did the program before it fail?)", in->b.name);
	return err_set(err, EX_DATAERR, "%s: truncated: no TEND after %llu records", in->b.name, n);
}

/* What these first bytes are, if they are no stream. */
static int not_a_stream(const struct stream_in *in, struct err *err)
{
	uint8_t c = *bytes_at(&in->b);

	if (c == '{' || c == '[')
		return err_set(err, EX_DATAERR,
			"%s: this is JSON, not a token stream: rows go through tune-tokenize, the JSON form of "
			"a stream "
			"through 'tune-stream encode'",
			in->b.name);
	return err_set(err, EX_DATAERR, "%s: not a token stream", in->b.name);
}

/* The next value as r->raw, r->len and tag, with its map.  0: clean end. */
static int next_value(
	struct stream_in *in, struct record *r, const msgpack_object **map, struct err *err)
{
	size_t need = 1, limit = in->open ? STREAM_RECORD_MAX : STREAM_HEADER_MAX;
	struct scan s;
	enum scan_result got = SCAN_MORE;

	if (!in->open && bytes_boundary(&in->b, err) < 0)
		return -1;
	scan_init(&s);
	do {
		int more = bytes_want(&in->b, need, err);

		if (more < 0)
			return -1;
		if (!more && !bytes_have(&in->b) && !in->b.in_frame && !in->open && in->index)
			return 0;
		if (!more)
			return cut(in, err);
		if (!in->started && (*bytes_at(&in->b) & 0xfd) != 0x90 &&
			(*bytes_at(&in->b) & 0xfe) != 0xdc)
			return not_a_stream(in, err);
		got = scan_value(&s, bytes_at(&in->b), bytes_have(&in->b), limit, &need);
	} while (got == SCAN_MORE);
	r->raw = bytes_at(&in->b);
	r->len = s.pos;
	r->index = in->index;
	if (got != SCAN_DONE)
		return scan_error(got, limit, err), at_record(in, err);
	return msg_record(&in->u, r->raw, r->len, r->tag, map, err) < 0 ? at_record(in, err) : 1;
}

/* A later segment: of the same kind and tokenizer; its inputs join those that are known. */
static int join(struct stream_in *in, struct stream_header *h, struct err *err)
{
	bool same;
	char what[64];

	if (h->kind != in->head.kind)
		return err_set(err, EX_DATAERR, "a stream of kind '%s' after one of kind '%s'",
			stream_kind_name(h->kind), stream_kind_name(in->head.kind));
	snprintf(what, sizeof(what), "the part from record %llu on", (unsigned long long)in->index);
	if (stream_same_tokenizer(&in->head.tok, "the first part", &h->tok, what, err) < 0)
		return -1;
	free(in->src_map);
	in->src_map = NULL;
	if (header_union(&in->head, h, &in->src_map, &same, err) < 0)
		return -1;
	in->d.src_map = same ? NULL : in->src_map;
	in->d.seq_base = in->d.seq_end;
	return 0;
}

static int begin_segment(
	struct stream_in *in, const struct record *r, const msgpack_object *map, struct err *err)
{
	struct stream_header h = {0};
	int rc = -1;

	if (!rec_is(r, "TUNE"))
		return err_set(err, EX_DATAERR,
			in->started ? "'%s' after TEND: only another TUNE may follow"
						: "'%s' where TUNE must stand",
			r->tag);
	if (header_decode(&h, map, err) < 0)
		goto done;
	in->d.kind = h.kind;
	in->d.vocab = h.tok.vocab;
	in->d.ninputs = h.ninputs;
	if (in->started) {
		rc = join(in, &h, err);
	} else {
		in->head = h;
		h = (struct stream_header){0};
		rc = 0;
	}
	in->started = in->open = true;
	in->parts++;
	in->done.n += in->seg.n;
	in->done.tokens += in->seg.tokens;
	in->done.trained += in->seg.trained;
	in->seg = (struct stream_totals){0};
	hash64_free(in->seg_hash);
	if (!(in->seg_hash = hash64_new(err)))
		rc = -1;
done:
	stream_header_release(&h);
	return rc;
}

static int end_segment(struct stream_in *in, const msgpack_object *map, struct err *err)
{
	struct stream_end e;
	struct stream_totals t = in->seg;

	t.xxh64 = hash64_value(in->seg_hash);
	if (end_decode(&e, map, err) < 0 || end_check(&e, &t, err) < 0)
		return -1;
	in->open = false;
	return 0;
}

bool stream_begins(const void *p, size_t n)
{
	return n >= 4 && (!memcmp(p, "\x92\xa4TUNE", n < 6 ? n : 6) ||
						 !memcmp(p, "\x28\xb5\x2f\xfd", 4));
}

/* path, or what has been opened already */
static int start(
	struct stream_in **out, const char *path, const struct peeked *p, struct err *err)
{
	struct stream_in *in = mem_zalloc(1, sizeof(*in), err);
	const msgpack_object *map;
	struct record r;

	*out = NULL;
	if (!in)
		return -1;
	in->b.fd = -1;
	if ((p ? bytes_take(&in->b, p, err) : bytes_open(&in->b, path, err)) < 0 ||
		!(in->seg_hash = hash64_new(err)) ||
		!(in->all_hash = hash64_new(err)) || next_value(in, &r, &map, err) < 0)
		goto fail;
	if (begin_segment(in, &r, map, err) < 0) {
		at_record(in, err);
		goto fail;
	}
	bytes_skip(&in->b, r.len);
	in->index++;
	*out = in;
	return 0;
fail:
	stream_in_close(in);
	return -1;
}

int stream_in_open(struct stream_in **in, const char *path, struct err *err)
{
	return start(in, path, NULL, err);
}

int stream_in_take(struct stream_in **in, const struct peeked *p, struct err *err)
{
	return start(in, NULL, p, err);
}

int stream_in_onto(struct stream_in *in, const struct stream_header *known, const char *known_name,
	uint64_t first_seq, struct err *err)
{
	struct stream_header h;
	bool same;

	if (known->kind != in->head.kind)
		return err_set(err, EX_DATAERR, "%s is of kind '%s', but %s of kind '%s'", in->b.name,
			stream_kind_name(in->head.kind), known_name, stream_kind_name(known->kind));
	if (stream_same_tokenizer(&known->tok, known_name, &in->head.tok, in->b.name, err) < 0)
		return -1;
	free(in->src_map);
	in->src_map = NULL;
	if (stream_header_copy(&h, known, err) < 0 ||
		header_union(&h, &in->head, &in->src_map, &same, err) < 0) {
		stream_header_release(&h);
		return -1;
	}
	stream_header_release(&in->head);
	in->head = h;
	in->d.src_map = same ? NULL : in->src_map;
	in->d.seq_base = in->d.seq_end = first_seq;
	return 0;
}

uint64_t stream_in_seq_end(const struct stream_in *in)
{
	return in->d.seq_end;
}

/*
 * A record is skipped only when the next one is asked for, as r->raw points into the window; so
 * `pending` bytes stay in front of the window between calls.  It is the raw length in the input,
 * which a rewritten record does not have.
 */
int stream_next(struct stream_in *in, struct record *r, struct err *err)
{
	const msgpack_object *map;
	size_t len;
	int got;

	for (;;) {
		if (in->d.pending) {
			bytes_skip(&in->b, in->d.pending);
			in->d.pending = 0;
		}
		if ((got = next_value(in, r, &map, err)) <= 0)
			return got;
		len = in->d.pending = r->len;
		if (!in->open               ? begin_segment(in, r, map, err) < 0
				: rec_is(r, "TEND") ? end_segment(in, map, err) < 0
				: rec_is(r, "indx") ? false
									: decode_record(&in->d, map, r, err) < 0)
			return at_record(in, err);
		in->index++;
		if (!in->open || rec_is(r, "TUNE") || rec_is(r, "indx"))
			continue;
		hash64_add(in->seg_hash, bytes_at(&in->b), len);
		hash64_add(in->all_hash, r->raw, r->len);
		in->seg.n++;
		in->seg.tokens += r->tokens;
		in->seg.trained += r->trained;
		return 1;
	}
}

/* Undecided bytes of a record may be here already: only a whole record lets its reader go on. */
bool stream_in_would_block(const struct stream_in *in)
{
	struct scan s;
	size_t need, have = bytes_have(&in->b) - in->d.pending;

	if (!bytes_would_block(&in->b))
		return false;
	if (in->b.zstd && in->b.raw.pos != in->b.raw.end)
		return false;
	scan_init(&s);
	return !have ||
		scan_value(&s, bytes_at(&in->b) + in->d.pending, have, STREAM_RECORD_MAX, &need) ==
		SCAN_MORE;
}

void stream_in_close(struct stream_in *in)
{
	if (!in)
		return;
	bytes_close(&in->b);
	stream_header_release(&in->head);
	decoder_release(&in->d);
	free(in->src_map);
	msgpack_unpacked_destroy(&in->u);
	hash64_free(in->seg_hash);
	hash64_free(in->all_hash);
	free(in);
}
