/*
 * path: every operation of one path in one translation unit.  The includer defines CPU_PATH, the
 * function that fills the table.
 */
#include "panel.c"
#include "gemm.c"
#include "gemv.c"
#include "attention.c"
#include "elementwise.c"
#include "head.c"
#include "norm.c"
#include "optim.c"
#include "rows.c"

void CPU_PATH(struct device *d)
{
	struct cpu *c = d->impl;

	c->space_bytes = shared_bytes() + (size_t)c->threads * own_bytes();
	d->gemm = op_gemm;
	d->workspace = op_workspace;
	d->cast = op_cast;
	d->embed_fwd = op_embed_fwd;
	d->embed_bwd = op_embed_bwd;
	d->rmsnorm_fwd = op_rmsnorm_fwd;
	d->rmsnorm_bwd = op_rmsnorm_bwd;
	d->rope = op_rope;
	d->attn_fwd = op_attn_fwd;
	d->attn_bwd = op_attn_bwd;
	d->gated_fwd = op_gated_fwd;
	d->gated_bwd = op_gated_bwd;
	d->add = op_add;
	d->bias_bwd = op_bias_bwd;
	d->dropout = op_dropout;
	d->gather_rows = op_gather_rows;
	d->scatter_add_rows = op_scatter_add_rows;
	d->put_rows = op_put_rows;
	d->head_rows_fwd = op_head_rows_fwd;
	d->head_rows_bwd = op_head_rows_bwd;
	d->sumsq = op_sumsq;
	d->step_scalars = op_step_scalars;
	d->adamw = op_adamw;
}
