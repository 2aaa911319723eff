#ifndef TUNE_LINEAR_H
#define TUNE_LINEAR_H
/*
 * linear: y = x W^T + bias, and, where it carries adapters (LoRA, Hu et al. 2021), y_p += scale *
 * (drop(x) A_p^T) B_p^T for each of its parts p.  A fused weight (q|k|v, gate|up) has a part a
 * projection: rows out0 .. out0 + out of W.  The A matrices of the parts lie end to end, one
 * [nparts * rank, in] matrix; the parts share one draw of dropout.
 *
 * Shapes: x [T, in], y [T, out], xa [T, nparts * rank], all contiguous.  W and A, B have the dtype
 * of the activations.
 */
#include "device.h"

enum { LINEAR_PARTS = 3 };

struct linear_part { struct dbuf b; struct dmem *db; long out0, out; };
struct linear {
	long in, out;
	struct dbuf w, bias;                 /* bias may be DBUF_NONE */
	struct dmem *dw, *dbias;             /* gradients, f32; NULL: frozen */
	int nparts, rank;                    /* 0: no adapters */
	struct dbuf a; struct dmem *da;
	float scale;
	struct linear_part part[LINEAR_PARTS];
	uint32_t key;                        /* this linear's `layer` of dropout's counter */
};

/* What a pass shares among its linears. */
struct linear_run {
	struct device *d;
	long t;
	bool adapters;
	float dropout;                       /* 0: none; then xd is not used */
	uint64_t seed; uint32_t step;
	struct dmem *rec, *off;              /* u32 [T]: dropout's counter */
	struct dbuf xd;                      /* [T, widest in] scratch */
	struct dbuf dxa; /* [T, LINEAR_PARTS * rank] scratch: bwd_w leaves it to bwd_x */
};

/* xa is written where there are adapters; keep it for bwd_w. */
void linear_fwd(const struct linear *l, const struct linear_run *r, struct dbuf y, struct dbuf x,
	struct dbuf xa);
/* Only xa, where the backward pass must make it again. */
void linear_inner(const struct linear *l, const struct linear_run *r, struct dbuf x,
	struct dbuf xa);
/* Adds to the gradients of what is trained. */
void linear_bwd_w(const struct linear *l, const struct linear_run *r, struct dbuf dy, struct dbuf x,
	struct dbuf xa);
/* dx = gradient of x (overwritten).  Right after bwd_w of the same linear; dx may be bwd_w's x, not
 * dy. */
void linear_bwd_x(const struct linear *l, const struct linear_run *r, struct dbuf dx,
	struct dbuf dy);
#endif
