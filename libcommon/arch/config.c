/* config.json both ways. */

#include <string.h>

#include "libcommon/arch/family.h"

/*
 * What every family shares.  Families' own tables come first, so a key here may be read by one and
 * refused by another. The long run of harmless ones is what PreTrainedConfig of transformers wrote
 * into every config.json over the years.
 */
static const struct config_key shared_keys[] = {
	{ "model_type", KEY_READ }, { "architectures", KEY_READ }, { "vocab_size", KEY_READ },
		{ "hidden_size", KEY_READ },
	{ "intermediate_size", KEY_READ }, { "num_hidden_layers", KEY_READ },
	{ "num_attention_heads", KEY_READ },
	{ "num_key_value_heads", KEY_READ }, { "head_dim", KEY_READ }, { "hidden_act", KEY_READ },
		{ "max_position_embeddings", KEY_READ },
	{ "rms_norm_eps", KEY_READ }, { "rope_theta", KEY_READ }, { "rope_scaling", KEY_READ },
		{ "rope_parameters", KEY_READ },
	{ "tie_word_embeddings", KEY_READ }, { "torch_dtype", KEY_READ }, { "dtype", KEY_READ },
		{ "bos_token_id", KEY_READ },
	{ "eos_token_id", KEY_READ }, { "pad_token_id", KEY_READ },

	{ "attention_dropout", KEY_ZERO }, { "hidden_dropout", KEY_ZERO }, { "embd_pdrop", KEY_ZERO },
		{ "resid_pdrop", KEY_ZERO },
	{ "pretraining_tp", KEY_ONE }, { "partial_rotary_factor", KEY_ONE },
	{ "rope_interleaved", KEY_FALSE },
	{ "use_sliding_window", KEY_FALSE }, { "layer_types", KEY_EMPTY },
	{ "is_encoder_decoder", KEY_FALSE },
	{ "add_cross_attention", KEY_FALSE }, { "tie_encoder_decoder", KEY_FALSE },
	{ "pruned_heads", KEY_EMPTY },
	{ "chunk_size_feed_forward", KEY_ZERO }, { "quantization_config", KEY_EMPTY },
	{ "auto_map", KEY_EMPTY },

	{ "_name_or_path", KEY_HARMLESS }, { "name_or_path", KEY_HARMLESS },
	{ "_commit_hash", KEY_HARMLESS },
	{ "transformers_version", KEY_HARMLESS }, { "use_cache", KEY_HARMLESS },
	{ "initializer_range", KEY_HARMLESS },
	{ "max_window_layers", KEY_HARMLESS },
	{ "_attn_implementation", KEY_HARMLESS }, { "_attn_implementation_autoset", KEY_HARMLESS },
		{ "attn_implementation", KEY_HARMLESS },
	{ "is_llama_config", KEY_HARMLESS }, { "transformers.js_config", KEY_HARMLESS },
		{ "max_sequence_length", KEY_HARMLESS },
	{ "model_max_length", KEY_HARMLESS }, { "unsloth_fixed", KEY_HARMLESS },
	{ "unsloth_version", KEY_HARMLESS },
	{ "gradient_checkpointing", KEY_HARMLESS }, { "tokenizer_class", KEY_HARMLESS },
	{ "prefix", KEY_HARMLESS },
	{ "sep_token_id", KEY_HARMLESS }, { "decoder_start_token_id", KEY_HARMLESS },
	{ "is_decoder", KEY_HARMLESS },
	{ "cross_attention_hidden_size", KEY_HARMLESS }, { "finetuning_task", KEY_HARMLESS },
		{ "task_specific_params", KEY_HARMLESS },
	{ "problem_type", KEY_HARMLESS }, { "id2label", KEY_HARMLESS }, { "label2id", KEY_HARMLESS },
		{ "num_labels", KEY_HARMLESS },
	{ "return_dict", KEY_HARMLESS }, { "output_attentions", KEY_HARMLESS },
		{ "output_hidden_states", KEY_HARMLESS },
	{ "torchscript", KEY_HARMLESS }, { "use_bfloat16", KEY_HARMLESS },
	{ "tf_legacy_loss", KEY_HARMLESS },
	{ "max_length", KEY_HARMLESS }, { "min_length", KEY_HARMLESS }, { "do_sample", KEY_HARMLESS },
		{ "early_stopping", KEY_HARMLESS },
	{ "num_beams", KEY_HARMLESS }, { "num_beam_groups", KEY_HARMLESS },
	{ "diversity_penalty", KEY_HARMLESS },
	{ "temperature", KEY_HARMLESS }, { "top_k", KEY_HARMLESS }, { "top_p", KEY_HARMLESS },
		{ "typical_p", KEY_HARMLESS },
	{ "repetition_penalty", KEY_HARMLESS }, { "length_penalty", KEY_HARMLESS },
		{ "no_repeat_ngram_size", KEY_HARMLESS },
	{ "encoder_no_repeat_ngram_size", KEY_HARMLESS }, { "bad_words_ids", KEY_HARMLESS },
		{ "num_return_sequences", KEY_HARMLESS },
	{ "output_scores", KEY_HARMLESS }, { "return_dict_in_generate", KEY_HARMLESS },
		{ "forced_bos_token_id", KEY_HARMLESS },
	{ "forced_eos_token_id", KEY_HARMLESS }, { "remove_invalid_values", KEY_HARMLESS },
	{ "exponential_decay_length_penalty", KEY_HARMLESS }, { "suppress_tokens", KEY_HARMLESS },
	{ "begin_suppress_tokens", KEY_HARMLESS }, { NULL }
};

