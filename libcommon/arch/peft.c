/* adapter_config.json of the PEFT library (LoRA), both ways. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libcommon/arch/strict.h"
#include "libcommon/arch/modelfile.h"
#include "libcommon/file.h"
#include "libcommon/outfile.h"

enum { ADAPTER_CONFIG_MAX = 1 << 20, RANK_MAX = 1 << 14, NAMES_MAX = 64 };

static const struct config_key keys[] = {
	{ "peft_type", KEY_READ }, { "task_type", KEY_READ }, { "base_model_name_or_path", KEY_READ },
		{ "r", KEY_READ },
	{ "lora_alpha", KEY_READ }, { "lora_dropout", KEY_READ }, { "use_rslora", KEY_READ },
		{ "target_modules", KEY_READ },
	{ "modules_to_save", KEY_READ }, { "bias", KEY_READ }, { "init_lora_weights", KEY_READ },

	{ "use_dora", KEY_FALSE }, { "lora_bias", KEY_FALSE }, { "fan_in_fan_out", KEY_FALSE },
		{ "use_qalora", KEY_FALSE },
	{ "ensure_weight_tying", KEY_FALSE },
	{ "alpha_pattern", KEY_EMPTY }, { "rank_pattern", KEY_EMPTY },
	{ "layers_to_transform", KEY_EMPTY }, { "layers_pattern", KEY_EMPTY },
	{ "layer_replication", KEY_EMPTY }, { "exclude_modules", KEY_EMPTY },
	{ "target_parameters", KEY_EMPTY },
	{ "trainable_token_indices", KEY_EMPTY }, { "alora_invocation_tokens", KEY_EMPTY },
		{ "use_bdlora", KEY_EMPTY },
	{ "megatron_config", KEY_EMPTY }, { "arrow_config", KEY_EMPTY }, { "kasa_config", KEY_EMPTY },
		{ "velora_config", KEY_EMPTY },
	{ "monteclora_config", KEY_EMPTY }, { "loftq_config", KEY_EMPTY },

	/* How it was initialised, loaded or distributed. */
	{ "inference_mode", KEY_HARMLESS }, { "peft_version", KEY_HARMLESS },
	{ "revision", KEY_HARMLESS }, { "auto_mapping", KEY_HARMLESS },
	{ "megatron_core", KEY_HARMLESS }, { "qalora_group_size", KEY_HARMLESS },
	{ "eva_config", KEY_HARMLESS },
	{ "corda_config", KEY_HARMLESS }, { "lora_ga_config", KEY_HARMLESS },
	{ "runtime_config", KEY_HARMLESS }, { NULL }
};
static const struct config_key no_keys[] = { { NULL } };

static bool is_linear(const char *name)
{
	enum tensor_role r;

	for (r = 0; r < T_ROLES; r++)
		if (arch_linear_name(r) && !strcmp(arch_linear_name(r), name))
			return true;
	return false;
}

static bool is_saveable(const char *name)
{
	return !strcmp(name, "embed_tokens") || !strcmp(name, "lm_head");
}

/* A list of names that `fits` accepts; null and absent are an empty one. */
static int read_names(const struct strict *c, const char *key, bool (*fits)(const char *),
	const char *known, char ***names, size_t *n)
{
	const struct json *v = strict_get(c, key);
	uint32_t i;

	if (!v)
		return 0;
	if (v->type == JSON_STR)
		return err_set(c->err, EX_DATAERR,
			"%s: '%s' is the pattern '%s'; only a list of names is supported (known: %s)", c->where,
			key, v->s, known);
	if (v->type != JSON_ARR || v->n > NAMES_MAX)
		return err_set(c->err, EX_DATAERR, "%s: '%s' must be a list of at most %d names", c->where,
			key, NAMES_MAX);
	*names = mem_zalloc(v->n, sizeof(**names), c->err);
	if (!*names)
		return -1;
	for (i = 0; i < v->n; i++) {
		if (v->items[i].type != JSON_STR || !fits(v->items[i].s))
			return err_set(c->err, EX_DATAERR,
				"%s: '%s' holds '%s', which is not supported (known: %s)", c->where, key,
				v->items[i].type == JSON_STR ? v->items[i].s : json_type_name(v->items[i].type),
				known);
		if (!((*names)[(*n)++] = mem_strdup(v->items[i].s, c->err)))
			return -1;
	}
	return 0;
}

