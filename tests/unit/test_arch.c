/*
 * Configs against what transformers makes of them (tests/golden/arch), refusals by name, GGUF keys
 * both ways, sizes in configs/models.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libcommon/arch/arch.h"
#include "libcommon/file.h"
#include "tap.h"

enum { HEAD_DIM_TESTED = 256 };
static struct err e;

/* A path in the source tree; good until the next call. */
static const char *in_tree(const char *name)
{
	static char path[1024];
	const char *top = getenv("TUNE_TOP");

	snprintf(path, sizeof(path), "%s/%s", top ? top : ".", name);
	return path;
}

static int load(struct arch *a, struct json_doc *d, const char *path)
{
	e = (struct err){0};
	return json_parse_file(d, path, 1 << 20, &e) < 0
		? -1
		: arch_from_config(a, &d->root, "config.json", &e);
}

/* ---- goldens ---- */

static int window_of(const struct arch *a, int i)
{
	return a->layer_window ? a->layer_window[i] : a->window;
}

static void check_rope(const struct arch *a, const struct json *want, const char *name)
{
	float inv[HEAD_DIM_TESTED];
	uint32_t i, exact = 0;
	double worst = 0;

	arch_rope_inv_freq(a, inv);
	for (i = 0; i < want->n; i++) {
		double v = want->items[i].type == JSON_INT ? (double)want->items[i].i : want->items[i].d,
			   diff = fabs(inv[i] - v) / v;

		exact += inv[i] == (float)v;
		worst = diff > worst || isnan(diff) ? diff : worst;
	}
	ok(want->n == (uint32_t)a->head_dim / 2 && worst <= 2.5e-7,
		"%s: inverse frequencies (%u of %u bit for bit, worst %.2g)", name, exact, want->n, worst);
}

/* Names and shapes, in any order. */
static void check_tensors(const struct arch *a, const struct json *want, const char *name)
{
	struct arch_tensor *t;
	size_t n, i, good = 0;
	uint64_t sum = 0;

	if (arch_tensors(a, &t, &n, &e) < 0) {
		ok(false, "%s: tensors", name);
		return;
	}
	for (i = 0; i < n; i++) {
		const struct json *s = json_get(want, t[i].name);

		good += s && s->n == (uint32_t)t[i].ndim && (uint64_t)s->items[0].i == t[i].shape[0] &&
			(s->n == 1 || (uint64_t)s->items[1].i == t[i].shape[1]);
		sum += t[i].shape[0] * (t[i].ndim == 2 ? t[i].shape[1] : 1);
	}
	ok(good == want->n && n == want->n, "%s: %zu tensors by name and shape", name, n);
	ok(sum == arch_param_count(a), "%s: their sum is the parameter count", name);
	ok(t[0].role == T_EMBED && t[n - 1].role == (a->tied ? T_FINAL_NORM : T_HEAD) &&
			t[1].layer == 0,
		"%s: in the fixed order", name);
	free(t);
}

/* config.json -> arch -> config.json -> arch changes nothing. */
static void check_again(const struct arch *a, const char *name)
{
	struct buf text = {0};
	struct json_doc d = {0};
	struct arch b;
	bool good;

	arch_to_config(a, a->dtype, &text);
	good = json_parse(&d, text.p, text.n, "again", 1, &e) == 0 &&
		arch_from_config(&b, &d.root, "again", &e) == 0;
	ok(good, "%s: what is written is read again", name);
	if (!good) {
		printf("# %s\n%s", e.msg, text.p);
	} else {
		bool windows = !a->layer_window == !b.layer_window &&
			(!a->layer_window ||
				!memcmp(a->layer_window, b.layer_window, (size_t)a->layers * sizeof(int)));

		free(b.layer_window);
		b.layer_window = a->layer_window;
		ok(windows && !memcmp(a, &b, sizeof(b)), "%s: and says the same", name);
	}
	json_release(&d);
	buf_release(&text);
}

