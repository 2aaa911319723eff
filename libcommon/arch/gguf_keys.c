/* GGUF's general.* and FAMILY.* keys both ways. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "libcommon/arch/family.h"

/*
 * What may stand behind "llama." or "qwen2.": anything else may change the computation and is
 * refused.
 */
static const char *const known[] = { "vocab_size", "context_length", "embedding_length",
	"block_count", "feed_forward_length", "attention.head_count", "attention.head_count_kv",
	"attention.layer_norm_rms_epsilon", "attention.key_length", "attention.value_length",
	"attention.sliding_window", "rope.dimension_count", "rope.freq_base", "rope.scaling.type",
	"rope.scaling.factor", "rope.scaling.original_context_length", "rope.scaling.finetuned",
	"rope.scale_linear", "expert_count", "expert_used_count", "tensor_data_layout" };

struct keys {
	const struct gguf *g;
	const char *where, *arch;
	struct err *err;
};

/* "llama.block_count"; the buffer is good until the next call's. */
static const char *key_name(const struct keys *k, const char *name, char buf[128])
{
	snprintf(buf, 128, "%s.%s", k->arch, name);
	return buf;
}

static int get_int(const struct keys *k, const char *name, int64_t lo, int64_t hi, int *out)
{
	char key[128];
	int64_t v = 0;
	int got = gguf_get_int(k->g, key_name(k, name, key), &v, k->err);

	if (got < 0)
		return err_prefix(k->err, "%s: ", k->where);
	if (got && (v < lo || v > hi))
		return err_set(k->err, EX_DATAERR, "%s: '%s' = %lld is not within %lld..%lld", k->where,
			key, (long long)v, (long long)lo, (long long)hi);
	if (got)
		*out = (int)v;
	return got;
}

/* GGUF has fp32 where config.json had a decimal number: the shortest one that is this fp32. */
static double shortest(double v)
{
	char s[40];
	int digits;

	for (digits = 1; digits <= 9; digits++) {
		snprintf(s, sizeof(s), "%.*g", digits, v);
		if (strtof(s, NULL) == (float)v)
			return strtod(s, NULL);
	}
	return v;
}

static int get_num(const struct keys *k, const char *name, double lo, double hi, double *out)
{
	char key[128];
	double v = 0;
	int got = gguf_get_num(k->g, key_name(k, name, key), &v, k->err);

	if (got < 0)
		return err_prefix(k->err, "%s: ", k->where);
	if (got && !(v >= lo && v <= hi))
		return err_set(
			k->err, EX_DATAERR, "%s: '%s' = %g is not within %g..%g", k->where, key, v, lo, hi);
	if (got)
		*out = shortest(v);
	return got;
}

static int need_int(const struct keys *k, const char *name, int hi, int *out)
{
	int got = get_int(k, name, 1, hi, out);

	return got ? got
			   : err_set(k->err, EX_DATAERR, "%s: key '%s.%s' is missing", k->where, k->arch, name);
}

static int check_keys(const struct keys *k)
{
	size_t i, j, n = strlen(k->arch);
	enum gguf_type type;
	struct err all = {0};

	for (i = 0; i < gguf_key_count(k->g); i++) {
		const char *key = gguf_key_at(k->g, i, &type);

		if (strncmp(key, k->arch, n) || key[n] != '.')
			continue;
		for (j = 0; j < sizeof(known) / sizeof(known[0]) && strcmp(known[j], key + n + 1); j++)
			;
		if (j == sizeof(known) / sizeof(known[0]))
			err_more(&all, EX_DATAERR,
				"%s: key '%s' is not supported: it may change what the model computes", k->where,
				key);
	}
	if (!all.code)
		return 0;
	*k->err = all;
	return -1;
}

