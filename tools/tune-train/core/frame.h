#ifndef TUNE_FRAME_H
#define TUNE_FRAME_H
/*
 * frame: a struct model without its device memory: layout and the host's small arrays; plan_make
 * measures one, model_new fills one.
 */
#include "state.h"

/* m is zeroed but for plan.  The arch's pointers and the strings of o stay the caller's. */
int frame_init(struct model *m, const struct arch *a, const struct model_opts *o, struct device *d,
	struct comm *c, struct err *err);
void frame_release(struct model *m);
#endif