static void check_golden(const char *name, const struct json *want)
{
	char path[256];
	struct arch a;
	struct json_doc d = {0};
	const struct json *eos = json_get(want, "eos"), *window = json_get(want, "window");
	int i, same = 0;

	snprintf(path, sizeof(path), "tests/golden/arch/%s.json", name);
	if (load(&a, &d, in_tree(path)) < 0) {
		ok(false, "%s: %s", name, e.msg);
		json_release(&d);
		return;
	}
	ok((int64_t)arch_param_count(&a) == json_get(want, "params")->i, "%s: %llu parameters", name,
		(unsigned long long)arch_param_count(&a));
	check_rope(&a, json_get(want, "inv_freq"), name);
	for (i = 0; i < a.layers; i++)
		same += window_of(&a, i) == window->items[i].i;
	ok(same == a.layers && window->n == (uint32_t)a.layers, "%s: windows of the layers", name);
	for (i = 0, same = 0; i < a.neos; i++)
		same += a.eos[i] == eos->items[i].i;
	ok(!json_get(&d.root, "eos_token_id") || (same == a.neos && eos->n == (uint32_t)a.neos),
		"%s: ids that end", name);
	if (json_get(want, "tensors"))
		check_tensors(&a, json_get(want, "tensors"), name);
	check_again(&a, name);
	arch_release(&a);
	json_release(&d);
}

static void check_goldens(void)
{
	struct json_doc d = {0};
	uint32_t i, r;

	ok(json_parse_file(&d, in_tree("tests/golden/arch/expected.json"), 1 << 22, &e) == 0 &&
			d.root.n == 18,
		"expected.json");
	for (i = 0; i < d.root.n; i++) {
		const struct json_member *m = &d.root.members[i];
		uint32_t k;

		if (strcmp(m->name.s, "gguf_rows")) {
			check_golden(m->name.s, &m->value);
			continue;
		}
		for (k = 0; k < m->value.n; k++) {
			const struct json_member *list = &m->value.members[k];
			uint32_t wrong = 0;

			for (r = 0; r < list->value.n; r++)
				wrong += list->value
							 .items[gguf_row(r, (int)strtol(list->name.s, NULL, 10), list->value.n)]
							 .i != r;
			ok(!wrong, "R7: rows of %s (heads x rows) lie where llama.cpp puts them", list->name.s);
		}
	}
	json_release(&d);
}

/* ---- refusals ---- */

#define TINY                                                                                   \
	"\"model_type\":\"llama\",\"vocab_size\":512,\"hidden_size\":64,\"intermediate_size\":96," \
	"\"num_hidden_layers\":2,\"num_attention_heads\":4"
#define QWEN                                                                                   \
	"\"model_type\":\"qwen2\",\"vocab_size\":512,\"hidden_size\":64,\"intermediate_size\":96," \
	"\"num_hidden_layers\":2,\"num_attention_heads\":4"
#define UNKNOWN ": it may change what is computed; if it does not, take it out"

