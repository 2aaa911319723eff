#ifndef TUNE_CHECKPOINT_H
#define TUNE_CHECKPOINT_H
/*
 * checkpoint: a step's folder (contracts.md 6, tune-run(5)): weights as a Hugging Face or PEFT
 * folder, state/ for the rest.
 *
 * Written as steps/step-NNNNNNNN.tmp, hashed into tune.json, renamed; then `latest` (and `best`)
 * are pointed at it; then older ones are removed.  At every moment `latest` resolves to a complete
 * checkpoint.
 */
#include "model.h"

/*
 * What state.json holds.  Strings are borrowed when writing, owned by the struct when read
 * (ckpt_state_release).
 */
struct ckpt_state {
	uint64_t step;                 /* optimizer steps taken (skipped ones count) */
	uint64_t epoch, position;      /* of the next record within the epoch */
	uint64_t updates;              /* updates applied, for the bias correction */
	uint64_t consumed, stream_hash;/* a stream's records so far and their running hash */
	uint64_t skipped_in_row;
	double best; uint64_t best_step; bool has_best;
	uint64_t bad_evals;            /* validations since the best */
	/* as planned: the last bits of gradients depend on it; 0 = not known */
	uint64_t micro_tokens;
	char *data_identity, *base;    /* identities; "" = none */
	enum dtype base_dtype;         /* what "auto" dtypes follow; DT_NONE = not known */
	char *config;                  /* JSON object of the settings that must not change */
};
void ckpt_state_release(struct ckpt_state *s);

struct ckpt_opts {
	const char *run;               /* RUN folder */
	const struct modelfile *base;  /* config and files to carry along */
	const struct carried *files;   /* the tokenizer's and others to carry along */
	/* where there is no such folder (a GGUF base), or NULL */
	int (*write_tokenizer)(void *ctx, const char *dir, struct err *err); void *ctx;
	const struct peft *peft;       /* adapter's settings, or NULL for full fine-tuning */
	enum dtype dtype;              /* of saved weights (full); adapters are saved in fp32 */
	int keep;                      /* checkpoints to keep, beside the best */
	bool best;                     /* this step is the best so far */
};
/*
 * *path gets the folder's path relative to run ("steps/step-00000100"); caller frees.
 * EX_CANTCREAT, EX_IOERR (with bytes needed and free): the earlier ones are intact.
 */
int checkpoint_save(struct model *m, const struct ckpt_state *s, const struct ckpt_opts *o,
	char **path, struct err *err);

/*
 * The newest valid checkpoint of run: path (caller frees), or NULL with 0 if there is none at all.
 * broken(ctx, message) is told of each invalid one.
 */
int checkpoint_newest(const char *run, char **path, void (*broken)(void *ctx, const char *why),
	void *ctx, struct err *err);
/* Is there any step folder in run? */
bool checkpoint_any(const char *run);
int checkpoint_read_state(struct ckpt_state *s, const char *dir, struct err *err);
/*
 * Masters and moments into the model (weights are loaded by model_load or model_load_adapter
 * before).
 */
int checkpoint_load_optim(struct model *m, const char *dir, struct err *err);
/* Remove the steps/step-N.tmp folders that an interrupted run left. */
int checkpoint_clean(const char *run, struct err *err);
#endif
