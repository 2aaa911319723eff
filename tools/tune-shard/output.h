#ifndef TUNE_SHARD_OUTPUT_H
#define TUNE_SHARD_OUTPUT_H
/*
 * output: packs -> the files of a shard set with its manifest, or one stream a split.
 *
 * A set is written as DIR.tmp.PID and renamed; its files are indexed and hold about shard.size
 * bytes each.  A stream goes to standard output (no TEND if anything fails) and the validation
 * split to its file.
 */
#include "libcommon/outfile.h"
#include "shard.h"

struct split_out {
	struct stream_out *out;
	struct outfile file;
	char name[64];                   /* of the file in the set */
	struct buf manifest;             /* its files so far, as JSON */
	uint64_t files, packs, tokens, trained, room;   /* room: packs * seq_len */
};

struct output {
	const struct settings *set;
	const struct args *args;
	const struct stream_header *header;   /* of the packs: kind pack */
	struct outdir dir;
	bool folder;
	struct split_out split[SPLITS];
	struct sha256 *identity;
};
int output_open(struct output *o, const struct args *a, const struct settings *s,
	const struct stream_header *h, struct err *err);
/* p->seq is given here. */
int output_pack(struct output *o, enum split split, struct rec_pack *p, struct err *err);
/* streams: flush in time */
int output_tick(struct output *o, bool input_would_block, struct err *err);
/* settings_json: for the manifest. */
int output_finish(struct output *o, const char *settings_json, struct err *err);
void output_release(struct output *o);
#endif
