/* lora: a fresh adapter as PEFT makes it: A uniform in +-1/sqrt(inputs) (kaiming, a = sqrt(5)), B
 * zero, so that it changes nothing yet. */
#include <math.h>
#include <string.h>

#include "libcommon/hash.h"
#include "libcommon/rng.h"
#include "state.h"

static bool is_a(const struct units *us, size_t i)
{
	const struct param *p = &us->params[i];

	return units_find(us, p->unit, p->role, SLICE_A) == (int)i;
}

/* Element e: word e % 4 of the counter (name, 0, e / 4). */
static void uniforms(const uint32_t key[2], uint64_t id, double bound, uint64_t first, size_t n,
	float *out)
{
	uint32_t w[4];
	size_t i;

	for (i = 0; i < n; i++) {
		uint64_t e = first + i;
		const uint32_t ctr[4] = { (uint32_t)id, (uint32_t)(id >> 32), 0,
			(uint32_t)(e / 4) };

		if (i == 0 || e % 4 == 0)
			philox4x32(key, ctr, w);
		out[i] = (float)((2.0 * (double)rng_uniform(w[e % 4]) - 1) * bound);
	}
}

int model_init_adapter(struct model *m, uint64_t seed, struct err *err)
{
	uint32_t key[2];
	float buf[4096];
	size_t i, n;

	rng_key(seed, RNG_LORA, key);
	for (i = 0; i < m->units.nparams; i++) {
		const struct param *p = &m->units.params[i];
		uint64_t at, id = hash64(p->name, strlen(p->name));

		if (p->src >= 0)
			continue;
		memset(buf, 0, sizeof(buf));
		for (at = 0; at < p->n; at += n) {
			n = p->n - at < 4096 ? (size_t)(p->n - at) : 4096;
			if (is_a(&m->units, i))
				uniforms(key, id, 1 / sqrt((double)p->shape[1]), at, n, buf);
			if (model_write(m, i, PARAM_VALUE, at, n, buf, err) < 0)
				return -1;
		}
	}
	return 0;
}
