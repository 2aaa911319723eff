#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libcommon/rng.h"
#include "tap.h"

/* Known answers of Philox4x32-10, published with Random123 (kat_vectors). */
static const struct { uint32_t ctr[4], key[2], out[4]; } kat[] = {
	{ { 0, 0, 0, 0 }, { 0, 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
	{ { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff }, { 0xffffffff, 0xffffffff },
		{ 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
	{ { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 }, { 0xa4093822, 0x299f31d0 },
		{ 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
};

static int is_permutation(uint64_t seed, uint64_t epoch, uint64_t n)
{
	char *seen = calloc(n, 1);
	int good = seen != NULL;

	for (uint64_t i = 0; good && i < n; i++) {
		uint64_t x = rng_permute(seed, epoch, n, i);

		good = x < n && !seen[x];
		if (good)
			seen[x] = 1;
	}
	free(seen);
	return good;
}

int main(void)
{
	static float z[100000], part[7];
	uint32_t key[2], out[4];
	double sum = 0, sq = 0;
	int same = 0;

	for (size_t i = 0; i < sizeof(kat) / sizeof(kat[0]); i++) {
		philox4x32(kat[i].key, kat[i].ctr, out);
		ok(!memcmp(out, kat[i].out, sizeof(out)), "Philox4x32-10 known answer %zu", i);
	}
	for (uint64_t n = 1; n < 70; n++)
		if (!is_permutation(7, n, n))
			break;
		else
			same++;
	ok(same == 69, "rng_permute is a permutation for every n below 70");
	ok(is_permutation(1, 1, 100003), "and for a large prime");
	same = 0;
	for (uint64_t i = 0; i < 1000; i++)
		same += rng_permute(3, 1, 1000, i) == rng_permute(3, 2, 1000, i);
	ok(same < 20, "epochs differ: %d of 1000 in the same place", same);
	rng_key(5, RNG_INIT, key);
	rng_normal(key, 1, 2, 3, 0, 100000, z);
	for (int i = 0; i < 100000; i++) {
		sum += z[i];
		sq += (double)z[i] * z[i];
	}
	ok(fabs(sum / 1e5) < 0.02 && fabs(sq / 1e5 - 1) < 0.02, "normals: mean %.4f, variance %.4f",
		sum / 1e5, sq / 1e5);
	rng_normal(key, 1, 2, 3, 4321, 7, part);
	ok(!memcmp(part, z + 4321, sizeof(part)), "a stretch of the sequence can be drawn alone");
	ok(rng_uniform(0) == 0 && rng_uniform(UINT32_MAX) < 1, "uniforms are in [0, 1)");
	return tap_done();
}
