#include "libcommon/formats/quants.h"

#include <assert.h>
#include <math.h>

static float half_at(const unsigned char *p)
{
	return f16_f32((uint16_t)(p[0] | p[1] << 8));
}

static void q4_0(const unsigned char *b, float *y)
{
	float d = half_at(b);

	for (int i = 0; i < 16; i++) {
		y[i] = d * (float)((b[2 + i] & 15) - 8);
		y[16 + i] = d * (float)((b[2 + i] >> 4) - 8);
	}
}

static void q4_1(const unsigned char *b, float *y)
{
	float d = half_at(b), m = half_at(b + 2);

	for (int i = 0; i < 16; i++) {
		y[i] = d * (float)(b[4 + i] & 15) + m;
		y[16 + i] = d * (float)(b[4 + i] >> 4) + m;
	}
}

/*
 * The fifth bits of 32 elements as bytes of 0 or 16: one pass, so that the loops after it
 * vectorise.
 */
static void high_bits(const unsigned char *qh, unsigned char out[32])
{
	for (int i = 0; i < 32; i++)
		out[i] = (unsigned char)((qh[i >> 3] >> (i & 7) & 1) << 4);
}

static void q5_0(const unsigned char *b, float *y)
{
	float d = half_at(b);
	unsigned char h[32];

	high_bits(b + 2, h);
	for (int i = 0; i < 16; i++) {
		y[i] = d * (float)(((b[6 + i] & 15) | h[i]) - 16);
		y[16 + i] = d * (float)(((b[6 + i] >> 4) | h[16 + i]) - 16);
	}
}

static void q5_1(const unsigned char *b, float *y)
{
	float d = half_at(b), m = half_at(b + 2);
	unsigned char h[32];

	high_bits(b + 4, h);
	for (int i = 0; i < 16; i++) {
		y[i] = d * (float)((b[8 + i] & 15) | h[i]) + m;
		y[16 + i] = d * (float)((b[8 + i] >> 4) | h[16 + i]) + m;
	}
}

static void q8_0(const unsigned char *b, float *y)
{
	float d = half_at(b);

	for (int i = 0; i < 32; i++)
		y[i] = (float)(signed char)b[2 + i] * d;
}

/* scales[16] (low nibble scale, high minimum), qs[64], d, dmin. */
static void q2_k(const unsigned char *b, float *y)
{
	const unsigned char *qs = b + 16;
	float d = half_at(b + 80), dmin = half_at(b + 82);

	for (int g = 0; g < 16; g++, y += 16) {
		const unsigned char *q = qs + g / 8 * 32 + g % 2 * 16;
		int shift = g % 8 / 2 * 2;
		float dl = d * (float)(b[g] & 15), ml = dmin * (float)(b[g] >> 4);

		for (int i = 0; i < 16; i++)
			y[i] = dl * (float)(q[i] >> shift & 3) - ml;
	}
}

/* hmask[32], qs[64], scales[12] of 6 bits, d.  A set mask bit means that 4 is not subtracted. */
static void q3_k(const unsigned char *b, float *y)
{
	const unsigned char *qs = b + 32, *sc = b + 96;
	float d = half_at(b + 108);

	for (int g = 0; g < 16; g++, y += 16) {
		const unsigned char *q = qs + g / 8 * 32 + g % 2 * 16, *h = b + g % 2 * 16;
		int shift = g % 8 / 2 * 2, bit = g / 2;
		int low = sc[g % 8] >> (g / 8 * 4) & 15, high = sc[8 + g % 4] >> (g / 4 * 2) & 3;
		float dl = d * (float)((low | high << 4) - 32);

		for (int i = 0; i < 16; i++)
			y[i] = dl * (float)((q[i] >> shift & 3) - ((h[i] >> bit & 1) ^ 1) * 4);
	}
}

/* Scale and minimum g of 8, 6 bits each in 12 bytes. */
static void scale_min(const unsigned char *s, int g, float *scale, float *min)
{
	if (g < 4) {
		*scale = (float)(s[g] & 63);
		*min = (float)(s[g + 4] & 63);
	} else {
		*scale = (float)((s[g + 4] & 15) | (s[g - 4] >> 6) << 4);
		*min = (float)((s[g + 4] >> 4) | (s[g] >> 6) << 4);
	}
}

