#include "feed.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "libcommon/file.h"
#include "libcommon/json.h"
#include "libcommon/rng.h"
#include "shardset.h"
#include "train.h"

struct feed {
	char *name;
	struct shardset set;           /* a folder: its files; a single indexed file: one */
	struct stream_at **at;         /* [set.n], opened at first use */
	struct stream_in *in;          /* or a stream */
	uint64_t consumed;             /* records of the stream so far */
};

int feed_open(struct feed **out, const char *path, const char *split, struct err *err)
{
	struct feed *f = mem_zalloc(1, sizeof(*f), err);

	*out = NULL;
	if (!f)
		return -1;
	if (!(f->name = mem_strdup(strcmp(path, "-") ? path : "standard input", err)))
		goto fail;
	if (is_dir(path)) {
		if (shardset_read(&f->set, path, split, err) < 0)
			goto fail;
	} else {
		struct stream_at *at = NULL;
		/* without an index it is read as a stream, which reports what is wrong */
		struct err no_index = {0};

		if (is_file(path) && !stream_at_open(&at, path, &no_index)) {
			if (shardset_single(&f->set, path, stream_at_count(at), stream_at_totals(at), err) <
				0) {
				stream_at_close(at);
				goto fail;
			}
			stream_at_close(at);
		} else if (stream_in_open(&f->in, path, err) < 0) {
			goto fail;
		}
	}
	if (!f->in) {
		f->at = mem_zalloc(f->set.n, sizeof(*f->at), err);
		if (!f->at || stream_at_open(&f->at[0], f->set.files[0].path, err) < 0)
			goto fail;
	}
	if (feed_header(f)->kind != KIND_PACK && feed_header(f)->kind != KIND_TOKS) {
		err_set(err, EX_DATAERR, "%s: a stream of kind %s; this loss trains on toks and pack",
			f->name, stream_kind_name(feed_header(f)->kind));
		goto fail;
	}
	*out = f;
	return 0;
fail:
	feed_close(f);
	return -1;
}

void feed_close(struct feed *f)
{
	if (!f)
		return;
	for (size_t i = 0; f->at && i < f->set.n; i++)
		stream_at_close(f->at[i]);
	free(f->at);
	stream_in_close(f->in);
	shardset_release(&f->set);
	free(f->name);
	free(f);
}

bool feed_has_split(const char *path, const char *split)
{
	struct shardset s = {0};
	struct err ignored = {0};
	bool has = is_dir(path) && !shardset_read(&s, path, split, &ignored);

	shardset_release(&s);
	return has;
}

bool feed_sequential(const struct feed *f) { return f->in != NULL; }
uint64_t feed_count(const struct feed *f) { return f->set.records; }
uint64_t feed_tokens(const struct feed *f) { return f->set.tokens; }
long feed_max_record(const struct feed *f) { return f->set.seq_len; }
const char *feed_name(const struct feed *f) { return f->name; }
const char *feed_identity(const struct feed *f) { return f->set.identity; }
uint64_t feed_running_hash(const struct feed *f)
{
	return f->in ? stream_in_running_hash(f->in) : 0;
}
uint64_t feed_consumed(const struct feed *f) { return f->consumed; }

const struct stream_header *feed_header(const struct feed *f)
{
	return f->in ? stream_in_header(f->in) : stream_at_header(f->at[0]);
}

/* A later file of the set is of the first one's kind and tokenizer. */
static int same_stream(const struct feed *f, size_t i, struct err *err)
{
	const struct stream_header *a = stream_at_header(f->at[0]), *b = stream_at_header(f->at[i]);

	if (a->kind != b->kind)
		return err_set(err, EX_DATAERR, "%s is of kind '%s', but %s of kind '%s'",
			f->set.files[i].path, stream_kind_name(b->kind), f->set.files[0].path,
			stream_kind_name(a->kind));
	return stream_same_tokenizer(
		&a->tok, f->set.files[0].path, &b->tok, f->set.files[i].path, err);
}

