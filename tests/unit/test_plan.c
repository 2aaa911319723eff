/* The plan against what is taken; refusals by name; the layout of units; random weights. */
#include "core/state.h"
#include "libcommon/arch/arch.h"
#include "tap.h"
#include "tiny.h"

/* A device that counts. */
static struct device *real;
static struct device counting;
static uint64_t taken;
static int allocs;

static int count_alloc(struct device *d, size_t bytes, struct dmem **p, struct err *err)
{
	(void)d;
	taken += bytes;
	allocs++;
	return real->alloc(real, bytes, p, err);
}

static uint64_t free_8m(struct device *d)
{
	(void)d;
	return 8 << 20;
}

static void open_counting(struct comm **c)
{
	struct err e = {0};

	if (device_open(&real, "cpu", 1, &e) < 0 || comm_open_self(c, real, &e) < 0)
		tiny_die(&e, "device_open");
	counting = *real;       /* impl and all operations are the real one's */
	counting.alloc = count_alloc;
	counting.memory_free = free_8m;
	taken = 0;
	allocs = 0;
}

static void test_exact(const char *what, bool tied, const struct model_opts *o)
{
	static struct tiny_batch k;
	struct arch a = tiny_arch(tied);
	struct adamw_opts adamw = { 0.9, 0.999, 1e-8, 0.1 };
	struct step_stats s;
	struct err e = {0};
	struct comm *c;
	struct plan p;
	struct tiny t = { .a = a };
	double loss = 0;
	int before;

	open_counting(&c);
	if (plan_make(&p, &a, o, &counting, c, &e) < 0)
		tiny_die(&e, what);
	ok(allocs == 0, "%s: the plan takes nothing", what);
	if (model_new(&t.m, &a, o, &p, &counting, c, &e) < 0)
		tiny_die(&e, what);
	ok(taken + t.m->bytes[MEM_HOST] +
					(p.workspace - t.m->bytes[MEM_WORKSPACE] -
						t.m->bytes[MEM_HOST]) ==
				p.total &&
			p.total == p.weights + p.masters + p.grads + p.moments + p.activations +
					   p.head + p.kv + p.workspace,
		"M1: %s: the plan of %llu bytes is what is taken", what,
		(unsigned long long)p.total);
	ok(p.params == arch_param_count(&a) + (o->lora.rank ? p.trained_params : 0),
		"%s: %llu parameters", what, (unsigned long long)p.params);
	before = allocs;
	tiny_batch_init(&k);
	tiny_add(&k, 40, 39, 1, 0);
	if (o->train) {
		tiny_pass(&t, &k, 39, &loss);
		model_step(t.m, 1e-3, 1, &adamw, &s, &e);
	} else {
		free(tiny_logits(&t, &k, 0));
	}
	ok(allocs == before, "M2: %s: a step takes nothing more", what);
	model_free(t.m);
	c->free(c);
	device_close(real);
}

static void plan(struct plan *p, struct model_opts o, uint64_t memory, long micro, long record,
	int recompute, int *rc, struct err *e)
{
	struct arch a = tiny_arch(false);
	struct comm *c;

	open_counting(&c);
	o.memory = memory;
	o.micro_tokens = micro;
	o.max_record = record;
	o.recompute = recompute;
	*e = (struct err){0};
	*rc = plan_make(p, &a, &o, &counting, c, e);
	c->free(c);
	device_close(real);
}

