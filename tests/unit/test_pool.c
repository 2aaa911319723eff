#include <stdlib.h>

#include "libcommon/pool.h"
#include "tap.h"

static int seen[1000];
static void one(void *ctx, long task, int worker)
{
	(void)worker;
	seen[task] += *(int *)ctx;
}

int main(void)
{
	struct err err = {0};
	int step = 1, good = 1;

	for (int threads = 1; threads < 5; threads++) {
		struct pool *p;

		if (pool_new(&p, threads, &err) < 0) {
			ok(0, "pool_new: %s", err.msg);
			return tap_done();
		}
		for (int job = 0; job < 3000; job++)
			pool_run(p, job % 1000, one, &step);
		ok(pool_threads(p) == threads, "%d threads", threads);
		pool_free(p);
	}
	for (int i = 0; i < 1000; i++)   /* task i runs once in each job of more than i tasks */
		good &= seen[i] == 4 * 3 * (999 - i);
	ok(good, "every task of every job ran exactly once");
	return tap_done();
}
