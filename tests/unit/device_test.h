#ifndef DEVICE_TEST_H
#define DEVICE_TEST_H
/*
 * device_test: operands for the tests of a device's operations, on every path that this machine
 * has.
 *
 * A buffer ends where a page ends, and the next page can't be touched: an operation that reads or
 * writes past it dies.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tap.h"
#include "tools/tune-train/core/device.h"

static struct err test_err;

/* The device on a path, or NULL (said as a skipped test) where the CPU has no such path. */
static inline struct device *test_open(const char *path, int threads)
{
	struct device *d;

	setenv("TUNE_CPU", path, 1);
	if (device_open(&d, "cpu", threads, &test_err) == 0)
		return d;
	ok(1, "%s # SKIP %s", path, test_err.msg);
	return NULL;
}

static const char *const test_paths[] = { "plain", "avx2" };
enum { TEST_PATHS = 2 };

static uint64_t test_state = 88172645463325252u;
static inline double test_uniform(void)
{
	test_state ^= test_state << 13;
	test_state ^= test_state >> 7;
	test_state ^= test_state << 17;
	return (double)(test_state >> 11) * 0x1p-53;
}
static inline double test_normal(void)
{
	return sqrt(-2 * log(1 - test_uniform())) * cos(6.283185307179586 * test_uniform());
}

static inline size_t test_bytes(enum dtype t) { return t == DT_BF16 ? 2 : t == DT_U8 ? 1 : 4; }

/* n elements on the device; never released: a test is short. */
static inline struct dbuf test_buf(struct device *d, enum dtype t, size_t n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = n * test_bytes(t),
		room = (bytes + page - 1) / page * page;
	struct dbuf b = { NULL, t };

	if (d->alloc(d, room + page, &b.p, &test_err) < 0)
		exit(71);
	if (mprotect((char *)b.p + room, page, PROT_NONE))
		exit(71);
	b.p = dmem_at(b.p, room - bytes);
	return b;
}

static inline void test_put(struct device *d, struct dbuf b, const double *x, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		float f = (float)x[i];
		uint16_t h = f32_bf16(f);

		d->upload(d, dmem_at(b.p, i * test_bytes(b.t)), b.t == DT_BF16 ? (const void *)&h : &f,
			test_bytes(b.t));
	}
}

static inline void test_get(struct device *d, struct dbuf b, double *x, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		float f = 0;
		uint16_t h = 0;

		if (d->download(d, b.t == DT_BF16 ? (void *)&h : &f, dmem_at(b.p, i * test_bytes(b.t)),
				test_bytes(b.t), &test_err) < 0)
			exit(70);
		x[i] = b.t == DT_BF16 ? (double)bf16_f32(h) : (double)f;
	}
}

/* Zeros, until test_forget. */
static struct test_kept {
	struct test_kept *next;
	double x[];
} *test_kept;

static inline double *test_array(size_t n)
{
	struct test_kept *k = calloc(1, sizeof(*k) + n * sizeof(double));

	if (!k)
		exit(71);
	k->next = test_kept;
	test_kept = k;
	return k->x;
}

static inline void test_forget(void)
{
	for (struct test_kept *k = test_kept, *next; k; k = next) {
		next = k->next;
		free(k);
	}
	test_kept = NULL;
}

/*
 * n normal numbers times scale, on the device and, as they are stored there, in *host.
 */
static inline struct dbuf test_random(
	struct device *d, enum dtype t, size_t n, double scale, double **host)
{
	struct dbuf b = test_buf(d, t, n);
	double *x = test_array(n);

	for (size_t i = 0; i < n; i++)
		x[i] = scale * test_normal();
	test_put(d, b, x, n);
	test_get(d, b, x, n);
	*host = x;
	return b;
}

static inline struct dmem *test_i32(struct device *d, const int32_t *x, size_t n)
{
	struct dbuf b = test_buf(d, DT_I32, n);

	d->upload(d, b.p, x, n * 4);
	return b.p;
}

/*
 * Largest error of a buffer beyond what its rounding explains, as a multiple of `bound`: <= 1 is
 * right.  NaN counts as huge.
 */
static inline double test_error(
	struct device *d, struct dbuf b, const double *want, size_t n, double bound)
{
	double *got = test_array(n), worst = 0;

	test_get(d, b, got, n);
	for (size_t i = 0; i < n; i++) {
		double e = fabs(got[i] - want[i]) /
			(bound + (b.t == DT_BF16 ? fabs(want[i]) * 0x1p-8 : fabs(want[i]) * 1e-6));

		worst = e <= worst ? worst : isnan(e) ? 1e30 : e;
	}
	return worst;
}

static inline bool test_same(struct device *d, struct dmem *a, struct dmem *b, size_t bytes)
{
	char *x = malloc(bytes), *y = malloc(bytes);
	bool same;

	if (!x || !y || d->download(d, x, a, bytes, &test_err) < 0 ||
		d->download(d, y, b, bytes, &test_err) < 0)
		exit(71);
	same = !memcmp(x, y, bytes);
	free(x);
	free(y);
	return same;
}
#endif
