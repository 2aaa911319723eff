#ifndef BENCH_H
#define BENCH_H
/*
 * bench: the time of a piece of work, and the machine's own measured peak to hold it against.
 *
 * The machine may be shared: what counts is the best of many short runs, and the peak is measured
 * beside each figure. THREADS=N uses N threads.  With THREADS=1, BENCH_CLOCK=cpu counts this
 * process's own time only.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "libcommon/pool.h"
#include "tools/tune-train/core/device.h"

static inline double bench_now(void)
{
	struct timespec t;
	const char *clock = getenv("BENCH_CLOCK");

	clock_gettime(clock && *clock == 'c' ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

enum { PEAK_ROUNDS = 1000000, PEAK_CHAINS = 12 };

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) static void peak_avx2(void)
{
	__m256 s[PEAK_CHAINS], x = _mm256_set1_ps(0.5f);

#pragma GCC unroll 12
	for (int i = 0; i < PEAK_CHAINS; i++)
		s[i] = x;
	for (long k = 0; k < PEAK_ROUNDS; k++) {
#pragma GCC unroll 12
		for (int i = 0; i < PEAK_CHAINS; i++) {
			s[i] = _mm256_fmadd_ps(s[i], x, x);
			__asm__ volatile("" : "+x"(s[i]));   /* or equal chains become one */
		}
	}
}
#endif

static void peak_plain(void)
{
	typedef float v4 __attribute__((vector_size(16)));
	v4 s[PEAK_CHAINS], x = { 0.5f, 0.5f, 0.5f, 0.5f };

#pragma GCC unroll 12
	for (int i = 0; i < PEAK_CHAINS; i++)
		s[i] = x;
	for (long k = 0; k < PEAK_ROUNDS; k++)
#pragma GCC unroll 12
		for (int i = 0; i < PEAK_CHAINS; i++) {
			s[i] = s[i] * x + x;
#if defined(__x86_64__)
			__asm__ volatile("" : "+x"(s[i]));
#elif defined(__aarch64__)
			__asm__ volatile("" : "+w"(s[i]));
#endif
		}
}

static int peak_wide;
static void peak_task(void *ctx, long task, int worker)
{
	(void)ctx, (void)task, (void)worker;
#if defined(__x86_64__)
	if (peak_wide) {
		peak_avx2();
		return;
	}
#endif
	peak_plain();
}

/*
 * Multiply-adds in GF/s from registers alone, on all threads of the pool: best of `runs` of a few
 * ms.
 */
static inline double bench_peak(struct pool *p, int runs)
{
	double best = 1e30;

#if defined(__x86_64__)
	peak_wide = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
	for (int i = 0; i < runs; i++) {
		double t = bench_now();

		pool_run(p, pool_threads(p), peak_task, NULL);
		t = bench_now() - t;
		best = t < best ? t : best;
	}
	return 2e-9 * (peak_wide ? 8 : 4) * PEAK_CHAINS * PEAK_ROUNDS * pool_threads(p) / best;
}

static inline struct device *bench_device(void)
{
	struct device *d;
	struct err err = {0};
	const char *threads = getenv("THREADS");

	if (device_open(&d, "cpu", threads ? (int)strtol(threads, NULL, 10) : 0, &err) < 0) {
		fprintf(stderr, "bench: %s\n", err.msg);
		exit(err.code);
	}
	return d;
}

/* n elements, filled with numbers in [-1, 1) when seed is not 0. */
static inline struct dbuf bench_buf(struct device *d, enum dtype t, size_t n, unsigned seed)
{
	struct dbuf b = { NULL, t };
	struct err err = {0};
	size_t bytes = t == DT_F32 ? 4 : 2;

	if (d->alloc(d, n * bytes, &b.p, &err) < 0) {
		fprintf(stderr, "bench: %s\n", err.msg);
		exit(err.code);
	}
	for (size_t i = 0; i < n && seed; i++) {
		float f;

		seed = seed * 1664525u + 1013904223u;
		f = (float)(int)(seed >> 8) / (float)(1 << 23) - 1.f;
		if (t == DT_F32)
			((float *)(void *)b.p)[i] = f;
		else
			((uint16_t *)(void *)b.p)[i] = f32_bf16(f);
	}
	return b;
}
#endif
