#ifndef TINY_H
#define TINY_H
/* A tiny model on the CPU for the tests of core: fixtures TINY-U and TINY-T of random weights, or
 * the goldens' configs and values. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/generate.h"
#include "core/model.h"
#include "libcommon/formats/safetensors.h"

struct tiny {
	struct device *d;
	struct comm *c;
	struct arch a;
	struct plan p;
	struct model *m;
};
static const char *const tiny_all[] = { "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj",
	"up_proj", "down_proj" };

static inline void tiny_die(const struct err *e, const char *what)
{
	printf("Bail out! %s: %s\n", what, e->msg);
	exit(1);
}

/* Paths of the CPU device that this machine has. */
static inline int tiny_paths(const char *paths[4])
{
	int n = 0;

	paths[n++] = "plain";
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		paths[n++] = "avx2";
#endif
	return n;
}

static inline struct arch tiny_arch(bool tied)
{
	struct arch a = { .family = "llama",
		.arch_class = "LlamaForCausalLM",
		.dim = 64,
		.layers = 2,
		.heads = 4,
		.kv_heads = 2,
		.head_dim = 16,
		.ffn_dim = 96,
		.vocab = 512,
		.max_positions = 256,
		.norm_eps = 1e-5,
		.act = ACT_SILU,
		.rope = ROPE_DEFAULT,
		.rope_theta = 10000,
		.tied = tied,
		.bos = 1,
		.pad = -1,
		.eos = { 2 },
		.neos = 1,
		.dtype = DT_F32 };

	return a;
}

static inline struct model_opts tiny_opts(void)
{
	struct model_opts o = { .dtype = DT_F32,
		.train = true,
		.recompute = RECOMPUTE_OFF,
		.micro_tokens = 256,
		.memory = 1 << 30,
		.seed = 7 };

	return o;
}

static inline struct model_opts tiny_lora(int rank, double dropout)
{
	struct model_opts o = tiny_opts();

	o.lora = (struct lora_opts){ .rank = rank,
		.alpha = 2.0 * rank,
		.dropout = dropout,
		.targets = tiny_all,
		.ntargets = 7 };
	return o;
}

static inline void tiny_open(struct tiny *t, struct arch a, const struct model_opts *o, int threads)
{
	struct err e = {0};

	*t = (struct tiny){ .a = a };
	if (device_open(&t->d, "cpu", threads, &e) < 0 || comm_open_self(&t->c, t->d, &e) < 0 ||
		plan_make(&t->p, &t->a, o, t->d, t->c, &e) < 0 ||
		model_new(&t->m, &t->a, o, &t->p, t->d, t->c, &e) < 0)
		tiny_die(&e, "tiny_open");
}

/* The same with random weights: larger than an untrained model's, so that every part of it matters.
 */
static inline void tiny_random(struct tiny *t, bool tied, const struct model_opts *o, int threads)
{
	struct init_opts init = { .std = 0.15, .embed = 0.5, .seed = 3 };
	struct err e = {0};

	tiny_open(t, tiny_arch(tied), o, threads);
	if (model_init_random(t->m, &init, &e) < 0 ||
		(o->lora.rank && model_init_adapter(t->m, 5, &e) < 0))
		tiny_die(&e, "tiny_random");
}

static inline void tiny_close(struct tiny *t)
{
	model_free(t->m);
	t->c->free(t->c);
	device_close(t->d);
}

static inline size_t tiny_find(const struct tiny *t, const char *name)
{
	size_t i;

	for (i = 0; i < model_param_count(t->m); i++)
		if (!strcmp(model_param(t->m, i)->name, name))
			return i;
	printf("Bail out! no parameter %s\n", name);
	exit(1);
}

/* The caller frees. */
static inline float *tiny_read(const struct tiny *t, size_t i, enum param_what what)
{
	uint64_t n = model_param(t->m, i)->n;
	float *x = malloc(n * sizeof(*x));
	struct err e = {0};

	if (!x || model_read(t->m, i, what, 0, n, x, &e) < 0)
		tiny_die(&e, "model_read");
	return x;
}