static int read_sizes(struct arch *a, const struct keys *k)
{
	const struct tensor *embed = gguf_tensor_find(k->g, "token_embd.weight");
	int vocab = 0, value, rotary, experts = 0;

	if (!embed || embed->ndim != 2 || embed->shape[0] < 1 || embed->shape[0] > VOCAB_MAX)
		return err_set(
			k->err, EX_DATAERR, "%s: tensor 'token_embd.weight' is missing or no matrix", k->where);
	a->vocab = (int)embed->shape[0];
	if (need_int(k, "embedding_length", DIM_MAX, &a->dim) < 0 ||
		need_int(k, "block_count", LAYERS_MAX, &a->layers) < 0 ||
		need_int(k, "feed_forward_length", FFN_MAX, &a->ffn_dim) < 0 ||
		need_int(k, "attention.head_count", HEADS_MAX, &a->heads) < 0)
		return -1;
	a->kv_heads = a->heads;
	a->head_dim = a->dim / a->heads;
	if (get_int(k, "attention.head_count_kv", 1, HEADS_MAX, &a->kv_heads) < 0 ||
		get_int(k, "attention.key_length", 2, HEAD_DIM_MAX, &a->head_dim) < 0 ||
		get_int(k, "vocab_size", 1, VOCAB_MAX, &vocab) < 0 ||
		get_int(k, "context_length", 2, POSITIONS_MAX, &a->max_positions) < 0 ||
		get_int(k, "expert_count", 0, LAYERS_MAX, &experts) < 0 ||
		get_num(k, "attention.layer_norm_rms_epsilon", 0, 1, &a->norm_eps) < 0 ||
		get_int(k, "attention.sliding_window", 0, POSITIONS_MAX, &a->window) < 0)
		return -1;
	value = rotary = a->head_dim;
	if (get_int(k, "attention.value_length", 1, HEAD_DIM_MAX, &value) < 0 ||
		get_int(k, "rope.dimension_count", 1, HEAD_DIM_MAX, &rotary) < 0)
		return -1;
	if (vocab && vocab != a->vocab)
		return err_set(k->err, EX_DATAERR,
			"%s: '%s.vocab_size' is %d, but token_embd.weight has %d rows", k->where, k->arch,
			vocab, a->vocab);
	if (experts)
		return err_set(
			k->err, EX_DATAERR, "%s: a mixture of %d experts is not supported", k->where, experts);
	if (a->head_dim < 2 || value != a->head_dim || rotary != a->head_dim)
		return err_set(k->err, EX_DATAERR,
			"%s: heads of %d elements, of which rope turns %d, with values of %d are not supported",
			k->where, a->head_dim, rotary, value);
	return 0;
}

static int read_rope(struct arch *a, const struct keys *k)
{
	const struct tensor *freqs = gguf_tensor_find(k->g, "rope_freqs.weight");
	char key[128];
	struct gguf_str type = { "none", 4 };
	double factor = 0;
	float *f;
	int rc;

	if (get_num(k, "rope.freq_base", 1, 1e15, &a->rope_theta) < 0 ||
		get_num(k, "rope.scale_linear", 0, 1e9, &factor) < 0 ||
		get_num(k, "rope.scaling.factor", 0, 1e9, &factor) < 0 ||
		gguf_get_str(k->g, key_name(k, "rope.scaling.type", key), &type, k->err) < 0)
		return -1;
	if (type.n == 6 && !memcmp(type.s, "linear", 6)) {
		if (factor < 1)
			return err_set(k->err, EX_DATAERR, "%s: '%s' is linear, with a factor of %g", k->where,
				key, factor);
		a->rope = ROPE_LINEAR;
		a->rope_factor = factor;
	} else if (type.n != 4 || memcmp(type.s, "none", 4)) {
		return err_set(k->err, EX_DATAERR,
			"%s: rope scaling '%.*s' is not supported (known: none, linear)", k->where,
			(int)(type.n < 64 ? type.n : 64), type.s);
	} else if (factor > 1) {      /* before there was a type, a factor was linear */
		a->rope = ROPE_LINEAR;
		a->rope_factor = factor;
	}
	if (!freqs)
		return 0;
	if (freqs->dtype != DT_F32 || freqs->ndim != 1 || freqs->shape[0] != (uint64_t)a->head_dim / 2)
		return err_set(k->err, EX_DATAERR, "%s: rope_freqs.weight must be %d numbers of type F32",
			k->where, a->head_dim / 2);
	if (a->rope == ROPE_LINEAR)
		return err_set(k->err, EX_DATAERR,
			"%s: rope_freqs.weight together with linear scaling is not supported", k->where);
	f = mem_zalloc((size_t)a->head_dim / 2, sizeof(*f), k->err);
	if (!f)
		return -1;
	memcpy(f, freqs->data, freqs->bytes);
	rc = rope_from_freqs(a, f, k->where, k->err);
	free(f);
	return rc;
}

static int get_id(const struct keys *k, const char *key, int64_t *id)
{
	int64_t v = -1;
	int got = gguf_get_int(k->g, key, &v, k->err);

	if (got < 0)
		return err_prefix(k->err, "%s: ", k->where);
	*id = got && v >= 0 && v < VOCAB_MAX ? v : -1;
	return 0;
}

/* The end of a turn ends an answer as well: config.json says so with a list. */
static int read_ids(struct arch *a, const struct keys *k)
{
	int64_t eos, eot;

	if (get_id(k, "tokenizer.ggml.bos_token_id", &a->bos) < 0 ||
		get_id(k, "tokenizer.ggml.padding_token_id", &a->pad) < 0 ||
		get_id(k, "tokenizer.ggml.eos_token_id", &eos) < 0 ||
		get_id(k, "tokenizer.ggml.eot_token_id", &eot) < 0)
		return -1;
	if (eos >= 0)
		a->eos[a->neos++] = (uint32_t)eos;
	if (eot >= 0 && eot != eos)
		a->eos[a->neos++] = (uint32_t)eot;
	return 0;
}