static const char *const refused[][2] = {
	{ "[]", "c: must hold an object" },
	{ "{}", "c: 'model_type' is missing (known: llama, mistral, qwen2)" },
	{ "{\"model_type\":\"gemma3_text\"}",
		"c: model_type 'gemma3_text' is not supported (known: llama, mistral, qwen2)" },
	{ "{\"model_type\":\"llama\"}", "c: 'vocab_size' is missing" },
	{ "{" TINY ",\"qk_layernorm\":true,\"attn_logit_softcapping\":50.0}",
		"c: unknown key 'qk_layernorm'" UNKNOWN
		"\nc: unknown key 'attn_logit_softcapping'" UNKNOWN },
	{ "{" TINY ",\"attention_dropout\":0.1}", "c: 'attention_dropout' is supported as 0 only" },
	{ "{" TINY ",\"pretraining_tp\":2}", "c: 'pretraining_tp' is supported as 1 only" },
	{ "{" TINY ",\"rope_interleaved\":true}", "c: 'rope_interleaved' is supported as false only" },
	{ "{" TINY ",\"partial_rotary_factor\":0.5}",
		"c: 'partial_rotary_factor' is supported as 1 only" },
	{ "{" TINY ",\"sliding_window\":4096}", "c: 'sliding_window' is supported as null only" },
	{ "{" TINY ",\"quantization_config\":{\"bits\":4}}",
		"c: 'quantization_config' is supported as null only" },
	{ "{" TINY ",\"auto_map\":{\"AutoModel\":\"x.py\"}}",
		"c: 'auto_map' is supported as null only" },
	{ "{" TINY ",\"hidden_act\":\"relu\"}",
		"c: hidden_act 'relu' is not supported (known: silu, gelu_pytorch_tanh, gelu)" },
	{ "{" TINY ",\"torch_dtype\":\"float8_e4m3fn\"}",
		"c: torch_dtype 'float8_e4m3fn' is not supported (known: float32, bfloat16, float16)" },
	{ "{" TINY ",\"architectures\":[\"LlamaForSequenceClassification\"]}",
		"c: 'architectures' must be [\"LlamaForCausalLM\"] for model_type 'llama', found "
		"LlamaForSequenceClassification" },
	{ "{" TINY ",\"num_key_value_heads\":3}",
		"c: 4 attention heads are no multiple of 3 key/value heads" },
	{ "{" TINY ",\"head_dim\":15}", "c: a head of 15 elements is odd; rope turns pairs" },
	{ "{" TINY ",\"num_hidden_layers\":1000000000}",
		"c: 'num_hidden_layers' = 1000000000 is not within 1..1024" },
	{ "{" TINY ",\"hidden_size\":-64}", "c: 'hidden_size' = -64 is not within 1..131072" },
	{ "{" TINY ",\"hidden_size\":64.5}",
		"c: 'hidden_size' must be a whole number, found a number" },
	{ "{" TINY ",\"rms_norm_eps\":\"1e-5\"}",
		"c: 'rms_norm_eps' must be a number, found a string" },
	{ "{" TINY ",\"eos_token_id\":\"2\"}", "c: 'eos_token_id' must be a token id or null" },
	{ "{" TINY ",\"eos_token_id\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]}",
		"c: 'eos_token_id' lists 17 ids; 16 is the limit" },
	{ "{" TINY ",\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":4.0}}",
		"c: rope_scaling: rope type 'yarn' is not supported (known: default, linear, llama3)" },
	{ "{" TINY ",\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":2.0}}",
		"c: rope_scaling: rope type 'dynamic' is not supported (known: default, linear, llama3)" },
	{ "{" TINY ",\"rope_scaling\":{\"type\":\"linear\",\"rope_type\":\"llama3\",\"factor\":2.0}}",
		"c: rope_scaling: 'rope_type' and 'type' differ" },
	{ "{" TINY ",\"rope_scaling\":{\"type\":\"linear\"}}", "c: rope_scaling: 'factor' is missing" },
	{ "{" TINY ",\"rope_scaling\":{\"type\":\"linear\",\"factor\":0.5}}",
		"c: rope_scaling: 'factor' = 0.5 is not within 1..1e+09" },
	{ "{" TINY ",\"rope_scaling\":{\"type\":\"linear\",\"factor\":2,\"mscale\":1}}",
		"c: rope_scaling: unknown key 'mscale'" },
	{ "{" TINY ",\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8,\"low_freq_factor\":4,"
			   "\"high_freq_factor\":1}}",
		"c: rope_scaling: 'high_freq_factor' 1 must be above 'low_freq_factor' 4" },
	{ "{" TINY ",\"rope_theta\":10000,\"rope_parameters\":{\"rope_type\":\"default\",\"rope_"
			   "theta\":500000}}",
		"c: 'rope_theta' is 10000, but 500000 in 'rope_parameters'; make them agree" },
	{ "{" TINY ",\"rope_scaling\":{\"type\":\"linear\",\"factor\":2},\"rope_parameters\":{\"rope_"
			   "type\":\"linear\",\"factor\":4}}",
		"c: 'rope_scaling' and 'rope_parameters' differ; make them agree" },
	{ "{" TINY ",\"rope_parameters\":{\"full_attention\":{}}}",
		"c: rope_parameters: unknown key 'full_attention'" },
	{ "{" QWEN
	  ",\"use_sliding_window\":true,\"sliding_window\":16,\"layer_types\":[\"full_attention\"]}",
		"c: layer_types must be an array of 2, one for each layer" },
	{ "{" QWEN ",\"layer_types\":[\"full_attention\",\"sliding_attention\"]}",
		"c: layer_types[1] is 'sliding_attention', but use_sliding_window is off" },
	{ "{" QWEN ",\"layer_types\":[\"full_attention\",\"chunked_attention\"]}",
		"c: layer_types[1] must be 'full_attention' or 'sliding_attention'" },
	{ "{" QWEN ",\"use_mrope\":true}", "c: 'use_mrope' is supported as false only" },
};

