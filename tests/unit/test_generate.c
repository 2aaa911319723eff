/* Generation: the KV cache against whole passes, batches against single prompts, sampling against
 * its distribution. */
#include "core/generate.h"
#include "tap.h"
#include "tiny.h"

enum { V = 512 };

static struct model_opts gen_opts(int slots, long len, long micro)
{
	struct model_opts o = tiny_opts();

	o.train = false;
	o.gen_slots = slots;
	o.gen_len = len;
	o.micro_tokens = micro;
	return o;
}

static void open_gen(struct tiny *t, struct arch a, const struct model_opts *o)
{
	struct init_opts init = { .std = 0.15, .embed = 0.5, .seed = 3 };
	struct err e = {0};

	tiny_open(t, a, o, 1);
	if (model_init_random(t->m, &init, &e) < 0)
		tiny_die(&e, "init");
}

static void feed(const struct tiny *t, int slot, const uint32_t *ids, int32_t n, float *logits)
{
	struct err e = {0};

	if (kv_feed(t->m, 1, &slot, &n, ids, logits, &e) < 0)
		tiny_die(&e, "kv_feed");
}

/* Whole passes, the cache fed at once, in pieces and a token at a time. */
static void test_cache(const char *what, struct arch a, long micro)
{
	static struct tiny_batch k;
	struct model_opts o = gen_opts(3, 64, micro), whole = gen_opts(0, 0, 64);
	struct tiny t, w;
	float *ref, x[V];
	double once, pieces = 0, single = 0;
	int i;

	open_gen(&t, a, &o);
	open_gen(&w, a, &whole);
	tiny_batch_init(&k);
	tiny_add(&k, 50, 0, 9, 0);
	ref = tiny_logits(&w, &k, 0);
	feed(&t, 1, k.ids, 50, x);
	once = max_diff(x, ref + 49 * V, V);
	ok(once <= 1e-5 && kv_len(t.m, 1) == 50,
		"%s: 50 tokens at once into the cache: %.2g <= 1e-5", what, once);
	kv_reset(t.m, 1);
	for (i = 0; i < 50; i += 10) {
		feed(&t, 1, k.ids + i, 10, x);
		pieces = worst_of(pieces, max_diff(x, ref + (i + 9) * V, V));
	}
	for (i = 0; i < 50; i++) {
		feed(&t, 2, k.ids + i, 1, x);
		single = worst_of(single, max_diff(x, ref + i * V, V));
	}
	ok(pieces <= 1e-5 && single <= 1e-5, "%s: by tens %.2g and one by one %.2g", what, pieces,
		single);
	free(ref);
	tiny_close(&t);
	tiny_close(&w);
}

/* A prompt, a continuing answer and another prompt in one feed: as alone. */
static void test_mixed(long micro)
{
	static struct tiny_batch k;
	struct model_opts o = gen_opts(3, 64, micro);
	struct tiny t;
	struct err e = {0};
	const int slots[3] = { 2, 0, 1 };
	const int32_t lens[3] = { 11, 1, 23 };
	float alone[3 * V], mixed[3 * V];
	int i, at = 20;

	open_gen(&t, tiny_arch(true), &o);
	tiny_batch_init(&k);
	tiny_add(&k, 20, 0, 1, 0);
	tiny_add(&k, 35, 0, 2, 0);
	feed(&t, 0, k.ids, 20, alone);
	for (i = 0; i < 3; i++) {
		feed(&t, slots[i], k.ids + at, lens[i], alone + i * V);
		at += lens[i];
	}
	for (i = 0; i < 3; i++)
		kv_reset(t.m, i);
	feed(&t, 0, k.ids, 20, mixed);
	if (kv_feed(t.m, 3, slots, lens, k.ids + 20, mixed, &e) < 0)
		tiny_die(&e, "kv_feed");
	ok(max_diff(alone, mixed, 3 * V) <= 1e-5 && kv_len(t.m, 0) == 21 && kv_len(t.m, 1) == 23 &&
			kv_len(t.m, 2) == 11,
		"E2: three sequences in one feed, %ld tokens a pass, as alone: %.2g", micro,
		max_diff(alone, mixed, 3 * V));
	tiny_close(&t);
}

static void free_results(struct gen_result *r, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		free(r[i].ids);
}

static void run(const struct tiny *t, const struct gen_prompt *p, size_t n,
	const struct sampling *s, const uint32_t *stop, size_t nstop, gen_token_fn *fn, void *ctx,
	struct gen_result *r)
{
	struct err e = {0};

	if (generate(t->m, p, n, s, stop, nstop, fn, ctx, r, &e) < 0)
		tiny_die(&e, "generate");
}

static bool same_results(const struct gen_result *a, const struct gen_result *b, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (a[i].n != b[i].n || a[i].stopped != b[i].stopped ||
			memcmp(a[i].ids, b[i].ids, a[i].n * 4))
			return false;
	return true;
}