static void test_choice(void)
{
	struct model_opts o = tiny_opts();
	struct plan p, q;
	struct err e;
	char want[256];
	int rc;
	long fits = 0;

	plan(&p, o, 1ull << 32, 0, 100, RECOMPUTE_AUTO, &rc, &e);
	ok(rc == 0 && p.micro_tokens == 2048 && !p.recompute,
		"plenty of memory: 2048 tokens, nothing recomputed");
	plan(&p, o, 1ull << 32, 0, 5000, RECOMPUTE_AUTO, &rc, &e);
	ok(rc == 0 && p.micro_tokens == 5000, "the longest record fits a micro-batch");
	o.step_tokens = 300;
	plan(&p, o, 1ull << 32, 0, 100, RECOMPUTE_AUTO, &rc, &e);
	ok(rc == 0 && p.micro_tokens == 300, "M1: no micro-batch is larger than a step");
	o.step_tokens = 0;
	plan(&p, o, 1ull << 32, 64, 100, RECOMPUTE_AUTO, &rc, &e);
	ok(rc == 0 && p.micro_tokens == 100,
		"a micro-batch holds the longest record, whatever was asked for");
	plan(&p, o, 1ull << 32, 2048, 100, RECOMPUTE_OFF, &rc, &e);
	plan(&q, o, p.total, 0, 100, RECOMPUTE_AUTO, &rc, &e);
	ok(rc == 0 && q.micro_tokens == 2048 && !q.recompute && q.total == p.total &&
			q.available == p.total,
		"exactly enough is enough");
	plan(&q, o, p.total - 1, 0, 100, RECOMPUTE_AUTO, &rc, &e);
	ok(rc == 0 && q.micro_tokens == 1024 && !q.recompute, "a byte less: half the tokens");
	plan(&p, o, 1ull << 32, 512, 100, RECOMPUTE_OFF, &rc, &e);
	plan(&q, o, p.total - 1, 0, 100, RECOMPUTE_AUTO, &rc, &e);
	ok(rc == 0 && q.recompute, "below 512 tokens activations are recomputed instead");
	plan(&q, o, p.total - 1, 512, 0, RECOMPUTE_AUTO, &rc, &e);
	ok(rc == 0 && q.recompute && q.micro_tokens == 512,
		"a fixed micro_tokens: recompute where it must");
	plan(&q, o, p.total - 1, 512, 0, RECOMPUTE_OFF, &rc, &e);
	sscanf(strstr(e.msg, "that fits is ") ? strstr(e.msg, "that fits is ") + 13 : "", "%ld",
		&fits);
	ok(rc < 0 && e.code == EX_OSERR && !strncmp(e.msg, "micro_tokens=512 needs ", 23) &&
			fits > 256 && fits < 512,
		"M2: %s", e.msg);
	plan(&q, o, p.total - 1, fits, 0, RECOMPUTE_OFF, &rc, &e);
	ok(rc == 0, "M2: and that one fits");
	plan(&q, o, p.total - 1, fits + 1, 0, RECOMPUTE_OFF, &rc, &e);
	ok(rc < 0, "M2: and no larger one");
	plan(&q, o, p.total - 1, 0, 512, RECOMPUTE_OFF, &rc, &e);
	snprintf(want, sizeof(want),
		"the largest micro_tokens that fits is %ld: make shards with shard.seq_len=%ld",
		fits, fits);
	ok(rc < 0 && strstr(e.msg, want), "M2: %s", e.msg);
	plan(&q, o, 1 << 20, 0, 100, RECOMPUTE_AUTO, &rc, &e);
	ok(rc < 0 && strstr(e.msg, "1.0 MiB is available; no micro_tokens fits"), "M1: %s", e.msg);
	plan(&q, o, 0, 0, 1, RECOMPUTE_AUTO, &rc, &e);
	ok(q.available == 8 << 20, "no memory named: what the device has free");
	plan(&p, o, 1ull << 32, 512, 0, RECOMPUTE_OFF, &rc, &e);
	ok(p.flops_per_token == 6.0 * (2 * (64 * 64 * 2 + 64 * 32 * 2 + 3 * 64 * 96) + 512 * 64),
		"6 operations a matrix element and token: %g", p.flops_per_token);
}

static void refuse(struct arch a, struct model_opts o, int code, const char *want)
{
	struct err e = {0};
	struct comm *c;
	struct plan p;
	int rc;

	open_counting(&c);
	rc = plan_make(&p, &a, &o, &counting, c, &e);
	ok(rc < 0 && e.code == code && !strcmp(e.msg, want), "refused: %s", e.msg);
	c->free(c);
	device_close(real);
}

