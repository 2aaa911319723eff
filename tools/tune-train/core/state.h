#ifndef TUNE_STATE_H
#define TUNE_STATE_H
/*
 * state: struct model, shared by the files of core; nothing outside core includes this.
 *
 * Every buffer is declared once, in buffers.c, which runs twice: to add up bytes (plan_make) and to
 * hand out addresses (model_new), so the plan is what is taken.
 */
#include "linear.h"
#include "model.h"
#include "units.h"

enum { HEAD_LIST_MAX = 64 };   /* longest list of ids a row that head_backward takes */

struct block {
	struct linear qkv, o, gu, down;
	struct dbuf norm1, norm2;
	struct dmem *dnorm1, *dnorm2;        /* NULL: frozen */
	int window;
};

/* What a block's forward pass leaves for its backward pass; T = micro_tokens rows. */
struct acts {
	struct dbuf qkv;                     /* [T, (heads + 2 kv_heads) * D], rotated */
	struct dbuf o;                       /* [T, heads * D] */
	struct dbuf h1;                      /* [T, C] residual stream after attention */
	struct dbuf gu;                      /* [T, 2F] */
	struct dbuf xa[4];                   /* adapters' inner values of qkv, o, gu, down */
	struct dmem *rstd1, *rstd2;          /* f32 [T] */
	struct dmem *lse;                    /* f32 [heads, T]; NULL without training */
};

/* The micro-batch on the device, and its staging on the host. */
struct tokens {
	struct dmem *ids, *pos, *cu, *order; /* i32; order only where the embedding is trained */
	struct dmem *rec, *off;              /* u32; only with dropout */
	struct dmem *rows, *target;          /* i32 [T]: trained positions and the ids they predict */
	struct dmem *logp, *lse, *greedy;    /* of the trained rows */
	int32_t *h_i32, *h_count;            /* host: [T + 1], [vocab + 1] */
	int32_t *h_rows, *h_target;          /* host [T] */
	float *h_logp;                       /* host [T] */
	long t, nrows;                       /* of the last forward */
	int docs, max_len;
};

struct head {
	struct dbuf w; struct dmem *dw;
	struct dbuf norm; struct dmem *dnorm;
	struct dbuf h, hn, dh;               /* [head_rows, C]: gathered residual, normed, gradient */
	struct dmem *rstd, *logits;          /* f32 [head_rows], [head_rows, V] */
	struct dmem *sel;                    /* i32 [head_rows] */
	struct dmem *a, *u;                  /* [head_rows] */
	struct dmem *ids, *weights;          /* [head_rows, HEAD_LIST_MAX] */
	float *h_a;                          /* host [head_rows] */
};

struct kv {
	struct dbuf *cache;                  /* [layers]: [slots * len, k | v] */
	struct dmem *rows, *pages, *cu_k;    /* i32 [T], [slots], [slots + 1] */
	long *len;                           /* host [slots] */
	int32_t *take, *last;                /* host [slots]: a pass's new tokens, its last rows */
	bool on;                             /* the running forward pass is kv_feed's */
	int max_k;
};

enum mem_kind {
	MEM_WEIGHTS, MEM_MASTERS, MEM_GRADS, MEM_MOMENTS, MEM_ACTIVATIONS, MEM_HEAD, MEM_KV,
	MEM_WORKSPACE, MEM_HOST, MEM_KINDS
};

struct model {
	const struct arch *arch;
	/* its pointers are the caller's arch's: it must outlive the model */
	struct arch arch_copy;
	struct model_opts opts;
	struct plan plan;
	struct device *d;
	struct comm *c;
	struct units units;
	struct dmem *mem[MEM_KINDS]; uint64_t bytes[MEM_KINDS];
	void *host;
	struct block *blocks;

	struct dmem *cs;                     /* rope table f32 [positions, D] */
	struct tokens tok;
	struct dbuf *h0;                     /* [layers]: block inputs, or one shared */
	struct acts *acts;                   /* [layers], or one shared */
	struct dbuf hl;                      /* [T, C]: after the last block */
	struct dbuf n, y, s;                 /* scratch [T, C], [T, max(F, heads D)], [T, C] */
	/* scratch [T, max(F, qkv width)]; [T, C]: gradient of the residual stream */
	struct dbuf dy, dres;
	struct dmem *delta;                  /* f32 [heads, T] */
	struct linear_run run;
	struct head head;
	struct kv kv;
	struct dmem *sc;                     /* SC_COUNT doubles */
	float *stage; size_t nstage;         /* host, for model_read and model_write */
	uint64_t updates;
	bool kept, dres_ready, embed_trained;
};

/* Rows of qkv, and of q. */
static inline long qkv_dim(const struct arch *a)
{
	return (long)(a->heads + 2 * a->kv_heads) * a->head_dim;
}
static inline long q_dim(const struct arch *a) { return (long)a->heads * a->head_dim; }

/*
 * buffers.c: needs arch, opts, units and plan.{micro_tokens, recompute, head_rows}; fills bytes[].
 */
void buffers_measure(struct model *m);
int buffers_alloc(struct model *m, struct err *err);
void buffers_release(struct model *m);

/* block.c */
/* Shapes and addresses of the blocks, from the units. */
void blocks_wire(struct model *m);
/* Block i on h0[i] = x + r (r DBUF_NONE: h0[i] holds it); the output is h1 + s, not yet added. */
void block_fwd(struct model *m, int i, struct dbuf x, struct dbuf r);
/* dres: gradient of the block's output in, of its input out. */
void block_bwd(struct model *m, int i);
struct acts *block_acts(const struct model *m, int i);

/* model.c: the blocks on ids, pos (and cu, or kv) already on the device: fills hl. */
void model_run_blocks(struct model *m);

/* head.c: logits f32 [r, V] in head.logits of the token positions rows (device, i32). */
void head_wire(struct model *m);
void head_chunk(struct model *m, struct dmem *rows, long r);
#endif
