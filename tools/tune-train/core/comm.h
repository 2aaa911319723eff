#ifndef TUNE_COMM_H
#define TUNE_COMM_H
/*
 * comm: what ranks say to each other, over a mesh of groups.  Backend `self` (one rank) is
 * complete; mpi and nccl fill the same table. Every rank makes the same calls in the same order.
 * Buffers are device memory, except where "host" is said; device collectives are ordered with the
 * device's stream.  Reductions sum fp32 in rank order.
 */
#include <stdbool.h>
#include <stddef.h>

#include "device.h"

struct comm {
	int rank, size;
	void *impl;
	/* bytes a rank; dst may hold src in place */
	int (*all_gather)(
		struct comm *, struct dmem *dst, struct dmem *src, size_t bytes, struct err *);
	/* f32, n a rank */
	int (*reduce_scatter)(
		struct comm *, struct dmem *dst, struct dmem *src, size_t n, struct err *);
	/* F32 or F64, sum */
	int (*all_reduce)(struct comm *, struct dmem *p, size_t n, enum dtype t, struct err *);
	/* counts, losses, votes: host, sum */
	int (*all_reduce_host)(struct comm *, double *p, size_t n, struct err *);
	int (*broadcast)(struct comm *, struct dmem *p, size_t bytes, int root, struct err *);
	int (*broadcast_host)(struct comm *, void *p, size_t bytes, int root, struct err *);
	/* bytes a pair */
	int (*all_to_all)(
		struct comm *, struct dmem *dst, struct dmem *src, size_t bytes, struct err *);
	int (*send)(struct comm *, struct dmem *p, size_t bytes, int to, struct err *);
	int (*recv)(struct comm *, struct dmem *p, size_t bytes, int from, struct err *);
	int (*barrier)(struct comm *, struct err *);
	int (*split)(struct comm *, int color, int key, struct comm **out, struct err *);
	void (*abort)(struct comm *, const char *why);
	void (*free)(struct comm *);
};
int comm_open_self(struct comm **c, struct device *d, struct err *err);
#endif
