/*
 * init: random weights, keyed by (seed, tensor's Hugging Face name, element), so that nothing
 * depends on ranks, threads or layout.
 *
 *   embedding, untied       std 1 (init_embed)
 *   q, k, v, gate           init_std, or 1/sqrt(inputs)
 *   attention out, up, down the same / sqrt(2 layers), or / sqrt(2 (layer + 1))
 *   head, tied embedding    dim^-0.5 (tied: init_embed), cut at 3 std: redrawn beyond
 *   norms 1, biases 0
 */
#include <math.h>

#include "libcommon/hash.h"
#include "libcommon/rng.h"
#include "state.h"

#include <string.h>

struct dist { double std, mean; bool cut; };

static struct dist dist_of(const struct arch *a, const struct param *p, const struct init_opts *o)
{
	struct dist d = {0};
	double std = o->fan_in ? 1 / sqrt((double)p->shape[1]) : o->std > 0 ? o->std : 0.02;
	double depth = sqrt(2.0 * (o->depth_by_layer ? p->layer + 1 : a->layers));

	switch (p->role) {
	case T_ATTN_NORM: case T_MLP_NORM: case T_FINAL_NORM:
		d.mean = 1;
		break;
	case T_Q: case T_K: case T_V: case T_GATE:
		d.std = std;
		break;
	case T_O: case T_UP: case T_DOWN:
		d.std = std / depth;
		break;
	case T_EMBED:
		d.std = o->embed > 0 ? o->embed : a->tied ? 1 / sqrt(a->dim) : 1;
		d.cut = a->tied;
		break;
	case T_HEAD:
		d.std = 1 / sqrt(a->dim);
		d.cut = true;
		break;
	default:
		break;      /* biases */
	}
	return d;
}

/* Standard normals of a tensor's elements first..first+n-1; beyond 3: redrawn under the next
 * round's counter. */
static void normals(const uint32_t key[2], uint64_t id, bool cut, uint64_t first, size_t n,
	float *out)
{
	size_t i;
	uint32_t round;

	rng_normal(key, (uint32_t)id, (uint32_t)(id >> 32), 0, first, n, out);
	for (i = 0; cut && i < n; i++)
		for (round = 1; fabsf(out[i]) > 3; round++)
			rng_normal(key, (uint32_t)id, (uint32_t)(id >> 32), round, first + i, 1,
				&out[i]);
}

int model_init_random(struct model *m, const struct init_opts *o, struct err *err)
{
	uint32_t key[2];
	size_t i, k, n;
	float buf[4096];

	rng_key(o->seed, RNG_INIT, key);
	for (i = 0; i < m->units.nparams; i++) {
		const struct param *p = &m->units.params[i];
		struct dist d = dist_of(m->arch, p, o);
		uint64_t at, id = hash64(p->name, strlen(p->name));

		if (p->src < 0)
			continue;
		for (at = 0; at < p->n; at += n) {
			n = p->n - at < 4096 ? (size_t)(p->n - at) : 4096;
			if (d.std > 0)
				normals(key, id, d.cut, at, n, buf);
			for (k = 0; k < n; k++)
				buf[k] = d.std > 0 ? (float)(d.std * buf[k]) : (float)d.mean;
			if (model_write(m, i, PARAM_VALUE, at, n, buf, err) < 0)
				return -1;
		}
	}
	return 0;
}