/* d, dmin, scales[12], qs[128]: 32 low nibbles, then their 32 high ones. */
static void q4_k(const unsigned char *b, float *y)
{
	float d = half_at(b), dmin = half_at(b + 2), s, m;

	for (int g = 0; g < 8; g++, y += 32) {
		const unsigned char *q = b + 16 + g / 2 * 32;
		int shift = g % 2 * 4;

		scale_min(b + 4, g, &s, &m);
		s *= d;
		m *= dmin;
		for (int i = 0; i < 32; i++)
			y[i] = s * (float)(q[i] >> shift & 15) - m;
	}
}

/* d, dmin, scales[12], qh[32], qs[128]: bit g of qh[i] is the fifth bit of element i of group g. */
static void q5_k(const unsigned char *b, float *y)
{
	const unsigned char *h = b + 16;
	float d = half_at(b), dmin = half_at(b + 2), s, m;

	for (int g = 0; g < 8; g++, y += 32) {
		const unsigned char *q = b + 48 + g / 2 * 32;
		int shift = g % 2 * 4;

		scale_min(b + 4, g, &s, &m);
		s *= d;
		m *= dmin;
		for (int i = 0; i < 32; i++)
			y[i] = s * (float)((q[i] >> shift & 15) | (h[i] >> g & 1) << 4) - m;
	}
}

/* ql[128], qh[64], int8 scales[16], d; two halves of 128 elements. */
static void q6_k(const unsigned char *b, float *y)
{
	float d = half_at(b + 208);

	for (int g = 0; g < 16; g++, y += 16) {
		int half = g / 8, quarter = g % 8 / 2, at = g % 2 * 16;
		const unsigned char *l = b + half * 64 + quarter % 2 * 32 + at,
							*h = b + 128 + half * 32 + at;
		int lshift = quarter / 2 * 4, hshift = quarter * 2;
		float dl = d * (float)(signed char)b[192 + g];

		for (int i = 0; i < 16; i++)
			y[i] = dl * (float)(((l[i] >> lshift & 15) | (h[i] >> hshift & 3) << 4) - 32);
	}
}

void dequantize(enum dtype t, const unsigned char *src, size_t nblocks, float *dst)
{
	static void (*const block[DT_COUNT])(const unsigned char *, float *) = {
		[DT_Q4_0] = q4_0, [DT_Q4_1] = q4_1, [DT_Q5_0] = q5_0, [DT_Q5_1] = q5_1, [DT_Q8_0] = q8_0,
		[DT_Q2_K] = q2_k, [DT_Q3_K] = q3_k, [DT_Q4_K] = q4_k, [DT_Q5_K] = q5_k, [DT_Q6_K] = q6_k,
	};

	assert(block[t]);
	for (size_t i = 0; i < nblocks; i++)
		block[t](src + i * (size_t)dtype_info[t].bytes, dst + i * (size_t)dtype_info[t].block);
}

int quantize_q8_0(const float *src, size_t nblocks, unsigned char *dst)
{
	for (; nblocks; nblocks--, src += 32, dst += 34) {
		float max = 0, d, id;
		uint16_t h;

		for (int i = 0; i < 32; i++) {
			if (!isfinite(src[i]))
				return -1;
			max = fabsf(src[i]) > max ? fabsf(src[i]) : max;
		}
		d = max / 127;
		h = f32_f16(d);
		if ((h & 0x7c00) == 0x7c00)
			return -1;
		/*
		 * The smallest denormal scales have no finite inverse; their fp16 form is zero, so the
		 * elements may be too.
		 */
		id = d > 0 && isfinite(1 / d) ? 1 / d : 0;
		dst[0] = (unsigned char)h;
		dst[1] = (unsigned char)(h >> 8);
		for (int i = 0; i < 32; i++)
			dst[2 + i] = (unsigned char)(signed char)roundf(src[i] * id);
	}
	return 0;
}
