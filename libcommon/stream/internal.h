#ifndef TUNE_STREAM_INTERNAL_H
#define TUNE_STREAM_INTERNAL_H
/* What the files of this folder share; nobody else includes it. */
#include <msgpack.h>
#include <zstd.h>

#include "libcommon/arena.h"
#include "libcommon/file.h"
#include "libcommon/stream/stream.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the ids and floats of a record are copied as they lie: little-endian machines only"
#endif

/*
 * scan.c: the end of a msgpack value, without building it.  msgpack-c allocates by the sizes that a
 * value claims, so what it is given has been scanned: every claimed size is there, within the
 * limit, and nested no deeper than STREAM_DEPTH_MAX. Resumable: after SCAN_MORE call again with the
 * same start and more bytes.
 */
struct scan { size_t pos, values; uint64_t left[STREAM_DEPTH_MAX + 1]; int depth; };
enum scan_result { SCAN_DONE, SCAN_MORE, SCAN_BAD, SCAN_DEEP, SCAN_LARGE, SCAN_MANY };
void scan_init(struct scan *s);
/* DONE: s->pos is the value's size.  MORE: *need bytes from p on are needed at least. */
enum scan_result scan_value(struct scan *s, const uint8_t *p, size_t n, size_t limit, size_t *need);
/* Fill err for a result other than DONE and MORE (no name, no record number). */
int scan_error(enum scan_result r, size_t limit, struct err *err);

/*
 * bytes.c: the uncompressed bytes of a file or pipe, zstd or not, also where the two follow each
 * other after cat.
 */
struct span { uint8_t *p; size_t pos, end, cap; };
struct bytes {
	const char *name;       /* for messages; not owned */
	int fd;
	bool zstd, eof, in_frame;
	ZSTD_DCtx *dctx;
	struct span raw, dec;   /* as read; decompressed */
};
int bytes_open(struct bytes *b, const char *path, struct err *err);
int bytes_take(struct bytes *b, const struct peeked *p, struct err *err);
/* Have at least `need` bytes at bytes_at: 1; the input ended before that: 0; -1. */
int bytes_want(struct bytes *b, size_t need, struct err *err);
/* At the start of a segment: look whether plain or zstd bytes follow. */
int bytes_boundary(struct bytes *b, struct err *err);
const uint8_t *bytes_at(const struct bytes *b);
size_t bytes_have(const struct bytes *b);
void bytes_skip(struct bytes *b, size_t n);
bool bytes_would_block(const struct bytes *b);   /* reading more would wait for a writer */
void bytes_close(struct bytes *b);

/* msg.c: small helpers over msgpack-c. */
const msgpack_object *msg_get(const msgpack_object *map, const char *name);   /* NULL if absent */
bool msg_is(const msgpack_object *o, const char *s);                          /* is the string s */
/* Unpack a scanned [tag, map]; *map points into u.  EX_DATAERR if it is anything else. */
int msg_record(msgpack_unpacked *u, const uint8_t *p, size_t n, char tag[5],
	const msgpack_object **map, struct err *err);
/* The same for bytes that nothing has scanned yet. */
int msg_parse(msgpack_unpacked *u, const uint8_t *p, size_t n, size_t limit, char tag[5],
	const msgpack_object **map, struct err *err);
void msg_packer(msgpack_packer *pk, struct buf *b);
void msg_put_str(msgpack_packer *pk, const char *s);
void msg_put_bin(msgpack_packer *pk, const void *p, size_t n);
void msg_begin(msgpack_packer *pk, const char *tag, size_t fields);           /* [tag, {  */

/* header.c */
int header_decode(struct stream_header *h, const msgpack_object *map, struct err *err);
int header_encode(const struct stream_header *h, struct buf *out, struct err *err);
/*
 * For each input of `from` its index in to->inputs, appended where new; *map has from->ninputs
 * entries, owned by the caller.
 */
int header_union(struct stream_header *to, const struct stream_header *from, uint32_t **map,
	bool *same, struct err *err);

