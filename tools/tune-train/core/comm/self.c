/* self: the comm of one rank: sums are what they are, gathers are copies. */
#include <stdlib.h>
#include <string.h>

#include "core/comm.h"
#include "libcommon/buf.h"

static struct device *dev(struct comm *c)
{
	return c->impl;
}

static int copy(struct comm *c, struct dmem *dst, struct dmem *src, size_t bytes, struct err *err)
{
	(void)err;
	if (dst != src)
		dev(c)->copy(dev(c), dst, src, bytes);
	return 0;
}

static int reduce_scatter(
	struct comm *c, struct dmem *dst, struct dmem *src, size_t n, struct err *err)
{
	return copy(c, dst, src, n * sizeof(float), err);
}

static int all_reduce(struct comm *c, struct dmem *p, size_t n, enum dtype t, struct err *err)
{
	(void)c, (void)p, (void)n, (void)t, (void)err;
	return 0;
}

static int all_reduce_host(struct comm *c, double *p, size_t n, struct err *err)
{
	(void)c, (void)p, (void)n, (void)err;
	return 0;
}

static int broadcast(struct comm *c, struct dmem *p, size_t bytes, int root, struct err *err)
{
	(void)c, (void)p, (void)bytes, (void)root, (void)err;
	return 0;
}

static int broadcast_host(struct comm *c, void *p, size_t bytes, int root, struct err *err)
{
	(void)c, (void)p, (void)bytes, (void)root, (void)err;
	return 0;
}

static int no_peer(struct comm *c, struct dmem *p, size_t bytes, int peer, struct err *err)
{
	(void)c, (void)p, (void)bytes;
	return err_set(err, EX_SOFTWARE, "a message between ranks (peer %d) in a run of one", peer);
}

static int barrier(struct comm *c, struct err *err)
{
	(void)c, (void)err;
	return 0;
}

static int split(struct comm *c, int color, int key, struct comm **out, struct err *err)
{
	(void)color, (void)key;
	return comm_open_self(out, dev(c), err);
}

static void abort_none(struct comm *c, const char *why)
{
	(void)c, (void)why;     /* nobody else to stop */
}

static void self_free(struct comm *c)
{
	free(c);
}

int comm_open_self(struct comm **out, struct device *d, struct err *err)
{
	struct comm *c = mem_zalloc(1, sizeof(*c), err);

	*out = c;
	if (!c)
		return -1;
	*c = (struct comm){ .rank = 0,
		.size = 1,
		.impl = d,
		.all_gather = copy,
		.reduce_scatter = reduce_scatter,
		.all_reduce = all_reduce,
		.all_reduce_host = all_reduce_host,
		.broadcast = broadcast,
		.broadcast_host = broadcast_host,
		.all_to_all = copy,
		.send = no_peer,
		.recv = no_peer,
		.barrier = barrier,
		.split = split,
		.abort = abort_none,
		.free = self_free };
	return 0;
}