/* PEFT's word for every linear of the blocks. */
static int all_linear(struct peft *p, struct err *err)
{
	enum tensor_role r;

	p->targets = mem_zalloc(T_ROLES, sizeof(*p->targets), err);
	for (r = 0; p->targets && r < T_ROLES; r++)
		if (arch_linear_name(r) &&
			!(p->targets[p->ntargets++] = mem_strdup(arch_linear_name(r), err)))
			return -1;
	return p->targets ? 0 : -1;
}

static int read_targets(struct peft *p, const struct strict *c)
{
	static const char linears[] = "q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj";

	if (json_str_eq(strict_get(c, "target_modules"), "all-linear")) {
		if (all_linear(p, c->err) < 0)
			return -1;
	} else if (read_names(c, "target_modules", is_linear, linears, &p->targets, &p->ntargets) < 0) {
		return -1;
	}
	if (!p->ntargets)
		return err_set(c->err, EX_DATAERR, "%s: 'target_modules' names nothing (known: %s)",
			c->where, linears);
	return read_names(c, "modules_to_save", is_saveable, "embed_tokens, lm_head",
		&p->modules_to_save, &p->nmodules);
}

/* A key whose value must be one of two strings (or null). */
static int must_be(const struct strict *c, const char *key, const char *want)
{
	const struct json *v = strict_get(c, key);

	if (!v || json_str_eq(v, want))
		return 0;
	return err_set(c->err, EX_DATAERR, "%s: '%s' is supported as \"%s\" only, found %s", c->where,
		key, want, v->type == JSON_STR ? v->s : json_type_name(v->type));
}

/*
 * PiSSA, OLoRA, CorDA, LoftQ and LoRA-GA change the base's weights: such an adapter is wrong on the
 * base as published.
 */
static int check_init(const struct strict *c)
{
	static const char *const fine[] = { "gaussian", "eva", "orthogonal" };
	const struct json *v = strict_get(c, "init_lora_weights");
	size_t i;

	if (!v || v->type == JSON_BOOL)
		return 0;
	for (i = 0; i < sizeof(fine) / sizeof(fine[0]); i++)
		if (json_str_eq(v, fine[i]))
			return 0;
	return err_set(c->err, EX_DATAERR,
		"%s: init_lora_weights '%s' changes the base model's weights; save the adapter converted "
		"to plain LoRA "
		"(PEFT: path_initial_model_for_weight_conversion)",
		c->where, v->type == JSON_STR ? v->s : json_type_name(v->type));
}

static int read_all(struct peft *p, const struct strict *c)
{
	const char *base = "";
	int rank =
		strict_check_keys(c, keys, no_keys) < 0 ? -1 : strict_int(c, "r", 1, RANK_MAX, &p->rank);

	if (rank < 0 || must_be(c, "peft_type", "LORA") < 0 ||
		must_be(c, "task_type", "CAUSAL_LM") < 0 || must_be(c, "bias", "none") < 0 ||
		check_init(c) < 0 || strict_num(c, "lora_alpha", 1e-6, 1e6, &p->alpha) < 0 ||
		strict_num(c, "lora_dropout", 0, 0.999, &p->dropout) < 0 ||
		strict_bool(c, "use_rslora", &p->rslora) < 0)
		return -1;
	if (!rank || !strict_get(c, "lora_alpha"))
		return err_set(
			c->err, EX_DATAERR, "%s: '%s' is missing", c->where, rank ? "lora_alpha" : "r");
	if (strict_get(c, "base_model_name_or_path") &&
		json_get_str(c->json, "base_model_name_or_path", &base, c->where, c->err) < 0)
		return -1;
	p->base = mem_strdup(base, c->err);
	return p->base ? read_targets(p, c) : -1;
}