static void test_refusals(void)
{
	struct arch a = tiny_arch(false), tied = tiny_arch(true);
	struct model_opts o = tiny_opts(), l = tiny_lora(4, 0);
	const char *head[] = { "q_proj", "lm_head" }, *typo[] = { "q_porj" }, *norm[] = { "norm" },
		   *embed[] = { "embed_tokens" };

	a.qk_norm = true;
	refuse(a, o, EX_CONFIG,
		"model family 'llama': query and key norms (qk_norm): not supported");
	a = tiny_arch(false);
	a.head_dim = 258;
	refuse(a, o, EX_CONFIG, "model family 'llama': a head_dim above 256: not supported");
	a = tiny_arch(false);
	a.head_softcap = 30;
	refuse(a, o, EX_CONFIG, "model family 'llama': soft caps of logits: not supported");
	a = tiny_arch(false);
	a.embed_scale = 8;
	refuse(a, o, EX_CONFIG, "model family 'llama': a scaled embedding: not supported");
	a = tiny_arch(false);
	o.dtype = DT_F16;
	refuse(a, o, EX_CONFIG, "model.dtype: fp16 is not supported (fp32, bf16)");
	o = tiny_opts();
	o.gen_slots = 4;
	o.gen_len = 1 << 30;
	refuse(a, o, EX_CONFIG,
		"a cache of 4 sequences of 1073741824 tokens; at most 2147483647 tokens are possible in "
		"all");
	l.lora.targets = head;
	l.lora.ntargets = 2;
	refuse(tied, l, EX_CONFIG,
		"lora.targets: an adapter on 'lm_head' is not supported: in this model lm_head and "
		"embed_tokens are one tensor");
	refuse(a, l, EX_CONFIG,
		"lora.targets: an adapter on 'lm_head' is not supported; lora.modules_to_save trains it in "
		"full");
	l.lora.targets = typo;
	l.lora.ntargets = 1;
	refuse(a, l, EX_CONFIG,
		"lora.targets: this model has no linear 'q_porj' (q_proj, k_proj, v_proj, o_proj, "
		"gate_proj, up_proj, down_proj)");
	l = tiny_lora(4, 0);
	l.lora.modules_to_save = norm;
	l.lora.nmodules = 1;
	refuse(a, l, EX_CONFIG,
		"lora.modules_to_save: 'norm' is not supported (embed_tokens, lm_head)");
	l.lora.modules_to_save = embed;
	refuse(tied, l, EX_CONFIG,
		"lora.modules_to_save: 'embed_tokens': in this model lm_head and embed_tokens are one "
		"tensor, which an adapter folder can't hold");
	l = tiny_lora(4, 0);
	l.lora.ntargets = 0;
	refuse(a, l, EX_CONFIG, "lora.rank > 0 needs lora.targets");
}

static const struct param *param(const struct tiny *t, const char *name)
{
	return model_param(t->m, tiny_find(t, name));
}

static void test_layout(void)
{
	struct model_opts o = tiny_opts(), l = tiny_lora(5, 0);
	struct arch a = tiny_arch(false);
	struct tiny t;
	const struct param *q, *k, *v;
	bool aligned = true, inside = true;
	size_t i;

	a.bias_qkv = true;
	tiny_open(&t, a, &o, 1);
	q = param(&t, "model.layers.1.self_attn.q_proj.weight");
	k = param(&t, "model.layers.1.self_attn.k_proj.weight");
	v = param(&t, "model.layers.1.self_attn.v_proj.weight");
	ok(k->offset == q->offset + q->n && v->offset == k->offset + k->n && q->unit == 2,
		"q|k|v is one weight");
	q = param(&t, "model.layers.1.self_attn.q_proj.bias");
	k = param(&t, "model.layers.1.self_attn.k_proj.bias");
	ok(k->offset == q->offset + q->n && !q->decay && param(&t, "lm_head.weight")->decay &&
			!param(&t, "model.norm.weight")->decay,
		"so are their biases; matrices decay, biases and norms don't");
	q = param(&t, "model.layers.0.mlp.gate_proj.weight");
	ok(param(&t, "model.layers.0.mlp.up_proj.weight")->offset == q->offset + q->n,
		"gate|up is one weight");
	for (i = 0; i < model_param_count(t.m); i++) {
		const struct param *p = model_param(t.m, i);

		if (p->role != T_K && p->role != T_V && p->role != T_UP && p->role != T_K_BIAS &&
			p->role != T_V_BIAS)
			aligned &= p->offset % 128 == 0;
		inside &= p->offset + p->n <= t.m->units.u[p->unit].n[TRAINED];
	}
	ok(aligned && inside, "other slices start at 256 bytes, in any dtype");
	ok(t.m->units.n == 4 && t.m->units.u[1].n[TRAINED] % 128 == 0 &&
			t.m->units.u[1].n[FROZEN] == 0,
		"units: embedding, two blocks, head; ends padded");
	tiny_close(&t);
	tiny_open(&t, a, &l, 1);
	q = param(&t, "base_model.model.model.layers.1.self_attn.q_proj.lora_A.weight");
	k = param(&t, "base_model.model.model.layers.1.self_attn.k_proj.lora_A.weight");
	ok(q->trained && q->src == -1 && q->unit == 2 && q->shape[0] == 5 && q->shape[1] == 64 &&
			k->offset == q->offset + q->n && q->decay,
		"adapters are trained slices of their base's unit; A of q|k|v is one matrix");
	ok(!param(&t, "model.layers.1.self_attn.q_proj.weight")->trained &&
			!param(&t, "lm_head.weight")->trained,
		"the base is frozen");
	tiny_close(&t);
}

