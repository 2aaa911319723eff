#ifndef TUNE_STREAM_H
#define TUNE_STREAM_H
/*
 * stream: token streams, tune-stream(5).  A sequence of msgpack [tag, map]; TUNE first, TEND last;
 * zstd is an outer layer that readers detect.  msgpack-c decodes; a scan of our own bounds sizes
 * and depth before it sees a record.
 *
 * Errors are EX_DATAERR with the stream's name and the record's number ("x.tns: record 12: ..."),
 * "x.tns: truncated: no TEND after 11 records" for a cut at a boundary, "x.tns: truncated inside
 * record 12" for one within.  Records are numbered from 0 over the whole input, TUNE, TEND and indx
 * too.
 *
 * Where TUNE lists no inputs, the only one is called "?".  indx, the offsets of frames, is derived
 * data: it is no part of n and of xxh64, so that indexing a stream leaves its identity as it is,
 * and readers never return it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "libcommon/buf.h"
#include "libcommon/hash.h"
#include "libcommon/json.h"

enum {
	STREAM_RECORD_MAX = 64 << 20, STREAM_HEADER_MAX = 1 << 20, STREAM_DEPTH_MAX = 16,
	STREAM_FRAME_MAX = 4 << 20, STREAM_MAJOR = 1, STREAM_MINOR = 0,
	STREAM_ZSTD_LEVEL = 3            /* of the files that our tools write */
};

enum stream_kind {
	KIND_TOKS, KIND_PACK, KIND_PAIR, KIND_TOPK, KIND_SCOR, KIND_ROLL, KIND_TENS, KIND_COUNT
};
const char *stream_kind_name(enum stream_kind k);   /* "toks" ... */
const char *stream_kind_tag(enum stream_kind k);    /* "TOKS" ... */

/* What TUNE says.  Owned by the reader or, for writing, by the caller; release frees all. */
struct stream_tok {
	char sha256[SHA256_HEX];              /* "" = not given */
	char template_sha256[SHA256_HEX];     /* "" = none */
	uint32_t vocab;
	char *name;                           /* NULL = not given */
	int64_t bos, pad;                     /* -1 = none */
	uint32_t *eos;
	size_t neos;
};
struct stream_header {
	int major, minor;
	enum stream_kind kind;
	struct stream_tok tok;
	char **inputs;                        /* names that src indexes */
	size_t ninputs;
	/* one msgpack array of prov entries, as it stands; empty = none */
	struct buf prov;
	/* unknown keys of TUNE and tok: n pairs, as they stand */
	struct stream_extra { struct buf kv; size_t n; } extra, tok_extra;
};
void stream_header_release(struct stream_header *h);
int stream_header_copy(struct stream_header *to, const struct stream_header *from, struct err *err);
/*
 * Append {prog, version, set:{...}, in:[provs of merged inputs]} to h->prov.  set_json: one JSON
 * object of scalars and lists.
 */
int stream_add_prov(struct stream_header *h, const char *prog, const char *version,
	const char *set_json, const struct buf *merged, size_t nmerged, struct err *err);
/*
 * Same tokenizer: sha256 if both have it, else vocab.  EX_DATAERR "the tokenizers differ:
 * that of a.tns is X (...), that of b.tns Y".
 */
int stream_same_tokenizer(const struct stream_tok *a, const char *a_name,
	const struct stream_tok *b, const char *b_name, struct err *err);

/* ---- records: views into the reader's memory, valid until the next stream_next ---- */
struct rec_toks {
	uint64_t seq; uint32_t src; uint64_t line;
	/* mask[i] = 1: trained; mask[0] = 0 */
	uint32_t n; const uint32_t *ids; const uint8_t *mask;
	bool extra;                                               /* has keys that a PACK can't hold */
};
struct rec_pack {
	uint64_t seq;
	uint32_t n; const uint32_t *ids; const uint8_t *mask;
	uint32_t ndocs;
	const uint32_t *lens;
	const uint64_t *docs;
	const uint32_t *srcs;
	const uint64_t *lines;
};
/* greedy: 1 = the target is the argmax */
struct rec_scor { uint64_t seq; uint32_t n; const float *logp; const uint8_t *greedy; };

