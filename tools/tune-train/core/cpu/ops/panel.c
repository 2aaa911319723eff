/*
 * panel: matrices in packed panels, and the micro-kernel that multiplies two of them.
 *
 * A panel holds w rows of a matrix (w = MR for the left operand, NR for the right one) with the
 * summed index outermost: element (row r, k) of panel p is at dst[p * w * kc + k * w + r].  What
 * stands in for rows that do not exist is finite (zeros, or the last row again) and its products
 * are not used.  bf16 is widened here, so that the kernel knows floats only.
 */
#include "each.h"

enum { MR = 6, NR = 2 * VW };

/*
 * c[MR][NR] (row stride ldc) = sum_k a[k][MR] * b[k][NR], or += with add.  Each element is one
 * chain of additions over k, whatever its place in the tile: a row's bits do not depend on where it
 * lies.
 */
static __attribute__((noinline)) void micro(
	long k, const float *a, const float *b, float *c, long ldc, bool add)
{
	vf s[MR][2];

#pragma GCC unroll 6
	for (int i = 0; i < MR; i++)
		s[i][0] = s[i][1] = vset(0);
	for (; k > 0; k--, a += MR, b += NR) {
		vf b0 = vload(b), b1 = vload(b + VW);

#pragma GCC unroll 6
		for (int i = 0; i < MR; i++) {
			vf x = vset(a[i]);

			s[i][0] = vfma(x, b0, s[i][0]);
			s[i][1] = vfma(x, b1, s[i][1]);
		}
	}
	if (add) {
#pragma GCC unroll 6
		for (int i = 0; i < MR; i++) {
			s[i][0] += vload(c + i * ldc);
			s[i][1] += vload(c + i * ldc + VW);
		}
	}
#pragma GCC unroll 6
	for (int i = 0; i < MR; i++) {
		vstore(c + i * ldc, s[i][0]);
		vstore(c + i * ldc + VW, s[i][1]);
	}
}

/* VW elements of a row of either type. */
VINLINE vf widen(const void *p, bool bf, long i)
{
	return bf ? vload_bf16((const uint16_t *)p + i) : vload((const float *)p + i);
}

VINLINE float widen1(const void *p, bool bf, long i)
{
	return bf ? bf16_f32(((const uint16_t *)p)[i]) : ((const float *)p)[i];
}

#if defined(__AVX2__)
VINLINE __m256 halves(const void *lo, const void *hi)
{
	return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(lo)), _mm_loadu_ps(hi), 1);
}

/*
 * 8 x 8 elements, from k on in each of 8 rows, transposed: r[j] = element j of all rows.  Rows i
 * and i + 4 share a register from the load on, so that no step crosses its halves.
 */
VINLINE void load_transposed(const char *const row[8], long k, bool bf, vf r[8])
{
	__m256i a[4], u[4], zero = _mm256_setzero_si256();
	__m256 t[4];

	if (bf) {   /* pairs, then fours, of halfwords; a zero below each makes it a float */
#pragma GCC unroll 4
		for (int i = 0; i < 4; i++)
			a[i] = _mm256_castps_si256(halves(row[i] + 2 * k, row[i + 4] + 2 * k));
		u[0] = _mm256_unpacklo_epi16(a[0], a[1]);
		u[1] = _mm256_unpacklo_epi16(a[2], a[3]);
		u[2] = _mm256_unpackhi_epi16(a[0], a[1]);
		u[3] = _mm256_unpackhi_epi16(a[2], a[3]);
#pragma GCC unroll 2
		for (int i = 0; i < 4; i += 2) {
			__m256i lo = _mm256_unpacklo_epi32(u[i], u[i + 1]),
				hi = _mm256_unpackhi_epi32(u[i], u[i + 1]);

			r[2 * i] = (vf)_mm256_unpacklo_epi16(zero, lo);
			r[2 * i + 1] = (vf)_mm256_unpackhi_epi16(zero, lo);
			r[2 * i + 2] = (vf)_mm256_unpacklo_epi16(zero, hi);
			r[2 * i + 3] = (vf)_mm256_unpackhi_epi16(zero, hi);
		}
		return;
	}
#pragma GCC unroll 2
	for (int h = 0; h < 8; h += 4) {
		__m256 lo[2], hi[2];

#pragma GCC unroll 4
		for (int i = 0; i < 4; i++)
			t[i] = halves(row[i] + 4 * (k + h), row[i + 4] + 4 * (k + h));
#pragma GCC unroll 2
		for (int i = 0; i < 2; i++) {
			lo[i] = _mm256_unpacklo_ps(t[2 * i], t[2 * i + 1]);
			hi[i] = _mm256_unpackhi_ps(t[2 * i], t[2 * i + 1]);
		}
		r[h] = _mm256_shuffle_ps(lo[0], lo[1], 0x44);
		r[h + 1] = _mm256_shuffle_ps(lo[0], lo[1], 0xee);
		r[h + 2] = _mm256_shuffle_ps(hi[0], hi[1], 0x44);
		r[h + 3] = _mm256_shuffle_ps(hi[0], hi[1], 0xee);
	}
}

