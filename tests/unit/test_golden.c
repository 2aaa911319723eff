/* Tiny models of each family against transformers and peft in float64 (tests/golden/tiny/make.py):
 * logits, losses, every gradient, 5 AdamW steps. */
#include "libcommon/arch/arch.h"
#include "libcommon/json.h"
#include "tap.h"
#include "tiny.h"

#define DIR "tests/golden/tiny/"
static const char *const cases[] = { "llama", "llama_tied", "llama_rope3", "llama_linear",
	"mistral", "qwen2", "qwen2_tied", "wide_heads", "lora", "rslora" };

struct golden { struct safetensors *st; const char *name; };

static const struct tensor *get(const struct golden *g, const char *kind, const char *name)
{
	char key[256];
	const struct tensor *t;

	snprintf(key, sizeof(key), "%s%s", kind, name);
	t = safetensors_find(g->st, key);
	if (!t) {
		printf("Bail out! %s: no tensor %s\n", g->name, key);
		exit(1);
	}
	return t;
}

static double f64(const struct tensor *t, int i)
{
	double v;

	memcpy(&v, t->data + (size_t)i * sizeof(v), sizeof(v));
	return v;
}

static struct arch case_arch(const char *name)
{
	struct json_doc doc = {0};
	struct arch a = {0};
	struct err e = {0};
	char path[256];

	snprintf(path, sizeof(path), DIR "%s/config.json", name);
	if (json_parse_file(&doc, path, 1 << 20, &e) < 0 ||
		arch_from_config(&a, &doc.root, path, &e) < 0)
		tiny_die(&e, path);
	json_release(&doc);
	return a;
}

static struct model_opts case_opts(const char *name)
{
	static const char *const some[] = { "q_proj", "v_proj", "up_proj", "down_proj" };
	static const char *const saved[] = { "embed_tokens", "lm_head" };
	struct model_opts o = tiny_opts();

	if (!strcmp(name, "lora"))
		o.lora = (struct lora_opts){
			.rank = 4, .alpha = 8, .targets = tiny_all, .ntargets = 7
		};
	if (!strcmp(name, "rslora"))
		o.lora = (struct lora_opts){ .rank = 3,
			.alpha = 6,
			.rslora = true,
			.targets = some,
			.ntargets = 4,
			.modules_to_save = saved,
			.nmodules = 2 };
	return o;
}

static void load(const struct tiny *t, const char *name)
{
	struct safetensors *st;
	struct err e = {0};
	size_t i;
	char dir[256];

	if (safetensors_open(&st,
		    !strcmp(name, "wide_heads") ? DIR "wide_heads/weights.safetensors"
						: DIR "weights.safetensors",
		    &e) < 0)
		tiny_die(&e, name);
	for (i = 0; i < model_param_count(t->m); i++) {
		const struct param *p = model_param(t->m, i);
		const struct tensor *w = p->src < 0 ? NULL : safetensors_find(st, p->name);

		if (w)
			tiny_write(t, i, PARAM_VALUE, (const float *)(const void *)w->data);
	}
	safetensors_close(st);
	snprintf(dir, sizeof(dir), DIR "%s/adapter", name);
	if (strstr(name, "lora") && model_load_adapter(t->m, dir, &e) < 0)
		tiny_die(&e, dir);
}

static void load_batch(const struct golden *g, struct tiny_batch *k)
{
	const struct tensor *ids = get(g, "ids", ""), *cu = get(g, "cu", "");

	tiny_batch_init(k);
	k->b.t = (long)ids->shape[0];
	k->b.docs = (int)cu->shape[0] - 1;
	memcpy(k->ids, ids->data, ids->bytes);
	memcpy(k->mask, get(g, "mask", "")->data, (size_t)k->b.t);
	memcpy(k->cu, cu->data, cu->bytes);
	for (long i = 0; i < k->b.t; i++)
		k->b.trained += k->mask[i];
}

/* PEFT's names carry its prefix for modules_to_save too. */
static const char *golden_name(const struct tiny *t, const struct param *p, char name[160])
{
	snprintf(name, 160, "%s%s",
		t->m && p->src >= 0 && model_param(t->m, model_param_count(t->m) - 1)->src < 0
			? "base_model.model."
			: "",
		p->name);
	return name;
}

