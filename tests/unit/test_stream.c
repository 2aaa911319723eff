#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libcommon/file.h"
#include "libcommon/stream/stream.h"
#include "tap.h"

static struct err e;
static char path[] = "/tmp/test_stream.XXXXXX";

static struct stream_header header(const char *input, uint32_t vocab)
{
	static const uint32_t eos[] = { 2 };
	struct stream_header h = { .kind = KIND_TOKS, .tok = { .vocab = vocab, .bos = 1, .pad = -1 } };

	snprintf(h.tok.sha256, sizeof(h.tok.sha256), "%064d", 7);
	h.tok.eos = malloc(sizeof(eos));
	memcpy(h.tok.eos, eos, sizeof(eos));
	h.tok.neos = 1;
	h.inputs = malloc(sizeof(*h.inputs));
	h.inputs[0] = strdup(input);
	h.ninputs = 1;
	return h;
}

/* n documents of i % 50 + 1 tokens onto fp. */
static struct stream_totals put_stream(
	FILE *fp, const char *input, uint32_t vocab, uint64_t n, struct stream_out_opts opts)
{
	struct stream_header h = header(input, vocab);
	struct stream_out *o;
	struct stream_totals t = {0};
	uint32_t ids[50], k;
	uint8_t mask[50];

	ok(stream_out_open(&o, fp, "out", &h, opts, &e) == 0, "a stream is opened for writing");
	for (uint64_t i = 0; i < n; i++) {
		struct rec_toks r = {
			.seq = i, .line = i + 1, .n = (uint32_t)(i % 50) + 1, .ids = ids, .mask = mask
		};

		for (k = 0; k < r.n; k++) {
			ids[k] = (uint32_t)((i * 31 + k * 7) % vocab);
			mask[k] = k > r.n / 2;
		}
		if (stream_put_toks(o, &r, &e) < 0)
			ok(0, "record %llu is written", (unsigned long long)i);
	}
	ok(stream_out_finish(o, NULL, 0, &t, &e) == 0, "and finished");
	stream_out_close(o);
	stream_header_release(&h);
	return t;
}

static void write_file(const void *p, size_t n)
{
	FILE *fp = fopen(path, "wb");

	if (!fp || fwrite(p, 1, n, fp) != n || fclose(fp))
		abort();
}

/* Read all of path; -1: e says why. */
static int read_all(struct stream_totals *t)
{
	struct stream_in *in;
	struct record r;
	int got;

	if (stream_in_open(&in, path, &e) < 0)
		return -1;
	while ((got = stream_next(in, &r, &e)) > 0)
		;
	*t = stream_in_totals(in);
	stream_in_close(in);
	return got;
}

static void test_round_trip(struct stream_out_opts opts, const char *what)
{
	FILE *fp = fopen(path, "wb");
	struct stream_totals t = put_stream(fp, "a.jsonl", 128256, 5000, opts), u;
	struct stream_in *in;
	struct record r;
	uint64_t n = 0, bad = 0;

	fclose(fp);
	ok(read_all(&u) == 0 && !memcmp(&t, &u, sizeof(t)), "%s: the reader counts what the writer did",
		what);
	ok(t.n == 5000 && t.tokens == 127500, "%s: %llu records, %llu tokens", what,
		(unsigned long long)t.n, (unsigned long long)t.tokens);
	stream_in_open(&in, path, &e);
	ok(in && stream_in_header(in)->tok.vocab == 128256 &&
			!strcmp(stream_in_header(in)->inputs[0], "a.jsonl"),
		"%s: the header is back", what);
	while (stream_next(in, &r, &e) > 0) {
		bad += !rec_is(&r, "TOKS") || r.toks.seq != n || r.toks.line != n + 1 ||
			r.toks.n != n % 50 + 1 || r.index != n + 1;
		for (uint32_t k = 0; k < r.toks.n; k++)
			bad +=
				r.toks.ids[k] != (n * 31 + k * 7) % 128256 || r.toks.mask[k] != (k > r.toks.n / 2);
		n++;
	}
	stream_in_close(in);
	ok(n == 5000 && !bad, "%s: every id and mask byte is back (K4)", what);
}

