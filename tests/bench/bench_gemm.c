/* Matrix products at SmolLM2-135M's shapes, beside the FMA peak: bench_gemm [M [RUNS]]. */
#include "bench.h"

static const struct shape {
	const char *name;
	long out, in;
} shapes[] = {
	{ "qkv", 960, 576 },
	{ "o", 576, 576 },
	{ "gate+up", 3072, 576 },
	{ "down", 576, 1536 },
	{ "lora A", 16, 576 },
	{ "lora B", 576, 16 },
	{ "head", 49152, 576 },
};
static const char *const direction[] = { "fwd", "dX", "dW" };

/*
 * m tokens through W [out, in] in one direction, all operands of type t (dW: fp32 result, added).
 */
static void one(
	struct device *d, struct pool *p, const struct shape *s, int op, enum dtype t, long m, int runs)
{
	struct dbuf x = bench_buf(d, t, (size_t)(m * s->in), 1),
		w = bench_buf(d, t, (size_t)(s->out * s->in), 2);
	enum dtype ty = s->out > 40000 ? DT_F32 : t;
	struct dbuf y = bench_buf(d, ty, (size_t)(m * s->out), 3),
		dw = bench_buf(d, DT_F32, (size_t)(s->out * s->in), 0);
	struct gemm g[] = {
		{ GEMM_NT, m, s->out, s->in, x, w, y, s->in, s->in, s->out, false, 1, DBUF_NONE },
		{ GEMM_NN, m, s->in, s->out, y, w, x, s->out, s->in, s->in, false, 1, DBUF_NONE },
		{ GEMM_TN, s->out, s->in, m, y, x, dw, s->out, s->in, s->in, true, 1e-3f, DBUF_NONE },
	};
	double best = 1e30, peak = 0, flops = 2. * (double)m * (double)s->out * (double)s->in;

	for (int i = 0; i < runs; i++) {
		double now = bench_now(), pk;

		d->gemm(d, &g[op]);
		now = bench_now() - now;
		best = now < best ? now : best;
		if (i % 4 == 0)
			peak = (pk = bench_peak(p, 1)) > peak ? pk : peak;
	}
	printf("%-8s %-4s %-5s M=%-5ld %8.3f ms %7.1f GF/s   peak %6.1f   %5.1f %%\n", s->name,
		direction[op], t == DT_F32 ? "fp32" : "bf16", m, best * 1e3, flops / best * 1e-9, peak,
		100 * flops / best * 1e-9 / peak);
	fflush(stdout);
	d->release(d, x.p, (size_t)(m * s->in) * (t == DT_F32 ? 4 : 2));
	d->release(d, w.p, (size_t)(s->out * s->in) * (t == DT_F32 ? 4 : 2));
	d->release(d, y.p, (size_t)(m * s->out) * (ty == DT_F32 ? 4 : 2));
	d->release(d, dw.p, (size_t)(s->out * s->in) * 4);
}

int main(int argc, char **argv)
{
	long m = argc > 1 ? strtol(argv[1], NULL, 10) : 2048;
	int runs = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 12;
	struct device *d = bench_device();
	struct pool *p;
	struct err err;

	if (pool_new(&p, getenv("THREADS") ? (int)strtol(getenv("THREADS"), NULL, 10) : 0, &err) < 0)
		return 71;
	printf("%s\n", d->what);
	for (int t = 0; t < 2; t++)
		for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
			for (int op = 0; op < 3; op++)
				one(d, p, &shapes[i], op, t ? DT_BF16 : DT_F32,
					shapes[i].out > 40000 && m > 512 ? 512 : m,
					shapes[i].out > 40000 ? runs / 4 + 1 : runs);
	pool_free(p);
	device_close(d);
	return 0;
}