/*
 * record.c: the fields of each kind, one table for the reader, the writer's checks and the JSON
 * form.
 */
enum field_type {
	F_SEQ, F_UINT, F_U32,                /* whole numbers below 2^53, 2^53, 2^32 */
	F_SRC, F_SRCS,                       /* indexes of inputs */
	/* bin: u32le below vocab; u8 0/1, the first one 0; u8 0/1; f32le */
	F_IDS, F_MASK, F_FLAGS, F_F32,
	F_U32S, F_UINTS,                     /* arrays of whole numbers */
	F_MASKED,                            /* {ids, mask} */
	F_STR, F_ARRAY, F_BIN
};
enum { FIELDS_MAX = 8 };
struct field { const char *name; enum field_type type; };
struct kind_row { const char *name, *tag; struct field fields[FIELDS_MAX]; };
extern const struct kind_row kind_rows[KIND_COUNT];
const struct field *field_find(const struct field *fields, const char *name, size_t n);
extern const struct field masked_fields[];   /* of F_MASKED */

struct decoder {
	enum stream_kind kind;
	uint32_t vocab;
	size_t ninputs;
	const uint32_t *src_map;       /* NULL, or the new number of each src */
	/* added to each seq, so that later parts do not repeat earlier ones; above all so far */
	uint64_t seq_base, seq_end;
	struct arena arena;            /* the arrays of the last record */
	struct buf rewritten;          /* its bytes, where src_map or seq_base changed them */
	size_t pending;                /* the reader's: bytes of the record that was returned last */
};
/*
 * Check and decode the map of a record with r->tag, raw and len set.  Messages have no name and
 * number in front.
 */
int decode_record(struct decoder *d, const msgpack_object *map, struct record *r, struct err *err);
void decoder_release(struct decoder *d);

/* base64.c, from_json.c */
void base64_encode(const void *src, size_t n, struct buf *out);
int base64_decode(const char *s, size_t n, struct buf *out, struct err *err);
/* [tag, map] onto out */
int json_to_record(
	const struct json *line, enum stream_kind kind, struct buf *out, struct err *err);

/* end.c: TEND. */
struct stream_end { uint64_t n, tokens, trained, xxh64; bool has_tokens, has_trained, has_xxh64; };
int end_decode(struct stream_end *e, const msgpack_object *map, struct err *err);
int end_check(const struct stream_end *e, const struct stream_totals *t, struct err *err);
int end_encode(const struct stream_totals *t, const struct stream_input_sum *inputs, size_t ninputs,
	struct buf *out, struct err *err);

/* index.c: indx and the zstd seek table. */
struct frame_size { uint32_t packed, plain; };
struct index_entry { uint64_t record, offset; };
struct stream_index {
	struct frame_size *frames;
	size_t nframes, frames_cap;
	struct index_entry *at;        /* one for each frame that holds records */
	size_t nat, at_cap;
};
int index_add_frame(struct stream_index *x, struct frame_size f, struct err *err);
int index_add_entry(struct stream_index *x, uint64_t record, uint64_t offset, struct err *err);
/* the indx record */
int index_encode(const struct stream_index *x, uint64_t nrecords, struct buf *out, struct err *err);
/* fills at */
int index_decode(struct stream_index *x, const msgpack_object *map, struct err *err);
/* The table's last SEEK_FOOT_SIZE bytes say how long it is. */
enum { SEEK_FOOT_SIZE = 9, SEEK_FRAMES_MAX = 1 << 26 };
#define SEEK_MAGIC 0x8F92EAB1u
/* frames; bytes of an entry and of the whole table */
struct seek_foot { uint64_t nframes, entry, table; };
void seek_table_encode(const struct stream_index *x, struct buf *out);
/* false: no seek table */
bool seek_foot_decode(const uint8_t *foot, uint64_t file_size, struct seek_foot *f);
int seek_table_decode(
	struct stream_index *x, const uint8_t *table, const struct seek_foot *f, struct err *err);
void index_release(struct stream_index *x);
#endif