static const struct { const char *name; enum act_kind act; } acts[] = {
	{ "silu", ACT_SILU }, { "swish", ACT_SILU }, { "gelu_pytorch_tanh", ACT_GELU_TANH },
		{ "gelu_new", ACT_GELU_TANH }, { "gelu", ACT_GELU }
};
static const struct { const char *name; enum dtype dtype; } dtypes[] = {
	{ "float32", DT_F32 }, { "bfloat16", DT_BF16 }, { "float16", DT_F16 },
	{ "torch.float32", DT_F32 }, { "torch.bfloat16", DT_BF16 },
	{ "torch.float16", DT_F16 }
};
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* ---- values ---- */

static int need_int(const struct strict *c, const char *name, int hi, int *out)
{
	int got = strict_int(c, name, 1, hi, out);

	return got ? got : err_set(c->err, EX_DATAERR, "%s: '%s' is missing", c->where, name);
}

static int read_sizes(struct arch *a, const struct strict *c)
{
	if (need_int(c, "vocab_size", VOCAB_MAX, &a->vocab) < 0 ||
		need_int(c, "hidden_size", DIM_MAX, &a->dim) < 0 ||
		need_int(c, "intermediate_size", FFN_MAX, &a->ffn_dim) < 0 ||
		need_int(c, "num_hidden_layers", LAYERS_MAX, &a->layers) < 0 ||
		need_int(c, "num_attention_heads", HEADS_MAX, &a->heads) < 0)
		return -1;
	if (!a->kv_heads || json_is(json_get(c->json, "num_key_value_heads"), JSON_NULL))
		a->kv_heads = a->heads;
	a->head_dim = a->dim / a->heads;
	if (strict_int(c, "num_key_value_heads", 1, HEADS_MAX, &a->kv_heads) < 0 ||
		strict_int(c, "head_dim", 2, HEAD_DIM_MAX, &a->head_dim) < 0 ||
		strict_int(c, "max_position_embeddings", 2, POSITIONS_MAX, &a->max_positions) < 0 ||
		strict_num(c, "rms_norm_eps", 0, 1, &a->norm_eps) < 0)
		return -1;
	if (a->head_dim < 2)
		return err_set(c->err, EX_DATAERR, "%s: hidden_size %d is too small for %d heads", c->where,
			a->dim, a->heads);
	return strict_bool(c, "tie_word_embeddings", &a->tied) < 0 ? -1 : 0;
}