static void test_batching(const struct sampling *s, const char *what)
{
	static struct tiny_batch k;
	struct model_opts four = gen_opts(4, 64, 48), one = gen_opts(1, 64, 0);
	struct gen_prompt p[9], shuffled[9];
	struct gen_result a[9], b[9];
	struct tiny t, u;
	const uint32_t stop[2] = { 300, 301 };
	int i;

	open_gen(&t, tiny_arch(false), &four);
	open_gen(&u, tiny_arch(false), &one);
	tiny_batch_init(&k);
	for (i = 0; i < 9; i++) {
		tiny_add(&k, 3 + i * 5, 0, (uint32_t)i, 0);
		p[i] = (struct gen_prompt){ k.ids + k.cu[i], (size_t)(3 + i * 5) };
		shuffled[8 - i] = p[i];
	}
	run(&t, p, 9, s, stop, 2, NULL, NULL, a);
	run(&u, p, 9, s, stop, 2, NULL, NULL, b);
	ok(same_results(a, b, 9), "E2: %s: nine prompts through four slots and one by one", what);
	free_results(b, 9);
	if (s->temperature == 0) {
		run(&t, shuffled, 9, s, stop, 2, NULL, NULL, b);
		for (i = 0; i < 9 && a[i].n == b[8 - i].n &&
			    !memcmp(a[i].ids, b[8 - i].ids, a[i].n * 4);
			i++)
			;
		ok(i == 9, "E2: %s: in another order", what);
		free_results(b, 9);
	}
	free_results(a, 9);
	tiny_close(&t);
	tiny_close(&u);
}

static int stop_at_three(void *ctx, size_t prompt, uint32_t id)
{
	int *n = ctx;

	(void)id;
	return ++n[prompt] == 3;
}

static void test_ends(void)
{
	static struct tiny_batch k;
	struct model_opts o = gen_opts(2, 32, 0);
	struct sampling s = { .max_new_tokens = 8 };
	struct gen_prompt p[3];
	struct gen_result r[3], q[3];
	struct err e = {0};
	struct tiny t;
	float *x;
	uint32_t best = 0, i;
	int seen[3] = {0};

	open_gen(&t, tiny_arch(false), &o);
	tiny_batch_init(&k);
	tiny_add(&k, 10, 0, 1, 0);
	tiny_add(&k, 30, 0, 2, 0);
	tiny_add(&k, 31, 0, 2, 0);
	p[0] = (struct gen_prompt){ k.ids, 10 };
	p[1] = (struct gen_prompt){ k.ids + 10, 30 };
	p[2] = (struct gen_prompt){ k.ids + 40, 31 };
	run(&t, p, 3, &s, NULL, 0, NULL, NULL, r);
	ok(r[0].n == 8 && !r[0].stopped, "an answer ends after max_new_tokens");
	ok(r[1].n == 3 && r[2].n == 2 && !r[1].stopped,
		"an answer ends where the cache does: prompts of 30 and 31 of 32 get 3 and 2 tokens");
	tiny_batch_init(&k);
	tiny_add(&k, 10, 0, 1, 0);
	x = tiny_logits(&t, &k, 0);
	for (i = 0; i < V; i++)
		best = x[9 * V + i] > x[9 * V + best] ? i : best;
	ok(r[0].ids[0] == best, "greedy is the argmax of a whole pass");
	free(x);
	run(&t, p, 1, &s, &r[0].ids[4], 1, NULL, NULL, q);
	for (i = 0; r[0].ids[i] != r[0].ids[4]; i++)
		;
	ok(q[0].stopped && q[0].n == i, "a stop token ends an answer and is not part of it");
	free_results(q, 1);
	run(&t, p, 1, &s, NULL, 0, stop_at_three, seen, q);
	ok(q[0].n == 3 && !q[0].stopped, "the callback ends an answer");
	free_results(q, 1);
	free_results(r, 3);
	p[1].n = 32;
	ok(generate(t.m, p, 2, &s, NULL, 0, NULL, NULL, r, &e) < 0 && e.code == EX_DATAERR &&
			!strcmp(e.msg,
				"prompt 1 has 32 tokens; with room for an answer at most 31 are possible"),
		"%s", e.msg);
	p[1].n = 0;
	ok(generate(t.m, p, 2, &s, NULL, 0, NULL, NULL, r, &e) < 0 &&
			!strcmp(e.msg, "prompt 1 is empty"),
		"%s", e.msg);
	tiny_close(&t);
}

