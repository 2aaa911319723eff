#ifndef TUNE_CPU_EACH_H
#define TUNE_CPU_EACH_H
/*
 * each: run a range of rows (or elements) on the pool in fixed blocks; and small accessors.  Part
 * of ops/, compiled once a path.
 */
#include <assert.h>

#include "tools/tune-train/core/cpu/cpu.h"
#include "tools/tune-train/core/cpu/vec.h"

/*
 * A range copies its arguments first: a store through a float pointer might change *args, for all
 * the compiler knows, but not a local.
 */
typedef void range_fn(const void *args, long lo, long hi);
struct each { range_fn *fn; const void *args; long n, block; };

static void each_task(void *ctx, long task, int worker)
{
	const struct each *e = ctx;
	long lo = task * e->block, hi = lo + e->block;

	(void)worker;
	e->fn(e->args, lo, hi < e->n ? hi : e->n);
}

/* fn over 0..n-1 in blocks of `block`. */
static void each(struct device *d, long n, long block, range_fn *fn, const void *args)
{
	struct cpu *c = d->impl;
	struct each e = { fn, args, n, block };

	if (n > 0)
		pool_run(c->pool, (n + block - 1) / block, each_task, &e);
}

/* Rows a task, so that a task has about 16 K elements. */
static long row_block(long c) { return c >= 16384 ? 1 : 16384 / c; }

static inline float *f32(struct dmem *p) { return (float *)(void *)p; }
static inline int32_t *i32(struct dmem *p) { return (int32_t *)(void *)p; }
static inline struct dbuf floats(struct dmem *p) { return (struct dbuf){ p, DT_F32 }; }
static inline size_t bytes_of(enum dtype t) { return t == DT_F32 ? 4 : 2; }
static inline bool is_float(struct dbuf b) { return b.t == DT_F32 || b.t == DT_BF16; }
#endif
