/* The table of a model's parameters: names in both worlds, shapes, what is permuted. */
#include <stdio.h>
#include <stdlib.h>

#include "libcommon/arch/family.h"

/* Sizes that shapes are made of; SIZE_NONE: one dimension only. */
enum size { SIZE_NONE, SIZE_VOCAB, SIZE_DIM, SIZE_Q, SIZE_KV, SIZE_FFN };
enum place { OUTSIDE_BEFORE, IN_BLOCK, OUTSIDE_AFTER };
enum heads { HEADS_NONE, HEADS_Q, HEADS_KV };      /* whose heads' rows GGUF permutes */

/* In the order of enum tensor_role.  Inside a block names follow "model.layers.N." and "blk.N.". */
static const struct role {
	const char *hf, *gguf;
	enum place place;
	enum size out, in;
	enum heads heads;
	const char *linear;
} roles[T_ROLES] = {
	[T_EMBED] = { "model.embed_tokens.weight", "token_embd.weight", OUTSIDE_BEFORE, SIZE_VOCAB,
		SIZE_DIM, HEADS_NONE, NULL },
	[T_ATTN_NORM] = { "input_layernorm.weight", "attn_norm.weight", IN_BLOCK, SIZE_DIM, SIZE_NONE,
		HEADS_NONE, NULL },
	[T_Q] = { "self_attn.q_proj.weight", "attn_q.weight", IN_BLOCK, SIZE_Q, SIZE_DIM, HEADS_Q,
		"q_proj" },
	[T_K] = { "self_attn.k_proj.weight", "attn_k.weight", IN_BLOCK, SIZE_KV, SIZE_DIM, HEADS_KV,
		"k_proj" },
	[T_V] = { "self_attn.v_proj.weight", "attn_v.weight", IN_BLOCK, SIZE_KV, SIZE_DIM, HEADS_NONE,
		"v_proj" },
	[T_Q_BIAS] = { "self_attn.q_proj.bias", "attn_q.bias", IN_BLOCK, SIZE_Q, SIZE_NONE, HEADS_Q,
		NULL },
	[T_K_BIAS] = { "self_attn.k_proj.bias", "attn_k.bias", IN_BLOCK, SIZE_KV, SIZE_NONE, HEADS_KV,
		NULL },
	[T_V_BIAS] = { "self_attn.v_proj.bias", "attn_v.bias", IN_BLOCK, SIZE_KV, SIZE_NONE, HEADS_NONE,
		NULL },
	[T_O] = { "self_attn.o_proj.weight", "attn_output.weight", IN_BLOCK, SIZE_DIM, SIZE_Q,
		HEADS_NONE, "o_proj" },
	[T_O_BIAS] = { "self_attn.o_proj.bias", "attn_output.bias", IN_BLOCK, SIZE_DIM, SIZE_NONE,
		HEADS_NONE, NULL },
	[T_MLP_NORM] = { "post_attention_layernorm.weight", "ffn_norm.weight", IN_BLOCK, SIZE_DIM,
		SIZE_NONE, HEADS_NONE, NULL },
	[T_GATE] = { "mlp.gate_proj.weight", "ffn_gate.weight", IN_BLOCK, SIZE_FFN, SIZE_DIM,
		HEADS_NONE, "gate_proj" },
	[T_UP] = { "mlp.up_proj.weight", "ffn_up.weight", IN_BLOCK, SIZE_FFN, SIZE_DIM, HEADS_NONE,
		"up_proj" },
	[T_DOWN] = { "mlp.down_proj.weight", "ffn_down.weight", IN_BLOCK, SIZE_DIM, SIZE_FFN,
		HEADS_NONE, "down_proj" },
	[T_GATE_BIAS] = { "mlp.gate_proj.bias", "ffn_gate.bias", IN_BLOCK, SIZE_FFN, SIZE_NONE,
		HEADS_NONE, NULL },
	[T_UP_BIAS] = { "mlp.up_proj.bias", "ffn_up.bias", IN_BLOCK, SIZE_FFN, SIZE_NONE, HEADS_NONE,
		NULL },
	[T_DOWN_BIAS] = { "mlp.down_proj.bias", "ffn_down.bias", IN_BLOCK, SIZE_DIM, SIZE_NONE,
		HEADS_NONE, NULL },
	[T_FINAL_NORM] = { "model.norm.weight", "output_norm.weight", OUTSIDE_AFTER, SIZE_DIM,
		SIZE_NONE, HEADS_NONE, NULL },
	[T_HEAD] = { "lm_head.weight", "output.weight", OUTSIDE_AFTER, SIZE_VOCAB, SIZE_DIM, HEADS_NONE,
		NULL },
};

