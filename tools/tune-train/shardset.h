#ifndef TUNE_TRAIN_SHARDSET_H
#define TUNE_TRAIN_SHARDSET_H
/*
 * shardset: the files of one split of a shard folder, from its manifest.json (tune-stream(5)), and
 * which file holds record g. File sizes are compared with the manifest's (a file that was cut or
 * replaced is found before the first step); the content is guarded by each stream's own checksums.
 */
#include <stddef.h>
#include <stdint.h>

#include "libcommon/stream/stream.h"

struct shardset {
	struct shard_file { char *path; uint64_t first, records; } *files;
	size_t n;
	uint64_t records, tokens;
	long seq_len;              /* of the packs; 0 = not known */
	char identity[SHA256_HEX]; /* "" = none */
};
/* EX_DATAERR if there is no such split, or it has no records. */
int shardset_read(struct shardset *s, const char *dir, const char *split, struct err *err);
/* One indexed file as a set. */
int shardset_single(struct shardset *s, const char *path, uint64_t records,
	const struct stream_totals *totals, struct err *err);
/* index of the file that holds it */
size_t shardset_find(const struct shardset *s, uint64_t record);
void shardset_release(struct shardset *s);
#endif
