#ifndef TUNE_DTYPE_H
#define TUNE_DTYPE_H
/*
 * dtype: element types of tensors in files and memory, and conversion to and from fp32.
 *
 * Block types are GGUF's: a block of `block` elements takes `bytes` bytes.  Conversions round to
 * nearest even; bf16 and fp16 keep NaN as a quiet NaN, denormals are kept.  Formulas of the
 * quantised types: ggml's documentation of the GGUF format.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum dtype {
	DT_F32, DT_F16, DT_BF16,
	/* read from safetensors, never computed with */
	DT_F64, DT_I64, DT_I32, DT_I16, DT_I8, DT_U8, DT_BOOL,
	DT_Q4_0, DT_Q4_1, DT_Q5_0, DT_Q5_1, DT_Q8_0, DT_Q2_K, DT_Q3_K, DT_Q4_K, DT_Q5_K, DT_Q6_K,
	DT_COUNT, DT_NONE = -1
};
/* st_name NULL: not in safetensors; ggml -1: not in GGUF */
struct dtype_info { const char *name; const char *st_name; int block; int bytes; int ggml; };
extern const struct dtype_info dtype_info[DT_COUNT];
enum dtype dtype_from_st(const char *name, size_t n);    /* "BF16" -> DT_BF16; DT_NONE if unknown */
enum dtype dtype_from_ggml(uint32_t type);
/* "fp32" "f32" "bf16" "fp16" "f16" "q8_0" */
enum dtype dtype_from_word(const char *s);
const char *dtype_word(enum dtype t);                    /* "fp32", "bf16", "fp16", "q8_0" ... */
/* Bytes of n elements (n must be a multiple of block: the caller has checked). */
static inline size_t dtype_bytes(enum dtype t, size_t n)
{
	return n / (size_t)dtype_info[t].block * (size_t)dtype_info[t].bytes;
}
static inline bool dtype_is_float(enum dtype t)
{
	return t == DT_F32 || t == DT_F16 || t == DT_BF16;
}
/*
 * n elements from src to fp32 (float and block types); src need not be aligned. -1 if t can't be
 * computed with.
 */
int dtype_to_f32(enum dtype t, const void *src, size_t n, float *dst);
/*
 * fp32 to F32, F16, BF16 or Q8_0.  -1 if t is another type, or if a block of Q8_0 holds what it
 * can't express (NaN, Inf, |x| above 127*65504). What is too large for F16 becomes Inf: a caller
 * that must not lose it looks at the range first.
 */
int dtype_from_f32(enum dtype t, const float *src, size_t n, void *dst);

static inline float bf16_f32(uint16_t h)
{
	uint32_t u = (uint32_t)h << 16;
	float f;
	memcpy(&f, &u, 4);
	return f;
}
static inline uint16_t f32_bf16(float f)
{
	uint32_t u;

	memcpy(&u, &f, 4);
	if ((u & 0x7fffffff) > 0x7f800000)
		return (uint16_t)(u >> 16 | 0x40);
	return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
float f16_f32(uint16_t h);
uint16_t f32_f16(float f);
#endif
