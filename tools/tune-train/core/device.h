#ifndef TUNE_DEVICE_H
#define TUNE_DEVICE_H
/*
 * device: the only door to a CPU or GPU kernel.
 *
 * Device memory is `struct dmem *`, a type that the host can't dereference; dmem_at() moves within
 * a buffer.  Every operation enqueues on the device's one compute stream and returns; results come
 * back by download(), which waits.  Operations can't fail on their own: shapes are asserted (our
 * bugs), a device fault is kept and reported by the next sync() or download().
 *
 * Conventions.  Row-major; W is [out, in]; T = tokens of the micro-batch, C = dim, F = ffn, V =
 * vocabulary, D = head_dim.  A struct dbuf is a typed pointer; activations and weights are F32 or
 * BF16 (an op takes any mix unless it says otherwise), statistics and gradients of parameters are
 * F32.  Sums run in F32 (norms and losses over rows in double where noted), in an order that is a
 * function of the shapes alone, never of threads.  A row's result does not depend on which other
 * rows are in the batch. Bounds: against a double-precision reference with inputs N(0,1): F32 1e-5
 * * sqrt(K), BF16 outputs one rounding (2^-8) beside that.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libcommon/err.h"
#include "libcommon/formats/dtype.h"

struct dmem;   /* incomplete on purpose */
static inline struct dmem *dmem_at(struct dmem *p, size_t bytes)
{
	return (struct dmem *)((char *)p + bytes);
}
struct dbuf { struct dmem *p; enum dtype t; };
static inline struct dbuf dbuf_at(struct dbuf b, size_t elements)
{
	b.p = dmem_at(b.p, elements * (size_t)dtype_info[b.t].bytes);
	return b;
}
#define DBUF_NONE ((struct dbuf){ NULL, DT_F32 })

/* C[m,n] (+)= alpha * op(A) op(B) (+ bias[n]), leading dimensions in elements. */
enum gemm_op {
	GEMM_NT,   /* A [m,k], B [n,k]: forward      Y = X W^T */
	GEMM_NN,   /* A [m,k], B [k,n]: data grad   dX = dY W  */
	GEMM_TN    /* A [k,m], B [k,n]: weight grad dW = dY^T X */
};
struct gemm {
	enum gemm_op op;
	long m, n, k;
	struct dbuf a, b, c; long lda, ldb, ldc;
	bool accumulate;          /* C += instead of C =; C may be BF16 (rounded once a call) */
	float alpha;
	struct dbuf bias;         /* [n], or DBUF_NONE; not with accumulate */
};

/*
 * Varlen causal attention with grouped heads.  Query row t of document d (cu_q[d] <= t < cu_q[d+1])
 * is at position p = t - cu_q[d] + (klen(d) - qlen(d)) of its document's keys, and sees keys max(0,
 * p - window + 1) .. p (window 0: from 0). Row r of document d's keys is at cu_k[d] + r, or, with
 * pages, at pages[d * pages_stride + r / page] * page + r % page.
 */
enum { ATTN_HEAD_DIM_MAX = 256 };  /* what every device's attention can do */
struct attn {
	long t;                        /* query rows in all */
	int docs, max_q, max_k;        /* longest query and key run of a document */
	struct dmem *cu_q, *cu_k;      /* i32 [docs + 1]; with pages cu_k still gives the key lengths */
	struct dmem *pages; int page, pages_stride;   /* i32; NULL = contiguous */
	int heads, kv_heads, head_dim;
	/* softcap 0 = none: s = softcap * tanh(s / softcap) */
	float scale; int window; float softcap;
	struct dbuf q, k, v; long ldq, ldk, ldv;      /* row strides; head h of a row at h * head_dim */
};

enum {
	SC_LR, SC_CLIP, SC_SUMSQ, SC_NORM, SC_FINITE, SC_UPDATES, SC_BIAS1, SC_BIAS2, SC_GRAD_SCALE,
	SC_COUNT = 16
};   /* doubles in the step's scalar block */

struct device {
	const char *name;              /* "cpu" */
	char what[96];                 /* "AVX2, 2 threads" */
	void *impl;

