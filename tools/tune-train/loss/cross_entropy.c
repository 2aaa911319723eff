/* cross_entropy: the mean of -log p(token) over the trained tokens of the whole global batch. */
#include "loss/loss.h"

static int run(struct model *m, const struct batch *b, double n, double *sum, struct err *err)
{
	(void)b;
	return head_cross_entropy(m, 1 / n, sum, NULL, err);
}

const struct loss loss_cross_entropy = { "cross_entropy", run };