static void check_refusals(void)
{
	struct json_doc d = {0};
	struct arch a;
	size_t i;

	for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		bool no;

		e = (struct err){0};
		no = json_parse(&d, refused[i][0], strlen(refused[i][0]), "text", 1, &e) == 0 &&
			arch_from_config(&a, &d.root, "c", &e) < 0;
		ok(no && e.code == EX_DATAERR && !strcmp(e.msg, refused[i][1]), "R5 R8: refused: %.*s",
			(int)strcspn(refused[i][1], "\n"), refused[i][1]);
		if (!no || strcmp(e.msg, refused[i][1]))
			printf("# got: %s\n", no ? e.msg : "accepted");
		if (!no)
			arch_release(&a);
	}
	json_release(&d);
}

static void check_defaults(void)
{
	static const char text[] =
		"{" TINY
		",\"num_key_value_heads\":null,\"head_dim\":null,\"eos_token_id\":-1,\"rope_scaling\":{}}";
	static const char mistral[] = "{\"model_type\":\"mistral\",\"vocab_size\":512,\"hidden_size\":"
								  "64,\"intermediate_size\":96,"
								  "\"num_hidden_layers\":2,\"num_attention_heads\":8}";
	struct json_doc d = {0};
	struct arch a;

	json_parse(&d, text, strlen(text), "text", 1, &e);
	ok(!arch_from_config(&a, &d.root, "c", &e) && a.kv_heads == 4 && a.head_dim == 16 &&
			a.norm_eps == 1e-6 && a.rope_theta == 10000 && a.max_positions == 2048 &&
			a.rope == ROPE_DEFAULT && !a.tied && a.neos == 0 && a.bos == -1 && a.pad == -1 &&
			a.dtype == DT_NONE,
		"R8: what is absent is as the header says");
	arch_release(&a);
	json_parse(&d, mistral, strlen(mistral), "text", 1, &e);
	ok(!arch_from_config(&a, &d.root, "c", &e) && a.kv_heads == 8 && a.window == 4096 &&
			a.max_positions == 131072,
		"and Mistral's own");
	arch_release(&a);
	json_release(&d);
}

/* ---- GGUF ---- */

struct key { const char *name; enum gguf_type type; double v; const char *s; };

/* A file of keys with two tensors: an embedding and, unless tied, a head; freqs may be NULL. */
static void put_gguf(
	const char *path, const struct arch *a, const struct key *extra, const float *freqs)
{
	struct gguf_w *w;
	FILE *fp = fopen(path, "wb");
	uint64_t embed[2] = { (uint64_t)a->vocab, (uint64_t)a->dim }, nf = (uint64_t)a->head_dim / 2;
	float *zero = calloc((size_t)(a->vocab * a->dim), sizeof(*zero));

	if (!fp || !zero || gguf_w_new(&w, &e) < 0 || arch_to_gguf(a, w, "tiny", DT_F32, &e) < 0)
		exit(1);
	for (; extra && extra->name; extra++) {
		if (extra->type == GGUF_STR)
			gguf_w_str(w, extra->name, extra->s, strlen(extra->s));
		else if (extra->type == GGUF_F32)
			gguf_w_f32(w, extra->name, (float)extra->v);
		else
			gguf_w_u32(w, extra->name, (uint32_t)extra->v);
	}
	gguf_w_tensor(w, "token_embd.weight", DT_F32, 2, embed, &e);
	if (!a->tied)
		gguf_w_tensor(w, "output.weight", DT_F32, 2, embed, &e);
	if (freqs)
		gguf_w_tensor(w, "rope_freqs.weight", DT_F32, 1, &nf, &e);
	if (gguf_w_begin(w, fp, path, &e) < 0 ||
		gguf_w_data(w, zero, embed[0] * embed[1] * 4, &e) < 0 ||
		(!a->tied && gguf_w_data(w, zero, embed[0] * embed[1] * 4, &e) < 0) ||
		(freqs && gguf_w_data(w, freqs, nf * 4, &e) < 0) || gguf_w_finish(w, &e) < 0)
		exit(1);
	gguf_w_free(w);
	fclose(fp);
	free(zero);
}