	/* memory */
	/* 256-byte aligned, zeroed; EX_OSERR */
	int (*alloc)(struct device *, size_t bytes, struct dmem **, struct err *);
	void (*release)(struct device *, struct dmem *, size_t bytes);
	/* src is free for reuse on return */
	void (*upload)(struct device *, struct dmem *dst, const void *src, size_t bytes);
	/* waits */
	int (*download)(struct device *, void *dst, struct dmem *src, size_t bytes, struct err *);
	int (*sync)(struct device *, struct err *);
	void (*zero)(struct device *, struct dmem *, size_t bytes);
	void (*copy)(struct device *, struct dmem *dst, struct dmem *src, size_t bytes);
	void (*cast)(struct device *, struct dbuf dst, struct dbuf src, size_t n);
	/* bytes that alloc could still give */
	uint64_t (*memory_free)(struct device *);

	void (*gemm)(struct device *, const struct gemm *);
	/* bytes that gemm and attention take beside their operands, for plan.c */
	size_t (*workspace)(struct device *, long max_m, long max_n, long max_k);

	/* y[t,:] = W[ids[t],:].  ids i32 [T]. */
	void (*embed_fwd)(
		struct device *, struct dbuf y, struct dbuf w, struct dmem *ids, long t, long c);
	/*
	 * dW[ids[t],:] += dy[t,:].  order i32 [T]: token indices sorted by (id, index), so that each
	 * row of dW is summed in order.
	 */
	void (*embed_bwd)(struct device *, struct dmem *dw, struct dbuf dy, struct dmem *ids,
		struct dmem *order, long t, long c);
	/*
	 * h = x + r (r may be DBUF_NONE: h is not written and stands for x), y = h * rstd * w, rstd[t]
	 * = 1/sqrt(mean(h^2) + eps).  h may alias x or r. y and rstd come from h as stored, that is
	 * rounded to its dtype: the backward pass makes y again from h alone and must get the same
	 * bits.
	 */
	void (*rmsnorm_fwd)(struct device *, struct dbuf y, struct dbuf h, struct dmem *rstd,
		struct dbuf x, struct dbuf r, struct dbuf w, float eps, long t, long c);
	/*
	 * dx (+)= gradient through y = x * rstd * w; dw (NULL: frozen) += sum_t dy * x * rstd, in row
	 * order.  accumulate adds to what dx holds (the residual's gradient).
	 */
	void (*rmsnorm_bwd)(struct device *, struct dbuf dx, bool accumulate, struct dmem *dw,
		struct dbuf dy, struct dbuf x, struct dmem *rstd, struct dbuf w, long t, long c);
	/*
	 * Rotates, in place, the first `heads` heads of each row (q then k of [q|k|v]): half-split
	 * order.  cs: f32 [max_pos, D] = cos[D/2] | sin[D/2] a row; pos i32 [T].  inverse: the backward
	 * pass.
	 */
	void (*rope)(struct device *, struct dbuf x, long ld, int heads, int head_dim, struct dmem *cs,
		struct dmem *pos, long t, bool inverse);
	/*
	 * o [T, heads * D] contiguous; lse f32 [heads, T] = log sum exp of the scaled scores, for the
	 * backward pass (NULL: not kept).
	 */
	void (*attn_fwd)(struct device *, const struct attn *, struct dbuf o, struct dmem *lse);
	/*
	 * dq, dk, dv with the strides of q, k, v (contiguous keys only, cu_q == cu_k); overwritten.
	 * delta: f32 [heads, T] scratch.
	 */
	void (*attn_bwd)(struct device *, const struct attn *, struct dbuf dq, struct dbuf dk,
		struct dbuf dv, struct dbuf o, struct dbuf d_o, struct dmem *lse, struct dmem *delta);
	/* gu [T, 2F] = gate | up; y [T, F] = act(gate) * up.  act: enum act_kind of arch.h. */
	void (*gated_fwd)(struct device *, struct dbuf y, struct dbuf gu, int act, long t, long f);
	/* dgu may alias gu. */
	void (*gated_bwd)(
		struct device *, struct dbuf dgu, struct dbuf dy, struct dbuf gu, int act, long t, long f);
	/* y = a + b; y may alias */
	void (*add)(struct device *, struct dbuf y, struct dbuf a, struct dbuf b, size_t n);
	/* db[n] += sum_t dy[t,n], in row order */
	void (*bias_bwd)(struct device *, struct dmem *db, struct dbuf dy, long ld, long t, long n);
	/*
	 * y = x * keep / (1-p): Philox key (seed, RNG_DROPOUT), counter (step, rec[t], layer, e/4) word
	 * e%4 with e = off[t]*C + c; kept if uniform >= p.  rec, off u32 [T].
	 */
	void (*dropout)(struct device *, struct dbuf y, struct dbuf x, float p, uint64_t seed,
		uint32_t step, uint32_t layer, struct dmem *rec, struct dmem *off, long t, long c);
	/* dst[i,:] = src[rows[i],:] and dst[rows[i],:] += src[i,:] (rows distinct).  rows i32 [R]. */
	void (*gather_rows)(
		struct device *, struct dbuf dst, struct dbuf src, struct dmem *rows, long r, long c);
	void (*scatter_add_rows)(
		struct device *, struct dbuf dst, struct dbuf src, struct dmem *rows, long r, long c);
	/*
	 * dst[rows[i] * ldd + c] = src[i * lds + c] for c < C (rows distinct; equal dtypes): new keys
	 * and values into the KV cache.
	 */
	void (*put_rows)(struct device *, struct dbuf dst, long ldd, struct dbuf src, long lds,
		struct dmem *rows, long r, long c);
	/*
	 * One chunk of the head.  logits f32 [R, V] -> logp[i] = logits[i, target[i]] - lse[i], lse
	 * (double sums), greedy u8: target is the argmax (first of equals).  target i32.
	 */
	void (*head_rows_fwd)(struct device *, struct dmem *logp, struct dmem *lse, struct dmem *greedy,
		struct dmem *logits, struct dmem *target, long r, long v);
	/*
	 * In place: dlogits = a[i]*softmax(logits[i]) - sum_j w[i,j]*onehot(id[i,j]) - u[i].  a, u, w
	 * f32; id i32 [R, J] (id < 0: unused). u may be NULL.
	 */
	void (*head_rows_bwd)(struct device *, struct dmem *logits, struct dmem *lse, struct dmem *a,
		struct dmem *u, struct dmem *ids, struct dmem *w, int j, long r, long v);

