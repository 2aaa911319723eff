/*
 * Qwen2 and Qwen2.5: Llama with biases on q, k, v; a sliding window in the layers from
 * max_window_layers on, if at all.
 */
#include <stdlib.h>

#include "libcommon/arch/family.h"

static const struct config_key keys[] = {
	{ "sliding_window", KEY_READ }, { "use_sliding_window", KEY_READ },
	{ "max_window_layers", KEY_READ }, { "layer_types", KEY_READ },
	{ "attention_bias", KEY_HARMLESS },   /* transformers doesn't read it: Qwen2 always has them */
	{ "mlp_bias", KEY_FALSE }, { "use_mrope", KEY_FALSE }, { NULL }
};

static void defaults(struct arch *a)
{
	a->max_positions = 32768;
	a->bias_qkv = true;
}

/* layer_types, if there, decides which layers have the window, else max_window_layers. */
static int layer_is_windowed(
	const struct strict *c, const struct json *types, int i, int from, bool *windowed)
{
	if (!types)
		*windowed = i >= from;
	else if (json_str_eq(&types->items[i], "sliding_attention"))
		*windowed = true;
	else if (json_str_eq(&types->items[i], "full_attention"))
		*windowed = false;
	else
		return err_set(c->err, EX_DATAERR,
			"%s: layer_types[%d] must be 'full_attention' or 'sliding_attention'", c->where, i);
	return 0;
}

static int from_config(struct arch *a, const struct strict *c)
{
	const struct json *types = strict_get(c, "layer_types");
	bool use = false, *windowed;
	int window = 4096, from = 28, i, rc = 0;

	if (strict_bool(c, "use_sliding_window", &use) < 0 ||
		strict_int(c, "sliding_window", 1, POSITIONS_MAX, &window) < 0 ||
		strict_int(c, "max_window_layers", 0, POSITIONS_MAX, &from) < 0)
		return -1;
	if (types && (types->type != JSON_ARR || types->n != (uint32_t)a->layers))
		return err_set(c->err, EX_DATAERR,
			"%s: layer_types must be an array of %d, one for each layer", c->where, a->layers);
	if (!use || json_is(json_get(c->json, "sliding_window"), JSON_NULL))
		window = 0;
	windowed = mem_zalloc((size_t)a->layers, sizeof(*windowed), c->err);
	if (!windowed)
		return -1;
	for (i = 0; !rc && i < a->layers; i++) {
		rc = layer_is_windowed(c, types, i, window ? from : a->layers, &windowed[i]);
		if (!rc && windowed[i] && !window)
			rc = err_set(c->err, EX_DATAERR,
				"%s: layer_types[%d] is 'sliding_attention', but use_sliding_window is off",
				c->where, i);
	}
	if (!rc)
		rc = arch_set_windows(a, windowed, window, c->err);
	free(windowed);
	return rc;
}

static void to_config(const struct arch *a, struct json_w *w)
{
	int i, from = a->window ? 0 : a->layers;

	while (a->layer_window && from < a->layers && !a->layer_window[from])
		from++;
	json_w_name(w, "use_sliding_window");
	json_w_bool(w, a->window > 0);
	json_w_name(w, "sliding_window");
	if (a->window)
		json_w_int(w, a->window);
	else
		json_w_null(w);
	json_w_name(w, "max_window_layers");
	json_w_int(w, from);
	if (!a->layer_window)
		return;
	json_w_name(w, "layer_types");
	json_w_arr(w);
	for (i = 0; i < a->layers; i++)
		json_w_str(w, a->layer_window[i] ? "sliding_attention" : "full_attention");
	json_w_end(w);
}

const struct family family_qwen2 = { "qwen2", "Qwen2ForCausalLM", "qwen2", false, keys, defaults,
	from_config, to_config };