struct record {
	char tag[5];
	enum stream_kind kind;           /* of the stream */
	const uint8_t *raw; size_t len;  /* the whole [tag, map], as bytes */
	/* over all records of the file, from 0 (TUNE of the first segment) */
	uint64_t index;
	uint64_t tokens, trained;        /* what TEND counts: ids (logp of a SCOR), ones in masks */
	uint64_t seq;                    /* of all kinds but TENS */
	/* decoded when tag is TOKS, PACK, SCOR */
	union { struct rec_toks toks; struct rec_pack pack; struct rec_scor scor; };
};
bool rec_is(const struct record *r, const char *tag);
bool rec_optional(const struct record *r);   /* a lower-case tag: not ours, passes through */

/* What TEND says and what was counted. */
struct stream_totals { uint64_t n, tokens, trained, xxh64; };

struct stream_in;
/*
 * Ask stop() while a pipe's writer is waited for: where it says yes, the reader ends with
 * EX_RESUMABLE.  For all streams of the process; NULL (as it is at the start) waits for ever.
 */
void stream_stop_waiting(bool (*stop)(void));
/* "-" is standard input.  Reads the first header, so that *stream_in_header is there at once. */
int stream_in_open(struct stream_in **in, const char *path, struct err *err);
/* The first bytes of a token stream, plain or in zstd. */
bool stream_begins(const void *p, size_t n);
/* Take over an input that file_peek has opened; its path must outlive the reader. */
struct peeked;
int stream_in_take(struct stream_in **in, const struct peeked *p, struct err *err);
/* of the current segment */
const struct stream_header *stream_in_header(const struct stream_in *in);
/*
 * The next data record (TOKS, PACK ... or a lower-case one that passes through; TUNE and TEND are
 * consumed and checked, later segments must have the same kind and tokenizer; their src is
 * renumbered into the union of inputs, stream_in_header grows; their seq goes on after the largest
 * one before, so that it is unique over the whole input; raw is then the record with its new
 * numbers). 1: *r is valid.  0: clean end.  -1: err.
 */
int stream_next(struct stream_in *in, struct record *r, struct err *err);
/* Counted so far over all segments; xxh64 = of the current (or last) segment's bytes so far. */
struct stream_totals stream_in_totals(const struct stream_in *in);
/* For tune-train --resume: xxh64 over the raw bytes of all data records returned so far. */
uint64_t stream_in_running_hash(const struct stream_in *in);
/* segments begun so far: more than one after cat a b */
uint64_t stream_in_parts(const struct stream_in *in);
/*
 * True if the next record is not here yet and its writer would have to be waited for: flush what
 * you hold.
 */
bool stream_in_would_block(const struct stream_in *in);
/* for messages: the path, or "standard input" */
const char *stream_in_name(const struct stream_in *in);
/*
 * Before the first stream_next: read `in` as if it followed a stream with header `known`, whose
 * seqs end before first_seq. EX_DATAERR if kind or tokenizer differ.
 */
int stream_in_onto(struct stream_in *in, const struct stream_header *known, const char *known_name,
	uint64_t first_seq, struct err *err);
/* above every seq so far */
uint64_t stream_in_seq_end(const struct stream_in *in);
void stream_in_close(struct stream_in *in);

/*
 * merge: several streams one after the other, as one.  The first header of each is read at once, so
 * that the union of inputs is known from the start; only a later segment of a stream (after cat)
 * can make it grow.  paths must outlive m; none = "-".
 */
struct stream_merge;
int stream_merge_open(
	struct stream_merge **m, const char *const *paths, size_t n, const char *prog, struct err *err);
/*
 * prov: of the one stream, or one entry {prog, version, in:[the provs of all]} if there are
 * several.
 */
