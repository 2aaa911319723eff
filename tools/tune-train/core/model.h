#ifndef TUNE_MODEL_H
#define TUNE_MODEL_H
/*
 * model: a decoder's parameters in units on a device, its forward and backward pass, and what a
 * step needs.
 *
 * Life: model_opts -> plan_make (nothing is allocated) -> model_new (allocates all, once) ->
 * model_load or model_init -> steps. Nothing allocates between model_new and model_free.
 *
 *   model_zero_grads(m);
 *   for each micro-batch: model_forward(m, b, FWD_KEEP | FWD_ADAPTER); loss->run(...) (drives
 * head_*); model_backward(m); model_step(m, lr, clip, optim, &stats)
 */
#include "batch.h"
#include "comm.h"
#include "libcommon/arch/modelfile.h"

struct lora_opts {
	int rank;                     /* 0: full fine-tuning */
	double alpha, dropout;
	bool rslora;
	const char *const *targets; size_t ntargets;
	const char *const *modules_to_save; size_t nmodules;   /* "embed_tokens", "lm_head" */
};
struct init_opts {
	bool depth_by_layer;
	double std;
	bool fan_in;
	double embed; /* 0 = default */
	uint64_t seed;
};
struct model_opts {
	enum dtype dtype;             /* F32 or BF16: weights and activations */
	bool train;                   /* gradients, optimizer, kept activations; false: forward only */
	struct lora_opts lora;
	enum { RECOMPUTE_AUTO, RECOMPUTE_ON, RECOMPUTE_OFF } recompute;
	long micro_tokens;            /* 0: plan picks */
	long max_record;              /* longest record in tokens: micro_tokens is at least this */
	/* most tokens of a step (0: not known): a planned micro_tokens is not larger */
	long step_tokens;
	long max_docs;                /* documents of a micro-batch at most (0: micro_tokens) */
	uint64_t memory;              /* bytes that may be planned; 0: device->memory_free */
	uint64_t seed;                /* dropout */
	/* generation: 0 = none */
	int gen_slots; long gen_len;  /* sequences at once, tokens of each */
};

/* What it will take, in bytes; and what was chosen. */
struct plan {
	uint64_t weights, masters, grads, moments, activations, head, kv, workspace, total, available;
	long micro_tokens; bool recompute; long head_rows;   /* logits chunk */
	uint64_t params, trained_params;
	double flops_per_token;       /* forward and backward, without attention's scores */
};
/*
 * EX_OSERR "needs X, Y is available; the largest micro_tokens that fits is Z" when it does not fit.
 */
int plan_make(struct plan *p, const struct arch *a, const struct model_opts *o, struct device *d,
	struct comm *c, struct err *err);

/* A parameter: a named slice of a unit. */
struct param {
	char name[128];               /* Hugging Face (or PEFT) name */
	int unit; size_t offset;      /* elements, within its class's flat buffer */
	uint64_t shape[2]; int ndim; uint64_t n;
	bool trained; bool decay;     /* weight decay applies: matrices, not norms and biases */
	int src;                      /* index in modelfile.tensors, -1 for adapters */
	enum tensor_role role; int layer;
};

struct model;
/* The arch's and the options' pointers must outlive the model. */
int model_new(struct model **m, const struct arch *a, const struct model_opts *o,
	const struct plan *p, struct device *d, struct comm *c, struct err *err);
void model_free(struct model *m);
/* base weights */
int model_load(struct model *m, const struct modelfile *f, struct err *err);
/* by Hugging Face name */
int model_init_random(struct model *m, const struct init_opts *o, struct err *err);
/* A: kaiming uniform a=sqrt(5) as PEFT; B: 0 */
int model_init_adapter(struct model *m, uint64_t seed, struct err *err);
/* PEFT folder; missing and unexpected keys by name (R4) */
int model_load_adapter(struct model *m, const char *dir, struct err *err);
const struct arch *model_arch(const struct model *m);
const struct plan *model_plan(const struct model *m);
struct device *model_device(const struct model *m);
struct comm *model_comm(const struct model *m);
size_t model_param_count(const struct model *m);
const struct param *model_param(const struct model *m, size_t i);      /* fixed order */
/*
 * A parameter's values as fp32 (masters where there are any), its gradient, and optimizer state;
 * for checkpoints and tests. n elements from first.
 */
enum param_what { PARAM_VALUE, PARAM_GRAD, PARAM_EXP_AVG, PARAM_EXP_AVG_SQ };
int model_read(struct model *m, size_t i, enum param_what what, uint64_t first, uint64_t n,
	float *dst, struct err *err);
int model_write(struct model *m, size_t i, enum param_what what, uint64_t first, uint64_t n,
	const float *src, struct err *err);

/* keep activations for backward; adapters on (off: the base, DPO's reference) */
enum { FWD_KEEP = 1, FWD_ADAPTER = 2 };
/*
 * Positions restart at each document.  The hidden states after the last block stay on the device
 * for head_*. step keys dropout (only with FWD_KEEP).
 */
int model_forward(
	struct model *m, const struct batch *b, int flags, uint64_t step, struct err *err);
/*
 * Backward through the blocks and the embedding from the hidden gradient that head_* left; adds to
 * the gradients.
 */
int model_backward(struct model *m, struct err *err);
void model_zero_grads(struct model *m);

/*
 * ---- head (contracts.md 8): rows = trained positions of the batch, in order; full logits are
 * never stored ----
 */
/* Per trained token: logp, greedy (u8); arrays of b->trained entries, host.  No gradient. */
int head_forward(struct model *m, float *logp, uint8_t *greedy, struct err *err);
/*
 * Cross-entropy in one pass over chunks: adds sum(-logp) to *loss_sum (double, in row order) and
 * leaves the hidden gradient of weight * sum(-logp); weight = 1/N. logp may be NULL.
 */
int head_cross_entropy(
	struct model *m, double weight, double *loss_sum, float *logp, struct err *err);
/*
 * General backward: for row i, dlogits = a[i]*softmax - sum_j w[i*j..]*onehot(id[i*j..]) - u[i];
 * host arrays; u may be NULL.
 */
int head_backward(struct model *m, const float *a, const float *u, const int32_t *ids,
	const float *w, int j, struct err *err);
/* Logits of chosen token positions (generation, goldens): out [nrows, vocab], host. */
int head_logits(struct model *m, const int32_t *rows, long nrows, float *out, struct err *err);

struct step_stats { double grad_norm; bool finite; };
struct adamw_opts { double beta1, beta2, eps, weight_decay; };
/* Norm over all trained parameters (all ranks), clip, AdamW.  Not finite: nothing changes. */
int model_step(struct model *m, double lr, double grad_clip, const struct adamw_opts *o,
	struct step_stats *s, struct err *err);
/* updates applied, for bias correction; saved in state.json */
uint64_t model_updates(const struct model *m);
void model_set_updates(struct model *m, uint64_t n);

/* ---- generation ---- */
/*
 * Feed n new tokens for each of nseq sequences in slots (KV cache), get the logits after the last
 * token of each: out [nseq, vocab], host. lens[i] new tokens of sequence i lie in ids one after
 * another; slots[i] < gen_slots; a slot's length grows; kv_reset empties it.
 */
int kv_feed(struct model *m, int nseq, const int *slots, const int32_t *lens, const uint32_t *ids,
	float *logits, struct err *err);
int model_gen_slots(const struct model *m);
long model_gen_len(const struct model *m);
void kv_reset(struct model *m, int slot);
long kv_len(const struct model *m, int slot);
#endif