static int read_act(struct arch *a, const struct strict *c)
{
	const char *name = NULL;
	size_t i;

	if (!strict_get(c, "hidden_act"))
		return 0;
	if (json_get_str(c->json, "hidden_act", &name, c->where, c->err) < 0)
		return -1;
	for (i = 0; i < COUNT(acts); i++)
		if (!strcmp(acts[i].name, name)) {
			a->act = acts[i].act;
			return 0;
		}
	return err_set(c->err, EX_DATAERR,
		"%s: hidden_act '%s' is not supported (known: silu, gelu_pytorch_tanh, gelu)", c->where,
		name);
}

static int read_dtype(struct arch *a, const struct strict *c)
{
	const char *key = strict_get(c, "torch_dtype") ? "torch_dtype" : "dtype", *name = NULL;
	size_t i;

	if (!strict_get(c, key))
		return 0;
	if (json_get_str(c->json, key, &name, c->where, c->err) < 0)
		return -1;
	for (i = 0; i < COUNT(dtypes); i++)
		if (!strcmp(dtypes[i].name, name)) {
			a->dtype = dtypes[i].dtype;
			return 0;
		}
	return err_set(c->err, EX_DATAERR,
		"%s: %s '%s' is not supported (known: float32, bfloat16, float16)", c->where, key, name);
}

static int read_architectures(struct arch *a, const struct strict *c)
{
	const struct json *v = strict_get(c, "architectures");

	if (!v || (v->type == JSON_ARR && v->n == 1 && json_str_eq(&v->items[0], a->arch_class)))
		return 0;
	return err_set(c->err, EX_DATAERR,
		"%s: 'architectures' must be [\"%s\"] for model_type '%s'%s%s", c->where, a->arch_class,
		a->family, v->type == JSON_ARR && v->n && v->items[0].type == JSON_STR ? ", found " : "",
		v->type == JSON_ARR && v->n && v->items[0].type == JSON_STR ? v->items[0].s : "");
}

static int read_id(const struct strict *c, const char *name, const struct json *v, int64_t *out)
{
	if (v->type != JSON_INT || v->i < 0 || v->i >= VOCAB_MAX)
		return err_set(c->err, EX_DATAERR, "%s: '%s' must be a token id or null", c->where, name);
	*out = v->i;
	return 0;
}

/* -1 stands for "none" in some old files. */
static int read_one_id(const struct strict *c, const char *name, int64_t *out)
{
	const struct json *v = strict_get(c, name);

	return !v || json_is_number(v, -1) ? 0 : read_id(c, name, v, out);
}

static int read_ids(struct arch *a, const struct strict *c)
{
	const struct json *v = strict_get(c, "eos_token_id");
	uint32_t i, n = !v || json_is_number(v, -1) ? 0 : v->type == JSON_ARR ? v->n : 1;
	int64_t id = -1;

	if (n > COUNT(a->eos))
		return err_set(c->err, EX_DATAERR, "%s: 'eos_token_id' lists %u ids; %zu is the limit",
			c->where, n, COUNT(a->eos));
	for (i = 0; i < n; i++) {
		if (read_id(c, "eos_token_id", v->type == JSON_ARR ? &v->items[i] : v, &id) < 0)
			return -1;
		a->eos[a->neos++] = (uint32_t)id;
	}
	return read_one_id(c, "bos_token_id", &a->bos) < 0 ||
			read_one_id(c, "pad_token_id", &a->pad) < 0
		? -1
		: 0;
}

