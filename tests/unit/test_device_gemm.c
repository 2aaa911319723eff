/* gemm on every path against sums in double precision; its bits against threads, rows and tiles. */
#include "device_test.h"

struct gemm_case {
	long m, n, k;
	enum gemm_op op;
	enum dtype a, b, c;
	bool accumulate, bias;
	float alpha;
};

static const struct gemm_case cases[] = {
	{ 1, 1, 1, GEMM_NT, DT_F32, DT_F32, DT_F32, false, false, 1 },
	{ 6, 16, 8, GEMM_NT, DT_F32, DT_F32, DT_F32, false, false, 1 },
	{ 5, 17, 7, GEMM_NT, DT_F32, DT_F32, DT_F32, true, false, 0.5f },
	{ 13, 33, 257, GEMM_NT, DT_BF16, DT_F32, DT_F32, false, true, -2 },
	{ 1, 960, 576, GEMM_NT, DT_BF16, DT_BF16, DT_BF16, false, true, 1 },
	{ 3, 100, 2049, GEMM_NT, DT_F32, DT_BF16, DT_BF16, true, false, 1 },
	{ 127, 65, 300, GEMM_NN, DT_F32, DT_F32, DT_F32, false, false, 1 },
	{ 61, 19, 4101, GEMM_NN, DT_BF16, DT_BF16, DT_BF16, false, false, 0.25f },
	{ 7, 49, 9, GEMM_NN, DT_F32, DT_BF16, DT_F32, true, false, 1 },
	{ 4, 2100, 2050, GEMM_NN, DT_F32, DT_F32, DT_BF16, false, true, 1 },
	{ 19, 23, 31, GEMM_TN, DT_F32, DT_F32, DT_F32, true, false, 1 },
	{ 250, 40, 130, GEMM_TN, DT_BF16, DT_F32, DT_F32, true, false, 3 },
	{ 16, 576, 2500, GEMM_TN, DT_BF16, DT_BF16, DT_BF16, false, false, 1 },
	{ 2405, 3, 5, GEMM_NT, DT_F32, DT_F32, DT_F32, false, true, 1 },
	{ 2411, 17, 2055, GEMM_TN, DT_F32, DT_F32, DT_BF16, false, false, 1 },
};

static void check(struct device *d, const char *path, const struct gemm_case *c)
{
	/* Rows are longer than the matrix: ld = columns + 3. */
	long lda = (c->op == GEMM_TN ? c->m : c->k) + 3, ldb = (c->op == GEMM_NT ? c->k : c->n) + 3,
		ldc = c->n + 3;
	size_t na = (size_t)((c->op == GEMM_TN ? c->k : c->m) * lda),
		nb = (size_t)((c->op == GEMM_NT ? c->n : c->k) * ldb), nc = (size_t)(c->m * ldc);
	double *a, *b, *y, *bias;
	struct gemm g = { c->op, c->m, c->n, c->k, test_random(d, c->a, na - 3, 1, &a),
		test_random(d, c->b, nb - 3, 1, &b), test_random(d, c->c, nc - 3, 1, &y), lda, ldb, ldc,
		c->accumulate, c->alpha, DBUF_NONE };

	g.bias = test_random(d, DT_BF16, (size_t)c->n, 1, &bias);
	if (!c->bias)
		g.bias = DBUF_NONE;
	d->gemm(d, &g);
	for (long i = 0; i < c->m; i++)
		for (long j = 0; j < c->n; j++) {
			double s = 0;

			for (long k = 0; k < c->k; k++)
				s += a[c->op == GEMM_TN ? k * lda + i : i * lda + k] *
					b[c->op == GEMM_NT ? j * ldb + k : k * ldb + j];
			y[i * ldc + j] = (double)c->alpha * s + (c->accumulate ? y[i * ldc + j] : 0) +
				(c->bias ? bias[j] : 0);
		}
	ok(test_error(d, g.c, y, nc - 3, 1e-5 * fabs((double)c->alpha) * sqrt((double)c->k)) <= 1,
		"%s: op %d, %ld x %ld x %ld, types %d %d %d", path, c->op, c->m, c->n, c->k, c->a, c->b,
		c->c);
}

/* C [M, N] with one number of threads. */
static struct dbuf product(const char *path, int threads, struct gemm g, long n)
{
	struct device *d = test_open(path, threads);

	g.c = test_buf(d, DT_F32, (size_t)(g.m * n));
	d->gemm(d, &g);
	device_close(d);
	return g.c;
}

static void check_bits(const char *path)
{
	enum { M = 301, N = 130, K = 2300 };
	struct device *d = test_open(path, 1);
	double *a, *b;
	struct gemm g = { GEMM_NT, M, N, K, test_random(d, DT_F32, (size_t)M * K, 1, &a),
		test_random(d, DT_BF16, (size_t)N * K, 1, &b), DBUF_NONE, K, K, N, false, 1, DBUF_NONE };
	struct dbuf all = product(path, 1, g, N), part;
	bool same = true;

	for (int t = 2; t <= 5; t++)
		same = same && test_same(d, all.p, product(path, t, g, N).p, sizeof(float) * M * N);
	ok(same, "%s: the bits are the same for 1 to 5 threads", path);
	for (long m = 1; m <= 14; m++) {
		struct gemm h = g;

		h.m = m;
		h.a = dbuf_at(g.a, (size_t)(m * 17) * K);
		part = product(path, 2, h, N);
		same = same &&
			test_same(
				d, dbuf_at(all, (size_t)(m * 17) * N).p, part.p, sizeof(float) * (size_t)m * N);
	}
	ok(same, "%s: a row's bits are the same in a batch of any size and at any place", path);
	device_close(d);
}

int main(void)
{
	for (int p = 0; p < TEST_PATHS; p++) {
		struct device *d = test_open(test_paths[p], 3);

		if (!d)
			continue;
		for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
			check(d, test_paths[p], &cases[i]);
		check_bits(test_paths[p]);
		device_close(d);
		test_forget();
	}
	return tap_done();
}
