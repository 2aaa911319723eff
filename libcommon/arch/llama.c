/* Llama 2, Llama 3.x, and models that say they are one (SmolLM2, TinyLlama, Yi, ...). */
#include "libcommon/arch/family.h"

static const struct config_key keys[] = {
	{ "attention_bias", KEY_READ }, { "mlp_bias", KEY_READ }, { "sliding_window", KEY_EMPTY },
		{ NULL }
};

static void defaults(struct arch *a)
{
	a->max_positions = 2048;
}

static int from_config(struct arch *a, const struct strict *c)
{
	if (strict_bool(c, "attention_bias", &a->bias_qkv) < 0 ||
		strict_bool(c, "mlp_bias", &a->bias_mlp) < 0)
		return -1;
	a->bias_o = a->bias_qkv;
	return 0;
}

static void to_config(const struct arch *a, struct json_w *w)
{
	json_w_name(w, "attention_bias");
	json_w_bool(w, a->bias_qkv);
	json_w_name(w, "mlp_bias");
	json_w_bool(w, a->bias_mlp);
}

const struct family family_llama = { "llama", "LlamaForCausalLM", "llama", true, keys, defaults,
	from_config, to_config };
