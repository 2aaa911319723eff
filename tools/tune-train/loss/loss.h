#ifndef TUNE_LOSS_H
#define TUNE_LOSS_H
/*
 * loss: from the rows' log-probabilities to a scalar and the coefficients of the head's backward
 * pass.  One loss a file; the table is generated from the files' names: NAME.c defines `const
 * struct loss loss_NAME`.
 */
#include "core/model.h"

struct loss {
	const char *name;
	/*
	 * After model_forward(FWD_KEEP): run the head in both directions for batch b.  Adds the
	 * un-normalised loss of this micro-batch to *sum; gradients are those of (sum over the global
	 * batch) / n, where n is the divisor that the loop knows beforehand.
	 */
	int (*run)(struct model *m, const struct batch *b, double n, double *sum, struct err *err);
};
const struct loss *loss_find(const char *name);
#endif