/* Record g of the whole set. */
static int get(struct feed *f, uint64_t g, struct record *r, struct err *err)
{
	size_t i = shardset_find(&f->set, g);

	if (!f->at[i]) {
		if (stream_at_open(&f->at[i], f->set.files[i].path, err) < 0 ||
			same_stream(f, i, err) < 0)
			return -1;
		if (stream_at_count(f->at[i]) != f->set.files[i].records)
			return err_set(err, EX_DATAERR, "%s: %llu records, the manifest says %llu",
				f->set.files[i].path, (unsigned long long)stream_at_count(f->at[i]),
				(unsigned long long)f->set.files[i].records);
	}
	if (stream_at_get(f->at[i], g - f->set.files[i].first, r, err) < 0)
		return -1;
	if (!rec_optional(r))
		return 0;
	/* It has a number there, but is nothing to train on. */
	return err_set(err, EX_DATAERR,
		"%s: record %llu is a '%s' record, which has no place in a batch: train on the file as a "
		"stream ('tune-stream cat %s | tune-train ... -'), or take the record out",
		f->set.files[i].path, (unsigned long long)r->index, r->tag, f->set.files[i].path);
}

static int add_doc(struct step_data *d, struct step_rec *rec, uint32_t off, uint32_t n,
	uint32_t src, uint64_t line, struct err *err)
{
	if (grow(&d->doc, &d->doc_cap, d->docs + 1, sizeof(*d->doc), err) < 0)
		return -1;
	d->doc[d->docs++] = (struct step_doc){ rec->tok0 + off, n, off, src, line };
	rec->ndocs++;
	return 0;
}

static int add_record(struct feed *f, struct step_data *d, const struct record *r, uint64_t index,
	uint32_t position, long max_record, struct err *err)
{
	bool pack = rec_is(r, "PACK");
	uint32_t n = pack ? r->pack.n : r->toks.n;
	const uint32_t *ids = pack ? r->pack.ids : r->toks.ids;
	const uint8_t *mask = pack ? r->pack.mask : r->toks.mask;
	struct step_rec rec = {
		.index = index, .position = position, .doc0 = d->docs, .tok0 = d->tokens, .ntok = n
	};

	if ((long)n > max_record)
		return err_set(err, EX_DATAERR,
			"%s: record %llu has %u tokens, the limit is %ld: raise shard.seq_len, "
			"or put tune-shard before tune-train",
			f->name, (unsigned long long)index, n, max_record);
	if (grow(&d->ids, &d->ids_cap, d->tokens + n, sizeof(*d->ids), err) < 0 ||
	    grow(&d->mask, &d->mask_cap, d->tokens + n, sizeof(*d->mask), err) < 0)
		return -1;
	memcpy(d->ids + d->tokens, ids, n * sizeof(*ids));
	memcpy(d->mask + d->tokens, mask, n);
	if (pack) {
		for (uint32_t i = 0, off = 0; i < r->pack.ndocs; off += r->pack.lens[i++])
			if (add_doc(d, &rec, off, r->pack.lens[i], r->pack.srcs[i], r->pack.lines[i], err) < 0)
				return -1;
	} else if (add_doc(d, &rec, 0, n, r->toks.src, r->toks.line, err) < 0) {
		return -1;
	}
	for (size_t i = rec.doc0; i < d->docs; i++)   /* nothing predicts a document's first token */
		d->mask[d->doc[i].tok0] = 0;
	for (uint32_t i = 0; i < n; i++)
		d->trained += d->mask[d->tokens + i];
	d->tokens += n;
	if (grow(&d->rec, &d->rec_cap, d->nrec + 1, sizeof(*d->rec), err) < 0)
		return -1;
	d->rec[d->nrec++] = rec;
	return 0;
}

