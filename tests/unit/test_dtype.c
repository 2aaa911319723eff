#include <math.h>
#include <stdlib.h>

#include "libcommon/file.h"
#include "libcommon/formats/dtype.h"
#include "tap.h"

#define DIR_ "tests/golden/quants/"

/* What a half means, by the definition. */
static double half_value(unsigned h)
{
	int e = h >> 10 & 31, m = h & 1023;
	double v = e == 31 ? (m ? NAN : INFINITY) : e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);

	return h & 0x8000 ? -v : v;
}

static void test_f16_to_f32(void)
{
	int bad = 0;

	for (unsigned h = 0; h < 65536; h++) {
		double want = half_value(h);
		float got = f16_f32((uint16_t)h);

		if (isnan(want) ? !isnan(got) : (double)got != want || !signbit(got) != !signbit(want))
			bad++;
	}
	ok(!bad,
		"all 65536 halves have their defined value as fp32 (denormals, signed zeros, Inf, NaN)");
}

static void test_f16_roundtrip(void)
{
	int bad = 0, denormals = 0;

	for (unsigned h = 0; h < 65536; h++) {
		/* NaN becomes quiet, with its sign and payload */
		unsigned want = (h & 0x7fff) > 0x7c00 ? h | 0x200 : h;

		bad += f32_f16(f16_f32((uint16_t)h)) != want;
		denormals += (h & 0x7c00) == 0 && (h & 1023);
	}
	ok(!bad && denormals == 2046, "all 65536 halves survive the way to fp32 and back");
}

/*
 * Between each two neighbours: the middle goes to the even one, what lies beside the middle to the
 * nearer one.
 */
static void test_f16_rounding(void)
{
	int bad = 0;

	for (unsigned h = 0; h < 0x7c00; h++) {
		double a = half_value(h), b = h == 0x7bff ? 65536 : half_value(h + 1);
		float mid = (float)((a + b) / 2);   /* exact: one more bit than a half has */

		for (int s = 0; s < 2; s++) {
			unsigned sign = s ? 0x8000 : 0;
			float k = s ? -1 : 1;

			bad += f32_f16(k * mid) != ((h & 1 ? h + 1 : h) | sign);
			bad += f32_f16(k * nextafterf(mid, 0)) != (h | sign);
			bad += f32_f16(k * nextafterf(mid, INFINITY)) != ((h + 1) | sign);
		}
	}
	ok(!bad,
		"fp32 to fp16 rounds to nearest, ties to even, at every boundary; 65520 and above is Inf");
	ok(f32_f16(INFINITY) == 0x7c00 && f32_f16(-INFINITY) == 0xfc00 && f32_f16(3e38f) == 0x7c00 &&
			f32_f16(-0.0f) == 0x8000 && f32_f16(1e-30f) == 0 && f32_f16(1e-44f) == 0,
		"Inf, overflow, signed zero and underflow");
}

static void test_bf16(void)
{
	int bad = 0;

	for (unsigned h = 0; h < 65536; h++) {
		unsigned want = (h & 0x7fff) > 0x7f80 ? h | 0x40 : h;

		bad += f32_bf16(bf16_f32((uint16_t)h)) != want;
	}
	ok(!bad, "all 65536 bf16 survive the way to fp32 and back");
	for (unsigned h = 0; h < 0x7f80; h++) {
		uint32_t u = h << 16 | 0x8000;
		float mid, below, above;

		memcpy(&mid, &u, 4);
		u--;
		memcpy(&below, &u, 4);
		u += 2;
		memcpy(&above, &u, 4);
		bad += f32_bf16(mid) != (h & 1 ? h + 1 : h) || f32_bf16(below) != h ||
			f32_bf16(above) != h + 1;
		bad += f32_bf16(-mid) != (0x8000 | (h & 1 ? h + 1 : h));
	}
	ok(!bad, "fp32 to bf16 rounds to nearest, ties to even, at every boundary");
}

static void test_golden(enum dtype t)
{
	struct err err = {0};
	struct buf blocks = {0}, want = {0};
	char path[64];
	float got[1024];
	int rc;

	snprintf(path, sizeof(path), DIR_ "%s.blocks", dtype_info[t].name);
	rc = file_read(path, 1 << 20, &blocks, &err);
	snprintf(path, sizeof(path), DIR_ "%s.f32", dtype_info[t].name);
	rc |= file_read(path, 1 << 20, &want, &err);
	ok(!rc && want.n == sizeof(got) && blocks.n == dtype_bytes(t, 1024),
		"%s: the goldens are there", dtype_info[t].name);
	rc = rc || dtype_to_f32(t, blocks.p, 1024, got) < 0 || memcmp(got, want.p, sizeof(got));
	ok(!rc, "%s: dequantised bits equal the gguf package's", dtype_info[t].name);
	buf_release(&blocks);
	buf_release(&want);
}