/* Every cut of a short stream is refused; at record boundaries as such. */
static void test_cuts(struct stream_out_opts opts, const char *what)
{
	struct buf b = {0};
	struct stream_totals t;
	size_t n, refused = 0, boundary = 0, inside = 0;
	FILE *fp = fopen(path, "wb");

	put_stream(fp, "a", 300, 9, opts);
	fclose(fp);
	file_read(path, 1 << 20, &b, &e);
	for (n = 0; n < b.n; n++) {
		write_file(b.p, n);
		e = (struct err){0};
		refused += read_all(&t) < 0 && e.code == EX_DATAERR;
		boundary += strstr(e.msg, "truncated: no TEND after ") != NULL;
		inside += strstr(e.msg, "truncated inside record ") != NULL;
	}
	/* Only the seek table may be missing without harm to a reader of the records. */
	if (!opts.index)
		ok(refused == b.n, "%s: %zu cuts of %zu are refused", what, refused, b.n);
	ok(opts.zstd_level || (boundary == 10 && inside == b.n - 11),
		"%s: %zu cuts at a boundary, %zu inside", what, boundary, inside);
	buf_release(&b);
}

static void test_damage(void)
{
	struct buf b = {0};
	struct stream_totals t;
	size_t i, caught = 0;
	FILE *fp = fopen(path, "wb");

	put_stream(fp, "a", 300, 9, (struct stream_out_opts){ 3, false });
	fclose(fp);
	file_read(path, 1 << 20, &b, &e);
	for (i = 0; i < b.n; i++) {
		b.p[i] ^= 0x10;
		write_file(b.p, b.n);
		caught += read_all(&t) < 0;
		b.p[i] ^= 0x10;
	}
	ok(caught >= b.n - 8, "a flipped bit is found in %zu of %zu bytes of a zstd stream", caught,
		b.n);
	buf_release(&b);
}

static void test_cat(void)
{
	static const struct stream_out_opts forms[] = { { 0, false }, { 3, false }, { 3, true } };
	struct stream_in *in;
	struct record r;
	uint64_t srcs[3] = {0};

	for (int i = 0; i < 9; i++) {
		FILE *fp = fopen(path, "wb");
		int got;

		put_stream(fp, "a", 300, 40, forms[i / 3]);
		put_stream(fp, "b", 300, 30, forms[i % 3]);
		put_stream(fp, "a", 300, 20, forms[0]);
		fclose(fp);
		memset(srcs, 0, sizeof(srcs));
		ok(stream_in_open(&in, path, &e) == 0, "three streams after each other are one");
		while ((got = stream_next(in, &r, &e)) > 0)
			srcs[r.toks.src < 2 ? r.toks.src : 2]++;
		ok(got == 0 && srcs[0] == 60 && srcs[1] == 30 && stream_in_header(in)->ninputs == 2,
			"with the union of their inputs (%s)", got ? e.msg : "ok");
		ok(stream_in_totals(in).n == 90, "all records are counted");
		stream_in_close(in);
	}
	FILE *fp = fopen(path, "wb");
	put_stream(fp, "a", 300, 3, forms[0]);
	put_stream(fp, "a", 301, 3, forms[0]);
	fclose(fp);
	ok(read_all(&(struct stream_totals){0}) == 0, "the same sha256 is the same tokenizer");
}

static void test_at(void)
{
	FILE *fp = fopen(path, "wb");
	struct stream_totals t = put_stream(fp, "a", 300, 40000, (struct stream_out_opts){ 3, true });
	struct stream_at *a;
	struct record r;
	uint64_t bad = 0, i, at;

	fclose(fp);
	ok(stream_at_open(&a, path, &e) == 0, "an indexed file opens for random access");
	ok(stream_at_count(a) == 40000 && stream_at_totals(a)->xxh64 == t.xxh64,
		"it knows its records and its hash");
	for (i = 0; i < 2000; i++) {
		at = i * 7919 % 40000;
		bad += stream_at_get(a, at, &r, &e) < 0 || r.toks.seq != at || r.toks.n != at % 50 + 1;
	}
	ok(!bad, "2000 records in a scattered order are the right ones");
	ok(stream_at_get(a, 40000, &r, &e) < 0 && e.code == EX_DATAERR,
		"there is no record after the last");
	stream_at_close(a);
	fp = fopen(path, "ab");
	put_stream(fp, "a", 300, 10, (struct stream_out_opts){ 3, true });
	fclose(fp);
	ok(stream_at_open(&a, path, &e) < 0 && strstr(e.msg, "tune-stream index"),
		"after cat the index is refused, with the remedy");
}