int feed_load(struct feed *f, struct step_data *d, uint64_t seed, uint64_t epoch, uint64_t first,
	uint64_t n, long max_record, int rank, int ranks, uint64_t *got, struct err *err)
{
	struct record r;
	int rc = 0;

	d->nrec = d->docs = d->tokens = 0;
	d->trained = 0;
	step_rewind(d);
	*got = n;
	for (uint64_t i = first; i < first + n; i++) {
		uint64_t g = i;

		if (f->in) {
			while ((rc = stream_next(f->in, &r, err)) > 0 && !rec_is(&r, "TOKS") &&
				!rec_is(&r, "PACK"))
				;   /* lower-case tags pass */
			if (rc < 0)
				return -1;
			if (rc == 0) {
				*got = i - first;
				break;
			}
			g = f->consumed++;
		} else {
			if (i % (uint64_t)ranks != (uint64_t)rank)
				continue;
			if (epoch)
				g = rng_permute(seed, epoch, f->set.records, i);
			if (get(f, g, &r, err) < 0)
				return -1;
		}
		if (i % (uint64_t)ranks == (uint64_t)rank &&
		    add_record(f, d, &r, g, (uint32_t)(i - first), max_record, err) < 0)
			return -1;
	}
	return 0;
}

int feed_skip(struct feed *f, uint64_t n, uint64_t hash, struct err *err)
{
	struct record r;
	int rc = 1;

	assert(f->in);
	while (f->consumed < n && (rc = stream_next(f->in, &r, err)) > 0)
		if (rec_is(&r, "TOKS") || rec_is(&r, "PACK"))
			f->consumed++;
	if (rc < 0)
		return -1;
	if (rc == 0)
		return err_set(err, EX_DATAERR,
			"%s: ends after %llu records; the run that resumes had read %llu", f->name,
			(unsigned long long)f->consumed, (unsigned long long)n);
	if (stream_in_running_hash(f->in) != hash)
		return err_set(err, EX_DATAERR,
			"%s: its first %llu records are not those that the run was trained on; "
			"make the stream as before, or start another run",
			f->name, (unsigned long long)n);
	return 0;
}

void step_rewind(struct step_data *d)
{
	d->next_rec = 0;
}

int step_micro(struct step_data *d, long micro_tokens, struct batch *b, struct err *err)
{
	size_t first = d->next_rec, last = first, tokens = 0, docs = 0, doc0, tok0;

	if (first == d->nrec)
		return 0;
	while (
		last < d->nrec && (last == first || tokens + d->rec[last].ntok <= (size_t)micro_tokens)) {
		tokens += d->rec[last].ntok;
		docs += d->rec[last++].ndocs;
	}
	d->next_rec = last;
	if (grow(&d->cu, &d->cu_cap, docs + 1, sizeof(*d->cu), err) < 0 ||
	    grow(&d->brec, &d->brec_cap, docs, sizeof(*d->brec), err) < 0 ||
	    grow(&d->off0, &d->off_cap, docs, sizeof(*d->off0), err) < 0)
		return -1;
	doc0 = d->rec[first].doc0;
	tok0 = d->rec[first].tok0;
	*b = (struct batch){ .t = (long)tokens,
		.docs = (int)docs,
		.ids = d->ids + tok0,
		.mask = d->mask + tok0,
		.cu = d->cu,
		.rec = d->brec,
		.off0 = d->off0,
		.group = 1 };
	for (size_t r = first; r < last; r++)
		for (size_t i = d->rec[r].doc0; i < d->rec[r].doc0 + d->rec[r].ndocs; i++) {
			d->cu[i - doc0] = (int32_t)(d->doc[i].tok0 - tok0);
			d->brec[i - doc0] = d->rec[r].position;
			d->off0[i - doc0] = d->doc[i].off0;
		}
	d->cu[docs] = (int32_t)tokens;
	for (size_t i = 0; i < tokens; i++)
		b->trained += b->mask[i];
	return 1;
}

void step_data_release(struct step_data *d)
{
	free(d->rec);
	free(d->doc);
	free(d->ids);
	free(d->mask);
	free(d->cu);
	free(d->brec);
	free(d->off0);
	*d = (struct step_data){0};
}
