#ifndef TUNE_FEED_H
#define TUNE_FEED_H
/*
 * feed: where records come from, and which of them a step trains on.
 *
 * A shard folder or an indexed .tns file is random access: epoch 0 is the stored order, epoch e > 0
 * the Feistel permutation keyed by (seed, e); step s of an epoch takes positions s*B .. s*B+B-1,
 * the last batch of an epoch is short; rank r of R has those positions i with i % R == r.  Another
 * stream (stdin, a file without an index) is used once, in its order. A record is a PACK (several
 * documents) or a TOKS (one document).
 */
#include "core/batch.h"
#include "core/comm.h"
#include "libcommon/stream/stream.h"

struct feed;
/* path: a shard folder (split "train" or "val"), a .tns file, or "-". */
int feed_open(struct feed **f, const char *path, const char *split, struct err *err);
void feed_close(struct feed *f);
/* True if the folder at path has that split with records. */
bool feed_has_split(const char *path, const char *split);
bool feed_sequential(const struct feed *f);                       /* a stream: once, in order */
uint64_t feed_count(const struct feed *f);                        /* records; 0 for a stream */
/* tokens of all records; 0 for a stream */
uint64_t feed_tokens(const struct feed *f);
/* longest record in tokens; 0 = not known */
long feed_max_record(const struct feed *f);
const struct stream_header *feed_header(const struct feed *f);
const char *feed_name(const struct feed *f);
const char *feed_identity(const struct feed *f);                  /* of the data; "" for a stream */

/* This rank's part of one global batch, in host memory; grows to the largest batch and stays. */
struct step_data {
	size_t nrec, rec_cap; struct step_rec *rec;      /* records, in order of their position */
	size_t docs, doc_cap; struct step_doc *doc;
	size_t tokens, ids_cap, mask_cap; uint32_t *ids; uint8_t *mask;
	uint64_t trained;
	/* the current micro-batch, in the form that batch.h wants */
	size_t cu_cap, brec_cap, off_cap; int32_t *cu; uint32_t *brec, *off0;
	size_t next_rec;
};
/* index: stored number (of a stream: how many came before) */
struct step_rec { uint64_t index; uint32_t position; size_t doc0, ndocs, tok0, ntok; };
struct step_doc { size_t tok0, ntok; uint32_t off0; uint32_t src; uint64_t line; };
void step_data_release(struct step_data *d);

/*
 * Load positions [first, first + n) of an epoch that belong to this rank.  max_record: longer
 * records are EX_DATAERR with the remedy. A stream: the next n records (fewer at its end); *got
 * says how many the whole batch has.
 */
int feed_load(struct feed *f, struct step_data *d, uint64_t seed, uint64_t epoch, uint64_t first,
	uint64_t n, long max_record, int rank, int ranks, uint64_t *got, struct err *err);
/*
 * Skip n records of a stream and compare the running hash (resume): EX_DATAERR if the stream is not
 * the one of before.
 */
int feed_skip(struct feed *f, uint64_t n, uint64_t hash, struct err *err);
uint64_t feed_running_hash(const struct feed *f);
uint64_t feed_consumed(const struct feed *f);
/*
 * The next micro-batch of at most micro_tokens tokens (whole records); false when the step's
 * records are used up.
 */
/* 1, 0, -1 */
int step_micro(struct step_data *d, long micro_tokens, struct batch *b, struct err *err);
void step_rewind(struct step_data *d);
#endif
