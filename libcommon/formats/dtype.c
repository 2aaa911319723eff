#include "libcommon/formats/dtype.h"

#include "libcommon/formats/quants.h"

const struct dtype_info dtype_info[DT_COUNT] = {
	[DT_F32]  = { "F32",  "F32",  1, 4, 0 },
	[DT_F16]  = { "F16",  "F16",  1, 2, 1 },
	[DT_BF16] = { "BF16", "BF16", 1, 2, 30 },
	[DT_F64]  = { "F64",  "F64",  1, 8, 28 },
	[DT_I64]  = { "I64",  "I64",  1, 8, 27 },
	[DT_I32]  = { "I32",  "I32",  1, 4, 26 },
	[DT_I16]  = { "I16",  "I16",  1, 2, 25 },
	[DT_I8]   = { "I8",   "I8",   1, 1, 24 },
	[DT_U8]   = { "U8",   "U8",   1, 1, -1 },
	[DT_BOOL] = { "BOOL", "BOOL", 1, 1, -1 },
	[DT_Q4_0] = { "Q4_0", NULL, 32, 18, 2 },
	[DT_Q4_1] = { "Q4_1", NULL, 32, 20, 3 },
	[DT_Q5_0] = { "Q5_0", NULL, 32, 22, 6 },
	[DT_Q5_1] = { "Q5_1", NULL, 32, 24, 7 },
	[DT_Q8_0] = { "Q8_0", NULL, 32, 34, 8 },
	[DT_Q2_K] = { "Q2_K", NULL, 256, 84, 10 },
	[DT_Q3_K] = { "Q3_K", NULL, 256, 110, 11 },
	[DT_Q4_K] = { "Q4_K", NULL, 256, 144, 12 },
	[DT_Q5_K] = { "Q5_K", NULL, 256, 176, 13 },
	[DT_Q6_K] = { "Q6_K", NULL, 256, 210, 14 },
};

/* The words of options and config; the first of a type is the one that dtype_word gives. */
static const struct { const char *word; enum dtype t; } words[] = {
	{ "fp32", DT_F32 }, { "f32", DT_F32 }, { "bf16", DT_BF16 }, { "fp16", DT_F16 },
	{ "f16", DT_F16 },
	{ "fp64", DT_F64 }, { "i64", DT_I64 }, { "i32", DT_I32 }, { "i16", DT_I16 }, { "i8", DT_I8 },
	{ "u8", DT_U8 }, { "bool", DT_BOOL },
	{ "q4_0", DT_Q4_0 }, { "q4_1", DT_Q4_1 }, { "q5_0", DT_Q5_0 }, { "q5_1", DT_Q5_1 },
	{ "q8_0", DT_Q8_0 },
	{ "q2_k", DT_Q2_K }, { "q3_k", DT_Q3_K }, { "q4_k", DT_Q4_K }, { "q5_k", DT_Q5_K },
	{ "q6_k", DT_Q6_K },
};
enum { NWORDS = sizeof(words) / sizeof(words[0]) };

enum dtype dtype_from_st(const char *name, size_t n)
{
	for (int t = 0; t < DT_COUNT; t++)
		if (dtype_info[t].st_name && strlen(dtype_info[t].st_name) == n &&
			!memcmp(name, dtype_info[t].st_name, n))
			return (enum dtype)t;
	return DT_NONE;
}

enum dtype dtype_from_ggml(uint32_t type)
{
	for (int t = 0; t < DT_COUNT; t++)
		if (dtype_info[t].ggml >= 0 && (uint32_t)dtype_info[t].ggml == type)
			return (enum dtype)t;
	return DT_NONE;
}

enum dtype dtype_from_word(const char *s)
{
	for (int i = 0; i < NWORDS; i++)
		if (!strcmp(s, words[i].word))
			return words[i].t;
	return DT_NONE;
}

const char *dtype_word(enum dtype t)
{
	for (int i = 0; i < NWORDS; i++)
		if (words[i].t == t)
			return words[i].word;
	return "none";
}

static float bits_f32(uint32_t u)
{
	float f;

	memcpy(&f, &u, 4);
	return f;
}

static uint32_t f32_bits(float f)
{
	uint32_t u;

	memcpy(&u, &f, 4);
	return u;
}

/*
 * Without branches, so that loops over it vectorise.  A normal half is moved to fp32's exponent
 * place and scaled by an exact power of two (the product also makes NaNs quiet); a denormal one
 * becomes the mantissa of 0.5 + x, from which 0.5 is taken.
 */
float f16_f32(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000) << 16, twice = (uint32_t)h << 17;
	float normal = bits_f32((twice >> 4) + (0xe0u << 23)) * 0x1p-112f;
	float denormal = bits_f32((twice >> 17) | (126u << 23)) - 0.5f;
	uint32_t m = f32_bits(twice < (1u << 27) ? denormal : normal);

	return bits_f32(sign | m);
}

/*
 * |f| plus a power of two chosen by its exponent: the sum's mantissa holds f rounded to nearest
 * even at the half's last place, denormals included; scaling up and down first turns what is too
 * large into Inf.
 */
uint16_t f32_f16(float f)
{
	uint32_t w = f32_bits(f), twice = w + w, bias = twice & 0xff000000u, m, nan;
	float base = bits_f32(w & 0x7fffffff) * 0x1p112f * 0x1p-110f;

	if (bias < 0x71000000u)
		bias = 0x71000000u;
	m = f32_bits(bits_f32((bias >> 1) + 0x07800000u) + base);
	m = (m >> 13 & 0x7c00) + (m & 0x0fff);
	nan = 0x7e00 | (w >> 13 & 0x3ff);
	return (uint16_t)((w >> 16 & 0x8000) | (twice > 0xff000000u ? nan : m));
}

int dtype_to_f32(enum dtype t, const void *src, size_t n, float *dst)
{
	const unsigned char *p = src;
	uint16_t h;
	size_t i;

	switch (t) {
	case DT_F32:
		if (n)
			memcpy(dst, src, n * 4);
		return 0;
	case DT_F16:
		for (i = 0; i < n; i++) {
			memcpy(&h, p + 2 * i, 2);
			dst[i] = f16_f32(h);
		}
		return 0;
	case DT_BF16:
		for (i = 0; i < n; i++) {
			memcpy(&h, p + 2 * i, 2);
			dst[i] = bf16_f32(h);
		}
		return 0;
	default:
		if (t < DT_Q4_0 || t >= DT_COUNT)
			return -1;
		dequantize(t, p, n / (size_t)dtype_info[t].block, dst);
		return 0;
	}
}

int dtype_from_f32(enum dtype t, const float *src, size_t n, void *dst)
{
	unsigned char *p = dst;
	uint16_t h;
	size_t i;

	switch (t) {
	case DT_F32:
		if (n)
			memcpy(dst, src, n * 4);
		return 0;
	case DT_F16:
		for (i = 0; i < n; i++) {
			h = f32_f16(src[i]);
			memcpy(p + 2 * i, &h, 2);
		}
		return 0;
	case DT_BF16:
		for (i = 0; i < n; i++) {
			h = f32_bf16(src[i]);
			memcpy(p + 2 * i, &h, 2);
		}
		return 0;
	case DT_Q8_0:
		return quantize_q8_0(src, n / 32, p);
	default:
		return -1;
	}
}
