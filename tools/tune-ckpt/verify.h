#ifndef TUNE_CKPT_VERIFY_H
#define TUNE_CKPT_VERIFY_H
/* verify: what a check of one path found. */
#include "tools/tune-ckpt/ckpt.h"

struct verdict {
	uint64_t tensors, bytes;   /* read and found good */
	struct err why;            /* code 0: all is well */
};
/*
 * Check everything that can be checked about path.  0, or -1 where it could not be checked at all
 * (out of memory).
 */
int verify_path(const char *path, struct verdict *v, struct err *err);
/* verify --each -: follow a run by its metrics. */
int verify_each(struct err *err);
#endif
