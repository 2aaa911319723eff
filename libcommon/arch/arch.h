#ifndef TUNE_ARCH_H
#define TUNE_ARCH_H
/*
 * arch: a decoder model as data.  config.json or GGUF keys -> struct arch, and tensor names both
 * ways; a family is one file (llama.c, mistral.c, qwen2.c) with a row of the family table.  core
 * takes a struct arch and knows no file.
 *
 * A key of config.json that we do not know is refused by name unless it is on the list of keys that
 * do not change the computation (torch_dtype, use_cache, architectures, ...); so is a known key
 * with a value that we cannot honour (faults R8, R5).  All such keys are named at once.  Keys may
 * be as old or new transformers write them (rope_theta and rope_scaling, or rope_parameters; "type"
 * or "rope_type"); where both stand they must agree.  What may be absent, and is then as
 * transformers has it: num_key_value_heads (= num_attention_heads; mistral 8), head_dim
 * (hidden_size / heads), rms_norm_eps (1e-6), rope_theta (10000), hidden_act (silu),
 * max_position_embeddings (2048; mistral 131072, qwen2 32768), sliding_window (mistral 4096),
 * tie_word_embeddings and biases (false). Token ids that are absent are none.  Sizes have limits,
 * so that a hostile file can't ask for much (S3).
 *
 * GGUF: architectures llama (Llama, Mistral, SmolLM2) and qwen2; unknown keys of the architecture
 * are refused as above.  Its rope_freqs.weight must be what a llama3 scaling gives (low_freq_factor
 * 1, high_freq_factor 4, an original context of a power of two: all known ones), and is read as
 * one.
 */
#include <stdbool.h>
#include <stdint.h>

#include "libcommon/formats/gguf.h"
#include "libcommon/json.h"

enum norm_kind { NORM_RMS };
enum act_kind { ACT_SILU, ACT_GELU_TANH, ACT_GELU };          /* of the gate: y = act(gate) * up */
enum rope_kind { ROPE_NONE, ROPE_DEFAULT, ROPE_LINEAR, ROPE_LLAMA3 };

struct arch {
	char family[32];              /* "llama", "mistral", "qwen2": config.json's model_type */
	char arch_class[64];          /* "LlamaForCausalLM" */
	int dim, layers, heads, kv_heads, head_dim, ffn_dim, vocab;
	int max_positions;            /* max_position_embeddings: a limit that is warned about */
	enum norm_kind norm;
	double norm_eps;
	enum act_kind act;
	enum rope_kind rope;
	double rope_theta;
	/* LINEAR: factor; LLAMA3: all four */
	double rope_factor, rope_low_freq, rope_high_freq; int rope_original;
	bool tied;                    /* head = embedding */
	bool bias_qkv, bias_o, bias_mlp;
	bool qk_norm;                 /* later families; refused by core until then */
	/* sliding attention: a token sees itself and the window - 1 before it; 0 = all before it */
	int window;
	/* owned; layers entries, each 0 or window; NULL = all layers have `window` */
	int *layer_window;
	double attn_scale;            /* 0 = head_dim^-0.5 */
	/* 0 or 1 = none */
	double attn_softcap, head_softcap, embed_scale, residual_scale, logit_scale;
	int64_t bos, pad;             /* -1 = none */
	uint32_t eos[16]; int neos;   /* config.json's eos_token_id(s) */
	enum dtype dtype;             /* torch_dtype: DT_F32, DT_BF16, DT_F16; DT_NONE if not said */
};

int arch_from_config(struct arch *a, const struct json *config, const char *where, struct err *err);
int arch_from_gguf(struct arch *a, const struct gguf *g, const char *where, struct err *err);
/* config.json for transformers, from a struct arch; keeps nothing that arch doesn't hold. */
void arch_to_config(const struct arch *a, enum dtype dtype, struct buf *out);
/* general.* and FAMILY.* keys (not the tokenizer's). */
int arch_to_gguf(
	const struct arch *a, struct gguf_w *w, const char *name, enum dtype dtype, struct err *err);
/*
 * The values of GGUF's rope_freqs.weight [head_dim/2] (F32), which a llama3 scaling needs: true, or
 * false if there is to be none.
 */
bool arch_rope_freqs(const struct arch *a, float *freqs);
void arch_release(struct arch *a);
uint64_t arch_param_count(const struct arch *a);     /* a tied head counts once */

/* ---- tensors: our table of a model's parameters by Hugging Face name ---- */
enum tensor_role {
	T_EMBED, T_ATTN_NORM, T_Q, T_K, T_V, T_Q_BIAS, T_K_BIAS, T_V_BIAS, T_O, T_O_BIAS, T_MLP_NORM,
	T_GATE, T_UP, T_DOWN, T_GATE_BIAS, T_UP_BIAS, T_DOWN_BIAS, T_FINAL_NORM, T_HEAD, T_ROLES
};
struct arch_tensor {
	enum tensor_role role;
	int layer;                    /* -1 outside blocks */
	char name[96];                /* "model.layers.0.self_attn.q_proj.weight" */
	char gguf_name[64];           /* "blk.0.attn_q.weight" */
	int ndim;
	uint64_t shape[2];            /* [out, in] or [n] */
	/* > 0: GGUF stores rows of this many heads permuted to interleaved rope order (R7) */
	int gguf_heads;
};
/*
 * All tensors that the model has, embedding first, then blocks in order, final norm, head (absent
 * if tied).
 */
/* caller frees *list */
int arch_tensors(const struct arch *a, struct arch_tensor **list, size_t *n, struct err *err);
/* The linear's short name for LoRA targets: "q_proj"; NULL for roles that are no linear. */
const char *arch_linear_name(enum tensor_role role);
/* Row r of a [heads*head_dim, in] weight in Hugging Face order is row gguf_row(r) of GGUF's. */
uint64_t gguf_row(uint64_t r, int heads, uint64_t rows);
/*
 * rope inverse frequencies, head_dim/2, in fp32 and in the order of operations of transformers,
 * scaling applied.
 */
void arch_rope_inv_freq(const struct arch *a, float *inv_freq);
#endif