static int get_gguf(const char *path, struct arch *a)
{
	struct gguf *g;
	int rc;

	e = (struct err){0};
	if (gguf_open(&g, path, &e) < 0)
		return -1;
	rc = arch_from_gguf(a, g, "m.gguf", &e);
	gguf_close(g);
	return rc;
}

/* Each golden that GGUF can say comes back from it; what GGUF has no key for is set equal. */
static void check_gguf_again(const char *path, const char *name)
{
	char file[256];
	struct arch a, b;
	struct json_doc d = {0};
	float freqs[HEAD_DIM_TESTED];
	bool has;

	snprintf(file, sizeof(file), "tests/golden/arch/%s.json", name);
	if (load(&a, &d, in_tree(file)) < 0) {
		ok(false, "%s: %s", name, e.msg);
		return;
	}
	has = arch_rope_freqs(&a, freqs);
	put_gguf(path, &a, NULL, has ? freqs : NULL);
	ok(get_gguf(path, &b) == 0, "%s: through GGUF (%s)", name, e.msg);
	b.bos = a.bos;
	b.pad = a.pad;
	memcpy(b.eos, a.eos, sizeof(b.eos));
	b.neos = a.neos;
	b.dtype = a.dtype;
	b.bias_qkv = a.bias_qkv;      /* its tensors are not in this file */
	if (!strncmp(name, "mistral", 7) && !a.window) {
		memcpy(b.family, a.family, sizeof(b.family));
		memcpy(b.arch_class, a.arch_class, sizeof(b.arch_class));
	}
	ok(!memcmp(&a, &b, sizeof(a)), "R8: %s: says the same after it", name);
	arch_release(&a);
	arch_release(&b);
	json_release(&d);
}

static const struct { struct key key[3]; const char *message;
} bad_keys[] = {
	{ { { "llama.block_count2", GGUF_U32, 1, NULL } },
		"m.gguf: key 'llama.block_count2' is not supported: it may change what the model "
		"computes" },
	{ { { "llama.attention.scale", GGUF_F32, 0.1, NULL },
		  { "llama.logit_scale", GGUF_F32, 2, NULL } },
		"m.gguf: key 'llama.attention.scale' is not supported: it may change what the model "
		"computes\n"
		"m.gguf: key 'llama.logit_scale' is not supported: it may change what the model computes" },
	{ { { "llama.expert_count", GGUF_U32, 8, NULL } },
		"m.gguf: a mixture of 8 experts is not supported" },
	{ { { "llama.rope.scaling.type", GGUF_STR, 0, "yarn" } },
		"m.gguf: rope scaling 'yarn' is not supported (known: none, linear)" },
	{ { { "llama.rope.scaling.type", GGUF_STR, 0, "linear" } },
		"m.gguf: 'llama.rope.scaling.type' is linear, with a factor of 0" },
	{ { { "llama.rope.scaling.type", GGUF_U32, 1, NULL } }, NULL },
};