static void moments(const struct tiny *t, const char *name, double *mean, double *std, double *most)
{
	size_t i = tiny_find(t, name);
	uint64_t n = model_param(t->m, i)->n, k;
	float *x = tiny_read(t, i, PARAM_VALUE);
	double s = 0, s2 = 0;

	for (k = 0; k < n; k++) {
		s += x[k];
		s2 += (double)x[k] * x[k];
	}
	*mean = s / (double)n;
	*std = sqrt(s2 / (double)n - *mean * *mean);
	*most = max_abs(x, n);
	free(x);
}

static bool has_std(const struct tiny *t, const char *name, double want, double n)
{
	double mean, std, most;

	moments(t, name, &mean, &std, &most);
	if (fabs(std - want) <= 4 * want / sqrt(2 * n) && fabs(mean) <= 4 * want / sqrt(n))
		return true;
	printf("# %s: mean %g std %g, wanted %g\n", name, mean, std, want);
	return false;
}

static void test_init(void)
{
	struct model_opts o = tiny_opts();
	struct arch a = tiny_arch(false);
	struct init_opts init = {0};
	struct err e = {0};
	struct tiny t, u;
	double mean, std, most, cut = 1.0 / 8 * 0.98658;   /* of a normal cut at 3 std */
	float *x, *y;

	tiny_open(&t, a, &o, 1);
	ok(model_init_random(t.m, &init, &e) == 0 &&
			has_std(&t, "model.embed_tokens.weight", 1, 512 * 64) &&
			has_std(&t, "model.layers.1.self_attn.q_proj.weight", 0.02, 4096) &&
			has_std(&t, "model.layers.0.mlp.gate_proj.weight", 0.02, 6144),
		"embedding std 1; q and gate 0.02");
	ok(has_std(&t, "model.layers.0.self_attn.o_proj.weight", 0.01, 4096) &&
			has_std(&t, "model.layers.1.mlp.up_proj.weight", 0.01, 6144) &&
			has_std(&t, "model.layers.1.mlp.down_proj.weight", 0.01, 6144),
		"outputs and up 0.02 / sqrt(2 * 2 layers)");
	moments(&t, "lm_head.weight", &mean, &std, &most);
	ok(fabs(std - cut) < 0.002 && most <= 3.0 / 8 && most > 2.9 / 8,
		"the head: dim^-0.5 cut at 3 std (std %.4f, largest %.4f)", std, most);
	moments(&t, "model.layers.1.input_layernorm.weight", &mean, &std, &most);
	ok(mean == 1 && std == 0, "norms 1");
	init = (struct init_opts){ .depth_by_layer = true, .fan_in = true, .embed = 0.3 };
	ok(model_init_random(t.m, &init, &e) == 0 &&
			has_std(&t, "model.embed_tokens.weight", 0.3, 512 * 64) &&
			has_std(&t, "model.layers.1.self_attn.k_proj.weight", 0.125, 2048) &&
			has_std(&t, "model.layers.0.self_attn.o_proj.weight", 0.125 / sqrt(2),
				4096) &&
			has_std(&t, "model.layers.1.mlp.down_proj.weight", 1 / sqrt(96) / 2, 6144),
		"init_embed, fan_in, depth by layer");
	/* Values belong to a name: the same in a model laid out differently. */
	o = tiny_lora(4, 0);
	tiny_open(&u, tiny_arch(false), &o, 2);
	model_init_random(u.m, &init, &e);
	x = tiny_read(&t, tiny_find(&t, "model.layers.1.mlp.up_proj.weight"), PARAM_VALUE);
	y = tiny_read(&u, tiny_find(&u, "model.layers.1.mlp.up_proj.weight"), PARAM_VALUE);
	ok(same_bits(x, y, 6144), "a tensor's values depend on seed and name alone");
	free(y);
	init.seed = 1;
	model_init_random(u.m, &init, &e);
	y = tiny_read(&u, tiny_find(&u, "model.layers.1.mlp.up_proj.weight"), PARAM_VALUE);
	ok(!same_bits(x, y, 6144), "and on the seed");
	model_init_adapter(u.m, 3, &e);
	moments(&u, "base_model.model.model.layers.0.mlp.down_proj.lora_A.weight", &mean, &std,
		&most);
	ok(most <= 1 / sqrt(96) && most > 0.95 / sqrt(96) && fabs(std - 1 / sqrt(3 * 96)) < 0.006 &&
			fabs(mean) < 0.015,
		"a fresh A is uniform in +-1/sqrt(inputs)");
	moments(&u, "base_model.model.model.layers.0.mlp.down_proj.lora_B.weight", &mean, &std,
		&most);
	ok(most == 0, "a fresh B is 0");
	free(x);
	free(y);
	tiny_close(&t);
	tiny_close(&u);
	tiny_open(
		&t, tiny_arch(true), &(struct model_opts){ .dtype = DT_F32, .micro_tokens = 8 }, 1);
	model_init_random(t.m, &(struct init_opts){0}, &e);
	moments(&t, "model.embed_tokens.weight", &mean, &std, &most);
	ok(fabs(std - cut) < 0.002 && most <= 3.0 / 8, "a tied embedding is a head");
	tiny_close(&t);
}

