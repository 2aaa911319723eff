#ifndef TUNE_CPU_VEC_H
#define TUNE_CPU_VEC_H
/*
 * vec: short vectors of floats, as wide as the path that is being compiled: 8 with AVX2, else 4
 * (SSE2, NEON).
 *
 * Every kernel is written once in terms of these and compiled once a path (path_plain.c,
 * path_avx2.c).  GCC's vector types give + - * / and comparisons; here is the rest.  Loads and
 * stores need no alignment.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "tools/tune-train/core/device.h"

#if defined(__AVX2__)
#include <immintrin.h>
#define VW 8
#else
#define VW 4
#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif
#endif

typedef float vf __attribute__((vector_size(4 * VW)));
typedef int32_t vi __attribute__((vector_size(4 * VW)));
typedef uint32_t vu __attribute__((vector_size(4 * VW)));
typedef uint16_t vh __attribute__((vector_size(2 * VW)));

#define VINLINE static inline __attribute__((always_inline))

VINLINE vf vset(float x) { return x - (vf){0}; }
VINLINE vf vload(const float *p) { vf v; memcpy(&v, p, sizeof(v)); return v; }
VINLINE void vstore(float *p, vf v) { memcpy(p, &v, sizeof(v)); }

/* a * b + c, with one rounding where the machine has it. */
VINLINE vf vfma(vf a, vf b, vf c)
{
#if defined(__AVX2__)
	return _mm256_fmadd_ps(a, b, c);
#elif defined(__aarch64__)
	return vfmaq_f32(c, a, b);
#else
	return a * b + c;
#endif
}

VINLINE vf vpick(vi mask, vf a, vf b) { return (vf)((mask & (vi)a) | (~mask & (vi)b)); }

/* b where either is NaN, so that vmax(limit, x) and vmin(limit, x) keep a NaN of x. */
VINLINE vf vmax(vf a, vf b)
{
#if defined(__AVX2__)
	return _mm256_max_ps(a, b);
#elif defined(__SSE2__)
	return _mm_max_ps(a, b);
#else
	return vpick(a > b, a, b);
#endif
}

VINLINE vf vmin(vf a, vf b)
{
#if defined(__AVX2__)
	return _mm256_min_ps(a, b);
#elif defined(__SSE2__)
	return _mm_min_ps(a, b);
#else
	return vpick(a < b, a, b);
#endif
}

VINLINE vf vsqrt(vf a)
{
#if defined(__AVX2__)
	return _mm256_sqrt_ps(a);
#elif defined(__SSE2__)
	return _mm_sqrt_ps(a);
#elif defined(__aarch64__)
	return vsqrtq_f32(a);
#else
	for (int i = 0; i < VW; i++)
		a[i] = sqrtf(a[i]);
	return a;
#endif
}

VINLINE vf vload_bf16(const uint16_t *p)
{
	vh h;

	memcpy(&h, p, sizeof(h));
	return (vf)(__builtin_convertvector(h, vu) << 16);
}

/* Round to nearest even; a NaN stays a (quiet) NaN: the same as f32_bf16 of dtype.h. */
VINLINE void vstore_bf16(uint16_t *p, vf v)
{
	vu u = (vu)v, nan = (vu)(v != v);
	vu r = (u + 0x7fff + (u >> 16 & 1)) >> 16;
	vh h;

	r = (r & ~nan) | ((u >> 16 | 0x40) & nan);
#if defined(__AVX2__)
	__m128i lo = _mm256_castsi256_si128((__m256i)r), hi = _mm256_extracti128_si256((__m256i)r, 1);

	h = (vh)_mm_packus_epi32(lo, hi);
#else
	h = __builtin_convertvector(r, vh);
#endif
	memcpy(p, &h, sizeof(h));
}

/* Sum of the lanes in a fixed order (halves, then halves of that). */
VINLINE float vsum(vf v)
{
	float t[VW];
	int i, n;

	memcpy(t, &v, sizeof(t));
	for (n = VW / 2; n > 0; n /= 2)
		for (i = 0; i < n; i++)
			t[i] += t[i + n];
	return t[0];
}

VINLINE float vmax_lane(vf v)
{
	float m = v[0];
	int i;

	for (i = 1; i < VW; i++)
		m = v[i] > m ? v[i] : m;
	return m;
}

/*
 * exp: 2^n * p(r), r = x - n ln 2 in two steps, p of degree 7 with the first two coefficients exact
 * (Cephes expf).  Relative error below 1.5e-7 on [-87.3, 88.3]; below that 0 (not a denormal),
 * above it the value at 88.37; NaN stays NaN.
 */
VINLINE vf vexp(vf x)
{
	const vf magic = vset(12582912.f);   /* 1.5 * 2^23: adding it rounds to an integer */
	vf t, n, r, p;
	vi small = x < -87.3365f;

	x = vmax(vset(-87.3365f), vmin(vset(88.3762626f), x));
	t = vfma(x, vset(1.44269504088896341f), magic);
	n = t - magic;
	r = vfma(n, vset(-0.693359375f), x);
	r = vfma(n, vset(2.12194440e-4f), r);
	p = vfma(vset(1.9875691500e-4f), r, vset(1.3981999507e-3f));
	p = vfma(p, r, vset(8.3334519073e-3f));
	p = vfma(p, r, vset(4.1665795894e-2f));
	p = vfma(p, r, vset(1.6666665459e-1f));
	p = vfma(p, r, vset(0.5f));
	p = vfma(p, r * r, r + 1.f);
	p *= (vf)((((vu)t - (vu)magic) + 127) << 23);
	return (vf)((vi)p & ~small);
}

VINLINE vf vtanh(vf x) { return 1.f - 2.f / (vexp(x + x) + 1.f); }
VINLINE vf vsigmoid(vf x) { return 1.f / (1.f + vexp(-x)); }

/* ---- elements i..i+n-1 (n <= VW) of a buffer; lanes past n are read as 0 and not written ---- */
VINLINE vf get(struct dbuf b, long i, int n)
{
	uint16_t h[VW] = {0};
	float f[VW] = {0};

	if (n == VW)
		return b.t == DT_F32 ? vload((const float *)(const void *)b.p + i)
			: vload_bf16((const uint16_t *)(const void *)b.p + i);
	if (b.t == DT_F32) {
		memcpy(f, (const float *)(const void *)b.p + i, (size_t)n * 4);
		return vload(f);
	}
	memcpy(h, (const uint16_t *)(const void *)b.p + i, (size_t)n * 2);
	return vload_bf16(h);
}

VINLINE void put(struct dbuf b, long i, vf v, int n)
{
	uint16_t h[VW];

	if (b.t == DT_F32 && n == VW) {
		vstore((float *)(void *)b.p + i, v);
	} else if (b.t == DT_F32) {
		memcpy((float *)(void *)b.p + i, &v, (size_t)n * 4);
	} else if (n == VW) {
		vstore_bf16((uint16_t *)(void *)b.p + i, v);
	} else {
		vstore_bf16(h, v);
		memcpy((uint16_t *)(void *)b.p + i, h, (size_t)n * 2);
	}
}

/* for (i...; n = lanes of this step): the loop over a row that every elementwise op has. */
#define EACH_VEC(i, n, from, to) \
	for (long i = (from), n; i < (to) && (n = (to) - i < VW ? (to) - i : VW, 1); i += VW)
#endif