static void check_gguf(void)
{
	static const char *const names[] = { "llama_tiny", "llama_tiny_tied", "llama_tiny_llama3",
		"llama_tiny_linear", "mistral_tiny", "mistral_tiny_full", "qwen2_tiny",
		"qwen2_tiny_all_windows" };
	char path[64];
	struct arch a, b;
	struct json_doc d = {0};
	float freqs[HEAD_DIM_TESTED];
	size_t i;

	snprintf(path, sizeof(path), "/tmp/test_arch.%d.gguf", (int)getpid());
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		check_gguf_again(path, names[i]);
	load(&a, &d, in_tree("tests/golden/arch/llama_tiny.json"));
	for (i = 0; i < sizeof(bad_keys) / sizeof(bad_keys[0]); i++) {
		bool no;

		put_gguf(path, &a, bad_keys[i].key, NULL);
		no = get_gguf(path, &b) < 0 && e.code == EX_DATAERR;
		ok(no && (!bad_keys[i].message || !strcmp(e.msg, bad_keys[i].message)), "refused: %.*s",
			(int)strcspn(e.msg, "\n"), e.msg);
		if (!no || (bad_keys[i].message && strcmp(e.msg, bad_keys[i].message)))
			printf("# got: %s\n", no ? e.msg : "accepted");
	}
	for (i = 0; i < 8; i++)
		freqs[i] = 1 + (float)i;
	put_gguf(path, &a, NULL, freqs);
	ok(get_gguf(path, &b) < 0 && strstr(e.msg, "rope_freqs.weight is not a llama3 scaling"),
		"R8: other frequency tables are refused");
	a.layers = 1000000000;
	put_gguf(path, &a, NULL, NULL);
	ok(get_gguf(path, &b) < 0 &&
			!strcmp(e.msg, "m.gguf: 'llama.block_count' = 1000000000 is not within 1..1024"),
		"S3: block_count 1e9");
	arch_release(&a);
	load(&a, &d, in_tree("tests/golden/arch/qwen2_tiny_windows.json"));
	{
		struct gguf_w *w;

		ok(!gguf_w_new(&w, &e) && arch_to_gguf(&a, w, "x", DT_F32, &e) < 0 &&
				strstr(e.msg, "only some layers"),
			"windows of some layers have no key");
		gguf_w_free(w);
	}
	arch_release(&a);
	unlink(path);
	json_release(&d);
}

/* rope_freqs.weight of the published scalings is read back as the scaling it is. */
static void check_freqs(void)
{
	static const char *const names[] = { "llama3_1_8b", "llama3_2_1b" };
	char file[256], path[64];
	struct arch a, b;
	struct json_doc d = {0};
	float freqs[HEAD_DIM_TESTED];
	int i;

	snprintf(path, sizeof(path), "/tmp/test_arch.%d.gguf", (int)getpid());
	for (i = 0; i < 2; i++) {
		snprintf(file, sizeof(file), "tests/golden/arch/%s.json", names[i]);
		load(&a, &d, in_tree(file));
		arch_rope_freqs(&a, freqs);
		a.vocab = 8;      /* a small file will do */
		put_gguf(path, &a, NULL, freqs);
		ok(get_gguf(path, &b) == 0 && b.rope == ROPE_LLAMA3 && b.rope_factor == a.rope_factor &&
				b.rope_low_freq == 1 && b.rope_high_freq == 4 && b.rope_original == 8192,
			"R8: %s: factor %g, 1, %g, %d from its frequencies", names[i], b.rope_factor,
			b.rope_high_freq, b.rope_original);
		arch_release(&a);
		arch_release(&b);
	}
	unlink(path);
	json_release(&d);
}

/* ---- configs/models ---- */

static void check_models(void)
{
	static const struct { const char *name; double params; } models[] = {
		{ "1B", 1e9 }, { "7B", 7e9 }, { "13B", 13e9 }, { "40B", 40e9 }, { "70B", 70e9 }
	};
	struct json_doc d = {0};
	struct arch a;
	char path[128];
	size_t i;

	for (i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
		double n;

		snprintf(path, sizeof(path), "configs/models/%s/config.json", models[i].name);
		if (load(&a, &d, in_tree(path)) < 0) {
			ok(false, "%s", e.msg);
			continue;
		}
		n = (double)arch_param_count(&a);
		ok(fabs(n / models[i].params - 1) <= 0.05, "configs/models/%s has %.3f billion parameters",
			models[i].name, n / 1e9);
		ok(a.tied == (models[i].params < 7e9), "%s and is tied or not as a model of its size",
			models[i].name);
		arch_release(&a);
	}
	ok(load(&a, &d, in_tree("configs/models/debug/config.json")) == 0 && a.layers == 2,
		"configs/models/debug has 2 layers");
	arch_release(&a);
	json_release(&d);
}

int main(void)
{
	check_goldens();
	check_refusals();
	check_defaults();
	check_gguf();
	check_freqs();
	check_models();
	return tap_done();
}
