#ifndef TUNE_STREAM_COPY_H
#define TUNE_STREAM_COPY_H
/* copy: records from a merge of streams to a stream on standard output. */
#include "libcommon/stream/stream.h"

struct copy {
	/* an entry for prov and its settings as JSON; NULL = the records are those that came in */
	const char *prog, *set;
	struct stream_out *out;
	size_t ninputs;
};
int copy_begin(struct copy *c, const struct stream_merge *m, struct err *err);
int copy_record(
	struct copy *c, const struct stream_merge *m, const struct record *r, struct err *err);
int copy_end(struct copy *c, const struct stream_merge *m, struct err *err);
void copy_release(struct copy *c);
#endif
