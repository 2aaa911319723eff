#ifndef TUNE_CHECKPOINT_INT_H
#define TUNE_CHECKPOINT_INT_H
/* The parts of a checkpoint's folder. */
#include "checkpoint.h"

/* model or adapter, config, tokenizer */
int ckpt_write_weights(
	struct model *m, const struct ckpt_opts *o, const char *dir, struct err *err);
/* optim.safetensors */
int ckpt_write_optim(struct model *m, const struct ckpt_opts *o, const char *dir, struct err *err);
/* state.json */
int ckpt_write_state(const struct ckpt_state *s, const char *dir, struct err *err);
#endif
