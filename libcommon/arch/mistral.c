/*
 * Mistral: Llama without biases, with a sliding window in all layers or none.  In GGUF it is a
 * llama.
 */
#include "libcommon/arch/family.h"

static const struct config_key keys[] = {
	{ "sliding_window", KEY_READ }, { "attention_bias", KEY_FALSE }, { "mlp_bias", KEY_FALSE },
		{ NULL }
};

static void defaults(struct arch *a)
{
	a->max_positions = 131072;
	a->kv_heads = 8;
	a->window = 4096;
}

static int from_config(struct arch *a, const struct strict *c)
{
	const struct json *window = json_get(c->json, "sliding_window");

	if (json_is(window, JSON_NULL))      /* unlike an absent one, it means none */
		a->window = 0;
	return strict_int(c, "sliding_window", 1, POSITIONS_MAX, &a->window) < 0 ? -1 : 0;
}

static void to_config(const struct arch *a, struct json_w *w)
{
	json_w_name(w, "sliding_window");
	if (a->window)
		json_w_int(w, a->window);
	else
		json_w_null(w);
}

const struct family family_mistral = { "mistral", "MistralForCausalLM", "llama", true, keys,
	defaults, from_config, to_config };