	/* ---- the step.  sc: a block of SC_COUNT doubles on the device ---- */
	/* sc[SC_SUMSQ] += sum g^2, fixed tiles, double */
	void (*sumsq)(struct device *, struct dmem *sc, struct dmem *g, size_t n);
	/*
	 * norm = sqrt(SC_SUMSQ) * SC_GRAD_SCALE; finite; clip = grad_clip > 0 && norm > grad_clip ?
	 * grad_clip / norm : 1 (torch: / (norm + 1e-6)); if finite, updates++ and bias corrections 1 -
	 * beta^updates.
	 */
	void (*step_scalars)(
		struct device *, struct dmem *sc, double lr, double grad_clip, double beta1, double beta2);
	/*
	 * If SC_FINITE: AdamW (Loshchilov & Hutter 2019; torch.optim.AdamW's order) on fp32 master with
	 * grad * clip * SC_GRAD_SCALE; w (another dtype, or DBUF_NONE) = cast(master).
	 */
	void (*adamw)(struct device *, struct dmem *sc, struct dmem *master, struct dbuf w,
		struct dmem *grad, struct dmem *m, struct dmem *v, double beta1, double beta2, double eps,
		double weight_decay, size_t n);

	void (*free)(struct device *);
};

/*
 * kind: "cpu", "cuda", "auto".  EX_NODEVICE says what is lacking.  threads: CPU only; 0 = all.
 * TUNE_CPU=plain|avx2 picks a path (EX_USAGE: unknown, EX_NODEVICE: the CPU lacks it).
 */
int device_open(struct device **d, const char *kind, int threads, struct err *err);
void device_close(struct device *d);
int cpu_device_open(struct device **d, int threads, struct err *err);   /* cpu/cpu.c */
#endif