/* A llama with a window is what transformers calls Mistral, which has no biases. */
static int call_it_mistral(struct arch *a, const char *where, struct err *err)
{
	if (a->bias_qkv || a->bias_o || a->bias_mlp)
		return err_set(err, EX_DATAERR,
			"%s: a llama with a sliding window and biases is not supported", where);
	snprintf(a->family, sizeof(a->family), "%s", family_mistral.model_type);
	snprintf(a->arch_class, sizeof(a->arch_class), "%s", family_mistral.arch_class);
	return 0;
}

int arch_from_gguf(struct arch *a, const struct gguf *g, const char *where, struct err *err)
{
	struct keys k = { g, where, NULL, err };
	struct gguf_str name = { "", 0 };
	const struct family *f;
	int got = gguf_get_str(g, "general.architecture", &name, err),
		n = (int)(name.n < 64 ? name.n : 64);

	*a = (struct arch){0};
	f = got > 0 ? family_by_gguf(name.s, name.n) : NULL;
	if (!f) {
		struct buf list = {0};

		family_known(&list, true);
		err_set(err, EX_DATAERR, "%s: architecture '%.*s' is not supported (known: %s)", where, n,
			name.s, list.p ? list.p : "");
		buf_release(&list);
		return -1;
	}
	arch_begin(a, f);
	a->window = 0;      /* Mistral's default isn't GGUF's */
	k.arch = f->gguf;
	if (check_keys(&k) < 0 || read_sizes(a, &k) < 0 || read_rope(a, &k) < 0 ||
		read_ids(a, &k) < 0 || arch_check(a, where, err) < 0) {
		arch_release(a);
		return -1;
	}
	a->tied = !gguf_tensor_find(g, "output.weight");
	a->bias_qkv = gguf_tensor_find(g, "blk.0.attn_q.bias");
	a->bias_o = gguf_tensor_find(g, "blk.0.attn_output.bias");
	a->bias_mlp = gguf_tensor_find(g, "blk.0.ffn_gate.bias");
	return f == &family_llama && a->window ? call_it_mistral(a, where, err) : 0;
}

/* ---- and back ---- */

/* llama.cpp's numbers of the type that most matrices have. */
static uint32_t file_type(enum dtype t)
{
	return t == DT_F16 ? 1 : t == DT_BF16 ? 32 : t == DT_Q8_0 ? 7 : 0;
}

int arch_to_gguf(
	const struct arch *a, struct gguf_w *w, const char *name, enum dtype dtype, struct err *err)
{
	const struct family *f = family_by_type(a->family, strlen(a->family));
	const struct keys k = { .arch = f->gguf };
	char key[128];

	if (a->act != ACT_SILU)
		return err_set(
			err, EX_DATAERR, "GGUF's architecture '%s' has no activation but silu", f->gguf);
	if (a->layer_window)
		return err_set(err, EX_DATAERR,
			"GGUF can't say that only some layers of '%s' have a sliding window", f->gguf);
	gguf_w_str(w, "general.architecture", f->gguf, strlen(f->gguf));
	gguf_w_str(w, "general.type", "model", 5);
	gguf_w_str(w, "general.name", name, strlen(name));
	gguf_w_u32(w, "general.file_type", file_type(dtype));
	if (dtype == DT_Q8_0)
		gguf_w_u32(w, "general.quantization_version", 2);
	gguf_w_u32(w, key_name(&k, "block_count", key), (uint32_t)a->layers);
	gguf_w_u32(w, key_name(&k, "context_length", key), (uint32_t)a->max_positions);
	gguf_w_u32(w, key_name(&k, "embedding_length", key), (uint32_t)a->dim);
	gguf_w_u32(w, key_name(&k, "feed_forward_length", key), (uint32_t)a->ffn_dim);
	gguf_w_u32(w, key_name(&k, "attention.head_count", key), (uint32_t)a->heads);
	gguf_w_u32(w, key_name(&k, "attention.head_count_kv", key), (uint32_t)a->kv_heads);
	gguf_w_u32(w, key_name(&k, "attention.key_length", key), (uint32_t)a->head_dim);
	gguf_w_u32(w, key_name(&k, "attention.value_length", key), (uint32_t)a->head_dim);
	gguf_w_f32(w, key_name(&k, "attention.layer_norm_rms_epsilon", key), (float)a->norm_eps);
	gguf_w_u32(w, key_name(&k, "rope.dimension_count", key), (uint32_t)a->head_dim);
	gguf_w_f32(w, key_name(&k, "rope.freq_base", key), (float)a->rope_theta);
	if (a->rope == ROPE_LINEAR) {
		gguf_w_str(w, key_name(&k, "rope.scaling.type", key), "linear", 6);
		gguf_w_f32(w, key_name(&k, "rope.scaling.factor", key), (float)a->rope_factor);
	}
	if (a->window)
		gguf_w_u32(w, key_name(&k, "attention.sliding_window", key), (uint32_t)a->window);
	gguf_w_u32(w, key_name(&k, "vocab_size", key), (uint32_t)a->vocab);
	return 0;
}