int arch_from_config(struct arch *a, const struct json *config, const char *where, struct err *err)
{
	const struct strict c = { config, where, err };
	const struct json *type = json_get(config, "model_type");
	const struct family *f = json_is(type, JSON_STR) ? family_by_type(type->s, type->n) : NULL;

	*a = (struct arch){0};
	if (!json_is(config, JSON_OBJ))
		return err_set(err, EX_DATAERR, "%s: must hold an object", where);
	if (!f) {
		struct buf known = {0};

		family_known(&known, false);
		if (json_is(type, JSON_STR))
			err_set(err, EX_DATAERR, "%s: model_type '%s' is not supported (known: %s)", where,
				type->s, known.p ? known.p : "");
		else
			err_set(err, EX_DATAERR, "%s: 'model_type' is missing (known: %s)", where,
				known.p ? known.p : "");
		buf_release(&known);
		return -1;
	}
	arch_begin(a, f);
	if (strict_check_keys(&c, f->keys, shared_keys) < 0 || read_sizes(a, &c) < 0 ||
		read_act(a, &c) < 0 || read_dtype(a, &c) < 0 || read_architectures(a, &c) < 0 ||
		read_ids(a, &c) < 0 || rope_from_config(a, &c) < 0 || f->from_config(a, &c) < 0 ||
		arch_check(a, where, err) < 0) {
		arch_release(a);
		return -1;
	}
	return 0;
}

/* ---- and back ---- */

static void put_int(struct json_w *w, const char *name, int64_t v)
{
	json_w_name(w, name);
	json_w_int(w, v);
}

static void put_str(struct json_w *w, const char *name, const char *s)
{
	json_w_name(w, name);
	json_w_str(w, s);
}

static void put_id(struct json_w *w, const char *name, int64_t id)
{
	json_w_name(w, name);
	if (id < 0)
		json_w_null(w);
	else
		json_w_int(w, id);
}

static void put_eos(struct json_w *w, const struct arch *a)
{
	int i;

	if (a->neos < 2) {
		put_id(w, "eos_token_id", a->neos ? (int64_t)a->eos[0] : -1);
		return;
	}
	json_w_name(w, "eos_token_id");
	json_w_arr(w);
	for (i = 0; i < a->neos; i++)
		json_w_int(w, a->eos[i]);
	json_w_end(w);
}

void arch_to_config(const struct arch *a, enum dtype dtype, struct buf *out)
{
	const struct family *f = family_by_type(a->family, strlen(a->family));
	struct json_w w = { .out = out, .indent = 2 };
	size_t i;

	json_w_obj(&w);
	json_w_name(&w, "architectures");
	json_w_arr(&w);
	json_w_str(&w, a->arch_class);
	json_w_end(&w);
	put_str(&w, "model_type", a->family);
	put_int(&w, "vocab_size", a->vocab);
	put_int(&w, "hidden_size", a->dim);
	put_int(&w, "intermediate_size", a->ffn_dim);
	put_int(&w, "num_hidden_layers", a->layers);
	put_int(&w, "num_attention_heads", a->heads);
	put_int(&w, "num_key_value_heads", a->kv_heads);
	put_int(&w, "head_dim", a->head_dim);
	for (i = 0; acts[i].act != a->act; i++)
		;
	put_str(&w, "hidden_act", acts[i].name);
	put_int(&w, "max_position_embeddings", a->max_positions);
	json_w_name(&w, "rms_norm_eps");
	json_w_num(&w, a->norm_eps);
	rope_to_config(a, &w);
	json_w_name(&w, "tie_word_embeddings");
	json_w_bool(&w, a->tied);
	f->to_config(a, &w);
	put_id(&w, "bos_token_id", a->bos);
	put_eos(&w, a);
	put_id(&w, "pad_token_id", a->pad);
	for (i = 0; i < COUNT(dtypes) && dtypes[i].dtype != dtype; i++)
		;
	if (i < COUNT(dtypes))
		put_str(&w, "torch_dtype", dtypes[i].name);
	json_w_end(&w);
	buf_putc(out, '\n');
}
