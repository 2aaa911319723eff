#ifndef TUNE_SHARD_STORE_H
#define TUNE_SHARD_STORE_H
/*
 * store: blobs that come out in the order of their keys, or as they went in.
 *
 * Up to `mem` bytes lie in memory.  When there is more, all go to one unnamed file in blocks: 64
 * buckets by the highest bits of the key, each read back and sorted alone; a bucket that is still
 * too large is cut in 64 again by the next bits.  Equal keys keep the order of arrival.  So the
 * order does not depend on `mem`, and keys that are random numbers give every permutation the same
 * chance.  The file goes with the process, whatever ends it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libcommon/arena.h"
#include "libcommon/err.h"

struct store;
/*
 * dir: where the file would be made (its name is never seen). sorted: by key; else keys are not
 * looked at.
 */
int store_new(struct store **s, const char *dir, uint64_t mem, bool sorted, struct err *err);
/* A blob is the parts one after the other, each padded to 8 bytes, less than 4 GiB. */
struct part { const void *p; size_t n; };
int store_add(
	struct store *s, uint64_t key, const struct part *parts, size_t nparts, struct err *err);
uint64_t store_count(const struct store *s);
/* After the last add: the next blob, 8-byte aligned, valid until the next call.  0: no more. */
int store_next(struct store *s, const void **blob, struct err *err);
void store_free(struct store *s);
#endif