static void test_quantize(void)
{
	struct err err = {0};
	struct buf x = {0}, want = {0};
	unsigned char got[2048];
	float row[32] = {0}, big = 127 * 65504.0f;
	int rc = file_read(DIR_ "quantize.f32", 1 << 20, &x, &err) |
		file_read(DIR_ "quantize.blocks", 1 << 20, &want, &err);

	ok(!rc && x.n == 40 * 32 * 4 && want.n == 40 * 34, "the Q8_0 goldens are there");
	rc = rc || dtype_from_f32(DT_Q8_0, (const float *)(const void *)x.p, 40 * 32, got) < 0 ||
		memcmp(got, want.p, want.n);
	ok(!rc, "quantised Q8_0 bits equal the gguf package's");
	row[5] = NAN;
	ok(dtype_from_f32(DT_Q8_0, row, 32, got) == -1, "Q8_0 refuses NaN");
	row[5] = -INFINITY;
	ok(dtype_from_f32(DT_Q8_0, row, 32, got) == -1, "Q8_0 refuses Inf");
	row[5] = -big * 1.001f;
	ok(dtype_from_f32(DT_Q8_0, row, 32, got) == -1, "Q8_0 refuses a scale that fp16 can't hold");
	row[5] = -big;
	ok(dtype_from_f32(DT_Q8_0, row, 32, got) == 0 && got[2 + 5] == 0x81,
		"and takes the largest that it can");
	row[5] = 1e-44f;
	ok(dtype_from_f32(DT_Q8_0, row, 32, got) == 0 && got[2 + 5] == 0,
		"a scale without an inverse gives zeros");
	buf_release(&x);
	buf_release(&want);
}

static void test_conversions(void)
{
	static const enum dtype kinds[] = { DT_F32, DT_F16, DT_BF16 };
	float x[7] = { 0, -1.5f, 65504, 0x1p-24f, -0.0f, 3.140625f, 1 }, y[7];
	unsigned char raw[32];
	int bad = 0;

	for (int k = 0; k < 3; k++) {
		/* An odd address, as in a mapped file. */
		bad += dtype_from_f32(kinds[k], x, 7, raw + 1) < 0 ||
			dtype_to_f32(kinds[k], raw + 1, 7, y) < 0;
		for (int i = 0; i < 7; i++)
			bad += y[i] != (kinds[k] == DT_BF16 ? bf16_f32(f32_bf16(x[i])) : x[i]);
	}
	ok(!bad, "arrays convert at any alignment");
	ok(dtype_to_f32(DT_I64, raw, 1, y) == -1 && dtype_to_f32(DT_BOOL, raw, 1, y) == -1 &&
			dtype_from_f32(DT_Q4_0, x, 0, raw) == -1 && dtype_from_f32(DT_F64, x, 1, raw) == -1,
		"types that are not computed with are refused");
}

static void test_names(void)
{
	int bad = 0;

	for (int t = 0; t < DT_COUNT; t++) {
		const struct dtype_info *d = &dtype_info[t];

		bad += dtype_from_word(dtype_word((enum dtype)t)) != t;
		bad += d->st_name && dtype_from_st(d->st_name, strlen(d->st_name)) != t;
		bad += d->ggml >= 0 && dtype_from_ggml((uint32_t)d->ggml) != t;
		bad += !d->name || d->block < 1 || d->bytes < 1;
	}
	ok(!bad, "every type is found by each of its names");
	ok(dtype_from_word("f16") == DT_F16 && dtype_from_word("f32") == DT_F32 &&
			dtype_from_word("float") == DT_NONE && dtype_from_st("BF16x", 5) == DT_NONE &&
			dtype_from_st("F8_E4M3", 7) == DT_NONE && dtype_from_ggml(4) == DT_NONE &&
			dtype_from_ggml(UINT32_MAX) == DT_NONE,
		"unknown names are none");
}

int main(void)
{
	test_f16_to_f32();
	test_f16_roundtrip();
	test_f16_rounding();
	test_bf16();
	for (int t = DT_Q4_0; t < DT_COUNT; t++)
		test_golden((enum dtype)t);
	test_quantize();
	test_conversions();
	test_names();
	return tap_done();
}
