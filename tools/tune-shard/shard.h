#ifndef TUNE_SHARD_H
#define TUNE_SHARD_H
/*
 * tune-shard: documents in, packs out.
 *
 *   intake.c   token streams -> documents: too few trained tokens, too long, which split
 *   store.c    documents or packs in a random or the given order, on disk when there are many
 *   mix.c      which source gives the next document
 *   pack.c     a window of documents -> full packs
 *   output.c   packs -> files of a shard set with its manifest, or a stream
 *   job.c      the stages in order
 */
#include "libcommon/stream/stream.h"
#include "libcommon/tool.h"

enum overlong { LONG_DROP, LONG_TRUNCATE, LONG_SPLIT, LONG_ERROR };

/* The shard section of the config. */
struct settings {
	uint32_t seq_len;
	enum overlong overlong;
	uint64_t min_trained, seed, size;
	bool shuffle;
	double val_fraction;
};

/* A document, or a piece of one: a TOKS record less what a pack can't hold. */
struct doc {
	uint64_t seq, line;
	uint32_t src, n;
	const uint32_t *ids;
	const uint8_t *mask;
};

enum split { TRAIN, VAL, SPLITS };

struct args {
	const char *output, *val_output;   /* "-" or a path; NULL */
	uint64_t mem;
	bool force;
};
/* All of tune-shard after its options. */
int job_run(struct tool *t, const struct args *a, struct err *err);
#endif
