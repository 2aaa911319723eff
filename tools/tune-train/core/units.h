#ifndef TUNE_UNITS_H
#define TUNE_UNITS_H
/*
 * units: where each parameter lies.
 *
 * A unit is the embedding, a block, or the head with the final norm (units 0, 1..layers, layers +
 * 1).  It has two flat buffers, one a class: frozen values, and trained values with fp32 gradients,
 * moments and, where values are narrower, masters.  A parameter is a named slice of a unit.  Slices
 * lie in the order of enum tensor_role, then adapters; each starts at a multiple of 128 elements
 * (256 bytes of bf16), except that q|k|v, their biases, gate|up, their biases, and the A matrices
 * of adapters on one such weight follow each other without a gap, so that they are one matrix.  The
 * end is padded to ranks * 128 elements.  Gaps and padding stay zero and are never saved.
 */
#include "model.h"

enum unit_class { FROZEN, TRAINED, UNIT_CLASSES };
enum slice { SLICE_BASE, SLICE_A, SLICE_B, SLICES };

struct unit {
	size_t n[UNIT_CLASSES];              /* elements, padded */
	struct dbuf w[UNIT_CLASSES];
	struct dmem *master;                 /* f32 [n]; NULL where w is f32 */
	struct dmem *grad, *exp_avg, *exp_avg_sq;
};

struct units {
	struct unit *u; int n;
	struct param *params; size_t nparams, cap;
	int *index;                          /* [unit][role][slice] -> param, -1 = none */
	enum dtype dtype;
};

/* Names and offsets; no device memory.  EX_CONFIG names a module of lora_opts that can't be
 * trained. */
int units_layout(struct units *us, const struct arch *a, const struct model_opts *o, int ranks,
	struct err *err);
void units_release(struct units *us);
/* The parameter's index, or -1. */
int units_find(const struct units *us, int unit, enum tensor_role role, enum slice s);
/* Values and gradient of a slice that may be absent: DBUF_NONE, NULL.  A frozen slice has no
 * gradient. */
struct dbuf units_value(const struct units *us, int unit, enum tensor_role role, enum slice s);
struct dmem *units_grad(const struct units *us, int unit, enum tensor_role role, enum slice s);
#endif