/* Rows g..g+7 of a panel of w (nr of them exist) for k = 0..kc/8*8-1; returns that bound. */
VINLINE long pack_8(float *dst, const void *src, bool bf, long ld, long g, long nr, long kc, int w)
{
	const char *row[8];
	long k;

	for (int i = 0; i < 8; i++)
		row[i] = (const char *)src + (g + i < nr ? g + i : nr - 1) * ld * (bf ? 2 : 4);
	for (k = 0; k + 8 <= kc; k += 8) {
		vf r[8];

		load_transposed(row, k, bf, r);
#pragma GCC unroll 8
		for (int i = 0; i < 8; i++) {
			float *out = dst + (k + i) * w + g;

			if (w - g >= 8) {
				vstore(out, r[i]);
			} else {   /* MR = 6: 4 and 2 */
				_mm_storeu_ps(out, _mm256_castps256_ps128(r[i]));
				_mm_storel_pi((__m64 *)(void *)(out + 4), _mm256_extractf128_ps(r[i], 1));
			}
		}
	}
	return k;
}
#else
VINLINE long pack_8(float *dst, const void *src, bool bf, long ld, long g, long nr, long kc, int w)
{
	(void)dst, (void)src, (void)bf, (void)ld, (void)g, (void)nr, (void)kc, (void)w;
	return 0;
}
#endif

/* One panel whose rows lie along k: src[r * ld + k]. */
VINLINE void pack_rows(float *dst, const void *src, bool bf, long ld, long nr, long kc, int w)
{
	for (long g = 0; g < w; g += 8) {
		long k = pack_8(dst, src, bf, ld, g, nr, kc, w);

		for (; k < kc; k++)
			for (long i = g; i < w && i < g + 8; i++)
				dst[k * w + i] = i < nr ? widen1(src, bf, i * ld + k) : 0.f;
	}
}

/*
 * All panels of nr rows that lie across k: src[k * ld + r].  k is outermost: a row of the source is
 * read once, in order.
 */
VINLINE void pack_columns(float *dst, const void *src, bool bf, long ld, long nr, long kc, int w)
{
	for (long k = 0; k < kc; k++)
		for (long r = 0; r < nr; r += w) {
			float *out = dst + r * kc + k * w;
			long n = nr - r < w ? nr - r : w;

			if (n == w && w % VW == 0) {
				for (int i = 0; i < w; i += VW)
					vstore(out + i, widen(src, bf, k * ld + r + i));
			} else if (w < VW && k + 1 < kc && r + VW <= nr) {
				/* The lanes past w are of the next k, which comes next. */
				vstore(out, widen(src, bf, k * ld + r));
			} else {
				for (long i = 0; i < w; i++)
					out[i] = i < n ? widen1(src, bf, k * ld + r + i) : 0.f;
			}
		}
}

/* Where a matrix lies: its element (row r, k) is at r * ld + k, or, if across, at k * ld + r. */
struct view { struct dbuf b; long ld; bool across; };

VINLINE void pack_as(
	float *dst, const char *src, bool bf, const struct view *v, long nr, long kc, int w)
{
	if (v->across)
		pack_columns(dst, src, bf, v->ld, nr, kc, w);
	else
		for (long r = 0; r < nr; r += w)
			pack_rows(dst + r * kc, src + r * v->ld * (bf ? 2 : 4), bf, v->ld,
				nr - r < w ? nr - r : w, kc, w);
}

/* Panels of width w (MR or NR) of rows r0..r0+nr-1, k0..k0+kc-1. */
static void pack(float *dst, const struct view *v, long r0, long nr, long k0, long kc, int w)
{
	bool bf = v->b.t == DT_BF16;
	const char *src =
		(const char *)v->b.p + (v->across ? k0 * v->ld + r0 : r0 * v->ld + k0) * (bf ? 2 : 4);

	if (w == MR && bf)
		pack_as(dst, src, true, v, nr, kc, MR);
	else if (w == MR)
		pack_as(dst, src, false, v, nr, kc, MR);
	else if (bf)
		pack_as(dst, src, true, v, nr, kc, NR);
	else
		pack_as(dst, src, false, v, nr, kc, NR);
}
