#ifndef TUNE_STREAM_VERBS_H
#define TUNE_STREAM_VERBS_H
/* The verbs of tune-stream, a file each.  They write to standard output and fill err. */
#include "libcommon/stream/stream.h"
#include "libcommon/tool.h"

struct args {
	const char *const *paths;   /* operands */
	size_t npaths;
	uint64_t n;                 /* head -n */
	const char *output;         /* index -o; NULL = in place */
	bool json, force, quiet;
};
int verb_check(const struct args *a, struct err *err);
int verb_head(const struct args *a, struct err *err);
int verb_cat(const struct args *a, struct err *err);
int verb_encode(const struct args *a, struct err *err);
int verb_index(const struct args *a, struct err *err);
#endif