const char *arch_linear_name(enum tensor_role role)
{
	return role >= 0 && role < T_ROLES ? roles[role].linear : NULL;
}

uint64_t gguf_row(uint64_t r, int heads, uint64_t rows)
{
	uint64_t dim = rows / (uint64_t)heads, x = r % dim;

	return r - x + 2 * (x % (dim / 2)) + x / (dim / 2);
}

static uint64_t size_of(const struct arch *a, enum size s)
{
	switch (s) {
	case SIZE_VOCAB:
		return (uint64_t)a->vocab;
	case SIZE_DIM:
		return (uint64_t)a->dim;
	case SIZE_Q:
		return (uint64_t)a->heads * (uint64_t)a->head_dim;
	case SIZE_KV:
		return (uint64_t)a->kv_heads * (uint64_t)a->head_dim;
	case SIZE_FFN:
		return (uint64_t)a->ffn_dim;
	default:
		return 1;
	}
}

static bool has_role(const struct arch *a, enum tensor_role r)
{
	switch (r) {
	case T_Q_BIAS:
	case T_K_BIAS:
	case T_V_BIAS:
		return a->bias_qkv;
	case T_O_BIAS:
		return a->bias_o;
	case T_GATE_BIAS:
	case T_UP_BIAS:
	case T_DOWN_BIAS:
		return a->bias_mlp;
	case T_HEAD:
		return !a->tied;
	default:
		return true;
	}
}

static void fill(struct arch_tensor *t, const struct arch *a, enum tensor_role role, int layer)
{
	const struct role *r = &roles[role];
	const struct family *f = family_by_type(a->family, strlen(a->family));

	*t = (struct arch_tensor){ .role = role, .layer = layer, .ndim = r->in == SIZE_NONE ? 1 : 2,
		.shape = { size_of(a, r->out), r->in == SIZE_NONE ? 0 : size_of(a, r->in) } };
	if (layer < 0) {
		snprintf(t->name, sizeof(t->name), "%s", r->hf);
		snprintf(t->gguf_name, sizeof(t->gguf_name), "%s", r->gguf);
	} else {
		snprintf(t->name, sizeof(t->name), "model.layers.%d.%s", layer, r->hf);
		snprintf(t->gguf_name, sizeof(t->gguf_name), "blk.%d.%s", layer, r->gguf);
	}
	if (f && f->gguf_permuted && r->heads != HEADS_NONE)
		t->gguf_heads = r->heads == HEADS_Q ? a->heads : a->kv_heads;
}

int arch_tensors(const struct arch *a, struct arch_tensor **list, size_t *n, struct err *err)
{
	struct arch_tensor *t = mem_zalloc((size_t)a->layers * T_ROLES + T_ROLES, sizeof(*t), err);
	size_t k = 0;
	int place, layer;
	enum tensor_role r;

	if (!t)
		return -1;
	for (place = OUTSIDE_BEFORE; place <= OUTSIDE_AFTER; place++)
		for (layer = place == IN_BLOCK ? 0 : -1; layer < (place == IN_BLOCK ? a->layers : 0);
			 layer++)
			for (r = 0; r < T_ROLES; r++)
				if ((int)roles[r].place == place && has_role(a, r))
					fill(&t[k++], a, r, layer);
	*list = t;
	*n = k;
	return 0;
}

uint64_t arch_param_count(const struct arch *a)
{
	uint64_t sum = 0;
	enum tensor_role r;

	for (r = 0; r < T_ROLES; r++)
		if (has_role(a, r))
			sum += size_of(a, roles[r].out) * size_of(a, roles[r].in) *
				(roles[r].place == IN_BLOCK ? (uint64_t)a->layers : 1);
	return sum;
}
