#ifndef TUNE_QUANTS_H
#define TUNE_QUANTS_H
/*
 * quants: GGUF's block-quantised types to fp32, and fp32 to Q8_0; dtype.c's inner half.
 *
 * Layouts, little-endian, d and m are fp16 (ggml's ggml-common.h and ggml-quants.c are the
 * definition): Q4_0  d, 16 bytes (low nibbles: elements 0-15, high: 16-31)       x = d*(q - 8) Q4_1
 * d, m, 16 bytes                                              x = d*q + m Q5_0  d, 32 high bits, 16
 * bytes                                   x = d*(q - 16) Q5_1  d, m, 32 high bits, 16 bytes x = d*q
 * + m Q8_0  d, 32 int8                                                  x = d*q Q2_K..Q6_K  256
 * elements in groups of 16 or 32, each with its own small-integer scale (and minimum) Every product
 * and sum is one fp32 operation in ggml's order, so results equal ggml's bits.
 */
#include "libcommon/formats/dtype.h"

/* nblocks blocks of the quantised type t at src (any alignment) to dst. */
void dequantize(enum dtype t, const unsigned char *src, size_t nblocks, float *dst);
/*
 * 32*nblocks floats to Q8_0.  -1 if a block's scale is not finite in fp16 (NaN, Inf, or |x| above
 * 127*65504).
 */
int quantize_q8_0(const float *src, size_t nblocks, unsigned char *dst);
#endif