/* Draws of sample_token against the probabilities they should have. */
static void test_distribution(const char *what, struct sampling s, const double *p, int n)
{
	static const float logits[8] = { 0, 2, 1, 2, -1, 0.5f, -30, 1.5f };
	uint32_t scratch[8], id;
	double count[8] = {0}, worst = 0;
	int draws = 20000, i;

	for (i = 0; i < draws; i++) {
		id = sample_token(logits, n, &s, 3, (uint64_t)i, scratch);
		count[id]++;
		if (id != sample_token(logits, n, &s, 3, (uint64_t)i, scratch))
			worst = 1;
	}
	for (i = 0; i < n; i++)
		worst = worst_of(worst,
			fabs(count[i] / draws - p[i]) / (sqrt(p[i] * (1 - p[i]) / draws) + 1e-9));
	ok(worst < 4.5, "sampling, %s: %.1f standard deviations at worst of %d draws", what, worst,
		draws);
}

static void test_sampling(void)
{
	static const float ties[4] = { 1, 5, 5, 2 };
	static const float logits[8] = { 0, 2, 1, 2, -1, 0.5f, -30, 1.5f };
	double p[8], q[8] = {0}, sum = 0, z;
	uint32_t scratch[8];
	int i;

	for (i = 0; i < 8; i++)
		sum += exp(logits[i] / 0.7);
	for (i = 0; i < 8; i++)
		p[i] = exp(logits[i] / 0.7) / sum;
	test_distribution("temperature 0.7",
		(struct sampling){ .temperature = 0.7, .top_p = 1, .seed = 1 }, p, 8);
	z = p[1] + p[3] + p[7];
	q[1] = p[1] / z, q[3] = p[3] / z, q[7] = p[7] / z;
	test_distribution("top-k 3",
		(struct sampling){ .temperature = 0.7, .top_k = 3, .top_p = 1, .seed = 2 }, q, 8);
	/* 1 and 3 hold 0.66 of the mass: 0.7 needs the third. */
	test_distribution("top-p 0.7",
		(struct sampling){ .temperature = 0.7, .top_p = 0.7, .seed = 3 }, q, 8);
	q[7] = 0, q[1] = q[3] = 0.5;
	test_distribution("top-p 0.5 of top-k 3",
		(struct sampling){ .temperature = 0.7, .top_k = 3, .top_p = 0.5, .seed = 4 }, q, 8);
	ok(sample_token(
		   ties, 4, &(struct sampling){ .temperature = 0, .top_p = 1 }, 0, 0, scratch) == 1,
		"greedy takes the first of equals");
	ok(sample_token(ties, 4, &(struct sampling){ .temperature = 1, .top_k = 1, .top_p = 1 }, 0,
		   0, scratch) == 1,
		"top-k 1 is greedy");
	ok(sample_token(
		   ties, 4, &(struct sampling){ .temperature = 1, .top_p = 0 }, 0, 0, scratch) == 1,
		"top-p 0 is greedy");
}

/* Sample answers in the middle of training leave it as it was, and use the adapter. */
static void test_while_training(void)
{
	static struct tiny_batch k;
	struct model_opts o = tiny_lora(4, 0.1);
	struct sampling s = { .max_new_tokens = 6 };
	struct gen_prompt p;
	struct gen_result r;
	struct tiny t, u;
	double lt = 0, lu = 0;
	size_t n, m;
	float *x, *y;

	o.gen_slots = 1;
	o.gen_len = 40;
	tiny_random(&t, false, &o, 1);
	tiny_random(&u, false, &o, 1);
	tiny_batch_init(&k);
	tiny_add(&k, 30, 29, 1, 0);
	p = (struct gen_prompt){ k.ids, 12 };
	run(&u, &p, 1, &s, NULL, 0, NULL, NULL, &r);
	free_results(&r, 1);
	tiny_pass(&t, &k, 29, &lt);
	tiny_pass(&u, &k, 29, &lu);
	x = tiny_all_of(&t, PARAM_GRAD, &n);
	y = tiny_all_of(&u, PARAM_GRAD, &m);
	ok(lt == lu && n == m && same_bits(x, y, n),
		"answers between steps don't change the next gradient");
	free(x);
	free(y);
	tiny_close(&t);
	tiny_close(&u);
}

int main(void)
{
	const char *paths[4];
	struct arch window = tiny_arch(true);
	int n = tiny_paths(paths), i;

	window.window = 8;
	for (i = 0; i < n; i++) {
		setenv("TUNE_CPU", paths[i], 1);
		printf("# %s\n", paths[i]);
		test_cache("llama", tiny_arch(false), 64);
		test_cache("llama, 7 tokens a pass", tiny_arch(false), 7);
		test_cache("window of 8", window, 64);
		test_mixed(64);
		test_mixed(8);
		test_batching(&(struct sampling){ .max_new_tokens = 12, .top_p = 1 }, "greedy");
		test_batching(&(struct sampling){ .max_new_tokens = 12,
				      .temperature = 1,
				      .top_k = 40,
				      .top_p = 0.95,
				      .seed = 5 },
			"sampled");
		test_ends();
		test_while_training();
	}
	test_sampling();
	return tap_done();
}
