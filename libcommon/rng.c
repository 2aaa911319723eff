#include "libcommon/rng.h"

#include <math.h>

void philox4x32(const uint32_t key[2], const uint32_t ctr[4], uint32_t out[4])
{
	uint32_t k0 = key[0], k1 = key[1], c0 = ctr[0], c1 = ctr[1], c2 = ctr[2], c3 = ctr[3];

	for (int round = 0; round < 10; round++) {
		uint64_t p0 = (uint64_t)0xD2511F53 * c0, p1 = (uint64_t)0xCD9E8D57 * c2;
		uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;

		c1 = (uint32_t)p1;
		c3 = (uint32_t)p0;
		c0 = n0;
		c2 = n2;
		k0 += 0x9E3779B9;
		k1 += 0xBB67AE85;
	}
	out[0] = c0;
	out[1] = c1;
	out[2] = c2;
	out[3] = c3;
}

void rng_key(uint64_t seed, enum rng_purpose purpose, uint32_t key[2])
{
	key[0] = (uint32_t)seed ^ (uint32_t)purpose * 0x9E3779B9u;
	key[1] = (uint32_t)(seed >> 32);
}

float rng_uniform(uint32_t bits)
{
	return (float)(bits >> 8) * 0x1p-24f;
}

/*
 * Two words -> two normals; the uniform of the radius is in (0, 1], so that the logarithm is
 * finite.
 */
static void box_muller(uint32_t a, uint32_t b, float *x, float *y)
{
	const double two_pi = 6.283185307179586476925;
	double r = sqrt(-2.0 * log(((double)a + 1.0) * 0x1p-32)), t = two_pi * ((double)b * 0x1p-32);

	*x = (float)(r * cos(t));
	*y = (float)(r * sin(t));
}

void rng_normal(const uint32_t key[2], uint32_t c1, uint32_t c2, uint32_t c3, uint64_t first,
	size_t n, float *out)
{
	float four[4];
	uint64_t block = UINT64_MAX;

	for (size_t i = 0; i < n; i++) {
		uint64_t e = first + i;

		if (e / 4 != block) {
			uint32_t ctr[4], w[4];

			block = e / 4;
			ctr[0] = (uint32_t)block;
			ctr[1] = c1 ^ (uint32_t)(block >> 32);
			ctr[2] = c2;
			ctr[3] = c3;
			philox4x32(key, ctr, w);
			box_muller(w[0], w[1], &four[0], &four[1]);
			box_muller(w[2], w[3], &four[2], &four[3]);
		}
		out[i] = four[e % 4];
	}
}

/*
 * Four Feistel rounds over the smallest even number of bits that holds n, walked until the image is
 * below n (at most four times the domain, so a few steps on average).  The round function is one
 * Philox word with counter (round, half, epoch low, epoch high) under key (seed, RNG_ORDER).
 */
uint64_t rng_permute(uint64_t seed, uint64_t epoch, uint64_t n, uint64_t i)
{
	uint32_t key[2], ctr[4], w[4];
	int half = 1;
	uint64_t mask, x = i;

	if (n < 2)
		return i;
	while (half < 32 && ((uint64_t)1 << (2 * half)) < n)
		half++;
	mask = ((uint64_t)1 << half) - 1;
	rng_key(seed, RNG_ORDER, key);
	do {
		uint64_t l = x >> half, r = x & mask;

		for (uint32_t round = 0; round < 4; round++) {
			uint64_t t = r;

			ctr[0] = round;
			ctr[1] = (uint32_t)r;
			ctr[2] = (uint32_t)epoch;
			ctr[3] = (uint32_t)(epoch >> 32);
			philox4x32(key, ctr, w);
			r = (l ^ w[0]) & mask;
			l = t;
		}
		x = l << half | r;
	} while (x >= n);
	return x;
}
