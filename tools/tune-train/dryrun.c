/* --dry-run: what the run will take, before it takes it. */
#include <stdio.h>

#include "train.h"

/* Arithmetic that the machine does in a second, from a short product of the model's own shape. */
static int measure_flops(struct run *r, double *flops, struct err *err)
{
	long m = 512, n = 512, k = 512;
	size_t bytes = (size_t)m * (size_t)k * sizeof(float);
	struct dmem *p = NULL;
	double start, end;
	int calls = 0;

	if (r->dev->alloc(r->dev, 3 * bytes, &p, err) < 0)
		return -1;
	start = now_s();
	do {
		struct gemm g = { .op = GEMM_NT,
			.m = m,
			.n = n,
			.k = k,
			.a = { p, DT_F32 },
			.b = { dmem_at(p, bytes), DT_F32 },
			.c = { dmem_at(p, 2 * bytes), DT_F32 },
			.lda = k,
			.ldb = k,
			.ldc = n,
			.alpha = 1,
			.bias = DBUF_NONE };

		r->dev->gemm(r->dev, &g);
		if (r->dev->sync(r->dev, err) < 0)
			return -1;
		calls++;
	} while ((end = now_s()) - start < 0.2);
	*flops = 2.0 * (double)m * (double)n * (double)k * calls / (end - start);
	r->dev->release(r->dev, p, 3 * bytes);
	return 0;
}

int dry_run(struct run *r, struct err *err)
{
	const struct plan *p = &r->plan;
	const struct { const char *name; uint64_t bytes; } parts[] = {
		{ "weights", p->weights }, { "fp32 masters", p->masters }, { "gradients", p->grads },
			{ "optimizer moments", p->moments },
		{ "activations", p->activations }, { "head (logits chunk)", p->head },
		{ "kv cache", p->kv }, { "workspace", p->workspace },
		{ "total", p->total }, { "available", p->available },
	};
	uint64_t tokens = feed_tokens(r->feed), n = feed_count(r->feed);
	double flops, total_tokens;
	char eta[16];

	printf("parameters          %llu, trained %llu\n", (unsigned long long)p->params,
		(unsigned long long)p->trained_params);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		printf("%-20s%10.1f MB\n", parts[i].name, (double)parts[i].bytes / 1048576);
	printf("micro-batch         %ld tokens, recompute %s\n", p->micro_tokens,
		p->recompute ? "on" : "off");
	printf("device              %s (%s)\n", r->dev->name, r->dev->what);
	if (!n) {
		printf("steps               %llu of a stream\n", (unsigned long long)r->steps);
		return 0;
	}
	total_tokens = (double)r->steps * (double)r->batch * (double)tokens / (double)n;
	if (measure_flops(r, &flops, err) < 0)
		return -1;
	format_duration(total_tokens * p->flops_per_token / (0.7 * flops), eta);
	printf("data                %llu records, %llu tokens\n", (unsigned long long)n,
		(unsigned long long)tokens);
	printf("steps               %llu of %llu records, %.2f epochs, about %.0f tokens\n",
		(unsigned long long)r->steps, (unsigned long long)r->batch,
		(double)r->steps * (double)r->batch / (double)n, total_tokens);
	printf("time                about %s at 70 %% of the %.0f GFLOP/s measured just now\n", eta,
		flops / 1e9);
	return 0;
}
