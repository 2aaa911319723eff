#ifndef TUNE_RNG_H
#define TUNE_RNG_H
/*
 * rng: Philox4x32-10 (Salmon et al. 2011), counter based: a number is a function of a key and a
 * counter, never of what was drawn before.  key = (seed, purpose), counter = (step, position,
 * layer, element) so that nothing depends on ranks, threads, devices or micro-batches
 * (tune-stream(5) holds test vectors).
 */
#include <stddef.h>
#include <stdint.h>

enum rng_purpose {
	RNG_INIT = 1, RNG_ORDER = 2, RNG_DROPOUT = 3, RNG_SAMPLE = 4, RNG_SPLIT = 5, RNG_SHUFFLE = 6,
	RNG_LORA = 7
};

void philox4x32(const uint32_t key[2], const uint32_t ctr[4], uint32_t out[4]);
/*
 * key from a 64-bit seed and a purpose: lo = seed low 32 ^ purpose * 0x9E3779B9, hi = seed high 32.
 */
void rng_key(uint64_t seed, enum rng_purpose purpose, uint32_t key[2]);
/* [0, 1) with 24 bits. */
float rng_uniform(uint32_t bits);
/*
 * Standard normals: out[i] for elements first..first+n-1 under (key, c1, c2, c3); Box-Muller in
 * double, pairs from words (0,1) and (2,3).
 */
void rng_normal(const uint32_t key[2], uint32_t c1, uint32_t c2, uint32_t c3, uint64_t first,
	size_t n, float *out);
/* A permutation of 0..n-1 (Feistel with cycle walking) keyed by (seed, epoch): the image of i. */
uint64_t rng_permute(uint64_t seed, uint64_t epoch, uint64_t n, uint64_t i);
#endif
