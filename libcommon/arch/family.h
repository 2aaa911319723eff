#ifndef TUNE_FAMILY_H
#define TUNE_FAMILY_H
/*
 * family: a row for each family of models, and what the files of libcommon/arch share.  A new
 * family is a file with a row, named in families[] of arch.c.  What a family's row doesn't say is
 * as in Llama: RMSNorm before attention and MLP, gated MLP, half-split rope.
 */
#include "libcommon/arch/arch.h"
#include "libcommon/arch/strict.h"

struct family {
	const char *model_type, *arch_class;
	const char *gguf;                    /* general.architecture */
	/* GGUF holds the rows of q and k in interleaved rope order (R7) */
	bool gguf_permuted;
	/* the family's own rows: looked up before the shared ones; ends with a NULL name */
	const struct config_key *keys;
	void (*defaults)(struct arch *a);
	/* its own keys, after the shared ones */
	int (*from_config)(struct arch *a, const struct strict *c);
	void (*to_config)(const struct arch *a, struct json_w *w);
};
extern const struct family family_llama, family_mistral, family_qwen2;
const struct family *family_by_type(const char *model_type, size_t n);      /* NULL if unknown */
const struct family *family_by_gguf(const char *name, size_t n);
/* "llama, mistral, qwen2" */
void family_known(struct buf *out, bool gguf);

/* Start *a as an empty model of the family. */
void arch_begin(struct arch *a, const struct family *f);
/* Sizes fit together; both readers end with it. */
int arch_check(const struct arch *a, const char *where, struct err *err);
/* layer_types or a threshold: set window and layer_window from windowed[layers]. */
int arch_set_windows(struct arch *a, const bool *windowed, int window, struct err *err);

/* Sizes that a file may claim. */
enum {
	DIM_MAX = 1 << 17, LAYERS_MAX = 1024, HEADS_MAX = 1 << 12, HEAD_DIM_MAX = 1 << 12, FFN_MAX = 1
	<< 20, VOCAB_MAX = 1 << 24, POSITIONS_MAX = 1 << 30
};

int rope_from_config(struct arch *a, const struct strict *c);
void rope_to_config(const struct arch *a, struct json_w *w);
/* Recover a llama3 scaling from the divisors freqs[head_dim/2]; -1 if they are something else. */
int rope_from_freqs(struct arch *a, const float *freqs, const char *where, struct err *err);
#endif