const struct stream_header *stream_merge_header(const struct stream_merge *m);
/* as stream_next */
int stream_merge_next(struct stream_merge *m, struct record *r, struct err *err);
/* the stream that r came from, and its place among paths */
const char *stream_merge_name(const struct stream_merge *m);
size_t stream_merge_index(const struct stream_merge *m);
/* Does the first header of paths[stream] list this one of the union's inputs? */
bool stream_merge_has(const struct stream_merge *m, size_t stream, size_t input);
bool stream_merge_would_block(const struct stream_merge *m);
/* so far; xxh64 is 0 */
struct stream_totals stream_merge_totals(const struct stream_merge *m);
void stream_merge_close(struct stream_merge *m);

/*
 * Random access to a file with an indx record (written by stream_out with index, or tune-stream
 * index). EX_DATAERR if it has none, with the remedy.  Records are numbered from 0 over data
 * records of its one segment.
 */
struct stream_at;
int stream_at_open(struct stream_at **a, const char *path, struct err *err);
uint64_t stream_at_count(const struct stream_at *a);
const struct stream_header *stream_at_header(const struct stream_at *a);
const struct stream_totals *stream_at_totals(const struct stream_at *a);   /* from TEND */
/* 0; r valid until the next call */
int stream_at_get(struct stream_at *a, uint64_t i, struct record *r, struct err *err);
void stream_at_close(struct stream_at *a);

/*
 * Writer.  zstd: 0 = plain, else the level; frames of whole records, <= 4 MiB, with checksums.
 * index: keep offsets and write indx and the seek table (needs zstd).  Writes to fp, which stays
 * the caller's.  flush: to a pipe, when its own input would block.
 */
struct stream_out_opts { int zstd_level; bool index; };
struct stream_out;
int stream_out_open(struct stream_out **o, FILE *fp, const char *name,
	const struct stream_header *h, struct stream_out_opts opts, struct err *err);
int stream_put_toks(struct stream_out *o, const struct rec_toks *t, struct err *err);
int stream_put_pack(struct stream_out *o, const struct rec_pack *p, struct err *err);
int stream_put_scor(struct stream_out *o, const struct rec_scor *s, struct err *err);
/* a record as it was read */
int stream_put_raw(struct stream_out *o, const struct record *r, struct err *err);
/* One line of the JSON form (below), checked against the header as a reader would. */
int stream_put_json(struct stream_out *o, const struct json *line, struct err *err);
int stream_out_flush(struct stream_out *o, struct err *err);
/*
 * Flush if a second has passed since the last flush, or force; called between records by filters on
 * pipes.
 */
int stream_out_tick(struct stream_out *o, bool input_would_block, struct err *err);
/*
 * inputs_json: NULL or a list of {bytes, xxh64} of the inputs for TEND. Writes TEND; totals are
 * then final.
 */
struct stream_input_sum { uint64_t bytes, xxh64; };
int stream_out_finish(struct stream_out *o, const struct stream_input_sum *inputs, size_t ninputs,
	struct stream_totals *totals, struct err *err);
/* uncompressed bytes so far, to cut shard files by size */
uint64_t stream_out_bytes(const struct stream_out *o);
/* frees; without finish the stream stays without TEND */
void stream_out_close(struct stream_out *o);

/*
 * The JSON form: an object a record, "tag" first, then its fields in their order; known bins are
 * arrays of numbers, others
 * {"$bin": "base64"}; a string that is not UTF-8 is {"$str": "base64"}, an ext value {"$ext":
 * [type, "base64"]}, a whole number beyond 2^53 {"$int": "digits"}; a float that is no finite
 * number is "nan", "inf" or "-inf".  No line feed is written.
 */
int stream_header_json(const struct stream_header *h, struct buf *out, struct err *err);
int stream_record_json(const struct record *r, struct buf *out, struct err *err);
int stream_totals_json(const struct stream_totals *t, struct buf *out, struct err *err);
int stream_header_from_json(struct stream_header *h, const struct json *line, struct err *err);
#endif
