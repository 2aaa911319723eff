#ifndef TUNE_POOL_H
#define TUNE_POOL_H
/*
 * pool: a few threads that take numbered tasks.
 *
 * pool_run calls fn(ctx, task, worker) for task = 0..ntasks-1, in any order, and returns when all
 * are done; the caller works too (worker 0).  What a task computes must be a function of its
 * number, never of the worker, so that results do not depend on the thread count; worker
 * (0..threads-1) is for scratch memory only.  Idle workers spin briefly, then sleep on a futex. A
 * pool of one thread runs the tasks in the caller.  Not re-entrant: fn must not call pool_run on
 * the same pool.
 */
#include "libcommon/err.h"

struct pool;
typedef void pool_fn(void *ctx, long task, int worker);

/* threads 0 = the CPUs this process may use */
int pool_new(struct pool **p, int threads, struct err *err);
void pool_run(struct pool *p, long ntasks, pool_fn *fn, void *ctx);
int pool_threads(const struct pool *p);
void pool_free(struct pool *p);
int cpu_count(void);   /* by sched_getaffinity */
#endif