int peft_read(struct peft *p, const char *dir, struct err *err)
{
	char *at = resolve_checkpoint(dir, err);
	char *path = at ? path_join(at, "adapter_config.json") : NULL;
	struct json_doc doc = {0};
	int rc = -1;

	*p = (struct peft){ .dir = at };
	if (!at)
		return -1;
	if (!path) {
		err_oom(err, strlen(dir));
	} else if (!is_file(path)) {
		err_set(err, file_exists(at) ? EX_DATAERR : EX_NOINPUT,
			is_gguf(at) ? "'%s' is a GGUF file; an adapter is read from its PEFT folder only"
						: "'%s' is no PEFT folder: it has no adapter_config.json", dir);
	} else if (!json_parse_file(&doc, path, ADAPTER_CONFIG_MAX, err)) {
		struct strict c = { &doc.root, path, err };

		if (doc.root.type != JSON_OBJ || doc.duplicates)
			err_set(err, EX_DATAERR, "%s: must hold an object, each key once", path);
		else
			rc = read_all(p, &c);
	}
	if (rc < 0)
		peft_release(p);
	json_release(&doc);
	free(path);
	return rc;
}

static void put_bool(struct json_w *w, const char *name, bool v)
{
	json_w_name(w, name);
	json_w_bool(w, v);
}

static void put_names(struct json_w *w, const char *key, char *const *names, size_t n)
{
	size_t i;

	json_w_name(w, key);
	json_w_arr(w);
	for (i = 0; i < n; i++)
		json_w_str(w, names[i]);
	json_w_end(w);
}

static void put_str(struct json_w *w, const char *name, const char *s)
{
	json_w_name(w, name);
	if (*s)
		json_w_str(w, s);
	else
		json_w_null(w);
}

/*
 * What PEFT takes for granted when a key is absent is left out; what older readers look up is
 * there.
 */
static void put_all(struct json_w *w, const struct peft *p)
{
	json_w_obj(w);
	put_str(w, "base_model_name_or_path", p->base ? p->base : "");
	put_str(w, "bias", "none");
	put_bool(w, "fan_in_fan_out", false);
	put_bool(w, "inference_mode", true);
	put_bool(w, "init_lora_weights", true);
	json_w_name(w, "lora_alpha");
	if (p->alpha == floor(p->alpha))      /* an int in PEFT */
		json_w_int(w, (int64_t)p->alpha);
	else
		json_w_num(w, p->alpha);
	json_w_name(w, "lora_dropout");
	json_w_num(w, p->dropout);
	if (p->nmodules) {
		put_names(w, "modules_to_save", p->modules_to_save, p->nmodules);
	} else {
		json_w_name(w, "modules_to_save");
		json_w_null(w);
	}
	put_str(w, "peft_type", "LORA");
	json_w_name(w, "r");
	json_w_int(w, p->rank);
	put_names(w, "target_modules", p->targets, p->ntargets);
	put_str(w, "task_type", "CAUSAL_LM");
	put_bool(w, "use_dora", false);
	put_bool(w, "use_rslora", p->rslora);
	json_w_end(w);
}

int peft_write(const struct peft *p, const char *dir, struct err *err)
{
	char *path = path_join(dir, "adapter_config.json");
	struct buf b = {0};
	struct json_w w = { .out = &b, .indent = 2 };
	struct outfile f = {0};
	int rc = -1;

	put_all(&w, p);
	buf_putc(&b, '\n');
	if (!path)
		err_oom(err, strlen(dir));
	else if (buf_ok(&b, err) == 0 && outfile_open(&f, path, true, err) == 0) {
		fwrite(b.p, 1, b.n, f.fp);      /* commit looks at ferror */
		rc = outfile_commit(&f, err);
	}
	outfile_abort(&f);
	buf_release(&b);
	free(path);
	return rc;
}

static void free_names(char **names, size_t n)
{
	while (n-- > 0)
		free(names[n]);
	free(names);
}

void peft_release(struct peft *p)
{
	free(p->dir);
	free(p->base);
	free_names(p->targets, p->ntargets);
	free_names(p->modules_to_save, p->nmodules);
	*p = (struct peft){0};
}

double peft_scale(const struct peft *p)
{
	return p->alpha / (p->rslora ? sqrt(p->rank) : p->rank);
}
