#ifndef TUNE_SHARD_INTAKE_H
#define TUNE_SHARD_INTAKE_H
/* intake: records of token streams -> documents that fit, each of one split. */
#include "drops.h"

/*
 * Takes a document, valid during the call.  index counts the documents that are kept, over both
 * splits.
 */
typedef int doc_fn(
	void *ctx, const struct doc *d, enum split split, uint64_t index, struct err *err);

struct intake {
	const struct settings *set;
	struct tool *tool;             /* for what is said once */
	struct drops drops;
	uint64_t docs_in, tokens_in, kept;
	bool said_extra, said_other;
	uint8_t *mask;                 /* of a piece, its first byte cleared */
	size_t mask_cap;
	doc_fn *fn;
	void *ctx;
};
/*
 * Operands: files, '-', and folders, which stand for the .tns files in them by name.  list is owned
 * by the caller.
 */
struct paths { char **p; size_t n, cap; };
int paths_expand(struct paths *list, int argc, char **argv, struct err *err);
void paths_release(struct paths *list);

/* EX_DATAERR for kinds that are not packed, with what to do. */
int intake_kind(const struct stream_header *h, const char *name, struct err *err);
int intake_record(struct intake *in, const struct record *r, const char *name, struct err *err);
void intake_release(struct intake *in);
#endif