/* One stream in hex or text by hand, and what the reader says to it. */
static void refused(const char *what, const void *bytes, size_t n, const char *says)
{
	struct stream_totals t;

	write_file(bytes, n);
	e = (struct err){0};
	ok(read_all(&t) < 0 && e.code == EX_DATAERR && strstr(e.msg, says), "%s: %s", what, e.msg);
}
#define REFUSED(what, text, says) refused(what, text, sizeof(text) - 1, says)
#define HEAD(major) "\x92\xa4TUNE\x83\xa1v\x92" major "\0\xa4kind\xa4toks\xa3tok\x81\xa5vocab\x0a"
#define TOKS(ids, mask) \
	"\x92\xa4TOKS\x85\xa3seq\0\xa3src\0\xa4line\1\xa3ids\xc4" ids "\xa4mask\xc4" mask

static void test_refusals(void)
{
	REFUSED("empty", "", "empty: no TUNE record");
	REFUSED("text", "hello\n", "not a token stream");
	REFUSED("JSON", "{\"text\":1}\n", "tune-tokenize");
	REFUSED("a higher major version", HEAD("\2"), "stream version 2.0, but this program reads 1.x");
	REFUSED(
		"first token trained", HEAD("\1") TOKS("\x04\1\0\0\0", "\1\1"), "record 1: 'mask'[0] is 1");
	REFUSED(
		"mask of 2", HEAD("\1") TOKS("\x08\1\0\0\0\1\0\0\0", "\2\0\2"), "record 1: 'mask'[1] is 2");
	REFUSED("id = vocab (K4)", HEAD("\1") TOKS("\x04\x0a\0\0\0", "\1\0"),
		"record 1: 'ids'[0] is 10, not below vocab 10");
	REFUSED("another number of mask bytes", HEAD("\1") TOKS("\x04\1\0\0\0", "\2\0\0"),
		"record 1: 1 ids but 2 mask bytes");
	REFUSED("half an id", HEAD("\1") TOKS("\x03\1\0\0", "\1\0"), "record 1: 'ids' has 3 bytes");
	REFUSED("a record of another kind", HEAD("\1") "\x92\xa4PACK\x80",
		"record 1: a 'PACK' record has no place");
	REFUSED("garbage for a record", HEAD("\1") "\xc1", "record 1: not msgpack");
	REFUSED("a huge claim", HEAD("\1") "\x92\xa4TOKS\xdf\xff\xff\xff\xff",
		"record 1: larger than the limit of 67108864");
	REFUSED("depth",
		HEAD("\1") "\x92\xa4xxxx\x81\xa1k\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91"
				   "\x91\x91\1",
		"record 1: nested deeper than 16");
	REFUSED("a wrong count", HEAD("\1") "\x92\xa4TEND\x81\xa1n\1",
		"record 1: TEND counts 1 records, 0 came");
	REFUSED("a wrong hash",
		HEAD("\1") "\x92\xa4TEND\x82\xa1n\0\xa5xxh64\xb0"
				   "0000000000000000",
		"damaged: TEND says xxh64");
	REFUSED("something after TEND", HEAD("\1") "\x92\xa4TEND\x81\xa1n\0\x92\xa4TOKS\x80",
		"record 2: 'TOKS' after TEND");
	REFUSED("no vocab", "\x92\xa4TUNE\x83\xa1v\x92\1\0\xa4kind\xa4toks\xa3tok\x80",
		"record 0: TUNE: 'tok' must be a map with 'vocab'");
	REFUSED(
		"no TEND", HEAD("\1") TOKS("\x04\1\0\0\0", "\1\0"), "truncated: no TEND after 2 records");
}

int main(void)
{
	int fd = mkstemp(path);

	test_round_trip((struct stream_out_opts){ 0, false }, "plain");
	test_round_trip((struct stream_out_opts){ 3, false }, "zstd");
	test_round_trip((struct stream_out_opts){ 3, true }, "indexed");
	test_cuts((struct stream_out_opts){ 0, false }, "plain");
	test_cuts((struct stream_out_opts){ 3, false }, "zstd");
	test_damage();
	test_cat();
	test_at();
	test_refusals();
	close(fd);
	unlink(path);
	return tap_done();
}