static inline void tiny_write(const struct tiny *t, size_t i, enum param_what what, const float *x)
{
	struct err e = {0};

	if (model_write(t->m, i, what, 0, model_param(t->m, i)->n, x, &e) < 0)
		tiny_die(&e, "model_write");
}

/* All trained parameters' values of a kind, end to end; caller frees. */
static inline float *tiny_all_of(const struct tiny *t, enum param_what what, size_t *n)
{
	float *all = NULL;
	size_t i;

	*n = 0;
	for (i = 0; i < model_param_count(t->m); i++) {
		const struct param *p = model_param(t->m, i);
		struct err e = {0};

		if (!p->trained)
			continue;
		all = realloc(all, (*n + p->n) * sizeof(*all));
		if (!all || model_read(t->m, i, what, 0, p->n, all + *n, &e) < 0)
			tiny_die(&e, "model_read");
		*n += p->n;
	}
	return all;
}

/* ---- batches ---- */
enum { TINY_TOKENS = 2048, TINY_DOCS = 64 };
struct tiny_batch {
	struct batch b;
	uint32_t ids[TINY_TOKENS], rec[TINY_DOCS], off0[TINY_DOCS];
	uint8_t mask[TINY_TOKENS];
	int32_t cu[TINY_DOCS + 1];
};

static inline void tiny_batch_init(struct tiny_batch *k)
{
	memset(k, 0, sizeof(*k));
	k->b = (struct batch){ .ids = k->ids,
		.mask = k->mask,
		.cu = k->cu,
		.rec = k->rec,
		.off0 = k->off0,
		.group = 1 };
}

/* Append a document of n tokens, the last `trained` of which are trained; ids are a function of
 * (seed, index) below 500. */
static inline void tiny_add(struct tiny_batch *k, int n, int trained, uint32_t seed, uint32_t rec)
{
	int i;

	for (i = 0; i < n; i++) {
		k->ids[k->b.t] =
			(seed * 7919u + (uint32_t)i * 104729u + (uint32_t)i * (uint32_t)i * 31u) %
			500u;
		k->mask[k->b.t++] = i > 0 && i >= n - trained;
		k->b.trained += i > 0 && i >= n - trained;
	}
	k->rec[k->b.docs] = rec;
	k->cu[++k->b.docs] = (int32_t)k->b.t;
}

/* Forward, cross-entropy, backward; adds to gradients and to the loss. */
static inline void tiny_pass(
	const struct tiny *t, const struct tiny_batch *k, double n, double *loss)
{
	struct err e = {0};
	double sum = 0;

	if (model_forward(t->m, &k->b, FWD_KEEP | FWD_ADAPTER, 0, &e) < 0 ||
		head_cross_entropy(t->m, 1 / n, &sum, NULL, &e) < 0 || model_backward(t->m, &e) < 0)
		tiny_die(&e, "tiny_pass");
	*loss += sum / n;
}

/* Logits of every token; caller frees. */
static inline float *tiny_logits(const struct tiny *t, const struct tiny_batch *k, int flags)
{
	int32_t rows[TINY_TOKENS];
	float *x = malloc((size_t)k->b.t * (size_t)t->a.vocab * sizeof(*x));
	struct err e = {0};
	int32_t i;

	for (i = 0; i < k->b.t; i++)
		rows[i] = i;
	if (!x || model_forward(t->m, &k->b, flags, 0, &e) < 0 ||
		head_logits(t->m, rows, k->b.t, x, &e) < 0)
		tiny_die(&e, "tiny_logits");
	return x;
}

/* The larger one, or NaN, which fmax would hide. */
static inline double worst_of(double a, double b)
{
	return b > a || isnan(b) ? b : a;
}

static inline double max_diff(const float *a, const float *b, size_t n)
{
	double d = 0;
	size_t i;

	for (i = 0; i < n; i++)
		d = worst_of(d, fabs((double)a[i] - b[i]));
	return d;
}

static inline double max_abs(const float *a, size_t n)
{
	double d = 0;
	size_t i;

	for (i = 0; i < n; i++)
		d = worst_of(d, fabs((double)a[i]));
	return d;
}

static inline bool same_bits(const float *a, const float *b, size_t n)
{
	return !memcmp(a, b, n * sizeof(*a));
}
#endif