static void test_adapter_names(void)
{
	static const char *const three[] = { "q_proj", "v_proj", "gate_proj" };
	struct model_opts o = tiny_lora(4, 0);
	struct err e = {0};
	struct tiny t;

	tiny_open(&t, tiny_arch(false), &o, 1);
	ok(model_load_adapter(t.m, "tests/golden/tiny/lora/adapter", &e) == 0,
		"an adapter that PEFT wrote opens: 0 missing, 0 unexpected");
	tiny_close(&t);
	o.lora.targets = three;
	o.lora.ntargets = 3;
	tiny_open(&t, tiny_arch(false), &o, 1);
	e = (struct err){0};
	ok(model_load_adapter(t.m, "tests/golden/tiny/lora/adapter", &e) < 0 && e.code == EX_DATAERR &&
			strstr(e.msg,
				"tests/golden/tiny/lora/adapter: unexpected tensor "
				"'base_model.model.model.layers.0.mlp.down_proj.lora_A.weight'"),
		"R4: unexpected tensors are named");
	e = (struct err){0};
	ok(model_load_adapter(t.m, "tests/golden/tiny/rslora/adapter", &e) < 0 &&
			strstr(e.msg,
				"tests/golden/tiny/rslora/adapter: missing tensor "
				"'base_model.model.model.layers.1.mlp.gate_proj.lora_B.weight'"),
		"R4: missing tensors are named");
	tiny_close(&t);
	o = tiny_lora(8, 0);
	tiny_open(&t, tiny_arch(false), &o, 1);
	e = (struct err){0};
	ok(model_load_adapter(t.m, "tests/golden/tiny/lora/adapter", &e) < 0 &&
			strstr(e.msg, "has another shape than the model and lora.rank ask for"),
		"R4: %s", e.msg);
	tiny_close(&t);
}

int main(void)
{
	struct model_opts o = tiny_opts(), l = tiny_lora(4, 0.1), g = tiny_opts();

	test_exact("full fp32", false, &o);
	o.dtype = DT_BF16;
	o.recompute = RECOMPUTE_ON;
	test_exact("full bf16, recompute", true, &o);
	l.gen_slots = 2;
	l.gen_len = 64;
	test_exact("adapters and a cache", false, &l);
	g.train = false;
	test_exact("forward only", true, &g);
	test_choice();
	test_refusals();
	test_layout();
	test_init();
	test_adapter_names();
	return tap_done();
}
