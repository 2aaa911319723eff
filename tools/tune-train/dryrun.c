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

struct dry {
	uint64_t records, tokens, flops;   /* 0 records: a stream; flops a second */
	double epochs, total_tokens, seconds;
};

/* The last batch of an epoch is short. */
static double epochs_of(uint64_t steps, uint64_t batch, uint64_t records)
{
	uint64_t per_epoch = records / batch + (records % batch != 0), rest = steps % per_epoch;

	return (double)(steps / per_epoch) + (double)(rest * batch) / (double)records;
}

static void print_json(const struct run *r, const struct dry *d)
{
	const struct plan *p = &r->plan;
	const struct { const char *name; uint64_t v; } numbers[] = {
		{ "params", p->params }, { "trained_params", p->trained_params },
		{ "weights_bytes", p->weights }, { "masters_bytes", p->masters },
		{ "gradients_bytes", p->grads }, { "moments_bytes", p->moments },
		{ "activations_bytes", p->activations }, { "head_bytes", p->head },
		{ "kv_bytes", p->kv }, { "workspace_bytes", p->workspace }, { "planned_bytes", p->total },
		{ "available_bytes", p->available }, { "micro_tokens", (uint64_t)p->micro_tokens },
		{ "steps", r->steps }, { "batch", r->batch }, { "records", d->records },
		{ "tokens", d->tokens },
	};
	struct buf b = {0};
	struct json_w w = { .out = &b };

	json_w_obj(&w);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		json_w_name(&w, numbers[i].name);
		json_w_int(&w, (int64_t)numbers[i].v);
	}
	json_w_name(&w, "epochs"); json_w_num(&w, d->epochs);
	json_w_name(&w, "recompute"); json_w_bool(&w, p->recompute);
	json_w_name(&w, "device"); json_w_str(&w, r->dev->name);
	json_w_name(&w, "seconds");
	if (d->records)
		json_w_num(&w, d->seconds);
	else
		json_w_null(&w);
	json_w_end(&w);
	if (!b.oom)
		puts(b.p);      /* tool_exit looks at stdout */
	buf_release(&b);
}

static void print_text(const struct run *r, const struct dry *d)
{
	const struct plan *p = &r->plan;
	const struct { const char *name; uint64_t bytes; } parts[] = {
		{ "weights", p->weights }, { "fp32 masters", p->masters }, { "gradients", p->grads },
			{ "optimizer moments", p->moments },
		{ "activations", p->activations }, { "head (logits chunk)", p->head },
		{ "kv cache", p->kv }, { "workspace", p->workspace },
		{ "total", p->total }, { "available", p->available },
	};
	char eta[16];

	printf("parameters          %llu, trained %llu\n", (unsigned long long)p->params,
		(unsigned long long)p->trained_params);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		printf("%-20s%10.1f MB\n", parts[i].name, (double)parts[i].bytes / 1048576);
	printf("micro-batch         %ld tokens, recompute %s\n", p->micro_tokens,
		p->recompute ? "on" : "off");
	printf("device              %s (%s)\n", r->dev->name, r->dev->what);
	if (!d->records) {
		printf("steps               %llu of a stream\n", (unsigned long long)r->steps);
		return;
	}
	format_duration(d->seconds, eta);
	printf("data                %llu records, %llu tokens\n", (unsigned long long)d->records,
		(unsigned long long)d->tokens);
	printf("steps               %llu of %llu records, %.2f epochs, about %.0f tokens\n",
		(unsigned long long)r->steps, (unsigned long long)r->batch, d->epochs, d->total_tokens);
	printf("time                about %s at 70 %% of the %.0f GFLOP/s measured just now\n", eta,
		(double)d->flops / 1e9);
}

int dry_run(struct run *r, struct err *err)
{
	struct dry d = { .records = feed_count(r->feed), .tokens = feed_tokens(r->feed) };
	double flops;

	if (d.records) {
		if (measure_flops(r, &flops, err) < 0)
			return -1;
		d.flops = (uint64_t)flops;
		d.epochs = epochs_of(r->steps, r->batch, d.records);
		d.total_tokens = d.epochs * (double)d.tokens;
		d.seconds = d.total_tokens * r->plan.flops_per_token / (0.7 * flops);
	}
	(r->tool->json ? print_json : print_text)(r, &d);
	return 0;
}