/* Worst of all tensors: |x - ref| / scale, where scale is the tensor's largest entry or 1. */
static double compare(const struct tiny *t, const struct golden *g, enum param_what what,
	const char *kind, bool relative)
{
	double worst = 0;
	size_t i, k;
	char name[160];

	for (i = 0; i < model_param_count(t->m); i++) {
		const struct param *p = model_param(t->m, i);
		const struct tensor *ref;
		double scale = 1, d = 0;
		float *x;

		if (!p->trained)
			continue;
		ref = get(g, kind, golden_name(t, p, name));
		if (relative)
			scale = ((const float *)(const void *)get(g, "gmax.", name)->data)[0];
		x = tiny_read(t, i, what);
		for (k = 0; k < ref->shape[0]; k++)
			d = worst_of(d, fabs((double)x[k * p->n / ref->shape[0]] -
					    ((const float *)(const void *)ref->data)[k]) /
					    scale);
		if (d > worst && getenv("TINY_VERBOSE"))
			printf("# %s%s %.3g\n", kind, name, d);
		worst = worst_of(worst, d);
		free(x);
	}
	return worst;
}

static void run_case(const char *name, const char *path, bool recompute)
{
	static struct tiny_batch k;
	struct model_opts o = case_opts(name);
	struct golden g = { .name = name };
	struct adamw_opts adamw = { 0.9, 0.999, 1e-6, 0.1 };       /* eps: see make.py */
	const struct tensor *rows, *logits;
	struct tiny t;
	struct err e = {0};
	char file[256];
	double d, worst_loss = 0, worst_norm = 0;
	float *x;

	snprintf(file, sizeof(file), DIR "%s/golden.safetensors", name);
	if (safetensors_open(&g.st, file, &e) < 0)
		tiny_die(&e, file);
	o.recompute = recompute ? RECOMPUTE_ON : RECOMPUTE_OFF;
	tiny_open(&t, case_arch(name), &o, 1);
	load(&t, name);
	load_batch(&g, &k);
	rows = get(&g, "rows", "");
	logits = get(&g, "logits", "");
	x = malloc(logits->bytes);
	if (model_forward(t.m, &k.b, FWD_ADAPTER, 0, &e) < 0 ||
		head_logits(t.m, (const int32_t *)(const void *)rows->data, (long)rows->shape[0], x,
			&e) < 0)
		tiny_die(&e, name);
	d = max_diff(
		x, (const float *)(const void *)logits->data, rows->shape[0] * (size_t)t.a.vocab);
	ok(d <= 1e-5, "%s, %s%s: logits, max difference %.2g <= 1e-5", name, path,
		recompute ? ", recompute" : "", d);
	for (int step = 0; step < 5; step++) {
		double loss = 0, want = f64(get(&g, "losses", ""), step),
		       norm = f64(get(&g, "norms", ""), step);
		struct step_stats s;

		model_zero_grads(t.m);
		tiny_pass(&t, &k, (double)k.b.trained, &loss);
		if (step == 0) {
			d = compare(&t, &g, PARAM_GRAD, "grad.", true);
			ok(d <= 1e-4, "%s, %s%s: every gradient, %.2g of its largest entry <= 1e-4",
				name, path, recompute ? ", recompute" : "", d);
		}
		if (model_step(t.m, 1e-3, 1.0, &adamw, &s, &e) < 0)
			tiny_die(&e, name);
		worst_loss = worst_of(worst_loss, fabs(loss - want) / want);
		worst_norm = worst_of(worst_norm, fabs(s.grad_norm - norm) / norm);
	}
	ok(worst_loss <= 1e-6 && worst_norm <= 1e-5,
		"%s, %s: losses and norms of 5 steps, relative %.2g <= 1e-6, %.2g <= 1e-5", name,
		path, worst_loss, worst_norm);
	d = compare(&t, &g, PARAM_VALUE, "after.", false);
	ok(d <= 1e-5, "%s, %s: parameters after 5 AdamW steps, max difference %.2g <= 1e-5", name,
		path, d);
	free(x);
	tiny_close(&t);
	arch_release(&t.a);
	safetensors_close(g.st);
}

int main(void)
{
	const char *paths[4];
	int n = tiny_paths(paths), p;
	size_t i;

	for (p = 0; p < n; p++) {
		setenv("TUNE_CPU", paths[p], 1);
		for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
			run_case(cases[i], paths[p], false);
			run_case(cases[i], paths[p], true);
		}
	}
	return tap_done();
}
